"""Whether Zarr reads what a user asked for, or a shard on the way there.

Zarr makes both with one call. What a user asked for is made and taken by one task of asyncio's; shards are
made, and taken by codecs, in tasks and threads that begin meanwhile, with a copy of that task's context.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, TypeAlias

__all__ = ["Task", "begin", "current_task", "end"]

Task: TypeAlias = asyncio.Task[Any]

reading: ContextVar[Task | None] = ContextVar("reading", default=None)


def current_task() -> Task | None:
    """The task that runs in this thread."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def begin(task: Task) -> bool:
    """Begin to read in a task; whether it is what a user asked for.

    After a read that failed it may be taken for a part of that one, until another has ended.
    """
    if reading.get() is not None:
        return False
    reading.set(task)
    return True


def end() -> None:
    """End what a task has begun to read."""
    reading.set(None)
