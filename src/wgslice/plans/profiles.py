"""Profiles and limits of devices, cost models, and tuned constants.

`bench/results/constants.md` has the measurements that set the constants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import inf
from typing import NamedTuple

from wgslice.layout import Layout
from wgslice.packaged import packaged_text
from wgslice.plans.kernels import UNITS_NBYTES, Kernel

UNCALIBRATED = "uncalibrated"  # of shipped cost parameters, as plans print it
CACHED_LINES = 256  # that a CPU's first cache, or a GPU's share of one for a workgroup, holds at least
CACHE_LINE_NBYTES = 64

# Kernels whose speed does not depend on the stride of rows in the source.
ALIKE = {
    *(Kernel.SLICE1, Kernel.TILES, Kernel.WIDE_TILES, Kernel.REGISTER_TILES, Kernel.PIXELS),
    *(Kernel.ROW_ENDS, Kernel.SUBWORD_ENDS, Kernel.SUBWORD_STEPS),
}

# Kernels for which that is the step between elements.
IN_BLOCKS = (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID)
STEPS = {1: "contiguous", 2: "every-second", 4: "every-fourth"}


@dataclass(frozen=True)
class ClassCost:
    """The cost parameters of one cost class at full occupancy."""

    invocation_s: float  # seconds per invocation besides its bytes, over all that run at once
    bytes_per_s: float  # bytes written per second


@dataclass(frozen=True, eq=False)
class Costs:
    """A cost model: cost parameters of an adapter, in seconds and bytes per second."""

    origin: str  # where the cost parameters are from, as plans print it
    submission_s: float  # to submit and to wait for completion
    dispatch_s: float  # to record and run a dispatch, besides its bytes
    copy_s: float  # to record and run a buffer copy or a clear, besides its bytes
    copy_bytes_per_s: float  # of a buffer copy
    clear_bytes_per_s: float  # of a clear
    pipeline_s: float  # to compile a kernel with its constants, once
    classes: Mapping[CostClass, ClassCost] = field(repr=False)  # a kernel without it is not applicable

    def least_seconds(self, kind: CostClass, nbytes: float) -> float:
        """Lower bound of the seconds of a dispatch that writes `nbytes`; inf if its class is unknown."""
        work = self.classes.get(kind)
        return self.dispatch_s + nbytes / work.bytes_per_s if work else inf


class CostClass(NamedTuple):
    """A cost class: kernel, element width in bytes, and access pattern."""

    kernel: Kernel
    width_nbytes: int
    traits: tuple[str, ...] = ()  # such as ("paired", "short-stride"), in the order in which files have them

    @classmethod
    def parsed(cls, text: str) -> CostClass:
        """Returns the class that a file names by kernel, width and traits."""
        kernel, width, *traits = text.split()
        return cls(Kernel(kernel), int(width), tuple(traits))

    def __str__(self) -> str:
        return " ".join([self.kernel.value, str(self.width_nbytes), *self.traits])


@lru_cache(maxsize=1024)
def copy_class(kernel: Kernel, width_nbytes: int, paired: bool, stride: str, step: int) -> CostClass:
    """The cost class of a copy, by the stride of rows in the source: its pattern and its elements."""
    traits = ("paired",) if paired else ()
    if kernel in IN_BLOCKS:
        traits = (*traits, STEPS.get(step, STEPS[1]))
    elif kernel not in ALIKE:
        traits = (*traits, stride)
    return CostClass(kernel, width_nbytes, traits)


def windows_class(
    kernel: Kernel,
    element_nbytes: int,
    *,
    unaligned: bool = False,
    ends: bool = False,
    mirrored: bool = False,
) -> CostClass:
    """The cost class of a kernel on windows, whose rows may be unaligned, reversed, or copied at ends."""
    by_words = kernel is Kernel.WINDOW_WORDS  # of which the width of an element decides how they are made
    width_nbytes = element_nbytes if by_words else UNITS_NBYTES.get(kernel, element_nbytes)
    traits = ("unaligned",) * unaligned + ("ends",) * ends + ("reversed",) * mirrored
    return CostClass(kernel, width_nbytes, traits)


def step_of(source: Layout) -> int:
    """Elements of the source from one neighbour of the target to the next."""
    return abs(source.strides[-1]) if source.rank else 1


def pattern(source: Layout, width_nbytes: int) -> str:
    """Classifies the stride of a row in the source; short if a line is read again while it is cached."""
    if source.rank == 0 or abs(source.strides[-1]) <= 1:
        return "contiguous"
    inside = 1
    for size, stride in zip(reversed(source.sizes), reversed(source.strides), strict=True):
        if abs(stride) * width_nbytes < CACHE_LINE_NBYTES:
            return "short-stride" if inside <= CACHED_LINES else "long-stride"
        inside *= size
    return "long-stride"


@cache
def shipped(name: str) -> Costs:
    """Returns the shipped cost model of a file."""
    content = json.loads(packaged_text("wgslice.plans", f"cost_models/{name}.json"))
    parameters = content["costs"]
    classes = {
        CostClass.parsed(name): ClassCost(**costs) for name, costs in parameters.pop("classes").items()
    }
    return Costs(f"{content['about']}, {UNCALIBRATED}", **parameters, classes=classes)


def shipped_for(name: str, backend: str, driver: str, *, software: bool) -> Costs:
    """Returns the shipped cost model that is nearest to an adapter; Mesa before 25 takes that of 22.3."""
    if not software:
        return shipped("gpus")
    if "swiftshader" in name.lower():
        return shipped("swiftshader")
    if backend == "OpenGL":
        return shipped("llvmpipe-opengl")
    version = re.search(r"Mesa (\d+)", driver)
    is_old = version is not None and int(version[1]) < 25
    return shipped("lavapipe-22-3" if is_old else "lavapipe-25-0")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Launch configurations of a kind of adapters, and the cost model of one of them.

    Those of GPUs, the default, are judged by the output of their compilers, not measured yet.
    """

    name: str
    costs: Costs
    workgroup_size: int = 64  # invocations a workgroup
    words_each: tuple[int, ...] = (4,)  # per invocation of a row; each choice is a pipeline to compile
    subword_words_each: tuple[int, ...] = (4,)  # where words are assembled of sub-word elements
    blocks_each: int = 1  # of 16 bytes
    run_words: int = 4  # per invocation of short runs
    contiguous: bool = False  # whether an invocation's items are contiguous (blocked), or striped
    least_pieces: int = 32  # invocations per row before one copies several elements
    window_blocks: int = 1  # most blocks of 16 bytes per invocation of a window row
    sized_blocks: int = 1  # the same of windows of different sizes, of which none is compiled for a count
    window_words: int = 1  # most words that it assembles where rows of windows are not copied in blocks


