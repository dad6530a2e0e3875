"""`wgslice kernel NAME`: the module that runs."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from wgslice.plans.kernels import Kernel
from wgslice.shaders.modules import kernel_module

__all__ = ["add_kernel"]


def add_kernel(commands: Any) -> None:
    """Describe it to the parser."""
    names = [kernel.value for kernel in Kernel]
    printing = commands.add_parser("kernel", help="print a kernel: complete WGSL, for any host of WebGPU")
    printing.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    printing.set_defaults(run=print_kernel)


def print_kernel(arguments: Namespace) -> None:
    """`wgslice kernel`: the module that runs."""
    print(kernel_module(Kernel(arguments.name)), end="")
