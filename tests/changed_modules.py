"""Changed modules of kernels: with clamped indices, and with stores of who stores.

WebGPU allows to clamp an index into a storage array where it is out of bounds. A module whose invocations
store their own numbers in place of data says which of them writes what.
"""

from __future__ import annotations

import re

from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module


def storage_arrays(text: str) -> list[str]:
    """The names of a module's storage arrays."""
    return re.findall(r"var<storage, (?:read|read_write)> (\w+): array<", text)


def uses(text: str, name: str) -> list[re.Match[str]]:
    """Places where a module names an array, except its declaration, its lengths and comments."""
    return list(re.finditer(rf"(?<!> )(?<!arrayLength\(&)\b{name}\b(?![^\n]*\bvar<)", text))


def closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError(f"never closed: {text[start : start + 80]}")


def clamp(text: str) -> str:
    """The module with every index into a storage array clamped, each array at least once, none left out."""
    text = re.sub(r"//.*", "", text)
    names = storage_arrays(text)
    assert names, "no storage arrays"
    for name in names:
        places = [found.end() for found in uses(text, name)]
        assert places, f"{name} is never indexed"
        for start in reversed(places):  # from the end, so that the others stay where they are
            assert text[start] == "[", f"{name} is used without an index: {text[start - 40 : start + 40]!r}"
            stop = closing(text, start)
            index = text[start + 1 : stop]
            text = f"{text[:start]}[min({index}, arrayLength(&{name}) - 1u){text[stop:]}"
    check_clamped(text)
    return text


def check_clamped(text: str) -> None:
    """Every index into a storage array is clamped."""
    for name in storage_arrays(text):
        for found in uses(text, name):
            index = text[found.end() + 1 : closing(text, found.end())]
            assert index.startswith("min("), f"{name}[{index}] is not clamped"
            assert index.endswith(f", arrayLength(&{name}) - 1u)"), f"{name}[{index}] is not clamped"


def clamped_module(kernel: Kernel) -> str:
    """The module of a kernel, clamped."""
    return clamp(kernel_module(kernel))


# What a store of each array takes; a component of a vector takes a u32.
TYPES = {"words": "u32", "units": "Unit", "blocks": "vec4<u32>", "vectors": "vec4<u32>"}
STORE = re.compile(r"^( *target_(\w+)\[[^]]*\](\[i\])?) = [^;]*;", re.MULTILINE)
ATOMIC = re.compile(r"^( *atomicStore\(&target_words\[.*\]), \w+\);", re.MULTILINE)
ENTRY = re.compile(r"(@compute.*\nfn (?:.*\n)*?.*\) \{\n)")


def numbered_module(kernel: Kernel) -> str:
    """The kernel's module with every store changed."""
    text = re.sub(r" *//.*", "", kernel_module(kernel))
    text, stores = STORE.subn(
        lambda found: f"{found[1]} = {'u32' if found[3] else TYPES[found[2]]}(numbered);", text
    )
    text, atomics = ATOMIC.subn(r"\1, numbered);", text)
    assert stores + atomics, f"{kernel.value} stores nothing"
    own = "own." if "own: Invocation" in text else ""
    number = f"({own}group.y * {own}groups.x + {own}group.x) * workgroup_size + {own}index"
    text, entries = ENTRY.subn(rf"\1    numbered = {number};\n", text)
    assert entries == 1, f"{kernel.value} has {entries} entry points"
    return f"var<private> numbered: u32;\n{text}"
