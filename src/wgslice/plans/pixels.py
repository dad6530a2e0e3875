"""Rows of pixels: which copies are such, and what their kernel is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from wgslice.layout import Layout
from wgslice.plans.profiles import PIXEL_BLOCKS, WIDEST_NBYTES, Profile

__all__ = ["Pixels", "are_pixels", "as_pixels", "pixels_of"]

MOST_CHANNELS = 4  # of a pixel


@dataclass(frozen=True)
class Pixels:
    """Rows of pixels: what their kernel is compiled for."""

    channels: int
    pixel_step: int  # elements from one pixel to the next in the source
    channel_step: int  # likewise of channels
    blocks: int  # of 16 bytes, that a row of the target has
    group_blocks: int  # of them that an invocation takes
    window_blocks: int  # of the source that hold what it reads


def as_pixels(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Two layouts whose last dimension has channels: one more, of one channel, where it has pixels."""
    if target.rank and target.sizes[-1] > MOST_CHANNELS:
        source, target = (layout.select([*map(range, layout.sizes), None]) for layout in (source, target))
    return source, target


def pixels_of(source: Layout, target: Layout, width_nbytes: int) -> Pixels:
    """The last two dimensions as pixels and channels."""
    count, channels = target.sizes[-2:]
    pixel_step, channel_step = source.strides[-2], source.strides[-1]
    group_blocks = PIXEL_BLOCKS[channels]
    pixels = group_blocks * WIDEST_NBYTES // (channels * width_nbytes)
    reach = (pixels - 1) * abs(pixel_step) + (channels - 1) * abs(channel_step) + 1
    window_blocks = -(-reach * width_nbytes // WIDEST_NBYTES)
    blocks = count * channels * width_nbytes // WIDEST_NBYTES
    return Pixels(channels, pixel_step, channel_step, blocks, group_blocks, window_blocks)


def are_pixels(source: Layout, target: Layout, width_nbytes: int, profile: Profile) -> bool:
    """Whether rows are pixels of 1 to 4 channels, near each other in the source, and whole target blocks.

    Of one channel, every third element, since other steps are for other kernels. For GPUs: on lavapipe of
    Mesa 22.3, two cores of an AMD EPYC, they take 40 ms for 34 MiB of BGR, words of pixels 32 ms.
    """
    if not profile.grids:
        return False
    source, target = as_pixels(source, target)
    if target.rank < 2 or target.sizes[-1] > MOST_CHANNELS or target.strides[-1] not in (0, 1):
        return False
    channels = target.sizes[-1]
    steps = abs(source.strides[-2]), abs(source.strides[-1])
    rows = target.offset, target.strides[-2] * target.sizes[-2], *target.strides[:-2]
    whole = all(place * width_nbytes % WIDEST_NBYTES == 0 for place in rows)
    beside = target.strides[-2] == channels and 1 <= steps[0] <= MOST_CHANNELS and steps[1] < MOST_CHANNELS
    long = target.sizes[-2] * channels * width_nbytes >= profile.least_shifted_row_nbytes
    return whole and beside and long and target.is_nested
