"""The strategies of a coalesced copy: a row for each kernel, for buffer copies, and for copies in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, prod
from operator import attrgetter
from typing import TypeAlias

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout, coalesce
from wgslice.plans.choose import (
    COPY,
    COPY_PER_ROW,
    OTHER,
    Applies,
    Reason,
    Step,
    Strategy,
    all_steps,
    anything,
    choose,
    compiling_seconds,
    explained,
    in_order,
    where,
)
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.pixels import (
    Pixels,
    are_pixels,
    are_steps,
    as_pixels,
    is_unaligned,
    pixel_parts,
    pixels_of,
    stepped_parts,
)
from wgslice.plans.problem import MIN_SHIFTED_NBYTES, SHIFTED_STEPS, UNPADDED, Problem, too_short
from wgslice.plans.profiles import CACHE_LINE_NBYTES, FAILED, CostClass, copy_class
from wgslice.plans.steps import (
    REGISTER_TILE,
    UNIT_GRIDS,
    BufferCopies,
    Dispatch,
    dispatch_of,
    prefixed,
)

Copying: TypeAlias = Strategy[Problem]


MIN_SUBWORD_NBYTES = 7  # a row that holds a word wherever it begins
VECTORS = (Kernel.WIDE_ROWS, Kernel.WIDE_GRID)

# Kernels that leave heads and tails of rows to another dispatch, and the share of a row that they copy at
# least: of 31 bytes, a vector of 16.
LEAVING_ENDS = (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS)
MIN_OF_BLOCKS = 0.5

# The parts of copies by kernels for which rows must not share what one invocation owns.
PARTS_OF = {Kernel.PIXELS: pixel_parts, Kernel.SUBWORD_STEPS: stepped_parts}
COMPETING = "elements of a row are in cache lines that compete for few places, unlike those of a strip"
INTERLEAVING, SHARING = "output rows interleave", "output rows share words of 4 bytes"
SHARING_VECTORS = "output rows share vectors of 16 bytes"


# buffer copies


def against_buffer_copy(problem: Problem, *, packed: bool) -> Reason | None:
    """Why not one buffer copy of everything, or else one for each row."""
    if (problem.source.is_packed and problem.target.is_packed) != packed:
        return OTHER
    if problem.width_nbytes >= WORD_NBYTES and problem.in_runs and problem.context.buffer_copies:
        return None
    return problem.against_buffer_copies


def row_sizes(problem: Problem) -> tuple[int, ...]:
    """Sizes of the dimensions of rows that take one buffer copy each; () if one copies everything."""
    return () if problem.source.is_packed and problem.target.is_packed else problem.target.sizes[:-1]


def copying_seconds(problem: Problem) -> float:
    """Estimated seconds of buffer copies of everything, or of each row."""
    costs = problem.costs
    return prod(row_sizes(problem)) * costs.copy_s + problem.nbytes / costs.copy_bytes_per_s


def buffer_copies(problem: Problem) -> Sequence[Step]:
    """A buffer copy of everything, or of each row."""
    width_nbytes, rows = problem.width_nbytes, [*map(range, row_sizes(problem))]
    firsts: list[int | range] = [*rows, *[0] * (problem.rank - len(rows))]
    read, written = (
        Layout.of(side.sizes, [stride * width_nbytes for stride in side.strides], side.offset * width_nbytes)
        for side in (problem.source.select(firsts), problem.target.select(firsts))
    )
    return [BufferCopies(read, written, prod(problem.target.sizes[len(rows) :]) * width_nbytes)]


# kernels

pairs: Applies[Problem] = where(lambda problem: problem.rank >= 2)


def whole_rows(problem: Problem) -> Reason | None:
    """Checks that the cache lines of an input row do not compete; rows in strips read each line once.

    Decides by cache lines read, not by estimates, whose order differs between processors: transposes of
    1024 x 1024 and more take 0.5 of the time in strips on SwiftShader, and 0.5 to 0.7 on lavapipe.
    """
    return COMPETING if problem.strips else None


def whole_pairs(problem: Problem) -> Reason | None:
    """Checks that two dimensions may be a row, as `whole_rows` does of one."""
    return pairs(problem) or whole_rows(problem)


tiles: Applies[Problem] = where(lambda problem: problem.tile_axis is not None)


def pixels(problem: Problem) -> Reason | None:
    """Checks that rows are pixels, strided ones in parts whose rows share no vectors."""
    sides = problem.source, problem.target, problem.width_nbytes
    if not are_pixels(*sides):
        return OTHER
    return problem.unpadded if pixel_parts(*sides) else SHARING_VECTORS


def wide_tiles(problem: Problem) -> Reason | None:
    """Checks that the source is permuted, and that both sides are whole vectors along its neighbours."""
    axis, source, target = problem.tile_axis, problem.source, problem.target
    if axis is None:
        return OTHER
    lowest = source.offset + min(0, source.reaches[axis])
    apart = [stride for other, stride in enumerate(source.strides) if other != axis]
    places = lowest, target.offset, target.sizes[-1], *target.strides[:-1], *apart
    if not any(place * problem.width_nbytes % WIDEST_NBYTES for place in places):
        return problem.unpadded
    forwards = source.shifted(lowest - source.offset)
    return lambda: problem.of(forwards, target).uneven(WIDEST_NBYTES, apart)


def register_tiles(problem: Problem) -> Reason | None:
    """Checks that the source is permuted, in tiles whose columns and rows are whole words.

    Rows in the target are at most a cache line apart: of rows further apart, tiles write whole lines only if
    they are larger than registers.
    """
    axis, source, target = problem.tile_axis, problem.source, problem.target
    if axis is None or problem.rank > MAX_RANK - 3:  # tiles add three dimensions
        return OTHER
    apart = [stride for other, stride in enumerate(source.strides) if other != axis]
    places = source.offset, target.offset, source.sizes[axis], target.sizes[-1], *target.strides[:-1]
    in_words = all(place % REGISTER_TILE == 0 for place in (*places, *apart))
    is_short = target.strides[axis] * problem.width_nbytes <= CACHE_LINE_NBYTES
    return None if in_words and is_short and source.strides[axis] == 1 else OTHER


def shifted(problem: Problem) -> Reason | None:
    """Checks that output rows hold whole vectors that can be loaded from two neighbouring vectors."""
    if problem.write_step != 1 or abs(problem.read_step) not in SHIFTED_STEPS:
        return problem.apart
    if not problem.target.is_nested:
        return INTERLEAVING
    # Vectors would bring a CPU words that `rows` does not load: `rows` takes 0.5 to 1.0 of the time on four
    # processors, on lavapipe and SwiftShader, forwards and reversed. A GPU loads the same lines either way.
    step = abs(problem.read_step)
    if step > 1 and problem.width_nbytes >= WORD_NBYTES and problem.limits.profile.contiguous:
        return f"vectors of the input hold {step} times the words of a row"
    is_short = problem.row_nbytes < MIN_SHIFTED_NBYTES
    return too_short(problem.row_nbytes, MIN_SHIFTED_NBYTES) if is_short else problem.unpadded


def vectors(problem: Problem) -> Reason | None:
    """Checks that both sides are vectors of 16 bytes."""
    if problem.width_nbytes == WIDEST_NBYTES:
        return None
    return problem.uneven if problem.in_runs else OTHER


def subword_rows(problem: Problem) -> Reason | None:
    """Checks that output rows are contiguous and hold a word."""
    if not problem.target.is_nested:
        return INTERLEAVING
    if problem.write_step != 1:
        return problem.apart
    return None if problem.row_nbytes >= MIN_SUBWORD_NBYTES and problem.rank else OTHER


def subword_pairs(problem: Problem) -> Reason | None:
    """Checks that the last two output dimensions are packed and hold a word."""
    target = problem.target
    if problem.rank < 2 or target.strides[-2:] != (target.sizes[-1], 1) or not target.is_nested:
        return OTHER
    return None if problem.row_nbytes * target.sizes[-2] >= MIN_SUBWORD_NBYTES else OTHER


def subword_steps(problem: Problem) -> Reason | None:
    """Checks that elements are written at a step, in parts whose rows share no words."""
    if problem.rank > MAX_RANK - 2 or not are_steps(problem.source, problem.target, problem.width_nbytes):
        return OTHER
    if not problem.target.is_nested:
        return INTERLEAVING
    return None if stepped_parts(problem.source, problem.target, problem.width_nbytes) else SHARING


def row_of_pixels(problem: Problem) -> Pixels:
    """The rows of a copy as pixels."""
    return pixels_of(*as_pixels(problem.source, problem.target), problem.width_nbytes)


def ends_of(kernel: Kernel, problem: Problem) -> Kernel | None:
    """The kernel for heads and tails of unaligned rows, where another leaves them out."""
    shifted_blocks = kernel in (Kernel.SHIFTED_GRID, Kernel.SHIFTED_ROWS)
    if shifted_blocks and is_unaligned(problem.target, problem.width_nbytes):
        return Kernel.ROW_ENDS
    if kernel is Kernel.PIXELS and (row := row_of_pixels(problem)).unaligned and not row.strided:
        return Kernel.SUBWORD_ENDS
    return None


def by_kernel(
    widths: Sequence[int], kernel: Kernel, applies: Applies[Problem], reason: str, *, paired: bool = False
) -> tuple[Sequence[int], Copying]:
    """A kernel's row of the table, with its element widths; `reason` describes the kernel."""
    return widths, Strategy(
        kernel.value + " of pairs" * paired,
        partial(against_kernel, kernel, applies),
        partial(least_seconds, kernel, paired),
        partial(copy_dispatches, kernel, reason, paired),
    )


