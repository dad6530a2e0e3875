"""A progress bar on a terminal, and none in a pipe, or without the package rich."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None] | None]:
    """A bar on a terminal, and what moves it."""
    bar = new_bar() if sys.stderr.isatty() else None
    if bar is None:
        yield None
        return
    with bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, what: bar.update(task, completed=done, description=what)


def new_bar() -> Any:
    """A bar by the package rich, or None without that."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None
    return Progress(console=Console(stderr=True), transient=True)
