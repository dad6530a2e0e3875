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
    twin(block, step, bound(source, step.source_binding), bound(target, step.target_binding))


def bound(buffer: Bytes, binding: Span) -> Words:
    """The words that a kernel sees through a binding; a view."""
    return buffer[binding.offset_nbytes :][: binding.nbytes].view("<u4")


def copy_elements(
    step: Dispatch, source_words: Words, source_elements: Words, target_words: Words, target_elements: Words
) -> None:
    """Element by element, whatever its width."""
    element = f"V{step.width_nbytes}"
    target_words.view(element)[target_elements] = source_words.view(element)[source_elements]


def divide(block: np.void, n: Words, d: int) -> Words:
    """The kernels' division by multiplication and shift."""
    high = (n.astype(np.uint64) * block["multipliers"][d] >> np.uint64(32)).astype(np.uint32)
    quotient: Words = high + n >> block["shifts"][d]
    return quotient


def decode(block: np.void, indices: Words, rank: int) -> tuple[Words, Words]:
    """The source and target elements of row-major indices over the first `rank` dimensions."""
    rest = indices
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(rank)):
        quotient = divide(block, rest, d) if d else np.zeros_like(rest)
        c = rest - quotient * block["sizes"][d]
        rest = quotient
        source_elements += c * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    return source_elements, target_elements


def taken(step: Dispatch, groups: int) -> Words:
    """What the invocations of so many workgroups take, in the order of invocations."""
    share = step.share
    block, lane, k = np.ogrid[:groups, : share.workgroup_size, : share.each]
    first = lane * share.each if share.step == 1 else lane
    return np.asarray(block * share.workgroup_size * share.each + first + k * share.step, np.uint32).ravel()


def slice1(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/slice1.wgsl`."""
    rest = np.arange(block["count"], dtype=np.uint32)
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(block["rank"])):
        rest, c = np.divmod(rest, block["sizes"][d])
        source_elements += c * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    copy_elements(step, source_words, source_elements, target_words, target_elements)


def rows(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/rows.wgsl`."""
    x, y, z = step.share.workgroups
    last = int(block["rank"]) - 1
    row = np.arange(y * z, dtype=np.uint32)
    source_rows, target_rows = decode(block, row[row < block["count"]], last)
    column = taken(step, x)
    column = column[column < block["sizes"][last]]
    copy_elements(
        step,
        source_words,
        np.add.outer(source_rows, column * block["source_strides"][last]),
        target_words,
        np.add.outer(target_rows, column * block["target_strides"][last]),
    )


def runs(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/runs.wgsl`."""
    x, y, _ = step.share.workgroups
    index = taken(step, x * y)
    source_elements, target_elements = decode(block, index[index < block["count"]], int(block["rank"]))
    copy_elements(step, source_words, source_elements, target_words, target_elements)


def assemble(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/assemble.wgsl`."""
    x, y, _ = step.share.workgroups
    lanes = 4 // step.width_nbytes
    word = taken(step, x * y)
    word = word[word < block["count"]]
    elements = np.add.outer(
        (block["target_offset"] // lanes + word) * lanes, np.arange(lanes, dtype=np.uint32)
    )
    target_elements = elements[elements >= block["target_offset"]]
    rest = target_elements - block["target_offset"]
    source_elements = np.full_like(rest, block["source_offset"])
    inside = np.ones_like(rest, bool)
    last = int(block["rank"]) - 1
    for d in range(last):
        c = divide(block, rest, d)
        rest = rest - c * block["target_strides"][d]
        inside &= c < block["sizes"][d]
        source_elements += c * block["source_strides"][d]
    inside &= rest < block["sizes"][last]
    source_elements += rest * block["source_strides"][last]
    copy_elements(step, source_words, source_elements[inside], target_words, target_elements[inside])


twins: dict[Kernel, Callable[[np.void, Dispatch, Words, Words], None]] = {
    Kernel.SLICE1: slice1,
    Kernel.ROWS: rows,
    Kernel.RUNS: runs,
    Kernel.ASSEMBLE: assemble,
}