def class_of(kernel: Kernel, paired: bool, problem: Problem) -> CostClass:
    """The cost class of a kernel on a problem."""
    width_nbytes = WIDEST_NBYTES if kernel in VECTORS else problem.width_nbytes
    return copy_class(kernel, width_nbytes, paired, problem.pattern, abs(problem.read_step))


def against_kernel(kernel: Kernel, applies: Applies[Problem], problem: Problem) -> Reason | None:
    """Returns why a kernel is not applicable to a copy, or None."""
    if not problem.is_held or (problem.rank == 0 and kernel in UNIT_GRIDS):
        return OTHER
    reason = applies(problem)
    disabled = problem.limits.disabled
    if reason is None and disabled and {kernel, ends_of(kernel, problem)} & disabled:
        return FAILED
    return reason


def least_seconds(kernel: Kernel, paired: bool, problem: Problem) -> float:
    """Lower bound of the seconds of a kernel, with its share of compilation."""
    is_short = problem.row_nbytes < MIN_SHIFTED_NBYTES  # so that rows may hold no aligned vector
    leaves_ends = kernel in LEAVING_ENDS and (kernel is Kernel.PIXELS or not is_short)
    nbytes = problem.nbytes * (MIN_OF_BLOCKS if leaves_ends else 1)
    least_s = problem.costs.least_seconds(class_of(kernel, paired, problem), nbytes)
    return least_s + compiling_seconds(kernel, problem.limits.profile)


