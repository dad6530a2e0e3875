"""Transfers of bytes between host memory and buffers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.adapter import check_process
from wgslice.gpu.device import Device
from wgslice.gpu.hosts.webgpu import Pending
from wgslice.gpu.protocols import Buffer, BufferUsage, BytesCopy, CommandEncoder, Place, is_given_out
from wgslice.gpu.sink import sink
from wgslice.layout import whole_words
from wgslice.plans.profiles import STAGING_NBYTES

if TYPE_CHECKING:
    from asyncio import Task

T = TypeVar("T")
tasks: set[Task[Any]] = set()  # which event loops refer to weakly


class Readback:
    """A staging buffer of the device, and bytes on their way through it."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        size = whole_words(nbytes)
        usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
        self.staging = device.staging.take(size) or device.new_buffer(size, usage)

    def begin(self, source: Place | None, nbytes: int, encoder: CommandEncoder | None = None) -> None:
        """Submit a copy of bytes after the commands of `encoder`; any thread may wait for it.

        Without a source, these commands write the bytes.
        """
        first = 0 if source is None else source.base % 4  # byte of the word that the copy begins at
        self.part = slice(first, first + nbytes)
        self.mapped_nbytes = max(whole_words(first + nbytes), 4)
        copy = None
        if source is not None and nbytes:
            copy = BytesCopy(source.buffer, source.base - first, self.staging, self.mapped_nbytes)
        self.device.submit(encoder, copy)
        self.mapping = begin_mapping(self.device, self.staging, self.mapped_nbytes)

    def wait(self) -> NDArray[np.uint8]:
        """Wait for the bytes, and return a view of them, which dangles once they are unmapped."""
        with self.device.calls:
            self.mapping.wait()
            mapped = self.device.host.mapped_bytes(self.staging, self.mapped_nbytes)
        return np.frombuffer(mapped, np.uint8)[self.part]

    def end(self) -> None:
        """Unmap the bytes and return the staging buffer to the device."""
        self.unmap()
        self.device.staging.give(self.staging)

    def mapped_array(self) -> NDArray[np.uint8]:
        """Wait for the bytes, and return a read-only array of them, mapped until all views are dropped."""
        if not self.device.host.maps_in_place:
            with self.read() as data:
                copied = data.copy()
            copied.flags.writeable = False
            return copied
        base = MappedBytes(self.wait())
        finalize(base, self.end_or_drop).atexit = False
        self.device.staging.in_use.add(self.staging)
        return np.asarray(base)

    def end_or_drop(self) -> None:
        """Unmap the bytes of an array that was dropped; if that fails, drop the staging buffer too."""
        self.device.staging.in_use.discard(self.staging)
        with suppress(Exception):  # such as DeviceLostError: a finalizer has no caller
            check_process()
            self.end()

    @contextmanager
    def read(self) -> Iterator[NDArray[np.uint8]]:
        """Wait for the bytes and yield them; they are unmapped when the block ends, and others may follow."""
        data = self.wait()
        try:
            yield data
        finally:
            self.unmap()

    def unmap(self) -> None:
        """Unmap the bytes."""
        try:
            with self.device.calls:
                self.device.host.end_mapping(self.staging)
        except ValueError:  # a lost device has destroyed its buffers
            self.device.host.check_loss(self.device.is_lost)
            raise


def begin_mapping(device: Device, buffer: Buffer, nbytes: int) -> Pending:
    """Begin to map the first bytes of a buffer after all submitted work."""
    try:
        with device.calls:
            return device.host.begin_mapping(device.wgpu_device, buffer, nbytes, device.is_lost)
    except ValueError:  # a lost device has destroyed its buffers
        device.host.check_loss(device.is_lost)
        raise


class MappedBytes:
    """The base of arrays on mapped bytes, which refer to it as long as any of them is used."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.__array_interface__ = data.__array_interface__


def arriving(readbacks: Iterator[Readback]) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of readbacks, which the iterator begins; they dangle once the next ones are asked for.

    The GPU copies the next bytes while the host reads these, and not earlier, since a mapping waits for all
    submitted work.
    """
    current = next(readbacks, None)
    while current is not None:
        data = current.wait()
        following = next(readbacks, None)
        yield data
        current.end()
        current = following


