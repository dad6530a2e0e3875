"""Writing a value into a window: elements of another operand, or an array from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import Operand, run_copy
from wgslice.gpu.transfer import upload
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.plans.copy import fills
from wgslice.rearrange import broadcast, without_leading_ones

__all__ = ["as_assigned", "as_copied", "check_disjoint", "write"]


def as_assigned(value: Any, dtype: DType) -> NDArray[Any]:
    """What NumPy stores of `value` in an array of `dtype` that it is assigned to."""
    array = np.empty(np.shape(value), dtype)
    array[...] = value
    return array


def as_copied(value: Any, dtype: DType) -> NDArray[Any]:
    """What `numpy.copyto` stores of `value`; it refuses what loses its kind, such as a fraction."""
    array = np.empty(np.shape(value), dtype)
    np.copyto(array, value)
    return array


def check_disjoint(layout: Layout) -> None:
    """Refuse an output that places two elements on the same bytes."""
    if layout.overlaps:
        raise ValueError(
            f"output sizes {layout.sizes} with strides {layout.strides}: two elements lie on the same bytes; "
            "an output must give each its own"
        )


def write(device: Device, target: Operand, value: Operand | NDArray[Any]) -> None:
    """Broadcast a value of the target's dtype to it, as NumPy assigns, without waiting for the GPU."""
    check_disjoint(target.layout)
    given = value.layout if isinstance(value, Operand) else Layout.packed(value.shape)
    sizes = target.layout.sizes
    source = broadcast(without_leading_ones(given, len(sizes)), sizes)
    if source is None:
        raise ValueError(f"could not broadcast input array from shape {given.sizes} into shape {sizes}")
    check_usable(device, target.buffer)
    check_alive(device, target.buffer)
    if isinstance(value, Operand):
        with named("input"):
            check_usable(device, value.buffer)
    if target.layout.size == 0:
        return
    if isinstance(value, Operand):
        run_copy(device, value._replace(layout=source), target)
    elif value.size == 1:
        fill(device, target, value.reshape(1))
    else:
        write_array(device, target, source, np.ascontiguousarray(value))


def write_array(device: Device, target: Operand, source: Layout, array: NDArray[Any]) -> None:
    """Upload an array: straight into a packed target of whole words, or through a buffer of its own."""
    itemsize = array.itemsize
    place = target.layout.offset * itemsize
    straight = array.size == target.layout.size and target.layout.is_packed
    whole = place % 4 == 0 and array.nbytes % 4 == 0
    data = array.reshape(-1).view(np.uint8)
    if straight and whole and target.buffer.usage & BufferUsage.COPY_DST:
        upload(device, target.buffer, data, place)
        return
    buffer = device.create_buffer(array.nbytes)
    upload(device, buffer, data)
    run_copy(device, Operand(buffer, source, itemsize, fresh=True), target)


def fill(device: Device, target: Operand, element: NDArray[Any]) -> None:
    """Write one element everywhere."""
    pieces = fills(target.layout, element.itemsize)
    repeated = np.repeat(element, max(source.stop for source, _ in pieces))
    buffer = device.create_buffer(repeated.nbytes)
    upload(device, buffer, repeated.view(np.uint8))
    for source, piece in pieces:
        run_copy(device, Operand(buffer, source, element.itemsize, fresh=True), target._replace(layout=piece))
