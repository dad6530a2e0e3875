"""Zarr arrays read into tensors, and written from them, on any GPU. Needs the extra `zarr`.

Zarr arrays take tensors wherever they take arrays of NumPy. After `enable()`, reading a Zarr array returns a
tensor. Zarr's own codecs decode and encode chunks in host memory.
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
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import run_copies
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.plans.copy import fills, pattern_size
from wgslice.tensors.creation import asarray
from wgslice.tensors.tensor import Tensor, allocate

__all__ = ["NDBuffer", "disable", "enable"]

# Bytes to gather before an upload. Time relative to Zarr's own read of 192 MiB of float32, uncompressed store
# in memory, lavapipe of Mesa 22.3, two shared cores of an AMD EPYC, with 2, 4, 8, 16 and 32 MiB: 5.5, 6.1,
# 5.6, 5.4, 5.4 for chunks of 64 x 64 x 64; 3.1, 2.7, 2.8, 2.5, 2.9 for chunks of 16 x 32 x 32.
GATHERED_NBYTES = 2**24
ALIGNMENT_NBYTES = 16  # of each gathered array, for element widths up to 16 bytes


class UploadBatcher:
    """A tensor of zeros that threads write into, each element once.

    Arrays are copied to host memory immediately, since they may be small views of large chunks. After
    GATHERED_NBYTES they are uploaded and inserted into the tensor in one submission, while the next are
    gathered.
    """

    def __init__(self, sizes: Sequence[int], dtype: DType, device: Device) -> None:
        self.tensor = allocate(sizes, dtype, device)
        self.lock = Lock()
        self.gathered = np.empty(GATHERED_NBYTES, np.uint8)
        self.used_nbytes = 0
        self.windows: list[tuple[Layout, Layout]] = []  # of elements in `gathered`, and in the tensor
        self.buffer: Buffer | None = None  # gathered elements on the device

    def __setitem__(self, key: Any, value: Any) -> None:
        given = np.asarray(value, self.tensor.dtype)
        if not is_plain(key):
            self.tensor[key] = given
            return
        target = self.tensor[key].layout
        with self.lock:
            if given.ndim:
                self.gather_parts(np.broadcast_to(given, target.sizes), target)
            elif target.size and any(given.tobytes()):  # one element; zeros are skipped
                pieces = fills(target, given.itemsize)
                self.gather(np.repeat(given, pattern_size(pieces)), pieces)

    def gather_parts(self, array: NDArray[Any], target: Layout) -> None:
        """Gather an array in parts, halved along the longest dimension down to GATHERED_NBYTES."""
        if array.nbytes <= GATHERED_NBYTES:
            self.gather(array, [(Layout.packed(target.sizes), target)])
            return
        axis = int(np.argmax(array.shape))
        halves = np.split(array, [target.sizes[axis] // 2], axis)
        for part, layout in zip(halves, target.halves(axis), strict=True):
            self.gather_parts(part, layout)

    def gather(self, array: NDArray[Any], windows: list[tuple[Layout, Layout]]) -> None:
        """Copy an array to the gathered bytes, and store its windows: layouts in it and in the tensor."""
        if self.used_nbytes + array.nbytes > GATHERED_NBYTES:
            self.insert_gathered()
        start, stop = self.used_nbytes, self.used_nbytes + array.nbytes
        np.copyto(self.gathered[start:stop].view(array.dtype).reshape(array.shape), array)
        first = start // array.itemsize
        self.windows += [(source.shifted(first), target) for source, target in windows if target.size]
        self.used_nbytes = -(-stop // ALIGNMENT_NBYTES) * ALIGNMENT_NBYTES

    def insert_gathered(self) -> None:
        """Upload and insert the gathered arrays, after waiting for the previous insertion."""
        if not self.windows:
            return
        device, itemsize = self.tensor.device, self.tensor.dtype.itemsize
        with named("wgslice.zarr"):
            if self.buffer is None:
                self.buffer = sink().create_buffer(device, GATHERED_NBYTES)
            else:
                device.synchronize()  # bounds the staging memory of the queue
            sink().upload(device, self.buffer, self.gathered[: self.used_nbytes])
            memory = self.tensor.memory
            copies = [(self.buffer, source, memory, target) for source, target in self.windows]
            run_copies(device, itemsize, copies)
        self.windows, self.used_nbytes = [], 0


NAME = "wgslice.zarr.NDBuffer"  # of the class in Zarr's configuration
DEVICE_KEY = "wgslice.device"  # in Zarr's configuration: a Device, a part of an adapter's name, or None

# Maximum bytes that are assembled in host memory and transferred at once. Measured as for `GATHERED_NBYTES`:
# 2.9 and 1.4 times Zarr's own read, where gathering and inserting takes 5.4 and 2.5 times.
WHOLE_NBYTES = 2**26

Task: TypeAlias = asyncio.Task[Any]

# The task of the user's read. Zarr allocates results and intermediate shards by the same call: the task of a
# read allocates and returns its result; tasks and threads started meanwhile, with a copy of that task's
# context, allocate shards for codecs. After a failed read, the next may be mistaken for a part of it.
reading: ContextVar[Task | None] = ContextVar("reading", default=None)


class NDBuffer(cpu.NDBuffer):
    """Zarr's n-dimensional buffer, which returns the result of a read as a tensor.

    Zarr creates instances after `enable`. Chunks, decoded or to be encoded, and shards are arrays in host
    memory. Results up to 64 MiB are assembled there and uploaded once; larger ones are inserted into a tensor
    chunk by chunk. Tensors to write are read back whole up to 64 MiB, and chunk by chunk beyond.

    Strings, records, objects, elements of more than 16 bytes, and arrays of more than 8 dimensions are read
    as NumPy arrays.

    Parameters
    ----------
    array : numpy.ndarray or Tensor
        The elements to write, or, as `out`, the target of a read.
    """

    def __init__(self, array: NDArray[Any] | Tensor) -> None:
        self._lock = Lock()
        self._held: Any = array
        self._error: Exception | None = None  # of the readback, which is not tried again
        self._batcher: UploadBatcher | None = None  # of the held tensor
        self._device: Device | None = None  # of the result of a read
        self._reader: Task | None = None  # the task of the read; other tasks get an array

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """Allocate a result or a shard, which Zarr writes completely."""
        element, task = None, current_task()
        if len(shape) <= MAX_RANK:
            with suppress(TypeError):  # for dtypes that tensors do not support
                element = element_dtype(dtype)
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
        """The result of a read as a tensor, or else the array or tensor held."""
        if self._device is None:
            return self._held
        if self._reader is not current_task():
            return self._data
        reading.set(None)
        self._held, self._device = asarray(self._flushed(), device=self._device), None
        return self._held

    @property
    def _data(self) -> Any:
        """The elements as an array in host memory; a tensor is read back once, or no chunk is written."""
        with self._lock:  # several threads encode chunks of one tensor
            if self._error is not None:
                raise self._error
            if isinstance(self._held, Tensor):
                try:
                    self._held, self._batcher = self._flushed().numpy(), None
                except Exception as error:
                    self._error = error
                    raise
            return self._held

    @_data.setter
    def _data(self, array: Any) -> None:
        self._held = array

    def _flushed(self) -> Any:
        """The array, or the tensor after all insertions."""
        if self._batcher is not None:
            with self._batcher.lock:
                self._batcher.insert_gathered()
        return self._held

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return cast("DType", self._held.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the buffer."""
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


