"""The values of a running graph, the copies between them, and the buffers that values share."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape
from wgslice.dialects.advanced import AdvancedSelection, advanced_index
from wgslice.dialects.basic import numpy_shape
from wgslice.dtypes import DType, native_array
from wgslice.errors import named
from wgslice.gpu.device import Device, check_usable
from wgslice.gpu.handles import check_alive
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, Planning, Recorder, place
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.layout_rules import reshaped
from wgslice.plans.copy import plan_anew, plan_copy, planned
from wgslice.plans.gather import WindowCopy, indexed_windows
from wgslice.plans.index_strategies import copy_at_once
from wgslice.plans.plan import Planner
from wgslice.plans.profiles import SMALL_NBYTES
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import Shaped
from wgslice.tensors.tensor import Tensor

T = TypeVar("T")
R = TypeVar("R")
Nested: TypeAlias = "T | list[Nested[T]] | None"  # one, a sequence, or an absent optional
MAX_CONSTANTS = 16
ConstantKey: TypeAlias = tuple[DType, bytes]  # of an element


@dataclass(frozen=True)
class MemoryUse:
    """Device memory used by a run.

    Attributes
    ----------
    peak_nbytes : int
        Bytes of the buffers for inputs, intermediates and outputs, without constants and the caller's
        tensors.
    buffers : int
        The number of those buffers.
    tensors_nbytes, tensors : int
        Bytes and number of the tensors in them, which is the memory needed without reuse.
    submissions : int
        The number of submissions; more than one if a computed parameter had to be read back.
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
    """Memory of a value; its buffer is assigned at submission."""

    nbytes: int
    label: str = ""
    array: NDArray[np.uint8] | None = None  # bytes to upload before the recorded work
    exported: bool = False  # the caller keeps the buffer
    first: int = sys.maxsize  # first and last task of a submission that uses it
    last: int = -1
    buffer: Buffer | None = None


def group_by_lifetime(slots: Iterable[Slot]) -> list[list[Slot]]:
    """Group slots with disjoint lifetimes: each joins the finished group that it enlarges least."""
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
    """The bytes of a buffer that slots share."""
    return max(slot.nbytes for slot in slots)


@dataclass(frozen=True, eq=False, slots=True)
class Value(Shaped):
    """A layout in a caller's buffer, or in a slot whose buffer is assigned at submission."""

    memory: Slot | Buffer
    dtype: DType
    layout: Layout

    @classmethod
    def of(cls, tensor: Tensor) -> Value:
        """Wrap a caller's tensor."""
        return cls(tensor.memory, tensor.dtype, tensor.layout)

    @property
    def buffer(self) -> Buffer:
        """The buffer of this value; a slot has one after submission only."""
        buffer = self.memory.buffer if isinstance(self.memory, Slot) else self.memory
        assert buffer is not None
        return buffer

    @property
    def bound_layout(self) -> BoundLayout:
        """The bound layout of this value."""
        return BoundLayout(self.buffer, self.layout, self.dtype.itemsize)

    def viewed(self, layout: Layout) -> Value:
        """Another view of the same memory."""
        return Value(self.memory, self.dtype, layout)


def as_value(position: int, given: Nested[Value]) -> Value:
    """A node's input; raises if it is not a tensor."""
    if not isinstance(given, Value):
        raise TypeError(f"input {position} is of type {type(given).__name__}: must be a tensor")
    return given


def values_of(nested: Nested[Value]) -> Iterator[Value]:
    """Yield the values of a nested value."""
    if isinstance(nested, list):
        for item in nested:
            yield from values_of(item)
    elif nested is not None:
        yield nested


def each(function: Callable[[T], R]) -> Callable[[Nested[T]], Nested[R]]:
    """Lift a function of one item to nested lists and None."""

    def of_all(nested: Nested[T]) -> Nested[R]:
        if isinstance(nested, list):
            return [of_all(item) for item in nested]
        return None if nested is None else function(nested)

    return of_all


class Task(NamedTuple):
    """A copy to record, and its label in errors."""

    label: str
    planner: Planner
    source: Value
    target: Value
    planning: Planning


