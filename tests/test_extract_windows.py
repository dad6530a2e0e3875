"""Many windows at once: against NumPy and reference implementations, also where limits split everything."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np
import pytest
from changed_modules import clamped_module
from helpers import (
    WIDTHS,
    Bytes,
    check_bytes,
    check_refused,
    check_same,
    default_tier,
    make_buffer,
    on_one_adapter,
    random_bytes,
    read_buffer,
    record,
    view_bytes,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from planning import (
    USUAL,
    dispatches_of,
    favouring,
    kernels_of,
    names_of,
    only_dispatch,
    planned_extraction,
    planned_windows,
    preferring,
    ranking,
)
from reference.plans import run_plan
from running import Compile, Limit, run_on_gpu, run_side_by_side, side_by_side
from strategies import BetweenBuffers, nested_strides
from trials import Trial, of_the_tier

import wgslice as wg
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import MAX_PREPARED_VALUES
from wgslice.plans.facade import every
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits, Profile

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
PROFILES = [
    CPU,
    GPU,
    replace(CPU, window_blocks=1, sized_blocks=1, window_words=2, workgroup_size=8),
    replace(GPU, blocks_each=2, sized_blocks=2, window_words=3, workgroup_size=8),
]
NAMES = ["cpu", "gpu", "cpu, one block or two words", "gpu, two blocks or three words"]

# Profiles on which each kernel is chosen wherever it is applicable, besides those above.
KERNELS = [
    *(Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS),
    *(Kernel.INSERT_WINDOWS, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS),
]
FAVOURING = [favouring(profile, kernel) for profile in (CPU, GPU) for kernel in KERNELS]

# Profiles that prefer kernels of blocks to those of words, and these to those of elements.
BLOCKS_FIRST = {
    profile: ranking(
        profile,
        *(Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS, Kernel.WINDOW_WORDS, Kernel.INSERT_WORDS),
        *(Kernel.EXTRACT_WINDOWS, Kernel.INSERT_WINDOWS),
    )
    for profile in (CPU, GPU)
}


def numpy_windows(array: Any, offsets: Any, sizes: Any, strides: Any, fill: Any = None) -> Any:
    """Each window in NumPy's words, its outside filled."""
    rank, count = array.ndim, len(offsets)
    steps = np.broadcast_to(strides, (count, rank))
    kept = [
        1 + (size - 1) // abs(int(step))
        for size, step in zip(sizes, steps[0] if count else [1] * rank, strict=True)
    ]
    result = np.empty((count, *kept), array.dtype)
    for window in range(count):
        axes = [
            np.arange(int(offset), int(offset) + size)[:: int(step)]
            for offset, size, step in zip(offsets[window], sizes, steps[window], strict=True)
        ]
        result[window] = array[
            np.ix_(*(np.clip(i, 0, n - 1) for i, n in zip(axes, array.shape, strict=True)))
        ]
        for axis, (indices, extent) in enumerate(zip(axes, array.shape, strict=True)):
            outside = (indices < 0) | (indices >= extent)
            if outside.any():
                np.moveaxis(result[window], axis, 0)[outside] = fill
    return result


@dataclass(frozen=True, eq=False)
class Case(BetweenBuffers):
    """Windows of an input of any layout."""

    width: int
    input: Layout
    offsets: NDArray[np.int64]
    sizes: tuple[int, ...]
    strides: NDArray[np.int64]
    fill: Any
    output: Layout
    seed: int

    @property
    def sides(self) -> tuple[Layout, Layout]:
        return self.input, self.output

    def expected(self, source: Bytes, target: Bytes) -> Bytes:
        array = np.ascontiguousarray(view_bytes(source, self.input, self.width))
        bits = array.view(f"V{self.width}").reshape(self.input.sizes)
        fill = (
            None if self.fill is None else np.asarray(self.fill, self.dtype)[None].view(f"V{self.width}")[0]
        )
        windows = numpy_windows(bits, self.offsets, self.sizes, self.strides, fill)
        result = target.copy()
        view_bytes(result, self.output, self.width)[...] = windows
        return result

    def plan(self, limits: Limits, **context: Any) -> wg.Plan:
        """The plan between two buffers, from their beginnings on."""
        windows = self.offsets, self.sizes, self.strides, self.fill
        return planned_extraction(limits, self.input, self.output, self.width, *windows, **context)

    def descriptor(self, offsets: Any) -> wg.ExtractWindows:
        return wg.ExtractWindows(*self.described, offsets, self.sizes, self.strides, self.fill)


@st.composite
def picture_sizes(draw: st.DrawFn) -> tuple[int, ...]:
    """Sizes of what windows are of, the last one now and then a number of channels."""
    rank = draw(st.integers(1, 4) | st.integers(1, 8))
    most = {1: 300, 2: 40, 3: 12}.get(rank, 4)
    shape = tuple(draw(st.integers(1, most)) for _ in range(rank))
    return (*shape[:-1], draw(st.integers(1, 4))) if rank > 1 and draw(st.booleans()) else shape


