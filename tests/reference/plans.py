"""Run a plan in NumPy: the function that has a kernel's name mirrors that kernel.

It maps invocations to their writes, from memory as it was before the dispatch; `store` performs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from reference import block_kernels, elements, grids
from reference.indexed import trace_indexed
from reference.memory import Bytes, Observed, Trace, Writes, bound, store
from reference.sized import sized_kernels
from reference.windows import trace_windows

from wgslice.plans.facade import IndexedDispatch, SizedDispatch, WindowDispatch
from wgslice.plans.kernels import OF_INDICES, OF_WINDOWS, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import PATTERN_NBYTES
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory, OnGrid
from wgslice.shaders import block_dtype, uniform_block


def run_plan(plan: Plan, source: Bytes, target: Bytes, offsets: NDArray[np.generic] | None = None) -> None:
    """Run `plan` from the bytes of one buffer into those of another, in place, both from their bases on.

    Of windows whose offsets, or copies whose indices the GPU has, `offsets` are these.
    """
    memories = {Memory.INPUT: source, Memory.OUTPUT: target, Memory.ZEROS: np.zeros(PATTERN_NBYTES, np.uint8)}
    memories |= {memory: np.zeros(-(-nbytes // 16) * 16, np.uint8) for memory, nbytes in plan.scratch}
    for step in plan.steps:
        if isinstance(step, Clear):
            memories[step.writes][step.offset_nbytes :][: step.nbytes] = 0
            continue
        read, written = memories[step.reads], memories[step.writes]
        if isinstance(step, BufferCopies):
            for source_place, target_place in zip(step.source.places(), step.target.places(), strict=True):
                written[target_place:][: step.nbytes] = read[source_place:][: step.nbytes]
            continue
        assert isinstance(step, OnGrid)  # no test brings a texture
        traced = trace(step, read, written, offsets, memories.get(Memory.WINNERS))
        store(step.kernel, bound(written, step.target_binding), traced.writes)


def trace(
    step: OnGrid,
    source: Bytes,
    target: Bytes,
    offsets: NDArray[np.generic] | None = None,
    winners: Bytes | None = None,
) -> Trace:
    """Map the invocations of one kernel to what they load and store; nothing is written.

    `offsets` are the device-resident ones, of windows or as indices; `winners` those on places.
    """
    if isinstance(step, WindowDispatch):
        return trace_windows(step, source, target, offsets, winners)
    if isinstance(step, SizedDispatch):
        return sized_kernels[step.kernel](step, source, target, offsets)
    if isinstance(step, IndexedDispatch):
        return trace_indexed(step, source, target, offsets, winners)
    assert isinstance(step, Dispatch)
    block = np.frombuffer(uniform_block(step), block_dtype("Copy"))[0]
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    writes = copy_kernels[step.kernel](block, step, read, kept)
    return Trace(writes, read.loads, kept.loads)


reference = vars(elements) | vars(block_kernels) | vars(grids)
copy_kernels: dict[Kernel, Callable[[np.void, Dispatch, Observed, Observed], Writes]] = {
    kernel: reference[kernel.value] for kernel in Kernel if kernel not in OF_WINDOWS | OF_INDICES
}
