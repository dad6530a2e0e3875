"""wgslice, its own baseline kernel, and the copy that no slice can beat, on the adapter WGSLICE_ADAPTER."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import wgpu
from numpy.typing import NDArray

import wgslice as wg
from bench.cases import Cut
from wgslice.dialects.basic import numpy_index
from wgslice.gpu.device import MAPPABLE
from wgslice.gpu.protocols import BytesCopy, Place
from wgslice.gpu.recording import Recorder
from wgslice.layout import Layout, whole_words
from wgslice.plans.facade import span_of, split
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.steps import Dispatch, dispatch_of

__all__ = [
    "BufferCopy",
    "Clocked",
    "Loop",
    "Slice1Kernel",
    "Wgslice",
    "describe",
    "device",
    "dispatch",
    "stopwatch",
    "submit_pass",
]

TIMESTAMPS = "timestamp-query"


def request_device() -> wg.Device:
    """The device that a user would get, with timestamps where the adapter has them."""
    users = wg.Device.request(os.environ.get("WGSLICE_ADAPTER"))
    features = [MAPPABLE] * users.maps_tensors + [TIMESTAMPS] * (TIMESTAMPS in users.adapter.handle.features)
    return wg.Device.wrap(users.adapter.handle.request_device_sync(required_features=features))


device = request_device()


def describe() -> dict[str, str]:
    """Versions, adapter and driver."""
    adapter = device.adapter
    return {
        "wgslice": wg.__version__,
        "wgpu": wgpu.__version__,
        "adapter": str(adapter),
        "kind": adapter.kind,
        "driver": adapter.driver,
    }


device_submit = type(device).submit


class Stopwatch:
    """Timestamps before and after the commands of the device.

    Ticks count as nanoseconds, as on software adapters and NVIDIA's; wgpu-py does not report their period.
    """

    def __init__(self) -> None:
        queue_device = device.wgpu_device
        self.queries = queue_device.create_query_set(type="timestamp", count=2)
        self.resolved = queue_device.create_buffer(
            size=16, usage=wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        )
        self.total = 0.0

    def seconds(self, action: Callable[[], None]) -> float:
        """The GPU's own time for what an action submits."""
        self.total = 0.0
        with patch.object(device, "submit", self.submit):  # which readback calls too
            action()
        return self.total

    def submit(self, encoder: Any, copy: BytesCopy | None = None) -> None:
        """Add the time of an encoder's commands, between two empty passes; submit a copy after them."""
        if encoder is None:
            device_submit(device, None, copy)
            return
        before, behind = (device.wgpu_device.create_command_encoder() for _ in range(2))
        self.mark(before, "end_of_pass_write_index", 0)
        self.mark(behind, "beginning_of_pass_write_index", 1)
        behind.resolve_query_set(self.queries, 0, 2, self.resolved, 0)
        device.queue.submit([each.finish() for each in (before, encoder, behind)])
        start, stop = np.frombuffer(device.wgpu_device.queue.read_buffer(self.resolved), np.uint64)
        self.total += int(stop - start) / 1e9
        if copy is not None:
            device_submit(device, None, copy)

    def mark(self, encoder: Any, moment: str, query: int) -> None:
        """Record a timestamp."""
        encoder.begin_compute_pass(timestamp_writes={"query_set": self.queries, moment: query}).end()


stopwatch = Stopwatch() if TIMESTAMPS in device.wgpu_device.features else None


def dispatch(compute_pass: Any, pipeline: Any, bind_group: Any, workgroups: Sequence[int]) -> None:
    """Record a dispatch by bare wgpu."""
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, bind_group)
    compute_pass.dispatch_workgroups(*workgroups)


def submit_pass(record: Callable[[Any], None]) -> None:
    """Submit a pass that a function records."""
    encoder = device.wgpu_device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    record(compute_pass)
    compute_pass.end()
    device.queue.submit([encoder.finish()])


class Clocked:
    """Work that the GPU's own clock can time, and that leaves its output in a tensor."""

    out: Any

    def start(self) -> None:
        """Do it, without waiting."""
        raise NotImplementedError

    def run(self) -> None:
        """Do it, wait."""
        self.start()
        device.synchronize()

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        result: NDArray[Any] = self.out.numpy()
        return result

    def gpu_seconds(self) -> float | None:
        """One more run, timed by the GPU itself, where it has timestamps."""
        return stopwatch.seconds(self.run) if stopwatch else None


class Loop(Clocked):
    """Thousands of submissions, which have no single plan for the GPU's clock to time."""

    def gpu_seconds(self) -> None:
        """Return nothing."""


class Recorded(Clocked):
    """Recorded commands, timed with submission and wait."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.x = wg.permute(wg.asarray(array, device=device), cut.axes)
        self.view = self.x[cut.key]
        self.out = wg.empty(self.view.shape, self.view.dtype, device=device)

    def record(self, encoder: Any) -> None:
        """Record the work."""
        raise NotImplementedError

    def start(self) -> None:
        """Record, submit."""
        encoder = device.new_encoder()
        self.record(encoder)
        device.submit(encoder)


class Wgslice(Recorded):
    """wgslice's operator, compiled, with `out=` given."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        super().__init__(array, cut)
        window = numpy_index(self.x.shape, cut.key).window
        kept = window.max_output_sizes
        self.out = wg.empty(kept, array.dtype, device=device)
        input = wg.TensorDesc(array.dtype, self.x.shape, self.x.layout.strides)
        self.operator = device.compile(
            wg.Slice1(input, wg.TensorDesc(array.dtype, kept), window.offsets, window.sizes, window.strides)
        )

    def record(self, encoder: Any) -> None:
        """Record the operator."""
        self.operator.record(encoder, input=self.x, output=self.out)

    def start(self) -> None:
        """Call the operator."""
        self.operator(self.x, out=self.out)

    def note(self) -> str:
        """The plan in a line."""
        return self.operator.plan.summary


class Slice1Kernel(Recorded):
    """`wgsl/slice1.wgsl` on the slice as given: not coalesced or widened, one element per invocation."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        super().__init__(array, cut)
        width = array.itemsize
        pieces = split(self.view.layout, self.out.layout, width, device.limits)
        steps = tuple(self.step(source, target, width) for source, target in pieces)
        self.plan = Plan(self.out.nbytes, width, width, self.view.layout, self.out.layout, steps)

    def step(self, source: Layout, target: Layout, width: int) -> Dispatch:
        """The baseline kernel on layouts that fit in a binding each."""
        bindings = span_of(source, width, device.limits), span_of(target, width, device.limits)
        source, target = (
            layout.shifted(-(binding.offset_nbytes // width))
            for layout, binding in zip((source, target), bindings, strict=True)
        )
        return dispatch_of(Kernel.SLICE1, source, target, width, bindings, device.limits, "baseline")

    def record(self, encoder: Any) -> None:
        """Record the dispatches."""
        recorder = Recorder(device, encoder)
        places = Place(self.x.buffer), Place(self.out.buffer)
        recorder.add(self.plan, places)
        recorder.end()


class BufferCopy(Recorded):
    """A plain buffer copy of the same number of bytes: the limit of the memory."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        packed = np.ascontiguousarray(cut.of(array))
        super().__init__(packed, Cut(tuple(range(packed.ndim)), ()))

    def record(self, encoder: Any) -> None:
        """Record the copy."""
        nbytes = whole_words(self.x.nbytes)
        encoder.copy_buffer_to_buffer(self.x.buffer, 0, self.out.buffer, 0, nbytes)
