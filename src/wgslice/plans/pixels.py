"""Sub-word elements in short runs: pixels and their channels, and elements written at a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, prod

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES


def is_unaligned(target: Layout, width_nbytes: int, dimensions: int = 1) -> bool:
    """Whether some row, of the last `dimensions`, begins or ends inside a vector of 16 bytes."""
    places = target.offset, prod(target.sizes[-dimensions:]), *target.strides[:-dimensions]
    return any(place * width_nbytes % WIDEST_NBYTES for place in places)


MAX_CHANNELS = 4  # of a pixel
MAX_PIXEL_BLOCKS = 12  # vectors that `pixels` holds; Mali's compiler keeps more than 15 in memory
PIXEL_BLOCKS = {1: 4, 2: 2, 3: 3, 4: 2}  # vectors of 16 bytes per invocation, by target steps
MIN_ROW_NBYTES = 64  # a row that holds the largest group of vectors


@dataclass(frozen=True)
class Pixels:
    """Rows of pixels: what their kernel is compiled for."""

    channels: int
    target_step: int  # elements from one pixel to the next in the target
    repeats: int  # times that a pixel is written in a row
    pixel_step: int  # elements from one pixel to the next in a part of the source
    channel_step: int  # elements from one channel to the next in what is read, part after part
    group_blocks: int  # vectors of 16 bytes per invocation
    parts: int  # stretches of the source that hold a group
    part_blocks: int  # vectors that hold what is read of a part
    apart: bool  # whether each channel has a plane of its own in the target
    unaligned: bool  # whether groups begin at different elements of pixels, or rows end inside a vector
    ahead: int  # elements of a strided pixel before its group, if as many before each group

    @property
    def strided(self) -> bool:
        """Whether elements between the pixels of the target keep their value."""
        return self.target_step > self.channels


def as_pixels(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Two layouts whose last two dimensions are pixels and their channels, of which there may be one."""
    if target.rank == 0 or target.sizes[-1] <= MAX_CHANNELS:
        return source, target
    inside = [
        axis
        for axis, (size, stride) in enumerate(zip(source.sizes[:-1], source.strides[:-1], strict=True))
        if 1 < size <= MAX_CHANNELS and 0 < abs(stride) < abs(source.strides[-1]) <= MAX_CHANNELS
    ]
    if inside:
        order = [*(axis for axis in range(target.rank) if axis != inside[0]), inside[0]]
        return source.permuted(order), target.permuted(order)
    keys = [*map(range, target.sizes), None]
    return source.select(keys), target.select(keys)


def repeats_of(source: Layout, target: Layout) -> int:
    """The times that each pixel is written: the size of a broadcast dimension before the channels."""
    adjacent = target.rank > 2 and target.strides[-2] <= target.sizes[-1]
    return source.sizes[-2] if adjacent and source.strides[-2] == 0 else 1


def pixel_axis(source: Layout, target: Layout) -> int:
    """The dimension of pixels, before that of their repeats, if there is one, and that of channels."""
    return source.rank - 2 - (repeats_of(source, target) > 1)


