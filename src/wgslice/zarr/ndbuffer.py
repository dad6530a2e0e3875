"""What Zarr reads into and writes from: an array in host memory, a tensor, or a tensor that chunks land in."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray
from zarr.core.buffer import core, cpu
from zarr.registry import register_ndbuffer

from wgslice.arguments import MAX_RANK
from wgslice.dtypes import DType, native_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.shared_devices import checked_device
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uploading import asarray
from wgslice.zarr.landing import GATHERED_NBYTES, Landing
from wgslice.zarr.reading import Task, begin, current_task, end

if TYPE_CHECKING:
    from zarr.core.buffer.core import NDArrayLike

__all__ = ["DEVICE_KEY", "NAME", "NDBuffer"]

NAME = "wgslice.zarr.NDBuffer"  # the class, in Zarr's configuration
DEVICE_KEY = "wgslice.device"  # beside it: a Device, a part of an adapter's name, or None for the default one


class NDBuffer(cpu.NDBuffer):
    """Zarr's memory of dimensions, of which those that are read into become tensors.

    Zarr makes it, and `enable` has Zarr do so. Chunks, decoded and to be encoded, are arrays in host memory,
    and so are shards. What is read is put together there up to 32 MiB, and uploaded once; more lands chunk by
    chunk in a tensor. A tensor that is written is read back whole up to so many bytes, and chunk by chunk
    beyond.

    What a tensor cannot hold is read as an array: strings, records, objects, elements of more than 16 bytes,
    and more than 8 dimensions.

    Parameters
    ----------
    array : numpy.ndarray or Tensor
        What to write, or, as `out`, to read into.
    """

    _data: Any  # an array, or a tensor, which Zarr's own type of arrays leaves out

    def __init__(self, array: NDArrayLike | Tensor) -> None:
        self._data = array
        self._landing: Landing | None = None  # of the tensor
        self._device: Device | None = None  # for what is read
        self._reader: Task | None = None  # which takes what is read; to codecs it is an array
        self._lock = Lock()

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """Make what is read into; all of it is written."""
        element = element_of_a_tensor(shape, np.dtype(dtype))
        if element is None:
            return super().empty(shape, dtype, order)
        asked_for = begin()
        with named("wgslice.zarr"):
            device = checked_device(zarr.config.get(DEVICE_KEY, None))
            if asked_for and prod(shape) * element.itemsize > GATHERED_NBYTES:
                landing = Landing(shape, element, device)
                made = cls(landing.tensor)
                made._landing = landing
            else:
                made = cls(np.empty(shape, element))
        made._reader = current_task()
        made._device = made._reader and device
        return made

    def as_ndarray_like(self) -> Any:
        """What has been read, as a tensor; or the array or the tensor that is there."""
        if self._device is None:
            return self._landed()
        if self._reader is not current_task():
            return self.as_numpy_array()  # a codec
        end()
        self._data, self._device = asarray(self._landed(), self._device), None
        return self._data

    def as_numpy_array(self) -> NDArray[Any]:
        """An array in host memory; a tensor is read back, and stays there from then on."""
        with self._lock:  # several threads encode chunks of one tensor
            data = self._landed()
            if isinstance(data, Tensor):
                self._data, self._landing = data.numpy(), None
        return np.asanyarray(self._data)

    def __getitem__(self, key: Any) -> Self:
        data = self._landed()
        if not isinstance(data, Tensor):
            return type(self)(data[key])
        part = data[key]
        if self._landing is not None:  # a shard that has been read, out of which parts are copied on the device
            return type(self)(part)
        if data.nbytes <= GATHERED_NBYTES or part.size == data.size:
            return type(self)(self.as_numpy_array()[key])
        return type(self)(part.numpy())

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, NDBuffer):
            value = value._landed()
        elif isinstance(value, core.NDBuffer):
            value = value.as_numpy_array()
        if isinstance(value, Tensor) and not self._takes(value):
            value = value.numpy()
        target = self._data if self._landing is None else self._landing
        target[key] = value

    def _takes(self, value: Tensor) -> bool:
        """Whether a tensor can be copied in without a way through host memory."""
        return isinstance(self._data, Tensor) and self._data.device is value.device

    def _landed(self) -> Any:
        """The array or the tensor, with all that has been written into it."""
        if self._landing is not None:
            self._landing.insert()
        return self._data

    def fill(self, value: Any) -> None:
        """Write one element everywhere."""
        self[...] = value

    def reshape(self, newshape: tuple[int, ...] | Literal[-1]) -> Self:
        """A view in other sizes; of a tensor too."""
        return type(self)(self._landed().reshape(newshape))

    def transpose(self, axes: SupportsIndex | Sequence[SupportsIndex] | None) -> Self:
        """A view with the dimensions in another order; of a tensor too."""
        return type(self)(self._landed().transpose(axes))

    def squeeze(self, axis: tuple[int, ...]) -> Self:
        """A view without some dimensions; of a tensor too."""
        return self.reshape(tuple(size for number, size in enumerate(self.shape) if number not in axis))

    def astype(self, dtype: DTypeLike, order: Literal["K", "A", "C", "F"] = "K") -> Self:
        """An array in host memory with its elements converted."""
        return type(self)(self.as_numpy_array().astype(dtype, order))

    def copy(self) -> Self:
        """An array in host memory, to change and to encode."""
        return type(self)(self.as_numpy_array().copy())

    def all_equal(self, other: Any, equal_nan: bool = True) -> bool:
        """Whether every element equals another, as Zarr compares with fill values."""
        return cpu.NDBuffer(self.as_numpy_array()).all_equal(other, equal_nan)


def element_of_a_tensor(shape: Sequence[int], dtype: DType) -> DType | None:
    """How a tensor holds elements of a dtype in so many dimensions, or None where it cannot."""
    if len(shape) > MAX_RANK:
        return None
    try:
        return native_dtype(dtype)
    except TypeError:
        return None


register_ndbuffer(NDBuffer, NAME)
