"""Memory that invocations access: the counting, and the counts of the kernels for GPUs."""

from __future__ import annotations

import json
from itertools import chain

import numpy as np
import pytest
from reference.memory import Accesses

from bench.compilers.accesses import READ, WRITTEN, accesses, lines_touched, sectors_touched
from bench.compilers.planned import ASKED
from bench.contest import ROOT

pytestmark = pytest.mark.slow

KEPT = ROOT / "bench" / "results" / "compilers-mesa-25-0-7.json"


def touching(places: list[list[int]], nbytes: int) -> Accesses:
    """Accesses of some invocations, each with its places in bytes."""
    invocations = np.repeat(np.arange(len(places), dtype=np.uint32), [len(own) for own in places])
    return Accesses(invocations, np.array(list(chain.from_iterable(places)), np.uint32), nbytes)


def test_a_waves_sectors_count_once() -> None:
    words = touching([[0, 32], [4, 36], [31, 0], [64, 68]], 4)
    assert sectors_touched([words], 4) == 3 * 32
    assert sectors_touched([words], 2) == (2 + 2) * 32  # the third one touches the first two again
    assert sectors_touched([words, words], 2) == 4 * 32
    assert sectors_touched([words], 1) == (2 + 2 + 1 + 1) * 32
    assert sectors_touched([], 4) == 0


def test_lines_are_counted_for_each_instruction() -> None:
    """The n-th access of an invocation is of one instruction with the n-th of its neighbours."""
    words = touching([[0, 128], [4, 256], [8, 132], [1024, 136]], 4)
    assert lines_touched(words, 4) == (2 + 2, 2)
    assert lines_touched(words, 2) == (1 + 2 + 2 + 1, 4)
    assert lines_touched(touching([[], []], 4), 2) == (0, 0)


BOUNDS = {
    # runs of 64 bytes and more
    **dict.fromkeys(
        [
            *("f32 crop, aligned", "f32 crop, odd offsets", "f32 every second row", "f32 horizontal flip"),
            *("f32 vertical flip", "u8 RGB crop, odd offsets", "u8 RGB crop of 1200 x 1200"),
            *("f16 KV cache crop", "f16 gated halves", "f32 Swin patch merging", "crop to 1 MiB"),
        ],
        (0.95, 0.95),
    ),
    # permutes of every width
    **dict.fromkeys(
        [
            *("f32 transpose", "f16 transpose", "u8 transpose", "i64 transpose", "f32 0-2 permute"),
            *("f16 NCHW to NHWC", "f16 NHWC to NCHW", "u8 NCHW to NHWC, 3 channels", "u8 HWC to CHW"),
        ],
        (0.9, 0.9),
    ),
    # steps: elements between are read as well
    "f32 every second column": (0.95 / 2, 0.95),
    "f32 every third column, backwards": (0.95 / 3, 0.95),
    "u8 half size": (0.95 / 2, 0.95),
    "f32 x.T[::2]": (0.95 / 2, 0.95),
    "u8 RGB, the green channel": (0.95 / 3, 0.95),
    "u8 RGB to BGR": (0.95, 0.95),
    "u8 RGBA to RGB": (0.95 * 3 / 4, 0.95),
    # windows of rows of 48 bytes that begin anywhere
    "10,000 crops of 16 x 16 RGB": (0.5, 0.95),
    # side by side they begin at every second sector, or in the middle of one
    "4,096 patches of 16 x 16 RGB on a grid": (48 / 64, 0.95),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_most_of_what_is_touched_is_useful(name: str) -> None:
    """On a GPU, in waves of 32 and of 64; and that is what is kept."""
    (case,) = (case for case in ASKED if case.name == name)
    found = accesses(case)
    read, written = BOUNDS[name]
    for touched in found.values():
        assert touched[READ] >= read
        assert touched[WRITTEN] >= written
    assert json.loads(KEPT.read_text("utf-8"))["accesses"][name] == found