class Workspace:
    """Collects copies between values without buffers, then assigns buffers, records and submits.

    Implements the sink protocol of the layout rules. Values with disjoint lifetimes share a buffer.
    """

    makes_zeros = False  # since buffers are reused

    def __init__(self, device: Device, constants: Mapping[ConstantKey, Value] | None = None) -> None:
        self.device = device
        self.memory: MemoryUse | None = None  # of the last run
        self.owned: list[Buffer] = []  # buffers of the last run, for the next one
        self.constants = dict(constants or {})  # elements of borders, kept for all runs
        self.begin()

    def begin(self) -> None:
        """Start a run without held values."""
        self.label = ""  # of the node that is being collected
        self.tasks: list[Task] = []
        self.waiting: list[Slot] = []  # without a buffer
        self.slots: list[Slot] = []
        self.held: Counter[int] = Counter()  # values in a slot, by its id
        self.submissions = 0

    def end(self) -> None:
        """Keep the buffers of this run for the next one, and note its memory use."""
        buffers = {id(slot.buffer): slot.buffer for slot in self.slots if slot.buffer is not None}
        given = {id(slot.buffer) for slot in self.slots if slot.exported}
        self.owned = [buffer for key, buffer in buffers.items() if key not in given]
        self.memory = MemoryUse(
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
        zeroed: bool = False,  # noqa: ARG002 -- part of the sink protocol
    ) -> Value:
        """A packed value with undefined content, even if `zeroed`."""
        layout = Layout.packed(checked_shape(sizes))
        slot = Slot(layout.size * dtype.itemsize, self.label)
        self.waiting.append(slot)
        self.slots.append(slot)
        return Value(slot, dtype, layout)

    def upload(self, given: NDArray[Any] | Tensor) -> Value:
        """A value of an array to upload, or of a tensor."""
        if isinstance(given, Tensor):
            return Value.of(given)
        native = native_array(given)
        value = self.empty(native.shape, native.dtype)
        assert isinstance(value.memory, Slot)
        value.memory.array, value.memory.first = native.reshape(-1).view(np.uint8), -1
        return value

    def constant(self, element: NDArray[Any], count: int) -> Value:
        """A value of at least `count` copies of an element, cached for all runs."""
        key = element.dtype, element.tobytes()
        kept = self.constants.get(key)
        if kept is None or kept.size < count:
            if len(self.constants) >= MAX_CONSTANTS:
                self.constants.clear()
            kept = Value.of(asarray(np.full(count, element), device=self.device))
            self.constants[key] = kept
        return kept

    def run(self, planner: Planner, source: Value, target: Value, planning: Planning = planned) -> None:
        """Collect a task for a planner, unless the target is empty."""
        if target.size:
            for memory in (source.memory, target.memory):
                if isinstance(memory, Slot):
                    memory.first, memory.last = min(memory.first, len(self.tasks)), len(self.tasks)
            self.tasks.append(Task(self.label, planner, source, target, planning))

    def copy(self, source: Value, read: Layout, target: Value, written: Layout) -> None:
        """Collect a copy between layouts of two values, of equal sizes and dtype."""
        assert (source.dtype, read.sizes) == (target.dtype, written.sizes)
        self.run(plan_copy, source.viewed(read), target.viewed(written))

    def copy_at(self, selection: AdvancedSelection, tensor: Value, other: Value, *, reads: bool) -> None:
        """Collect copies between the selected elements of a value and another value of their shape."""
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
        """A copy of the elements that an index with int64 arrays selects."""
        selection = advanced_index(x.shape, key)
        result = self.empty(selection.shape, x.dtype)
        self.copy_at(selection, x, result, reads=True)
        return result

    def reshaped(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshape a value, one size may be -1: a view where possible, else a packed copy."""
        sizes = numpy_shape(shape, x.size)
        layout = reshaped(x.layout, sizes)
        return x.viewed(layout) if layout else self.packed(x).viewed(Layout.packed(sizes))

    def packed(self, x: Value) -> Value:
        """A packed copy."""
        copied = self.empty(x.shape, x.dtype)
        self.copy(x, x.layout, copied, copied.layout)
        return copied

    def readable(self, x: Value) -> Value:
        """The value itself if it is packed, else a packed copy, so that readback needs no other."""
        return x if x.is_packed else self.packed(x)

    def submit(self) -> None:
        """Assign buffers, then record and submit the collected tasks."""
        callers = {id(task.source.memory): task for task in self.tasks}
        for task in callers.values():
            if not isinstance(task.source.memory, Slot):
                with named(task.label):  # submitting a destroyed or mapped buffer would abort
                    check_usable(self.device, task.source.memory)
                    check_alive(self.device, task.source.memory)
        self._assign_buffers()
        for slot in self.waiting:
            if slot.array is not None and slot.array.size:
                assert slot.buffer is not None
                with named(slot.label):
                    sink().upload(self.device, slot.buffer, slot.array)
                slot.array = None
        if self.tasks:
            with named(self.tasks[0].label):
                encoder = sink().create_encoder(self.device)
            recorder = Recorder(self.device, encoder)
            for label, planner, source, target, planning in self.tasks:
                with named(label):
                    sides = source.bound_layout, target.bound_layout
                    recorder.add(*place(self.device.limits, planner, *sides, planning=planning))
            with named(label):
                recorder.end()
                sink().submit(self.device, encoder)
            self.submissions += 1
        self.tasks, self.waiting = [], []

    def _assign_buffers(self) -> None:
        """Assign each waiting slot a buffer: exported slots their own, others one per group."""
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
                    buffer = sink().create_buffer(self.device, nbytes, zeroed=False)
            for slot in slots:
                slot.buffer = buffer

    def tensor(self, x: Value) -> Tensor:
        """A submitted value as a tensor."""
        return Tensor(self.device, x.buffer, x.dtype, x.layout)

    def read(self, x: Value) -> NDArray[Any]:
        """Submit the collected tasks, and read a value back."""
        self.submit()
        return self.tensor(x).numpy()

    def hold(self, nested: Nested[Value]) -> None:
        """Keep the memory of values."""
        self.held.update(id(value.memory) for value in values_of(nested))

    def drop(self, nested: Nested[Value]) -> None:
        """Release the memory of held values, unless another held value shares it."""
        self.held.subtract(id(value.memory) for value in values_of(nested))

    def export(self, x: Value) -> Value:
        """A held value for the caller to keep: packed, in a buffer that is never reused."""
        slot = x.memory
        own = isinstance(slot, Slot) and slot.buffer is None and not slot.exported and x.nbytes == slot.nbytes
        kept = x if own and x.is_packed else self.packed(x)
        assert isinstance(kept.memory, Slot)
        kept.memory.exported = True
        return kept
