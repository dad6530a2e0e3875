"""Modules whose invocations store their own number in place of data: so an adapter says who writes what."""

from __future__ import annotations

import re

from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module

# What a store of each array takes.
TYPES = {"words": "u32", "units": "Unit", "blocks": "vec4<u32>", "vectors": "vec4<u32>"}
STORE = re.compile(r"^( *target_(\w+)\[.*\]) = [^;]*;", re.MULTILINE)
ATOMIC = re.compile(r"^( *atomicStore\(&target_words\[.*\]), \w+\);", re.MULTILINE)
ENTRY = re.compile(r"(@compute.*\nfn (?:.*\n)*?.*\) \{\n)")


def numbered_module(kernel: Kernel) -> str:
    """The kernel's module with every store changed."""
    text = re.sub(r" *//.*", "", kernel_module(kernel))
    text, stores = STORE.subn(lambda found: f"{found[1]} = {TYPES[found[2]]}(numbered);", text)
    text, atomics = ATOMIC.subn(r"\1, numbered);", text)
    assert stores + atomics, f"{kernel.value} stores nothing"
    number = "(group.y * groups.x + group.x) * workgroup_size + index"
    if "own: Invocation" in text:
        number = "invocation_number(own.group, own.groups, own.index)"
    text, entries = ENTRY.subn(rf"\1    numbered = {number};\n", text)
    assert entries == 1, f"{kernel.value} has {entries} entry points"
    return f"var<private> numbered: u32;\n{text}"
