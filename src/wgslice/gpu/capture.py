"""Captured calls: the plans and uploads of a call are listed in order, and nothing reaches the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import NamedTuple, TypeAlias

from wgslice.errors import CaptureRefused
from wgslice.plans.plan import Plan


class Upload(NamedTuple):
    """Bytes written into a buffer before any later submission runs."""

    nbytes: int


@dataclass(frozen=True, eq=False)
class Submission:
    """Plans of one submission, in place of the command encoder that would record them."""

    plans: list[Plan] = field(default_factory=list)


Step: TypeAlias = Upload | Submission


class Capture:
    """Uploads and submissions of a call, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def record(self, encoder: object, plan: Plan) -> None:
        """Add a plan to its submission; a plan for a caller's encoder gets its own submission."""
        if isinstance(encoder, Submission):
            encoder.plans.append(plan)
        else:
            self.steps.append(Submission([plan]))

    def submit(self, encoder: object) -> None:
        """Add the submission that replaces an encoder."""
        if isinstance(encoder, Submission):
            self.steps.append(encoder)
        else:
            refuse_in_capture("commands that were recorded before are submitted")


class Active(local):
    """The capture that receives a thread's calls; None sends them to the GPU."""

    capture: Capture | None = None


active = Active()


@contextmanager
def capturing(capture: Capture | None) -> Iterator[None]:
    """Redirect this thread's calls to a capture, or with None to the GPU, until the block ends."""
    before, active.capture = active.capture, capture
    try:
        yield
    finally:
        active.capture = before


def refuse_in_capture(what: str) -> None:
    """Raise CaptureRefused if the current call is captured, for a step that needs results from the GPU."""
    if active.capture is not None:
        raise CaptureRefused(
            f"{what}, which an explained call cannot do, since it does not run: explain the calls before and "
            "after it, with NumPy arrays in place of its results, such as x[np.asarray(mask)] for x[mask]"
        )
