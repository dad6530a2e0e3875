"""What a graph consists of while it runs: values, the copies between them, and buffers that values share."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape
from wgslice.dialects.advanced import AdvancedSelection, advanced_index
from wgslice.dialects.basic import numpy_shape
from wgslice.dtypes import DType, native_array
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, Planning, Recorder
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.layout_rules import reshaped
from wgslice.plans.copy import plan_anew, plan_copy, planned
from wgslice.plans.gather import WindowCopy, indexed_windows
from wgslice.plans.indexing import copy_at_once
from wgslice.plans.plan import Planner
from wgslice.plans.profiles import SMALL_NBYTES
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import Shaped
from wgslice.tensors.tensor import Tensor

T = TypeVar("T")
R = TypeVar("R")
Nested: TypeAlias = "T | list[Nested[T]] | None"  # one, a sequence of them, or an optional that is absent
MAX_CONSTANTS = 16


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
    """Room for a value, which gets a buffer when the work on it is submitted."""

    nbytes: int
    label: str = ""
    array: NDArray[np.uint8] | None = None  # bytes to upload before anything is recorded
    exported: bool = False  # to the caller, who keeps its buffer
    first: int = sys.maxsize  # the first and the last task of a submission that uses it
    last: int = -1
    buffer: Buffer | None = None


def group_by_lifetime(slots: Iterable[Slot]) -> list[list[Slot]]:
    """Slots that can share a buffer, in as few groups as are used at the same time.

    In the order of their first use, each joins the group that it enlarges least of those done by then.
    """
    groups: list[list[Slot]] = []
    for slot in sorted(slots, key=lambda slot: slot.first):
        done = [group for group in groups if group[-1].last < slot.first]
        if done:
            growths = [(max(slot.nbytes - nbytes, 0), nbytes) for nbytes in map(needed_nbytes, done)]
            done[growths.index(min(growths))].append(slot)
        else:
            groups.append([slot])
    return groups


def needed_nbytes(slots: Iterable[Slot]) -> int:
    """Bytes of a buffer for slots that share it."""
    return max(slot.nbytes for slot in slots)


@dataclass(frozen=True, eq=False, slots=True)
class Value(Shaped):
    """A window on memory that is a caller's buffer, or a slot that gets one when the work is submitted."""

    memory: Slot | Buffer
    dtype: DType
    layout: Layout

    @classmethod
    def of(cls, tensor: Tensor) -> Value:
        """What a caller's tensor holds."""
        return cls(tensor.buffer, tensor.dtype, tensor.layout)

    @property
    def buffer(self) -> Buffer:
        """Where it lies; only after its submission, if in a slot."""
        buffer = self.memory.buffer if isinstance(self.memory, Slot) else self.memory
        assert buffer is not None
        return buffer

    @property
    def bound_layout(self) -> BoundLayout:
        """This value as a side of a copy."""
        return BoundLayout(self.buffer, self.layout, self.dtype.itemsize)

    def viewed(self, layout: Layout) -> Value:
        """Another view of the same memory."""
        return Value(self.memory, self.dtype, layout)


def as_value(position: int, given: Nested[Value]) -> Value:
    """A node's input, refused where it is no tensor."""
    if not isinstance(given, Value):
        raise TypeError(f"input {position} is of type {type(given).__name__}: must be a tensor")
    return given


def values_of(nested: Nested[Value]) -> Iterator[Value]:
    """The values in what a name stands for."""
    if isinstance(nested, list):
        for item in nested:
            yield from values_of(item)
    elif nested is not None:
        yield nested


def each(function: Callable[[T], R]) -> Callable[[Nested[T]], Nested[R]]:
    """A function of one as a function of all that a name stands for."""

    def of_all(nested: Nested[T]) -> Nested[R]:
        if isinstance(nested, list):
            return [of_all(item) for item in nested]
        return None if nested is None else function(nested)

    return of_all


class Task(NamedTuple):
    """A copy to record, and what errors call it."""

    label: str
    planner: Planner
    source: Value
    target: Value
    planning: Planning


