"""A progress bar on a terminal, and none in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None] | None]:
    """A bar on a terminal, and what moves it."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        raise ImportError(
            "a progress bar needs the package rich, of the extra `tune` of wgslice: pip install rich"
        ) from None
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, what: bar.update(task, completed=done, description=what)
