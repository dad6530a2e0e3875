"""Where the calls of a thread go: to the GPU, or onto a list that is explained, replayed or saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import local
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import CaptureRefused, OutOfDeviceMemory
from wgslice.gpu.adapter import check_process
from wgslice.gpu.device import TENSOR_USAGES, Device, buffer_nbytes
from wgslice.gpu.pipelines import ReadyCommand
from wgslice.gpu.protocols import Buffer, CommandEncoder, Lease, Place, Placeholder
from wgslice.layout import whole_words
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import PATTERN_NBYTES, UPLOAD_CHUNK_NBYTES
from wgslice.plans.steps import Clear, Memory


class ReadyPlan(NamedTuple):
    """A plan with its buffers: recording it makes no GPU object."""

    plan: Plan
    places: Sequence[Place]  # callers' first: input, output and offsets
    commands: Sequence[ReadyCommand] = ()  # none in a listed call


class Sink:
    """Receives whatever a call does on a device, and runs it on the GPU; `Listing` lists it instead."""

    runs = True  # whether calls do anything on the GPU
    makes_zeros = True  # whether a zeroed buffer costs no more than another

    def create_buffer(self, device: Device, nbytes: int, *, zeroed: bool = True) -> Buffer:  # noqa: ARG002 -- of Listing
        """Make a zeroed buffer for tensors of at least `nbytes`; listed calls rely on zeros if `zeroed`."""
        buffer = device.new_buffer(checked_nbytes(device, nbytes), device.tensor_usages)
        return Lease(device.wgpu_device, buffer)

    def reused_buffer(self, device: Device, nbytes: int, *, zeroed: bool = False) -> Buffer:
        """Make a buffer for a tensor, of any content unless `zeroed`, with zeros after the `nbytes`.

        Reuses the memory of a released buffer of the same size if there is one, and returns it to the pool
        with the last reference, unless it has been `exposed`. Commands that use the buffer must be submitted
        before that: the queue orders them before those of the next tensor.
        """
        return device.pooled_buffer(nbytes, checked_nbytes(device, nbytes), zeroed=zeroed)

    def upload(self, device: Device, buffer: Buffer, data: NDArray[np.uint8], offset_nbytes: int = 0) -> None:
        """Write contiguous bytes at a word offset into a buffer with capacity for them in whole words.

        They are written before the commands of any later submission.
        """
        whole, written = data.size // 4 * 4, 0
        try:
            for start in range(0, whole, UPLOAD_CHUNK_NBYTES):
                chunk = data[start : min(start + UPLOAD_CHUNK_NBYTES, whole)]
                device.write(buffer, offset_nbytes + start, chunk)
                written = start + chunk.size
            if whole < data.size:
                last_word = np.pad(data[whole:], (0, whole + 4 - data.size))
                device.write(buffer, offset_nbytes + whole, last_word)
        except BaseException as error:
            if written:
                error.add_note(f"the first {written} of {data.size} bytes have been uploaded")
            raise

    def constant(self, device: Device, values: NDArray[Any], count: int = 1) -> Buffer:
        """Return a buffer of few values `count` times that is never written; equal values share one."""
        with suppress(OutOfDeviceMemory), device.calls:
            return device.pipelines.constant(values.tobytes(), count)
        data = repeated(values, count)
        buffer = self.create_buffer(device, data.size)  # which frees buffers that are kept for reuse
        self.upload(device, buffer, data)
        return buffer

    def bind(self, device: Device, plan: Plan, places: Sequence[Place]) -> ReadyPlan:
        """Make the bind groups and scratch buffers of a plan."""
        if plan.copies:
            return ReadyPlan(plan, places, [(step, places) for step in plan.copies])
        commands = device.pipelines.prepare(plan)
        # a plan that is bound once may be recorded again and again
        zeroed = [Clear(0, nbytes, memory) for memory, nbytes in plan.scratch if memory is Memory.WINNERS]
        places = with_scratch(
            plan,
            places,
            lambda memory, n: device.zeros if memory is Memory.ZEROS else self.create_buffer(device, n),
        )
        return ReadyPlan(plan, places, device.pipelines.bind_all([*zeroed, *commands], places))

    def check_runs(self, what: str) -> None:
        """Raise CaptureRefused, naming a step that needs the GPU, if calls do not run."""


class ListedUpload(NamedTuple):
    """Bytes written into a buffer before any later submission runs."""

    place: Place
    data: NDArray[np.uint8]
    kept: bool = False  # whether later calls with equal bytes upload nothing


@dataclass(frozen=True, eq=False)
class ListedSubmission:
    """Plans of one submission, in place of the command encoder that would record them."""

    recorded: list[ReadyPlan] = field(default_factory=list)


ListedStep: TypeAlias = ListedUpload | ListedSubmission


class Listing(Sink):
    """Lists uploads and submissions of a call in order; its new buffers are placeholders."""

    runs = False
    call: str  # how errors name a listed call
    verb: str  # what lists it
    remedy = ""

    def __init__(self) -> None:
        self.steps: list[ListedStep] = []

    def add(self, step: ListedStep) -> None:
        """List a step."""
        self.steps.append(step)

    def create_buffer(self, device: Device, nbytes: int, *, zeroed: bool = True) -> Buffer:
        """Make a placeholder."""
        checked_nbytes(device, nbytes)
        return placeholder(device, nbytes, zeroed=zeroed)

    def reused_buffer(self, device: Device, nbytes: int, *, zeroed: bool = False) -> Buffer:
        """Make a placeholder."""
        return self.create_buffer(device, nbytes, zeroed=zeroed)

    def upload(
        self,
        device: Device,  # noqa: ARG002 -- of what runs
        buffer: Buffer,
        data: NDArray[np.uint8],
        offset_nbytes: int = 0,
    ) -> None:
        """Add an upload."""
        self.add(ListedUpload(Place(buffer, offset_nbytes), data))

    def constant(self, device: Device, values: NDArray[Any], count: int = 1) -> Buffer:
        """Add an upload, made once for equal bytes."""
        data = repeated(values, count)
        buffer = self.create_buffer(device, data.size)
        self.add(ListedUpload(Place(buffer), data, kept=True))
        return buffer

    def bind(self, device: Device, plan: Plan, places: Sequence[Place]) -> ReadyPlan:  # noqa: ARG002 -- of what runs
        """Return the plan without commands."""
        return ReadyPlan(plan, places)

    def list_plan(self, encoder: CommandEncoder, bound: ReadyPlan) -> None:
        """Add a plan to its submission; a plan for a caller's encoder gets its own submission."""
        bound = bound._replace(commands=())
        if isinstance(encoder, ListedSubmission):
            encoder.recorded.append(bound)
        else:
            self.add(ListedSubmission([bound]))

    def submit(self, encoder: CommandEncoder) -> None:
        """Add the submission that replaces an encoder."""
        if not isinstance(encoder, ListedSubmission):
            self.check_runs("commands that were recorded before are submitted")
        else:
            self.add(encoder)

    def check_runs(self, what: str) -> None:
        """Raise CaptureRefused."""
        raise CaptureRefused(
            f"{what}, which {self.call} call cannot do, since it does not run: {self.verb} the calls before "
            "and after it, with NumPy arrays in place of its results, such as x[np.asarray(mask)] for "
            f"x[mask]{self.remedy}"
        )


