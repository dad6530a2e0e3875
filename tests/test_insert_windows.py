"""Many windows put into one tensor: against NumPy and reference implementations, split by limits or not."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, cast

import numpy as np
import pytest
from helpers import (
    WIDTHS,
    Bytes,
    check_bytes,
    check_refused,
    check_same,
    default_tier,
    in_default_tier,
    make_buffer,
    random_bytes,
    view_bytes,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from planning import USUAL, disjoint_sets, dispatches_of, favouring, names_of, planned_insertion, preferring
from reference.plans import run_plan
from running import run_on_gpu, run_side_by_side, side_by_side
from strategies import BetweenBuffers, nested_strides
from test_extract_windows import (
    BLOCKS_FIRST,
    FAVOURING,
    NAMES,
    PROFILES,
    SMALL_LIMITS,
    check_bindings,
    check_in_numpy,
    check_recorded,
    numpy_windows,
    offset_table,
    photographs,
    picture_sizes,
)

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.facade import every, meeting
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits, Profile


def numpy_insert(array: Any, windows: Any, offsets: Any, strides: Any) -> None:
    """One window after the other in NumPy's words, without elements outside."""
    steps = np.broadcast_to(strides, np.shape(offsets))
    for window, begins, signed in zip(windows, offsets, steps, strict=True):
        axes = []
        for size, begin, step in zip(window.shape, begins.tolist(), signed.tolist(), strict=True):
            forwards = np.arange(size) * abs(step) + begin
            axes.append(forwards if step > 0 else forwards[::-1])
        inside = [
            np.flatnonzero((indices >= 0) & (indices < extent))
            for indices, extent in zip(axes, array.shape, strict=True)
        ]
        taken = [indices[kept] for indices, kept in zip(axes, inside, strict=True)]
        array[np.ix_(*taken)] = window[np.ix_(*inside)]


@dataclass(frozen=True, eq=False)
class Case(BetweenBuffers):
    """A batch of windows and a tensor, both anywhere in buffers."""

    width: int
    batch: Layout
    tensor: Layout
    offsets: NDArray[np.int64]
    strides: NDArray[np.int64]
    seed: int

    @property
    def sides(self) -> tuple[Layout, Layout]:
        return self.batch, self.tensor

    def expected(self, source: Bytes, target: Bytes) -> Bytes:
        result = target.copy()
        written = view_bytes(result, self.tensor, self.width)
        numpy_insert(written, view_bytes(source, self.batch, self.width), self.offsets, self.strides)
        return result

    @property
    def fits(self) -> bool:
        """Whether the tensor is as large as a window, which can then be moved inside."""
        return bool((self.highest >= 0).all())

    @property
    def highest(self) -> Any:
        """The greatest offsets of windows inside of the tensor."""
        steps = abs(self.strides.reshape(-1, self.tensor.rank)[0])
        return self.tensor.sizes - ((np.array(self.batch.sizes[1:]) - 1) * steps + 1)

    def clamped(self) -> Case:
        """The same windows, moved inside."""
        return replace(self, offsets=np.clip(self.offsets, 0, self.highest))

    def plan(self, limits: Limits, **context: Any) -> wg.Plan:
        """The plan between two buffers, from their beginnings on."""
        windows = self.offsets, self.strides
        return planned_insertion(limits, self.batch, self.tensor, self.width, *windows, **context)

    def descriptor(self, offsets: Any) -> wg.InsertWindows:
        return wg.InsertWindows(*self.described, offsets, self.strides, overlap="last", outside="drop")


