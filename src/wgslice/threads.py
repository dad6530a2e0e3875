"""The executor of background work: threads, or the calling thread where a platform starts none."""

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any


class CallingExecutor(Executor):
    """Runs what is submitted at once, in the thread that submits it."""

    def __init__(self, max_workers: int = 1, thread_name_prefix: str = "") -> None:
        """Take the arguments of `ThreadPoolExecutor`."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function; the future has its result or error."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


if sys.platform == "emscripten":
    BackgroundExecutor = CallingExecutor
else:
    BackgroundExecutor = ThreadPoolExecutor