def pixels_of(source: Layout, target: Layout, width_nbytes: int) -> Pixels:
    """The last two dimensions as pixels and channels, or three, the one between them their repeats."""
    channels, repeats, axis = target.sizes[-1], repeats_of(source, target), pixel_axis(source, target)
    pixel_step, channel_step = source.strides[axis], source.strides[-1]
    target_step = max(channels, target.strides[-2])
    apart, planes = has_planes(target), abs(channel_step) >= MAX_CHANNELS
    group_blocks = target_step if apart or planes else PIXEL_BLOCKS[target_step]
    per_vector, ahead = WIDEST_NBYTES // width_nbytes, 0  # elements in a vector
    if target_step > channels:
        unit = per_vector if per_vector % target_step else target_step
        unaligned = any(stride % unit for stride in target.strides[:axis])
        ahead = 0 if unaligned else -(target.offset % per_vector) % target_step
    else:
        unaligned = is_unaligned(target, width_nbytes, dimensions=target.rank - axis)
    pixels = -(-group_blocks * per_vector // (target_step * repeats))
    pixels += (unaligned and target_step > 1) or ahead > 0
    reach = (pixels - 1) * abs(pixel_step) + 1 + (0 if planes else (channels - 1) * abs(channel_step))
    part_blocks = -(-reach // per_vector)
    if planes:
        channel_step = part_blocks * per_vector
    parts = channels if planes else 1
    sizes = group_blocks, parts, part_blocks
    return Pixels(channels, target_step, repeats, pixel_step, channel_step, *sizes, apart, unaligned, ahead)


def has_planes(target: Layout) -> bool:
    """Whether each channel of a pixel has a plane of its own in the target."""
    return target.sizes[-1] > 1 and target.strides[-2] == 1


def are_pixels(source: Layout, target: Layout, width_nbytes: int) -> bool:
    """Whether rows are pixels of 2 to 4 channels, or every third element, at a short stride in the source."""
    nested = target.is_nested
    source, target = as_pixels(source, target)
    if not 2 <= target.rank <= MAX_RANK or target.sizes[-1] > MAX_CHANNELS:
        return False
    repeats, axis = repeats_of(source, target), pixel_axis(source, target)
    count, channels = target.sizes[axis], target.sizes[-1]
    strided = target.strides[-2] > channels
    steps = range(MAX_CHANNELS + 1) if strided else [3] if channels == 1 else range(1, MAX_CHANNELS + 1)
    if abs(source.strides[axis]) not in steps or target.strides[-2] > MAX_CHANNELS:
        return False
    pixels = pixels_of(source, target, width_nbytes)
    if pixels.parts * pixels.part_blocks > MAX_PIXEL_BLOCKS:
        return False
    row_nbytes = count * repeats * width_nbytes
    if has_planes(target):
        places = target.offset, count, target.strides[-1], *target.strides[:-2]
        whole = all(place * width_nbytes % WIDEST_NBYTES == 0 for place in places)
        return whole and repeats == 1 and row_nbytes >= MIN_ROW_NBYTES
    if repeats > 1:
        group_nbytes, each_nbytes = pixels.group_blocks * WIDEST_NBYTES, repeats * channels * width_nbytes
        adjacent = target.strides[axis : axis + 2] == (repeats * channels, channels)
        if pixels.unaligned or pixels.parts > 1 or group_nbytes % each_nbytes or not adjacent:
            return False
    adjacent = target.strides[-2] >= channels and target.strides[-1] == (channels > 1)
    return nested and adjacent and row_nbytes * target.strides[-2] >= MIN_ROW_NBYTES


# what is written at a step


# Runs at a larger step are rows of their own, so that no words between them are touched; longer runs are rows
# for other kernels.
MAX_STEP_NBYTES = MAX_RUN_NBYTES = 16


def are_steps(source: Layout, target: Layout, width_nbytes: int) -> bool:
    """Whether elements are written at a step, alone or in short runs that are contiguous on both sides."""
    if target.rank == 0 or target.strides[-1] > 1:
        return target.rank > 0
    if target.rank < 2 or target.sizes[-1] * width_nbytes > MAX_RUN_NBYTES:
        return False
    is_short = target.strides[-2] * width_nbytes <= MAX_STEP_NBYTES
    return source.strides[-1] == 1 or (is_short and target.sizes[-1] <= MAX_CHANNELS)


def as_steps(source: Layout, target: Layout, width_nbytes: int) -> tuple[Layout, Layout]:
    """Two layouts whose last two dimensions are runs and their elements, of which there may be one each."""
    keys: list[range | None] = [*map(range, target.sizes)]
    if target.strides[-1] != 1:
        keys.append(None)
    if row_dimensions(target, width_nbytes) < 2 - (keys[-1] is None):
        keys.insert(len(keys) - 1, None)
    return source.select(keys), target.select(keys)


def row_dimensions(target: Layout, width_nbytes: int) -> int:
    """The number of last dimensions that make a row: elements, and runs at a short step."""
    in_runs = target.strides[-1] == 1
    step_nbytes = target.strides[-1 - in_runs] * width_nbytes
    return in_runs + (step_nbytes <= MAX_STEP_NBYTES)


def runs_per_word(target: Layout, width_nbytes: int) -> int:
    """The most runs of the last two dimensions that one word holds parts of."""
    run_nbytes, step_nbytes = target.sizes[-1] * width_nbytes, target.strides[-2] * width_nbytes
    if target.sizes[-2] == 1:
        return 1
    starts = [place * width_nbytes % WORD_NBYTES for place in (target.offset, *target.strides[:-1])]
    if not any(starts[1:]) and starts[0] + run_nbytes <= WORD_NBYTES:
        return 1
    return (WORD_NBYTES + run_nbytes - 2) // step_nbytes + 1


def rows_share(target: Layout, width_nbytes: int, unit_nbytes: int) -> bool:
    """Whether two rows, of the last two dimensions, may have bytes of one word, or of one vector."""
    *outer, step = (stride * width_nbytes for stride in target.strides[:-1])
    extent = (target.sizes[-2] - 1) * step + target.sizes[-1] * width_nbytes
    begins = target.offset * width_nbytes % unit_nbytes
    alike = not any(stride % unit_nbytes for stride in outer)  # whether each begins at that byte of a unit
    for size, stride in zip(reversed(target.sizes[:-2]), reversed(outer), strict=True):
        reach = begins + extent - 1 if alike else extent + unit_nbytes - 2
        shared = reach // unit_nbytes >= stride // unit_nbytes if alike else reach >= stride
        if size > 1 and shared:
            return True
        extent += (size - 1) * stride
    return False


def stepped_parts(source: Layout, target: Layout, width_nbytes: int) -> list[tuple[Layout, Layout]]:
    """A copy at a step in parts of which no two rows share a word; none if there are no such parts."""
    whole = [range(size) for size in target.sizes]
    outer = target.rank - row_dimensions(target, width_nbytes)
    apart = target.rank - 1 if target.strides[-1] == 1 != source.strides[-1] else outer
    larger = target.strides[apart - 1] * width_nbytes if 0 < apart < target.rank else inf
    if larger <= MAX_STEP_NBYTES and target.sizes[apart] <= MAX_CHANNELS:
        found = []
        for number in whole[apart]:
            keys: list[int | range] = [*whole[:apart], number, *whole[apart + 1 :]]
            found.append(stepped_parts(source.select(keys), target.select(keys), width_nbytes))
        return [part for parts in found for part in parts] if all(found) else []

    def share(read: Layout, written: Layout) -> bool:
        return rows_share(as_steps(read, written, width_nbytes)[1], width_nbytes, WORD_NBYTES)

    return disjoint_rows(source, target, outer, share)


def pixel_parts(source: Layout, target: Layout, width_nbytes: int) -> list[tuple[Layout, Layout]]:
    """A copy of pixels in parts of which no strided rows share a vector; none if there are no such parts."""
    if not pixels_of(*as_pixels(source, target), width_nbytes).strided:
        return [(source, target)]

    def share(read: Layout, written: Layout) -> bool:
        return rows_share(as_pixels(read, written)[1], width_nbytes, WIDEST_NBYTES)

    return disjoint_rows(source, target, target.rank - row_dimensions(target, width_nbytes), share)


def disjoint_rows(
    source: Layout, target: Layout, outer: int, share: Callable[[Layout, Layout], bool]
) -> list[tuple[Layout, Layout]]:
    """All rows, or every second ones, after `outer` dimensions, if none of them share; else nothing."""
    whole = [range(size) for size in target.sizes]
    splits = [[whole]]
    if outer:
        *before, rows = whole[:outer]
        splits.append([[*before, every_second, *whole[outer:]] for every_second in (rows[::2], rows[1::2])])
    for keys_of_parts in splits:
        parts = [(source.select(keys), target.select(keys)) for keys in keys_of_parts]
        if not any(share(*part) for part in parts):
            return parts
    return []
