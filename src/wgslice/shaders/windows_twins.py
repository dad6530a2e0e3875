"""The twins of `extract_windows` and `window_words`, and of all kernels of windows by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, I32_MIN
from wgslice.plans.kernels import Kernel
from wgslice.plans.windows_steps import ElementsDispatch, WindowDispatch
from wgslice.shaders.copy_twins import WORD_NBYTES, Copied, elements_of, write_elements
from wgslice.shaders.memory import Bytes, Observed, Trace, Writes, bound, store
from wgslice.shaders.pieces import divide, invocation_numbers
from wgslice.shaders.uniforms import window_block, windows_dtype
from wgslice.shaders.window_places import Offsets, find_indices, find_picks, find_window_places
from wgslice.shaders.window_row_twins import window_rows

__all__ = ["run_windows", "trace_windows", "window_twins"]


def run_windows(step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]) -> None:
    """One kernel on its two bindings, and the offsets of all windows."""
    writes = trace_windows(step, source, target, offsets).writes
    store(step.kernel, bound(target, step.target_binding), writes)


def trace_windows(step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]) -> Trace:
    """Map the invocations of one kernel to what they load and store; nothing is written."""
    block = np.frombuffer(window_block(step), windows_dtype)[0]
    info = np.iinfo(offsets.dtype.name)
    fitting = np.clip(offsets, max(info.min, I32_MIN), min(info.max, I32_MAX)).astype(np.int32)
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    writes = window_twins[step.kernel](block, step, read, kept, fitting)
    return Trace(writes, read.loads, kept.loads)


def extract_windows(
    block: np.void, step: ElementsDispatch, source: Observed, _target: Observed, offsets: Offsets
) -> Writes:
    """Twin of `wgsl/extract_windows.wgsl`."""
    invocation = invocation_numbers(step.share)
    own = invocation[invocation < block["count"] * block["window_size"]]
    window, rest = np.divmod(own, block["window_size"])
    picks = find_picks(block, step, window)
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = block["target_offset"] + picks.number * block["target_window"]
    inside = np.ones(len(rest), bool)
    for d in range(block["rank"]):
        c, rest = np.divmod(rest, block["inner"][d])
        index = find_indices(block, offsets, picks, d, c)
        inside &= index < block["extents"][d]
        source_elements += index * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    bound_here = source_elements < block["segment"]
    nbytes = step.element_nbytes
    # What lies outside of the input is read anywhere, and then replaced.
    read = np.where(inside & bound_here, source_elements, np.uint32(0))
    copied = Copied(read, target_elements, own)
    writes = write_elements(source, copied, nbytes, min(nbytes, WORD_NBYTES))
    values = np.where(inside, writes.values, block["fill"].view(f"V{nbytes}")[0])
    kept = bound_here | ~inside
    return Writes(writes.unit_nbytes, writes.units[kept], values[kept], writes.invocations[kept])


def window_words(
    block: np.void, step: ElementsDispatch, source: Observed, target: Observed, offsets: Offsets
) -> Writes:
    """Twin of `wgsl/window_words.wgsl`."""
    nbytes = step.element_nbytes
    lanes = WORD_NBYTES // nbytes
    start = np.uint32((step.target_offset + step.first * step.target_window) % 2**32)
    each = np.arange(block["each"], dtype=np.uint32)
    words = start // np.uint32(lanes) + invocation_numbers(step.share)[:, None] * block["each"] + each
    numbers, owners = words.ravel(), np.repeat(invocation_numbers(step.share), len(each))
    taken_ = numbers * np.uint32(lanes) < start + block["elements"]
    word, own = numbers[taken_], owners[taken_]

    element = elements_of(word, lanes) - start
    mine = element < block["elements"]
    values = target.elements(elements_of(word, lanes), nbytes, own[:, None])
    window = divide(element[mine], block["window_multiplier"], block["window_shift"])
    picks = find_picks(block, step, window)
    index = element[mine] - window * block["window_size"]
    places = find_window_places(block, offsets, picks, index, int(block["rank"]))
    read = np.where(places.inside, places.source, np.uint32(0))
    by = np.broadcast_to(own[:, None], mine.shape)[mine]
    fill = block["fill"].view(f"V{nbytes}")[0]
    values[mine] = np.where(places.inside, source.elements(read, nbytes, by), fill)
    return Writes(WORD_NBYTES, word, values, own)


Twin = Callable[[np.void, Any, Observed, Observed, Offsets], Writes]  # of its kernel's dispatch

window_twins: dict[Kernel, Twin] = {
    Kernel.EXTRACT_WINDOWS: extract_windows,
    Kernel.WINDOW_ROWS: window_rows,
    Kernel.WINDOW_WORDS: window_words,
}
