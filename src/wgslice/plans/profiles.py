"""Profiles and limits of devices, cost models, and every tuned number with its measurement."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from wgslice.layout import Layout
from wgslice.plans.kernels import UNITS_NBYTES, Kernel

CACHED_LINES = 256  # that a CPU's first cache, or a GPU's share of one for a workgroup, holds for sure
CACHE_LINE_NBYTES = 64

# Kernels whose speed does not depend on how neighbours of the target lie in the source.
ALIKE = {
    *(Kernel.SLICE1, Kernel.TILES, Kernel.WIDE_TILES, Kernel.PIXELS),
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
def copy_class(kernel: Kernel, width_nbytes: int, paired: bool, lies: str, step: int) -> CostClass:
    """The cost class of a copy, by how neighbours lie in the source and the elements from one to the next."""
    traits = ("paired",) if paired else ()
    if kernel in IN_BLOCKS:
        traits = (*traits, STEPS.get(step, STEPS[1]))
    elif kernel not in ALIKE:
        traits = (*traits, lies)
    return CostClass(kernel, width_nbytes, traits)


def windows_class(
    kernel: Kernel,
    element_nbytes: int,
    *,
    unaligned: bool = False,
    ends: bool = False,
    mirrored: bool = False,
) -> CostClass:
    """The cost class of a kernel on windows of elements of a width, in these, in words or blocks.

    Rows may begin or end inside of what it takes at a time, be taken at their ends alone, and go backwards.
    """
    by_words = kernel is Kernel.WINDOW_WORDS  # of which the width of an element decides how they are made
    width_nbytes = element_nbytes if by_words else UNITS_NBYTES.get(kernel, element_nbytes)
    traits = ("unaligned",) * unaligned + ("ends",) * ends + ("reversed",) * mirrored
    return CostClass(kernel, width_nbytes, traits)


def step_of(source: Layout) -> int:
    """Elements of the source from one neighbour of the target to the next."""
    return abs(source.strides[-1]) if source.rank else 1


def pattern(source: Layout, width_nbytes: int) -> str:
    """Classifies the source stride of elements of a target row: contiguous, short or long.

    A stride is short if a cache line is read again while it is still in the cache.
    """
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
    content = json.loads((files("wgslice.plans") / "cost_models" / f"{name}.json").read_text("utf-8"))
    parameters = content["costs"]
    classes = {
        CostClass.parsed(name): ClassCost(**costs) for name, costs in parameters.pop("classes").items()
    }
    return Costs(content["about"], **parameters, classes=classes)


def shipped_for(name: str, backend: str, driver: str, *, software: bool) -> Costs:
    """Returns the shipped cost model that is nearest to an adapter.

    lavapipe's memory accesses changed in a release between Mesa 22.3 and 25.0, which were measured; releases
    between them take the older model.
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


@dataclass(frozen=True)
class Profile:
    """Launch configurations of a kind of adapters, and the cost model of one of them."""

    name: str
    workgroup_size: int  # invocations a workgroup
    words_each: tuple[int, ...]  # that an invocation may take of a row; each choice is a pipeline to compile
    subword_words_each: tuple[int, ...]  # where words are put together of elements of 1 and 2 bytes
    blocks_each: int  # of 16 bytes
    run_words: int  # that an invocation takes of short runs
    contiguous: bool  # whether an invocation takes a piece of memory, or neighbours take neighbours
    least_pieces: int  # invocations a row before they take more than one element each
    window_blocks: int  # most blocks of 16 bytes that an invocation takes of a row of a window
    window_words: int  # most words that it puts together where rows of windows are not taken in blocks
    costs: Costs


