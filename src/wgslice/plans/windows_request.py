"""Many windows to copy: what is asked for, and what bindings and grids of a device hold of it.

Windows lie in a *tensor*, each at offsets of its own; in a *batch* they lie one after another, of the sizes
(B, *sizes). They are extracted from the one into the other, or inserted from the other into the one.
"""

from __future__ import annotations

from dataclasses import dataclass

from wgslice.layout import Layout
from wgslice.plans.dealing import Share, fold
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.profiles import Limits
from wgslice.plans.terms import LARGEST_BINDING_NBYTES, Terms
from wgslice.plans.windows_steps import Windows

__all__ = ["Request"]

MOST_INVOCATIONS = 2**30  # multiplications divide twice as many exactly, and a grid is rounded up


@dataclass(frozen=True, eq=False)
class Request:
    """Windows to copy between a tensor and a batch, in elements of `itemsize` from the bases of both."""

    windows: Windows
    tensor: Layout
    batch: Layout
    itemsize: int
    terms: Terms
    inserts: bool = False  # whether the batch is the input, and the tensor the output

    @property
    def tensor_name(self) -> str:
        """What callers call the tensor."""
        return "output" if self.inserts else "input"

    @property
    def batch_name(self) -> str:
        """What callers call the batch."""
        return "input" if self.inserts else "output"

    @property
    def limits(self) -> Limits:
        """The device's."""
        return self.terms.limits

    @property
    def binding_nbytes(self) -> int:
        """The largest binding, in whole blocks."""
        most = min(self.limits.binding_nbytes, LARGEST_BINDING_NBYTES)
        return most // WIDEST_NBYTES * WIDEST_NBYTES

    @property
    def most_nbytes(self) -> int:
        """What the largest binding holds wherever it begins, though a binding's start is aligned."""
        return self.binding_nbytes - self.limits.binding_alignment_nbytes

    @property
    def most_invocations(self) -> int:
        """As many as a grid has, and can be counted."""
        limits = self.limits
        return min(limits.workgroups**2 * limits.profile.workgroup_size, MOST_INVOCATIONS)

    def share(self, count: int, invocations: int, pieces: int, each: int) -> Share:
        """The grid of so many invocations."""
        profile = self.limits.profile
        grid = *fold(-(-invocations // profile.workgroup_size), self.limits), 1
        return Share(count, False, pieces, each, profile.contiguous, profile.workgroup_size, grid)
