"""The useful share of the memory that invocations touch, in sectors and cache lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray
from reference.memory import Accesses, Trace
from reference.plans import trace

from bench.cases import Case
from bench.compilers.planned import offsets_of, planned
from wgslice.plans.facade import WindowDispatch
from wgslice.plans.steps import OnGrid

__all__ = [
    "READ",
    "WAVES",
    "WRITTEN",
    "accesses",
    "lines_touched",
    "moved_nbytes",
    "sampled",
    "sectors_touched",
]

READ, WRITTEN = "useful of sectors read", "useful of sectors written"
WAVES = (32, 64)  # invocations that a GPU runs together
SECTOR_NBYTES, LINE_NBYTES = 32, 128
MAX_GROUPS = 1024  # the first workgroups, which stand for all others


def accesses(case: Case) -> dict[str, dict[str, float]]:
    """Return the useful share of the sectors' bytes, and the lines per access, for each size of waves.

    A wave's sectors count once, however many of its accesses touch them, since caches hold them that long.
    """
    dispatches = [step for step in planned(case).steps if isinstance(step, OnGrid)]
    traces = [traced(case, step) for step in dispatches]
    found = {}
    for wave in WAVES:
        moved = np.sum([scale * np.array(moved_nbytes(trace, wave)) for trace, scale in traces], axis=0)
        read, written = (round(float(case.nbytes / nbytes), 3) for nbytes in moved[:2])
        found[f"waves of {wave}"] = {
            READ: read,
            WRITTEN: written,
            "lines an access": round(float(moved[2] / moved[3]), 2),
        }
    return found


def moved_nbytes(found: Trace, wave: int) -> list[int]:
    """Bytes of the sectors that a dispatch reads and writes, lines that its accesses touch, and accesses."""
    read = sum(sectors_touched(loads, wave) for loads in (found.source_loads, found.target_loads))
    stores = [found.writes.stores]
    every = [*found.source_loads, *found.target_loads, *stores]
    touched = np.sum([lines_touched(one, wave) for one in every], axis=0)
    return [read, sectors_touched(stores, wave), *touched.tolist()]


def traced(case: Case, step: OnGrid) -> tuple[Trace, float]:
    """Trace the first workgroups of a dispatch on zeros; also return the factor to all workgroups."""
    some, source, target = sampled(step)
    scale = prod(step.share.workgroups) / prod(some.share.workgroups)
    offsets = offsets_of(case) if isinstance(some, WindowDispatch) else None
    return trace(some, source, target, offsets), scale


def sampled(step: OnGrid) -> tuple[OnGrid, NDArray[np.uint8], NDArray[np.uint8]]:
    """The first workgroups of a dispatch, and zeros to read and to write."""
    sample = min(prod(step.share.workgroups), MAX_GROUPS)
    source, target = (
        np.zeros(binding.offset_nbytes + binding.nbytes, np.uint8)
        for binding in (step.source_binding, step.target_binding)
    )
    return replace(step, share=replace(step.share, workgroups=(sample, 1, 1))), source, target


def sectors_touched(of_memory: Sequence[Accesses], wave: int) -> int:
    """Bytes of the different sectors that waves touch in one memory."""
    keys = [
        pairs(one.invocations // np.uint32(wave), one.places // np.uint32(SECTOR_NBYTES)) for one in of_memory
    ]
    return SECTOR_NBYTES * len(np.unique(np.concatenate(keys))) if keys else 0


def lines_touched(of_one: Accesses, wave: int) -> tuple[int, int]:
    """Return the sum of lines that each access of a wave touches, and the number of accesses.

    An invocation's n-th access is of the same instruction as the n-th of the others.
    """
    invocations, places = of_one.invocations.ravel(), of_one.places.ravel()
    order = np.argsort(invocations, kind="stable")
    _, first, which = np.unique(invocations[order], return_index=True, return_inverse=True)
    turn = (np.arange(len(order)) - first[which]).astype(np.uint32)
    instruction = pairs(invocations[order] // np.uint32(wave), turn)
    _, number = np.unique(instruction, return_inverse=True)
    lines = pairs(number.astype(np.uint32), places[order] // np.uint32(LINE_NBYTES))
    return len(np.unique(lines)), int(number.max(initial=-1)) + 1


def pairs(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Combine two numbers into one."""
    return (high.astype(np.uint64) << np.uint64(32) | low).ravel()
