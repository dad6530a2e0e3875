"""The module of each kernel: its file in `wgsl/`, and those in `wgsl/shared/` that it has with others."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from wgslice.plans.kernels import Kernel
from wgslice.plans.launch import UNIT_GRIDS

# WGSL does not mind the order of declarations: a module is its kernel's file, then these.
COPIES = ("common", "copy")
WORDS = (*COPIES, "words")
ROWS = (*COPIES, "pieces")
WINDOWS = ("common", "windows")
INDICES = ("common", "indexed", "pieces", "indexed_pieces")
DIFFERENT = {
    Kernel.SLICE1: (),  # complete in itself, as the specification
    Kernel.ROWS: (*ROWS, "runs", "words"),
    Kernel.WIDE_ROWS: ROWS,
    Kernel.SHIFTED_ROWS: (*ROWS, "blocks", "shifted"),
    Kernel.WORD_GRID: (*COPIES, "grid"),
    Kernel.PAIR_GRID: (*COPIES, "grid"),
    Kernel.WIDE_GRID: (*COPIES, "grid"),
    Kernel.SHIFTED_GRID: (*COPIES, "grid", "blocks", "shifted"),
    Kernel.ROW_ENDS: (*ROWS, "blocks", "shifted"),
    Kernel.NARROW_ROWS: (*ROWS, "runs", "words"),
    Kernel.NARROW_ENDS: (*ROWS, "runs", "words"),
    Kernel.PIXELS: (*ROWS, "blocks"),
    Kernel.WIDE_TILES: COPIES,
    Kernel.EXTRACT_WINDOWS: (*WINDOWS, "words", "atomic_words"),
    Kernel.WINDOW_ROWS: (*WINDOWS, "pieces", "blocks", "window_blocks"),
    Kernel.WINDOW_WORDS: (*WINDOWS, "words"),
    Kernel.INSERT_WINDOWS: (*WINDOWS, "insertions", "words", "atomic_words"),
    Kernel.INSERT_ROWS: (*WINDOWS, "insertions", "pieces", "blocks", "window_blocks"),
    Kernel.INSERT_WORDS: (*WINDOWS, "insertions", "pieces", "words", "atomic_words"),
    Kernel.CLAIM_WINDOWS: WINDOWS,
    Kernel.CLAIM_ROWS: (*WINDOWS, "pieces", "insertions"),
    Kernel.GATHER: INDICES,
    Kernel.GATHER_WORDS: ("common", "indexed", "words"),
    Kernel.SCATTER: INDICES,
    Kernel.SCATTER_NARROW: (*INDICES, "words", "atomic_words"),
    Kernel.CLAIM_INDICES: INDICES,
    Kernel.MASKED_WORDS: ("common", "indexed", "pieces", "words"),
}
shared_files: dict[Kernel, tuple[str, ...]] = {kernel: DIFFERENT.get(kernel, WORDS) for kernel in Kernel}


# Kernels that one file serves, which differ in the type of what an invocation copies.
UNIT_TYPES = {Kernel.WORD_GRID: "u32", Kernel.PAIR_GRID: "vec2<u32>", Kernel.WIDE_GRID: "vec4<u32>"}


def entry_point(kernel: Kernel) -> str:
    """The name of a kernel's file and of the function that it runs."""
    return "unit_grid" if kernel in UNIT_TYPES else kernel.value


@cache
def shared_text(name: str) -> str:
    """The WGSL of a shared file."""
    return files("wgslice.wgsl").joinpath("shared", f"{name}.wgsl").read_text("utf-8")


@cache
def kernel_module(kernel: Kernel) -> str:
    """The complete WGSL of a kernel, as any WebGPU implementation loads it."""
    own = files("wgslice.wgsl").joinpath(f"{entry_point(kernel)}.wgsl").read_text("utf-8")
    text = "\n".join([own, *map(shared_text, shared_files[kernel])])
    if kernel not in UNIT_TYPES:
        return text
    units = f"alias Unit = {UNIT_TYPES[kernel]};\nconst units: u32 = {UNIT_GRIDS[kernel]}u;"
    return f"// {kernel.value}: unit_grid in units of {UNIT_TYPES[kernel]}.\n\n{units}\n\n{text}"


@cache
def constants_of(kernel: Kernel) -> tuple[str, ...]:
    """The names of the constants that a pipeline of a kernel is compiled with."""
    return tuple(re.findall(r"^override (\w+): \w+ = -?\w+;", kernel_module(kernel), re.MULTILINE))