@st.composite
def window_cases(draw: st.DrawFn) -> Case:
    width, shape = draw(st.sampled_from(WIDTHS)), draw(picture_sizes())
    rank = len(shape)
    packed = draw(st.booleans())
    strides = list(Layout.packed(shape).strides) if packed else draw(nested_strides(shape, broadcast=True))
    input = Layout.of(shape, strides, draw(st.integers(0, 40)))
    filled = draw(st.booleans())
    count = draw(st.integers(1, 7))
    sizes = []
    for size in shape:
        whole = draw(st.booleans())
        sizes.append(size if whole else draw(st.integers(1, size + 3 * filled)))
    offsets = np.zeros((count, rank), np.int64)
    for window in range(count):
        for axis, (size, extent) in enumerate(zip(shape, sizes, strict=True)):
            inside = draw(st.integers(0, size - extent)) if extent <= size else -1
            leaving = filled and draw(st.integers(0, 3)) == 0
            offsets[window, axis] = (
                draw(st.integers(-extent - 2, size + 2)) if leaving or inside < 0 else inside
            )
    magnitudes = [draw(st.sampled_from([1, 1, 1, 1, 2, 3])) for _ in shape]
    per_window = draw(st.booleans())
    signs = np.ones((count if per_window else 1, rank), np.int64)
    for axis in range(rank):
        if draw(st.integers(0, 2)) == 0:
            for row in signs:
                row[axis] = draw(st.sampled_from([1, -1]))
    taken = (count, *(1 + (extent - 1) // step for extent, step in zip(sizes, magnitudes, strict=True)))
    output_strides = (
        list(Layout.packed(taken).strides)
        if draw(st.booleans())
        else draw(nested_strides(taken, broadcast=False))
    )
    output = Layout.of(taken, output_strides, draw(st.integers(0, 40)))
    fill = draw(st.integers(-100, 100)) if filled else None
    strides_of = signs * magnitudes
    return Case(
        width,
        input,
        offsets,
        tuple(sizes),
        strides_of if per_window else strides_of[0],
        fill,
        output,
        draw(st.integers(0, 999)),
    )


def tensor(device: wg.Device, content: Bytes, layout: Layout, dtype: str) -> wg.Tensor:
    """A layout on a buffer; made by hand, since it may have a dimension more than `from_buffer` takes."""
    return wg.Tensor(device, make_buffer(device, content), np.dtype(dtype), layout)


SMALL_LIMITS = [(2**27, 65535), (8 * 32 + 16, 2), (16 * 32, 3)]  # largest binding, workgroups


@given(
    case=window_cases(),
    profile=st.sampled_from(PROFILES + FAVOURING),
    small=st.sampled_from(SMALL_LIMITS),
    on_gpu=st.booleans(),
    unpadded=st.sampled_from([None, "source", "target"]),
)
def test_reference_implementations_equal_numpy(
    case: Case, profile: Profile, small: tuple[int, int], on_gpu: bool, unpadded: str | None
) -> None:
    limits = Limits(small[0], 32, small[1], profile)
    capacity = {} if unpadded is None else {f"{unpadded}_capacity_nbytes": case.whole_nbytes(unpadded)}
    # larger ones have no steps or over 500 in small bindings, now and then minutes of planning
    assume(small == SMALL_LIMITS[0] or max(map(case.whole_nbytes, ("source", "target"))) <= 2**14)
    check_in_numpy(case.plan(limits, on_gpu=on_gpu, **capacity), limits, case, case)


# Windows of one channel of three, one of them reversed.
OF_A_CHANNEL = [
    Case(
        width,
        Layout.of((12, 14), (42, 3), 1),
        np.array([[0, 0], [8, 9], [3, 5]]),
        (4, 5),
        np.array([[1, 1], [1, -1], [-1, 1]]),
        None,
        Layout.packed((3, 4, 5)),
        0,
    )
    for width in (1, 4, 8)
]


@example(case=OF_A_CHANNEL[0], profile=CPU, on_gpu=True, alignments=None)
@example(case=OF_A_CHANNEL[1], profile=CPU, on_gpu=True, alignments=12)
@example(case=OF_A_CHANNEL[2], profile=GPU, on_gpu=False, alignments=12)
@given(
    case=window_cases(),
    profile=st.sampled_from([CPU, GPU]),
    on_gpu=st.booleans(),
    alignments=st.sampled_from([None, 12, 40]),
)
def test_every_strategy_to_extract_is_right(
    device: wg.Device, case: Case, profile: Profile, on_gpu: bool, alignments: int | None
) -> None:
    """Also where bindings hold a part of the input or of the output only."""
    limits = replace(device.limits, profile=profile)
    if alignments is not None:
        limits = replace(limits, binding_nbytes=alignments * limits.binding_alignment_nbytes)
    plan = case.plan(limits, on_gpu=on_gpu)
    assume(len(plan.steps) <= 100)
    source, target = case.buffers()
    expected = case.expected(source, target)
    for _, by_strategy in every(plan):
        check_bytes(run_on_gpu(device, by_strategy, source, target, offset_table(case.offsets)), expected)


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("fill", [None, 7])
@pytest.mark.parametrize(
    ("width", "size", "step", "on_gpu"),
    [
        *((1, size, step, True) for size in (31, 37, 48) for step in (1, -1)),
        *((1, 37, 1, False), (2, 67, 2, True), (4, 13, 1, True), (4, 16, -1, True)),
    ],
)
def test_rows_of_an_input_beyond_a_binding_are_copied_by_parts(
    device: wg.Device, profile: Profile, fill: Any, width: int, size: int, step: int, on_gpu: bool
) -> None:
    """Of rows that share blocks, each writes its own bytes, whichever parts the two are in."""
    alignment = device.limits.binding_alignment_nbytes
    limits = replace(device.limits, profile=BLOCKS_FIRST[profile], binding_nbytes=16 * alignment)
    shape = max(30 * alignment // (80 * width), 5), 80
    offsets = np.random.default_rng(size).integers(-2 if fill else 0, [shape[0] - 3, 80 - size], (40, 2))
    taken = (40, 3, 1 + (size - 1) // abs(step))
    sides = Layout.packed(shape), Layout.packed(taken, 3)
    case = Case(width, sides[0], offsets, (3, size), np.array([1, step]), fill, sides[1], 0)
    plan = case.plan(limits, on_gpu=on_gpu)
    parts = [each for each in dispatches_of(plan) if each.kernel is Kernel.WINDOW_ROWS]
    assert len(parts) > 1
    assert all(each.segment for each in parts)
    source, target = case.buffers()
    expected, result = case.expected(source, target), target.copy()
    run_plan(plan, source, result, offsets)
    check_bytes(result, expected)
    check_bytes(run_on_gpu(device, plan, source, target, offset_table(offsets)), expected)


@pytest.mark.parametrize(
    ("width", "count", "strategy"),
    [
        (1, 1, "window_words"),
        (1, 5000, "packed first"),
        (4, 1, "sized_windows"),
        (4, 5000, "packed first"),
    ],
)
def test_a_tensor_is_packed_before_many_windows_of_one_channel(width: int, count: int, strategy: str) -> None:
    offsets = np.zeros((count, 2), int)
    channel, broadcast = (Layout.of((500, 500), (rows, 3)) for rows in (1500, 0))
    plan = planned_extraction(CPU, channel, None, width, offsets, (40, 40))
    assert plan.choice is not None
    assert plan.choice.name == strategy
    rows = planned_extraction(CPU, broadcast, None, width, offsets, (40, 40))
    assert "packed first" not in {choice.name for choice in rows.choices}


@pytest.mark.parametrize(("binding_nbytes", "packed"), [(10_000, True), (9_999, False)])
def test_a_packed_tensor_fits_a_binding_and_so_a_buffer(binding_nbytes: int, packed: bool) -> None:
    channel, limits = Layout.of((50, 50), (150, 3)), replace(USUAL, binding_nbytes=binding_nbytes)
    plan = planned_extraction(limits, channel, None, 4, [[0, 0], [30, 30]], (20, 20))
    assert ("packed first" in {choice.name for choice in plan.choices}) is packed


def check_in_numpy(plan: wg.Plan, limits: Limits, case: Any, written: Any) -> None:
    """The bindings of a plan and, by the reference implementations, all bytes that it writes."""
    assume(len(plan.steps) <= 500)
    check_bindings(plan, limits)
    source, target = case.buffers()
    result = target.copy()
    run_plan(plan, source, result, case.offsets)
    check_bytes(result, written.expected(source, target))


def offset_table(offsets: NDArray[np.int64]) -> Bytes:
    """Offsets as a table that a plan of windows reads."""
    return np.frombuffer(offsets.astype(np.int32).tobytes(), np.uint8)


def check_bindings(plan: wg.Plan, limits: Limits) -> None:
    """The bindings and the grid of every step are within the limits."""
    for step in dispatches_of(plan):
        assert max(step.share.workgroups) <= limits.workgroups
        for binding in (step.source_binding, step.target_binding):
            assert 0 < binding.nbytes <= limits.binding_nbytes
            assert binding.offset_nbytes % limits.binding_alignment_nbytes == 0


def photographs(
    width: int,
    channels: int,
    size: int,
    *,
    fill: Any = None,
    mirror: bool = True,
    skip: int = 0,
    leave: int | None = None,
    step: int = 1,
    apart: int = 1,
) -> Case:
    """Windows of an image of pixels, forwards and backwards, of rows `size` pixels long.

    They are `step` pixels apart in the image, and their elements `apart` in the output. They may leave the
    image by `leave` pixels, which are 4 where they are filled.
    """
    leave = (0 if fill is None else 4) if leave is None else leave
    rng = np.random.default_rng(channels * 100 + size)
    extent = (size - 1) * step + 1
    height, breadth, count = 5, extent + 9, 9
    offsets = np.stack(
        [
            rng.integers(-leave, 3 + leave, count),
            rng.integers(-leave, 10 + leave, count),
            np.zeros(count, int),
        ],
        1,
    )
    strides = np.ones((count, 3), np.int64)
    if mirror:
        strides[:, :2] = rng.choice([1, -1], (count, 2))
    strides[:, 1] *= step
    input = Layout.packed((height, breadth, channels), skip)
    packed = Layout.packed((count, 3, size, channels))
    output = Layout.of(packed.sizes, [stride * apart for stride in packed.strides], skip)
    return Case(width, input, offsets, (3, extent, channels), strides, fill, output, size)


CONDITIONS: dict[Kernel, list[Case]] = {
    Kernel.EXTRACT_WINDOWS: [
        *(
            photographs(width, 1, 5, fill=fill, step=2, apart=apart)
            for width, apart in ((4, 1), (8, 1), (16, 2))
            for fill in (None, 7)
        ),
        *(
            photographs(width, 1, 7, fill=fill, skip=skip, apart=2)
            for width in (1, 2)
            for fill in (None, 7)
            for skip in range(4)
        ),
    ],
    Kernel.WINDOW_WORDS: [
        # windows of a byte and more, from every byte of a word on, forwards and backwards, inside and not
        *(
            photographs(width, channels, size, fill=fill, mirror=mirror, skip=skip, step=step)
            for width in (1, 2)
            for channels, size, step in ((1, 1, 1), (1, 7, 1), (3, 2, 1), (1, 99, 2), (3, 5, 2), (2, 90, 3))
            for fill in (None, 7)
            for mirror in (False, True)
            for skip in range(4)
        ),
        photographs(1, 16, 5, skip=1),  # too many elements that keep their order
    ],
    Kernel.WINDOW_ROWS: [
        # every number of channels and width, mirrored and not, from every byte on, rows with whole blocks and
        # without
        *(
            photographs(width, channels, -(-size // (width * channels)), mirror=mirror, skip=skip)
            for width in (1, 2, 4)
            for channels in (1, 2, 3, 4, 5, 7, 15)
            for size in (31, 32, 64, 67, 192)
            for mirror in (False, True)
            for skip in (0, 1, 3)
            if width * channels <= 16
        ),
        *(photographs(width, 1, 96 // width, mirror=mirror) for width in (8, 16) for mirror in (False, True)),
        # rows of one block
        *(photographs(width, 1, 16 // width, mirror=mirror) for width in WIDTHS for mirror in (False, True)),
        # windows that leave the input by some, by all, and not at all
        *(
            photographs(width, channels, size, fill=-3, leave=leave, mirror=mirror, skip=skip)
            for width, channels in ((1, 1), (1, 3), (2, 3), (4, 1), (4, 3), (8, 1), (16, 1))
            for size in (-(-nbytes // (width * channels)) for nbytes in (36, 64, 76))
            for leave in (3, 90)
            for mirror in (False, True)
            for skip in (0, 1)
        ),
    ],
}


# rows that hold no block where they begin inside of one: for pieces that may be empty
SHORT_ROWS = [
    photographs(width, 1, size // width, fill=fill, leave=leave, mirror=mirror, skip=skip)
    for width, sizes in ((1, (16, 17, 30)), (2, (16, 18, 30)), (4, (16, 20, 28)))
    for size in sizes
    for fill, leave in ((None, 0), (7, 9))
    for mirror in (False, True)
    for skip in (1, 5)
]


def conditions(kernel: Kernel, profile: Profile) -> list[Case]:
    """The launch configuration of a kernel with a profile."""
    short = SHORT_ROWS if kernel is Kernel.WINDOW_ROWS and not profile.contiguous else []
    return CONDITIONS[kernel] + short


def check_conditions(device: wg.Device, kernel: Kernel, profile: Profile) -> None:
    """What a kernel's conditions list, against NumPy, of as many pipelines as the tier has."""
    limits, trials = replace(device.limits, profile=favouring(profile, kernel)), {}
    for number, case in enumerate(conditions(kernel, profile)):
        plan = case.plan(limits)
        assert kernels_of(plan) == [kernel], number
        trials[Trial(plan, str(number), 0, 0, case.expected)] = case
    runs, expected = [], []
    for trial in of_the_tier(trials):
        case = trials[trial]
        source, target = case.buffers()
        expected.append(case.expected(source, target))
        assert not np.array_equal(expected[-1], target)
        runs.append((trial.plan, source, target, offset_table(case.offsets)))
    check_bytes(run_side_by_side(device, runs), side_by_side(device, expected)[0])


@pytest.mark.parametrize("profile", default_tier(PROFILES, NAMES, 2))
@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
def test_each_kernel_at_the_edges_of_its_conditions(
    device: wg.Device, kernel: Kernel, profile: Profile
) -> None:
    check_conditions(device, kernel, profile)


@pytest.mark.slow  # compiles every kernel anew
@pytest.mark.parametrize(
    "profile", [pytest.param(CPU, id="cpu", marks=pytest.mark.deep), pytest.param(GPU, id="gpu")]
)
@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
@on_one_adapter  # adapters differ in what they read there, but none does in what is clamped
def test_no_kernel_needs_what_is_out_of_bounds(
    device: wg.Device, compile_modules: Compile, kernel: Kernel, profile: Profile
) -> None:
    """Adapters differ in what they read there."""
    compile_modules(clamped_module)
    check_conditions(device, kernel, profile)


def plan_of(
    shape: Any,
    sizes: Any,
    *,
    width: int = 1,
    strides: Any = None,
    filled: bool = False,
    count: int = 4,
    **changes: Any,
) -> wg.Plan:
    """The plan of windows at 0 of a packed input on a CPU, by elements as a last resort."""
    offsets = np.full((count, len(shape)), -filled)
    offsets[:, np.asarray(sizes) == np.asarray(shape)] = 0
    steps = np.abs(strides) if strides is not None else [1] * len(shape)
    kept = [1 + (size - 1) // step for size, step in zip(sizes, steps, strict=True)]
    target = Layout.packed((count, *kept), changes.pop("skip", 0))
    limits = replace(USUAL, **{"profile": BLOCKS_FIRST[CPU], **changes})
    fill = 0 if filled else None
    return planned_extraction(limits, Layout.packed(shape), target, width, offsets, sizes, strides, fill)


def test_kernels_at_both_sides_of_each_condition() -> None:
    rows, words, elements = Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS, Kernel.EXTRACT_WINDOWS
    for arguments, kernel in [
        ({"shape": (9, 99), "sizes": (3, 31)}, rows),
        ({"shape": (9, 99), "sizes": (3, 30)}, words),  # a row that may hold no block
        ({"shape": (9, 99), "sizes": (3, 30), "profile": BLOCKS_FIRST[GPU]}, rows),
        ({"shape": (9, 99), "sizes": (3, 16), "skip": 16}, rows),
        ({"shape": (9, 99), "sizes": (3, 16), "skip": 1}, words),
        ({"shape": (9, 99), "sizes": (3, 16), "skip": 1, "profile": BLOCKS_FIRST[GPU]}, rows),
        ({"shape": (9, 99), "sizes": (3, 15)}, words),  # three rows in a block
        ({"shape": (9, 99), "sizes": (3, 15), "profile": BLOCKS_FIRST[GPU]}, words),
        ({"shape": (9, 99), "sizes": (3, 8), "width": 4}, rows),
        ({"shape": (9, 99), "sizes": (3, 7), "width": 4}, elements),
        ({"shape": (9, 99), "sizes": (3, 7), "width": 4, "profile": BLOCKS_FIRST[GPU]}, rows),
        ({"shape": (9, 99), "sizes": (3, 3), "width": 4, "profile": BLOCKS_FIRST[GPU]}, elements),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (2, 1)}, rows),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 2)}, rows),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, -4), "width": 2}, rows),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 2), "width": 8}, rows),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 2), "width": 16}, elements),  # no block of two
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 3)}, words),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 3), "width": 2}, words),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (1, 3), "width": 4}, elements),
        ({"shape": (9, 99), "sizes": (3, 15), "binding_nbytes": 1024}, words),
        ({"shape": (99, 99), "sizes": (3, 15), "binding_nbytes": 1024}, elements),  # a source in segments
        ({"shape": (9, 99), "sizes": (9, 90), "strides": (1, 3), "binding_nbytes": 1024}, words),
        ({"shape": (9, 99), "sizes": (3, 90), "strides": (-1, -1)}, rows),
        ({"shape": (9, 99, 15), "sizes": (3, 9, 15), "strides": (1, -1, 1)}, rows),
        ({"shape": (9, 99, 17), "sizes": (3, 9, 17), "strides": (1, -1, 1)}, words),  # rows of a pixel
        ({"shape": (9, 99, 80), "sizes": (3, 9, 80), "strides": (1, -1, 1)}, rows),
        ({"shape": (9, 99, 3), "sizes": (3, 90, 2)}, words),  # not all channels
        ({"shape": (9, 99, 3), "sizes": (3, 90, 3), "filled": True}, rows),
    ]:
        assert {*kernels_of(plan_of(**cast("Any", arguments)))} == {kernel}, arguments


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_stepped_rows_leave_the_input_on_both_sides(device: wg.Device, dtype: str, step: int) -> None:
    """Rows of an extent that no step divides, every other one backwards, at all places in a block."""
    array = random_bytes(9 * 200 * np.dtype(dtype).itemsize, step).view(dtype).reshape(9, 200)
    offsets = np.stack([np.arange(60) % 5, np.arange(60) * 7 - 170], axis=1)
    strides = np.tile([[1, step], [1, -step]], (30, 1))
    found = wg.extract_windows(wg.asarray(array, device=device), offsets, (4, 134), strides, fill=1).numpy()
    padded = np.pad(array, ((0, 0), (200, 400)), constant_values=1)
    for number, (y, x) in enumerate(offsets + np.array([0, 200])):
        window = padded[y : y + 4, x : x + 134][:, :: -1 if number % 2 else 1]
        assert found[number].tobytes() == window[:, ::step].tobytes(), number