@st.composite
def insertions(draw: st.DrawFn) -> Case:
    width, shape = draw(st.sampled_from(WIDTHS)), draw(picture_sizes())
    rank = len(shape)
    tensor = some_layout(draw, shape, broadcast=False)
    count = draw(st.integers(1, 7))
    magnitudes = [draw(st.sampled_from([1, 1, 1, 1, 2, 3])) for _ in shape]
    whole = [draw(st.booleans()) for _ in shape]
    sizes = tuple(
        size if all_of_it else draw(st.integers(1, max(size // magnitude, 1) + 2))
        for size, magnitude, all_of_it in zip(shape, magnitudes, whole, strict=True)
    )
    offsets = np.zeros((count, rank), np.int64)
    apart = draw(st.booleans())  # so that many are disjoint
    for axis, (size, taken, step) in enumerate(zip(shape, sizes, magnitudes, strict=True)):
        reach = (taken - 1) * step + 1
        inside = st.integers(0, max(size - reach, 0))
        anywhere = st.integers(-reach - 2, size + 2)
        if not (whole[axis] and step == 1 and draw(st.integers(0, 3))):
            leaving = draw(st.integers(0, 2)) == 0
            offsets[:, axis] = [draw(anywhere if leaving else inside) for _ in range(count)]
            if apart and axis == 0:
                offsets[:, axis] = draw(st.permutations(range(count)))
                offsets[:, axis] *= reach
    per_window = draw(st.booleans())
    signs = np.ones((count if per_window else 1, rank), np.int64)
    for axis in range(rank):
        if draw(st.integers(0, 2)) == 0:
            signs[:, axis] = [draw(st.sampled_from([1, -1])) for _ in signs]
    batch = some_layout(draw, (count, *sizes), broadcast=True)
    strides = signs * magnitudes
    return Case(
        width, batch, tensor, offsets, strides if per_window else strides[0], draw(st.integers(0, 999))
    )


def some_layout(draw: st.DrawFn, sizes: tuple[int, ...], *, broadcast: bool) -> Layout:
    """Packed, or in any order with gaps, some dimensions backwards."""
    strides = list(Layout.packed(sizes).strides)
    offset = draw(st.integers(0, 40))
    if not draw(st.booleans()):
        strides = draw(nested_strides(sizes, broadcast))
        for axis, size in enumerate(sizes):
            if draw(st.integers(0, 5)) == 0:
                offset += (size - 1) * strides[axis]
                strides[axis] = -strides[axis]
    return Layout.of(sizes, strides, offset)


@given(
    case=insertions(),
    profile=st.sampled_from(PROFILES + FAVOURING),
    small=st.sampled_from(SMALL_LIMITS),
    on_gpu=st.booleans(),
    clamp=st.booleans(),
    unpadded=st.sampled_from([None, "source", "target"]),
)
def test_reference_implementations_equal_numpy(
    case: Case, profile: Profile, small: tuple[int, int], on_gpu: bool, clamp: bool, unpadded: str | None
) -> None:
    outside = "clamp" if clamp and case.fits else "drop"
    limits = Limits(small[0], 32, small[1], profile)
    capacity = {} if unpadded is None else {f"{unpadded}_capacity_nbytes": case.whole_nbytes(unpadded)}
    # larger ones have no steps or over 500 in small bindings, now and then minutes of planning
    assume(small == SMALL_LIMITS[0] or max(map(case.whole_nbytes, ("source", "target"))) <= 2**14)
    plan = case.plan(limits, on_gpu=on_gpu, outside=outside, **capacity)
    check_in_numpy(plan, limits, case, case.clamped() if outside == "clamp" else case)


@given(case=insertions(), profile=st.sampled_from([CPU, GPU, *FAVOURING]), on_gpu=st.booleans())
def test_kernels_in_tight_limits_do_what_numpy_does(
    device: wg.Device, case: Case, profile: Profile, on_gpu: bool
) -> None:
    source, target = case.buffers()
    alignment = device.limits.binding_alignment_nbytes
    limits = Limits(8 * alignment, alignment, 4, profile)
    assume(source.size <= 2**14)  # larger ones have no steps or over 500, now and then minutes of planning
    plan = case.plan(limits, on_gpu=on_gpu)
    assume(len(plan.steps) <= 500)
    check_bindings(plan, limits)
    found = run_on_gpu(device, plan, source, target, offset_table(case.offsets))
    check_bytes(found, case.expected(source, target))


# overlaps


def meet(places: Any, extents: Any, steps: Any) -> bool:
    """Whether two boxes share an index, by all of their indices."""
    boxes = [
        set(product(*(range(o, o + e, s) for o, e, s in zip(place, extents, steps, strict=True))))
        for place in places
    ]
    return any(one & other for one, other in combinations(boxes, 2))


@given(st.data())
def test_whether_windows_overlap_is_exact(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    steps = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    sizes = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    places = data.draw(st.lists(st.tuples(*[st.integers(0, 24)] * rank), min_size=1, max_size=8))
    extents = [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)]
    pair = refused_pair(places, sizes, (40,) * rank, steps)
    assert (pair is not None) == meet(places, extents, steps)
    if pair is not None:
        assert pair[0] < pair[1]
        assert meet([places[number] for number in pair], extents, steps)


def refused_pair(offsets: Any, sizes: Any, shape: Any, steps: Any) -> list[int] | None:
    """The windows that a descriptor refuses since they overlap."""
    sides = wg.TensorDesc("u1", (len(offsets), *sizes)), wg.TensorDesc("u1", shape)
    try:
        wg.InsertWindows(*sides, offsets, steps, outside="drop")
    except wg.WindowError as error:
        found = re.match(r"InsertWindows: windows (\d+) and (\d+) overlap, at offsets \(", str(error))
        assert found is not None
        return [int(number) for number in found.groups()]
    return None


def test_many_windows_are_compared_without_comparing_all() -> None:
    """Grids, with and without gaps, unaligned ones, and corners of cubes in eight dimensions."""
    grid = np.array(list(product(range(120), range(120))))
    for apart, disjoint in ((64, True), (80, True), (63, False)):
        assert (next(meeting(grid * apart - 5, (64, 64), (1, 1)), None) is None) == disjoint
    cube = np.array(list(product(range(3), repeat=8)))
    assert next(meeting(cube * 96, (64,) * 8, (1,) * 8), None) is None
    assert next(meeting(cube * 63, (64,) * 8, (1,) * 8), None) is not None
    wide = np.random.default_rng(1).integers(-(2**31), 2**31, (5000, 8))
    assert next(meeting(wide, (9,) * 8, (2,) * 8), None) is None
    last = np.concatenate([wide, wide[77:78] + 8])
    pairs = list(meeting(last, (9,) * 8, (2,) * 8))
    assert set(np.concatenate(pairs, axis=None).tolist()) == {77, 5000}


@given(st.data())
def test_disjoint_sets_come_after_all_that_they_overlap(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    places = data.draw(st.lists(st.tuples(*[st.integers(0, 9)] * rank), min_size=1, max_size=9))
    extents = tuple(data.draw(st.integers(1, 4)) for _ in range(rank))
    offsets = np.array(places, np.int64)
    layers = disjoint_sets(offsets, extents, (20,) * rank)
    layer_of = {number: depth for depth, layer in enumerate(layers) for number in layer}
    assert sorted(layer_of) == list(range(len(offsets)))
    for one, other in combinations(range(len(offsets)), 2):
        if (abs(offsets[one] - offsets[other]) < extents).all():
            assert layer_of[one] < layer_of[other]
    for depth, layer in enumerate(layers[1:], 1):  # none is deeper than it must be
        for number in layer:
            assert any(
                layer_of[before] == depth - 1 and (abs(offsets[before] - offsets[number]) < extents).all()
                for before in range(number)
            )


ONE_COPY_EACH = Case(
    4, Layout.packed((3, 2)), Layout.packed((3,)), np.array([[0], [0], [1]]), np.array([1]), seed=0
)

# The second window leaves the tensor, and has all of the blocks that the others begin inside of.
ENDS_IN_WHOLE_BLOCKS = Case(
    4, Layout.packed((3, 32)), Layout.packed((64,)), np.array([[2], [-4], [5]]), np.array([1]), seed=0
)


# Windows of one channel of three.
OF_A_CHANNEL = [
    Case(
        width,
        Layout.packed((3, 4, 5)),
        Layout.of((12, 14), (42, 3), 1),
        np.array([[0, 0], [8, 9], [3, 5]]),
        np.array([1, -1]),
        seed=0,
    )
    for width in (1, 4, 8)
]


@example(case=OF_A_CHANNEL[0], profile=CPU)
@example(case=OF_A_CHANNEL[1], profile=CPU)
@example(case=OF_A_CHANNEL[2], profile=GPU)
@example(case=ONE_COPY_EACH, profile=CPU)
@example(case=ENDS_IN_WHOLE_BLOCKS, profile=CPU)
@given(case=insertions(), profile=st.sampled_from([CPU, GPU]))
def test_every_strategy_to_insert_is_right(device: wg.Device, case: Case, profile: Profile) -> None:
    """In blocks, by words, by elements; overlapping windows by disjoint sets or a last-writer pass."""
    plan = case.plan(replace(device.limits, profile=profile))
    names = [choice.name for choice in plan.choices]
    assert len(set(names)) == len(names)
    assert not plan.steps or "insert_windows" in names
    source, target = case.buffers()
    expected = case.expected(source, target)
    for name, by_strategy in every(plan):
        last_writer_pass = {"last_writer_windows", "last_writer_rows"} & {*names_of(by_strategy)}
        in_order = name in ("disjoint sets", "buffer copy per window")
        if name != "packed first":  # which inserts by any of the others
            assert bool(last_writer_pass) == ("disjoint sets" in names and not in_order)
        found = run_on_gpu(device, by_strategy, source, target, offset_table(case.offsets))
        check_bytes(found, expected)


@pytest.mark.parametrize(("binding_nbytes", "bands"), [(2**15, 1), (18 * 2**10, 2)])
def test_a_binding_holds_the_winners_of_indices_and_of_blocks(
    device: wg.Device, binding_nbytes: int, bands: int
) -> None:
    """4,096 indices and 1,024 blocks of them; a binding of 18 KiB holds the winners of the indices alone."""
    profile = preferring(CPU, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS, Kernel.LAST_WRITER_ROWS)
    limits = replace(device.limits, profile=profile, binding_nbytes=binding_nbytes)
    offsets = np.random.default_rng(0).integers(0, 44, (9, 2))
    case = Case(4, Layout.packed((9, 20, 20)), Layout.packed((64, 64)), offsets, np.array([1, 1]), seed=0)
    plan = case.plan(limits, on_gpu=True)
    kernels = [step.kernel for step in dispatches_of(plan)]
    assert kernels.count(Kernel.LAST_WRITER_ROWS) == kernels.count(Kernel.INSERT_ROWS) == bands
    source, target = case.buffers()
    expected, result = case.expected(source, target), target.copy()
    run_plan(plan, source, result, offsets)
    check_bytes(result, expected)
    check_bytes(run_on_gpu(device, plan, source, target, offset_table(offsets)), expected)


def test_cheap_dispatches_insert_overlaps_by_disjoint_sets() -> None:
    for dispatch_s, kernels in ((1e-4, ["insert_rows"] * 3), (1.0, ["last_writer_rows", "insert_rows"])):
        costs = replace(CPU.costs, dispatch_s=dispatch_s)
        profile = replace(CPU, costs=costs)
        offsets = [[0, 16], [200, 32], [400, 48]]
        assert steps_of((999, 2048), (500, 1024), offsets, profile=profile) == kernels


def test_overlaps_are_refused_where_they_are_inside() -> None:
    for offsets, sizes, shape, steps in [
        ([[0], [2]], (3,), (9,), (1,)),
        ([[0], [2]], (2,), (9,), (2,)),
        ([[0, 5], [3, 4]], (4, 2), (9, 9), (1, 1)),
        ([[-2], [-1]], (3,), (9,), (1,)),
        ([[8], [7]], (3,), (9,), (1,)),
        ([[4], [4]], (1,), (9,), (1,)),
    ]:
        assert refused_pair(offsets, sizes, shape, steps) == [0, 1]
    for offsets, sizes, shape, steps in [
        ([[0], [3]], (3,), (9,), (1,)),
        ([[0], [1]], (2,), (9,), (2,)),
        ([[0, 5], [3, 7]], (4, 2), (9, 9), (1, 1)),
        ([[-3], [-2]], (2,), (9,), (1,)),  # they overlap outside only
        ([[-2], [-1]], (2,), (9,), (2,)),
        ([[9], [10]], (3,), (9,), (1,)),
        ([[0], [4], [7]], (3,), (12,), (1,)),  # the last two touch away from the first one's multiples
    ]:
        assert refused_pair(offsets, sizes, shape, steps) is None


def test_of_equal_offsets_the_last_one_is_left() -> None:
    offsets = [[5], [1], [5], [9], [1], [5], [99]]
    sides = Layout.packed((7, 1)), Layout.packed((10,))
    plan = planned_insertion(CPU, *sides, 4, offsets, copy_to=False)
    (step,) = plan.steps
    assert str(step).startswith("kernel insert_windows on 3 windows")


# refusals


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"offsets": [[0, 0], [1, 2]]},
        wg.WindowError,
        r"windows 0 and 1 overlap, at offsets \(0, 0\) and \(1, 2\)",
    ),
    (
        {"offsets": "gpu"},
        wg.WindowError,
        "offsets are on the device, so that the host cannot check whether windows overlap",
    ),
    (
        {"offsets": [[0, 0], [2, 4]]},
        wg.WindowError,
        r"offsets\[1\]\[1\] = 4: must be 0 to 3 .* in dimension 1 of x, of size 6; .*clamp.*drop",
    ),
    ({"offsets": [[0, 0], [-1, 0]]}, wg.WindowError, r"offsets\[1\]\[0\] = -1: must be 0 to 2 .*; move it"),
    (
        {"windows": np.zeros((2, 5, 1), np.float32), "outside": "clamp"},
        wg.WindowError,
        "windows have extent 5 in dimension 0, 5 elements in steps of 1: must be at most 4, .*drop",
    ),
    (
        {"offsets": "gpu", "windows": np.zeros((2, 2, 7), np.float32), "overlap": "last"},
        wg.WindowError,
        "windows have extent 7 in dimension 1",
    ),
    (
        {"offsets": "gpu", "outside": "refuse", "overlap": "last"},
        wg.WindowError,
        'outside = "refuse": offsets in a tensor are not read back; use outside="clamp" or outside="drop"',
    ),
    ({"outside": "wrap"}, ValueError, "outside = 'wrap': must be one of 'refuse', 'clamp', 'drop'"),
    (
        {"overlap": "first"},
        ValueError,
        "overlap = 'first': must be 'refuse', 'last', where the later window wins, or 'disjoint'",
    ),
    ({"offsets": [[0.5, 0], [1, 2]]}, TypeError, "offsets have dtype float64: must be integers"),
    ({"offsets": [[0, 0, 0], [1, 2, 3]]}, ValueError, r"offsets have shape \(2, 3\): must be \(windows, 2\)"),
    ({"offsets": [[0, 0]]}, ValueError, r"windows have sizes \(2, 2, 3\): must be \(1, \.\.\.\)"),
    (
        {"windows": np.zeros((2, 6), np.float32)},
        ValueError,
        r"windows have sizes \(2, 6\): must be \(2, \.\.\.\)",
    ),
    ({"windows": "int32"}, TypeError, "output has dtype float32, the input int32"),
    ({"windows": np.zeros((2, 2, 3), complex)}, TypeError, "Cannot cast array data from dtype"),
    ({"strides": (1, 0)}, wg.WindowError, r"strides\[1\] = 0: must not be 0"),
    (
        {"strides": [(1, 1), (1, 2)]},
        wg.WindowError,
        r"strides\[1\]\[1\] = 2: must have the magnitude of the first",
    ),
    ({"strides": (1, 2**31 - 1)}, wg.WindowError, r"windows have extent 4294967295 in dimension 1"),
    ({"x": np.zeros((4, 6))}, TypeError, "x is of type ndarray: must be a Tensor"),
    (
        {"x": "scalar"},
        ValueError,
        r"offsets have shape \(2, 2\): must be \(windows, 0\), one offset for each",
    ),
    ({"x": "broadcast"}, ValueError, "two elements share bytes"),
    ({"offsets": "float32"}, TypeError, "offsets have dtype float32: must be integers"),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED)
def test_a_refused_call_writes_nothing(
    device: wg.Device, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    buffer = make_buffer(device, random_bytes(4 * 6 * 4, 3))
    x = wg.from_buffer(buffer, (4, 6), np.float32)
    made: dict[str, Any] = {
        "gpu": lambda: wg.asarray(np.array([[0, 0], [2, 3]]), device=device),
        "float32": lambda: wg.zeros((2, 2), np.float32, device=device),
        "int32": lambda: wg.zeros((2, 2, 3), np.int32, device=device),
        "scalar": lambda: x[0, 0],
        "broadcast": lambda: wg.from_buffer(buffer, (4, 6), np.float32, strides=(0, 1)),
    }
    arguments = {"x": x, "offsets": [[0, 0], [2, 3]], "windows": np.ones((2, 2, 3), np.float32), **changes}
    check_refused(wg.insert_windows, arguments, made, error, message, buffer)


@pytest.mark.every_adapter
@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_windows_of_a_tensor_without_dimensions(device: wg.Device, dtype: str, on_gpu: bool) -> None:
    """NumPy's `array[()]`, for each window, read and written."""
    array = np.arange(1, 8, dtype=dtype)
    buffer = wg.asarray(array, device=device)
    for count in (0, 1, 3):
        offsets: Any = np.zeros((count, 0), np.int32)
        table = wg.asarray(offsets, device=device) if on_gpu else offsets
        for strides in (None, (), np.zeros((count, 0), int)):
            found = wg.extract_windows(buffer[3], table, (), strides)
            check_same(found.numpy(), np.repeat(array[3], count))
        out = wg.zeros(2 * count, dtype, device=device)[::2]
        check_same(
            wg.extract_windows(buffer[3], table, (), fill=9, out=out).numpy(), np.repeat(array[3], count)
        )
        windows = np.arange(50, 50 + count, dtype=dtype)
        for batch in (windows, wg.asarray(windows, device=device)):
            wg.insert_windows(buffer[5], table, batch, overlap="last")
            if count:
                array[5] = windows[-1]
            check_same(buffer.numpy(), array)
        if count > 1:
            with pytest.raises(wg.WindowError, match="overlap"):
                wg.insert_windows(buffer[5], table, windows)
        if count and not on_gpu:
            one, some = wg.TensorDesc(dtype, ()), wg.TensorDesc(dtype, (count,))
            extract = device.compile(wg.ExtractWindows(one, some, table, ()))
            check_same(extract(buffer[3]).numpy(), np.repeat(array[3], count))
            insert = device.compile(wg.InsertWindows(some, one, table, overlap="last"))
            insert(wg.asarray(windows - 10, device=device), out=buffer[5])
            array[5] = windows[-1] - 10
            check_same(buffer.numpy(), array)


@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])
@pytest.mark.parametrize(
    ("shape", "sizes"), [((4, 6), (0, 3)), ((4, 6), (2, 0)), ((0, 6), (0, 6)), ((5,), (0,))]
)
def test_windows_without_elements_are_read_and_written_anywhere(
    device: wg.Device, shape: tuple[int, ...], sizes: tuple[int, ...], on_gpu: bool
) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    x = wg.asarray(array, device=device)
    offsets = np.array([[0] * len(shape), [2] * len(shape), [-9] * len(shape)])
    table: Any = wg.asarray(offsets, device=device) if on_gpu else offsets
    for step in (1, -1, 3):
        strides = [step] * len(shape)
        expected = [np.zeros(sizes, int)[tuple(slice(None, None, step) for _ in sizes)]] * len(offsets)
        for options in ({}, {"fill": 7}, {"outside": "clamp"}):
            found = wg.extract_windows(x, table, sizes, strides, **cast("Any", options))
            check_same(found.numpy(), np.stack(expected))
        for outside in (None, "clamp", "drop"):
            wg.insert_windows(x, table, found, strides, overlap="last", outside=cast("Any", outside))
    check_same(x.numpy(), array)