def copy_dispatches(kernel: Kernel, reason: str, paired: bool, problem: Problem) -> Sequence[Dispatch]:
    """The dispatches of a kernel, and one for heads and tails of unaligned rows where it leaves them out."""
    parts, width_nbytes = [problem.from_bindings], problem.width_nbytes
    if kernel in PARTS_OF:
        parts = PARTS_OF[kernel](*problem.from_bindings, width_nbytes)
    units = "vectors of 16 bytes" if width_nbytes == WIDEST_NBYTES else "whole words"
    atomics = ", by atomics" if width_nbytes < WORD_NBYTES else ""
    strided = ", strided in the output" * (kernel is Kernel.PIXELS and row_of_pixels(problem).strided)
    text = reason.format(step=problem.read_step, units=units, atomics=atomics, strided=strided)
    work = class_of(kernel, paired, problem)
    bindings, limits = problem.bindings, problem.limits
    steps = [dispatch_of(kernel, *part, width_nbytes, bindings, limits, text, paired, work) for part in parts]
    ends = ends_of(kernel, problem)
    if ends is not None:
        text = "heads and tails of unaligned rows"
        steps.append(dispatch_of(ends, *problem.from_bindings, width_nbytes, bindings, limits, text))
    return steps


# copies in strips


def in_strips(
    widths: Sequence[int],
    kernel: Kernel,
    applies: Applies[Problem],
    reason: str,
    strips: Callable[[Problem], Sequence[Problem]] = attrgetter("strips"),
    *,
    paired: bool = False,
) -> tuple[Sequence[int], Copying]:
    """A row of the table that applies a kernel to one strip after another, with its element widths."""
    _, row = by_kernel(widths, kernel, applies, reason, paired=paired)

    def against(problem: Problem) -> Reason | None:
        if not strips(problem):
            return OTHER
        return next((reason for reason in map(row.applies, strips(problem)) if reason is not None), None)

    def least(problem: Problem) -> float:
        return sum(map(row.lower_bound, strips(problem)))

    def build(problem: Problem) -> Sequence[Step]:
        return [step for strip in strips(problem) for step in row.build(strip)]

    return widths, Strategy(f"{row.name} in strips", against, least, build)


# copies in parts


def in_parts(problem: Problem) -> Sequence[Step]:
    """The steps of each part that bindings and a grid hold; none if a part has no strategy."""
    parts = (problem.of(*coalesce(*part)) for part in problem.parts)
    steps = all_steps(choose(part, KERNELS[part.width_nbytes]) for part in parts)
    why = f"a part that a binding of {prefixed(problem.limits.binding_nbytes)} and a grid hold"
    return in_order(explained(steps, why))


def padding_needed(problem: Problem) -> list[Copying]:
    """The kernels that would be applicable if both buffers were padded to whole vectors."""
    if problem.unpadded is None or not problem.is_held:
        return []
    return [row for row in DISPATCHES[problem.width_nbytes] if row.applies(problem) is UNPADDED]