def test_a_row_coalesces_all_whole_dimensions() -> None:
    for shape, sizes, strides, rank, row_nbytes, channels in [
        ((9, 99, 3), (4, 30, 3), (1, 1, 1), 2, 90, 1),
        ((9, 99, 3), (4, 30, 3), (1, -1, 1), 2, 90, 3),
        ((9, 99, 4), (4, 30, 4), (1, -1, 1), 2, 120, 1),  # a pixel is an element
        ((9, 99, 3), (4, 99, 3), (1, 1, 1), 1, 4 * 297, 1),
        ((9, 99, 3), (4, 99, 3), (1, -1, 1), 2, 297, 3),
        ((9, 99, 3), (4, 99, 3), (-1, 1, 1), 2, 297, 1),  # long rows go backwards one by one
        ((9, 99, 96), (4, 30, 96), (1, -1, 1), 3, 96, 1),
    ]:
        step = only_dispatch(plan_of(shape, sizes, strides=strides))
        assert (len(step.dimensions), step.row_nbytes, step.channels) == (rank, row_nbytes, channels)


def test_one_dispatch_unless_limits_demand_more() -> None:
    many: dict[str, Any] = {"shape": (4096, 4096, 3), "sizes": (64, 64, 3), "count": 10_000}
    step = only_dispatch(plan_of(**many, strides=(1, -1, 1)))
    assert step.kernel is Kernel.WINDOW_ROWS
    assert str(step).startswith("kernel window_rows on 10,000 windows of (64, 64), ")
    assert len(plan_of(**many, binding_nbytes=2**26).steps) == 2  # 123 MB of output in bindings of 67 MB
    tiny: dict[str, Any] = {
        "shape": (40, 40),
        "sizes": (15, 22),
        "strides": (2, 3),
        "width": 4,
        "count": 64,
    }
    assert len(plan_of(**tiny).steps) == 1
    assert len(plan_of(**tiny, workgroups=4).steps) == 4  # 4096 elements, 16 workgroups of 64 a dispatch


