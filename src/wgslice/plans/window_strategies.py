"""The strategies of windows, extracted and inserted, and the plan of the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import gcd, inf
from typing import TypeAlias

import numpy as np

from wgslice.arguments import U32_MAX
from wgslice.errors import NoKernelError
from wgslice.layout import Layout
from wgslice.plans.box_strategies import BOUNDED, kernel_steps, placed_boxes, plan_boxes
from wgslice.plans.choose import (
    COPY_PER_WINDOW,
    OTHER,
    Applies,
    Choice,
    Estimate,
    OnPrint,
    Reason,
    Step,
    Strategy,
    all_steps,
    anything,
    choose,
    explained,
    in_order,
    reading_from,
    where,
)
from wgslice.plans.copy import plan_copy, staging_copy
from wgslice.plans.copy_strategies import MIN_OF_BLOCKS
from wgslice.plans.kernels import EXTRACTING, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.overlaps import insertion_of, sets_of
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import UNPADDED, PlanContext, too_short
from wgslice.plans.profiles import FAILED, UNKNOWN, all_disabled, windows_class
from wgslice.plans.steps import Memory
from wgslice.plans.window_problem import WindowProblem, is_contiguous, turned_forward
from wgslice.plans.window_steps import (
    each_window,
    elements,
    extracted_blocks,
    inserted_blocks,
    inserted_words,
    least_seconds,
    segments_of,
    source_groups,
)
from wgslice.plans.windows import Numbers, SizedWindows, Windows, sized_class

Copying: TypeAlias = Strategy[WindowProblem]

PICK_NBYTES = 8  # of a window's number and directions
MAX_CHANNELS = 15  # masks of the uniform block, less the one that is never needed


def windows_planner(
    windows: Windows | SizedWindows, tensor_sizes: tuple[int, ...] = (), overlap: str | None = None
) -> Planner:
    """Returns a planner of copies from a tensor, the source, to a batch.

    With a rule for windows that overlap, it is one of copies from a batch to a tensor of some sizes, of which
    elements outside are dropped.
    """
    packed, inserts = None, overlap is not None
    equal = windows.as_equal() if isinstance(windows, SizedWindows) else None
    if equal and (inserts or equal[1].is_packed):
        windows, packed = equal
    numbers, contested = windows.numbers, False
    if overlap is not None:
        numbers, contested = insertion_of(windows, tensor_sizes or (1,), overlap)
    if isinstance(windows, SizedWindows):
        return partial(plan_sized, windows, overlap)
    return partial(
        plan_windows, windows, inserts=inserts, numbers=numbers, contested=contested, packed=packed
    )


def plan_windows(
    windows: Windows,
    source: Layout,
    target: Layout,
    itemsize: int,
    context: PlanContext,
    /,
    *,
    inserts: bool = False,
    numbers: Numbers | None = None,
    contested: bool = False,
    packed: Layout | None = None,
) -> Plan:
    """Returns the plan of windows of one size by the strategy of the least estimated time.

    `numbers` are those of the windows to copy, by default all; the last of `contested` ones stays. `packed`
    is the layout of the windows in a packed buffer.
    """
    tensor, batch = (target, source) if inserts else (source, target)
    if packed is not None:
        batch = packed.shifted(batch.offset)
    numbers, nbytes = windows.numbers if numbers is None else numbers, batch.size * itemsize
    if batch.size > U32_MAX:
        raise ValueError(f"{batch.size} elements of sizes {batch.sizes}: one call copies at most {U32_MAX}")
    if batch.size == 0 or (inserts and not (tensor.size and numbers.size)):
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    table_nbytes = windows.count * max(len(windows.extents) * windows.offset_nbytes, PICK_NBYTES)
    if table_nbytes > context.limits.binding_nbytes:
        raise ValueError(
            f"{windows.count} windows: what says where they are takes {table_nbytes} bytes, a binding at "
            f"most {context.limits.binding_nbytes}; {'insert' if inserts else 'extract'} fewer at a time"
        )
    problem = turned_forward(
        WindowProblem(windows, tensor, batch, itemsize, context, inserts, numbers, contested)
    )
    choice = choose(problem, WINDOWS, OnPrint(further_rejected, changes_of_windows))
    if choice is None:
        raise NoKernelError(all_disabled(f"windows of sizes {windows.sizes}", context.limits))
    sides = (problem.batch, problem.tensor) if inserts else (problem.tensor, problem.batch)
    layouts, costs = (itemsize, itemsize, *sides), problem.costs
    return Plan(nbytes, *layouts, choice.steps, costs=costs, choice=choice, shape=batch.sizes)


def plan_sized(
    windows: SizedWindows,
    overlap: str | None,
    source: Layout,
    target: Layout,
    itemsize: int,
    context: PlanContext,
) -> Plan:
    """Returns the plan of windows of different sizes by the strategy of the least estimated time.

    Of windows to insert if there is a rule for those that overlap, else to extract.
    """
    inserts = overlap is not None
    tensor, batch = (target, source) if inserts else (source, target)

    def alone(number: int) -> Sequence[Step]:
        one, part, numbers = windows.one(number)
        sides = source, target, itemsize, context
        return plan_windows(one, *sides, inserts=inserts, numbers=numbers, packed=part).steps

    known = windows, windows.packing, tensor, batch, itemsize, context
    problem = replace(placed_boxes(*known, inserts=inserts), alone=alone)
    if overlap is not None:
        most = 2 if problem.padded.all() else 1  # windows that end unpadded buffers are copied one by one
        sets, own_words = sets_of(windows, tensor, itemsize, overlap, most)
        problem = replace(problem, sets=sets, own_words=own_words, promised=overlap == "disjoint")
    return plan_boxes(problem, source, target)


def copying_seconds(problem: WindowProblem) -> float:
    """Estimated seconds of a buffer copy of each row of each window."""
    costs, rows = problem.costs, len(problem.numbers) * problem.row.count
    return rows * (costs.copy_s + problem.row.nbytes / costs.copy_bytes_per_s)


# kernels


def against_blocks(problem: WindowProblem) -> Reason | None:
    """Returns why rows are not copied in vectors of 16 bytes, or None."""
    if problem.tensor.size == 0:
        return "the input is empty"
    if problem.against_rows:
        return problem.against_rows
    row, least = problem.row, WIDEST_NBYTES
    if problem.unaligned and problem.limits.profile.contiguous and row.nbytes >= least:
        least = 2 * WIDEST_NBYTES - 1
    if row.nbytes < least:
        return too_short(row.nbytes, least)
    if row.channels > MAX_CHANNELS:
        return f"reversed rows keep {row.channels} elements in order; at most {MAX_CHANNELS} are supported"
    past = problem.tensor.stop * problem.itemsize > problem.context.source_capacity_nbytes
    unpadded = past and not problem.inserts
    if unpadded or problem.stop == 0 or (problem.contested and problem.stop < problem.windows.count):
        return UNPADDED
    if problem.inserts:
        ends = windows_class(Kernel.INSERT_WORDS, row.element_nbytes, ends=True, mirrored=row.mirrored)
        winners = windows_class(Kernel.LAST_WRITER_ROWS, WIDEST_NBYTES)
        if problem.in_parts and winners.kernel in problem.limits.disabled:
            return FAILED
        needed = {ends, winners} if problem.in_parts else {ends}
        return None if needed <= problem.costs.classes.keys() else UNKNOWN
    held = problem.held(problem.whole, problem.numbers, row.count * row.words_spanned)
    if any(source_groups(problem, numbers) is None for numbers in held):
        return "the input of one window exceeds a storage binding"
    return None


def blocks(steps_of: Callable[[WindowProblem], Iterable[Step]], problem: WindowProblem) -> Sequence[Step]:
    """Returns vectors of rows, and the cheapest steps for the windows left out; none if these have none."""
    steps = list(steps_of(problem))
    left = problem.numbers[problem.numbers >= problem.stop]
    if not left.size:
        return steps
    rest = choose(replace(problem, numbers=left), WITHOUT_BLOCKS)
    return [*steps, *explained(rest.steps, UNPADDED)] if rest else []


def against_inserted_words(problem: WindowProblem) -> Reason | None:
    """Returns why rows are not inserted word by word, or None."""
    if problem.in_parts:
        return "windows may overlap in parts of rows"
    return problem.against_rows or (OTHER if problem.row.nbytes <= problem.itemsize else None)


def are_words(problem: WindowProblem) -> bool:
    """Whether elements are sub-word and packed in the batch, and bindings hold the batch and the tensor."""
    if problem.itemsize >= WORD_NBYTES or not problem.batch.is_packed:
        return False
    return len(segments_of(problem)) == 1 == len(list(problem.parts(problem.whole)))


def by_kernel(
    kernel: Kernel, applies: Applies[WindowProblem], build: Callable[[WindowProblem], Iterable[Step]]
) -> Copying:
    """The row of a kernel."""
    reason, seconds = partial(against_kernel, kernel, applies), partial(least_seconds, kernel)
    return Strategy(kernel.value, reason, seconds, build)


def against_kernel(kernel: Kernel, applies: Applies[WindowProblem], problem: WindowProblem) -> Reason | None:
    """Returns why a kernel is not applicable to windows, or None."""
    if (kernel in EXTRACTING) == problem.inserts:
        return OTHER
    failed = FAILED if kernel in problem.limits.disabled else None
    return (problem.contested and problem.against_winners) or applies(problem) or failed


def against_boxes(problem: WindowProblem) -> Reason | None:
    """Returns why windows are not copied as boxes, rows of which may be apart; or None."""
    windows, row = problem.windows, problem.row
    if problem.against_line is None or problem.contested or windows.indices or 0 in problem.tensor.sizes:
        return OTHER
    if problem.inserts and not (windows.steps[row.axis] == 1 == problem.tensor.strides[row.axis]):
        return OTHER  # its rows are contiguous in the output
    if are_words(problem) and not problem.inserts:
        return OTHER  # `window_words` takes 0.3 to 0.7 of the time
    if windows.offsets is None and windows.fill is not None:
        return BOUNDED
    context = problem.context
    if min(context.source_capacity_nbytes, context.target_capacity_nbytes) < inf:
        return UNPADDED
    return None


# a packed tensor


def is_gapped(problem: WindowProblem) -> bool:
    """Whether rows are contiguous in a packed copy of the tensor, but not in the tensor.

    The copy is no larger than the largest binding, and so fits the largest buffer.
    """
    tensor, row = problem.tensor, problem.row
    apart = all(stride or size == 1 for size, stride in zip(tensor.sizes, tensor.strides, strict=True))
    fits = 0 < tensor.size * problem.itemsize <= problem.limits.binding_nbytes
    return apart and fits and not is_contiguous(tensor, row.axis, row.unit)


def packing_seconds(problem: WindowProblem) -> float:
    """Lower bound of the seconds of packing a tensor, and of copying it back if windows are inserted."""
    costs, count = problem.costs, 1 + problem.inserts
    nbytes = problem.tensor.size * problem.itemsize
    return count * (min(costs.copy_s, costs.dispatch_s) + nbytes / costs.copy_bytes_per_s)


def packed_first(problem: WindowProblem) -> Sequence[Step]:
    """Returns a packed copy of the tensor, and the cheapest steps between that and the batch."""
    tensor, itemsize, context, inserts = problem.tensor, problem.itemsize, problem.context, problem.inserts
    packed, reason = Layout.packed(tensor.sizes), "rows of windows are contiguous in a packed tensor"
    memory, copy_from, capacity_nbytes = Memory.INPUT, context.copy_from, context.source_capacity_nbytes
    known = context._replace(copy_from=True, source_capacity_nbytes=inf)
    if inserts:  # whether the output's buffer has the usage COPY_SRC is unknown
        memory, copy_from, capacity_nbytes = Memory.OUTPUT, False, context.target_capacity_nbytes
        known = context._replace(copy_to=True, target_capacity_nbytes=inf)
    reading = PlanContext(context.limits, copy_from, True, capacity_nbytes)
    packing = staging_copy(tensor, itemsize, reading, memory, Memory.PACKED, reason)
    found = choose(replace(problem, tensor=packed, context=known), WINDOWS)
    if found is None:
        return []
    if not inserts:
        return [*packing, *reading_from(Memory.PACKED, found.steps)]
    inserted = (
        replace(step, writes=Memory.PACKED) if step.writes is Memory.OUTPUT else step for step in found.steps
    )
    writing = context._replace(copy_from=True, source_capacity_nbytes=inf, table=None)
    back = explained(plan_copy(packed, tensor, itemsize, writing).steps, "windows are inserted")
    return [*packing, *inserted, *reading_from(Memory.PACKED, back)]


# what is printed


def further_rejected(problem: WindowProblem) -> Iterator[Estimate]:
    """Yields the kernel of rows on windows that are disjoint, or else aligned, and why it is not that."""
    on_gpu = problem.windows.offsets is None
    reason = "offsets in device memory may be unaligned" if on_gpu else "rows are unaligned to 16 bytes"
    if problem.contested:
        reason = "windows may overlap" if on_gpu else "windows overlap"
    asked = problem.contested or problem.unaligned
    if not asked or problem.row.nbytes < WIDEST_NBYTES or problem.against_rows:
        return
    kernel = Kernel.INSERT_ROWS if problem.inserts else Kernel.WINDOW_ROWS
    name = "without a last-writer pass" if problem.contested else "of aligned rows"
    class_ = windows_class(kernel, WIDEST_NBYTES, mirrored=problem.row.mirrored)
    nbytes = problem.nbytes * (MIN_OF_BLOCKS if problem.contested else 1)
    yield Estimate(f"{kernel.value} {name}", problem.costs.least_seconds(class_, nbytes), True, reason)


def changes_of_windows(
    problem: WindowProblem, *, layouts: bool = True
) -> Iterator[tuple[str, Choice | None]]:
    """Yields the choices for the windows with other offsets, and layouts if asked, with the conditions."""
    windows, tensor, axis = problem.windows, problem.tensor, problem.row.axis
    on_gpu = windows.offsets is None
    if problem.contested and on_gpu:
        disjoint = replace(problem, contested=False)
        yield 'windows are disjoint, as overlap="disjoint" promises', choose(disjoint, WINDOWS)
    if on_gpu:
        offsets = np.zeros((windows.count, tensor.rank), np.int32)
        offsets[:, axis] = min(1, tensor.sizes[axis] - windows.extents[axis])  # unaligned, as most are
        known = replace(windows, offsets=np.maximum(offsets, 0))
        context = problem.context._replace(table=None)
        on_host = replace(problem, windows=known, context=context, contested=False)
        disjoint_too = ", and windows are disjoint" * problem.contested
        yield f"the offsets are in an array of the host{disjoint_too}", choose(on_host, WINDOWS)
    if windows.steps[axis] != 1:
        extents = *windows.extents[:axis], windows.sizes[axis], *windows.extents[axis + 1 :]
        steps = *windows.steps[:axis], 1, *windows.steps[axis + 1 :]
        closer = replace(problem, windows=replace(windows, extents=extents, steps=steps))
        yield "windows have stride 1 along rows", choose(closer, WINDOWS)
    if not layouts:
        return
    padded = problem.context._replace(source_capacity_nbytes=inf, target_capacity_nbytes=inf)
    if problem.unaligned and windows.steps[axis] == 1 and tensor.is_packed and problem.batch.is_packed:
        unit = WIDEST_NBYTES // gcd(WIDEST_NBYTES, problem.row.unit * problem.itemsize)
        sizes, extents = (
            (*sizes[:axis], -(-sizes[axis] // unit) * unit, *sizes[axis + 1 :])
            for sizes in (tensor.sizes, windows.extents)
        )
        aligned = windows.offsets
        if aligned is not None:
            aligned = aligned.copy()
            aligned[:, axis] -= aligned[:, axis] % unit
        changed = replace(windows, extents=extents, offsets=aligned)
        batch = Layout.packed((windows.count, *changed.sizes))
        rounded = replace(problem, windows=changed, tensor=Layout.packed(sizes), batch=batch, context=padded)
        yield "rows and their offsets are multiples of 16 bytes", choose(rounded, WINDOWS)
    both = zip(problem.sides, (tensor, problem.batch), strict=True)
    names = [name for name, side in both if not side.is_packed]
    if names:
        sides = Layout.packed(tensor.sizes), Layout.packed(problem.batch.sizes)
        text = f"the {' and the '.join(names)} {'are' if len(names) > 1 else 'is'} contiguous"
        yield text, choose(replace(problem, tensor=sides[0], batch=sides[1], context=padded), WINDOWS)


# windows one by one


def are_long(problem: WindowProblem) -> bool:
    """Whether windows are extracted from inside the tensor, and one exceeds a binding on some side."""
    windows = problem.windows
    if problem.inserts or windows.offsets is None or windows.fill is not None:
        return False
    extents = map(min, windows.extents, problem.tensor.sizes)
    sides = problem.tensor.select([range(extent) for extent in extents]), problem.one
    return max((side.stop - side.lowest) * problem.itemsize for side in sides) > problem.max_nbytes


WITHOUT_BLOCKS: tuple[Copying, ...] = (
    by_kernel(Kernel.WINDOW_WORDS, where(are_words), partial(elements, Kernel.WINDOW_WORDS)),
    by_kernel(Kernel.EXTRACT_WINDOWS, anything, partial(elements, Kernel.EXTRACT_WINDOWS)),
    by_kernel(Kernel.INSERT_WORDS, against_inserted_words, inserted_words),
    by_kernel(Kernel.INSERT_WINDOWS, anything, partial(elements, Kernel.INSERT_WINDOWS)),
)
KERNELS: tuple[Copying, ...] = (
    by_kernel(Kernel.WINDOW_ROWS, against_blocks, partial(blocks, extracted_blocks)),
    by_kernel(Kernel.INSERT_ROWS, against_blocks, partial(blocks, inserted_blocks)),
    *WITHOUT_BLOCKS,
    Strategy(
        Kernel.SIZED_WINDOWS.value,
        against_boxes,
        lambda problem: problem.costs.least_seconds(
            sized_class(problem.itemsize, apart=True, in_words=False), problem.nbytes
        ),
        lambda problem: () if problem.boxes.against_kernel else kernel_steps(problem.boxes),
    ),
)
WINDOWS: tuple[Copying, ...] = (
    Strategy(
        COPY_PER_WINDOW, lambda problem: problem.copies[1], copying_seconds, lambda problem: problem.copies[0]
    ),
    Strategy(
        "disjoint sets",
        where(lambda problem: problem.disjoint is not None),
        lambda problem: len(problem.disjoint or ()) * problem.costs.dispatch_s,
        lambda problem: all_steps(
            choose(replace(problem, numbers=numbers, contested=False), KERNELS)
            for numbers in problem.disjoint or ()
        ),
    ),
    *KERNELS,
    Strategy("packed first", where(is_gapped), packing_seconds, packed_first),
    Strategy(
        "window by window",
        where(are_long),
        lambda problem: problem.windows.count * min(problem.costs.copy_s, problem.costs.dispatch_s),
        lambda problem: in_order(each_window(problem)),
    ),
)
