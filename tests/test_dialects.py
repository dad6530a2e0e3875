"""Notations for a slice: each against NumPy or what defines it, to the limits of its types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx
import pytest
from helpers import check_same, elements_of, numpy_window
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from strategies import windows

import wgslice as wg
from wgslice import dialects
from wgslice.layout import Layout

I64_MIN, I64_MAX = -(2**63), 2**63 - 1
I32_MIN, I32_MAX, U32_MAX = -(2**31), 2**31 - 1, 2**32 - 1

ONNX, WEBNN, REVERSE = dialects.onnx_slice, dialects.webnn_slice, dialects.webnn_reverse
PAD, GATHER = dialects.webnn_pad, dialects.webnn_gather
TF, DML1, DML = dialects.tensorflow_strided_slice, dialects.directml_slice1, dialects.directml_slice

shapes = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
full_shapes = array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6)
near = st.integers(-8, 8)
limits = st.sampled_from(
    [I64_MIN, I64_MIN + 1, I32_MIN - 1, I32_MIN, I32_MAX, I32_MAX + 1, I64_MAX - 1, I64_MAX]
)
i64 = st.one_of(near, near, limits)
steps_i64 = i64.filter(lambda step: step != 0)


def numbered(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    return np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes)


def selected(selection: dialects.Selection) -> NDArray[np.int64]:
    """The elements that a selection takes of a tensor that counts its elements."""
    layout = Layout.packed(selection.sizes).select(selection.items)
    assert layout.sizes == selection.shape
    return elements_of(layout).reshape(layout.sizes)


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (dialects.numpy_index((10,), slice(7, 2, -2)), [7, 5, 3]),
        (dialects.onnx_slice((10,), [7], [2], [0], [-2]), [7, 5, 3]),
        (dialects.tensorflow_strided_slice((10,), [7], [2], [-2]), [7, 5, 3]),
        (dialects.directml_slice1((10,), [2], [6], [-2]), [7, 5, 3]),
        (dialects.directml_slice1((10,), [2], [6], [-2], [2]), [7, 5]),
        (dialects.directml_slice((10,), [2], [3], [3]), [2, 5, 8]),
        (dialects.webnn_slice((10,), [2], [6], [2]), [2, 4, 6]),
        (dialects.webnn_reverse((3,)), [2, 1, 0]),
    ],
)
def test_one_slice_in_every_notation(selection: dialects.Selection, taken: list[int]) -> None:
    assert selected(selection).tolist() == taken


@st.composite
def onnx_slices(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, list[int] | None]]:
    sizes = draw(shapes)
    count = draw(st.integers(0, len(sizes)))
    axes = draw(st.permutations(range(len(sizes))))[:count]
    signed = [axis - len(sizes) * draw(st.booleans()) for axis in axes]
    named_axes = draw(st.booleans())
    entries = st.lists(i64, min_size=count, max_size=count)
    steps = st.none() | st.lists(steps_i64, min_size=count, max_size=count)
    return sizes, {
        "starts": draw(entries),
        "ends": draw(entries),
        "axes": signed if named_axes else None,
        "steps": draw(steps),
    }


def reference_slice(array: NDArray[Any], opset: int, inputs: dict[str, list[int] | None]) -> Any:
    """ONNX's own implementation, in Python."""
    given_inputs = {name: np.array(values, np.int64) for name, values in inputs.items() if values is not None}
    if opset == 1:
        attributes = {name: values.tolist() for name, values in given_inputs.items()}
        node, feed = onnx.helper.make_node("Slice", ["data"], ["output"], **attributes), {}
    else:
        names = [name if name in given_inputs else "" for name in inputs]
        node, feed = onnx.helper.make_node("Slice", ["data", *names], ["output"]), given_inputs
    typed = {name: onnx.helper.make_tensor_value_info(name, 7, None) for name in ["data", *feed, "output"]}
    graph = onnx.helper.make_graph(
        [node], "slice", [typed[name] for name in ["data", *feed]], [typed["output"]]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    outputs: Any = ReferenceEvaluator(model).run(None, {"data": array, **feed})
    return outputs[0]


@pytest.mark.parametrize("opset", [1, 10, 11, 13])
@given(case=onnx_slices())
def test_any_onnx_slice_is_that_of_the_reference(
    opset: int, case: tuple[tuple[int, ...], dict[str, Any]]
) -> None:
    sizes, inputs = case
    if opset == 1:
        assume(inputs["starts"])  # the reference takes empty attributes for absent ones
        inputs = inputs | {"steps": None, "axes": inputs["axes"] or list(range(len(inputs["starts"])))}
    array = numbered(sizes)
    check_same(selected(dialects.onnx_slice(sizes, **inputs)), reference_slice(array, opset, inputs))


def test_every_onnx_slice_of_a_short_axis() -> None:
    """Against NumPy, which ONNX's text follows but for a start before the first element."""
    values = [I64_MIN, *range(-5, 6), I64_MAX]
    for start in values:
        for end in values:
            for step in [I64_MIN, -3, -2, -1, 1, 2, 3, I64_MAX]:
                taken = selected(dialects.onnx_slice((4,), [start], [end], [0], [step]))
                assert taken.tolist() == list(range(4))[start:end:step]


@st.composite
def strided_slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any], dict[str, Any]]:
    """A NumPy index, and TensorFlow's notation for it."""
    sizes = draw(shapes)
    mentioned = draw(st.integers(0, len(sizes)))
    ellipsis_at = draw(st.none() | st.integers(0, mentioned))
    behind = mentioned if ellipsis_at is None else mentioned - ellipsis_at
    axes = [*range(mentioned - behind), *range(len(sizes) - behind, len(sizes))]
    axes = axes if ellipsis_at is not None else list(range(mentioned))
    key: list[Any] = []
    columns: dict[str, list[int]] = {"begin": [], "end": [], "strides": []}
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)

    def add(item: Any, begin: int, end: int, stride: int, *set_bits: str) -> None:
        for name in set_bits:
            masks[name] |= 1 << len(key)
        key.append(item)
        for name, value in (("begin", begin), ("end", end), ("strides", stride)):
            columns[name].append(value)

    for position, axis in enumerate([*axes, None]):
        if draw(st.integers(0, 5)) == 0:
            add(None, draw(i64), draw(i64), draw(i64), "new_axis", *draw(st.sets(st.just("shrink_axis"))))
        if position == ellipsis_at:
            add(Ellipsis, draw(i64), draw(i64), draw(i64), "ellipsis")
        if axis is None:
            continue
        begin, end, stride = draw(i64), draw(i64), draw(steps_i64)
        if sizes[axis] and draw(st.integers(0, 3)) == 0:
            index = draw(st.integers(-sizes[axis], sizes[axis] - 1))
            ignored = draw(st.sets(st.sampled_from(["begin", "end"])))
            add(index, index, end, abs(stride) - (stride == I64_MIN), "shrink_axis", *ignored)
            continue
        free = draw(st.sets(st.sampled_from(["begin", "end"])))
        item = slice(None if "begin" in free else begin, None if "end" in free else end, stride)
        add(item, begin, end, stride, *free)
    return sizes, key, {**columns, **{f"{name}_mask": value for name, value in masks.items()}}


