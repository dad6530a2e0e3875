"""Modules with every index into a storage array clamped, as WebGPU allows where one is out of bounds."""

from __future__ import annotations

import re

from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module


def storage_arrays(text: str) -> list[str]:
    """The names of a module's storage arrays."""
    return re.findall(r"var<storage, (?:read|read_write)> (\w+): array<", text)


def uses(text: str, name: str) -> list[re.Match[str]]:
    """Where a module names an array, but for its declaration, the lengths of it, and comments."""
    return list(re.finditer(rf"(?<!> )(?<!arrayLength\(&)\b{name}\b(?![^\n]*\bvar<)", text))


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed."""
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
