"""A plan run on NumPy, kernel for kernel: each twin computes what the kernel of its name computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wgslice.kernels import Kernel
from wgslice.plan import BufferCopy, Dispatch, Plan, Span
from wgslice.uniforms import copy_dtype, uniform_block

__all__ = ["run_plan", "twins"]

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]


def run_plan(plan: Plan, source: Bytes, target: Bytes) -> None:
    """Run `plan` from the bytes of one buffer into those of another, in place, both from their bases on."""
    for step in plan.steps:
        if isinstance(step, BufferCopy):
            start, stop = step.target_offset_nbytes, step.target_offset_nbytes + step.nbytes
            target[start:stop] = source[step.source_offset_nbytes :][: step.nbytes]
        else:
            run_dispatch(step, source, target)


def run_dispatch(step: Dispatch, source: Bytes, target: Bytes) -> None:
    """One kernel on its two bindings."""
    block = np.frombuffer(uniform_block(step), copy_dtype)[0]
    twin = twins[step.kernel]
    twin(block, step.width_nbytes, bound(source, step.source_binding), bound(target, step.target_binding))


def bound(buffer: Bytes, binding: Span) -> Words:
    """The words that a kernel sees through a binding; a view."""
    return buffer[binding.offset_nbytes :][: binding.nbytes].view("<u4")


def slice1(block: np.void, width_nbytes: int, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/slice1.wgsl`."""
    rest = np.arange(block["count"], dtype=np.uint32)
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(block["rank"])):
        rest, c = np.divmod(rest, block["sizes"][d])
        source_elements += c * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    element = f"V{width_nbytes}"
    target_words.view(element)[target_elements] = source_words.view(element)[source_elements]


def assemble(block: np.void, width_nbytes: int, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/assemble.wgsl`."""
    lanes = 4 // width_nbytes
    first = block["target_offset"] // lanes * lanes
    target_elements = first + np.arange(block["count"] * lanes, dtype=np.uint32)
    rest = target_elements - block["target_offset"]
    source_elements = np.full_like(rest, block["source_offset"])
    inside = np.ones_like(rest, bool)
    for d in range(block["rank"]):
        c, rest = np.divmod(rest, block["target_strides"][d])
        inside &= c < block["sizes"][d]
        source_elements += c * block["source_strides"][d]
    inside &= rest == 0
    element = f"V{width_nbytes}"
    target_words.view(element)[target_elements[inside]] = source_words.view(element)[source_elements[inside]]


twins: dict[Kernel, Callable[[np.void, int, Words, Words], None]] = {
    Kernel.SLICE1: slice1,
    Kernel.ASSEMBLE: assemble,
}