@given(st.integers(31, 3000), st.integers(0, 15), st.sampled_from(PROFILES))
def test_pieces_cover_every_row_and_fit_in_it(row_nbytes: int, skip: int, profile: Profile) -> None:
    """Wherever a row begins it has `each` whole blocks, and the pieces together have all of them."""
    source, target = Layout.packed((9, 9000)), Layout.packed((3, 2, row_nbytes), skip)
    in_blocks = favouring(profile, Kernel.WINDOW_ROWS)
    plan = planned_extraction(in_blocks, source, target, 1, np.zeros((3, 2), int), (2, row_nbytes))
    step = only_dispatch(plan)
    assert (step.kernel, step.row_nbytes) == (Kernel.WINDOW_ROWS, row_nbytes)
    pieces, each = step.share.pieces, step.share.each
    starts = [skip + number * row_nbytes for number in range(6)]
    blocks = [(start + row_nbytes) // 16 - (start + 15) // 16 for start in starts]
    assert pieces * each >= max(blocks)
    if profile.contiguous:
        assert each <= min(blocks)
        assert (pieces - 1) * each < row_nbytes // 16


def test_offsets_larger_than_a_binding_are_refused() -> None:
    limits = replace(USUAL, binding_nbytes=1024, profile=CPU)
    with pytest.raises(
        ValueError, match=r"129 windows: .* takes 1032 bytes, a binding at most 1024; extract fewer"
    ):
        planned_extraction(limits, Layout.packed((9, 9)), None, 1, np.zeros((129, 2), int), (1, 1))


@pytest.mark.parametrize("on_gpu", [False, True])
def test_an_input_beyond_the_largest_binding(device: wg.Device, limit: Limit, on_gpu: bool) -> None:
    """Windows across a volume of 6 bindings; those known are grouped by their places."""
    limit(binding_nbytes=2**20)
    array = random_bytes(6096 * 1032).reshape(-1, 1032)
    rng = np.random.default_rng(5)
    offsets = np.stack([rng.integers(0, len(array) - 40, 300), rng.integers(0, 1032 - 96, 300)], 1)
    strides = np.stack([rng.choice([1, -1], 300), rng.choice([1, -1], 300)], 1)
    x = wg.asarray(array, device=device)
    given = wg.asarray(offsets, device=device) if on_gpu else offsets
    for sizes in ((40, 96), (40, 75)):
        result = wg.extract_windows(x, given, sizes, strides)
        case = Case(1, x.layout, offsets, sizes, strides, None, result.layout, 0)
        check_bindings(case.plan(device.limits, on_gpu=on_gpu), device.limits)
        assert np.array_equal(result.numpy(), numpy_windows(array, offsets, sizes, strides))


@pytest.mark.parametrize("on_gpu", [False, True])
def test_windows_beyond_the_largest_binding(device: wg.Device, limit: Limit, on_gpu: bool) -> None:
    """Large ones are copies of their own where it is known where they are."""
    limit(binding_nbytes=2**16)
    array = random_bytes(300 * 1031).reshape(300, 1031)
    x = wg.asarray(array, device=device)
    offsets, strides = np.array([(0, 3), (20, 40), (9, 0)]), np.array([(1, -1), (-1, 1), (1, 1)])
    given = wg.asarray(offsets, device=device) if on_gpu else offsets
    result = wg.extract_windows(x, given, (250, 901), strides)
    assert np.array_equal(result.numpy(), numpy_windows(array, offsets, (250, 901), strides))
    case = Case(1, x.layout, offsets, (250, 901), strides, None, result.layout, 0)
    names = {*names_of(case.plan(device.limits, on_gpu=on_gpu))}
    assert (names <= {"window_rows", "window_words", "extract_windows"}) == on_gpu


# offsets that the GPU has


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("sizes", [(3, 64), (3, 5)], ids=["rows", "elements"])
def test_offsets_on_the_gpu_are_clamped_or_filled(
    device: wg.Device, dtype: str, sizes: tuple[int, int]
) -> None:
    """Every integer type up to its ends, the neighbours of what is allowed among them."""
    array = random_bytes(20 * 100).reshape(20, 100)
    info = np.iinfo(dtype)
    most = [20 - sizes[0], 100 - sizes[1]]
    values = [info.min, -1, 0, 1, *most, most[0] + 1, most[1] + 1, 19, 20, 21, 99, 100, 101]
    values += [info.max, 2**31 - 1, 2**31, 2**32 + 5, -(2**31), -(2**31) - 1, 2**63 + 3, -(2**32) + 5]
    fitting = [value for value in values if info.min <= value <= info.max]
    offsets = np.array([(a, b) for a in fitting for b in fitting], dtype)
    x, on_gpu = wg.asarray(array, device=device), wg.asarray(offsets, device=device)
    clamped = np.stack(
        [np.clip(offsets[:, axis].astype(object), 0, most[axis]) for axis in (0, 1)], 1
    ).astype(int)
    inside = wg.extract_windows(x, on_gpu, sizes).numpy()
    assert np.array_equal(inside, numpy_windows(array, clamped, sizes, (1, 1)))
    far = np.stack([np.clip(offsets[:, axis].astype(object), -200, 200) for axis in (0, 1)], 1).astype(int)
    filled = wg.extract_windows(x, on_gpu, sizes, (1, -1), fill=77).numpy()
    assert np.array_equal(filled, numpy_windows(array, far, sizes, (1, -1), 77))


@pytest.mark.every_adapter
def test_offsets_anywhere_in_any_buffer(device: wg.Device) -> None:
    """At odd places, strided, in the buffer of the input, and in that of the output."""
    array = np.arange(4000, dtype=np.int32)
    x = wg.asarray(array, device=device)
    table = x[7:47].reshape(10, 4)[:, 1:2]
    expected = numpy_windows(array, table.numpy(), (100,), (1,))
    assert np.array_equal(wg.extract_windows(x, table, (100,)).numpy(), expected)
    out = wg.asarray(array, device=device)
    in_output = out[7:47].reshape(10, 4)[:, 1:2]
    wg.extract_windows(x, in_output, (100,), out=out[:1000].reshape(10, 100))
    assert np.array_equal(out.numpy()[:1000].reshape(10, 100), expected)
    assert np.array_equal(out.numpy()[1000:], array[1000:])
    shared = wg.asarray(array, device=device)
    packed = shared[:10].reshape(10, 1)
    wg.extract_windows(x, packed, (100,), out=shared[1000:2000].reshape(10, 100))
    assert np.array_equal(
        shared.numpy()[1000:2000].reshape(10, 100), array[np.add.outer(range(10), range(100))]
    )
    whole = x[2000:3000].reshape(10, 100)
    wg.extract_windows(x, table, (100,), out=whole)
    assert np.array_equal(whole.numpy(), expected)


# what a user sees


def test_no_windows(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((4, 5), np.float32), device=device)
    for offsets in (np.zeros((0, 2), int), wg.zeros((0, 2), np.int32, device=device), np.zeros((0, 2))):
        result = wg.extract_windows(x, offsets, (2, 3), (1, 2))
        check_same(result.numpy(), np.zeros((0, 2, 2), np.float32))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (0, 1), (4, 0)])
