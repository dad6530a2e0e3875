"""The uniform block of windows: one dispatch's parameters as the kernels' struct `Windows` lays them out."""

from __future__ import annotations

from math import prod

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.windows import WindowDispatch
from wgslice.shaders.modules import constants_of
from wgslice.shaders.uniforms import divider

__all__ = ["window_block", "window_constants", "windows_dtype"]

MOST_MASKS = 16  # channels, one a byte of a block
PLURALS = {"inner": "inner"}  # fields of a dimension whose array has no s behind its name

# A place is a byte for kernels of rows (`insert_rows`, `insert_words`, `window_rows`), an element for others.
windows_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # indices of a window
        ("firsts", "<u4", MAX_RANK),  # indices before those
        ("steps", "<u4", MAX_RANK),  # of the tensor's indices
        ("lasts", "<u4", MAX_RANK),  # extent of a window in the tensor's indices, less one
        ("lowests", "<i4", MAX_RANK),  # least offset
        ("highests", "<i4", MAX_RANK),  # greatest offset
        ("wraps", "<u4", MAX_RANK),  # added to negative offsets
        ("begins", "<u4", MAX_RANK),  # indices of the tensor before those that are in use
        ("extents", "<u4", MAX_RANK),  # indices of the tensor that are in use
        ("inner", "<u4", MAX_RANK),  # indices of all later dimensions together
        ("multipliers", "<u4", MAX_RANK),  # of the divisors `inner`
        ("shifts", "<u4", MAX_RANK),  # bits
        ("tensor_strides", "<u4", MAX_RANK),  # places, modulo 2^32
        ("batch_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("claim_strides", "<u4", MAX_RANK),  # claims
        ("masks", "<u4", (MOST_MASKS, 4)),  # bytes of a block that belong to a channel
        ("fill", "<u4", 4),  # what lies outside of the tensor, repeated
        ("tensor_offset", "<u4"),  # places, modulo 2^32
        ("batch_offset", "<u4"),  # places, modulo 2^32
        ("window_stride", "<u4"),  # places from one window to the next, modulo 2^32
        ("claim_offset", "<u4"),  # claims, modulo 2^32
        ("claim_base", "<u4"),  # a claim is the number of its window, and this
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # windows
        ("first", "<u4"),  # number of the first
        ("flips", "<u4"),  # bit d: dimension d goes backwards
        ("segment", "<u4"),  # elements of the source that are bound
        ("window_size", "<u4"),  # elements or rows of a window
        ("window_multiplier", "<u4"),  # of the divisor `window_size`
        ("window_shift", "<u4"),  # bits
        ("row_bytes", "<u4"),  # bytes a row
        ("pieces", "<u4"),  # invocations a row
        ("pieces_multiplier", "<u4"),  # of the divisor `pieces`
        ("pieces_shift", "<u4"),  # bits
        ("columns", "<u4"),  # offsets a window
        ("elements", "<u4"),  # of all windows
        ("row_size", "<u4"),  # elements of a window's last two dimensions
        ("each", "<u4"),  # words of the output that an invocation puts together
        ("unused_0", "<u4"),  # fills the last 16 bytes
        ("unused_1", "<u4"),  # fills the last 16 bytes
        ("unused_2", "<u4"),  # fills the last 16 bytes
    ]
)


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
    for wrapped in ("tensor_offset", "batch_offset", "window_stride"):
        block[wrapped] = getattr(step, wrapped) % 2**32
    block["first"], block["window_size"] = step.first, step.window_size
    block["rank"], block["columns"] = rank, len(step.windows.extents)
    block["count"], block["pieces"] = step.share.count, step.share.pieces
    block["flips"] = 0 if step.picks is not None else step.windows.same_flips
    block["window_multiplier"], block["window_shift"] = divider(step.window_size)
    block["pieces_multiplier"], block["pieces_shift"] = divider(step.share.pieces)
    if step.row_nbytes:
        block["row_bytes"] = step.row_nbytes
        block["masks"] = channel_masks(step.channels, step.element_nbytes)
    elif step.segment:
        block["segment"] = step.segment
        block["elements"] = step.share.count * step.window_size
        block["row_size"] = prod(step.shape[-2:])
        block["each"] = step.share.each
    if step.claims is not None:
        block["claim_offset"], block["claim_base"] = step.claims.offset % 2**32, step.claims.base
    return block.tobytes()


def channel_masks(channels: int, element_nbytes: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """For each channel the bytes of a block that belong to it, where the block begins with the first one."""
    channel = np.arange(WIDEST_NBYTES) // element_nbytes % channels
    mask = np.where(channel == np.arange(MOST_MASKS)[:, None], 255, 0)
    return mask.astype(np.uint8).view("<u4")


def window_constants(step: WindowDispatch) -> dict[str, int]:
    """The constants that a kernel of windows is compiled with."""
    values = {
        "workgroup_size": step.share.workgroup_size,
        "picked": step.picks is not None,
        "offset_bytes": step.windows.offset_nbytes,
        "offset_signed": step.windows.offset_signed,
        "element_bytes": step.element_nbytes,
        "contested": step.claims is not None,
        "each": step.share.each,
        "contiguous": step.share.contiguous,
        "whole_words": step.element_nbytes >= 4,
        "filled": step.windows.fill is not None,
    }
    of_rows = ("channels", "mirrored", "ragged", "clipped", "ends")
    return {
        name: int(getattr(step, name) if name in of_rows else values[name])
        for name in constants_of(step.kernel)
    }
