"""Time of the commands that a thread submits, by the GPU's clock or the host's."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from wgslice.errors import fitted, named
from wgslice.gpu.device import TIMESTAMPS, AnyDevice, Device, checked_device, timings
from wgslice.gpu.protocols import BufferUsage, Place
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import download

QUERY_NBYTES = 8  # a timestamp
RESOLVED = 0x200  # WebGPU's usage of a buffer that queries are resolved into


class timed:  # noqa: N801 -- reads as a function where it is used
    """Times the commands that this thread submits in a block, and waits for them at its end.

    Parameters
    ----------
    device : Device or str, optional
        Where the commands run; the default device otherwise.

    Attributes
    ----------
    seconds : float
        From the first to the last command that the thread submits in the block; 0.0 if it submits none, and
        until the block ends.
    clock : str
        "gpu" where the device was made with ``timestamps=True``; "host" counts the submissions and the wait
        too.

    Raises
    ------
    RuntimeError
        A block of this thread is being timed.
    CaptureRefused
        The call is explained or captured.
    DeviceLostError, OutOfDeviceMemory
        The device is lost, or has no memory left.

    Notes
    -----
    Commands that the caller submits to the queue itself, and those of other threads, run in between, but
    neither begin nor end the time.

    Examples
    --------
    >>> import wgslice as wg
    >>> x = wg.arange(1000)
    >>> with wg.timed() as t:
    ...     y = x[::-1].copy()
    >>> t.clock, t.seconds > 0
    ('host', True)
    """

    @fitted()
    def __init__(self, device: AnyDevice = None) -> None:
        self.seconds = 0.0
        with named("timed"):
            self.device = checked_device(device)
            wgpu_device = self.device.wgpu_device
        self._period_ns = self.device.host.timestamp_period_ns(wgpu_device)
        self.clock = "gpu" if TIMESTAMPS in wgpu_device.features and self._period_ns else "host"
        self._begun_s: float | None = None
        self._queries: Any = None

    def __enter__(self) -> timed:
        with named("timed"):
            sink().check_runs("a block is timed")
            if getattr(timings, "current", None) is not None:
                raise RuntimeError("timed: a block of this thread is being timed: end it before the next one")
            if self.clock == "host":
                self.device.synchronize()
            else:
                self._queries = self.device.wgpu_device.create_query_set(type="timestamp", count=2)
        timings.current = self
        return self

    def begin(self, device: Device) -> None:
        """Begin with the first command that is submitted to the device."""
        if self._begun_s is None and device is self.device:
            self._begun_s = perf_counter()
            if self._queries is not None:
                self._stamp("beginning_of_pass_write_index", 0)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        timings.current = None
        if error is None and self._begun_s is not None:
            with named("timed"):
                if self._queries is None:
                    self.device.synchronize()
                    self.seconds = perf_counter() - self._begun_s
                else:
                    self._stamp("end_of_pass_write_index", 1)
                    self.seconds = self._read_s()
        self._queries = None

    def _stamp(self, which: str, number: int) -> None:
        """Submit a pass that writes a timestamp."""
        encoder: Any = self.device.new_encoder()
        with self.device.calls:
            encoder.begin_compute_pass(timestamp_writes={"query_set": self._queries, which: number}).end()
            self.device.host.submit(self.device.wgpu_device, encoder)

    def _read_s(self) -> float:
        """Wait for both timestamps, and return the seconds between them."""
        usage = RESOLVED | BufferUsage.COPY_SRC
        buffer = self.device.new_buffer(2 * QUERY_NBYTES, usage)
        encoder: Any = self.device.new_encoder()
        encoder.resolve_query_set(self._queries, 0, 2, buffer, 0)
        ticks = np.empty(2, np.uint64)
        download(self.device, Place(buffer), ticks.view(np.uint8), encoder)
        return int(ticks[1] - ticks[0]) * (self._period_ns or 0) * 1e-9
