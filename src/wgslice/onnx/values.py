"""What the names of a graph stand for while it runs: elements that need not have a buffer yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from wgslice.dtypes import DType
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.onnx.memory import Slot
from wgslice.tensors.placed import Shaped
from wgslice.tensors.tensor import Tensor

__all__ = ["Nested", "Value", "as_value", "each", "values_of"]

T = TypeVar("T")
R = TypeVar("R")
Nested: TypeAlias = "T | list[Nested[T]] | None"  # one, a sequence of them, or an optional that is absent


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