def test_there_and_back_again(device: wg.Device) -> None:
    """Extracted windows are inserted where they were, reversed or not, at steps too."""
    array = random_bytes(60 * 70).reshape(60, 70)
    rng = np.random.default_rng(1)
    offsets = np.array([(y, x) for y in (0, 21, 42) for x in (-3, 22, 47)])
    for steps in ((1, 1), (2, 1), (4, 3), (1, 6)):
        strides = rng.choice([1, -1], offsets.shape) * steps
        x = wg.asarray(array, device=device)
        windows = wg.extract_windows(x, offsets, (21, 25), strides, fill=0)
        y = wg.zeros(array.shape, np.uint8, device=device)
        wg.insert_windows(x, offsets, windows, strides, outside="drop")
        check_same(x.numpy(), array)
        wg.insert_windows(y, offsets, windows, strides, outside="drop")
        again = wg.extract_windows(y, offsets, (21, 25), strides, fill=0)
        check_same(again.numpy(), windows.numpy())


@pytest.mark.every_adapter
@pytest.mark.parametrize("part", [np.s_[...], np.s_[..., ::-1], np.s_[:, ::-1, ::-1]], ids=str)
@pytest.mark.parametrize("whole", [np.s_[...], np.s_[..., ::-1], np.s_[::-1]], ids=str)
def test_windows_of_reversed_views_are_copied_in_rows(device: wg.Device, whole: Any, part: Any) -> None:
    """As reversed windows of forward layouts, also where both sides are reversed and windows leave them."""
    array, windows = random_bytes(20 * 200, 1).reshape(20, 200), random_bytes(3 * 6 * 64, 2).reshape(3, 6, 64)
    offsets, strides = np.array([[1, 2], [9, -5], [16, 151]]), [[1, 1], [1, -1], [-1, 1]]
    x, batch = wg.asarray(array, device=device), wg.asarray(windows, device=device)
    views = x[whole], offsets, batch[part], strides
    taken, out = (x[whole], offsets, (6, 64), strides), batch[part]
    for explained in (
        wg.explain(wg.extract_windows, *taken, fill=0, out=out),
        wg.explain(wg.insert_windows, *views, outside="drop"),
    ):
        assert "_windows" not in explained.plans[0].summary
    numpy_insert(array[whole], windows[part], offsets, strides)
    wg.insert_windows(*views, outside="drop")
    check_same(x.numpy(), array)
    wg.extract_windows(*taken, fill=0, out=out)
    check_same(batch[part].numpy(), numpy_windows(array[whole], offsets, (6, 64), strides, 0))