# A CPU runs an invocation a lane of its vector unit; a piece of 64 bytes is a cache line.
#
# Pieces of rows, ms of two cores of an AMD EPYC, Mesa 22.3 and 25.0. Every third of 6 million float32 by 12
# words an invocation 7.1 and 4.8, 16 words 6.8 and 4.6, 20 words 6.7 and 4.5, 24 words 7.7 and 5.8, 32 words
# 9.2 and 6.4, backwards 16 words 27 and 24, 20 words 31 and 25; int64 by 8 elements 13 and 9.9, 16 16.5 and
# 14. BGR of 18 MB by 16 words 37 and 24, 20 words 36 and 23, 32 words 33 and 23. 36 MB of neighbours from an
# odd offset by 3 blocks 23 and 17, 6 blocks 19 and 14, 8 blocks 18 and 15, 12 blocks 18 and 12; rows of 256
# bytes backwards by 6 blocks 14, 8 blocks 13 (Mesa 22.3); every second of them by 3 blocks 17 and 12, 8
# blocks 17 and 11.
#
# Two dimensions as one row against one, the same cores: rows of 13 float32 8.5 and 5.8 against 10.1 and 7.1,
# of 100 7.1 and 5.7 against 7.7 and 5.0, of 3000 7.2 and 5.4 against 9.0 and 6.1; rows of 24 bytes 7.3 and
# 5.2 against 20 and 9.8, of 400 bytes 7.3 and 5.2 against 9.3 and 6.1. As short runs, bytes take 28 and 8.2.
#
# Buffer copies against a dispatch, ms with the wait, Mesa 25.0 and 22.3: 16 rows of 1 KiB 0.15 to 0.22 and
# 0.14 to 0.23, 64 of 4 KiB 0.35 to 0.32 and 0.35 to 0.37, 256 of 16 KiB 0.86 to 0.85 and 0.93 to 1.17, 512 of
# 64 KiB 3.3 to 4.1 and 3.5 to 6.9.
#
# Windows of 64 x 64 RGB, 10,000 of them, rows of 12 blocks, ms, Mesa 22.3: 2 blocks an invocation 40,
# 4 blocks 28, 6 blocks 26, 12 blocks 24; a buffer copy of as many bytes 18.
#
# 10,000 windows of short rows, ms of process time, Mesa 22.3, in blocks, by words of at most 64, and one
# element an invocation: 16 x 16 RGB 10, 28 and 316; 32 x 32 u8 14, 32 and 346; 8 x 8 x 8 float16 23, 23 and
# 210; 14 x 14 float32 22, none and 72; 4 x 4 float32 2.4, none and 8.2.
#
# Those that only go by words, of at most 16, 32, 64 and 128, and one element an invocation: 32 x 32 u8 two
# apart 38, 34, 30, 33 and 361; 14 x 14 u8 18, 19, 8.5, 8.3 and 77, whose windows are 49 words; 16 x 16 RGB
# two apart 30, 29, 29, 30 and 313; 20 x 20 u8 20, 15, 15, 15 and 140.
#
# A gradient that clears first against one that writes each byte once, ms with the wait, Mesa 22.3: into
# 4096 x 4096 float32 90 % 12.5 and 10.3, 64 % 9.9 and 10.0, 25 % 5.8 and 7.3, every second row and column 7.8
# and 11.4; into 1024 x 1024 90 % 1.41 and 1.28, 64 % 1.23 and 1.31; into 512 x 512 90 % 0.61 and 0.75; u8 RGB
# into 36 MB 87 % 7.3 and 6.3, into 12.5 MB 81 % 2.4 and 2.5.
CPU = Profile(
    "cpu",
    workgroup_size=64,
    words_each=(4, 16),
    subword_words_each=(4, 32),
    blocks_each=8,
    run_words=32,
    contiguous=True,
    least_pieces=1,
    window_blocks=16,
    window_words=64,
    costs=shipped("lavapipe-25-0"),
)

# A GPU merges the accesses of neighbouring invocations. Judged by GPU compilers, whose output is beside
# the numbers below; not measured yet.
GPU = Profile(
    "gpu",
    workgroup_size=64,
    words_each=(4,),
    subword_words_each=(4,),
    blocks_each=1,
    run_words=4,
    contiguous=False,
    least_pieces=32,
    window_blocks=1,
    window_words=1,
    costs=shipped("gpus"),
)


@dataclass(frozen=True)
class Limits:
    """Limits of a device that plans depend on."""

    binding_nbytes: int  # largest storage binding, bytes
    binding_alignment_nbytes: int  # what a binding's offset is a multiple of; itself a multiple of 16
    workgroups: int  # most workgroups in one dimension of a dispatch
    profile: Profile = GPU
    disabled: frozenset[Kernel] = frozenset()  # kernels that failed their tests on the device

    def __hash__(self) -> int:
        return self.binding_nbytes  # looked up at every copy; a process has few of these


FAILED = "its kernel failed the self-test of this device"
UNKNOWN = "the cost model lacks its cost class"


def untrusted(what: str, limits: Limits) -> str:
    """Returns the error text if all kernels for a copy are disabled."""
    failed = ", ".join(sorted(kernel.value for kernel in limits.disabled))
    return (
        f"no kernel is left for {what}: {failed} failed the self-test of this device; use another adapter, "
        "and report what `wgslice doctor` prints"
    )


