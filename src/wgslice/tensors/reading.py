"""Tensors as values of the host: arrays, numbers, and what other libraries take."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.arguments import integers
from wgslice.dialects.numpy_index import basic_index
from wgslice.errors import named
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import Operand, record
from wgslice.gpu.transfer import download
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.tensors.dlpack import CPU_DEVICE, exported
from wgslice.tensors.placed import Placed, viewed

__all__ = ["Readable"]


class Readable(Placed):
    """Reads back."""

    __slots__ = ()

    def numpy(self) -> NDArray[Any]:
        """Read back.

        Returns
        -------
        numpy.ndarray
            Same shape and dtype, C-contiguous, writable, with memory of its own. A view that is not packed
            is copied on the GPU first. Waits for the GPU.

        Raises
        ------
        ValueError
            The buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left to read through, or is gone.
        """
        with named("numpy"):
            array = np.empty(self.shape, self.dtype)
            if array.size:
                read_into(self, array.reshape(-1).view(np.uint8))
            return array

    def item(self, *index: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
        """Read one element back, as a number of Python's.

        Parameters
        ----------
        index : int, one for each dimension, or one tuple of them
            Of the element; a single int counts in row-major order, and negative ones count from the end. May
            be left out where there is one element only.

        Returns
        -------
        bool, int, float, complex or another scalar
            What `numpy.ndarray.item` gives. Waits for the GPU.

        Raises
        ------
        TypeError
            An index is no integer.
        IndexError
            An index is out of bounds.
        ValueError
            There are other numbers of indices and dimensions; or none, and not one element.
        OutOfDeviceMemory, DeviceLostError
            As `numpy`.
        """
        with named("item"):
            nested = len(index) == 1 and isinstance(index[0], tuple)
            given = integers("index", index[0] if nested else index)  # type: ignore[arg-type]  # a tuple
            if not given and self.size != 1:
                raise ValueError(f"a tensor of shape {self.shape} has {self.size} elements: it must have 1")
            if len(given) not in (0, 1, self.ndim):
                raise ValueError(f"{len(given)} indices for a tensor of shape {self.shape}")
            if len(given) == 1 and self.ndim != 1:
                (flat,) = given
                if not -self.size <= flat < self.size:
                    raise IndexError(f"index {flat} is out of bounds for size {self.size}")
                given = tuple(map(int, np.unravel_index(flat % self.size, self.shape)))
            part = basic_index(self.shape, given).items if given else [0] * self.ndim
            return viewed(self, self.layout.select(part)).numpy().item()

    def tolist(self) -> Any:
        """Read back, as nested lists of Python's numbers, or one number for a tensor without dimensions.

        Raises
        ------
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `numpy`.
        """
        return self.numpy().tolist()

    def __format__(self, spec: str) -> str:
        """Format as text; a tensor without dimensions is read back, and formatted as NumPy's scalar is."""
        if self.ndim == 0:
            return format(self.numpy()[()], spec)
        if spec:
            raise TypeError(
                f"format {spec!r} of a tensor of shape {self.shape}: must be of one without dimensions; "
                "x.numpy() is an array"
            )
        return str(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            few = "an empty tensor" if self.size == 0 else "a tensor with more than one element"
            raise ValueError(f"the truth value of {few} is ambiguous")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(
                f"index: a tensor of shape {self.shape} and dtype {self.dtype}: only one integer without "
                "dimensions is an index of Python's"
            )
        return operator.index(self.item())

    def _number(self, name: str) -> Any:
        """The only element, for a conversion that errors call by its name."""
        if self.size != 1:
            raise TypeError(
                f"{name}: a tensor of shape {self.shape} has {self.size} elements: only one is a number"
            )
        return self.item()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        return self.numpy()  # NumPy casts what has another dtype, by the rule of the function that asks

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        with named("__dlpack__"):
            return exported(self.numpy, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_DEVICE  # where a copy for others lies


def read_into(tensor: Placed, data: NDArray[np.uint8]) -> None:
    """Read back; a view that is not packed is copied on the GPU first, in the same submission."""
    device = tensor.device
    if tensor.is_packed and tensor.buffer.usage & BufferUsage.COPY_SRC:
        check_usable(device, tensor.buffer)
        check_alive(device, tensor.buffer)
        download(device, tensor.buffer, tensor.offset, data)
        return
    packed = Operand(
        device.create_buffer(tensor.nbytes), Layout.packed(tensor.shape), tensor.dtype.itemsize, fresh=True
    )
    encoder = device.create_encoder()
    record(device, encoder, plan_copy, tensor.operand, packed)
    download(device, packed.buffer, 0, data, encoder)