@given(strided_slices())
def test_any_tensorflow_strided_slice_is_numpys(
    case: tuple[tuple[int, ...], list[Any], dict[str, Any]],
) -> None:
    sizes, key, arguments = case
    expected = numbered(sizes)[(*key, ...)] if Ellipsis not in key else numbered(sizes)[tuple(key)]
    check_same(selected(dialects.tensorflow_strided_slice(sizes, **arguments)), np.asarray(expected))


def test_tensorflow_masks_use_all_bits_and_ignore_their_strides() -> None:
    """As TensorFlow 2.21 does, which was asked."""
    everything = dialects.tensorflow_strided_slice((5,), [4], [0], begin_mask=-1, end_mask=-1)
    assert selected(everything).tolist() == [0, 1, 2, 3, 4]
    added = dialects.tensorflow_strided_slice((5,), [9, 1], [9, 3], [0, 1], new_axis_mask=1)
    assert selected(added).tolist() == [[1, 2]]


@given(full_shapes, st.data())
def test_webnn_pad_is_numpys(sizes: tuple[int, ...], data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["constant", "edge", "reflection"]))
    most = [size - 1 if mode == "reflection" else 4 for size in sizes]
    before, behind = ([data.draw(st.integers(0, each)) for each in most] for _ in range(2))
    arguments = dialects.webnn_pad(sizes, before, behind, mode, 7)
    assert arguments.pop("constant_values") == 7
    options = {"constant_values": 7} if mode == "constant" else {}
    pad: Any = np.pad
    expected = pad(numbered(sizes), np.array([before, behind]).T, mode.removesuffix("ion"), **options)
    check_same(pad(numbered(sizes), **arguments, **options), expected)