@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])
def test_clamped_reads_and_writes_meet_the_same_elements(device: wg.Device, on_gpu: bool) -> None:
    """Windows before, across and behind each border, with steps, mirrored or not."""
    array = random_bytes(12 * 17).reshape(12, 17)
    places = np.array([(-99, 3), (2, 2**31 - 1), (10, -1), (-(2**31), 16), (4, 4)])
    offsets: Any = wg.asarray(places, device=device) if on_gpu else places
    for number, (steps, sizes) in enumerate([((1, 1), (3, 4)), ((2, 3), (5, 7)), ((4, 1), (9, 17))]):
        strides = np.where(np.arange(10).reshape(5, 2) * (number + 3) % 4 < 2, 1, -1) * steps
        x = wg.asarray(array, device=device)
        read = wg.extract_windows(x, offsets, sizes, strides, outside="clamp")
        inside = np.clip(places, 0, np.array(array.shape) - sizes)
        check_same(read.numpy(), numpy_windows(array, inside, sizes, strides))
        wg.insert_windows(x, offsets, read, strides, overlap="last", outside="clamp")
        check_same(x.numpy(), array)
        marked, expected = np.invert(read.numpy()), array.copy()
        wg.insert_windows(x, offsets, marked, strides, overlap="last", outside="clamp")
        numpy_insert(expected, marked, inside, strides)
        check_same(x.numpy(), expected)


