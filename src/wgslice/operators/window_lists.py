"""Windows of different sizes in buffers: lists of tensors, and packed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Binding, run_copies
from wgslice.layout import Layout
from wgslice.operators.binding import TensorDesc, check_descs
from wgslice.operators.windows_arguments import Table, packed_windows
from wgslice.plans.windows import Packing
from wgslice.tensors.placed import as_copied, check_destination, check_input, check_tensor, uploaded
from wgslice.tensors.tensor import Tensor, allocate


def packed_desc(name: str, desc: TensorDesc | None, dtype: DType, packing: Packing) -> TensorDesc:
    """Return the descriptor of packed windows, or the one that is given, checked."""
    if desc is None:
        return TensorDesc(dtype, (packing.size,))
    check_descs(**{name: desc})
    if desc.sizes != (packing.size,):
        raise ValueError(f"{name} sizes {desc.sizes}: must be ({packing.size},), packed windows")
    return desc


def packed_output(x: Tensor, size: int, out: Tensor | None) -> Tensor:
    """Return `out`, checked for packed windows of `x`, or a new tensor."""
    if out is None:
        return allocate((size,), x.dtype, x.device, zeroed=False)
    check_tensor("out", out, written=True)
    check_destination(out, x.dtype, "out")
    if out.shape != (size,) or not out.is_packed:
        raise ValueError(
            f"out has sizes {out.shape} and strides {out.strides}: must be ({size},), packed, or a list with "
            "a tensor for each window"
        )
    return out


def checked_outputs(dtype: DType, out: list[Any], sizes: Table) -> list[Tensor]:
    """Return the tensors of a list `out`, one for each window."""
    if len(out) != len(sizes):
        raise ValueError(f"out has {len(out)} tensors: must be {len(sizes)}, one for each window")
    for number, (tensor, expected) in enumerate(zip(out, map(tuple, sizes.tolist()), strict=True)):
        name = f"out[{number}]"
        check_tensor(name, tensor, written=True)
        check_destination(tensor, dtype, name)
        if tensor.shape != expected:
            raise ValueError(f"{name} has sizes {tensor.shape}: must be {expected}")
    return out


def by_buffer(tensors: list[Tensor]) -> list[tuple[list[int], Binding, Packing]]:
    """Return the numbers of the tensors of each buffer, all of it that they reach, and their places in it."""
    if not tensors:
        return []
    order: dict[int, list[int]] = {}
    for number, tensor in enumerate(tensors):
        order.setdefault(id(tensor.memory), []).append(number)
    columns = zip(*[tensor.layout for tensor in tensors], strict=True)
    sizes, strides, starts = (np.array(values, np.int64).reshape(len(tensors), -1) for values in columns)
    starts, reaches = starts[:, 0], (sizes - 1) * strides
    lows = starts + np.minimum(reaches, 0).sum(axis=1)
    stops = starts + np.maximum(reaches, 0).sum(axis=1) + 1
    found = []
    for numbers in order.values():
        kept = [number for number in numbers if tensors[number].size]
        low, stop = (int(lows[kept].min()), int(stops[kept].max())) if kept else (0, 0)
        memory, itemsize = tensors[numbers[0]].memory, tensors[numbers[0]].itemsize
        whole = Binding(memory, Layout.of((stop - low,), (1,), low), itemsize)
        found.append((numbers, whole, Packing(starts - low, strides, stop - low)))
    return found


def checked_windows(x: Tensor, windows: list[Any]) -> list[Tensor | NDArray[Any]]:
    """Return the windows of a list as tensors and arrays of the dtype and the rank of their target."""
    found: list[Tensor | NDArray[Any]] = []
    usable: set[int] = set()  # memories: a thousand windows are often of one
    for number, given in enumerate(windows):
        alike = isinstance(given, Tensor) and (given.ndim, given.dtype) == (x.ndim, x.dtype)
        if alike and id(given.memory) in usable:
            found.append(given)
            continue
        name = f"windows[{number}]"
        with named(name):
            window = given if isinstance(given, Tensor) else as_copied(given, x.dtype)
            if isinstance(window, Tensor):
                check_same_dtype(x.dtype, window.dtype)
            if window.ndim != x.ndim:
                raise ValueError(f"shape {window.shape}: must be of rank {x.ndim}, as x")
        if isinstance(window, Tensor):
            check_input(x.device, name, window.memory)
            usable.add(id(window.memory))
        found.append(window)
    return found


def gathered(
    device: Device, dtype: DType, windows: list[Tensor | NDArray[Any]], sizes: Table
) -> tuple[Binding, Packing]:
    """Return one buffer with all windows, and their places in it.

    Tensors of one buffer stay where they are; others are copied into a new one.
    """
    packing = packed_windows(sizes, dtype.itemsize)
    tensors = [each for each in windows if isinstance(each, Tensor)]
    if tensors and len(tensors) == len(windows):
        buffers = by_buffer(tensors)
        if len(buffers) == 1:
            return buffers[0][1:]
    if not tensors:
        packed = np.zeros(packing.size, dtype)
        for window, start in zip(windows, packing.starts.tolist(), strict=True):
            packed[start : start + window.size] = np.asarray(window).reshape(-1)
        return uploaded(device, packed), packing
    target = allocate((packing.size,), dtype, device, zeroed=False)
    copies = []
    for window, start in zip(windows, packing.starts.tolist(), strict=True):
        if window.size:
            read = window.bound_layout if isinstance(window, Tensor) else uploaded(device, window)
            layout = Layout.packed(window.shape, start)
            moved = read.layout.shifted(read.offset_nbytes // dtype.itemsize)
            copies.append((read.buffer, moved, target.memory, layout))
    run_copies(device, dtype.itemsize, copies)
    return target.bound_layout._replace(fresh=True), packing
