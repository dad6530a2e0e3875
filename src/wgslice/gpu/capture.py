"""Captured calls: what they would submit is listed in order, and nothing reaches the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import NamedTuple, TypeAlias

from wgslice.errors import CaptureRefused
from wgslice.plans.plan import Plan


class Upload(NamedTuple):
    """Bytes written into a buffer before all that is submitted later."""

    nbytes: int


@dataclass(frozen=True, eq=False)
class Submission:
    """Plans submitted at once; stands for the command encoder that they would be recorded into."""

    plans: list[Plan] = field(default_factory=list)


Step: TypeAlias = Upload | Submission


class Capture:
    """What a call would submit, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def record(self, encoder: object, plan: Plan) -> None:
        """Add a plan to its submission; one for an encoder of the caller's has a submission of its own."""
        if isinstance(encoder, Submission):
            encoder.plans.append(plan)
        else:
            self.steps.append(Submission([plan]))

    def submit(self, encoder: object) -> None:
        """Add what an encoder stands for."""
        if isinstance(encoder, Submission):
            self.steps.append(encoder)
        else:
            refuse_in_capture("commands that were recorded before are submitted")


class Active(local):
    """Where the calls of a thread go: to a capture, or for None to the GPU."""

    capture: Capture | None = None


active = Active()


@contextmanager
def capturing(capture: Capture | None) -> Iterator[None]:
    """Send this thread's calls to a capture, or for None to the GPU, until the block ends."""
    before, active.capture = active.capture, capture
    try:
        yield
    finally:
        active.capture = before


def refuse_in_capture(what: str) -> None:
    """Refuse what takes a run, inside of a call that is captured."""
    if active.capture is not None:
        raise CaptureRefused(
            f"{what}, which a call cannot do that is explained and not run: explain the calls before it, and "
            "those after it with arrays of the host in place of what it gives, as x[np.asarray(mask)] for "
            "x[mask]"
        )
