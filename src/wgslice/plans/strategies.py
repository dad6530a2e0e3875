"""The strategies of a coalesced copy: a row for each kernel, for buffer copies, and for copies in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod
from typing import TypeAlias

from wgslice.arguments import MAX_RANK
from wgslice.layout import coalesce
from wgslice.plans.choose import OTHER, Reason, Step, Strategy, choose, compiling_seconds
from wgslice.plans.costs import CostClass, copy_class
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.launch import wide_tile_axis
from wgslice.plans.pixels import are_pixels, are_steps, as_pixels, is_ragged, pixels_of, stepped_parts
from wgslice.plans.plan import COPY_PER_ROW
from wgslice.plans.problem import LEAST_SHIFTED_NBYTES, NO_ROOM, SHIFTED_STEPS, Problem, cut_end
from wgslice.plans.profiles import FAILED
from wgslice.plans.steps import BufferCopies, Dispatch, dispatch_of, row_copies, row_sizes

Copying: TypeAlias = Strategy[Problem]


LEAST_NARROW_NBYTES = 7  # a row that holds a word wherever it begins
VECTORS = (Kernel.WIDE_ROWS, Kernel.WIDE_GRID)

# Kernels that leave the heads and tails of rows to another dispatch, and the least share of a row's bytes
# that they take: of 31 bytes, a block of 16.
LEAVING_ENDS = (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS)
LEAST_OF_BLOCKS = 0.5
INTERLEAVING = "rows of the output interleave"
SHARING = "rows of the output have bytes of the same words"


# buffer copies


def against_buffer_copy(problem: Problem, *, packed: bool) -> Reason | None:
    """Why not one buffer copy of everything, or else one for each row."""
    if (problem.source.is_packed and problem.target.is_packed) != packed:
        return OTHER
    if problem.width_nbytes >= WORD_NBYTES and problem.in_runs and problem.terms.buffer_copies:
        return None
    return problem.against_buffer_copies


def copying_seconds(problem: Problem) -> float:
    """Estimated seconds of buffer copies of everything, or of each row."""
    costs = problem.limits.profile.costs
    count = prod(row_sizes(problem.source, problem.target))
    return count * costs.copy_s + problem.nbytes / costs.copy_bytes_per_s


def buffer_copies(problem: Problem) -> Sequence[Step]:
    """A buffer copy of everything, or of each row."""
    return [row_copies(problem.source, problem.target, problem.width_nbytes)]


# kernels


def wide_tiles(problem: Problem) -> Reason | None:
    """Both sides are whole vectors; the source is permuted."""
    if problem.tile_axis is None:
        return OTHER
    if wide_tile_axis(problem.source, problem.target, problem.width_nbytes) is None:
        return problem.against_tiles
    return problem.tight


def tiles(problem: Problem) -> Reason | None:
    """The source is permuted."""
    return OTHER if problem.tile_axis is None else None


def pixels(problem: Problem) -> Reason | None:
    """Rows are pixels."""
    return problem.tight if are_pixels(problem.source, problem.target, problem.width_nbytes) else OTHER


def shifted(problem: Problem) -> Reason | None:
    """Blocks of 16 bytes are put together of neighbours, from any byte on."""
    if problem.write_step != 1 or abs(problem.read_step) not in SHIFTED_STEPS:
        return problem.apart
    if not problem.target.is_nested:
        return INTERLEAVING
    return problem.short if problem.row_nbytes < LEAST_SHIFTED_NBYTES else problem.tight


def vectors(problem: Problem) -> Reason | None:
    """Elements are vectors of 16 bytes."""
    if problem.width_nbytes == WIDEST_NBYTES:
        return None
    return problem.uneven_vectors if problem.in_runs else OTHER


def vector_grid(problem: Problem) -> Reason | None:
    """Elements are vectors of 16 bytes, and there is a dimension to cut into tiles."""
    return vectors(problem) if problem.rank else OTHER


def any_grid(problem: Problem) -> Reason | None:
    """There is a dimension to cut into tiles."""
    return None if problem.rank else OTHER


def anything(_: Problem) -> Reason | None:
    """Any copy."""
    return None


def pairs(problem: Problem) -> Reason | None:
    """There are two dimensions."""
    return None if problem.rank >= 2 else OTHER


def narrow_rows(problem: Problem) -> Reason | None:
    """Words are put together of elements of a row."""
    if not problem.target.is_nested:
        return INTERLEAVING
    if problem.write_step != 1:
        return problem.apart
    return None if problem.row_nbytes >= LEAST_NARROW_NBYTES and problem.rank else OTHER


def narrow_pairs(problem: Problem) -> Reason | None:
    """Words are put together of elements of two dimensions that are packed."""
    target = problem.target
    if problem.rank < 2 or target.strides[-2:] != (target.sizes[-1], 1) or not target.is_nested:
        return OTHER
    return None if problem.row_nbytes * target.sizes[-2] >= LEAST_NARROW_NBYTES else OTHER


def narrow_steps(problem: Problem) -> Reason | None:
    """Words are put together of elements at a step, or of runs of them, by what owns the words."""
    if problem.rank > MAX_RANK - 2 or not are_steps(problem.source, problem.target, problem.width_nbytes):
        return OTHER
    if not problem.target.is_nested:
        return INTERLEAVING
    return None if stepped_parts(problem.source, problem.target, problem.width_nbytes) else SHARING


def stepped(problem: Problem) -> Sequence[Dispatch]:
    """The dispatch of `narrow_steps`, or two."""
    source, target = problem.from_bindings
    work = class_of(Kernel.NARROW_STEPS, False, problem)
    return [
        dispatch_of(
            Kernel.NARROW_STEPS,
            *part,
            problem.width_nbytes,
            problem.bindings,
            problem.limits,
            STEPPED,
            work=work,
        )
        for part in stepped_parts(source, target, problem.width_nbytes)
    ]


def narrow_runs(problem: Problem) -> Reason | None:
    """Words are put together of elements, wherever they lie."""
    if not problem.target.is_nested:
        return INTERLEAVING
    return None if problem.rank < MAX_RANK or problem.write_step == 1 else OTHER


def ends_of(kernel: Kernel, problem: Problem) -> Kernel | None:
    """The kernel for heads and tails of unaligned rows, where another leaves them out."""
    source, target, width_nbytes = problem.source, problem.target, problem.width_nbytes
    if kernel in (Kernel.SHIFTED_GRID, Kernel.SHIFTED_ROWS) and is_ragged(target, width_nbytes):
        return Kernel.ROW_ENDS
    if kernel is Kernel.PIXELS and pixels_of(*as_pixels(source, target), width_nbytes).ragged:
        return Kernel.NARROW_ENDS
    return None


def by_kernel(
    kernel: Kernel, applies: Callable[[Problem], Reason | None], reason: str, paired: bool = False
) -> Copying:
    """The row of a kernel; `reason` says what it does, where {} is the step between elements."""
    name = kernel.value + " of pairs" * paired
    return Strategy(
        name,
        partial(against_kernel, kernel, applies),
        partial(least_seconds, kernel, paired),
        partial(dispatches, kernel, reason, paired),
    )


def class_of(kernel: Kernel, paired: bool, problem: Problem) -> CostClass:
    """The cost class of a kernel on a problem."""
    width_nbytes = WIDEST_NBYTES if kernel in VECTORS else problem.width_nbytes
    return copy_class(kernel, width_nbytes, paired, problem.pattern, abs(problem.read_step))


def against_kernel(
    kernel: Kernel, applies: Callable[[Problem], Reason | None], problem: Problem
) -> Reason | None:
    """Why a kernel does not take a copy."""
    if not problem.is_held:
        return OTHER
    reason = applies(problem)
    distrusted = problem.limits.distrusted
    if reason is None and distrusted and {kernel, ends_of(kernel, problem)} & distrusted:
        return FAILED
    return reason


def least_seconds(kernel: Kernel, paired: bool, problem: Problem) -> float:
    """Estimated seconds that a kernel takes at least for its bytes."""
    profile = problem.limits.profile
    work = profile.costs.works.get(class_of(kernel, paired, problem))
    if work is None:
        return inf
    share = LEAST_OF_BLOCKS if kernel in LEAVING_ENDS else 1
    least_s = profile.costs.dispatch_s + share * problem.nbytes / work.bytes_per_s
    return least_s + compiling_seconds(kernel, profile)


def dispatches(kernel: Kernel, reason: str, paired: bool, problem: Problem) -> Sequence[Dispatch]:
    """The dispatch of a kernel, and one for heads and tails of unaligned rows where it leaves them out."""
    source, target = problem.from_bindings
    width_nbytes, limits = problem.width_nbytes, problem.limits
    units = "vectors of 16 bytes" if width_nbytes == WIDEST_NBYTES else "whole words"
    atomics = ", by atomics" if width_nbytes < WORD_NBYTES else ""
    said = reason.format(step=problem.read_step, units=units, atomics=atomics)
    work = class_of(kernel, paired, problem)
    bindings = problem.bindings
    whole = dispatch_of(kernel, source, target, width_nbytes, bindings, limits, said, paired, work)
    ends = ends_of(kernel, problem)
    if ends is None:
        return [whole]
    said = "the blocks that rows begin and end inside of"
    return [whole, dispatch_of(ends, source, target, width_nbytes, bindings, limits, said)]


# copies in strips


def in_strips(row: Copying) -> Copying:
    """The row of a kernel that takes a copy strip by strip."""

    def against(problem: Problem) -> Reason | None:
        if not problem.strips:
            return OTHER
        return next((reason for reason in map(row.applies, problem.strips) if reason is not None), None)

    def least(problem: Problem) -> float:
        return sum(map(row.lower_bound, problem.strips))

    def build(problem: Problem) -> Sequence[Step]:
        return [step for strip in problem.strips for step in row.build(strip)]

    return Strategy(f"{row.name} in strips", against, least, build)


# copies in parts


def against_parts(problem: Problem) -> Reason | None:
    """Why a copy is not cut: bindings and a grid hold it."""
    return OTHER if problem.is_held else None


def in_parts(problem: Problem) -> Sequence[Step]:
    """Each part that bindings and a grid hold, by its cheapest kernel; none where one has none."""
    return chosen_steps([problem.of(*coalesce(*part)) for part in problem.parts], KERNELS)


def against_cut(problem: Problem) -> Reason | None:
    """Why no end is cut off: no kernel is rejected only because a buffer ends inside a vector."""
    return None if not problem.is_roomy and problem.is_held and without_room(problem) else OTHER


def without_room(problem: Problem) -> list[Copying]:
    """The kernels that would take a copy if both buffers had room for whole vectors."""
    return [row for row in DISPATCHES[problem.width_nbytes] if row.applies(problem) is NO_ROOM]


def cut_seconds(problem: Problem) -> float:
    """Estimated seconds that a part and its end take at least."""
    least_s = min(row.lower_bound(problem) for row in without_room(problem))
    return problem.limits.profile.costs.dispatch_s + least_s


def parts_seconds(problem: Problem) -> float:
    """Estimated seconds that parts take at least."""
    return len(problem.parts) * problem.limits.profile.costs.dispatch_s


def cut(problem: Problem) -> Sequence[Step]:
    """What its buffer has room for in whole vectors, and the end that was cut off."""
    found = cut_end(problem.source, problem.target, problem.width_nbytes, problem.terms)
    if found is None:
        return []
    bulk, end = (problem.of(*coalesce(*part)) for part in found)
    steps = chosen_steps([bulk], KERNELS)
    of_end = chosen_steps([end], END)
    if not steps or not of_end:
        return []
    why = "the end, whose buffer ends inside a vector of 16 bytes"
    return [*steps, *(replace(step, reason=f"{step.reason}; {why}") for step in of_end)]


def chosen_steps(
    problems: Sequence[Problem], tables: Mapping[int, Sequence[Copying]]
) -> list[BufferCopies | Dispatch]:
    """The steps of what is chosen for each of some problems; none where one has no strategy."""
    found: list[BufferCopies | Dispatch] = []
    for problem in problems:
        choice = choose(problem, tables[problem.width_nbytes])
        if choice is None:
            return []
        found += [step for step in choice.steps if isinstance(step, BufferCopies | Dispatch)]
    return found


TOGETHER = "narrow elements, put together word by word"
PERMUTED = "a permuted source, through workgroup memory"
RUNS = "narrow elements in short runs, put together word by word"
STEPPED = "narrow elements at a step in the output, put into its words"
BLOCKS = "steps of {step}, in blocks of 16 bytes from any byte"
WIDTHS = (1, 2, 4, 8, 16)
BY_BUFFER_COPIES: tuple[Copying, ...] = (
    Strategy("buffer copy", partial(against_buffer_copy, packed=True), copying_seconds, buffer_copies),
    Strategy(COPY_PER_ROW, partial(against_buffer_copy, packed=False), copying_seconds, buffer_copies),
)
BY_KERNEL: tuple[tuple[Sequence[int], Copying], ...] = (  # with the widths of elements that each is for
    (WIDTHS, by_kernel(Kernel.WIDE_TILES, wide_tiles, f"{PERMUTED}, in vectors of 16 bytes")),
    ((4, 8, 16), by_kernel(Kernel.TILES, tiles, PERMUTED)),
    ((1, 2), by_kernel(Kernel.PIXELS, pixels, "pixels, in groups of whole blocks of 16 bytes")),
    ((1, 2, 4, 8), by_kernel(Kernel.SHIFTED_GRID, shifted, f"{BLOCKS}, in tiles")),
    ((1, 2, 4, 8), by_kernel(Kernel.SHIFTED_ROWS, shifted, f"{BLOCKS}, row by row")),
    ((4,), by_kernel(Kernel.WORD_GRID, any_grid, "{units}, in tiles")),
    ((8,), by_kernel(Kernel.PAIR_GRID, any_grid, "{units}, in tiles")),
    (WIDTHS, by_kernel(Kernel.WIDE_GRID, vector_grid, "{units}, in tiles")),
    (WIDTHS, by_kernel(Kernel.WIDE_ROWS, vectors, "{units}, row by row")),
    ((16,), in_strips(by_kernel(Kernel.WIDE_ROWS, vectors, "{units}, strip by strip"))),
    ((4, 8), by_kernel(Kernel.ROWS, anything, "{units}, row by row")),
    ((4, 8), in_strips(by_kernel(Kernel.ROWS, anything, "{units}, strip by strip"))),
    ((4, 8), by_kernel(Kernel.ROWS, pairs, "{units}, two dimensions a row", paired=True)),
    (
        (1, 2),
        by_kernel(Kernel.NARROW_ROWS, narrow_pairs, f"{TOGETHER}, two dimensions a row", paired=True),
    ),
    ((1, 2), by_kernel(Kernel.NARROW_ROWS, narrow_rows, f"{TOGETHER}, row by row")),
    ((1, 2), in_strips(by_kernel(Kernel.NARROW_ROWS, narrow_rows, f"{TOGETHER}, strip by strip"))),
    ((1, 2), by_kernel(Kernel.NARROW_STEPS, narrow_steps, STEPPED)._replace(build=stepped)),
    ((1, 2), by_kernel(Kernel.NARROW_RUNS, narrow_runs, RUNS)),
    (WIDTHS, by_kernel(Kernel.SLICE1, anything, "one element an invocation{atomics}")),
)
PART_AND_END: Copying = Strategy("a part and its end", against_cut, cut_seconds, cut)
PARTS: Copying = Strategy("parts that bindings hold", against_parts, parts_seconds, in_parts)

# By the width of elements.
DISPATCHES = {width: tuple(row for widths, row in BY_KERNEL if width in widths) for width in WIDTHS}
KERNELS = {width: (*DISPATCHES[width], PART_AND_END) for width in WIDTHS}
END = {width: (*BY_BUFFER_COPIES, *DISPATCHES[width]) for width in WIDTHS}
COPIES = {width: (*BY_BUFFER_COPIES, *KERNELS[width], PARTS) for width in WIDTHS}
