"""Where a program of many copies runs: one submission, and buffers that tensors share one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape
from wgslice.dtypes import DType, native_array
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import Operand, Recorder, place
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Planner
from wgslice.rearrange import broadcast
from wgslice.tensors.tensor import Tensor

if TYPE_CHECKING:
    from wgslice.gpu.protocols import Buffer

__all__ = ["MemoryUse", "Workspace", "resolved"]

SMALL_NBYTES = 2**16  # a buffer that is larger, and more than twice as large as needed, is not kept for that


@dataclass(frozen=True)
class MemoryUse:
    """Device memory that a run took.

    Attributes
    ----------
    peak_nbytes : int
        Bytes of the buffers that the run needed, for its inputs, intermediates and outputs. Constants, and
        tensors that the caller gave, are not among them.
    buffers : int
        How many buffers those were.
    tensors_nbytes, tensors : int
        Bytes and number of the tensors that were put into them: what it would have taken without reuse.
    submissions : int
        How often commands were submitted; more than once where a parameter was computed and had to be read.
    """

    peak_nbytes: int
    buffers: int
    tensors_nbytes: int
    tensors: int
    submissions: int

    def __str__(self) -> str:
        return (
            f"{self.peak_nbytes:,} bytes in {self.buffers} buffers, for {self.tensors} tensors of "
            f"{self.tensors_nbytes:,} bytes; submissions: {self.submissions}"
        )


@dataclass(eq=False)
class Slot:
    """Room for a tensor, which gets a buffer when the work on it is submitted."""

    nbytes: int
    label: str = ""
    array: NDArray[np.uint8] | None = None  # bytes to upload before anything is recorded
    given: bool = False  # to the caller, who keeps its buffer
    first: int = 0  # the first and the last step of a submission that uses it
    last: int = 0
    buffer: Buffer | None = None


class Step(NamedTuple):
    """A copy to record, and what errors call it."""

    label: str
    planner: Planner
    source: Operand
    target: Operand


class Workspace:
    """Collects copies between tensors that have no buffers yet; then shares buffers out, records and submits.

    A buffer is shared by tensors of which one is used for the last time before the other is used at all. Its
    tensors are made of layouts only: nothing but `read` and `give_away` may look into them.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.owned: list[Buffer] = []  # what the last run has used, for the next one
        self.begin()

    def begin(self) -> None:
        """Start a run, in which nothing is held."""
        self.label = ""  # of what is being collected
        self.steps: list[Step] = []
        self.waiting: list[Slot] = []  # without a buffer
        self.slots: list[Slot] = []
        self.held: Counter[int] = Counter()  # values in a slot, by its id
        self.submissions = 0

    def end(self) -> MemoryUse:
        """Keep the buffers that this run has used for the next one, and say how many they were.

        `begin` forgets everything else, so that callers' tensors and arrays live no longer than they want.
        """
        buffers = {id(slot.buffer): slot.buffer for slot in self.slots if slot.buffer is not None}
        given = {id(slot.buffer) for slot in self.slots if slot.given}
        self.owned = [buffer for key, buffer in buffers.items() if key not in given]
        return MemoryUse(
            peak_nbytes=sum(buffer.size for buffer in buffers.values()),
            buffers=len(buffers),
            tensors_nbytes=sum(slot.nbytes for slot in self.slots),
            tensors=len(self.slots),
            submissions=self.submissions,
        )

    def empty(self, sizes: Iterable[int], dtype: DType) -> Tensor:
        """A packed tensor of any content."""
        layout = Layout.packed(checked_shape(sizes))
        slot = Slot(layout.size * dtype.itemsize, self.label)
        self.waiting.append(slot)
        self.slots.append(slot)
        return Tensor(self.device, slot, dtype, layout)

    def upload(self, array: NDArray[Any]) -> Tensor:
        """An array, on the device."""
        native = native_array(array)
        tensor = self.empty(native.shape, native.dtype)
        tensor.buffer.array = native.reshape(-1).view(np.uint8)
        return tensor

    def run(self, planner: Planner, source: Operand, target: Operand) -> None:
        """Collect what a planner plans, unless there is nothing to write."""
        if target.layout.size:
            self.steps.append(Step(self.label, planner, source, target))

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Collect a copy of the same dtype, repeated to the target's sizes."""
        layout = broadcast(source.layout, target.shape)
        assert layout is not None
        assert source.dtype == target.dtype
        self.run(plan_copy, Operand(source.buffer, layout, source.dtype.itemsize), target.operand)

    def packed(self, x: Tensor) -> Tensor:
        """A packed copy."""
        copied = self.empty(x.shape, x.dtype)
        self.copy(x, copied)
        return copied

    def submit(self) -> None:
        """Share out buffers, and let the GPU begin with what is collected."""
        self._check_callers_buffers()
        self._share_out()
        for slot in self.waiting:
            if slot.array is not None and slot.array.size:
                upload(self.device, buffer_of(slot), slot.array)
                slot.array = None
        if self.steps:
            encoder = self.device.create_encoder()
            recorder = Recorder(self.device, encoder)
            for label, planner, source, target in self.steps:
                with named(label):
                    read = source._replace(buffer=buffer_of(source.buffer))
                    written = target._replace(buffer=buffer_of(target.buffer))
                    plan, places = place(self.device, planner, read, written)
                    recorder.add(plan, self.device.pipelines.prepare(plan), places)
            recorder.end()
            self.device.submit(encoder)
            self.submissions += 1
        self.steps, self.waiting = [], []

    def _check_callers_buffers(self) -> None:
        """Refuse callers' buffers that are destroyed or mapped, each once: a submission would abort."""
        callers = {
            id(step.source.buffer): step for step in self.steps if not isinstance(step.source.buffer, Slot)
        }
        for step in callers.values():
            with named(step.label):
                check_usable(self.device, step.source.buffer)
                check_alive(self.device, step.source.buffer)

    def _share_out(self) -> None:
        """Give each waiting slot a buffer: one of its own to a caller's, the others take turns."""
        self._find_lifetimes()
        held = [slot for slot in self.slots if self.held[id(slot)]]
        read = [side.buffer for step in self.steps for side in (step.source, step.target)]
        busy = {id(buffer_of(used)) for used in (*held, *read)}
        free = [buffer for buffer in self._kept() if id(buffer) not in busy]
        alone = [[slot] for slot in self.waiting if slot.given]
        sharing = taking_turns(slot for slot in self.waiting if not slot.given)
        for slots in sorted((*sharing, *alone), key=needed_nbytes, reverse=True):
            nbytes = needed_nbytes(slots)
            most = 0 if slots[0].given else max(2 * nbytes, SMALL_NBYTES)
            fitting = [buffer for buffer in free if nbytes <= buffer.size <= most]
            if fitting:
                buffer = min(fitting, key=lambda buffer: buffer.size)
                free.remove(buffer)
            else:
                with named(slots[0].label):
                    buffer = self.device.create_buffer(nbytes)
            for slot in slots:
                slot.buffer = buffer

    def _find_lifetimes(self) -> None:
        """The first and the last step that uses a waiting slot; uploads come before all, held values stay."""
        for slot in self.waiting:
            slot.first, slot.last = len(self.steps), -1
        for number, step in enumerate(self.steps):
            for slot in (step.source.buffer, step.target.buffer):
                if isinstance(slot, Slot) and slot.buffer is None:
                    slot.first, slot.last = min(slot.first, number), max(slot.last, number)
        for slot in self.waiting:
            slot.first = -1 if slot.array is not None else slot.first
            slot.last = len(self.steps) if self.held[id(slot)] else slot.last

    def _kept(self) -> list[Buffer]:
        """Buffers of the last run and of this one that callers do not keep."""
        mine = [slot.buffer for slot in self.slots if slot.buffer is not None and not slot.given]
        return list({id(buffer): buffer for buffer in (*self.owned, *mine)}.values())

    def read(self, x: Tensor) -> NDArray[Any]:
        """Read back, after what is collected."""
        self.submit()
        return resolved(x).numpy()

    def hold(self, value: object) -> None:
        """Keep what lies in the slots of a value."""
        self.held.update(id(tensor.buffer) for tensor in tensors_of(value))

    def drop(self, value: object) -> None:
        """Let the slots of a held value go, where no other value lies in them."""
        self.held.subtract(id(tensor.buffer) for tensor in tensors_of(value))

    def give_away(self, x: Tensor) -> Tensor:
        """A held value as a tensor for the caller to keep: packed, in a buffer that holds nothing else."""
        slot = x.buffer
        own = isinstance(slot, Slot) and slot.buffer is None and not slot.given
        if not (own and x.is_packed and x.nbytes == slot.nbytes):
            x = self.packed(x)
        x.buffer.given = True
        return x


