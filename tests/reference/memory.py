"""Memory that reference implementations read and write, and the check that no two invocations disagree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import Kernel
from wgslice.plans.steps import Span

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]  # or numbers that wrap around as the kernels' do
Flags = NDArray[np.bool_]
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class TwoWritersError(AssertionError):
    """Two invocations of one dispatch write different values to one unit: which stays is up to the device."""


class Accesses(NamedTuple):
    """Loads or stores. Those of an invocation stand in its own order."""

    invocations: Words  # whose each is
    places: Words  # bytes before each, from the start of the binding
    nbytes: int  # of each


class Observed:
    """The bytes of a binding that a dispatch reads, and the invocations that loaded them."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.loads: list[Accesses] = []

    def elements(self, number: Words, nbytes: int, invocations: Words) -> Array:
        """Elements by their numbers; sub-word ones are loaded with their words."""
        self._note(
            np.asarray(number * np.uint32(nbytes) // np.uint32(4) * np.uint32(4)), max(nbytes, 4), invocations
        )
        return self.data.view(f"V{nbytes}")[number]

    def blocks(self, number: Words, invocations: Words) -> Bytes:
        """Blocks of 16 bytes by their numbers; beyond the end the last one, as WebGPU allows."""
        blocks = self.data.reshape(-1, 16)
        taken = np.minimum(number, np.uint32(len(blocks) - 1))
        self._note(np.asarray(taken * np.uint32(16)), 16, invocations)
        return blocks[taken]

    def _note(self, places: Words, nbytes: int, invocations: Words) -> None:
        self.loads.append(Accesses(np.broadcast_to(invocations, places.shape), places, nbytes))


class Writes(NamedTuple):
    """The writes of all invocations of a dispatch, repeated ones included."""

    unit_nbytes: int  # that an invocation writes at once: a word, a block, or with atomics a sub-word element
    units: Words  # any shape: units before each, from the start of the binding
    values: Array  # of any type: the bytes of the units, in their order
    invocations: Words  # that write the units; of their shape

    @property
    def stores(self) -> Accesses:
        """Their places."""
        places = np.asarray(self.units * np.uint32(self.unit_nbytes))
        return Accesses(np.broadcast_to(self.invocations, places.shape), places, self.unit_nbytes)


class Trace(NamedTuple):
    """The reads and writes of the invocations of a dispatch."""

    writes: Writes
    source_loads: list[Accesses]
    target_loads: list[Accesses]  # of what keeps its value


def bound(buffer: Bytes, binding: Span) -> Bytes:
    """The bytes that a kernel reaches through a binding; a view."""
    return buffer[binding.offset_nbytes :][: binding.nbytes]


def store(kernel: Kernel, target: Bytes, writes: Writes) -> None:
    """Write to what is bound, unless writers of one unit disagree. Target changes in either case."""
    memory = target.view(f"V{writes.unit_nbytes}")
    units = writes.units.ravel()
    values = np.ascontiguousarray(writes.values).reshape(-1).view(memory.dtype)
    assert units.size == values.size, f"{kernel.value}: {units.size} units, {values.size} values"
    memory[units] = values
    left = memory[units].view(np.uint8).reshape(-1, writes.unit_nbytes)
    lost = (left != values.view(np.uint8).reshape(left.shape)).any(1)
    if lost.any():
        place = int(lost.argmax())
        raise TwoWritersError(
            f"{kernel.value}: two invocations write to unit {units[place]} of {writes.unit_nbytes} bytes, "
            f"one {values[place].tobytes().hex()}, another {left[place].tobytes().hex()}"
        )
