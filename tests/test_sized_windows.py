"""Windows of different sizes: extracted into lists, inserted from lists, and padded, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers import DTYPES, check_same, make_buffer, on_one_adapter, random_array, random_bytes, view_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from planning import USUAL, only_dispatch, planned_extraction
from reference.plans import run_plan
from test_extract_windows import numpy_windows
from test_insert_windows import numpy_insert

import wgslice as wg
from wgslice.doctor.windows import sized_cases
from wgslice.layout import Layout
from wgslice.plans.facade import every
from wgslice.plans.profiles import CPU, GPU, Limits, Profile


@dataclass(frozen=True, eq=False)
class Case:
    """Windows of an array, each with sizes of its own."""

    array: NDArray[Any]
    view: tuple[slice, ...]  # of it, that windows are of
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    strides: NDArray[np.int64]

    @property
    def viewed(self) -> NDArray[Any]:
        """The array that windows are of."""
        return self.array[self.view]

    def expected(self, fill: Any = None) -> list[NDArray[Any]]:
        """Each window in NumPy's words."""
        return [
            numpy_windows(self.viewed, self.offsets[[b]], self.sizes[b], self.strides[[b]], fill)[0]
            for b in range(len(self.offsets))
        ]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Offsets, sizes and strides of some windows, (B, rank)."""

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    strides: NDArray[np.int64]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Sizes of the elements of each window."""
        return [tuple(shape) for shape in (1 + (self.sizes - 1) // np.abs(self.strides)).tolist()]


def parts_of(line: Any, shapes: Sequence[tuple[int, ...]], gap: int = 0) -> list[Any]:
    """Parts of a line, each of a shape, one after the other with a gap between them."""
    starts = accumulate((prod(shape) + gap for shape in shapes), initial=0)
    return [
        line[start : start + prod(shape)].reshape(shape) for start, shape in zip(starts, shapes, strict=False)
    ]


@st.composite
def drawn_windows(draw: st.DrawFn, shape: Sequence[int], *, inside: bool = True) -> Drawn:
    """Up to six windows of an array, some dimensions of them whole, with steps and flips."""
    rank = len(shape)
    whole = [draw(st.booleans()) for _ in range(rank)]
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in range(rank)]
    count, flips = draw(st.integers(0, 6)), draw(st.booleans())
    offsets, sizes, strides = (np.zeros((count, rank), np.int64) for _ in range(3))
    for b in range(count):
        for axis, size in enumerate(shape):
            low, high = (0, size) if inside else (-3, size + 3)
            begin = 0 if whole[axis] else draw(st.integers(low, high))
            offsets[b, axis] = begin
            sizes[b, axis] = size if whole[axis] else draw(st.integers(0, high - begin))
            strides[b, axis] = steps[axis] * (-1 if flips and draw(st.booleans()) else 1)
    if rank and draw(st.sampled_from([False, False, True])):  # lines, each along a dimension of its own
        for b in range(count):
            along = draw(st.integers(0, rank - 1))
            sizes[b] = np.where(np.arange(rank) == along, sizes[b], np.minimum(sizes[b], 1))
    return Drawn(offsets, sizes, strides)


@st.composite
def cases(draw: st.DrawFn, *, inside: bool = True) -> Case:
    """Windows of an array of up to four dimensions, some of which are reversed."""
    dtype = draw(st.sampled_from([*DTYPES.values()]))
    rank = draw(st.integers(0, 4))
    shape = [draw(st.integers(1, 40 if axis == 0 else 12)) for axis in range(rank)]
    order = [draw(st.sampled_from([1, 1, -1])) for _ in range(rank)]
    array = random_array(shape, dtype, draw(st.integers(0, 9)))
    drawn = draw(drawn_windows(shape, inside=inside))
    view = tuple(slice(None, None, step) for step in order)
    return Case(array, view, drawn.offsets, drawn.sizes, drawn.strides)


# Crops of others' tests that move elements only: sizes of the image, offsets and sizes of each crop.
PUBLIC_CROPS = {
    # pytorch/vision, test/test_transforms_v2.py at 20610ed3, TestCrop: crops beyond the image are filled
    "TorchVision": (
        (21, 11),
        [(5, 5), *[(-5, -5)] * 2, (-5, 5), (-5, -5), (5, -5), (-5, -5), (-5, 5), (5, -5), (5, 5)],
        [(10, 5), (30, 20), *[(30, 10)] * 2, *[(20, 20)] * 2, *[(20, 10)] * 4],
    ),
    # NVIDIA/DALI, dali/test/python/operator_1/test_multi_crop.py at 25cd205d
    "DALI multi_crop": ((16, 16, 3), [(0, 0, 0), (4, 4, 0), (0, 8, 0)], [(8, 8, 3)] * 3),
    # its test_crop.py at 0bb71ff0: test_crop_rounding, both kinds of rounding
    "DALI rounding": ((20, 8, 3), [(4, 0, 0), (5, -1, 0)], [(11, 9, 3)] * 2),
    # test_crop_with_out_of_bounds_policy_support, the whole image among what is filled, and trimmed to it
    "DALI out of bounds": ((40, 80, 3), [(-20, -40, 0), (0, 0, 0)], [(80, 160, 3), (40, 80, 3)]),
    # test_crop_3d_vs_python_op_crop, DHWC and CDHW, at 0.1, 0.2 and 0.3 of what 0.91, 0.85 and 0.75 leave
    "DALI DHWC": ((20, 50, 60, 8), [(0, 2, 5, 0)], [(18, 42, 45, 8)]),
    "DALI CDHW": ((8, 30, 10, 50), [(0, 0, 0, 4)], [(8, 27, 8, 37)]),
}


def check_listed(found: list[wg.Tensor], expected: list[NDArray[Any]]) -> None:
    """Check windows of one buffer, each from a multiple of 16 bytes on."""
    assert len(found) == len(expected)
    for window, numpys in zip(found, expected, strict=True):
        check_same(window.numpy(), numpys)
        assert window.is_packed
        assert window.offset % 16 == 0
        assert window.memory is found[0].memory


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("crops", PUBLIC_CROPS.values(), ids=PUBLIC_CROPS)
def test_public_crops_are_numpys(device: wg.Device, crops: Any, dtype: str) -> None:
    offsets, sizes = (np.array(each) for each in crops[1:])
    array = random_array(crops[0], dtype)
    case = Case(array, (), offsets, sizes, np.ones_like(sizes))
    found = wg.extract_windows(wg.asarray(array, device=device), offsets, sizes, fill=0)
    check_listed(found, case.expected(0))


@given(case=cases(), separate=st.booleans())
def test_windows_are_written_to_a_list_of_tensors(device: wg.Device, case: Case, separate: bool) -> None:
    x = wg.asarray(case.array, device=device)[case.view]
    expected = case.expected()
    guarded = [np.zeros((3, *each.shape), each.dtype) for each in expected]
    if separate or not expected:
        buffers = [wg.asarray(each, device=device) for each in guarded]
    else:
        flat = wg.zeros(sum(each.size for each in guarded), case.array.dtype, device=device)
        buffers = parts_of(flat, [each.shape for each in guarded])
    wg.extract_windows(x, case.offsets, case.sizes, case.strides, out=[each[1] for each in buffers])
    for written, before, window in zip(buffers, guarded, expected, strict=True):
        before[1] = window
        check_same(written.numpy(), before)


@pytest.mark.every_adapter
@given(
    case=cases(),
    kind=st.sampled_from(["arrays", "one buffer", "several buffers", "both"]),
    on_gpu=st.booleans(),
)
def test_later_inserted_windows_win(device: wg.Device, case: Case, kind: str, on_gpu: bool) -> None:
    """Extents of inserted windows are those of their elements, not of the window that they are read from."""
    windows = [random_array(each.shape, each.dtype, b) for b, each in enumerate(case.expected())]
    expected = case.array.copy()
    for b, window in enumerate(windows):
        if window.size:
            numpy_insert(view_of(expected, case.view), window[None], case.offsets[[b]], case.strides[[b]])
    x = wg.asarray(case.array, device=device)
    listed: list[Any] = list(windows)
    if kind == "one buffer":
        packed = wg.asarray(
            np.concatenate([np.zeros(1, case.array.dtype), *map(np.ravel, windows)]), device=device
        )
        listed = parts_of(packed[1:], [each.shape for each in windows])
    elif kind != "arrays":
        listed = [
            wg.asarray(each, device=device) if kind[0] == "s" or b % 2 else each
            for b, each in enumerate(windows)
        ]
    offsets: Any = wg.asarray(case.offsets, device=device) if on_gpu else case.offsets
    if not listed:
        return
    wg.insert_windows(x[case.view], offsets, listed, case.strides, overlap="last")
    check_same(x.numpy(), expected)


@given(case=cases(inside=False), on_gpu=st.booleans())
def test_inserted_elements_outside_are_dropped(device: wg.Device, case: Case, on_gpu: bool) -> None:
    windows = [np.full(each.shape, 7, each.dtype) for each in case.expected(0)]
    expected = case.array.copy()
    for b, window in enumerate(windows):
        inside = np.ones(window.shape, bool)
        places = np.ix_(
            *(
                (range(o + (n - 1) * abs(s), o - 1, s) if s < 0 else range(o, o + n * s, s))
                for o, n, s in zip(case.offsets[b], window.shape, case.strides[b], strict=True)
            )
        )
        indices = np.broadcast_arrays(*places) if places else []
        for index, size in zip(indices, case.array.shape, strict=True):
            inside &= (index >= 0) & (index < size)
        if window.ndim:
            expected[case.view][tuple(index[inside] for index in indices)] = 7
        else:
            expected[...] = 7
    if not windows:
        return
    x = wg.asarray(case.array, device=device)
    offsets: Any = wg.asarray(case.offsets, device=device) if on_gpu else case.offsets
    listed = [wg.asarray(each, device=device) for each in windows]
    wg.insert_windows(x[case.view], offsets, listed, case.strides, overlap="last", outside="drop")
    check_same(x.numpy(), expected)


@pytest.mark.every_adapter
@given(case=cases(), on_gpu=st.booleans())
def test_compiled_windows_of_different_sizes(device: wg.Device, case: Case, on_gpu: bool) -> None:
    array = view_of(case.array, case.view).copy()
    x = wg.asarray(array, device=device)
    if not len(case.offsets) or not array.size or not all(each.size for each in case.expected()):
        return
    of_offsets = wg.TensorDesc("int64", case.offsets.shape) if on_gpu and array.ndim else case.offsets
    bound = {"offsets": wg.asarray(case.offsets, device=device)} if on_gpu and array.ndim else {}
    desc = wg.TensorDesc(array.dtype, array.shape)
    extraction = wg.ExtractWindows(desc, None, of_offsets, case.sizes, case.strides)
    assert extraction.output_offsets is not None
    packed = device.compile(extraction)(x, **bound)
    listed = []
    for start, numpys in zip(extraction.output_offsets.tolist(), case.expected(), strict=True):
        listed.append(packed[start : start + numpys.size].reshape(numpys.shape))
        check_same(listed[-1].numpy(), numpys)
    sizes = [each.shape for each in listed]
    insertion = wg.InsertWindows(None, desc, of_offsets, case.strides, sizes=sizes, overlap="last")
    assert insertion.input == extraction.output
    y = wg.zeros(array.shape, array.dtype, device=device)
    device.compile(insertion)(packed, y, **bound)
    z = wg.zeros(array.shape, array.dtype, device=device)
    wg.insert_windows(z, case.offsets, listed, case.strides, overlap="last")
    check_same(y.numpy(), z.numpy())


@pytest.fixture(scope="module")
def picture(device: wg.Device) -> wg.Tensor:
    return wg.asarray(np.arange(60, dtype=np.uint8).reshape(6, 10), device=device)


@on_one_adapter
def test_equal_sizes_have_the_plan_of_one_size(device: wg.Device) -> None:
    desc, offsets = wg.TensorDesc("float32", (40, 50)), [[1, 2], [3, 5], [30, 10]]
    one = wg.ExtractWindows(desc, wg.TensorDesc("float32", (3, 7, 8)), offsets, (7, 8))
    each = wg.ExtractWindows(desc, None, offsets, [(7, 8)] * 3)
    plans = [device.compile(descriptor).plan for descriptor in (one, each)]
    assert plans[0].choice is not None
    assert [plan.choice and plan.choice.name for plan in plans] == [plans[0].choice.name] * 2
    assert [str(step) for step in plans[0].steps] == [str(step) for step in plans[1].steps]


@on_one_adapter
def test_a_plan_says_windows_bytes_and_rows(picture: wg.Tensor) -> None:
    plan = wg.explain(wg.extract_windows, picture, [[0, 0], [2, 3]], [[3, 4], [2, 6]])
    assert "2 windows of different sizes, 24 B in 5 rows of 4 to 6 bytes" in str(plan)


@on_one_adapter
def test_windows_take_one_submission_of_two_dispatches_at_most(picture: wg.Tensor) -> None:
    plan = wg.explain(wg.extract_windows, picture, [[-1, 0], [2, 3]], [[3, 4], [2, 9]], fill=3)
    assert "1 plan in 1 submission" in str(plan)
    assert str(plan).count("kernel sized_") == 1


@on_one_adapter
def test_overlapping_windows_of_a_list_are_refused(picture: wg.Tensor) -> None:
    windows = [np.ones((2, 3), np.uint8), np.ones((3, 2), np.uint8)]
    before = picture.numpy()
    with pytest.raises(wg.WindowError, match=r"windows 0 and 1 overlap, at offsets \(0, 0\) and \(1, 2\)"):
        wg.insert_windows(picture, [[0, 0], [1, 2]], windows)
    check_same(picture.numpy(), before)
    wg.insert_windows(picture, [[0, 0], [2, 2]], windows)
    assert (
        picture.numpy()[:5, :4].sum()
        == before[:5, :4].sum() - before[:2, :3].sum() - before[2:5, 2:4].sum() + 12
    )
    picture[...] = before


TWICE = [[0, 0], [0, 0]]
REFUSED = [
    ([[0, 0]], [[3, 4], [2, 2]], {}, ValueError, "sizes have shape (2, 2): must be (1, 2), as offsets"),
    (TWICE, [[3, 4], [7, 1]], {}, wg.WindowError, "sizes[1][0] = 7: must be 0 to the input's size, 6"),
    (TWICE, [[3, 4], [-1, 1]], {}, wg.WindowError, "sizes[1][0] = -1: must be 0 to"),
    ([[0, 0], [4, 0]], [[3, 4], [3, 1]], {}, wg.WindowError, "offsets[1][0] = 4: must be 0 to 3 for a"),
    (TWICE, [[3.0, 4.0], [2.0, 1.0]], {}, TypeError, "sizes have dtype float64: must be integers"),
    (TWICE, [[3, 4], [3, 1]], {"fill": 1, "outside": "clamp"}, ValueError, "a fill are both given"),
]


@on_one_adapter
@pytest.mark.parametrize(("offsets", "sizes", "options", "error", "text"), REFUSED)
def test_wrong_sizes_are_refused_by_name(
    picture: wg.Tensor, offsets: Any, sizes: Any, options: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        wg.extract_windows(picture, offsets, sizes, **options)


@on_one_adapter
def test_wrong_outputs_are_refused(device: wg.Device, picture: wg.Tensor) -> None:
    arguments: Any = picture, [[0, 0], [2, 3]], [[3, 4], [2, 6]]
    parts = [wg.zeros((3, 4), np.uint8, device=device), wg.zeros((2, 5), np.uint8, device=device)]
    for out, text in (
        (parts, "out[1] has sizes (2, 5): must be (2, 6)"),
        (parts[:1], "out has 1 tensors: must be 2"),
        (wg.zeros(31, np.uint8, device=device), "out has sizes (31,)"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            wg.extract_windows(*arguments, out=out)


@on_one_adapter
def test_a_packed_output_is_written(device: wg.Device, picture: wg.Tensor) -> None:
    out = wg.zeros(32, np.uint8, device=device)
    found = wg.extract_windows(picture, [[0, 0], [2, 3]], [[3, 4], [2, 6]], out=out)
    assert [window.offset for window in found] == [0, 16]
    check_same(out[:12].numpy(), picture[:3, :4].numpy().ravel())
    check_same(out[16:28].numpy(), picture[2:4, 3:9].numpy().ravel())
    assert not out[28:].numpy().any()


@on_one_adapter
def test_windows_may_be_inserted_into_their_own_tensor(device: wg.Device) -> None:
    array = np.arange(40, dtype=np.int16)
    x = wg.asarray(array, device=device)
    wg.insert_windows(x, [[1], [20]], [x[0:9], x[30:34]])
    array[1:10], array[20:24] = array[0:9].copy(), array[30:34].copy()
    check_same(x.numpy(), array)


@pytest.mark.every_adapter
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    features=st.sampled_from([(), (3,), (8,)]),
    dtype=st.sampled_from([*DTYPES.values()]),
    more=st.integers(0, 5),
    zeros=st.booleans(),
)
def test_padding_and_its_reverse(
    device: wg.Device, lengths: list[int], features: tuple[int, ...], dtype: str, more: int, zeros: bool
) -> None:
    arrays = [random_array((n, *features), dtype, n) for n in lengths]
    fill = np.frombuffer(bytes(16) if zeros else bytes(range(1, 17)), dtype)[0]
    size = max(lengths) + more, *features
    expected = np.full((len(arrays), *size), fill, dtype)
    for part, array in zip(expected, arrays, strict=True):
        part[: len(array)] = array
    padded = wg.pad_windows([wg.asarray(each, device=device) for each in arrays], size, fill=fill)
    check_same(padded.numpy(), expected)
    views = wg.unpad_windows(padded, [each.shape for each in arrays])
    for view, array in zip(views, arrays, strict=True):
        assert view.memory is padded.memory
        check_same(view.numpy(), array)


@on_one_adapter
@pytest.mark.parametrize(
    ("size", "fill", "may_clear"), [(8, 0, True), (8, 1, False), (8, 256, False), (7, 0, False)]
)
def test_padding_by_zeros_may_clear_first(device: wg.Device, size: int, fill: int, may_clear: bool) -> None:
    """Where the batch is whole words: 6 parts of 7 elements of 2 bytes are, 3 parts are not."""
    lines = [wg.asarray(np.arange(1, n, dtype=np.uint16), device=device) for n in (3, 6, 1)]
    assert ("clear first" in str(wg.explain(wg.pad_windows, lines, (size,), fill=fill))) == may_clear
    expected = np.array([[1, 2, 0, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]]), np.full((3, size - 5), fill)
    expected[0][expected[0] == 0] = fill
    check_same(wg.pad_windows(lines, (size,), fill=fill).numpy(), np.hstack(expected).astype(np.uint16))
    twice = [*lines, *lines]
    assert ("clear first" in str(wg.explain(wg.pad_windows, twice, (size,), fill=fill))) == (fill == 0)
    whole = np.vstack([np.hstack(expected)] * 2).astype(np.uint16)
    check_same(wg.pad_windows(twice, (size,), fill=fill).numpy(), whole)


@on_one_adapter
def test_wrong_paddings_are_refused(device: wg.Device) -> None:
    x = wg.asarray(np.arange(3), device=device)
    with pytest.raises(ValueError, match=r"pad_windows: no tensor among the windows"):
        wg.pad_windows([np.arange(3)])
    with pytest.raises(ValueError, match=re.escape("size (2,): must be at least (3,)")):
        wg.pad_windows([x], (2,))
    with pytest.raises(ValueError, match=re.escape("windows[1]: shape (1, 1): must be of rank 1, as x")):
        wg.pad_windows([x, np.ones((1, 1), np.int64)])
    with pytest.raises(ValueError, match=re.escape("sizes[0] = (4,): must be 0 to (3,)")):
        wg.unpad_windows(x[None], [[4]])


@on_one_adapter
def test_a_saved_program_extracts_pads_and_inserts(device: wg.Device, tmp_path: Path) -> None:
    array = random_bytes(600).reshape(20, 30)
    offsets, sizes = [[0, 1], [3, 4], [9, 0]], [[5, 7], [1, 26], [11, 3]]

    def work(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        windows = wg.extract_windows(x, offsets, sizes)
        wg.insert_windows(y, offsets, windows, overlap="last")
        return wg.pad_windows(windows, fill=9)

    x, y = wg.asarray(array, device=device), wg.zeros(array.shape, array.dtype, device=device)
    padded = work(x, y)
    wg.capture(work, x=x, y=y).save(tmp_path / "saved")
    z = wg.zeros(array.shape, array.dtype, device=device)
    again = wg.load_program(tmp_path / "saved", device=device)(x=x, y=z)
    check_same(again.numpy(), padded.numpy())
    check_same(z.numpy(), y.numpy())


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
@pytest.mark.parametrize("nbytes", [2**9, 2**27])
def test_plans_of_any_limits_copy_numpys_bytes(profile: Profile, nbytes: int) -> None:
    """By the reference implementation, where bindings hold a part of a window, some windows, or all."""
    limits = Limits(binding_nbytes=nbytes, binding_alignment_nbytes=32, workgroups=9, profile=profile)
    for case in list(sized_cases())[::9]:
        trial = case.trial(limits)
        if trial is None:
            continue
        source, before = random_bytes(trial.source_nbytes + 64, 1), random_bytes(trial.target_nbytes + 64, 2)
        target = before.copy()
        offsets = None if case.offset_dtype is None else case.offsets.astype(case.offset_dtype)
        run_plan(trial.plan, source, target, offsets)
        expected = trial.expected(source[: trial.source_nbytes], before[: trial.target_nbytes].copy())
        check_same(target[: trial.target_nbytes], expected)


@on_one_adapter
@pytest.mark.parametrize("capacity", [20, 24, 28])
def test_unpadded_buffers_take_windows_one_by_one(device: wg.Device, capacity: int) -> None:
    array = np.arange(capacity, dtype=np.uint8)
    x = wg.from_buffer(make_buffer(device, array), (capacity,), np.uint8)
    out = wg.from_buffer(make_buffer(device, np.zeros(capacity, np.uint8)), (capacity,), np.uint8)
    wg.extract_windows(x, [[0], [5]], [[5], [capacity - 5]], out=[out[:5], out[5:]])
    check_same(out.numpy(), array)
    y = wg.from_buffer(make_buffer(device, np.zeros(capacity, np.uint8)), (capacity,), np.uint8)
    wg.insert_windows(y, [[0], [5]], [x[:5], x[5:]])
    check_same(y.numpy(), array)
    check_same(wg.pad_windows([x, x[:2]]).numpy()[0], array)


@on_one_adapter
def test_windows_without_elements_of_a_buffer_of_one_word(device: wg.Device) -> None:
    """Which holds no vector that a binding could have."""
    x = wg.from_buffer(make_buffer(device, np.zeros(1, np.float32)), (1,), np.float32)
    for fill in (0, 1):
        check_same(wg.pad_windows([x[:0], x[:0]], (3,), fill=fill).numpy(), np.full((2, 3), fill, np.float32))
    for each, size in zip(wg.extract_windows(x, [[5], [9]], [[3], [2]], fill=1), (3, 2), strict=True):
        check_same(each.numpy(), np.ones(size, np.float32))


@on_one_adapter
def test_a_sequence_of_one_token_pads_in_whole_parts(device: wg.Device) -> None:
    tokens = np.arange(1, 33, dtype=np.float16).reshape(4, 8)
    lines = [wg.asarray(part, device=device) for part in (tokens[:1], tokens[1:])]
    assert "96 B in 2 rows of 48 bytes" in str(wg.explain(wg.pad_windows, lines, fill=-1))
    expected = np.stack([np.pad(tokens[:1], ((0, 2), (0, 0)), constant_values=-1), tokens[1:]])
    check_same(wg.pad_windows(lines, fill=-1).numpy(), expected)


@pytest.mark.parametrize(
    ("pixels", "windows", "dispatches", "ends"),
    [
        ((24,), [(1, 7), (8, 14)], 1, False),
        ((24,), [(1, 7), (7, 14)], 2, False),  # both write word 1: a dispatch for each
        ((24,), [(1, 6), (6, 11), (11, 16)], 2, True),  # as three would be more
        ((22,), [(1, 7), (8, 14)], 2, True),  # rows begin inside of words
        ((24,), [(0, 24), (3, 5)], 2, False),  # the second one is written over the first
        ((8, 3), [(0, 3), (3, 5)], 2, False),  # up to byte 9, and from it on
        ((8, 3), [(0, 2), (3, 5)], 1, False),
    ],
)
def test_rows_that_share_no_word_are_written_at_once(
    device: wg.Device, pixels: tuple[int, ...], windows: list[tuple[int, int]], dispatches: int, ends: bool
) -> None:
    """And leave the bytes beside them as they are."""
    expected = random_bytes(5 * int(np.prod(pixels))).reshape(5, *pixels)
    x, listed = wg.asarray(expected, device=device), []
    for number, (begin, stop) in enumerate(windows):
        shape = 4 - number, stop - begin, *pixels[1:]
        listed.append(wg.asarray(random_array(shape, np.uint8, number), device=device))
        expected[1 : 1 + shape[0], begin:stop] = listed[-1].numpy()
    whole = wg.asarray(np.concatenate([each.numpy().reshape(-1) for each in listed]), device=device)
    parts = parts_of(whole, [each.shape for each in listed])
    offsets = [(1, begin, *[0] * (len(pixels) - 1)) for begin, _ in windows]
    plan = str(wg.explain(wg.insert_windows, x, offsets, parts, overlap="last"))
    assert plan.count("kernel sized_") == dispatches
    assert plan.count("kernel sized_ends") == ends
    wg.insert_windows(x, offsets, parts, overlap="last")
    check_same(x.numpy(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_short_runs_share_words_with_their_neighbours(device: wg.Device, dtype: str) -> None:
    """Invocations that read and write a word at the same time would lose what the others write."""
    lengths = [1, 2, 1, 1, 3, 1, 1, 2, 5, 1, 1]
    begins = np.cumsum([0, *lengths[:-1]])
    array = np.arange(1, 3 * sum(lengths) + 1, dtype=dtype).reshape(3, -1)
    offsets = [(row, begin) for row in range(3) for begin in begins.tolist()]
    sizes = [(1, length) for _ in range(3) for length in lengths]
    x, y = wg.asarray(array, device=device), wg.zeros(array.shape, dtype, device=device)
    wg.insert_windows(y, offsets, wg.extract_windows(x, offsets, sizes))
    check_same(y.numpy(), array)


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("overlap", ["refuse", "last", "disjoint"])
def test_outlines_of_boxes_are_lines_of_both_directions(device: wg.Device, dtype: str, overlap: str) -> None:
    """In the fewest dimensions a column and a row are both one line, of which no row of one owns a word."""
    expected, windows = np.zeros((9, 18), dtype), []
    lines = [(1, 2, 2, 13), (2, 8, 2, 3), (7, 8, 3, 13), (2, 7, 12, 13)]  # first and last rows and columns
    for number, (top, bottom, left, right) in enumerate(lines):
        line = slice(top, bottom), slice(left, right)
        expected[line] = np.arange(1, 1 + expected[line].size).reshape(expected[line].shape) + 20 * number
        windows.append(wg.asarray(expected[line], device=device))
    x = wg.zeros(expected.shape, dtype, device=device)
    offsets = [(top, left) for top, _, left, _ in lines]
    wg.insert_windows(x, offsets, windows, overlap=cast("Any", overlap))
    check_same(x.numpy(), expected)


@pytest.mark.every_adapter
@pytest.mark.parametrize("on_gpu", [False, True])
def test_outputs_may_share_the_buffers_that_are_read(device: wg.Device, on_gpu: bool) -> None:
    """Several buffers are written one after the other, all from what was there before."""
    array, places = np.arange(20, dtype=np.int32).reshape(4, 5), np.array([[0, 1], [1, 0], [0, 0]], np.int32)
    x, offsets = wg.asarray(array, device=device), wg.asarray(places, device=device)
    out = [offsets[:2], x[1:3, 1:4], wg.zeros((2, 2), np.int32, device=device)]
    sizes = [each.shape for each in out]
    wg.extract_windows(x, offsets if on_gpu else places, sizes, out=out)
    for (top, left), window in zip(places.tolist(), out, strict=True):
        rows, columns = window.shape
        check_same(window.numpy(), array[top : top + rows, left : left + columns])


@on_one_adapter
def test_no_windows_are_inserted(device: wg.Device) -> None:
    x, none = wg.asarray(np.arange(6.0).reshape(2, 3), device=device), np.zeros((0, 2), np.int64)
    assert wg.extract_windows(x, none, none) == []
    wg.insert_windows(x, none, [])
    empty = wg.zeros((0, 3), device=device)
    places = wg.asarray([[0, 0], [1, 1]], device=device)
    wg.insert_windows(empty, places, [np.ones((2, 2)), np.ones((1, 2))], overlap="last", outside="drop")
    check_same(x.numpy(), np.arange(6.0).reshape(2, 3))


@on_one_adapter
@pytest.mark.parametrize(
    "call",
    [
        lambda x, gone: wg.pad_windows([x, gone]),
        lambda x, gone: wg.insert_windows(
            x, [[0], [2]], [wg.ones(1, device=x.device), gone[:2]], overlap="last"
        ),
        lambda x, gone: wg.asarray([x, gone]),
    ],
)
def test_a_destroyed_window_is_refused_by_its_number(device: wg.Device, call: Callable[..., Any]) -> None:
    x, gone = (wg.zeros(4, device=device) for _ in range(2))
    gone.buffer.destroy()
    with pytest.raises(ValueError, match=r"\w+: (windows|array)\[1\]: the buffer has been destroyed"):
        call(x, gone)


@on_one_adapter
def test_windows_promised_to_be_disjoint_are_not_compared(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose comparison takes the host longer than another dispatch, where they are many."""
    monkeypatch.setattr("wgslice.plans.overlaps.meeting", None)  # a call would fail
    x = wg.zeros((5, 24), np.uint8, device=device)
    windows = [wg.asarray(np.full((2 + n, 6), 7 + n, np.uint8), device=device) for n in range(2)]
    wg.insert_windows(x, [[0, 1], [1, 8]], windows, overlap="disjoint")
    expected = np.zeros((5, 24), np.uint8)
    expected[:2, 1:7], expected[1:4, 8:14] = 7, 8
    check_same(x.numpy(), expected)


def test_every_workgroup_of_a_folded_grid_has_its_windows() -> None:
    """A grid of two dimensions may have workgroups without rows, which look for a window as well."""
    limits = replace(USUAL, profile=replace(CPU, workgroup_size=8, window_blocks=1), workgroups=3)
    plan = planned_extraction(limits, Layout.of((2, 169), (507, 3)), None, 4, [[0, 0], [1, 0]], (1, 68))
    step = only_dispatch(dict(every(plan))["sized_windows"])
    groups = prod(step.share.workgroups)
    assert groups > -(-step.pieces.total // 8)
    assert step.table.size == 2 * step.columns + groups + 1
