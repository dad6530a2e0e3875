"""Zarr arrays read into tensors, and written from them, on any GPU. Needs the extra `zarr`.

After `enable()` what is read of a Zarr array is a tensor. Chunks are decoded by Zarr's own codecs, in host
memory; there they are encoded too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from math import prod
from threading import Lock
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

try:
    import zarr
except ModuleNotFoundError as error:
    message = "wgslice.zarr needs the package zarr, the extra `zarr` of wgslice: pip install zarr"
    raise ModuleNotFoundError(message, name=error.name) from None
from numpy.typing import DTypeLike, NDArray
from zarr.core.buffer import core, cpu
from zarr.registry import register_ndbuffer

from wgslice.arguments import MAX_RANK, checked_shape
from wgslice.dialects.basic import is_plain
from wgslice.dtypes import DType, native_dtype
from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, run_copies
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.plans.copy import fills, pattern_size
from wgslice.tensors.creation import asarray
from wgslice.tensors.tensor import Tensor, allocate

__all__ = ["NDBuffer", "disable", "enable"]

# What is gathered before it is uploaded and inserted. 192 MiB of float32 in an uncompressed store in memory,
# on lavapipe of Mesa 22.3, two cores of an AMD EPYC that others shared, in times of what Zarr took to read an
# array: chunks of 64 x 64 x 64 5.5 by 2 MiB, 6.1 by 4, 5.6 by 8, 5.4 by 16, 5.4 by 32; of 16 x 32 x 32 3.1,
# 2.7, 2.8, 2.5, 2.9.
GATHERED_NBYTES = 2**24
ALIGNMENT_NBYTES = 16  # of each array among those that are gathered, so that elements can be so wide


class UploadBatcher:
    """A tensor of zeros that threads write into, each place once.

    Arrays are copied into host memory at once, since they may be small views of large chunks. Once there are
    GATHERED_NBYTES of them, they are uploaded and inserted into the tensor by one submission, on which the
    GPU works while the next are gathered.
    """

    def __init__(self, sizes: Sequence[int], dtype: DType, device: Device) -> None:
        self.tensor = allocate(sizes, dtype, device)
        self.lock = Lock()
        self.gathered = np.empty(GATHERED_NBYTES, np.uint8)
        self.used_nbytes = 0
        self.windows: list[tuple[Layout, Layout]] = []  # of elements in `gathered`, and in the tensor
        self.buffer: Buffer | None = None  # for what is gathered, on the device

    def __setitem__(self, key: Any, value: Any) -> None:
        given = np.asarray(value, self.tensor.dtype)
        if not is_plain(key):
            self.tensor[key] = given
            return
        target = self.tensor[key].layout
        with self.lock:
            if given.ndim:
                self.gather_parts(np.broadcast_to(given, target.sizes), target)
            elif target.size and any(given.tobytes()):  # of one element; zero is there already
                pieces = fills(target, given.itemsize)
                self.gather(np.repeat(given, pattern_size(pieces)), pieces)

    def gather_parts(self, array: NDArray[Any], target: Layout) -> None:
        """Gather an array, halved along its longest dimension until the parts are small enough."""
        if array.nbytes <= GATHERED_NBYTES:
            self.gather(array, [(Layout.packed(target.sizes), target)])
            return
        axis = int(np.argmax(array.shape))
        halves = np.split(array, [target.sizes[axis] // 2], axis)
        for part, layout in zip(halves, target.halves(axis), strict=True):
            self.gather_parts(part, layout)

    def gather(self, array: NDArray[Any], windows: list[tuple[Layout, Layout]]) -> None:
        """Keep an array, and which of its elements go where."""
        if self.used_nbytes + array.nbytes > GATHERED_NBYTES:
            self.insert_gathered()
        start, stop = self.used_nbytes, self.used_nbytes + array.nbytes
        np.copyto(self.gathered[start:stop].view(array.dtype).reshape(array.shape), array)
        first = start // array.itemsize
        self.windows += [(source.shifted(first), target) for source, target in windows if target.size]
        self.used_nbytes = -(-stop // ALIGNMENT_NBYTES) * ALIGNMENT_NBYTES

    def insert_gathered(self) -> None:
        """Let the GPU insert what is gathered, once it has done so with what was gathered before."""
        if not self.windows:
            return
        device, itemsize = self.tensor.device, self.tensor.dtype.itemsize
        if self.buffer is None:
            self.buffer = device.create_buffer(GATHERED_NBYTES)
        else:
            device.synchronize()  # or the queue would hold all that the GPU has not come to
        upload(device, self.buffer, self.gathered[: self.used_nbytes])
        bound = self.tensor.bound_layout
        run_copies(
            device,
            [
                (BoundLayout(self.buffer, source, itemsize), bound._replace(layout=target))
                for source, target in self.windows
            ],
        )
        self.windows, self.used_nbytes = [], 0


NAME = "wgslice.zarr.NDBuffer"  # the class, in Zarr's configuration
DEVICE_KEY = "wgslice.device"  # beside it: a Device, a part of an adapter's name, or None for the default one

# What is put together in host memory and then crosses at once, both ways. As for `GATHERED_NBYTES`: so put
# together and uploaded 2.9 and 1.4 times what Zarr took alone, gathered and inserted 5.4 and 2.5 times.
WHOLE_NBYTES = 2**26

Task: TypeAlias = asyncio.Task[Any]

# The task that reads what a user asked for. Zarr makes that and shards on the way there with one call: one
# task makes and takes what a user asked for; tasks and threads that begin meanwhile, with a copy of that
# task's context, make shards, and codecs take them. A read after one that failed may be taken for a part of
# that one, until another has ended.
reading: ContextVar[Task | None] = ContextVar("reading", default=None)


class NDBuffer(cpu.NDBuffer):
    """Zarr's memory of dimensions, of which those that are read into become tensors.

    Zarr makes it, and `enable` has Zarr do so. Chunks, decoded and to be encoded, are arrays in host memory,
    and so are shards. What is read is put together there up to 64 MiB, and uploaded once; more lands chunk by
    chunk in a tensor. A tensor that is written is read back whole up to 64 MiB, and chunk by chunk
    beyond.

    What a tensor cannot hold is read as an array: strings, records, objects, elements of more than 16 bytes,
    and more than 8 dimensions.

    Parameters
    ----------
    array : numpy.ndarray or Tensor
        What to write, or, as `out`, to read into.
    """

    def __init__(self, array: NDArray[Any] | Tensor) -> None:
        self._lock = Lock()
        self._held: Any = array
        self._batcher: UploadBatcher | None = None  # of the tensor that is held
        self._device: Device | None = None  # for what is read
        self._reader: Task | None = None  # which takes what is read; to codecs it is an array

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """Make what is read into; all of it is written."""
        element, task = None, current_task()
        if len(shape) <= MAX_RANK:
            with suppress(TypeError):  # of a dtype that no tensor has
                element = native_dtype(np.dtype(dtype))
        if element is None or task is None:
            return cls(np.empty(shape, dtype, order))
        asked_for = reading.get() is None
        if asked_for:
            reading.set(task)
        with named("wgslice.zarr"):
            device = checked_device(zarr.config.get(DEVICE_KEY, None))
            sizes = checked_shape(shape)
            if asked_for and prod(sizes) * element.itemsize > WHOLE_NBYTES:
                batcher = UploadBatcher(sizes, element, device)
                made = cls(batcher.tensor)
                made._batcher = batcher
            else:
                made = cls(np.empty(sizes, element))
        made._device, made._reader = device, task
        return made

    def as_ndarray_like(self) -> Any:
        """What has been read, as a tensor; or the array or the tensor that is there."""
        if self._device is None:
            return self._held
        if self._reader is not current_task():
            return self._data
        reading.set(None)
        self._held, self._device = asarray(self._flushed(), device=self._device), None
        return self._held

    @property
    def _data(self) -> Any:
        """An array in host memory, for all else that Zarr does; a tensor is read back once and for all."""
        with self._lock:  # several threads encode chunks of one tensor
            if isinstance(self._held, Tensor):
                self._held, self._batcher = self._flushed().numpy(), None
            return self._held

    @_data.setter
    def _data(self, array: Any) -> None:
        self._held = array

    def _flushed(self) -> Any:
        """The array, or the tensor with all that has been written into it."""
        if self._batcher is not None:
            with self._batcher.lock:
                self._batcher.insert_gathered()
        return self._held

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return cast("DType", self._held.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return cast("tuple[int, ...]", self._held.shape)

    def __getitem__(self, key: Any) -> Self:
        held = self._held
        if isinstance(held, Tensor) and held.nbytes > WHOLE_NBYTES:
            part = held[key]
            if part.size < held.size:
                return type(self)(part.numpy())
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, core.NDBuffer):
            value = value.as_numpy_array()
        target = self._held if self._batcher is None else self._batcher
        target[key] = value


register_ndbuffer(NDBuffer, NAME)


def current_task() -> Task | None:
    """The task that runs in this thread."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


