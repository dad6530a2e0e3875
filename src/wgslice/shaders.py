"""The host side of `wgsl/`: the module of each kernel, its constants, and the uniform block of a dispatch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any, TypeAlias

import numpy as np

from wgslice.layout import Layout
from wgslice.packaged import packaged_text
from wgslice.plans.indexed import IndexedDispatch
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.pixels import pixels_of, runs_per_word
from wgslice.plans.steps import Dispatch, OnGrid
from wgslice.plans.windows import SizedDispatch, WindowDispatch

WIDE_INDICES = "_64"  # ends the names of modules for indices of 8 bytes, as in `wgsl/link.py`


@cache
def linker() -> Any:
    """`wgsl/link.py` in a checkout, where modules are linked at first use; None in a wheel, which has all."""
    return import_module("wgslice.wgsl.link") if find_spec("wgslice.wgsl.link") else None


@cache
def description() -> dict[str, Any]:
    """`modules.json` of an installed package: structs of uniform blocks, entry points and constants."""
    found: dict[str, Any] = json.loads(packaged_text("wgslice.wgsl", "modules.json"))
    return found


@cache
def module_text(name: str) -> str:
    """The complete WGSL of a module, as any WebGPU implementation loads it."""
    found: str = linker().linked(name) if linker() else packaged_text("wgslice.wgsl", f"{name}.wgsl")
    return found


@cache
def about(name: str) -> dict[str, Any]:
    """The entry point of a module, and the names of the constants that its pipelines are compiled with."""
    found: dict[str, Any] = linker().about(name) if linker() else description()["modules"][name]
    return found


def entry_point(kernel: Kernel) -> str:
    """The name of the function that a kernel runs, and of its file."""
    entry: str = about(kernel.value)["entry"]
    return entry


def kernel_module(kernel: Kernel, index_nbytes: int = 4) -> str:
    """The module of a kernel; indices of 8 bytes need one of their own."""
    return module_text(f"{kernel.value}{WIDE_INDICES}" if index_nbytes == 8 else kernel.value)


def module_of(step: OnGrid) -> str:
    """The module that `step` runs."""
    return kernel_module(step.kernel, step.index_nbytes if isinstance(step, IndexedDispatch) else 4)


def kernels_by_module(entry: str) -> dict[str, Kernel]:
    """The kernels with this entry point, by all their modules."""
    names = linker().modules() if linker() else description()["modules"]
    return {
        module_text(name): Kernel(name.removesuffix(WIDE_INDICES))
        for name in names
        if about(name)["entry"] == entry
    }


Block: TypeAlias = np.ndarray[tuple[()], np.dtype[np.void]]


@cache
def block_dtype(struct: str) -> np.dtype[np.void]:
    """The dtype of a struct of `wgsl/shared`: a uniform block, or a part of one.

    Dimensions are structs, since FXC takes seconds for components of uniform vectors at indices that vary.
    """
    known = linker().structs() if linker() else description()["structs"]
    names, offsets, types, shapes = zip(*known[struct]["fields"], strict=True)
    formats = [
        ("<u4" if type_ == "u32" else block_dtype(type_), tuple(shape))
        for type_, shape in zip(types, shapes, strict=True)
    ]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": known[struct]["nbytes"]}
    )


MAX_MASKS = 16  # channels, one a byte of a block


def uniform_block(step: OnGrid) -> bytes:
    """The bytes that the kernel of `step` reads as its uniform block."""
    struct, fill, _ = STRUCTS[type(step)]
    block, share = np.zeros((), block_dtype(struct)), step.share
    if isinstance(step, SizedDispatch):
        fill_sized(block, step)
        return block.tobytes()
    dividers = [divider(divisor) for divisor in fill(block, step)]
    rank = len(dividers)
    block["rank"], block["count"], block["pieces"] = rank, share.count, share.pieces
    block["dimensions"]["multiplier"][:rank] = [multiplier for multiplier, _ in dividers]
    block["dimensions"]["shift"][:rank] = [shift for _, shift in dividers]
    block["pieces_multiplier"], block["pieces_shift"] = divider(share.pieces)
    return block.tobytes()


def fill_copy(block: Block, step: Dispatch) -> Sequence[int]:
    """Fill the struct `Copy`, and return the divisor of each dimension."""
    rank = step.target.rank
    block["dimensions"]["size"][:rank] = step.target.sizes
    fill_sides(block, step.source, step.target)
    block["element_bytes"] = step.width_nbytes
    block["paired"] = step.share.paired
    block["row_tiles"] = step.share.row_tiles
    block["row_tiles_multiplier"], block["row_tiles_shift"] = divider(step.share.row_tiles)
    if step.share.tiling is not None:
        tiling = step.share.tiling
        block["across_shift"] = tiling.lane_shift
        block["ahead_columns"], block["ahead_rows"] = tiling.ahead_columns, tiling.ahead_rows
    target = step.target
    if step.kernel is Kernel.SUBWORD_STEPS:
        return *target.sizes[:-2], target.strides[-2] * step.width_nbytes, target.sizes[-1]
    return target.sizes


def fill_windows(block: Block, step: WindowDispatch) -> Sequence[int]:
    """Fill the struct `Windows`, and return the divisor of each dimension."""
    for column, dimension in enumerate(step.dimensions):
        for name, value in vars(dimension).items():
            block["dimensions"][name][column] = value % 2**32
    block["fill"] = np.frombuffer(step.windows.fill or bytes(WIDEST_NBYTES), "<u4")
    for wrapped in ("tensor_offset", "batch_offset", "window_stride"):
        block[wrapped] = getattr(step, wrapped) % 2**32
    block["first"], block["window_size"] = step.first, step.window_size
    block["each"], block["segment"] = step.share.each, step.segment
    block["columns"] = len(step.windows.extents)
    block["flips"] = 0 if step.picks is not None else step.windows.same_flips
    block["window_multiplier"], block["window_shift"] = divider(step.window_size)
    if step.row_nbytes:
        block["row_bytes"] = step.row_nbytes
        block["masks"] = channel_masks(step.channels, step.element_nbytes)
    elif step.segment:
        block["elements"] = step.share.count * step.window_size
        block["row_size"] = prod(step.shape[-2:])
    if step.winners is not None:
        block["winner_offset"], block["winner_base"] = step.winners.offset % 2**32, step.winners.base
        block["block_winners"] = step.winners.block_winners
    divisors = [dimension.inner for dimension in step.dimensions]
    if step.row_nbytes:
        divisors[-1] = step.dimensions[-1].tensor_stride
    return divisors


def fill_indexed(block: Block, step: IndexedDispatch) -> Sequence[int]:
    """Fill the struct `Indexed`, and return the divisor of each dimension."""
    copy, rank = step.copy, len(step.copy.sizes)
    dimensions = block["dimensions"]
    dimensions["size"][:rank] = copy.sizes
    fill_sides(block, copy.source, copy.target)
    bounds = block["bounds"]
    for number, table in enumerate(copy.tables):
        dimensions["table_strides"][:rank, number] = table.strides
        block["table_offsets"][number] = table.offset
        bounds["extents"][number], bounds["wraps"][number] = table.extent, table.wrap
        bounds["steps"][number], bounds["winner_steps"][number] = table.step % 2**32, table.winner_step
        bounds["firsts"][number], bounds["stops"][number] = table.copied.start, table.copied.stop
    if copy.winners is not None:
        dimensions["winner_stride"][:rank] = copy.winners.strides
        dimensions["number_stride"][:rank] = copy.winners.numbers
    block["elements"], block["each"] = prod(copy.sizes), step.share.each
    block["rows"] = step.rows
    block["rows_multiplier"], block["rows_shift"] = divider(step.rows)
    return copy.sizes


def fill_sized(block: Block, step: SizedDispatch) -> Sequence[int]:
    """Fill the struct `Sized`, and return no divisors: the table has them."""
    block["offsets"] = 0 if step.device is None else len(step.device.strides_nbytes)
    block["fill"] = np.frombuffer(step.boxes.fill or bytes(WIDEST_NBYTES), "<u4")
    block["count"], block["columns"] = len(step.boxes.numbers), step.columns
    block["pieces"], block["rank"] = step.pieces.total, step.boxes.rank - 1
    block["own_words"] = step.own_words
    return ()


def channel_masks(channels: int, element_nbytes: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """For each channel the bytes of a block that belong to it, where the block begins with the first one."""
    channel = np.arange(WIDEST_NBYTES) // element_nbytes % channels
    mask = np.where(channel == np.arange(MAX_MASKS)[:, None], 255, 0)
    return mask.astype(np.uint8).view("<u4")


def override_constants(step: OnGrid) -> dict[str, int]:
    """The constants that the kernel of `step` is compiled with."""
    _, _, constants = STRUCTS[type(step)]
    share = step.share
    values = {"workgroup_size": share.workgroup_size, "each": share.each, "contiguous": share.contiguous}
    values |= constants(step)
    return {name: int(values[name]) for name in about(step.kernel.value)["constants"]}


# Constants are few, since each value makes another pipeline, and uniforms cost GPUs nothing. On CPUs the
# bounds of loops are constants, since accesses in loops that are not unrolled are masked.
def copy_constants(step: Dispatch) -> dict[str, int]:
    """The constants of kernels that copy one layout into another, by their names."""
    kernel, share = step.kernel, step.share
    on_cpu = kernel is Kernel.SHIFTED_ROWS and share.contiguous
    step_of_row = step.source.strides[-1] if step.source.rank else 0
    values = {
        "element_bytes": step.width_nbytes,
        "paired": share.paired,
        "side": share.each,
        "row_step": step.source.strides[-2] if kernel is Kernel.WIDE_TILES else 1,
        "whole_words": on_cpu and step.width_nbytes >= 4,
        "way": (1 if step_of_row > 0 else -1) if on_cpu else 0,
        "distance": abs(step_of_row),
    }
    if kernel is Kernel.SUBWORD_STEPS:
        values["runs_per_word"] = runs_per_word(step.target, step.width_nbytes)
        values["single"] = int(step.target.sizes[-1] == 1)
    if kernel is Kernel.PIXELS:
        values |= vars(pixels_of(step.source, step.target, step.width_nbytes))
    return values


def window_constants(step: WindowDispatch) -> dict[str, int]:
    """The constants of kernels of windows, by their names."""
    values = {
        "picked": step.picks is not None,
        "offset_bytes": step.windows.offset_nbytes,
        "offset_signed": step.windows.offset_signed,
        "element_bytes": step.element_nbytes,
        "contested": step.winners is not None,
        "in_parts": step.winners is not None and step.winners.in_parts,
        "whole_words": step.element_nbytes >= 4,
        "filled": step.windows.fill is not None,
        "segmented": step.segment > 0,
        "distance": step.dimensions[-1].step,
    }
    of_rows = ("channels", "mirrored", "unaligned", "clipped", "ends")
    return values | {name: getattr(step, name) for name in of_rows}


def sized_constants(step: SizedDispatch) -> dict[str, int]:
    """The constants of the kernels of windows of different sizes, by their names."""
    return {
        "offset_bytes": step.device.windows.offset_nbytes if step.device else 8,
        "offset_signed": step.device.windows.offset_signed if step.device else True,
        "picked": False,
        "element_bytes": step.element_nbytes if step.apart or step.kernel is Kernel.SIZED_ENDS else 4,
        "whole_words": step.in_words,
        "apart": step.apart,
        "filled": step.boxes.fill is not None,
        "placed": 0 if step.device is None else 2 if step.device.inserts else 1,
    }


def indexed_constants(step: IndexedDispatch) -> dict[str, int]:
    """The constants of kernels that gather or scatter, by their names."""
    return {
        "tables": len(step.copy.tables),
        "index_bytes": step.index_nbytes,
        "index_signed": step.copy.signed,
        "by_rows": step.copy.by_rows,
        "masked": step.copy.masked,
        "ranged": any(table.part is not None for table in step.copy.tables),
        "element_bytes": step.width_nbytes,
        "down": step.rows > 1,
        "contested": step.winners is not None,
    }


# The struct of each kind of dispatch, the function that fills it, and that of the constants.
STRUCTS: dict[type, tuple[str, Callable[..., Sequence[int]], Callable[..., dict[str, Any]]]] = {
    Dispatch: ("Copy", fill_copy, copy_constants),
    WindowDispatch: ("Windows", fill_windows, window_constants),
    IndexedDispatch: ("Indexed", fill_indexed, indexed_constants),
    SizedDispatch: ("Sized", fill_sized, sized_constants),
}


def fill_sides(block: Block, source: Layout, target: Layout) -> None:
    """Fill in strides and offsets modulo 2^32: sums of multiples are right where the address fits 32 bits."""
    for name, side in (("source", source), ("target", target)):
        strides = [stride % 2**32 for stride in side.strides]
        block["dimensions"][f"{name}_stride"][: side.rank] = strides
        block[f"{name}_offset"] = side.offset % 2**32


def divider(divisor: int) -> tuple[int, int]:
    """Multiplier and shift with `n // divisor == (n * multiplier // 2**32 + n) >> shift` for n < 2**31.

    T. Granlund and P. L. Montgomery, Division by Invariant Integers using Multiplication, 1994. A divisor of
    0, the stride of a dimension of size 1, is never divided by.
    """
    if divisor == 0:
        return 0, 0
    shift = (divisor - 1).bit_length()
    return (2**32 * (2**shift - divisor) // divisor + 1) % 2**32, shift
