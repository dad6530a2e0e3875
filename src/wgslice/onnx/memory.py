"""Memory of a run: slots for values, and which of them can share a buffer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.protocols import Buffer

__all__ = ["MemoryUse", "Slot", "needed_nbytes", "taking_turns"]


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
