"""Buffers that temporary memories share, since they are used one after another."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar


@dataclass(eq=False)
class Lifetime:
    """A memory's size, and the first and last step that uses it."""

    nbytes: int
    first: int = sys.maxsize
    last: int = -1

    def extend(self, step: int) -> None:
        """Note that a step uses it, after those that were noted before."""
        self.first, self.last = min(self.first, step), step


AnyLifetime = TypeVar("AnyLifetime", bound=Lifetime)


def group_by_lifetime(memories: Iterable[AnyLifetime]) -> list[list[AnyLifetime]]:
    """Group memories with disjoint lifetimes: each joins the finished group that it enlarges least."""
    groups: list[list[AnyLifetime]] = []
    for memory in sorted(memories, key=lambda memory: memory.first):
        done = [group for group in groups if group[-1].last < memory.first]
        if done:
            growths = [(max(memory.nbytes - nbytes, 0), nbytes) for nbytes in map(needed_nbytes, done)]
            done[growths.index(min(growths))].append(memory)
        else:
            groups.append([memory])
    return groups


def needed_nbytes(memories: Iterable[Lifetime]) -> int:
    """Return the bytes of a buffer that memories share."""
    return max(memory.nbytes for memory in memories)