Configured: TypeAlias = AbstractContextManager[Any]

HOST = {"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}


def enable(device: AnyDevice = None) -> Configured:
    """Read every Zarr array into tensors from now on, or inside of a `with` statement.

    Parameters
    ----------
    device : Device or str, optional
        Where the tensors live; or a part of an adapter's name or backend, such as "vulkan".
        `default_device()` by default, which is made once something is read.

    Returns
    -------
    donfig.ConfigSet
        What `zarr.config.set` returns: a context manager that brings back what was there before. It holds
        for the whole process, as all of Zarr's configuration.

    Raises
    ------
    TypeError
        `device` is none.
    NoAdapterError
        No adapter has the name that `device` gives.

    Examples
    --------
    >>> import numpy as np, wgslice.zarr, zarr
    >>> z = zarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    >>> with wgslice.zarr.enable():
    ...     x = z[1:, ::2]
    >>> x[:, ::-1].numpy()
    array([[ 6,  4],
           [10,  8]])
    """
    with named("enable"):
        if device is not None:
            checked_device(device)
    return cast("Configured", zarr.config.set({**HOST, "ndbuffer": NAME, DEVICE_KEY: device}))


def disable() -> Configured:
    """Read Zarr arrays into NumPy's from now on, or inside of a `with` statement.

    Returns
    -------
    donfig.ConfigSet
        As `enable`.
    """
    return cast("Configured", zarr.config.set({**HOST, DEVICE_KEY: None}))
