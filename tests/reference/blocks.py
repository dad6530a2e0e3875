"""Blocks of 16 bytes as the kernels load, join, turn and mask them: arrays (n, 16) of bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from reference.memory import Bytes, Flags, Observed, Words
from reference.pieces import Extents

from wgslice.plans.kernels import WIDEST_NBYTES

MAX_BLOCKS_MASK = np.uint32(0x0FFFFFFF)  # of the blocks that 32 bits reach
BYTE = np.arange(WIDEST_NBYTES, dtype=np.uint32)
NBYTES = np.uint32(WIDEST_NBYTES)


def block_after(memory: Observed, source: Words, n: int, invocations: Words) -> Bytes:
    """The n-th block after that of a byte, which may be before the binding, 32 bits around."""
    return memory.blocks((source // NBYTES + np.uint32(n)) & MAX_BLOCKS_MASK, invocations)


def block_at(memory: Observed, source: Words, invocations: Words) -> Bytes:
    """The block whose first byte is `source`."""
    last = source + NBYTES - np.uint32(1)
    low, high = (memory.blocks(place // NBYTES, invocations) for place in (source, last))
    return join(low, high, source % NBYTES)


def join(low: Bytes, high: Bytes, offset: Words) -> Bytes:
    """The block that begins `offset` bytes into two neighbours."""
    return np.take_along_axis(np.concatenate([low, high], axis=1), offset[:, None] + BYTE, axis=1)


def turn(block: Bytes, element_nbytes: int) -> Bytes:
    """The same elements in reverse order."""
    elements = block.reshape(len(block), WIDEST_NBYTES // element_nbytes, element_nbytes)
    return elements[:, ::-1].reshape(block.shape)


def halve(low: Bytes, high: Bytes, element_nbytes: int) -> Bytes:
    """Every second element of two neighbours."""
    pair = np.concatenate([low, high], axis=1)
    elements = pair.reshape(len(low), 2 * WIDEST_NBYTES // element_nbytes, element_nbytes)
    return elements[:, ::2].reshape(low.shape)


def gather_step(
    memory: Observed, source: Words, distance: int, element_nbytes: int, invocations: Words
) -> Bytes:
    """The blocks of elements `distance` apart whose first bytes are `source`."""
    offset = source % np.uint32(WIDEST_NBYTES)
    loaded = [block_after(memory, source, n, invocations) for n in range(distance + 1)]
    found = [join(low, high, offset) for low, high in pairwise(loaded)]
    while len(found) > 1:
        found = [halve(*pair, element_nbytes) for pair in zip(found[::2], found[1::2], strict=True)]
    return found[0]


def mask(start: Words, stop: Words) -> Flags:
    """The bytes `start` to before `stop`, 0 to 16, of blocks."""
    inside: Flags = (start[:, None] <= BYTE) & (stop[:, None] > BYTE)
    return inside


def mask_of(extents: Extents, block: Words) -> Flags:
    """The bytes of blocks that are in rows."""
    base = block * NBYTES
    return mask(np.maximum(extents.start, base) - base, np.minimum(extents.stop, base + NBYTES) - base)


def mask_from(start: Words, block: Words) -> Flags:
    """The bytes of blocks from `start` on, which is in them, before them or after them."""
    base = block * NBYTES
    return mask(np.clip(start, base, base + NBYTES) - base, np.full_like(base, NBYTES))


def merge_edge(kept: Bytes, row: Bytes, row_mask: Flags, following: Bytes, following_mask: Flags) -> Bytes:
    """Blocks that hold bytes of a row, bytes of the next, and others, which keep their value."""
    parts = (row, row_mask), (following, following_mask), (kept, ~(row_mask | following_mask))
    first, second, third = (part * chosen for part, chosen in parts)
    return np.asarray(first | second | third, np.uint8)
