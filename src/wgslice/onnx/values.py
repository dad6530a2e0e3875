"""What the names of a graph stand for while it runs, and the memory in which values lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.tensors.placed import Shaped
from wgslice.tensors.tensor import Tensor

__all__ = [
    "MemoryUse",
    "Nested",
    "Slot",
    "Value",
    "as_value",
    "each",
    "needed_nbytes",
    "taking_turns",
    "values_of",
]

T = TypeVar("T")
R = TypeVar("R")
Nested: TypeAlias = "T | list[Nested[T]] | None"  # one, a sequence of them, or an optional that is absent


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
    given: bool = False  # to the caller, who keeps its buffer
    first: int = 0  # the first and the last task of a submission that uses it
    last: int = 0
    buffer: Buffer | None = None

    def shared_out(self) -> Buffer:
        """Its buffer, once it has got one."""
        assert self.buffer is not None
        return self.buffer


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
        return self.memory.shared_out() if isinstance(self.memory, Slot) else self.memory

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
