"""A contender's process: loads arrays, runs slices, and answers with times. Needs NumPy and the contender.

Questions come pickled on standard input, answers go as lines of JSON to standard output.

`python -m bench.worker MODULE CLASS`, started by `contest`.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from bench.rivals import Contender


class Worker:
    """The requests of the parent process, by method name."""

    def __init__(self, module: Any, contender: type[Contender]) -> None:
        self.module = module
        self.contender = contender
        self.case: Contender

    def describe(self) -> dict[str, str]:
        """Versions, adapter, driver."""
        described: dict[str, str] = self.module.describe()
        return described

    def load(self, path: str, work: Any) -> str:
        """Prepare a slice, run it once, compare with NumPy bit for bit, and return its plan."""
        array = np.load(path)
        self.case = self.contender(array, work)
        self.case.run()
        expected = np.ascontiguousarray(work.of(array))
        result = np.ascontiguousarray(self.case.result())
        if result.dtype != expected.dtype or result.size != expected.size:
            raise ValueError(f"wrong: {result.dtype} of shape {result.shape}")
        different = np.flatnonzero(result.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8))
        if different.size:
            raise ValueError(f"wrong: {different.size} of {expected.nbytes} bytes differ")
        return getattr(self.case, "note", str)()

    def time(self, turn: float, most: int) -> tuple[list[float], float | None]:
        """Wall times of consecutive runs, for about `turn` seconds, and the GPU's own time of one more."""
        times: list[float] = []
        self.case.run()  # brings its memory back into the caches, as any second run finds them
        while not times or (sum(times) < turn and len(times) < most):
            start = perf_counter()
            self.case.run()
            times.append(perf_counter() - start)
        return times, getattr(self.case, "gpu_seconds", lambda: None)()

    def unload(self) -> None:
        """Drop the slice and its memory."""
        del self.case


def main() -> None:
    """Answer the questions on standard input until there are no more; other output goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module_name, class_name = sys.argv[1:]
    worker: Worker | None = None
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if worker is None:
                module = import_module(module_name)
                worker = Worker(module, getattr(module, class_name))
            answer = (True, getattr(worker, method)(*arguments))
        except Exception as error:
            answer = (False, explain(error))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def explain(error: Exception) -> str:
    """Format an error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


if __name__ == "__main__":
    main()
