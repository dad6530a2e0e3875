"""The uniform block: one dispatch's parameters as the kernels' structs lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.grids import UNIT_GRIDS
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.pixels import pixels_of
from wgslice.plans.steps import Dispatch
from wgslice.plans.windows_steps import ElementsDispatch, WindowDispatch, WindowRowsDispatch

__all__ = [
    "copy_dtype",
    "divider",
    "override_constants",
    "uniform_block",
    "window_block",
    "window_constants",
    "windows_dtype",
]

MOST_MASKS = 16  # channels, one a byte of a block

# What the kernels of copies are compiled for, beside workgroups of a size. Few things: each value makes
# another pipeline, which takes 70 to 120 ms to compile (lavapipe), and uniforms cost GPUs nothing. They cost
# CPUs where they decide how often a loop runs, since accesses in loops that are not unrolled are masked, and
# whether bytes are shifted inside of words or rows turned: on two cores of an AMD EPYC rows of words take 5
# to 9 % longer by Mesa 22.3, second columns 2.5 times as long by SwiftShader, which executes both sides of
# what a uniform decides.
CONSTANTS: dict[Kernel, tuple[str, ...]] = {
    Kernel.SLICE1: ("element_nbytes",),
    Kernel.ROWS: ("element_nbytes", "each", "contiguous"),
    Kernel.WIDE_ROWS: ("each", "contiguous"),
    Kernel.SHIFTED_ROWS: ("distance", "way", "whole_words", "each", "contiguous"),
    **dict.fromkeys(UNIT_GRIDS, ()),
    Kernel.SHIFTED_GRID: ("distance", "way", "whole_words"),
    Kernel.ROW_ENDS: ("way", "whole_words", "each", "contiguous"),
    Kernel.NARROW_ROWS: ("element_nbytes", "each", "contiguous"),
    Kernel.NARROW_ENDS: ("element_nbytes", "each", "contiguous"),
    Kernel.NARROW_RUNS: ("element_nbytes", "each", "contiguous"),
    Kernel.PIXELS: (
        *("element_nbytes", "whole_words", "each", "contiguous"),
        *("channels", "pixel_step", "channel_step"),
        *("group_blocks", "parts", "part_blocks", "apart", "ragged"),
    ),
    Kernel.TILES: ("element_nbytes", "each"),
    Kernel.WIDE_TILES: ("element_nbytes", "side", "row_step"),
}

PLURALS = {"inner": "inner"}  # fields of a dimension whose array has no s behind its name

copy_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # elements
        ("source_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("target_strides", "<u4", MAX_RANK),  # elements
        ("source_offset", "<u4"),  # elements, from the start of the binding
        ("target_offset", "<u4"),  # elements, from the start of the binding
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # elements, rows, words or tiles, as the kernel says
        ("multipliers", "<u4", MAX_RANK),  # of each dimension's divisor
        ("shifts", "<u4", MAX_RANK),  # bits
        ("pieces", "<u4"),  # invocations a row, or tiles beside each other in a plane
        ("pieces_multiplier", "<u4"),  # of the divisor `pieces`
        ("pieces_shift", "<u4"),  # bits
        ("row_tiles", "<u4"),  # tiles below each other in a plane
        ("row_tiles_multiplier", "<u4"),  # of the divisor `row_tiles`
        ("row_tiles_shift", "<u4"),  # bits
        ("lane_shift", "<u4"),  # 2**lane_shift lanes lie along a tile's columns
        ("ahead_columns", "<u4"),  # columns from one of a lane's units to its next
        ("ahead_rows", "<u4"),  # rows likewise
        ("element_nbytes", "<u4"),  # bytes an element
        ("paired", "<u4"),  # 1 where a row is two dimensions
        ("unused", "<u4"),  # fills the last 16 bytes
    ]
)

windows_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # indices of a window
        ("firsts", "<u4", MAX_RANK),  # indices before those
        ("steps", "<u4", MAX_RANK),  # of the input's indices
        ("lasts", "<u4", MAX_RANK),  # extent of a window in the input's indices, less one
        ("lowests", "<i4", MAX_RANK),  # least offset
        ("highests", "<i4", MAX_RANK),  # greatest offset
        ("extents", "<u4", MAX_RANK),  # indices of the input
        ("inner", "<u4", MAX_RANK),  # indices of all later dimensions together
        ("multipliers", "<u4", MAX_RANK),  # of the divisors `inner`
        ("shifts", "<u4", MAX_RANK),  # bits
        ("source_strides", "<u4", MAX_RANK),  # elements or bytes, modulo 2^32
        ("target_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("masks", "<u4", (MOST_MASKS, 4)),  # bytes of a block that belong to a channel
        ("fill", "<u4", 4),  # what lies outside of the input, repeated
        ("source_offset", "<u4"),  # elements or bytes, modulo 2^32
        ("target_offset", "<u4"),  # likewise
        ("target_window", "<u4"),  # elements or bytes from one window to the next, modulo 2^32
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # windows
        ("first", "<u4"),  # number of the first
        ("flips", "<u4"),  # bit d: dimension d goes backwards
        ("segment", "<u4"),  # elements of the source that are bound
        ("window_size", "<u4"),  # elements or rows of a window
        ("window_multiplier", "<u4"),  # of the divisor `window_size`
        ("window_shift", "<u4"),  # bits
        ("row_nbytes", "<u4"),  # bytes a row
        ("pieces", "<u4"),  # invocations a row
        ("pieces_multiplier", "<u4"),  # of the divisor `pieces`
        ("pieces_shift", "<u4"),  # bits
        ("columns", "<u4"),  # offsets a window
        ("elements", "<u4"),  # of all windows
        ("row_size", "<u4"),  # elements of a window's last two dimensions
        ("each", "<u4"),  # words of the output that an invocation puts together
        ("unused", "<u4"),  # fills the last 16 bytes
    ]
)


def uniform_block(step: Dispatch) -> bytes:
    """The bytes that the kernel of `step` reads as its uniform block."""
    block = np.zeros((), copy_dtype)
    rank = step.target.rank
    block["sizes"][:rank] = step.target.sizes
    block["source_strides"][:rank] = wrapped_strides(step.source)
    block["target_strides"][:rank] = wrapped_strides(step.target)
    dividers = [divider(divisor) for divisor in divisors(step)]
    block["multipliers"][:rank] = [multiplier for multiplier, _ in dividers]
    block["shifts"][:rank] = [shift for _, shift in dividers]
    block["source_offset"] = step.source.offset
    block["target_offset"] = step.target.offset
    block["rank"] = rank
    block["element_nbytes"] = step.width_nbytes
    block["paired"] = step.share.paired
    block["count"] = step.share.count
    block["pieces"] = step.share.pieces
    block["pieces_multiplier"], block["pieces_shift"] = divider(step.share.pieces)
    if step.share.tiling is not None:
        tiling = step.share.tiling
        block["row_tiles"] = tiling.row_tiles
        block["row_tiles_multiplier"], block["row_tiles_shift"] = divider(tiling.row_tiles)
        block["lane_shift"] = tiling.lane_shift
        block["ahead_columns"], block["ahead_rows"] = tiling.ahead_columns, tiling.ahead_rows
    return block.tobytes()


def override_constants(step: Dispatch) -> dict[str, int]:
    """The constants that the kernel of `step` is compiled with."""
    kernel, share = step.kernel, step.share
    on_cpu = kernel is Kernel.SHIFTED_ROWS and share.contiguous
    values = {
        "element_nbytes": step.width_nbytes,
        "each": share.each,
        "side": share.each,
        "row_step": step.source.strides[-2] if kernel is Kernel.WIDE_TILES else 1,
        "contiguous": int(share.contiguous),
        "whole_words": int(on_cpu and step.width_nbytes >= 4),
        "way": (1 if step.source.strides[-1] > 0 else -1) if on_cpu else 0,
    }
    if kernel in (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID):
        values["distance"] = abs(step.source.strides[-1])
    if kernel is Kernel.PIXELS:
        pixels = pixels_of(step.source, step.target, step.width_nbytes)
        values |= {name: int(value) for name, value in vars(pixels).items()}
    return {"workgroup_size": share.workgroup_size, **{name: values[name] for name in CONSTANTS[kernel]}}


def wrapped_strides(layout: Layout) -> list[int]:
    """Strides modulo 2^32: sums of their multiples are right wherever the address itself fits 32 bits."""
    return [stride % 2**32 for stride in layout.strides]


def divisors(step: Dispatch) -> Sequence[int]:
    """What the kernel divides by in each dimension: places in the target, or indices."""
    return step.target.strides if step.kernel is Kernel.NARROW_RUNS else step.target.sizes


def divider(divisor: int) -> tuple[int, int]:
    """Multiplier and shift with `n // divisor == (n * multiplier // 2**32 + n) >> shift` for n < 2**31.

    T. Granlund and P. L. Montgomery, Division by Invariant Integers using Multiplication, 1994. A divisor of
    0, the stride of a dimension of size 1, is never divided by.
    """
    if divisor == 0:
        return 0, 0
    shift = (divisor - 1).bit_length()
    return (2**32 * (2**shift - divisor) // divisor + 1) % 2**32, shift


def window_block(step: WindowDispatch) -> bytes:
    """The bytes that a kernel of windows reads as its uniform block."""
    block = np.zeros((), windows_dtype)
    rank = len(step.dimensions)
    for column, dimension in enumerate(step.dimensions):
        for name, value in vars(dimension).items():
            field = PLURALS.get(name, f"{name}s")
            block[field][column] = value if field in ("lowests", "highests") else value % 2**32
    dividers = [divider(dimension.inner) for dimension in step.dimensions]
    block["multipliers"][:rank] = [multiplier for multiplier, _ in dividers]
    block["shifts"][:rank] = [shift for _, shift in dividers]
    block["fill"] = np.frombuffer(step.windows.fill or bytes(WIDEST_NBYTES), "<u4")
    for wrapped in ("source_offset", "target_offset", "target_window"):
        block[wrapped] = getattr(step, wrapped) % 2**32
    block["first"], block["window_size"] = step.first, step.window_size
    block["rank"], block["columns"] = rank, len(step.windows.extents)
    block["count"], block["pieces"] = step.share.count, step.share.pieces
    block["flips"] = 0 if step.picks is not None else step.windows.same_flips
    block["window_multiplier"], block["window_shift"] = divider(step.window_size)
    block["pieces_multiplier"], block["pieces_shift"] = divider(step.share.pieces)
    if isinstance(step, WindowRowsDispatch):
        block["row_nbytes"] = step.row_nbytes
        block["masks"] = channel_masks(step.channels, step.element_nbytes)
    elif isinstance(step, ElementsDispatch):
        block["segment"] = step.segment
        block["elements"] = step.share.count * step.window_size
        block["row_size"] = prod(step.shape[-2:])
        block["each"] = step.share.each
    return block.tobytes()


def channel_masks(channels: int, element_nbytes: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """For each channel the bytes of a block that belong to it, where the block begins with the first one."""
    channel = np.arange(WIDEST_NBYTES) // element_nbytes % channels
    mask = np.where(channel == np.arange(MOST_MASKS)[:, None], 255, 0)
    return mask.astype(np.uint8).view("<u4")


def window_constants(step: WindowDispatch) -> dict[str, int]:
    """The constants that a kernel of windows is compiled with."""
    constants = {
        "workgroup_size": step.share.workgroup_size,
        "element_nbytes": step.element_nbytes,
        "picked": int(step.picks is not None),
        "offset_nbytes": step.windows.offset_nbytes,
        "offset_signed": int(step.windows.offset_signed),
    }
    if isinstance(step, WindowRowsDispatch):
        constants["whole_words"] = int(step.element_nbytes >= 4)
        constants["channels"] = step.channels
        constants["each"] = step.share.each
        constants["contiguous"] = int(step.share.contiguous)
        constants["filled"] = int(step.windows.fill is not None)
        constants["mirrored"] = int(step.mirrored)
        constants["ragged"] = int(step.ragged)
    return constants