def test_an_input_without_elements_is_all_fill(device: wg.Device, shape: tuple[int, ...]) -> None:
    x = wg.zeros(shape, np.int32, device=device)
    sizes = (3, 32)[: len(shape)]
    result = wg.extract_windows(x, np.zeros((2, len(shape)), int), sizes, fill=7)
    check_same(result.numpy(), np.full((2, *sizes), 7, np.int32))
    with pytest.raises(wg.WindowError, match=r"sizes\[\d\] = \d+: must be 0 to the input's size"):
        wg.extract_windows(x, np.zeros((2, len(shape)), int), sizes)


def test_windows_of_rank_8(device: wg.Device) -> None:
    array = random_bytes(2 * 3 * 2 * 2 * 3 * 2 * 2 * 3).reshape(2, 3, 2, 2, 3, 2, 2, 3)
    offsets = np.array([[0] * 8, [1, 1, 0, 1, 2, 0, 1, 1]])
    sizes = (1, 2, 2, 1, 1, 2, 1, 2)
    result = wg.extract_windows(wg.asarray(array, device=device), offsets, sizes)
    assert result.shape == (2, *sizes)
    check_same(result.numpy(), numpy_windows(array, offsets, sizes, np.ones(8, int)))
    backwards = result[:, ::-1, ::-1, ::-1, :, :, ::-1]
    check_same(
        backwards.copy().numpy(), np.ascontiguousarray(result.numpy()[:, ::-1, ::-1, ::-1, :, :, ::-1])
    )


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"offsets": [[0, 0], [1, 4]]},
        wg.WindowError,
        r"offsets\[1\]\[1\] = 4: must be 0 to 3 .* of size 3 in dimension 1 .* size 6; .*clamp.* fill",
    ),
    (
        {"offsets": [[-1, 0]]},
        wg.WindowError,
        r"offsets\[0\]\[0\] = -1: must be 0 to . for a window of size 2",
    ),
    ({"offsets": [[2**70, 0]]}, TypeError, r"offsets have dtype object: must be integers"),
    (
        {"offsets": np.array([[2**64 - 1, 0]], np.uint64)},
        wg.WindowError,
        r"offsets\[0\]\[0\] = 9223372036854775807",
    ),
    ({"offsets": [0, 0]}, ValueError, r"offsets have shape \(2,\): must be \(windows, 2\)"),
    ({"offsets": [[0, 0, 0]]}, ValueError, r"offsets have shape \(1, 3\): must be \(windows, 2\)"),
    ({"offsets": [[0.0, 0.0]]}, TypeError, "offsets have dtype float64: must be integers"),
    ({"offsets": "float32"}, TypeError, "offsets have dtype float32: must be integers"),
    ({"offsets": "bool"}, TypeError, "offsets have dtype bool: must be integers"),
    ({"offsets": "shape"}, ValueError, r"offsets have shape \(3,\): must be \(windows, 2\)"),
    ({"sizes": (2,)}, wg.WindowError, "1 sizes for an input of rank 2"),
    ({"sizes": (2, -1)}, wg.WindowError, r"sizes\[1\] = -1: must be 0 to the input's size, 6"),
    ({"sizes": (5, 3)}, wg.WindowError, r"sizes\[0\] = 5: must be 0 to the input's size, 4"),
    ({"sizes": (2, 2**31), "fill": 0}, wg.WindowError, r"sizes\[1\] = 2147483648: must be 0 to 2147483647"),
    ({"sizes": (2, 1.5)}, TypeError, r"sizes\[1\] = 1.5"),
    ({"strides": (1, 0)}, wg.WindowError, r"strides\[1\] = 0: must not be 0"),
    (
        {"strides": [[1, 1], [1, 2]]},
        wg.WindowError,
        r"strides\[1\]\[1\] = 2: must have the magnitude of the first",
    ),
    ({"strides": (1, 2**31)}, wg.WindowError, r"strides\[1\] = 2147483648: must be an integer from"),
    ({"strides": (1,)}, ValueError, r"strides have shape \(1,\): must be \(2,\) or \(2, 2\)"),
    ({"strides": (1.0, 1.0)}, TypeError, "strides have dtype float64: must be integers"),
    ({"fill": [1, 2]}, TypeError, r"fill has shape \(2,\): must be a scalar"),
    ({"fill": "edge"}, TypeError, "fill = 'edge': must be a number"),
    (
        {"fill": 0, "outside": "clamp"},
        ValueError,
        "outside = 'clamp' and a fill are both given: .*; leave one of them out",
    ),
    ({"outside": "drop"}, ValueError, "outside = 'drop': must be one of 'refuse', 'clamp'"),
    (
        {"offsets": "gpu", "outside": "refuse"},
        wg.WindowError,
        'outside = "refuse": offsets in a tensor are not read back; use outside="clamp", or',
    ),
    ({"x": "bytes", "fill": 300}, OverflowError, "300 out of bounds for uint8"),
    (
        {"offsets": np.zeros((0, 2), int), "strides": (0, 1)},
        wg.WindowError,
        r"strides\[0\] = 0: must not be 0",
    ),
    ({"x": np.zeros((4, 6))}, TypeError, "x is of type ndarray: must be a Tensor"),
    (
        {"x": "scalar"},
        ValueError,
        r"offsets have shape \(2, 2\): must be \(windows, 0\), one offset for each",
    ),
    ({"out": "2 x 2 x 4"}, ValueError, r"out has sizes \(2, 2, 4\): must be \(2, 2, 3\), windows first"),
    ({"out": "int32"}, TypeError, "output has dtype int32, the input float32"),
    ({"out": "broadcast"}, ValueError, "two elements share bytes"),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED)