def taking_turns(slots: Iterable[Slot]) -> list[list[Slot]]:
    """Slots that can share a buffer, in as few groups as are used at the same time.

    In the order of their first use, each joins the group that it enlarges least of those done by then.
    """
    groups: list[list[Slot]] = []
    for slot in sorted(slots, key=lambda slot: slot.first):
        done = [group for group in groups if group[-1].last < slot.first]
        if done:
            sizes = [needed_nbytes(group) for group in done]
            growths = [(max(slot.nbytes - nbytes, 0), nbytes) for nbytes in sizes]
            done[growths.index(min(growths))].append(slot)
        else:
            groups.append([slot])
    return groups


def needed_nbytes(slots: Iterable[Slot]) -> int:
    """Bytes of a buffer for slots that share it."""
    return max(slot.nbytes for slot in slots)


def buffer_of(buffer: Any) -> Buffer:
    """The buffer of a slot; any other is one."""
    return buffer.buffer if isinstance(buffer, Slot) else buffer


def resolved(x: Tensor) -> Tensor:
    """A tensor in the buffer that its slot has got."""
    return Tensor(x.device, buffer_of(x.buffer), x.dtype, x.layout)


def tensors_of(value: object) -> list[Tensor]:
    """The tensors in a value: one, none, or those of a sequence."""
    if isinstance(value, list):
        return [tensor for item in value for tensor in tensors_of(item)]
    return [value] if isinstance(value, Tensor) else []
