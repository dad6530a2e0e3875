"""`stream`: slices of what is larger than a GPU, or than memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, SupportsIndex

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.dialects.basic import Selection, basic_index
from wgslice.errors import named
from wgslice.gpu.capture import refuse_in_capture
from wgslice.gpu.device import Device, checked_device
from wgslice.streaming.limits import described_nbytes, limit_nbytes, shares, slots
from wgslice.streaming.pages import as_before
from wgslice.streaming.ring import Ring
from wgslice.streaming.sinks import Sink, check_target
from wgslice.streaming.sources import Source
from wgslice.tensors.tensor import Tensor

__all__ = ["stream"]

LOOK_SECONDS = 0.1  # from one look for an interrupt to the next, where a wait keeps it off: on Windows


def stream(
    source: Any,
    key: Any,
    out: Any = None,
    *,
    limit: SupportsIndex | str = "256 MiB",
    progress: Callable[[float, str], None] | None = None,
    device: Device | str | None = None,
) -> Any:
    """Slice an array that is larger than the GPU, or than memory, block by block into another.

    The blocks that the source really has and the window touches, such as Zarr's chunks, are read once each;
    of sources without blocks, such as memory maps, the pages that the window touches. Reading, upload, copies
    on the GPU, readback and writing overlap.

    Parameters
    ----------
    source : array_like
        What has `shape`, `dtype` and NumPy's basic indexing by slices: a memory map, an array of Zarr, HDF5
        or Dask, or any other array.
    key : int, slice, Ellipsis, None, a tuple of them, or Selection
        NumPy's basic index.
    out : array_like or Tensor, optional
        What to write into, of the result's shape and the source's dtype: anything that takes blocks by
        ``out[slices] = block``, such as a memory map or an array of Zarr, or a tensor. A new array in this
        machine's memory by default.
    limit : int or str
        Most bytes to take for all that is on its way, here and on the device together, such as ``"256 MiB"``
        or ``2**28``. Source and target themselves, and the device, are not counted.
    progress : callable, optional
        Called now and then with how much is done, from 0 to 1, and with how much that is in words.
    device : Device or str, optional
        Or a part of an adapter's name or backend. By default that of `out` where it is a tensor, or else
        `default_device()`.

    Returns
    -------
    array_like or Tensor
        `out`, or the new array, in native byte order. All has been written.

    Raises
    ------
    IndexError, TypeError
        NumPy's, of the key; arrays of indices and masks are refused.
    ValueError, TypeError
        The limit is none or below 1 KiB, the rank is above 8, the dtype is not one of 1, 2, 4, 8 or 16 bytes,
        `out` differs in shape or dtype, cannot be written, or overlaps the source in memory, in its file or
        in its store, or its device is not `device`. Nothing has been written then.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is gone.

    Notes
    -----
    What the source or `out` raise ends it, and so does Ctrl-C: what has been written of `out` by then stays
    so. One thread reads the source and another one writes `out`, none of them the caller's.

    A block that takes more than an eighth of the limit is read in parts, and so more than once. The target's
    blocks, such as Zarr's chunks, are written once each where memory allows that beside reading once.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> volume = np.arange(4 * 5 * 6).reshape(4, 5, 6)  # as well: np.load("volume.npy", mmap_mode="r")
    >>> wg.stream(volume, np.s_[1, ::-2, 2:4], limit="1 MiB")
    array([[56, 57],
           [44, 45],
           [32, 33]])
    """
    with named("stream"):
        opened = Source.of(source)
        if len(opened.shape) > MAX_RANK:
            raise ValueError(f"the source has rank {len(opened.shape)}: the rank must be 0 to {MAX_RANK}")
    selection = selected(opened.shape, key)
    with named("stream"):
        nbytes = limit_nbytes(limit)
        if out is None:
            out = np.empty(selection.shape, opened.dtype)
        else:
            check_target(out, selection.shape, opened.dtype, opened)
        chosen = device_for(out, device)
    if 0 in selection.shape:
        return out
    with named("stream"):
        refuse_in_capture("blocks go through threads of their own")
    target = out if isinstance(out, Tensor) else Sink(out)
    tiles = target.starts if isinstance(target, Sink) else None
    walk = opened.walk(selection, tiles, shares(nbytes, chosen.largest_buffer_nbytes))
    ring = Ring(chosen, opened, target, walk, slots(nbytes, walk.piece_nbytes, walk.tile_nbytes))
    try:
        run(ring, walk.elements * opened.dtype.itemsize, progress)
    finally:
        as_before(source)
    return out


def run(ring: Ring, nbytes: int, progress: Callable[[float, str], None] | None) -> None:
    """Let a ring run elsewhere, and tell what it tells, until it is done or an interrupt arrives here."""
    told: SimpleQueue[int | None] = SimpleQueue()
    done = 0
    with ThreadPoolExecutor(1, "wgslice-stream") as moving:
        moved = moving.submit(ring.run, told.put)
        moved.add_done_callback(lambda _: told.put(None))
        try:
            while (elements := next_of(told)) is not None:
                done += elements * ring.source.dtype.itemsize
                if progress is not None:
                    progress(done / nbytes, f"{described_nbytes(done)} of {described_nbytes(nbytes)}")
        finally:
            ring.stopped.set()
        moved.result()


def next_of(told: SimpleQueue[int | None]) -> int | None:
    """How many elements more have arrived, once some have; None where nothing is told any more."""
    while True:
        with suppress(Empty):
            return told.get(timeout=LOOK_SECONDS)


def selected(shape: tuple[int, ...], key: Any) -> Selection:
    """What a key selects; sizes may be any here, since no tensor has them."""
    try:
        if isinstance(key, Selection):
            key.check(shape)
            return key
        return basic_index(shape, key)
    except (IndexError, TypeError, ValueError) as error:
        raise type(error)(f"stream: key: {error}") from None


def device_for(out: Any, device: Device | str | None) -> Device:
    """The device to go through, which for a tensor is its own."""
    if not isinstance(out, Tensor):
        return checked_device(device)
    if device is not None and checked_device(device) is not out.device:
        raise ValueError(f"out is on {out.device}, not on {device}: leave device= out")
    return out.device