def cut_seconds(problem: Problem) -> float:
    """Lower bound of the seconds of the bulk and of its end, which may be a buffer copy."""
    if problem.bulk_and_end is None:
        return inf
    bulk, _ = problem.bulk_and_end
    rows = (row for row in DISPATCHES[bulk.width_nbytes] if row.applies(bulk) is None)
    bulk_s = min((row.lower_bound(bulk) for row in rows), default=0.0)
    return bulk_s + min(problem.costs.dispatch_s, problem.costs.copy_s)


def cut(problem: Problem) -> Sequence[Step]:
    """The bulk, which ends before the last whole vector of its buffer, and the end."""
    if problem.bulk_and_end is None:
        return []
    bulk, end = problem.bulk_and_end
    before, rest = choose(bulk, KERNELS[bulk.width_nbytes]), choose(end, END[end.width_nbytes])
    if before is None or rest is None:
        return []
    return [*before.steps, *explained(rest.steps, "the end of an unpadded buffer")]


STRIPS = "a strip of all rows at a time"
TOGETHER = "sub-word elements packed into words"
PERMUTED = "a permuted input, through workgroup memory"
BLOCKS = "vectors of 16 bytes from any byte offset, input stride {step}"
WIDTHS = (1, 2, 4, 8, 16)
BY_BUFFER_COPIES: tuple[Copying, ...] = (
    Strategy(COPY, partial(against_buffer_copy, packed=True), copying_seconds, buffer_copies),
    Strategy(COPY_PER_ROW, partial(against_buffer_copy, packed=False), copying_seconds, buffer_copies),
)
BY_KERNEL = (
    by_kernel(WIDTHS, Kernel.WIDE_TILES, wide_tiles, f"{PERMUTED}, in vectors of 16 bytes"),
    by_kernel((4, 8, 16), Kernel.TILES, tiles, PERMUTED),
    by_kernel((1, 2), Kernel.REGISTER_TILES, register_tiles, f"{TOGETHER}, by tiles in registers"),
    by_kernel((1, 2), Kernel.PIXELS, pixels, "pixels{strided}, in groups of whole vectors of 16 bytes"),
    by_kernel((1, 2, 4, 8), Kernel.SHIFTED_GRID, shifted, f"{BLOCKS}, in tiles"),
    by_kernel((1, 2, 4, 8), Kernel.SHIFTED_ROWS, shifted, f"{BLOCKS}, row by row"),
    by_kernel((4,), Kernel.WORD_GRID, anything, "{units}, in tiles"),
    by_kernel(WIDTHS, Kernel.WIDE_GRID, vectors, "{units}, in tiles"),
    by_kernel(WIDTHS, Kernel.WIDE_ROWS, vectors, "{units}, row by row"),
    in_strips((16,), Kernel.WIDE_ROWS, vectors, f"{{units}}, {STRIPS}"),
    by_kernel((4, 8), Kernel.ROWS, whole_rows, "{units}, row by row"),
    in_strips((4, 8), Kernel.ROWS, anything, f"{{units}}, {STRIPS}"),
    by_kernel((4, 8), Kernel.ROWS, whole_pairs, "{units}, two dimensions per row", paired=True),
    in_strips(
        (4, 8),
        Kernel.ROWS,
        pairs,
        "{units}, two dimensions per row, repeat by repeat",
        attrgetter("repeats"),
        paired=True,
    ),
    by_kernel((1, 2), Kernel.SUBWORD_ROWS, subword_pairs, f"{TOGETHER}, two dimensions per row", paired=True),
    by_kernel((1, 2), Kernel.SUBWORD_ROWS, subword_rows, f"{TOGETHER}, row by row"),
    in_strips((1, 2), Kernel.SUBWORD_ROWS, subword_rows, f"{TOGETHER}, {STRIPS}"),
    by_kernel((1, 2), Kernel.SUBWORD_STEPS, subword_steps, f"{TOGETHER}, strided in the output"),
    by_kernel(WIDTHS, Kernel.SLICE1, anything, "one element per invocation{atomics}"),
)
PART_AND_END: Copying = Strategy("bulk and end", where(padding_needed), cut_seconds, cut)
PARTS: Copying = Strategy(
    "split by binding size",
    where(lambda problem: not problem.is_held),
    lambda problem: len(problem.parts) * problem.costs.dispatch_s,
    in_parts,
)

# By the width of elements.
DISPATCHES = {width: tuple(row for widths, row in BY_KERNEL if width in widths) for width in WIDTHS}
KERNELS = {width: (*DISPATCHES[width], PART_AND_END) for width in WIDTHS}
END = {width: (*BY_BUFFER_COPIES, *DISPATCHES[width]) for width in WIDTHS}
COPIES = {width: (*BY_BUFFER_COPIES, *KERNELS[width], PARTS) for width in WIDTHS}