def test_arguments_in_the_old_order_are_refused(device: wg.Device) -> None:
    """Windows, tensor and offsets, each as an array or a tensor; of sizes that a tensor of rank 1 has too."""
    for shape, sizes in (((4, 6), (2, 2, 3)), ((9,), (2, 3)), ((2, 1), (2, 1, 1))):
        x = wg.asarray(np.arange(np.prod(shape)).reshape(shape), device=device)
        before = x.numpy()
        windows, offsets = np.ones(sizes, int), np.zeros((sizes[0], len(shape)), int)
        tables: list[Any] = [offsets, offsets.tolist()]
        for batch, table in product((windows, wg.asarray(windows, device=device)), tables):
            with pytest.raises(ValueError, match=r"the order is insert_windows\(x, offsets, windows\)$"):
                wg.insert_windows(cast("Any", batch), x, table)
            with pytest.raises(
                TypeError, match=r"by name: the order is insert_windows\(x, offsets, windows\)$"
            ):
                cast("Any", wg.insert_windows)(batch, x, offsets=table)
        check_same(x.numpy(), before)


def test_a_descriptor_has_the_rules_for_the_outside(device: wg.Device) -> None:
    sides = wg.TensorDesc("int64", (1, 3)), wg.TensorDesc("int64", (5,))
    windows = wg.asarray([[7, 8, 9]], device=device)
    with pytest.raises(wg.WindowError, match=r"^InsertWindows: offsets\[0\]\[0\] = 4: must be 0 to "):
        wg.InsertWindows(*sides, [[4]])
    bound = wg.TensorDesc("int64", (1, 1))
    with pytest.raises(wg.WindowError, match=r'^InsertWindows: outside = "refuse": offsets in a tensor'):
        wg.InsertWindows(*sides, bound, outside="refuse")
    for outside, expected in (("clamp", [0, 0, 7, 8, 9]), ("drop", [0, 0, 0, 0, 7]), (None, [0, 0, 7, 8, 9])):
        if outside is not None:
            known = device.compile(wg.InsertWindows(*sides, [[4]], outside=cast("Any", outside)))
            assert known(windows).numpy().tolist() == expected
        operator = device.compile(wg.InsertWindows(*sides, bound, outside=cast("Any", outside)))
        assert operator(windows, offsets=wg.asarray([[4]], device=device)).numpy().tolist() == expected


