"""`wgslice adapters`: what this machine has."""

from __future__ import annotations

import os
from typing import Any

import wgslice as wg
from wgslice.gpu.adapter import choose_adapter

__all__ = ["add_adapters"]


def add_adapters(commands: Any) -> None:
    """Describe it to the parser."""
    listing = commands.add_parser("adapters", help="list what this machine has; * is the default")
    listing.set_defaults(run=list_adapters)


def list_adapters(_: object) -> None:
    """`wgslice adapters`: a line each."""
    adapters = wg.adapters()
    default = choose_adapter(adapters, os.environ.get("WGSLICE_ADAPTER"))
    for adapter in adapters:
        mark = "*" if adapter is default else " "
        print(f"{mark} {adapter}, {adapter.kind}{', software' * adapter.software}, {adapter.driver}")