def test_webnn_examples_pad_and_gather_a_tensor(device: wg.Device) -> None:
    """Those of the specification."""
    x = wg.asarray(np.array([[1, 2, 3], [4, 5, 6]], np.float32), device=device)
    padded = wg.pad(x, **dialects.webnn_pad(x.shape, [1, 2], [1, 2], "reflection"))
    assert padded.tolist() == [[6, 5, 4, 5, 6, 5, 4], [3, 2, 1, 2, 3, 2, 1]] * 2
    padded = wg.pad(x, **dialects.webnn_pad(x.shape, [1, 0], [0, 1], value=9))
    assert padded.tolist() == [[9, 9, 9, 9], [1, 2, 3, 9], [4, 5, 6, 9]]
    assert wg.pad(x[0, 0], **dialects.webnn_pad((), [], [])).tolist() == 1
    table = wg.asarray(
        np.array([[0, 1, 2], [10, 11, 12], [20, 21, 22], [30, 31, 32]], np.float32), device=device
    )
    assert table[dialects.webnn_gather(table.shape, np.array([3, 1], np.uint32))].tolist() == [
        [30, 31, 32],
        [10, 11, 12],
    ]
    found = table[dialects.webnn_gather(table.shape, [[0, 1], [1, -1]], axis=1)]
    assert found[0].tolist() == [[0, 1], [1, 2]]
    on_device = wg.asarray(np.array([2, -9, 9], np.int32), device=device)
    assert table[dialects.webnn_gather(table.shape, on_device, 1)][1].tolist() == [12, 10, 12]
    assert table[dialects.webnn_gather(table.shape, [], 1)].shape == (4, 0)


@st.composite
def webnn_slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    sizes = draw(full_shapes)
    window = []
    for size in sizes:
        start = draw(st.integers(0, size - 1))
        extent = draw(st.integers(1, size - start))
        window.append((start, extent, draw(st.integers(1, 8) | st.sampled_from([I32_MAX, U32_MAX]))))
    return sizes, window


@given(webnn_slices())
def test_any_webnn_slice_is_numpys(case: tuple[tuple[int, ...], list[tuple[int, int, int]]]) -> None:
    sizes, window = case
    expected = numbered(sizes)[tuple(slice(start, start + extent, step) for start, extent, step in window)]
    check_same(selected(dialects.webnn_slice(sizes, *zip(*window, strict=True))), expected)


@given(shapes, st.data())
def test_any_webnn_reverse_is_numpys(sizes: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(0, len(sizes)))]
    check_same(selected(dialects.webnn_reverse(sizes, axes)), np.flip(numbered(sizes), tuple(axes)))
    check_same(selected(dialects.webnn_reverse(sizes)), np.flip(numbered(sizes)))