# in one buffer, of no elements, compiled


def test_windows_and_tensor_in_one_buffer(device: wg.Device) -> None:
    """The windows are read before anything is written; so are offsets."""
    for on_gpu in (False, True):
        array = np.arange(400, dtype=np.int32)
        x = wg.asarray(array, device=device)
        offsets: Any = np.array([[3], [60], [31]])
        if on_gpu:
            array[390:396:2] = offsets[:, 0]
            wg.copyto(x[390:396:2], offsets[:, 0].astype(np.int32))
            offsets = x[390:396:2].reshape((3, 1))
        expected = array.copy()
        windows = array[:60].reshape(3, 20)
        numpy_insert(expected, windows, np.array([[3], [60], [31]]), [[1], [-1], [1]])
        wg.insert_windows(x, offsets, x[:60].reshape((3, 20)), [[1], [-1], [1]], overlap="last")
        check_same(x.numpy(), expected)


def test_nothing_to_insert(device: wg.Device) -> None:
    x = wg.asarray(np.arange(6), device=device)
    nothing: list[tuple[Any, Any]] = [
        (np.zeros((0, 3), int), np.zeros((0, 1), int)),
        (np.zeros((2, 0), int), [[1], [1]]),
        (np.ones((2, 3), int), [[6], [-3]]),
    ]
    for windows, offsets in nothing:
        wg.insert_windows(x, offsets, windows, outside="drop")
    wg.insert_windows(wg.zeros(0, int, device=device), [[0], [0]], np.ones((2, 3), int), outside="drop")
    assert x.numpy().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.every_adapter
