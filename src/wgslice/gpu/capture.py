"""Captured calls: the plans and uploads of a call are listed in order, and nothing reaches the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import CaptureRefused
from wgslice.gpu.protocols import Buffer
from wgslice.plans.plan import Plan


class Place(NamedTuple):
    """A buffer, and the byte offset in it that a plan counts from."""

    buffer: Buffer
    base: int = 0


class CapturedUpload(NamedTuple):
    """Bytes written into a buffer before any later submission runs."""

    place: Place
    data: NDArray[np.uint8]
    kept: bool = False  # whether later calls with equal bytes upload nothing


class Recorded(NamedTuple):
    """A plan with its buffers, in place of its commands."""

    plan: Plan
    places: Sequence[Place]


@dataclass(frozen=True, eq=False)
class CapturedSubmission:
    """Plans of one submission, in place of the command encoder that would record them."""

    recorded: list[Recorded] = field(default_factory=list)


CapturedStep: TypeAlias = CapturedUpload | CapturedSubmission


class Capture:
    """Uploads and submissions of a call, in order, to be `explained`, or to be replayed."""

    def __init__(self, *, explained: bool = True) -> None:
        self.explained = explained
        self.steps: list[CapturedStep] = []

    def upload(
        self, buffer: Buffer, offset_nbytes: int, data: NDArray[np.uint8], *, kept: bool = False
    ) -> None:
        """Add an upload; what is replayed has its own copy, since the caller may change the bytes."""
        content = data if self.explained else data.copy()
        self.steps.append(CapturedUpload(Place(buffer, offset_nbytes), content, kept))

    def record(self, encoder: object, plan: Plan, places: Sequence[Place]) -> None:
        """Add a plan to its submission; a plan for a caller's encoder gets its own submission."""
        recorded = Recorded(plan, places)
        if isinstance(encoder, CapturedSubmission):
            encoder.recorded.append(recorded)
        else:
            self.steps.append(CapturedSubmission([recorded]))

    def submit(self, encoder: object) -> None:
        """Add the submission that replaces an encoder."""
        if isinstance(encoder, CapturedSubmission):
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
        explained = active.capture.explained
        kind, verb = ("an explained", "explain") if explained else ("a captured", "capture")
        view = ", or x[::2] instead of x[::2].numpy()" * explained
        raise CaptureRefused(
            f"{what}, which {kind} call cannot do, since it does not run: {verb} the calls before and "
            "after it, with NumPy arrays in place of its results, such as x[np.asarray(mask)] for "
            f"x[mask]{view}"
        )
