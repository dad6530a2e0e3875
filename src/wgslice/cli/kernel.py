"""`wgslice kernel NAME`: the module that runs."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

from wgslice.plans.kernels import Kernel
from wgslice.shaders.modules import entry_point, kernel_module

__all__ = ["add_kernel"]


def add_kernel(commands: Any) -> None:
    """Describe it to the parser."""
    names = [kernel.value for kernel in Kernel]
    printing = commands.add_parser("kernel", help="print a kernel: complete WGSL, for any host of WebGPU")
    printing.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    printing.set_defaults(run=print_kernel)


def print_kernel(arguments: Namespace) -> None:
    """`wgslice kernel`: the module that runs, and what a host gives it."""
    kernel = Kernel(arguments.name)
    module = kernel_module(kernel)
    constants = re.findall(r"^override (\w+: \w+ = -?\w+;) +// (.*)$", module, re.MULTILINE)
    bindings = re.findall(r"^@group\(0\) @binding\((\d)\) var(<.*> \w+: .*;)", module, re.MULTILINE)
    print(f"// Entry point `{entry_point(kernel)}`.\n//\n// Constants of a pipeline, and their defaults:")
    for declared, meaning in sorted(constants):
        print(f"//   {declared.rstrip(';'):30}  {meaning}")
    print("//\n// Bindings of group 0:")
    for number, declared in sorted(bindings):
        print(f"//   {number}  {declared.rstrip(';')}")
    print(f"\n{module}", end="")