@given(case=insertions(), on_gpu=st.booleans())
def test_any_windows_recorded_on_the_callers_buffers(device: wg.Device, case: Case, on_gpu: bool) -> None:
    assume(case.tensor.rank < 8 and min((*case.batch.strides, *case.tensor.strides)) >= 0)
    check_recorded(device, case, on_gpu)


def test_a_compiled_operator_is_called_again_and_again(device: wg.Device) -> None:
    """With offsets of its own; winner indices begin at zero each time."""
    sides = wg.TensorDesc("uint8", (3, 40)), wg.TensorDesc("uint8", (100,))
    bound = wg.InsertWindows(*sides, wg.TensorDesc("int32", (3, 1)), overlap="last", outside="drop")
    operator = device.compile(bound)
    windows = random_bytes(120).reshape(3, 40)
    x = wg.zeros(100, np.uint8, device=device)
    expected = np.zeros(100, np.uint8)
    for seed in range(3):
        offsets = np.random.default_rng(seed).integers(-20, 90, (3, 1), np.int32)
        assert (
            operator(wg.asarray(windows, device=device), out=x, offsets=wg.asarray(offsets, device=device))
            is x
        )
        numpy_insert(expected, windows, offsets, (1,))
        check_same(x.numpy(), expected)
    assert "last_writer_windows on 3 windows of (40,) to the winner indices" in str(operator.plan)
    known = device.compile(wg.InsertWindows(*sides, [[0], [40], [80]], outside="drop"))
    check_same(known(wg.asarray(windows, device=device)).numpy(), windows.ravel()[:100])
    assert known.plan.summary.startswith("coalesced (100,) x 1 B, insert_")


# the choice of the kernels


def steps_of(
    shape: Any, sizes: Any, offsets: Any, *, width: int = 1, strides: Any = None, **changes: Any
) -> Any:
    """The kernels for windows of a packed batch in a packed tensor, on a CPU."""
    batch = Layout.packed((len(offsets), *sizes), changes.pop("skip", 0))
    limits = replace(USUAL, **{"profile": BLOCKS_FIRST[CPU], **changes})
    return names_of(planned_insertion(limits, batch, Layout.packed(shape), width, offsets, strides))


def test_kernels_at_both_sides_of_each_condition() -> None:
    rows, words, elements = "insert_rows", "insert_words", "insert_windows"
    for arguments, kernels in [
        ({"sizes": (3, 31), "offsets": [[1, 1]]}, [rows, words]),
        ({"sizes": (3, 30), "offsets": [[1, 1]]}, [words]),  # a row that may hold no block
        ({"sizes": (3, 30), "offsets": [[1, 1]], "profile": BLOCKS_FIRST[GPU]}, [rows, words]),
        ({"sizes": (3, 16), "offsets": [[1, 16]]}, [rows]),
        ({"sizes": (3, 16), "offsets": [[1, 17]]}, [words]),
        ({"sizes": (3, 16), "offsets": [[1, 17]], "profile": BLOCKS_FIRST[GPU]}, [rows, words]),
        ({"sizes": (3, 15), "offsets": [[1, 16]]}, [words]),
        ({"sizes": (3, 15), "offsets": [[1, 16]], "profile": BLOCKS_FIRST[GPU]}, [words]),
        ({"sizes": (3, 1), "offsets": [[1, 16]]}, [elements]),
        ({"sizes": (3, 8), "offsets": [[1, 4]], "width": 4}, [rows]),
        ({"sizes": (3, 3), "offsets": [[1, 4]], "width": 4}, [words]),
        ({"sizes": (3, 1), "offsets": [[1, 4]], "width": 4}, [elements]),
        ({"sizes": (3, 32), "offsets": [[1, 16], [5, -16]]}, [rows, rows, words]),  # one is clipped
        ({"sizes": (3, 32), "offsets": [[1, 16], [3, 16]]}, [rows, rows]),  # a layer each
        ({"sizes": (3, 32), "offsets": [[1, 16], [1, 16]]}, [rows]),
        ({"sizes": (3, 32), "offsets": [[1, 16]], "strides": (2, 1)}, [rows]),
        ({"sizes": (3, 32), "offsets": [[1, 16]], "strides": (1, 2)}, [elements]),
        ({"sizes": (3, 64), "offsets": [[1, 16], [4, 16]], "binding_nbytes": 512}, [rows, rows]),
    ]:
        given = {"shape": (9, 112), **cast("Any", arguments)}
        assert steps_of(**given) == kernels, arguments