def buffer_of(cls: type[cpu.NDBuffer], ndarray_like: Any) -> cpu.NDBuffer:
    """Return Zarr's buffer of an array, or this module's of a tensor, whose elements Zarr cannot read."""
    return (NDBuffer if isinstance(ndarray_like, Tensor) else cls)(ndarray_like)


# Zarr passes each value to write to this method of its configured class. It imports this module by the entry
# point before it first looks up the class, so that tensors are written without `enable` too. Another class
# under the name of Zarr's own would disable nested shards, for which Zarr compares the two.
cpu.NDBuffer.from_ndarray_like = classmethod(buffer_of)  # type: ignore[assignment, method-assign]  # the only way in


def current_task() -> Task | None:
    """The asyncio task that runs in this thread, or None."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


Configured: TypeAlias = AbstractContextManager[Any]

HOST = {"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}


def enable(device: AnyDevice = None) -> Configured:
    """Read Zarr arrays into tensors from now on, or inside a `with` statement.

    Parameters
    ----------
    device : Device or str, optional
        The device of the tensors, or a part of an adapter's name or backend, such as "vulkan".
        `default_device()` by default, created by the first read.

    Returns
    -------
    donfig.ConfigSet
        The result of `zarr.config.set`: a context manager that restores the previous configuration, which
        is global to the process.

    Raises
    ------
    TypeError
        `device` is no device or string.
    NoAdapterError
        No adapter matches `device`.

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
    """Read Zarr arrays into NumPy arrays from now on, or inside a `with` statement.

    Returns
    -------
    donfig.ConfigSet
        As for `enable`.
    """
    return cast("Configured", zarr.config.set({**HOST, DEVICE_KEY: None}))
