"""The ONNX backend: graphs against ONNX's reference implementation, and what they cost."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from helpers import check_same, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_graphs import Growing, graphs, node, parsed
from running import noted

import wgslice as wg
from wgslice import onnx as backend
from wgslice.gpu.sink import RUNNING
from wgslice.layout_rules import padded
from wgslice.tensors import placed

I64_MIN, I64_MAX = -(2**63), 2**63 - 1


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[int | str | None]]],
    outputs: dict[str, int],
    constants: dict[str, Any] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    """A model of nodes that a test computes.

    Inputs have an element type and sizes, outputs a rank; constants that are no arrays are int64.
    """
    kind = next(iter(inputs.values()))[0]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "graph",
            [helper.make_tensor_value_info(name, *declared) for name, declared in inputs.items()],
            [helper.make_tensor_value_info(name, kind, [None] * rank) for name, rank in outputs.items()],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=9,
    )


def slice_model(opset: int, sizes: Sequence[int], **parameters: Any) -> onnx.ModelProto:
    """One Slice of a float32 tensor, in the notation of its opset."""
    if opset == 1:
        given_parameters = {name: value for name, value in parameters.items() if value is not None}
        node = helper.make_node("Slice", ["x"], ["y"], **given_parameters)
        return model_of([node], {"x": (1, sizes)}, {"y": len(sizes)}, opset=opset)
    names = [name if parameters.get(name) is not None else "" for name in ("starts", "ends", "axes", "steps")]
    node = helper.make_node("Slice", ["x", *names], ["y"])
    return model_of(
        [node],
        {"x": (1, sizes)},
        {"y": len(sizes)},
        {name: parameters[name] for name in names if name},
        opset,
    )


WRONG_ELSEWHERE = [
    # Slice, and what ONNX Runtime's WebGPU provider 1.27 gives: microsoft/onnxruntime issue 24744, pull 25160
    ((5, 1, -1), [5, 4, 3, 2]),  # 9 8 7 6
    ((7, 2, -2), [7, 5, 3]),  # 9 7 5
    ((8, I64_MIN, -3), [8, 5, 2]),  # 9 6 3
    ((0, -11, -1), [0]),  # 9
    # microsoft/onnxruntime issue 11107: an end of INT_MAX with a negative step; 9368: a step that overflows
    ((9, I64_MAX, -1), []),
    ((2, I64_MAX, I64_MAX), [2]),
    ((-1, I64_MIN, I64_MIN), [9]),
    # iree-org/iree issue 24584: negative steps off by one
    ((9, 0, -3), [9, 6, 3]),
    ((9, I64_MIN, -4), [9, 5, 1]),
]


@pytest.mark.parametrize("opset", [10, 11, 13])
@pytest.mark.parametrize(("bounds", "expected"), WRONG_ELSEWHERE, ids=str)
def test_slices_that_others_get_wrong(
    device: wg.Device, bounds: tuple[int, int, int], expected: list[int], opset: int
) -> None:
    x = np.arange(10, dtype=np.float32)
    start, end, step = bounds
    model = slice_model(opset, (10,), starts=[start], ends=[end], axes=[0], steps=[step])
    (y,) = backend.run_model(model, [x], device)
    check_same(y, np.array(expected, np.float32))


DTYPES = [
    *(np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_type_is_moved_bit_for_bit(device: wg.Device, dtype: Any) -> None:
    """ONNX Runtime's WebGPU provider knows float32, float16 with a feature, and few integers."""
    element = np.dtype(dtype)
    x = random_bytes(6 * 7 * element.itemsize, seed=element.itemsize).view(element).reshape(6, 7)
    if dtype in (np.bool_, ml_dtypes.int4, ml_dtypes.uint4):
        x = (random_bytes(42).reshape(6, 7) % 2).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(element)
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["cut"]),
        helper.make_node("Transpose", ["cut"], ["y"]),
    ]
    constants = {"starts": [5], "ends": [I64_MIN], "axes": [-2], "steps": [-2]}
    (y,) = backend.run_model(model_of(nodes, {"x": (kind, (6, 7))}, {"y": 2}, constants, 25), [x], device)
    check_same(y, x[5::-2].T)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@given(data=st.data(), rank=st.integers(1, 3))