@given(st.data(), full_shapes)
def test_any_directml_window_is_numpys(data: st.DataObject, sizes: tuple[int, ...]) -> None:
    window = data.draw(windows(sizes))
    check_same(selected(dialects.directml_slice1(sizes, *window)), numpy_window(numbered(sizes), window))
    forwards = window._replace(strides=tuple(map(abs, window.strides)))
    counts = forwards.output_sizes
    taken = dialects.directml_slice(sizes, forwards.offsets, counts, forwards.strides)
    check_same(selected(taken), numpy_window(numbered(sizes), forwards))


@given(onnx_slices())
def test_a_window_selects_the_elements_of_its_selection(case: tuple[tuple[int, ...], dict[str, Any]]) -> None:
    sizes, inputs = case
    selection = dialects.onnx_slice(sizes, **inputs)
    if not sizes or 0 in selection.shape:
        with pytest.raises(wg.WindowError, match=r"the selection is empty in|the rank must be 1 to 8"):
            _ = selection.window
        return
    window = selection.window
    again = dialects.directml_slice1(sizes, window.offsets, window.sizes, window.strides)
    assert again.shape == selection.shape
    check_same(selected(again), selected(selection))


def test_a_window_keeps_dropped_dimensions_and_no_new_ones() -> None:
    window = dialects.numpy_index((4, 5), (None, 3, slice(None, None, -2))).window
    assert (window.offsets, window.sizes, window.strides) == ((3, 0), (1, 5), (1, -2))


@pytest.mark.parametrize("step", [2**31, 2**40, I64_MAX, -(2**31) - 1, I64_MIN])
def test_a_step_beyond_an_i32_selects_one_element_or_none(step: int) -> None:
    window = ONNX((10,), [3], [I64_MAX if step > 0 else I64_MIN], steps=[step]).window
    assert (window.offsets, window.sizes, window.strides) == ((3,), (1,), (1,))
    far = ONNX((2**32 - 1,), [0], [I64_MAX], steps=[2**31])
    assert far.shape == (2,)
    with pytest.raises(wg.WindowError, match=r"strides\[0\] = 2147483648: must be an integer from"):
        _ = far.window


