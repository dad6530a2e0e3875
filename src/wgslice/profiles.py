"""What a plan must know of a device: its limits, and what is chosen by its kind, with the measurements."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

__all__ = ["CPU", "GPU", "Limits", "Profile"]


@dataclass(frozen=True)
class Profile:
    """How work is dealt to invocations."""

    name: str
    workgroup_size: int  # invocations a workgroup
    words_each: int  # 32-bit words that an invocation writes
    neighbours: (
        bool  # whether neighbouring invocations take neighbouring elements, or each a piece of its own
    )
    least_filled: float  # of a row's workgroups, the part with work from which the grid may be the shape
    row_copy_nbytes: float  # from how many bytes on a contiguous row is a buffer copy of its own

    @property
    def step(self) -> int:
        """Elements between two of an invocation."""
        return self.workgroup_size if self.neighbours else 1


# A CPU runs an invocation a lane of its vector unit; a piece of 64 bytes is a cache line.
# lavapipe of Mesa 25.0, 4 cores, crop of 3001 x 3001 float32, ms: 1 word an invocation 11.8, 4 words 5.5,
# 8 words 4.5, 16 words 4.5, 32 words 4.3; neighbours interleaved, 4 words 8.1, 16 words 5.7.
CPU = Profile(
    "cpu", workgroup_size=64, words_each=32, neighbours=False, least_filled=0.7, row_copy_nbytes=2**17
)

# A GPU merges the accesses of neighbouring invocations; 4 words are in flight. Not measured yet.
GPU = Profile("gpu", workgroup_size=64, words_each=4, neighbours=True, least_filled=0.7, row_copy_nbytes=inf)


@dataclass(frozen=True)
class Limits:
    """A device as a plan sees it."""

    binding_nbytes: int  # largest storage binding, bytes
    binding_alignment_nbytes: int  # what a binding's offset is a multiple of; itself a multiple of 16
    workgroups: int  # most workgroups in one dimension of a dispatch
    profile: Profile = GPU