def test_any_pad_is_numpys(device: wg.Device, mode: str, data: st.DataObject, rank: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    x = np.arange(prod(sizes), dtype=np.int16).reshape(sizes) + np.int16(1)
    widths = []
    for size in sizes:
        most = data.draw(st.sampled_from([3, 9, 40]))
        before = data.draw(st.integers(1 - size, most))
        widths.append((before, data.draw(st.integers(1 - size - min(before, 0), most))))
    kept = x[tuple(slice(max(-b, 0), s + min(e, 0)) for s, (b, e) in zip(sizes, widths, strict=True))]
    options: dict[str, Any] = {"constant_values": -7} if mode == "constant" else {}
    options |= {"pad_width": [(max(b, 0), max(e, 0)) for b, e in widths], "mode": mode}
    expected = np.pad(kept, **options)
    node = helper.make_node("Pad", ["x", "pads", "value", "axes"], ["y"], mode=mode)
    order = data.draw(st.permutations(range(rank)))
    pads = [widths[axis][0] for axis in order] + [widths[axis][1] for axis in order]
    axes = [axis - rank * data.draw(st.booleans()) for axis in order]
    inputs = [x, np.array(pads), np.int16(-7), np.array(axes)]
    (y,) = backend.run_node(node, inputs, device, opset_version=19)
    check_same(y, expected)


@given(graph=graphs(), data=st.data())
def test_any_graph_is_that_of_the_reference(device: wg.Device, graph: Growing, data: st.DataObject) -> None:
    """Values that nothing reads are outputs, and some others."""
    given_inputs = {
        name: np.arange(1, prod(graph.sizes[name]) + 1, dtype=np.int32).reshape(graph.sizes[name]) * sign
        for name, sign in (("x", 1), ("y", -1))
    }
    made = [name for node in graph.nodes for name in node.output if name in graph.sizes]
    read = {name for node in graph.nodes for name in node.input}
    outputs = [name for name in made if name not in read or data.draw(st.integers(0, 9)) == 0]
    if not outputs:
        return
    model = model_of(
        graph.nodes,
        {name: (6, graph.sizes[name]) for name in ("x", "y")},
        {name: len(graph.sizes[name]) for name in outputs},
        graph.constants,
        graph.opset,
    )
    expected = ReferenceEvaluator(model).run(None, given_inputs)
    prepared = backend.prepare(model, device)
    for run in (
        prepared.run,
        prepared.run,
        lambda inputs: [y.numpy() for y in prepared.run_on_device(inputs)],
    ):
        for ours, theirs in zip(run(given_inputs), expected, strict=True):
            check_same(ours, np.asarray(theirs, np.int32))
    assert prepared.memory is not None
    assert prepared.memory.submissions <= 1


def chain() -> tuple[onnx.ModelProto, NDArray[np.float32], int]:
    """A graph of 20 operators on an image: patches, turned, padded and joined again."""
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {}
    value = "x"

    def add(operator: str, *parameters: Any, **attributes: Any) -> None:
        nonlocal value
        names = []
        for parameter in parameters:
            names.append(f"c{len(constants)}")
            constants[names[-1]] = np.asarray(parameter, np.int64)
        nodes.append(helper.make_node(operator, [value, *names], [f"v{len(nodes)}"], **attributes))
        value = nodes[-1].output[0]

    for _ in range(3):
        add("Slice", [-1], [I64_MIN], [3], [-1])
        add("Pad", [0, 0, 2, 2, 0, 0, 2, 2], mode="constant")
        add("SpaceToDepth", blocksize=2)
        add("Transpose", perm=[0, 1, 3, 2])
        add("DepthToSpace", blocksize=2, mode="CRD")
        add("Slice", [2, 2], [-2, -2], [2, 3])
    add("Flatten", axis=2)
    add("Reshape", [1, 3, -1, 64])
    assert len(nodes) == 20
    model = model_of(nodes, {"x": (1, (1, 3, 64, 64))}, {value: 4}, constants)
    return model, np.random.default_rng(5).random((1, 3, 64, 64), np.float32), len(nodes)


def test_a_graph_of_twenty_operators_stays_on_the_device(device: wg.Device) -> None:
    model, x, _ = chain()
    outputs: Any = ReferenceEvaluator(model).run(None, {"x": x})
    expected = np.asarray(outputs[0])
    prepared = backend.prepare(model, device)
    with noted(placed, "download") as readbacks:
        (y,) = prepared.run_on_device([x])
        assert readbacks == []
        check_same(y.numpy(), expected)
        (again,) = prepared.run([x])
    assert len(readbacks) == 2
    check_same(again, expected)
    memory = prepared.memory
    assert memory is not None
    assert memory.submissions == 1
    assert memory.tensors == 11  # the input, three copies in each of three rounds, and the last reshape's
    assert memory.buffers <= 3
    assert memory.peak_nbytes < memory.tensors_nbytes / 3
    assert str(memory).startswith(f"{memory.peak_nbytes:,} bytes in {memory.buffers} buffers, for 11 tensors")


def test_borders_of_many_constants(device: wg.Device) -> None:
    """More of them than a prepared model keeps, each twice, and more of the first one later."""
    model = parsed("(int16[3] x, int64[2] pads, int16 value) => (int16[n] y) { y = Pad(x, pads, value) }", 19)
    prepared = backend.prepare(model, device)
    x = np.array([1, 2, 3], np.int16)
    for number, width in [(number // 2, 4) for number in range(40)] + [(0, 400), (19, 4)]:
        value = np.int16(number - 10)
        (y,) = prepared.run([x, np.array([width, 1]), np.array(value)])
        check_same(y, np.pad(x, (width, 1), constant_values=value))


TURNED = """(float[n, 5] x) => (float[k] y) <int64[1] shape = {-1}>
    { t = Transpose(x) y = Reshape(t, shape) }"""


def test_runs_use_the_same_buffers_until_sizes_change(device: wg.Device) -> None:
    prepared = backend.prepare(parsed(TURNED), device)
    owned = []
    for rows in (4, 4, 9, 4):
        x = np.random.default_rng(rows).random((rows, 5), np.float32)
        check_same(prepared.run([x])[0], x.T.reshape(-1))
        owned.append({id(buffer) for buffer in prepared._kept[RUNNING].owned})
    assert owned[0] == owned[1]
    assert len(owned[2]) == 2
    assert owned[2] == owned[3]
    assert prepared.memory is not None
    assert prepared.memory.peak_nbytes == 2 * 192


def test_a_model_is_captured_without_the_buffers_of_its_runs(device: wg.Device, tmp_path: Path) -> None:
    """A saved program has no elements of an earlier run, and clears nothing: nodes write what is read."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["padded"], mode="reflect"),
        helper.make_node("Slice", ["padded", "last", "end", "one", "back"], ["flipped"]),
        helper.make_node("Pad", ["flipped", "pads"], ["y"], mode="reflect"),
    ]
    parameters = {"pads": [1, 2, 2, 1], "last": [-1], "end": [I64_MIN], "one": [1], "back": [-1]}
    model = model_of(nodes, {"x": (1, ("n", "m"))}, {"y": 2}, parameters)
    prepared = backend.prepare(model, device)
    x = np.random.default_rng(0).random((5, 6), np.float32)
    twice = np.pad(np.pad(x, [(1, 2), (2, 1)], "reflect")[:, ::-1], [(1, 2), (2, 1)], "reflect")
    tensor = wg.asarray(x, device=device)
    for name in ("before", "after"):
        wg.capture(lambda x: prepared.run_on_device([x]), x=tensor).save(tmp_path / name)
        (y,) = wg.load_program(tmp_path / name, device)(x=tensor)
        check_same(y.numpy(), twice)
        check_same(prepared.run([x])[0], twice)
    text, after = ((tmp_path / name / "program.json").read_text() for name in ("before", "after"))
    assert text == after
    assert '"scratch"' in text
    assert '"clear"' not in text


def test_outputs_on_the_device_are_the_callers(device: wg.Device) -> None:
    """Whatever runs later does not change them, and they share no buffer with an input or with each other."""
    model = parsed("""(float[n] x) => (float[n] same, float[m] twice, float[k] cut, float[n] x)
        <int64[1] one = {1}, int64[1] far = {9223372036854775807}>
        { same = Identity(x) twice = Concat<axis = 0>(x, x) cut = Slice(twice, one, far) }""")
    prepared = backend.prepare(model, device)
    first, second = np.arange(8, dtype=np.float32), np.arange(8, 16, dtype=np.float32)
    tensor = wg.asarray(first, device=device)
    kept = prepared.run_on_device([tensor])
    prepared.run_on_device([second])
    prepared.run([second])
    tensor[:] = 99
    twice = np.concatenate([first, first])
    for ours, theirs in zip(kept, (first, twice, twice[1:], first), strict=True):
        check_same(ours.numpy(), theirs)
    assert len({id(y.buffer) for y in (*kept, tensor)}) == 5


def test_a_tensor_is_an_input_without_an_upload(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    prepared = backend.prepare(parsed("(float[4, 3] x) => (float[3, 4] y) { y = Transpose(x) }"), device)
    check_same(prepared.run({"x": x.T})[0], x.numpy())
    assert prepared.memory is not None
    assert prepared.memory.tensors == 0


def test_parameters_may_be_inputs_or_computed(device: wg.Device) -> None:
    """Only values that the graph computes of its own shape are read back."""
    model = parsed("""(float[4, 6] x, int64[1] rows, int64[1] columns, int64[n] more) => (float[k, l, m] z)
        {
            shape = Concat<axis = 0>(rows, columns)
            t = Transpose(x)
            y = Reshape(t, shape)
            z = Expand(y, more)
        }""")
    prepared = backend.prepare(model, device)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for rows, columns, more in ((3, 8, 2), (-1, 12, 3)):
        inputs = [x, np.array([rows]), np.array([columns]), np.array([more, 1, 1])]
        (z,) = prepared.run(inputs)
        check_same(z, np.broadcast_to(x.T.reshape(rows, columns), (more, 24 // columns, columns)))
    assert prepared.memory is not None
    assert prepared.memory.submissions == 2


def test_what_is_read_after_a_submission_keeps_its_buffer(device: wg.Device) -> None:
    """A parameter is read back between an upload and the nodes that read it; their result wants a buffer."""
    model = parsed("""(float[8] x, int64[1] s) => (float[n] y)
        {
            shape = Identity(s)
            v = Reshape(x, shape)
            a, b = Split<num_outputs = 2>(v)
            y = Concat<axis = 0>(b, a)
        }""")
    prepared = backend.prepare(model, device)
    for _ in range(2):
        (y,) = prepared.run([np.arange(8, dtype=np.float32), np.array([8])])
        assert y.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def test_a_tensor_may_take_an_initializers_place(device: wg.Device) -> None:
    model = parsed("""(float[12] x, int64[2] shape) => (float[m, n] y) <int64[2] shape = {2, 6}>
        { y = Reshape(x, shape) }""")
    prepared = backend.prepare(model, device)
    x, shape = np.arange(12, dtype=np.float32), np.array([4, 3])
    for given_shape in (shape, wg.asarray(shape, device=device)):
        check_same(prepared.run([x, given_shape])[0], x.reshape(4, 3))
    check_same(prepared.run([x])[0], x.reshape(2, 6))


def test_only_the_buffers_of_a_run_are_kept(device: wg.Device) -> None:
    model = parsed("""(float[40, 50] x, int64[1] shape) => (float[n] y)
        { t = Transpose(x) y = Reshape(t, shape) }""")
    prepared = backend.prepare(model, device)
    x = np.random.default_rng(1).random((40, 50), np.float32)
    array = weakref.ref(x)
    (y,) = prepared.run_on_device([x, np.array([-1])])
    buffer = weakref.ref(y.buffer)
    with pytest.raises(ValueError, match="cannot reshape"):
        prepared.run([x, np.array([3])])
    del x, y
    gc.collect()
    assert array() is None
    assert buffer() is None


def test_a_small_run_does_not_keep_a_large_ones_buffers(device: wg.Device) -> None:
    prepared = backend.prepare(parsed(TURNED), device)
    for rows in (100_000, 4):
        prepared.run([np.zeros((rows, 5), np.float32)])
    assert prepared.memory is not None
    assert prepared.memory.peak_nbytes == 2 * 80


def test_many_pieces_of_a_border_are_copied_axis_by_axis(device: wg.Device) -> None:
    x = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    for mode in ("wrap", "reflect"):
        pad_node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
        (y,) = backend.run_node(pad_node, [x, np.array([30, 20, 10, 3, 2, 1])], device)
        check_same(y, np.pad(x, [(30, 3), (20, 2), (10, 1)], mode))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_a_border_takes_few_copies_however_wide(device: wg.Device, mode: Any) -> None:
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    given = [x, np.array([3, 20_000, 5, 30_001])]
    text = f'(int16[2, 3] x, int64[4] pads) => (int16[m, n] y) {{ y = Pad<mode = "{mode}">(x, pads) }}'
    prepared = backend.prepare(parsed(text), device)
    check_same(prepared.run(given)[0], np.pad(x, [(3, 5), (20_000, 30_001)], mode))
    for size in (1, 2, 3, 7):
        assert len(padded(mode, size, 10**9, 2**31)) <= 6
    with pytest.raises((ValueError, MemoryError)):
        prepared.run([x, np.array([0, 2**31 - 1, 0, 2**31 - 1])])
    check_same(prepared.run(given)[0], np.pad(x, [(3, 5), (20_000, 30_001)], mode))


def test_nodes_are_run_as_they_are_called(device: wg.Device) -> None:
    """With an input for each name, repeated or not; a Constant takes none; lists are arrays of parameters."""
    x = np.arange(3, dtype=np.float32)
    (y,) = backend.run_node(helper.make_node("Concat", ["x", "x", "x"], ["y"], axis=0), [x, x, x], device)
    check_same(y, np.tile(x, 3))
    (y,) = backend.run_node(helper.make_node("Constant", [], ["y"], value_floats=[1.0, 2.5]), [], device)
    check_same(y, np.array([1.0, 2.5], np.float32))
    (y,) = backend.run_node(helper.make_node("Reshape", ["x", "shape"], ["y"]), [x, [3, 1]], device)
    check_same(y, x.reshape(3, 1))
    (y,) = backend.run_node(
        helper.make_node("Squeeze", ["x", "axes"], ["y"]), [x[None, :, None], None], device
    )
    check_same(y, x)
    none = np.array([], np.int64)
    (y,) = backend.run_node(helper.make_node("Squeeze", ["x", "axes"], ["y"]), [x[None], none], device)
    check_same(y, x[None])


def test_models_that_cannot_run_are_not_compatible() -> None:
    text = model_of([node("Identity")], {"i0": (8, (1,))}, {"o0": 1})
    newer = model_of([node("Identity")], {"i0": (1, (1,))}, {"o0": 1}, opset=99)
    assert not backend.is_compatible(text)
    assert not backend.is_compatible(newer)
    with pytest.raises(ValueError, match=r"opset 99: the installed onnx .* supports 1 to \d+"):
        backend.prepare(newer)


def test_a_destroyed_input_is_refused(device: wg.Device) -> None:
    """Before it reaches a submission, where wgpu would abort the process."""
    model = parsed(
        "(float[2, 3] x) => (float[m, n] y) { twice = Concat<axis = 0>(x, x) y = Transpose(twice) }"
    )
    prepared = backend.prepare(model, device)
    x = wg.zeros((2, 3), np.float32, device=device)
    x.buffer.destroy()
    for run in (prepared.run, prepared.run_on_device):
        with pytest.raises(ValueError, match="Concat node 0: the buffer has been destroyed"):
            run([x])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    check_same(prepared.run([array])[0], np.concatenate([array, array]).T)


def test_one_name_is_one_device(device: wg.Device) -> None:
    name = f"{device.adapter.name} via {device.adapter.backend}".lower()
    with ThreadPoolExecutor(6) as pool:
        devices = list(pool.map(lambda _: backend.prepare(cut_model(), name).device, range(6)))
    assert len(set(map(id, devices))) == 1
    assert backend.supports_device(devices[0])


def test_constants_and_initializers(device: wg.Device) -> None:
    """A Constant node is a constant; an initializer that is an input too may be given another value."""
    table = np.arange(10, dtype=np.float32)
    model = parsed("""(float[10] table, int64[1] starts) => (float[n] y)
        <float[10] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[1] starts = {0}>
        { ends = Constant<value_ints = [2]>() y = Slice(table, starts, ends) }""")
    prepared = backend.prepare(model, device)
    check_same(prepared.run([])[0], table[:2])
    check_same(prepared.run({"starts": np.array([-9])})[0], table[1:2])
    check_same(prepared.run([table + 5, np.array([1])])[0], table[1:2] + 5)
    check_same(prepared.run([])[0], table[:2])


CUT = helper.make_node("Slice", ["x", "starts", "ends"], ["y"], name="cut")


def cut_model(*nodes: onnx.NodeProto, starts: Any = (0,)) -> onnx.ModelProto:
    constants = {"starts": np.array(starts), "ends": np.array([2] * len(starts))}
    return model_of([CUT, *nodes], {"x": (1, ("n", 4, "n"))}, {"y": 3}, constants)


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        (
            [helper.make_node("Relu", ["y"], ["z"])],
            r"operator Relu \(node 1\): not supported; run the model with another backend; supported are Con",
        ),
        (
            [helper.make_node("Add", ["y", "y"], ["z"], name="a0"), helper.make_node("Exp", ["z"], ["w"])],
            r"operators Add \(node 1, 'a0'\), Exp \(node 2\): not",
        ),
        ([helper.make_node("NonZero", ["y"], ["z"])], r"operator NonZero \(node 1\)"),
        ([helper.make_node("Slice", ["y"], ["z"], domain="com.example")], "operator com.example.Slice "),
    ],
)
def test_other_operators_are_refused_by_name(
    device: wg.Device, nodes: list[onnx.NodeProto], names: str
) -> None:
    model = cut_model(*nodes)
    for kind in (NotImplementedError, ValueError, backend.UnsupportedOperatorError):
        with pytest.raises(kind, match=names):
            backend.prepare(model, device)
    assert not backend.is_compatible(model)
    assert backend.is_compatible(cut_model())
    with pytest.raises(backend.UnsupportedOperatorError, match=nodes[0].op_type):
        backend.run_node(nodes[0], [np.zeros(3, np.float32)], device)


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ([], ValueError, "inputs: 0 given: must be 1, x"),
        ({"z": 1}, ValueError, "inputs: 'z' is unknown: the graph's inputs are x"),
        ({}, ValueError, "inputs: 'x' is missing"),
        (7, TypeError, "inputs: of type int: must be a list, a tuple, or a dict from the names x"),
        ([np.zeros((2, 4, 2))], TypeError, "inputs: 'x': has dtype float64: must be float32"),
        ([None], TypeError, "inputs: 'x': of type NoneType: must be an array"),
        (
            [np.zeros((2, 5, 2), np.float32)],
            ValueError,
            r"has sizes \(2, 5, 2\): must be \(n, 4, n\), where n is 2",
        ),
        (
            [np.zeros((2, 4, 3), np.float32)],
            ValueError,
            r"has sizes \(2, 4, 3\): must be \(n, 4, n\), where n is 2",
        ),
        (
            [np.zeros((2, 4), np.float32)],
            ValueError,
            r"has sizes \(2, 4\): must have rank 3, sizes",
        ),
    ],
)
def test_inputs_that_are_not_as_declared_are_refused(
    device: wg.Device, inputs: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        backend.run_model(cut_model(), inputs, device)


def test_a_refused_run_leaves_a_model_that_runs(device: wg.Device) -> None:
    prepared = backend.prepare(cut_model(starts=(0, 0, 0, 0)), device)
    x = np.zeros((2, 4, 2), np.float32)
    with pytest.raises(ValueError, match=r"Slice node 'cut': onnx_slice: axis 3 is out of bounds"):
        prepared.run([x])
    model = parsed("""(float[2] x, int64[1] shape) => (float[n] y)
        { both = Concat<axis = 0>(x, x) y = Reshape(both, shape) }""")
    prepared = backend.prepare(model, device)
    pair = np.arange(2, dtype=np.float32)
    for shape in (4, 3, 4):
        if shape == 3:
            with pytest.raises(ValueError, match="Reshape node 1: reshape: cannot reshape array of size 4"):
                prepared.run([pair, np.array([shape])])
        else:
            check_same(prepared.run([pair, np.array([shape])])[0], np.tile(pair, 2))


@pytest.mark.parametrize(
    ("operator", "parameters", "words"),
    [
        (node("Split", outputs=2), [], r"size 3 of axis 0 does not split into 2 equal parts"),
        (node("Split", 2, 2), [[1, 1]], r"split = \(1, 1\): must be 2 sizes .* that add up to 3"),
        (node("Split", 2, 2), [[4, -1]], r"split = \(4, -1\): must be 2 sizes of at least 0"),
        (node("Reshape", 2), [[0, 0, 0]], r"shape\[2\] = 0: the input of rank 2 has no such dimension"),
        (node("Reshape", 2), [[5, -1]], r"cannot reshape array of size 12 into shape \(5, -1\)"),
        (node("Reshape", 2, allowzero=1), [[0, -1]], "must not hold both 0 and -1 where allowzero is set"),
        (node("Squeeze", 2), [[0]], "axis 0 has size 3: must have size 1"),
        (node("Unsqueeze", 2), [[0, 0]], "axes = .*: an axis is repeated"),
        (node("Flatten", axis=3), [], "axis = 3: must be -2 to 2"),
        (node("Transpose", perm=[0]), [], r"axes = \(0,\): must name each of the 2 dimensions once"),
        (node("Expand", 2), [[2, 4]], "shape mismatch"),
        (node("Pad", 2), [[0, 0, 0]], r"pads = \(0, 0, 0\): must be 4, a begin and an end for each axis"),
        (node("Pad", 2), [[-2, 0, -2, 0]], r"pads \(-2, -2\) of axis 0 leave -1 of its 3 elements"),
        (node("Pad", 2, mode="mirror"), [[0, 1, 0, 1]], "mode = 'mirror': must be 'constant', 'edge'"),
        (node("Pad", 2, mode="edge"), [[-3, 0, 1, 0]], "mode = 'edge': needs an element to repeat"),
        (node("DepthToSpace", blocksize=2), [], "input of rank 2: must have rank 4"),
        (node("Unsqueeze", 2), [list(range(7))], "the result would have rank 9, must be at most 8"),
    ],
)
def test_nodes_that_break_a_rule_are_refused(
    device: wg.Device, operator: onnx.NodeProto, parameters: list[list[int]], words: str
) -> None:
    opset = 13 if operator.op_type == "Split" else 18
    inputs = [np.zeros((3, 4), np.float32), *map(np.array, parameters)]
    with pytest.raises(ValueError, match=rf"run_node: {operator.op_type} node 0: .*{words}"):
        backend.run_node(operator, inputs, device, opset_version=opset)


@pytest.mark.parametrize(
    ("operator", "shape", "words"),
    [
        (node("DepthToSpace", blocksize=2), (1, 6, 2, 2), r"depth 6: must be a multiple .* = 4"),
        (
            node("SpaceToDepth", blocksize=2),
            (1, 3, 2, 5),
            "width 5: must be multiples of blocksize = 2",
        ),
        (node("SpaceToDepth", blocksize=0), (1, 3, 2, 5), "blocksize = 0: must be at least 1"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(
    device: wg.Device, operator: onnx.NodeProto, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        backend.run_node(operator, [np.zeros(shape, np.float32)], device)


def test_parts_to_join_are_checked(device: wg.Device) -> None:
    x = np.zeros((3, 4), np.float32)
    join = node("Concat", 2, axis=1)
    with pytest.raises(
        ValueError, match=r"input 1 has shape \(1, 4\): .*, except along axis 1: dimension 0 is 1, not 3"
    ):
        backend.run_node(join, [x, x[:1]], device)
    with pytest.raises(TypeError, match="input 1 is of type NoneType: must be a tensor"):
        backend.run_node(join, [x, None], device)
    with pytest.raises(TypeError, match="constant_value is 1 of dtype float32: must be one int8"):
        backend.run_node(
            node("Pad", 3), [x.astype(np.int8), np.array([0, 1, 0, 1]), np.float32(300.7)], device
        )
    with pytest.raises(TypeError, match="input 1 has dtype float16: must be float32 as input 0 has"):
        backend.run_node(join, [x, x.astype(np.float16)], device)


def test_devices_are_named_as_adapters_are(device: wg.Device) -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device(device.adapter.backend)
    assert not backend.supports_device("no such adapter")
    x = np.arange(3, dtype=np.float32)
    (y,) = backend.run_node(node("Identity"), [x], device.adapter.backend)
    check_same(y, x)
    prepared = backend.prepare(cut_model(), device.adapter.backend)
    assert prepared.device.adapter.backend == device.adapter.backend
    assert backend.prepare(cut_model(), device.adapter.backend).device is prepared.device
    with pytest.raises(wg.NoAdapterError, match="no such adapter"):
        backend.prepare(cut_model(), "no such adapter")
    other = wg.Device.request(device.adapter)
    with pytest.raises(
        ValueError, match=r"inputs: 'i0': is on another device than the model, .*: prepare\(model, x.device\)"
    ):
        backend.run_node(node("Identity"), [wg.asarray(x, device=other)], device)
    with pytest.raises(TypeError, match=r"prepare\(\) got an unexpected keyword argument 'speed'"):
        backend.prepare(cut_model(), device, speed=11)


@pytest.mark.parametrize("undeclared", ["shape", "type"])
def test_outputs_without_a_declared_shape_run(device: wg.Device, undeclared: str) -> None:
    nodes = [helper.make_node("Transpose", ["i0"], ["o0"]), helper.make_node("Identity", ["o0"], ["o1"])]
    model = model_of(nodes, {"i0": (1, (2, 3))}, {"o0": 2, "o1": 2})
    output = model.graph.output[1]
    (output.type.tensor_type if undeclared == "shape" else output).ClearField(undeclared)
    before = model.SerializeToString(deterministic=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert backend.is_compatible(model)
    for found in backend.run_model(model, [x], device):
        check_same(found, np.ascontiguousarray(x.T))
    assert model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("declared", [True, False])
def test_weights_are_checked_one_by_one(device: wg.Device, declared: bool) -> None:
    """ONNX's checker copies all that it is given, which for a model would be all weights at once."""
    weights = {name: np.arange(1000, dtype=np.float32) for name in ("w0", "w1")}
    nodes = [helper.make_node("Concat", ["x", *weights], ["y"], axis=0)]
    model = model_of(nodes, {"x": (1, (2,))}, {"y": 1}, weights)
    if not declared:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.arange(2, dtype=np.float32)
    with noted(onnx.checker, "check_model", onnx.ModelProto.ByteSize) as nbytes:
        check_same(backend.run_model(model, [x], device)[0], np.concatenate([x, *weights.values()]))
    assert max(nbytes) < 1000
    model.graph.initializer[1].raw_data = b""
    with pytest.raises(onnx.checker.ValidationError, match="w1"):
        backend.prepare(model, device)
    assert not backend.is_compatible(model)


def test_models_come_from_files_and_inputs_as_they_are(device: wg.Device, tmp_path: Path) -> None:
    """As ONNX Runtime's backend takes them too."""
    model = parsed('(float[n] x, int64[2] pads) => (float[m] y) { y = Pad<mode = "wrap">(x, pads) }', 19)
    path = tmp_path / "pad.onnx"
    onnx.save(model, path)
    x, pads = np.arange(3, dtype=np.float32), np.array([2, 1])
    expected = np.pad(x, (2, 1), mode="wrap")
    for given_model in (model, path, str(path), path.read_bytes()):
        prepared = backend.prepare(given_model, device)
        assert backend.is_compatible(given_model)
        for inputs in (
            [x, pads],
            [x, [2, 1]],
            {"pads": pads, "x": x},
            [[0, 1, 2], wg.asarray(pads, device=device)],
        ):
            check_same(prepared.run(inputs)[0], expected)
    assert repr(prepared).startswith("PreparedModel(inputs=('x', 'pads'), outputs=('y',), device=Device(")
    assert (prepared.input_names, prepared.output_names) == (("x", "pads"), ("y",))
    number: Any = 5
    with pytest.raises(
        TypeError, match=r"prepare: model is of type int: must be an onnx\.ModelProto, a path or"
    ):
        backend.prepare(number, device)
    flip = parsed("(float[2, 3] x) => (float[3, 2] y) { y = Transpose(x) }")
    image = np.arange(6, dtype=np.float32).reshape(2, 3)
    for alone in (image, wg.asarray(image, device=device)):
        check_same(backend.run_model(flip, alone, device.wgpu_device)[0], image.T)


def test_an_output_in_a_tensor_uses_no_more_than_its_bytes(device: wg.Device) -> None:
    model = parsed("""(float[100] x) => (float[n] y) <int64[1] zero = {0}, int64[1] two = {2}>
        { both = Concat<axis = 0>(x, x) y = Slice(both, zero, two) }""")
    (y,) = backend.prepare(model, device).run_on_device([np.arange(100, dtype=np.float32)])
    check_same(y.numpy(), np.arange(2, dtype=np.float32))
    assert y.buffer.size == 16


def test_text_is_refused(device: wg.Device) -> None:
    with pytest.raises(TypeError, match="prepare: input 'x': holds strings, which a GPU cannot store"):
        backend.prepare(model_of([node("Identity")], {"x": (8, (1,)), "i0": (1, (1,))}, {"o0": 1}), device)
    text = helper.make_node(
        "Constant", [], ["o0"], "words", value=numpy_helper.from_array(np.array(["a"], object))
    )
    with pytest.raises(
        TypeError, match="prepare: Constant node 'words': holds strings, which a GPU cannot store"
    ):
        backend.prepare(model_of([text], {"i0": (1, (1,))}, {"o0": 1}), device)
    with pytest.raises(TypeError, match="must be numbers or bools, not Python objects"):
        backend.run_node(node("Identity"), [np.array(["a"], object)], device)


def initialized(**fields: Any) -> onnx.ModelProto:
    """A model whose initializer has some fields."""
    model = model_of([node("Identity")], {"i0": (1, (1,))}, {"o0": 1})
    model.graph.initializer.append(onnx.TensorProto(name="i0", **fields))
    return model


IDENTITY = model_of([node("Identity")], {"i0": (1, (1,))}, {"o0": 1})
IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "bytes": (b"garbage", "model: 7 bytes: not a valid ONNX model"),
    "cut bytes": (IDENTITY.SerializeToString()[:-7], "bytes: not a valid ONNX model"),
    "nothing": (b"", "ir_version"),
    "None": (None, "model is of type NoneType: must be an onnx.ModelProto, a path or bytes"),
    "an element type": (
        model_of([node("Identity")], {"i0": (999, (1,))}, {"o0": 1}),
        r"input 'i0': has elements of type 999: the installed onnx .* has no such type",
    ),
    "an initializer's type": (initialized(data_type=999, dims=[1], raw_data=b"1234"), "999"),
    "text": (
        initialized(data_type=8, dims=[1], string_data=[b"a"]),
        "initializer 'i0': holds strings, which a GPU cannot store",
    ),
    "too few bytes": (initialized(data_type=1, dims=[3], raw_data=b"1234"), "i0|size|reshape"),
    "a size": (initialized(data_type=1, dims=[-3], raw_data=b"1234"), "i0|negative"),
    "external data": (
        initialized(
            data_type=1,
            dims=[1],
            data_location=1,
            external_data=[onnx.StringStringEntryProto(key="location", value="none.bin")],
        ),
        "none.bin|external",
    ),
    "an operator before its opset": (
        model_of([node("Expand", 2)], {"i0": (1, (1,)), "i1": (7, (1,))}, {"o0": 1}, opset=5),
        "Expand",
    ),
    "opset 0": (model_of([node("Identity")], {"i0": (1, (1,))}, {"o0": 1}, opset=0), "0"),
    "an attribute": (model_of([node("Identity", speed=11)], {"i0": (1, (1,))}, {"o0": 1}), "speed"),
    "a name": (model_of([node("Identity")], {"x": (1, (1,))}, {"o0": 1}), "i0"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_models_not_compatible_are_explained_by_prepare(device: wg.Device, tmp_path: Path, what: str) -> None:
    model, words = IMPOSSIBLE[what]
    assert not backend.is_compatible(model)
    with pytest.raises((TypeError, ValueError, onnx.checker.ValidationError), match=words):
        backend.prepare(model, device)
    if isinstance(model, bytes) and model:
        path = tmp_path / "model.onnx"
        path.write_bytes(model)
        assert not backend.is_compatible(path)
        with pytest.raises(ValueError, match=r"model: '.*model.onnx': not a valid ONNX model"):
            backend.prepare(path, device)


def test_a_model_that_is_not_there() -> None:
    for call in (backend.is_compatible, backend.prepare):
        with pytest.raises(FileNotFoundError):
            call("nothing-here.onnx")


def test_nodes_given_no_tensors(device: wg.Device) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)
    for name in ("Transpose", "Flatten", "Squeeze", "Split", "Identity", "Concat"):
        options = {"Split": {"num_outputs": 1}, "Concat": {"axis": 0}}.get(name, {})
        for nested in (deep, endless, [[1, 2]]):
            with pytest.raises(
                TypeError, match="inputs: 'i0': item 0 is of type list: must be an array or a T"
            ):
                backend.run_node(node(name, **options), [nested], device)
        if name != "Identity":
            for given, kind in ((None, "NoneType"), ([1, 2], "list")):
                with pytest.raises(TypeError, match=f"input 0 is of type {kind}: must be a tensor"):
                    backend.run_node(node(name, **options), [given], device)
    no_node: Any = None
    with pytest.raises(TypeError, match=r"run_node: node is of type NoneType: must be an onnx\.NodeProto"):
        backend.run_node(no_node, [1], device)
    with pytest.raises(TypeError, match="opset_version = 'newest': must be an integer"):
        backend.run_node(node("Identity"), [np.zeros(1)], device, opset_version="newest")