@pytest.mark.parametrize(
    ("convert", "arguments", "kind", "words"),
    [
        (ONNX, ([0, 0, 0], [1, 1, 1]), ValueError, r"onnx_slice: axis 2 is out of bounds for .* dimension 2"),
        (ONNX, ([0], [1], [2]), np.exceptions.AxisError, "onnx_slice: axis 2 is out of bounds"),
        (ONNX, ([0], [1], [-3]), np.exceptions.AxisError, "onnx_slice: axis -3 is out of bounds"),
        (ONNX, ([0, 0], [1, 1], [1, -1]), ValueError, r"onnx_slice: axes = .*: an axis is repeated"),
        (ONNX, ([0], [1], [0], [0]), ValueError, r"onnx_slice: steps\[0\] = 0: must not be 0"),
        (ONNX, ([0], [1, 2]), ValueError, "onnx_slice: 2 ends for 1 starts: one of each is needed"),
        (ONNX, ([0], [1], [0, 1]), ValueError, "onnx_slice: 2 axes and 1 starts"),
        (ONNX, ([0], [1], None, [1, 1]), ValueError, "onnx_slice: 2 steps for 1 starts"),
        (
            ONNX,
            ([2**63], [1]),
            ValueError,
            rf"starts\[0\] = {2**63}: must be an integer from {I64_MIN} to {I64_MAX}",
        ),
        (ONNX, ([0], [I64_MIN - 1]), ValueError, r"ends\[0\] = -9223372036854775809: must be an int"),
        (ONNX, ([0], [1], None, [2**63]), ValueError, r"steps\[0\] = 9223372036854775808: must be an int"),
        (ONNX, ([0.5], [1]), TypeError, r"onnx_slice: starts\[0\] = 0.5: must be an integer, not float"),
        (TF, ([0], [1], [0]), ValueError, r"tensorflow_strided_slice: strides\[0\] = 0: must not be 0"),
        (TF, ([0], [1, 1]), ValueError, "tensorflow_strided_slice: 2 end for 1 begin"),
        (TF, ([0] * 3, [1] * 3), IndexError, "too many indices for array: array is 2-dimensional"),
        (TF, ([2**63], [1]), ValueError, r"begin\[0\] = 9223372036854775808: must be an integer from -9"),
        (
            WEBNN,
            ([0, 0], [3, 5]),
            wg.WindowError,
            r"starts\[1\] \+ sizes\[1\] = 0 \+ 5 = 5: must be at most .* 4",
        ),
        (
            WEBNN,
            ([-1, 0], [1, 1]),
            wg.WindowError,
            r"starts\[0\] = -1: must be an integer from 0 to 4294967295",
        ),
        (WEBNN, ([0, 0], [1, 0]), wg.WindowError, r"sizes\[1\] = 0: must be an integer from 1 to"),
        (
            WEBNN,
            ([0, 0], [1, 1], [1, -1]),
            wg.WindowError,
            r"strides\[1\] = -1: must be an integer from 1 to",
        ),
        (WEBNN, ([0, 0], [1, 1], [1, 2**32]), wg.WindowError, r"strides\[1\] = 4294967296: must be an int"),
        (WEBNN, ([0], [1]), wg.WindowError, "webnn_slice: 1 starts, 1 sizes and 1 strides for .* rank 2"),
        (REVERSE, ([-1],), ValueError, r"webnn_reverse: axes\[0\] = -1: must be at least 0"),
        (PAD, ([1], [1, 1]), ValueError, "webnn_pad: beginning_padding has 1 numbers for an input of rank 2"),
        (
            PAD,
            ([1, 1], [-1, 1]),
            ValueError,
            r"webnn_pad: ending_padding\[0\] = -1: must be an integer from 0",
        ),
        (PAD, ([0, 0], [0, 4], "reflection"), ValueError, r"ending_padding\[1\] = 4 .* less than .* size 4"),
        (PAD, ([0, 0], [0, 0], "symmetric"), ValueError, "webnn_pad: mode = 'symmetric': must be one of 'co"),
        (GATHER, ([0], 2), ValueError, "webnn_gather: axis = 2: must be at least 0, less than the rank 2"),
        (GATHER, ([0], -1), ValueError, "webnn_gather: axis = -1: must be at least 0"),
        (
            GATHER,
            (np.array([0], np.uint8),),
            TypeError,
            "webnn_gather: indices have dtype uint8: must be int32, uint32",
        ),
        (GATHER, ([0.5],), TypeError, "webnn_gather: indices have dtype float64"),
        (GATHER, ([0, -4],), IndexError, "index -4 is out of bounds for axis 0 with size 3"),
        (REVERSE, ([2],), ValueError, r"webnn_reverse: axes\[0\] = 2: must be .* less than the rank 2"),
        (REVERSE, ([1, 1],), ValueError, r"webnn_reverse: axes = \(1, 1\): an axis is repeated"),
        (DML1, ([0, 2], [3, 3]), wg.WindowError, r"directml_slice1: offsets\[1\] \+ sizes\[1\] = 2 \+ 3 = 5"),
        (DML1, ([0, 0], [3, 4], [1, 2**31]), wg.WindowError, r"strides\[1\] = 2147483648: must be an int"),
        (DML1, ([0, 0], [3, 4], [1, 2], [3, 3]), wg.WindowError, r"output sizes\[1\] = 3: must be 1 to 2"),
        (
            DML,
            ([0, 1], [3, 2], [1, 3]),
            wg.WindowError,
            r"directml_slice: .* = 1 \+ 1 \* 3 = 4: must be less",
        ),
        (DML, ([0, 0], [3, 2], [1, -1]), wg.WindowError, r"strides\[1\] = -1: must be an integer from 1 to"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(
    convert: Callable[..., Any], arguments: tuple[Any, ...], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        convert((3, 4), *arguments)


@pytest.mark.parametrize(
    ("masks", "kind", "words"),
    [
        ({"ellipsis_mask": 5}, ValueError, "ellipsis_mask = 5: must have at most one bit set"),
        ({"shrink_axis_mask": 2}, ValueError, r"strides\[1\] = -1: must be positive where an axis is shrunk"),
        ({"shrink_axis_mask": 1}, IndexError, "index 7 is out of bounds for axis 0 with size 3"),
        ({"new_axis_mask": 2**31}, ValueError, "new_axis_mask = 2147483648: must be an integer from"),
        ({"begin_mask": 0.5}, TypeError, "begin_mask = 0.5: must be an integer"),
    ],
)
def test_masks_that_break_a_rule_are_refused_by_name(
    masks: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        dialects.tensorflow_strided_slice((3, 4), [7, 0], [0, 4], [1, -1], **masks)


def test_a_shrunk_axis_needs_a_positive_stride() -> None:
    with pytest.raises(ValueError, match=r"strides\[0\] = 0: must be positive where an axis is shrunk"):
        dialects.tensorflow_strided_slice((3,), [1], [2], [0], shrink_axis_mask=1)


def test_a_selection_is_an_index(device: wg.Device) -> None:
    array = numbered((3, 4)).astype(np.int16)
    x = wg.asarray(array, device=device)
    check_same(x[dialects.onnx_slice(x.shape, [-1], [I64_MIN], [1], [-2])].numpy(), array[:, ::-2])
    x[dialects.webnn_slice(x.shape, [1, 0], [2, 4], [1, 3])] = 99
    array[1:, ::3] = 99
    check_same(x.numpy(), array)
    for items, words in (
        ((range(3), 4), "index 4 is out of bounds for axis 1 with size 4"),
        ((range(-1, 2), 0), "index -1 is out of bounds for axis 0 with size 3"),
        ((0,), "a selection of 1 dimensions in a tensor of 2"),
    ):
        with pytest.raises(IndexError, match=words):
            _ = x[dialects.Selection((3, 4), items)]
    with pytest.raises(IndexError, match=r"a selection of sizes \(3, 5\) in a tensor of sizes \(3, 4\)"):
        _ = x[dialects.webnn_reverse((3, 5))]


def test_a_selections_items_are_checked_when_it_is_made(device: wg.Device) -> None:
    for item, kind in (
        ("a", "str"),
        (1.0, "float"),
        (slice(None), "slice"),
        (True, "bool"),
        (Ellipsis, "ellipsis"),
    ):
        with pytest.raises(
            TypeError, match=rf"items\[0\] = .*: must be an int, a range or None, not {kind}$"
        ):
            dialects.Selection((3, 4), (cast("Any", item), 1))
    with pytest.raises(TypeError, match=r"sizes = 7: must be a sequence of integers"):
        dialects.Selection(cast("Any", 7), (1,))
    given = dialects.Selection(cast("Any", [np.int64(3), 4]), cast("Any", [np.int64(1), None, range(1, 3)]))
    assert given == dialects.Selection((3, 4), (1, None, range(1, 3)))
    array = numbered((3, 4))
    check_same(wg.asarray(array, device=device)[given].numpy(), array[1, None, 1:3])


def test_selections_beyond_what_len_counts() -> None:
    """Python's `len` raises OverflowError from 2**63 on."""
    endless = dialects.Selection((2**70,), (range(0, 2**70, 2),))
    assert endless.shape == (2**69,)
    with pytest.raises(ValueError, match=r"sizes\[0\] = \d+: must be"):
        _ = endless.window
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        dialects.Selection((3,), (range(2**70),)).check((3,))
    for size in (2**32, 2**63, 2**64, -1):
        with pytest.raises(ValueError, match=rf"input_sizes\[1\] = {size}: must be an integer from"):
            dialects.numpy_index((3, size), np.s_[:])
