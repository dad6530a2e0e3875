"""Blocks of rows of windows as the source has them, forwards or backwards: `window_blocks` of `wgsl/`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.blocks import block_after, block_at, join, turn
from reference.memory import Bytes, Flags, Observed, Words

from wgslice.plans.facade import WindowDispatch
from wgslice.plans.kernels import WIDEST_NBYTES

NBYTES = np.uint32(WIDEST_NBYTES)


class RowSources(NamedTuple):
    """The places of rows in the source, for each block that is copied."""

    source: Words  # bytes before their lowest, modulo 2^32
    backwards: Flags  # whether indices go in reverse order
    invocation: Words  # that copies of it


def gather_channels(
    block: np.void, step: WindowDispatch, memory: Observed, rows: RowSources, position: Words
) -> Bytes:
    """Blocks of rows that may go backwards: then for each channel the reversed block that is right for it."""
    channels, width = np.uint32(step.channels), np.uint32(step.element_nbytes)
    group = channels * width
    phase = (position + NBYTES * group) // width % channels
    backwards = rows.source + block["row_bytes"] - position - NBYTES - (group - width)
    first = np.where(rows.backwards, backwards, rows.source + position)
    count = 2 + (step.channels > 1) + (2 * (group - width) > NBYTES)  # blocks that the kernel loads
    loaded = np.stack([block_after(memory, first, n, rows.invocation) for n in range(count)])
    every = np.arange(len(first))
    masks = block["masks"].view(np.uint8)
    value = np.zeros((len(first), WIDEST_NBYTES), np.uint8)
    for channel in range(step.channels):
        offset = first % NBYTES + np.where(rows.backwards, np.uint32(2 * channel) * width, np.uint32(0))
        number = offset // NBYTES
        low, high = (loaded[np.minimum(number + n, count - 1), every] for n in (0, 1))
        joined = join(low, high, offset % NBYTES)
        turned = np.where(rows.backwards[:, None], turn(joined, step.element_nbytes), joined)
        value |= turned & masks[(np.uint32(channel) + channels - phase) % channels]
    return value


def blocks_of_rows(
    block: np.void, step: WindowDispatch, memory: Observed, rows: RowSources, position: Words
) -> Bytes:
    """The blocks of rows whose first bytes are `position`."""
    if step.mirrored:
        return gather_channels(block, step, memory, rows, position)
    return block_at(memory, rows.source + position, rows.invocation)
