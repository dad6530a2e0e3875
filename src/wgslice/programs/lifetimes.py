"""Buffers of temporary memories, which share one where they are used one after another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.protocols import Buffer


@dataclass(eq=False)
class Temporary:
    """The memory of a placeholder: its size, the first and last step that uses it, and its buffer."""

    nbytes: int
    first: int = sys.maxsize
    last: int = -1
    alone: bool = False  # whether it shares its buffer with no other one
    content: NDArray[np.uint8] | None = None  # that the buffer begins with
    buffer: Buffer | None = None  # as soon as there is one

    def extend(self, step: int) -> None:
        """Note that a step uses it, after those that were noted before."""
        self.first, self.last = min(self.first, step), step


AnyTemporary = TypeVar("AnyTemporary", bound=Temporary)


def assign_buffers(
    memories: Iterable[AnyTemporary], make: Callable[[Sequence[AnyTemporary]], Buffer]
) -> None:
    """Assign buffers to memories without one, the largest first; `make` makes one for those that share it."""
    waiting = [memory for memory in memories if memory.buffer is None]
    groups = group_by_lifetime(memory for memory in waiting if not memory.alone)
    groups += [[memory] for memory in waiting if memory.alone]
    for group in sorted(groups, key=needed_nbytes, reverse=True):
        buffer = make(group)
        for memory in group:
            memory.buffer = buffer


def group_by_lifetime(memories: Iterable[AnyTemporary]) -> list[list[AnyTemporary]]:
    """Group memories with disjoint lifetimes: each joins the finished group that it enlarges least."""
    groups: list[list[AnyTemporary]] = []
    for memory in sorted(memories, key=lambda memory: memory.first):
        done = [group for group in groups if group[-1].last < memory.first]
        if done:
            growths = [(max(memory.nbytes - nbytes, 0), nbytes) for nbytes in map(needed_nbytes, done)]
            done[growths.index(min(growths))].append(memory)
        else:
            groups.append([memory])
    return groups


def needed_nbytes(memories: Iterable[Temporary]) -> int:
    """Return the bytes of a buffer that memories share."""
    return max(memory.nbytes for memory in memories)