class Workspace:
    """Collects copies between values that have no buffers yet; then shares buffers out, records and submits.

    It is a sink of the layout rules. A buffer is shared by values of which one is used for the last time
    before the other is used at all.
    """

    makes_zeros = False  # since buffers are used again

    def __init__(self, device: Device) -> None:
        self.device = device
        self.owned: list[Buffer] = []  # what the last run has used, for the next one
        self.constants: dict[tuple[DType, bytes], Value] = {}  # what borders consist of, for all runs
        self.begin()

    def begin(self) -> None:
        """Start a run, in which nothing is held."""
        self.label = ""  # of what is being collected
        self.tasks: list[Task] = []
        self.waiting: list[Slot] = []  # without a buffer
        self.slots: list[Slot] = []
        self.held: Counter[int] = Counter()  # values in a slot, by its id
        self.submissions = 0

    def duplicate(self) -> Workspace:
        """Another one between runs, with the same buffers and constants."""
        other = Workspace(self.device)
        other.owned, other.constants = [*self.owned], {**self.constants}
        return other

    def end(self) -> MemoryUse:
        """Keep the buffers that this run has used for the next one, and say how many they were."""
        buffers = {id(slot.buffer): slot.buffer for slot in self.slots if slot.buffer is not None}
        given = {id(slot.buffer) for slot in self.slots if slot.exported}
        self.owned = [buffer for key, buffer in buffers.items() if key not in given]
        return MemoryUse(
            peak_nbytes=sum(buffer.size for buffer in buffers.values()),
            buffers=len(buffers),
            tensors_nbytes=sum(slot.nbytes for slot in self.slots),
            tensors=len(self.slots),
            submissions=self.submissions,
        )

    def empty(
        self,
        sizes: Iterable[int],
        dtype: DType,
        *,
        zeroed: bool = False,  # noqa: ARG002 -- the protocol's, for sinks that make zeros
    ) -> Value:
        """A packed value of any content, also where zeros are asked for."""
        layout = Layout.packed(checked_shape(sizes))
        slot = Slot(layout.size * dtype.itemsize, self.label)
        self.waiting.append(slot)
        self.slots.append(slot)
        return Value(slot, dtype, layout)

    def upload(self, given: NDArray[Any] | Tensor) -> Value:
        """An array, on the device; a tensor as it is."""
        if isinstance(given, Tensor):
            return Value.of(given)
        native = native_array(given)
        value = self.empty(native.shape, native.dtype)
        assert isinstance(value.memory, Slot)
        value.memory.array, value.memory.first = native.reshape(-1).view(np.uint8), -1
        return value

    def constant(self, element: NDArray[Any], count: int) -> Value:
        """An element at least so often, kept like the graph's constants."""
        key = element.dtype, element.tobytes()
        kept = self.constants.get(key)
        if kept is None or kept.size < count:
            if len(self.constants) >= MAX_CONSTANTS:
                self.constants.clear()
            kept = Value.of(asarray(np.full(count, element), device=self.device))
            self.constants[key] = kept
        return kept

    def run(self, planner: Planner, source: Value, target: Value, planning: Planning = planned) -> None:
        """Collect what a planner plans, unless there is nothing to write."""
        if target.size:
            for memory in (source.memory, target.memory):
                if isinstance(memory, Slot):
                    memory.first, memory.last = min(memory.first, len(self.tasks)), len(self.tasks)
            self.tasks.append(Task(self.label, planner, source, target, planning))

    def copy(self, source: Value, read: Layout, target: Value, written: Layout) -> None:
        """Collect a copy of a layout in one value to a layout in another, of the same sizes and dtype."""
        assert (source.dtype, read.sizes) == (target.dtype, written.sizes)
        self.run(plan_copy, source.viewed(read), target.viewed(written))

    def copy_at(self, selection: AdvancedSelection, tensor: Value, other: Value, *, reads: bool) -> None:
        """Collect copies between what a selection takes of a value and another of its shape."""
        if not other.size:
            return
        limits = self.device.limits
        itemsize = tensor.dtype.itemsize
        at_once = copy_at_once(selection, tensor.layout, other.layout, itemsize, limits, reads=reads)
        if at_once:
            copies: Iterable[WindowCopy] = [at_once]
        else:
            found = indexed_windows(selection, tensor.layout, other.layout, reads=reads)
            if found is None:
                other = self.packed(other)
                found = indexed_windows(selection, tensor.layout, other.layout, reads=reads)
            assert found is not None  # the dimensions of a packed value merge
            copies = found.copies(limits)
        source, target = (tensor, other) if reads else (other, tensor)
        for planner, read, written in copies:
            self.run(planner, source.viewed(read), target.viewed(written), plan_anew)

    def gathered(self, x: Value, key: Sequence[Any]) -> Value:
        """A copy of what an index with arrays of int64 selects."""
        selection = advanced_index(x.shape, key)
        result = self.empty(selection.shape, x.dtype)
        self.copy_at(selection, x, result, reads=True)
        return result

    def reshaped(self, x: Value, shape: Sequence[int]) -> Value:
        """A value over other sizes, of which one may be -1: a view where that can be, else a packed copy."""
        sizes = numpy_shape(shape, x.size)
        layout = reshaped(x.layout, sizes)
        return x.viewed(layout) if layout else self.packed(x).viewed(Layout.packed(sizes))

    def packed(self, x: Value) -> Value:
        """A packed copy."""
        copied = self.empty(x.shape, x.dtype)
        self.copy(x, x.layout, copied, copied.layout)
        return copied

    def readable(self, x: Value) -> Value:
        """A packed value of the same elements, which is read without a copy of its own."""
        return x if x.is_packed else self.packed(x)

    def submit(self) -> None:
        """Share out buffers, and let the GPU begin with what is collected."""
        callers = {id(task.source.memory): task for task in self.tasks}
        for task in callers.values():
            if not isinstance(task.source.memory, Slot):
                with named(task.label):  # of a destroyed or mapped buffer a submission would abort
                    check_usable(self.device, task.source.memory)
                    check_alive(self.device, task.source.memory)
        self._assign_buffers()
        for slot in self.waiting:
            if slot.array is not None and slot.array.size:
                assert slot.buffer is not None
                upload(self.device, slot.buffer, slot.array)
                slot.array = None
        if self.tasks:
            encoder = self.device.create_encoder()
            recorder = Recorder(self.device, encoder)
            for label, planner, source, target, planning in self.tasks:
                with named(label):
                    recorder.copy(planner, source.bound_layout, target.bound_layout, planning=planning)
            recorder.end()
            self.device.submit(encoder)
            self.submissions += 1
        self.tasks, self.waiting = [], []

    def _assign_buffers(self) -> None:
        """Give each waiting slot a buffer: one of its own to a caller's, the others take turns."""
        for slot in self.waiting:
            slot.first = min(slot.first, len(self.tasks))
            if self.held[id(slot)]:
                slot.last = len(self.tasks)
        held = [slot for slot in self.slots if self.held[id(slot)]]
        used = [side.memory for task in self.tasks for side in (task.source, task.target)]
        busy = {id(memory.buffer if isinstance(memory, Slot) else memory) for memory in (*held, *used)}
        assigned = [slot.buffer for slot in self.slots if slot.buffer is not None and not slot.exported]
        kept = {id(buffer): buffer for buffer in (*self.owned, *assigned)}
        free = [buffer for key, buffer in kept.items() if key not in busy]
        alone = [[slot] for slot in self.waiting if slot.exported]
        sharing = group_by_lifetime(slot for slot in self.waiting if not slot.exported)
        for slots in sorted((*sharing, *alone), key=needed_nbytes, reverse=True):
            nbytes = needed_nbytes(slots)
            most = 0 if slots[0].exported else max(2 * nbytes, SMALL_NBYTES)
            fitting = [buffer for buffer in free if nbytes <= buffer.size <= most]
            if fitting:
                buffer = min(fitting, key=lambda buffer: buffer.size)
                free.remove(buffer)
            else:
                with named(slots[0].label):
                    buffer = self.device.create_buffer(nbytes)
            for slot in slots:
                slot.buffer = buffer

    def tensor(self, x: Value) -> Tensor:
        """A value whose work is submitted, as a tensor."""
        return Tensor(self.device, x.buffer, x.dtype, x.layout)

    def read(self, x: Value) -> NDArray[Any]:
        """Read back, after what is collected."""
        self.submit()
        return self.tensor(x).numpy()

    def hold(self, nested: Nested[Value]) -> None:
        """Keep what lies in the memory of values."""
        self.held.update(id(value.memory) for value in values_of(nested))

    def drop(self, nested: Nested[Value]) -> None:
        """Let the memory of held values go, where no other value lies in it."""
        self.held.subtract(id(value.memory) for value in values_of(nested))

    def export(self, x: Value) -> Value:
        """A held value for the caller to keep: packed, in a buffer that will hold nothing else."""
        slot = x.memory
        own = isinstance(slot, Slot) and slot.buffer is None and not slot.exported and x.nbytes == slot.nbytes
        kept = x if own and x.is_packed else self.packed(x)
        assert isinstance(kept.memory, Slot)
        kept.memory.exported = True
        return kept
