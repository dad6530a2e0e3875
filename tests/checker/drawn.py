"""Plans of random layouts, as trials: copies, windows, indices and masks, in usual and in small limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from checker.trials import copying
from helpers import WIDTHS
from hypothesis import assume, reject
from hypothesis import strategies as st
from index_keys import any_keys
from numpy.typing import NDArray
from planning import USUAL
from strategies import cases, sizes_of
from test_extract_windows import FAVOURING, PROFILES, offset_table, window_cases
from test_insert_windows import insertions, some_layout
from test_kernels import plans

from wgslice.arguments import MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.doctor.indexing import table_of
from wgslice.doctor.trials import NONE, Moves, Trial, elements_of, trial_of
from wgslice.layout import Layout
from wgslice.plans.facade import Asked, WindowCopy, copy_at_once, every, masked_copy_at_once, plan
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.profiles import Limits

MAX_STEPS = 60  # of a plan: small limits split some into thousands
SMALL = [(16 * 32, 3), (64 * 32, 2)]  # largest binding, workgroups


@st.composite
def drawn_limits(draw: st.DrawFn) -> Limits:
    """Launch configurations and costs by which any kernel may be chosen, often in small limits."""
    profile = draw(st.sampled_from([*PROFILES, *FAVOURING]))
    small = draw(st.sampled_from([None, *SMALL]))
    return replace(USUAL, profile=profile) if small is None else Limits(small[0], 32, small[1], profile)


@st.composite
def copies(draw: st.DrawFn) -> list[Trial]:
    """A slice by the plans where each kernel in turn costs least, also in small limits."""
    case = draw(cases())
    return [copying(plan, case.source, case.output, case.width, str(case)) for plan in plans(case, USUAL)]


@st.composite
def windows(draw: st.DrawFn) -> list[Trial]:
    """Windows that are extracted, at offsets of the host or of the device."""
    case, on_gpu = draw(window_cases()), draw(st.booleans())
    plan = case.plan(draw(drawn_limits()), on_gpu=on_gpu)
    source, target = case.buffers()
    table = offset_table(case.offsets) if on_gpu else None
    trial = Trial(plan, str(case), source.size, target.size, case.expected, table)
    return by_strategies(trial)


@st.composite
def inserted(draw: st.DrawFn) -> list[Trial]:
    """Windows that are inserted, overlapping or not, those outside dropped or moved inside."""
    case, on_gpu = draw(insertions()), draw(st.booleans())
    outside = draw(st.sampled_from(["drop", "clamp"])) if case.fits else "drop"
    plan = case.plan(draw(drawn_limits()), on_gpu=on_gpu, outside=outside)
    source, target = case.buffers()
    placed = case.clamped() if outside == "clamp" else case
    table = offset_table(case.offsets) if on_gpu else None
    return by_strategies(Trial(plan, str(case), source.size, target.size, placed.expected, table))


@st.composite
def indexed(draw: st.DrawFn) -> list[Trial]:
    """An advanced index of any layout, read or written; an array of it may be on the device."""
    width, reads = draw(st.sampled_from(WIDTHS)), draw(st.booleans())
    sizes = draw(st.sampled_from([1, 2, 3, 4]).flatmap(sizes_of))
    key = draw(any_keys(sizes))
    tensor = some_layout(draw, sizes, broadcast=reads)
    try:
        chosen = elements_of(tensor)[key]
    except IndexError:
        reject()
    dtypes = [item.dtype for item in key if isinstance(item, np.ndarray)]
    lists = any(isinstance(item, list) for item in key)
    table = None
    if len(dtypes) == 1 and dtypes[0].kind in "iu" and not lists and draw(st.booleans()):
        table = next(item for item in key if isinstance(item, np.ndarray))
    held = tuple(DeviceIndices(table.shape, None) if item is table is not None else item for item in key)
    selection = any_index(sizes, held)
    assume(isinstance(selection, AdvancedSelection) and chosen.size > 0 and chosen.ndim <= MAX_RANK)
    assert isinstance(selection, AdvancedSelection)
    if reads and width < WORD_NBYTES:  # whose gathers write whole words: callers give packed results
        other = Layout.packed(chosen.shape, draw(st.integers(0, 40)))
    else:
        other = some_layout(draw, chosen.shape, broadcast=not reads)
    limits, dtype = draw(drawn_limits()), None if table is None else table.dtype
    copy = copy_at_once(selection, tensor, other, width, limits, reads=reads, index_dtype=dtype)
    moved = (elements_of(other), chosen) if reads else (chosen, elements_of(other))
    return of_copy(copy, (tensor, other), limits, Moves(width, lambda: moved), table, f"{tensor}[{key}]")


@st.composite
def masked(draw: st.DrawFn) -> list[Trial]:
    """Elements of any layout, written where a mask is true that may repeat along dimensions."""
    width, sizes = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from([1, 2, 3]).flatmap(sizes_of))
    target = some_layout(draw, sizes, broadcast=False)
    source = some_layout(draw, sizes, broadcast=True)
    shape = tuple(size if draw(st.integers(0, 3)) else 1 for size in sizes[draw(st.integers(0, 1)) :])
    mask = np.random.default_rng(draw(st.integers(0, 999))).choice([0, 0, 1, 255], shape).astype(np.uint8)
    limits = draw(drawn_limits())
    copy = masked_copy_at_once(shape, target, source, limits)
    moved = np.where(np.broadcast_to(mask, sizes), elements_of(target), NONE), elements_of(source)
    return of_copy(copy, (target, source), limits, Moves(width, lambda: moved), mask, f"{target} by {source}")


def of_copy(
    copy: WindowCopy | None,
    sides: tuple[Layout, Layout],
    limits: Limits,
    moves: Moves,
    table: NDArray[Any] | None,
    case: str,
) -> list[Trial]:
    """Return the trials of a copy with indices, by each strategy; none if kernels cannot hold it at once."""
    assume(copy is not None)
    assert copy is not None
    chosen = plan(Asked(*copy, moves.width), limits, table=table_of(table))
    return by_strategies(trial_of(chosen, case, (copy.read, copy.written), moves, table))


def by_strategies(trial: Trial) -> list[Trial]:
    """Return a trial by each strategy that applies, in few steps."""
    plans = [each for _, each in every(trial.plan)] or [trial.plan]
    return [replace(trial, plan=each) for each in plans if len(each.steps) <= MAX_STEPS]


class Drawn(list[Trial]):
    """Trials of one case, which Hypothesis prints."""

    def __repr__(self) -> str:
        return self[0].case if self else "no plan of few steps"


drawn = st.one_of(copies(), windows(), inserted(), indexed(), masked()).map(Drawn)
