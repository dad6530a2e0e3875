"""Progress on a terminal: a bar of the package rich, or a line of text; elsewhere lines, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

ERASE_LINE = "\r\x1b[K"


@contextmanager
def progress_bar(*, lines: bool = False) -> Iterator[Callable[[float, str], None] | None]:
    """Yield a function of the fraction done and a label.

    If stderr is no terminal, it prints a line for each tenth with `lines`; without, it is None.
    """
    if not sys.stderr.isatty():
        yield print_tenths() if lines else None
        return
    bar: Any = None
    with suppress(ImportError):
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(stderr=True), transient=True)
    if bar is not None:
        with bar:
            task = bar.add_task("", total=1.0)
            yield lambda done, what: bar.update(task, completed=done, description=what)
        return
    try:
        yield lambda done, what: print(f"{ERASE_LINE}{done:4.0%} {what}", end="", file=sys.stderr, flush=True)
    finally:
        print(ERASE_LINE, end="", file=sys.stderr, flush=True)


def print_tenths() -> Callable[[float, str], None]:
    """Return a function that prints each tenth done as a line on stderr."""
    printed = 0

    def show(done: float, what: str) -> None:
        nonlocal printed
        if int(done * 10) > printed:
            printed = int(done * 10)
            print(f"{done:4.0%} {what}", file=sys.stderr, flush=True)

    return show