class Explaining(Listing):
    """Lists a call to print it."""

    call, verb, remedy = "an explained", "explain", ", or x[::2] instead of x[::2].numpy()"


class Capturing(Listing):
    """Lists a call to replay or save it, with its own copies of bytes, which the caller may change."""

    call, verb = "a captured", "capture"

    def add(self, step: ListedStep) -> None:
        """List a step, an upload with a copy of its bytes."""
        super().add(step._replace(data=step.data.copy()) if isinstance(step, ListedUpload) else step)


RUNNING = Sink()


class Current(local):
    """The sink of a thread."""

    sink: Sink = RUNNING


current = Current()


def sink() -> Sink:
    """Return the sink of this thread's calls."""
    return current.sink


@contextmanager
def using(receiver: Sink) -> Iterator[None]:
    """Send this thread's calls to a sink until the block ends."""
    before, current.sink = current.sink, receiver
    try:
        yield
    finally:
        current.sink = before


def placeholder(device: Device, nbytes: int, *, zeroed: bool = True) -> Buffer:
    """Make a placeholder, of any size and without memory, for a buffer of a listed call."""
    return Placeholder(device.wgpu_device, buffer_nbytes(nbytes), TENSOR_USAGES, whole_words(nbytes), zeroed)


def checked_nbytes(device: Device, nbytes: int) -> int:
    """Return the bytes of a buffer for tensors of `nbytes`; raise ValueError beyond the largest buffer."""
    check_process()
    size = buffer_nbytes(nbytes)
    if size > device.largest_buffer_nbytes:
        raise ValueError(
            f"a buffer of {size} bytes: {device} allows at most {device.largest_buffer_nbytes}; "
            "use smaller tensors"
        )
    return size


def repeated(values: NDArray[Any], count: int) -> NDArray[np.uint8]:
    """Return the bytes of values, `count` times."""
    return np.frombuffer(values.tobytes() * count, np.uint8)


def with_scratch(
    plan: Plan, places: Sequence[Place], make: Callable[[Memory, int], Buffer]
) -> Sequence[Place]:
    """Return places for all memories of a plan; `make` returns a buffer of at least the given bytes."""
    needed = [*plan.scratch, *[(Memory.ZEROS, PATTERN_NBYTES)] * plan.reads_zeros]
    if not needed:
        return places
    by_memory = dict(enumerate(places)) | {memory: Place(make(memory, n)) for memory, n in needed}
    return [by_memory.get(memory, places[Memory.OUTPUT]) for memory in Memory]
