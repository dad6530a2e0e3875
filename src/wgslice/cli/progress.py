"""Progress on a terminal: a bar of the package rich, or a line of text; nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ERASE_LINE = "\r\x1b[K"


@contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None] | None]:
    """Yield a function of the fraction done and a label; None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = new_bar()
    if bar is None:
        try:
            yield lambda done, what: print(
                f"{ERASE_LINE}{done:4.0%} {what}", end="", file=sys.stderr, flush=True
            )
        finally:
            print(ERASE_LINE, end="", file=sys.stderr, flush=True)
        return
    with bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, what: bar.update(task, completed=done, description=what)


def new_bar() -> Any:
    """Make a bar of the package rich, or return None without the package."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None
    return Progress(console=Console(stderr=True), transient=True)
