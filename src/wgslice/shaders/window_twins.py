"""Dispatches of windows run on NumPy: each twin computes what the kernel of its name computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import Kernel
from wgslice.plans.window_steps import WindowDispatch
from wgslice.shaders.uniforms import window_block, windows_dtype

__all__ = ["run_windows", "window_twins"]

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


def run_windows(step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]) -> None:
    """One kernel on its two bindings, and the offsets of all windows."""
    block = np.frombuffer(window_block(step), windows_dtype)[0]
    read = source[step.source_binding.offset_nbytes :][: step.source_binding.nbytes]
    written = target[step.target_binding.offset_nbytes :][: step.target_binding.nbytes]
    window_twins[step.kernel](block, step, read, written, offsets)


def picked(block: np.void, step: WindowDispatch) -> tuple[Indices, Indices]:
    """Numbers and directions of a dispatch's windows."""
    count = int(block["count"])
    if step.picks is None:
        return np.arange(count) + int(block["first"]), np.full(count, int(block["flips"]))
    return step.picks.astype(np.int64), step.windows.flips[step.picks].astype(np.int64)


def find(
    block: np.void, step: WindowDispatch, offsets: NDArray[np.generic]
) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """Places in source and target of every index of every window, and whether it lies inside the input."""
    numbers, flips = picked(block, step)
    rank = int(block["rank"])
    source = np.full((len(numbers),), int(block["source_offset"]))
    target = int(block["target_offset"]) + numbers * int(block["target_window"])
    inside = np.ones(len(numbers), bool)
    for d in range(rank):
        size, first, step_, last, extent = (
            int(block[name][d]) for name in ("sizes", "firsts", "steps", "lasts", "extents")
        )
        begins = np.clip(offsets[numbers, d].astype(object), block["lowests"][d], block["highests"][d])
        ahead = step_ * (first + np.arange(size))
        backwards = (flips >> d & 1).astype(bool)[:, None]
        position = begins.astype(np.int64)[:, None] + np.where(backwards, last - ahead, ahead)
        shape = (len(numbers), *(1,) * d, size)
        inside = inside[..., None] & ((position >= 0) & (position < extent)).reshape(shape)
        source = source[..., None] + (position * int(block["source_strides"][d])).reshape(shape)
        target = target[..., None] + np.arange(size) * int(block["target_strides"][d])
    return source % 2**32, target % 2**32, inside


def extract_windows(
    block: np.void, step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]
) -> None:
    """Twin of `wgsl/extract_windows.wgsl`."""
    element = f"V{step.element_nbytes}"
    source_elements, target_elements, inside = find(block, step, offsets)
    read, written = source.view(element), target.view(element)
    bound = inside & (source_elements < block["segment"])
    written[target_elements[bound]] = read[source_elements[bound]]
    written[target_elements[~inside]] = block["fill"].view(element)[0]


def window_rows(
    block: np.void, step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]
) -> None:
    """Twin of `wgsl/window_rows.wgsl`."""
    source_bytes, _, inside = find(block, step, offsets)
    unit = int(block["row_nbytes"]) // int(block["sizes"][int(block["rank"]) - 1])
    numbers, _ = picked(block, step)
    windows = int(block["target_offset"]) + numbers * int(block["target_window"])
    inside_window = np.arange(inside[0].size * unit).reshape(*inside.shape[1:], unit)
    target_bytes = np.add.outer(windows, inside_window) % 2**32
    unit_bytes = source_bytes[..., None] + np.arange(unit)
    target[target_bytes[inside]] = source[unit_bytes[inside]]
    fill = np.resize(block["fill"].view(np.uint8), unit)
    target[target_bytes[~inside]] = fill


window_twins: dict[Kernel, Callable[[np.void, WindowDispatch, Bytes, Bytes, NDArray[np.generic]], None]] = {
    Kernel.EXTRACT_WINDOWS: extract_windows,
    Kernel.WINDOW_ROWS: window_rows,
}
