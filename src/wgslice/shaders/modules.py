"""The module of each kernel: its file in `wgsl/`, and those in `wgsl/shared/` that it has with others."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from wgslice.plans.kernels import Kernel

__all__ = ["kernel_module", "shared_files"]

# WGSL does not mind the order of declarations: a module is its kernel's file, then these.
shared_files: dict[Kernel, tuple[str, ...]] = {
    Kernel.SLICE1: (),  # complete in itself, as the specification
    Kernel.ROWS: ("copy", "invocations", "division", "pieces", "places", "pairs", "words"),
    Kernel.WIDE_ROWS: ("copy", "invocations", "division", "pieces", "places"),
    Kernel.SHIFTED_ROWS: (
        *("copy", "invocations", "division", "pieces", "places"),
        *("extents", "blocks", "shifted"),
    ),
    Kernel.WORD_GRID: ("copy", "invocations", "division", "places", "tile_numbers", "grid", "unit_grid"),
    Kernel.PAIR_GRID: ("copy", "invocations", "division", "places", "tile_numbers", "grid", "unit_grid"),
    Kernel.WIDE_GRID: ("copy", "invocations", "division", "places", "tile_numbers", "grid", "unit_grid"),
    Kernel.SHIFTED_GRID: (
        *("copy", "invocations", "division", "places", "tile_numbers", "grid"),
        *("extents", "blocks", "shifted"),
    ),
    Kernel.ROW_ENDS: (
        *("copy", "invocations", "division", "pieces", "places"),
        *("extents", "edges", "blocks", "block_edges", "shifted"),
    ),
    Kernel.NARROW_ROWS: (
        *("copy", "invocations", "division", "pieces", "places"),
        *("pairs", "extents", "edges", "edge_words", "words", "narrow_elements"),
    ),
    Kernel.NARROW_ENDS: (
        *("copy", "invocations", "division", "pieces", "places"),
        *("pairs", "extents", "edge_words", "words", "narrow_elements"),
    ),
    Kernel.NARROW_RUNS: ("copy", "invocations", "division", "words", "narrow_elements"),
    Kernel.PIXELS: ("copy", "invocations", "division", "pieces", "places", "extents", "blocks"),
    Kernel.TILES: ("copy", "invocations", "division", "places", "words"),
    Kernel.WIDE_TILES: ("copy", "invocations", "division", "places", "tile_numbers"),
    Kernel.EXTRACT_WINDOWS: (
        *("windows", "window_elements", "invocations"),
        *("atomic_words", "narrow_elements", "narrow_writes"),
    ),
    Kernel.WINDOW_ROWS: (
        *("windows", "window_places", "invocations", "division", "pieces"),
        *("extents", "edges", "blocks", "block_edges", "window_blocks"),
    ),
    Kernel.WINDOW_WORDS: (
        *("windows", "window_places", "invocations", "division"),
        *("words", "narrow_elements"),
    ),
    Kernel.INSERT_WINDOWS: (
        *("windows", "window_elements", "claims", "invocations"),
        *("atomic_words", "narrow_elements", "narrow_writes"),
    ),
    Kernel.INSERT_ROWS: (
        *("windows", "window_places", "tensor_rows", "claims", "invocations", "division", "pieces"),
        *("extents", "blocks", "window_blocks"),
    ),
    Kernel.INSERT_WORDS: (
        *("windows", "window_places", "tensor_rows", "claims", "invocations", "division", "pieces"),
        *("extents", "atomic_words"),
    ),
    Kernel.CLAIM_WINDOWS: ("windows", "window_elements", "invocations"),
}


@cache
def kernel_module(kernel: Kernel) -> str:
    """The complete WGSL of a kernel, as any WebGPU implementation loads it."""
    folder = files("wgslice.wgsl")
    paths = [folder.joinpath(f"{kernel.value}.wgsl")]
    paths += [folder.joinpath("shared", f"{name}.wgsl") for name in shared_files[kernel]]
    return "\n".join(path.read_text("utf-8") for path in paths)