def download(
    device: Device, source: Place, into: NDArray[np.uint8], encoder: CommandEncoder | None = None
) -> None:
    """Wait for the GPU, then fill contiguous `into` from a buffer that has usage COPY_SRC.

    The commands of `encoder` run first, in the submission of the first chunk's copy.
    """
    sink().check_runs(f"{into.size} bytes are read back")
    buffer, offset_nbytes = source
    if device.maps_tensors and buffer.usage & BufferUsage.MAP_READ and not is_given_out(buffer):
        if encoder is None:
            device.flush()  # no mapping waits for what the queue holds (wgpu issue 5173)
        else:
            device.submit(encoder)
            encoder = None
        if read_in_place(device, source, into):
            return
    chunk_nbytes = STAGING_NBYTES - (4 if offset_nbytes % 4 else 0)  # all begin alike within a word

    def begun(start: int) -> Readback:
        readback = Readback(device, STAGING_NBYTES)
        nbytes = min(chunk_nbytes, into.size - start)
        readback.begin(Place(buffer, offset_nbytes + start), nbytes, None if start else encoder)
        return readback

    if into.size <= chunk_nbytes:  # the loop below would take 3 us more, of 50
        readback = begun(0)
        into[...] = readback.wait()
        readback.end()
        return
    starts = range(0, into.size, chunk_nbytes)
    for data, start in zip(arriving(map(begun, starts)), starts, strict=True):
        into[start : start + data.size] = data


def read_in_place(device: Device, source: Place, into: NDArray[np.uint8]) -> bool:
    """Wait for the GPU, then copy from the mapped buffer of a tensor; return whether it could be mapped.

    It cannot while work on it is pending that another thread has submitted meanwhile, and is not where the
    user may submit such work.
    """
    (buffer, offset_nbytes), host = source, device.host
    stop = offset_nbytes + into.size
    nbytes = whole_words(stop)
    with device.calls:
        host.wait_done(device.wgpu_device, device.is_lost)
        with device.mapping_lock:
            if is_given_out(buffer):
                return False
            mapping = begin_mapping(device, buffer, nbytes)
            try:
                if not mapping.is_over():
                    return False
                mapping.wait()  # raises if it has failed
                data = np.frombuffer(host.mapped_bytes(buffer, nbytes), np.uint8)
                into[...] = data[offset_nbytes:stop]
                return True
            finally:
                if not mapping.failure:
                    host.end_mapping(buffer, checked=False)


class ArrayPromise(Awaitable[NDArray[Any]]):
    """An array that is being read back, with the methods of a promise.

    Made by `Tensor.numpy_async`. Several may be pending, and finish in any order.
    """

    def __init__(self, readback: Readback, shape: tuple[int, ...], dtype: DType) -> None:
        self._readback = readback
        self._array = np.empty(shape, dtype)
        self._is_read = False
        self._lock = Lock()

    def sync_wait(self) -> NDArray[Any]:
        """Wait for the array, unless it has arrived.

        Returns
        -------
        numpy.ndarray
            The same writable array for every call.

        Raises
        ------
        DeviceLostError
            The device is lost.
        """
        with self._lock, named("numpy_async"):
            if not self._is_read:
                self._readback.device.check_not_lost()  # a mapping of a lost device is of freed memory
                data = self._readback.wait()
                self._array.reshape(-1).view(np.uint8)[...] = data
                self._is_read = True
                self._readback.end()
        return self._array

    def then(
        self,
        callback: Callable[[NDArray[Any]], T],
        error_callback: Callable[[Exception], T] | None = None,
        title: str | None = None,
    ) -> Task[T]:
        """Call a function with the array, in a task of asyncio's running event loop.

        Parameters
        ----------
        callback, error_callback : callable
            Functions of the array, and of the error if there is none.
        title : str, optional
            Name of the task.

        Returns
        -------
        asyncio.Task
            Of the callback's result.

        Raises
        ------
        RuntimeError
            No event loop of asyncio is running.
        """
        from asyncio import get_running_loop  # and fifty modules more

        async def settled() -> T:
            try:
                array = await self
            except Exception as error:
                if error_callback is None:
                    raise
                return error_callback(error)
            return callback(array)

        loop = get_running_loop()
        task = loop.create_task(settled(), name=title)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    def __await__(self) -> Generator[Any, None, NDArray[Any]]:
        yield from self._readback.mapping.__await__()
        return self.sync_wait()


def begin_download(
    device: Device, source: Place, encoder: CommandEncoder | None, shape: tuple[int, ...], dtype: DType
) -> ArrayPromise:
    """Begin to read an array back, as `download` with a staging buffer for all of it."""
    nbytes = prod(shape) * dtype.itemsize
    sink().check_runs(f"{nbytes} bytes are read back")
    readback = Readback(device, max(source.base % 4 + nbytes, STAGING_NBYTES))
    readback.begin(source, nbytes, encoder)
    return ArrayPromise(readback, shape, dtype)