def test_a_refused_call_touches_no_output(
    device: wg.Device, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    x = wg.asarray(np.arange(24, dtype=np.float32).reshape(4, 6), device=device)
    buffer = make_buffer(device, random_bytes(2 * 2 * 4 * 4, 3))
    made: dict[str, Any] = {
        "int32": lambda: wg.from_buffer(buffer, (2, 2, 3), np.int32),
        "broadcast": lambda: wg.from_buffer(buffer, (2, 2, 3), np.float32, strides=(0, 3, 1)),
        "2 x 2 x 4": lambda: wg.from_buffer(buffer, (2, 2, 4), np.float32),
        "scalar": lambda: x[0, 0],
        "bytes": lambda: wg.zeros((4, 6), np.uint8, device=device),
        "float32": lambda: wg.zeros((2, 2), np.float32, device=device),
        "bool": lambda: wg.zeros((2, 2), bool, device=device),
        "shape": lambda: wg.zeros(3, np.int32, device=device),
        "gpu": lambda: wg.zeros((2, 2), np.int32, device=device),
        "fits": lambda: wg.from_buffer(buffer, (2, 2, 3), np.float32),
    }
    arguments = {"x": x, "offsets": [[0, 0], [1, 2]], "sizes": (2, 3), "out": "fits", **changes}
    check_refused(wg.extract_windows, arguments, made, error, message, buffer)


# compiled


def check_recorded(device: wg.Device, case: Any, on_gpu: bool) -> None:
    """Record windows on the caller's buffers, at offsets of the host or of the device, and compare bytes."""
    offsets, bindings = case.offsets, {}
    if on_gpu:
        offsets = wg.TensorDesc("int64", case.offsets.shape)
        bindings["offsets"] = make_buffer(device, np.insert(case.offsets.ravel(), 0, 99).view(np.uint8)), 8
    found = case.recorded(device, case.descriptor(offsets), **bindings)
    check_bytes(found, case.expected(*case.buffers()))


@pytest.mark.every_adapter
@given(case=window_cases(), on_gpu=st.booleans())
def test_any_windows_recorded_on_the_callers_buffers(device: wg.Device, case: Case, on_gpu: bool) -> None:
    if case.input.rank == 8:
        with pytest.raises(ValueError, match=r"sizes .* have rank 9: the rank must be 0 to 8"):
            case.descriptor(case.offsets)
        return
    check_recorded(device, case, on_gpu)


def test_a_compiled_operator_is_called_with_offsets_of_its_own(device: wg.Device) -> None:
    array = random_bytes(30 * 90).reshape(30, 90)
    x = wg.asarray(array, device=device)
    descriptor = wg.ExtractWindows(
        wg.TensorDesc("uint8", (30, 90)),
        wg.TensorDesc("uint8", (4, 5, 70)),
        wg.TensorDesc("int32", (4, 2)),
        (5, 70),
    )
    operator = device.compile(descriptor)
    for seed in range(3):
        offsets = np.random.default_rng(seed).integers(0, 20, (4, 2), np.int32)
        result = operator(x, offsets=wg.asarray(offsets, device=device))
        assert np.array_equal(result.numpy(), numpy_windows(array, offsets, (5, 70), (1, 1)))
    with pytest.raises(
        ValueError, match=r"ExtractWindows: offsets are missing: the descriptor describes TensorDesc"
    ):
        operator(x)
    with pytest.raises(TypeError, match=r"ExtractWindows: offsets: dtype int64: compiled for int32"):
        operator(x, offsets=wg.zeros((4, 2), np.int64, device=device))
    known = device.compile(
        wg.ExtractWindows(
            wg.TensorDesc("uint8", (30, 90)), wg.TensorDesc("uint8", (1, 5, 70)), [[1, 2]], (5, 70)
        )
    )
    assert np.array_equal(known(x).numpy()[0], array[1:6, 2:72])
    assert "window_rows on 1 window of (5, 70)" in str(known.plan)
    assert known.plan.summary == "coalesced (1, 5, 70) x 1 B, window_rows"
    with pytest.raises(
        ValueError, match="ExtractWindows: offsets are given: the descriptor has them already"
    ):
        known(x, offsets=wg.zeros((1, 2), np.int32, device=device))


def test_a_descriptor_has_the_functions_rules() -> None:
    input, output = wg.TensorDesc("f4", (4, 6)), wg.TensorDesc("f4", (2, 2, 3))
    with pytest.raises(wg.WindowError, match=r"ExtractWindows: offsets\[1\]\[0\] = 3"):
        wg.ExtractWindows(input, output, [[0, 0], [3, 0]], (2, 3))
    moved = wg.ExtractWindows(input, output, [[-1, 0], [3, 0]], (2, 3), outside="clamp").offsets
    assert isinstance(moved, np.ndarray)
    assert moved.tolist() == [[0, 0], [2, 0]]
    with pytest.raises(wg.WindowError, match='ExtractWindows: outside = "refuse": offsets in a tensor'):
        wg.ExtractWindows(input, output, wg.TensorDesc("i4", (2, 2)), (2, 3), outside="refuse")
    with pytest.raises(ValueError, match=r"ExtractWindows: output sizes \(2, 2, 3\): must be \(1, 2, 3\)"):
        wg.ExtractWindows(input, output, [[0, 0]], (2, 3))
    with pytest.raises(TypeError, match="ExtractWindows: offsets have dtype float32: must be integers"):
        wg.ExtractWindows(input, output, wg.TensorDesc("f4", (2, 2)), (2, 3))
    with pytest.raises(TypeError, match="ExtractWindows: output has dtype float64, the input float32"):
        wg.ExtractWindows(input, wg.TensorDesc("f8", (2, 2, 3)), [[0, 0], [1, 1]], (2, 3))


def test_a_plan_of_windows_does_not_contradict_itself() -> None:
    """Its layouts count items, however many bytes a row's kernel takes at a time."""
    for dtype, channels in (("u1", 3), ("f4", 4)):
        sizes, out = (50, 100, channels), (2, 5, 70, channels)
        windows = wg.ExtractWindows(
            wg.TensorDesc(dtype, sizes), wg.TensorDesc(dtype, out), [[0, 0, 0], [1, 1, 0]], out[1:]
        )
        itemsize = np.dtype(dtype).itemsize
        kilobytes, plan = prod(out) * itemsize / 1000, planned_windows(CPU, windows)
        first, *lines = str(plan).splitlines()
        printed = {line[2:12].strip(): line[14:] for line in reversed(lines)}
        assert first == f"copy: {kilobytes:.3g} kB, {itemsize}-byte items, shape {out}"
        assert "window_rows" in printed["step 1"]
        assert "vectors of 16 bytes" in printed["step 1"]
        second = "window_words" if itemsize == 1 else "extract_windows"
        assert re.match(r"\S+ us \(cost model: .*\)", printed["estimate"])
        assert re.match(rf"{second} (at least )?\S+ us", printed["considered"])
        assert printed["rejected"] == "buffer copy per window: the 5 rows of a window are not contiguous"


def test_tables_are_forgotten_with_their_plans(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((50, 100), np.uint8), device=device)
    gc.collect()
    before = len(device.pipelines.tables)
    offsets, directions = (np.tile(pair, (5_000, 1)) for pair in ([[0, 0], [1, 1]], [[1, 1], [1, -1]]))
    assert offsets.size > MAX_PREPARED_VALUES  # plans of fewer are kept
    for _ in range(5):
        wg.extract_windows(x, offsets, (5, 70), directions)
    gc.collect()
    assert len(device.pipelines.tables) == before


def test_the_plans_of_an_operator_share_its_tables(device: wg.Device) -> None:
    array = random_bytes(5000).reshape(50, 100)
    offsets, steps = [[0, 0], [1, 1]], [[1, 1], [1, -1]]
    operator = device.compile(
        wg.ExtractWindows(
            wg.TensorDesc("u1", (50, 100)), wg.TensorDesc("u1", (2, 5, 70)), offsets, (5, 70), steps
        )
    )
    gc.collect()
    kept = sum(len(tables) for tables in device.pipelines.tables.values())
    source, target = make_buffer(device, array), make_buffer(device, random_bytes(2048))
    for place in (1, 2, 3, 4, 5):
        record(device, operator, input=source, output=(target, place))
        read = read_buffer(target)[place:][:700].reshape(2, 5, 70)
        check_bytes(read[0], array[:5, :70])
        check_bytes(read[1], array[1:6, 1:71][:, ::-1])
    assert sum(len(tables) for tables in device.pipelines.tables.values()) == kept


@on_one_adapter
@pytest.mark.parametrize("skip", [0, 1, 2, 4])
def test_buffer_copies_of_windows_need_words_on_both_sides(
    device: wg.Device, limit: Limit, skip: int
) -> None:
    limit(profile=preferring(CPU, copies=True))
    array, before = random_bytes(4 * 64), random_bytes(144)
    x = wg.asarray(array.reshape(4, 64), device=device)
    target = make_buffer(device, before)
    out = wg.from_buffer(target, (2, 1, 64), np.uint8, offset=skip)
    wg.extract_windows(x, [[3, 0], [1, 0]], (1, 64), out=out)
    expected = before.copy()
    expected[skip:][:128] = array.reshape(4, 64)[[3, 1]].ravel()
    check_bytes(read_buffer(target), expected)
    y = wg.asarray(np.zeros((4, 64), np.uint8), device=device)
    wg.insert_windows(y, [[3, 0], [1, 0]], out)
    assert np.array_equal(y.numpy()[[3, 1]], array.reshape(4, 64)[[3, 1]])


def test_equal_small_offsets_are_prepared_and_uploaded_once(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their values: an array that a program has changed is another one."""
    x = np.arange(40, dtype=np.int32).reshape(5, 8)
    tensor = wg.asarray(x, device=device)
    offsets = np.array([[0, 1], [2, 5], [1, 0]])

    def check() -> None:
        expected = np.stack([x[row : row + 3, column : column + 2] for row, column in offsets])
        cut = wg.extract_windows(tensor, offsets, (3, 2))
        check_same(cut.numpy(), expected)
        target = wg.zeros(x.shape, x.dtype, device=device)
        wg.insert_windows(target, offsets, cut, overlap="last")
        again = np.zeros_like(x)
        for (row, column), window in zip(offsets, expected, strict=True):
            again[row : row + 3, column : column + 2] = window
        check_same(target.numpy(), again)

    check()
    with monkeypatch.context() as patch:
        patch.setattr(device.wgpu_device, "create_buffer_with_data", None)
        check()
        offsets = offsets.copy()
        check()
    offsets[1] = 0, 4
    check()
    offsets = offsets.astype(np.int16).reshape(3, 2)
    check()
    offsets[0, 0] = 3
    with pytest.raises(wg.WindowError, match=r"offsets\[0\]\[0\] = 3: must be 0 to 2 for a window of size 3"):
        wg.extract_windows(tensor, offsets, (3, 2))


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("stride", [3, -3])
def test_a_reversed_output_has_the_same_elements(device: wg.Device, stride: int, on_gpu: bool) -> None:
    """Windows of 5 in steps of 3 do not end with an element: backwards, they begin with another one."""
    array = np.arange(20, dtype=np.uint8)
    x, out = wg.asarray(array, device=device), wg.zeros((2, 2), np.uint8, device=device)
    offsets: Any = wg.asarray([[2], [9]], device=device) if on_gpu else [[2], [9]]
    wg.extract_windows(x, offsets, [5], [stride], out=out[:, ::-1])
    expected = np.stack([array[2:7][::stride], array[9:14][::stride]])
    check_same(out.numpy(), expected[:, ::-1])
