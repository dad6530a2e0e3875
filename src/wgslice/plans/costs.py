"""What work costs on an adapter: cost parameters, cost classes, and those that are shipped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel

CACHED_LINES = 256  # that a CPU's first cache, or a GPU's share of one for a workgroup, holds for sure
CACHE_LINE_NBYTES = 64

# Kernels whose speed does not depend on how neighbours of the target lie in the source.
ALIKE = {
    *(Kernel.SLICE1, Kernel.TILES, Kernel.WIDE_TILES, Kernel.PIXELS),
    *(Kernel.ROW_ENDS, Kernel.NARROW_ENDS, Kernel.NARROW_STEPS),
}

# Kernels for which that is the step between elements.
IN_BLOCKS = (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID)
STEPS = {1: "beside", 2: "every-second", 4: "every-fourth"}


@dataclass(frozen=True)
class Work:
    """What a class of work costs where an adapter has enough of it."""

    invocation_s: float  # seconds for an invocation, beside its bytes, shared by all that run at once
    bytes_per_s: float  # bytes that are written a second


@dataclass(frozen=True, eq=False)
class Costs:
    """What an adapter's work costs, in seconds and bytes a second."""

    origin: str  # where the figures are from, as a plan says it
    submission_s: float  # to submit, and to wait for it
    dispatch_s: float  # to record and run one beside its work
    copy_s: float  # to record and run a buffer copy or a clear beside its bytes
    copy_bytes_per_s: float  # of a buffer copy
    clear_bytes_per_s: float  # of a clear
    pipeline_s: float  # to compile a kernel with its constants, once
    works: Mapping[CostClass, Work] = field(repr=False)  # a kernel without it is not applicable


class CostClass(NamedTuple):
    """What has costs of its own: a kernel, the bytes that it takes at a time, and how memory is accessed."""

    kernel: Kernel
    width_nbytes: int
    traits: tuple[str, ...] = ()  # such as ("paired", "near"), in the order in which files have them

    @classmethod
    def parsed(cls, text: str) -> CostClass:
        """The class that a file calls by its kernel, width and traits."""
        kernel, width, *traits = text.split()
        return cls(Kernel(kernel), int(width), tuple(traits))

    def __str__(self) -> str:
        return " ".join([self.kernel.value, str(self.width_nbytes), *self.traits])


@lru_cache(maxsize=1024)
def copy_class(kernel: Kernel, width_nbytes: int, paired: bool, lies: str, step: int) -> CostClass:
    """The cost class of a copy, by how neighbours lie in the source and the elements from one to the next."""
    traits = ("paired",) if paired else ()
    if kernel in IN_BLOCKS:
        traits = (*traits, STEPS.get(step, STEPS[1]))
    elif kernel not in ALIKE:
        traits = (*traits, lies)
    return CostClass(kernel, width_nbytes, traits)


def windows_class(
    kernel: Kernel, element_nbytes: int, *, ragged: bool = False, ends: bool = False, mirrored: bool = False
) -> CostClass:
    """The cost class of a kernel on windows of elements of a width, in these, in words or blocks.

    Rows may begin or end inside of what it takes at a time, be taken at their ends alone, and go backwards.
    """
    by_words = kernel is Kernel.WINDOW_WORDS  # of which the width of an element decides how they are made
    width_nbytes = element_nbytes if by_words else kernel.unit_nbytes(element_nbytes)
    traits = ("ragged",) * ragged + ("ends",) * ends + ("mirrored",) * mirrored
    return CostClass(kernel, width_nbytes, traits)


def step_of(source: Layout) -> int:
    """Elements of the source from one neighbour of the target to the next."""
    return abs(source.strides[-1]) if source.rank else 1


def pattern(source: Layout, width_nbytes: int) -> str:
    """How neighbours of the target lie in the source: beside each other, near, or far from each other.

    They are near where a cache line is read again while it is still in the cache.
    """
    if source.rank == 0 or abs(source.strides[-1]) <= 1:
        return "beside"
    inside = 1
    for size, stride in zip(reversed(source.sizes), reversed(source.strides), strict=True):
        if abs(stride) * width_nbytes < CACHE_LINE_NBYTES:
            return "near" if inside <= CACHED_LINES else "far"
        inside *= size
    return "far"


@cache
def shipped(name: str) -> Costs:
    """The figures of a file."""
    content = json.loads((files("wgslice.plans") / "figures" / f"{name}.json").read_text("utf-8"))
    figures = content["costs"]
    works = {CostClass.parsed(name): Work(**costs) for name, costs in figures.pop("works").items()}
    return Costs(f"shipped figures of {content['about']}", **figures, works=works)


def shipped_for(name: str, backend: str, driver: str, *, software: bool) -> Costs:
    """The figures that are nearest to an adapter's.

    lavapipe's way to memory changed at some release between Mesa 22.3 and 25.0, which were measured; what is
    between them goes by the older one.
    """
    if not software:
        return shipped("gpus")
    if "swiftshader" in name.lower():
        return shipped("swiftshader")
    if backend == "OpenGL":
        return shipped("llvmpipe-opengl")
    version = re.search(r"Mesa (\d+)", driver)
    is_old = version is not None and int(version[1]) < 25
    return shipped("lavapipe-22-3" if is_old else "lavapipe-25-0")
