"""What the checker reports of a dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Finding:
    """Something that a kernel must not do, the first time that a dispatch does it at a line."""

    kind: (
        str  # "bounds", "race", "mixed", "unwritten", "barrier", "loop", "wrap", "shift", "division", "bytes"
    )
    kernel: str
    line: int  # of the module
    text: str  # of that line
    what: str
    case: str = ""  # of the plan

    def __str__(self) -> str:
        return f"{self.kernel}, line {self.line}: {self.what}\n    {self.text}\n    {self.case}"


class Findings:
    """The findings of a dispatch, one for each kind and line."""

    def __init__(self, kernel: str, lines: list[str]) -> None:
        self.kernel, self.lines = kernel, lines
        self.invocations: NDArray[np.int64] = np.zeros(1, np.int64)  # that are executed at once
        self.found: dict[tuple[str, int], Finding] = {}

    def note(self, kind: str, line: int, mask: Any, where: Any, what: str, **values: Any) -> None:
        """Add a finding if some invocation of a mask meets a condition."""
        if (kind, line) in self.found:
            return
        count = self.invocations.size
        met = np.broadcast_to(True if mask is None else mask, count) & np.broadcast_to(where, count)
        if not met.any():
            return
        first = int(met.argmax())
        shown = [f"invocation {self.invocations[first]}"]
        shown += [f"{name} {np.broadcast_to(value, count)[first]}" for name, value in values.items()]
        self.add(kind, line, f"{what} in {met.sum()} invocations, first {', '.join(shown)}")

    def add(self, kind: str, line: int, what: str) -> None:
        """Add a finding."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        self.found.setdefault((kind, line), Finding(kind, self.kernel, line, text, what))