GPU = Profile(name="gpu", costs=shipped("gpus"))
CPU = Profile(
    name="cpu",
    costs=shipped("lavapipe-25-0"),
    words_each=(4, 16),
    subword_words_each=(4, 32),
    blocks_each=8,
    run_words=32,
    contiguous=True,
    least_pieces=1,
    window_blocks=16,
    sized_blocks=64,
    window_words=64,
)


@dataclass(frozen=True)
class Limits:
    """Limits of a device that plans depend on; by default those that every WebGPU device has."""

    binding_nbytes: int = 2**27  # largest storage binding, bytes
    binding_alignment_nbytes: int = 256  # what a binding's offset is a multiple of; itself a multiple of 16
    workgroups: int = 2**16 - 1  # most workgroups in one dimension of a dispatch
    profile: Profile = GPU
    disabled: frozenset[Kernel] = frozenset()  # kernels that failed their tests on the device

    def __hash__(self) -> int:
        return self.binding_nbytes  # looked up at every copy; a process has few of these


FAILED = "its kernel failed the self-test of this device"
UNKNOWN = "the cost model lacks its cost class"


def all_disabled(what: str, limits: Limits) -> str:
    """Returns the error text if all kernels for a copy are disabled."""
    failed = ", ".join(sorted(kernel.value for kernel in limits.disabled))
    why = f"{failed} failed the self-test of this device" if failed else "none is applicable"
    remedy = "use another adapter, and report what `wgslice doctor` prints"
    return f"no kernel is left for {what}: {why}; {remedy}"


# Choices of vectors of 16 bytes per invocation of a row of windows; each is a pipeline of 0.1 to 0.4 s.
BLOCKS_EACH = (1, 2, 3, 4, 6, 8, 12, 16)

LINE_NBYTES = 64  # along a row, that neighbouring invocations copy together: half a cache line
SECTOR_NBYTES = 32  # the least that a GPU moves
WAVE_LANES = 32  # invocations that run together on the GPUs that have the fewest of them
# Tiles are in workgroup memory: 1 to 4 KiB, of whole lines on both sides, 2 to 4 vectors per invocation. The
# size is an override constant, so that a pipeline allocates no more than its tile. wgpu-native does not zero
# workgroup memory (29.0.1.1, measured on Vulkan and OpenGL): kernels write before they read. Browsers do,
# Firefox in one invocation (https://github.com/gfx-rs/wgpu/issues/4592): per byte copied that is the same
# work for tiles of any size, but the first load of a large tile begins later.
TILE_NBYTES = 128  # a side of a tile: 8 x 8 elements of 16 bytes, 32 x 32 of 4 bytes
WIDE_TILE_SIDES = {1: 64, 2: 32, 4: 32, 8: 16, 16: 16}  # elements of a side of a tile, by their bytes
PATTERN_NBYTES = 2**16  # of one element repeated, or of zeros, from which runs are filled

STAGING_NBYTES = 2**23  # of a staging buffer that readback goes through
MAX_STAGING_NBYTES = 2**27  # kept for reuse: three frames of 3840 x 2160 rgba8 that are read at a time
UPLOAD_CHUNK_NBYTES = 2**22  # written to the queue at a time: staging memory besides source and target
MAX_QUEUED_NBYTES = UPLOAD_CHUNK_NBYTES  # that the queue holds until the next submission
MIN_QUEUED_NBYTES = 2**16  # that a write counts as, so that the queue holds few

# Entries of caches; a full one gives up the least recently used entry.
MAX_PLANS = 4096  # of each planner, in 12 MB
MAX_PLACES = 64  # of a compiled operator: binding alignments and unpadded buffers
MAX_PIPELINES = 512  # of a device, besides those that plans hold
MAX_UNIFORM_BUFFERS = 1024  # of a device, besides those that plans hold
MAX_CONSTANTS = 64  # of a device: a fill's repeated element, and arrays of at most MAX_CONSTANT_NBYTES
MAX_CONSTANT_NBYTES = 2**12

# A graph keeps a buffer for later runs unless it is larger than this and more than twice as large as needed.
SMALL_NBYTES = 2**16  # and the most padding that a new output may have
MAX_HOST_NBYTES = 2**16  # of known elements that a graph's node moves on the host