# Blocks that an invocation may take of a row of windows: few choices, since each is a pipeline to compile,
# 0.1 to 0.4 s on lavapipe.
BLOCKS_EACH = (1, 2, 3, 4, 6, 8, 12, 16)

# Bytes that lanes beside each other take along a row where it has them: half a cache line. With 128, rows of
# 16 blocks leave half of the lanes idle: RADV's inverse throughput for 16 bytes (NAVI21, robust access) 103
# instead of 52.
LINE_NBYTES = 64

# What GPUs move at least, bytes: a row that begins inside of a sector costs one more. And the invocations
# that run together on the GPUs that have the fewest of them: of a row they take as much as they can in one
# piece.
SECTOR_NBYTES = 32
WAVE_LANES = 32

# Bytes of a tile's side; of 16-byte elements a tile is 8 x 8, of 4-byte ones 32 x 32, in 4 KiB. Not
# measured yet: a GPU's cache lines are 64 to 128 bytes long.
TILE_NBYTES = 128

# Bytes of one element repeated, or of zeros, from which runs are filled. 64 MiB filled on lavapipe, Mesa
# 22.3, two cores of an AMD EPYC, with the wait: from 4 and 16 KiB, which shaders copy, 28 ms, from 64 KiB
# 8.6 ms, from 256 KiB and 1 MiB, which a small fill would upload as well, 6.8.
PATTERN_NBYTES = 2**16

# Elements of a side of a tile of `wide_tiles`, by their bytes: vectors for each lane of a workgroup of 64, 64
# bytes and more along both sides. RADV's inverse throughput for 16 bytes (NAVI21, robust access): 1 byte
# 184, 2 bytes 200 (64 a side 253), 4 bytes 178 (64 a side 382), 8 bytes 200 (32 a side 243), 16 bytes 168.
WIDE_TILE_SIDES = {1: 64, 2: 32, 4: 32, 8: 16, 16: 16}

# Blocks of 16 bytes that an invocation of `pixels` puts together, by channels: whole pixels, several where
# the fewest would be small. RADV's inverse throughput for 16 bytes (NAVI21, robust access): every third byte
# 195 by 4 blocks, 268 by 2, 412 by 1; three channels 159 by 3, 213 by 6; four 201 by 2, 343 by 1.
PIXEL_BLOCKS = {1: 4, 2: 2, 3: 3, 4: 2}

# Staging buffers that readback goes through. 64 MiB on lavapipe took, in multiples of a warm memcpy, 2.7
# through 2 buffers of 2 MiB, 2.0 of 4 MiB, 1.8 of 8 and 1.8 of 16; a new array's page faults are 0.5 of
# that.
STAGING_NBYTES = 2**23
MAX_STAGING = 2

# Bytes written to the queue at a time, which is what an upload takes of memory beside its source and its
# target. 64 MiB on lavapipe took, in multiples of a warm memcpy, 1.0 in chunks of 2 MiB, 0.9 of 4, 0.8 of
# 8, 2.7 of 16 (fresh memory each time).
UPLOAD_CHUNK_NBYTES = 2**22

# Entries of caches; a full one gives up the entry that was used longest ago. A plan takes 3 KB of memory
# and 0.5 ms to make, a pipeline 70 to 120 ms (lavapipe), a uniform buffer 5 us and the least that a driver
# allocates.
MAX_PLANS = 4096  # of each planner, in 12 MB
MAX_PLACES = 64  # of a compiled operator: binding alignments and unpadded buffers
MAX_PIPELINES = 512  # of a device, beside those that plans hold
MAX_UNIFORM_BUFFERS = 1024  # of a device, as above

# A graph keeps a buffer for the next run unless it is larger than this and more than twice as large as
# needed: to make one takes 5 to 9 us, to touch fresh memory 1.1 us a KiB (77 ms for 64 MiB on lavapipe).
SMALL_NBYTES = 2**16  # and padding of a new output, added without asking

# A graph moves at most this number of bytes that the host knows there. On lavapipe, Mesa 22.3, two cores of
# an AMD EPYC, ConstantOfShape, Expand, Unsqueeze and Concat of two such before a copy, us on the host and on
# the adapter: of 1 KiB 536 and 704, of 64 KiB 572 and 825, of 256 KiB 677 and 1190, of 1 MiB 3938 and 2997.
# What more would take to upload to another GPU is not measured.
MAX_HOST_NBYTES = 2**16