@pytest.mark.first_adapter
@pytest.mark.parametrize("profile", default_tier(PROFILES, NAMES, 2))
def test_rows_from_and_to_every_byte(device: wg.Device, profile: Profile) -> None:
    """Rows of lengths around a block and two, forwards and backwards, of some channels, clipped or not."""
    in_rows = favouring(profile, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS)
    limits = replace(device.limits, profile=in_rows)
    seen, runs, results = set(), [], []
    lengths = (16, 17, 31, 67) if in_default_tier() else (16, 17, 30, 31, 32, 48, 67, 200)
    for width, channels, nbytes in product((1, 2, 4, 8, 16), (1, 3), lengths):
        size = max(nbytes // (width * channels), 1)
        for mirrored, leaves in product((False, True), repeat=2):
            rng = np.random.default_rng(nbytes)
            shape = (14, 2 * size + 9, channels)
            offsets = np.array([(y, x, 0) for y in (1, 4, 8) for x in (0, size + 2)])
            offsets[:, 1] += rng.integers(0, 3, len(offsets))
            if leaves:
                offsets[:, :2] += rng.choice([-5, 0, 5], 2)
            strides = np.ones_like(offsets)
            if mirrored:
                strides[:, :2] = rng.choice([1, -1], (len(offsets), 2))
            tensor_ = Layout.packed(shape, int(rng.integers(0, 16)))
            batch = Layout.packed((len(offsets), 3, size, channels), int(rng.integers(0, 16)))
            case = Case(width, batch, tensor_, offsets, strides, nbytes)
            plan = case.plan(limits)
            seen |= {(step.name, getattr(step, "clipped", False)) for step in plan.steps}
            source, target = case.buffers()
            results.append(case.expected(source, target))
            runs.append((plan, source, target, offset_table(offsets)))
    check_bytes(run_side_by_side(device, runs), side_by_side(device, results)[0])
    names = {("insert_rows", False), ("insert_rows", True), ("insert_words", False)}
    assert names <= seen


def test_no_kernel_is_left_where_all_are_disabled() -> None:
    disabled = frozenset({Kernel.INSERT_WORDS})
    assert steps_of((9, 112), (3, 32), [[1, 16]], disabled=disabled) == ["insert_windows"]
    disabled |= {Kernel.INSERT_WINDOWS}
    with pytest.raises(
        wg.NoKernelError, match=r"no kernel is left for windows of sizes \(3, 32\): insert_windows, "
    ):
        steps_of((9, 112), (3, 32), [[1, 16]], disabled=disabled)
    only_rows = frozenset({Kernel.INSERT_ROWS})
    assert steps_of((9, 112), (3, 32), [[1, 17]], disabled=only_rows) == ["insert_words"]


INSERTED = Case(
    1, Layout.packed((2, 3, 40)), Layout.packed((9, 99)), np.array([(1, 1), (5, 2)]), np.array([1, -1]), 5
)


@pytest.mark.parametrize("case", [photographs(1, 3, 22), INSERTED], ids=["extracted", "inserted"])
def test_the_oracles_see_a_wrong_answer(case: Any) -> None:
    source, target = case.buffers()
    wrong = target.copy()
    run_plan(case.plan(replace(USUAL, profile=CPU)), np.zeros_like(source), wrong, case.offsets)
    for result in (target, wrong, np.zeros_like(target)):
        with pytest.raises(AssertionError, match="bytes differ"):
            check_bytes(result, case.expected(source, target))


# tiles


@given(st.data())
def test_tiles_cover_everything_and_none_is_superfluous(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 3))
    shape = [data.draw(st.integers(0, 12)) for _ in range(rank)]
    tile = [data.draw(st.integers(1, 9)) for _ in range(rank)]
    overlap = [data.draw(st.integers(0, length - 1)) for length in tile]
    offsets = wg.tile_offsets(shape, tile, overlap)
    assert offsets.dtype == np.int64
    counts = np.zeros(shape, int)
    for place in offsets.tolist():
        assert all(
            begin == 0 or begin + common < size
            for begin, common, size in zip(place, overlap, shape, strict=True)
        )
        counts[tuple(slice(begin, begin + length) for begin, length in zip(place, tile, strict=True))] += 1
    assert (counts > 0).all()
    assert offsets.tolist() == sorted(offsets.tolist())
    if not any(overlap):
        assert (counts == 1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((4, 4), 0), ValueError, r"tile\[0\] = 0: must be an integer from 1 to"),
        (
            ((4, 4), (2, 2, 2)),
            ValueError,
            r"tile \(2, 2, 2\): must be one integer, or 2, one for each dimension",
        ),
        (((4, 4), 2, 2), ValueError, r"overlap\[0\] = 2: must be 0 to 1, less than tile\[0\]"),
        (((4, 4), 2, -1), ValueError, r"overlap\[0\] = -1: must be 0 to 1"),
        (((4, 4), 2.5), TypeError, "tile = 2.5: must be an integer, not float"),
        (((4, -4), 2), ValueError, r"shape\[1\] = -4: must be an integer from"),
    ],
)
def test_tiles_that_cannot_be(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^tile_offsets: {message}"):
        wg.tile_offsets(*arguments)
