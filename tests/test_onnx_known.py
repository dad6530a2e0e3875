"""Values of an ONNX graph that the host knows: shapes, constants, values of them; free batch sizes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from helpers import ROOT, check_same
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_graphs import parsed
from running import noted

import wgslice as wg
from wgslice import onnx as backend
from wgslice.onnx import graph
from wgslice.onnx.graph import COMPUTING, HOST_ONLY, Origin, origin_of
from wgslice.onnx.rules import RULES
from wgslice.plans.profiles import MAX_HOST_NBYTES
from wgslice.tensors import placed

I64_MIN = -(2**63)


def expected_of(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    outputs: Any = ReferenceEvaluator(model).run(None, inputs)
    return [np.asarray(output) for output in outputs]


def image(*sizes: int) -> Any:
    return np.arange(1, np.prod(sizes) + 1, dtype=np.float32).reshape(sizes)


# As exporters write `x.reshape(n, c * h, w).flip(2)[:, : c * h // 2]`, `x[..., :1].expand(-1, -1, -1, 5)`,
# `x[:, :, arange(h - 1, -1, -1)]` and `x[:, -1]`.
EXPORTED = """(float[n, 3, h, w] x) =>
    (float[n, a, w] half, float[n, 3, h, k] column, float[n, 3, h, w] turned, float[n, h, w] last)
<int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {3}, int64 back = {-1}, int64[1] a0 = {0},
 int64[1] a1 = {1}, int64[1] a2 = {2}, int64[1] a3 = {3}, int64[1] from = {-1},
 int64[1] least = {-9223372036854775808}, int64[4] wanted = {-1, -1, -1, 5}>
{
    shape = Shape(x)
    n = Gather(shape, i0)
    c = Gather(shape, i1)
    h = Gather(shape, i2)
    w = Gather(shape, i3)
    rows = Mul(c, h)
    n1 = Unsqueeze(n, a0)
    rows1 = Unsqueeze(rows, a0)
    w1 = Unsqueeze(w, a0)
    sizes = Concat<axis = 0>(n1, rows1, w1)
    flat = Reshape(x, sizes)
    flipped = Slice(flat, from, least, a2, from)
    middle = Div(rows, i2)
    as_float = Cast<to = 1>(middle)
    as_integer = Cast<to = 7>(as_float)
    middle1 = Unsqueeze(as_integer, a0)
    half = Slice(flipped, a0, middle1, a1)
    rank = Shape(wanted)
    ones = ConstantOfShape<value = int64[1] {1}>(rank)
    minus = Mul(ones, back)
    free = Equal(wanted, minus)
    expanded = Where(free, ones, wanted)
    first = Slice(x, a0, a1, a3)
    column = Expand(first, expanded)
    highest = Sub(h, i1)
    order = Range(highest, back, back)
    turned = Gather<axis = 2>(x, order)
    last = Gather<axis = 1>(x, back)
}"""


def test_a_model_with_a_free_batch_size_runs_at_any(device: wg.Device) -> None:
    """One submission, and nothing is read back: all sizes are known before it."""
    model = parsed(EXPORTED)
    prepared = backend.prepare(model, device)
    kept = {}
    with noted(placed, "download") as readbacks:
        for batch in (1, 7, 1):
            x = image(batch, 3, 4, 6)
            kept[batch] = x, prepared.run_on_device([wg.asarray(x, device=device)])
            assert prepared.memory is not None
            assert prepared.memory.submissions == 1
    assert readbacks == []
    for x, outputs in kept.values():
        for ours, theirs in zip(outputs, expected_of(model, {"x": x}), strict=True):
            check_same(ours.numpy(), theirs)
        flat = x.reshape(len(x), 12, 6)[:, :, ::-1]
        check_same(outputs[0].numpy(), flat[:, :6])
        check_same(outputs[1].numpy(), np.broadcast_to(x[..., :1], (len(x), 3, 4, 5)))
        check_same(outputs[2].numpy(), x[:, :, ::-1])
        check_same(outputs[3].numpy(), x[:, -1])
    check_same(prepared.run([image(7, 3, 2, 5)])[3], image(7, 3, 2, 5)[:, -1])


@pytest.mark.torch
def test_what_pytorch_exports_with_a_free_batch_size(device: wg.Device) -> None:
    import torch

    class Moving(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def forward(self, x: Any) -> Any:
            n, c, h, w = x.shape
            flat = x.reshape(n, c * h, w).flip(2)
            order = torch.arange(h - 1, -1, -1)
            zeros = x.new_zeros(n, 1, h, w).expand(n, c, h, w)
            return (
                x[:, :, : h // 2, 1:],
                flat.transpose(1, 2)[:, -1],
                torch.cat([x, zeros], 1),
                flat.expand(2, -1, -1, -1),
                x[:, :, order],
                torch.roll(x, 1, 3),
                torch.nn.functional.pad(x, (1, 2)),
                x.unfold(2, 2, 2),
            )

    exported = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of this exporter, which needs no other package
        torch.onnx.export(
            Moving(),
            torch.zeros(2, 3, 4, 6),
            exported,
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
            opset_version=17,
            do_constant_folding=False,
        )
    prepared = backend.prepare(exported.getvalue(), device)
    for batch in (1, 7):
        x = image(batch, 3, 4, 6)
        for ours, theirs in zip(prepared.run([x]), Moving()(torch.from_numpy(x)), strict=True):
            check_same(ours, theirs.numpy())
        assert prepared.memory is not None
        assert prepared.memory.submissions == 1


def test_shapes_are_outputs_too(device: wg.Device) -> None:
    """They need no GPU, and the arrays are the caller's."""
    model = parsed("""(float[n, 3] x, float y) =>
        (int64[2] shape, int64 size, int64[0] scalar, float[n] fours)
        <int64[1] i0 = {0}>
        {
            shape = Shape(x)
            size = Size(x)
            scalar = Shape(y)
            n = Gather(shape, i0)
            fours = ConstantOfShape<value = float[1] {4}>(n)
        }""")
    prepared = backend.prepare(model, device)
    x, y = image(5, 3), np.float32(2)
    expected = [np.array([5, 3]), np.array(15), np.array([], np.int64), np.full(5, 4, np.float32)]
    for _ in range(2):
        outputs = prepared.run([x, y])
        for ours, theirs in zip(outputs, expected, strict=True):
            check_same(ours, theirs)
            ours[...] = 99  # which no later run sees
    assert prepared.memory is not None
    assert (prepared.memory.submissions, prepared.memory.tensors) == (0, 0)
    for tensor, theirs in zip(
        prepared.run_on_device([wg.asarray(x, device=device), y]), expected, strict=True
    ):
        check_same(tensor.numpy(), theirs)


INPUTS = """(float[n, m] x, int64 rows, int64[1] columns) => (float[k, l] y)
    <int64 one = {1}, int64[1] a0 = {0}>
    {
        sum = Add(rows, one)
        sum1 = Unsqueeze(sum, a0)
        both = Concat<axis = 0>(sum1, columns)
        sizes = Mul(both, one)
        y = Reshape(x, sizes)
    }"""


def test_integers_that_callers_give_are_computed_with(device: wg.Device) -> None:
    """As arrays they are on the host, as tensors they are read back, as any parameter."""
    prepared = backend.prepare(parsed(INPUTS), device)
    x = image(4, 6)
    for rows, columns in ((2, 8), (5, 4)):
        arrays = [np.array(rows), np.array([columns])]
        for inputs in ([x, *arrays], [x, *(wg.asarray(array, device=device) for array in arrays)]):
            check_same(prepared.run(inputs)[0], x.reshape(rows + 1, columns))


def test_an_initializer_that_is_an_input_too_may_be_given(device: wg.Device) -> None:
    model = parsed("""(float[n, m] x, int64 axis) => (float[k] y)
        <int64 axis = {0}, int64[1] a0 = {0}>
        {
            shape = Shape(x)
            size = Gather(shape, axis)
            size1 = Unsqueeze(size, a0)
            twice = Add(size1, size1)
            y = Expand(x, twice)
        }""")
    model.graph.node[-1].input[0] = "one"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(1, 7, np.float32), "one"))
    prepared = backend.prepare(model, device)
    x = image(2, 3)
    for inputs, size in (
        ([x], 4),
        ([x, np.array(1)], 6),
        ([x, wg.asarray(np.array(-1), device=device)], 6),
        ([x], 4),
    ):
        check_same(prepared.run(inputs)[0], np.full(size, 7, np.float32))


def test_known_elements_that_are_many_are_moved_on_the_gpu(device: wg.Device) -> None:
    """With the same result on both sides of the limit; what is computed of them is read back."""
    model = parsed("""(int64[n] shape) => (int64[k] y, int64[k] z)
        <int64[1] a0 = {0}, int64[1] back = {-1}, int64[1] least = {-9223372036854775808}, int64 one = {1}>
        {
            n = Squeeze(shape, a0)
            n1 = Add(n, one)
            numbers = Range(one, n1, one)
            turned = Slice(numbers, back, least, a0, back)
            y = Identity(turned)
            z = Add(turned, one)
        }""")
    prepared = backend.prepare(model, device)
    most = (MAX_HOST_NBYTES - 4 * 8) // 8  # besides the parameters of Slice
    for count, on_host in ((most, True), (most + 1, False)):
        turned = np.arange(count, 0, -1)
        y, z = prepared.run([np.array([count])])
        check_same(y, turned)
        check_same(z, turned + 1)
        assert prepared.memory is not None
        assert (prepared.memory.submissions == 0) is on_host
    assert not graph.fits_host("", [np.zeros(1, [("a", "i4")])])
    assert graph.fits_host("Expand", [np.zeros(1, np.int64), np.array([MAX_HOST_NBYTES // 8])])
    assert not graph.fits_host("Tile", [np.zeros(1, np.int64), np.array([MAX_HOST_NBYTES // 8 + 1])])


def test_uniform_tensors_are_one_element_repeated(device: wg.Device) -> None:
    model = parsed("""(float[n, 3] x) => (float[m, 3] y)
        <int64[2] more = {40000, 0}>
        {
            shape = Shape(x)
            sizes = Add(shape, more)
            border = ConstantOfShape<value = float[1] {5}>(sizes)
            y = Concat<axis = 0>(border, x)
        }""")
    prepared = backend.prepare(model, device)
    x = image(2, 3)
    check_same(prepared.run([x])[0], np.concatenate([np.full((40002, 3), 5, np.float32), x]))
    assert prepared.memory is not None
    assert prepared.memory.tensors == 3  # the element, the input and the output
    filled = helper.make_node("ConstantOfShape", ["shape"], ["y"])
    for sizes in ([3, 1 << 16], [], [0, 4]):
        (y,) = backend.run_node(filled, [np.array(sizes, np.int64)], device)
        check_same(y, np.zeros(sizes, np.float32))


COMPUTED = {
    "tensors": (
        "(float[n, 4] x) => (float[n, 4] y) { y = Add(x, x) }",
        r"operator Add \(node 0\): not supported; Add node 0 reads 'x', whose elements are on the GPU; "
        "run .*; supported are Concat, .*; and on shapes, constants, and integer inputs of rank 0 or 1, "
        "which are known on the host: Abs, Add, ",
    ),
    "integers of rank 2": (
        "(int64[n, 4] x) => (int64[n, 4] y) <int64 one = {1}> { y = Mul(one, x) }",
        r"operator Mul \(node 0\): not supported; Mul node 0 reads 'x', whose elements are on the GPU",
    ),
    "floats of rank 1": (
        "(float[n] x) => (int64[n] y) { y = Cast<to = 7>(x) }",
        r"operator Cast \(node 0\): not supported; Cast node 0 reads 'x'",
    ),
    "what is moved from a tensor": (
        """(float[n, 4] x) => (float[n, 4] y)
        <int64 i0 = {0}> { s = Shape(x) t = Transpose(x) n = Gather(s, i0) y = Div(t, t) z = Relu(y) }""",
        r"operators Div \(node 3\), Relu \(node 4\): not supported; Div node 3 reads 't'",
    ),
    "a reduction": (
        """(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y)
        { y = ScatterND<reduction = "mul">(x, i, u) }""",
        r"operator ScatterND with reduction = 'mul' \(node 0\): not supported; run the model with another",
    ),
}


@pytest.mark.parametrize("what", COMPUTED)
def test_what_computes_on_tensors_is_refused_by_name(what: str) -> None:
    """Before an adapter is requested."""
    text, words = COMPUTED[what]
    model = parsed(text)
    assert not backend.is_compatible(model)
    with pytest.raises(backend.UnsupportedOperatorError, match=f"(?s){words}"):
        backend.prepare(model, "no such adapter")


def test_a_node_alone_computes_on_nothing(device: wg.Device) -> None:
    """It does not say what its inputs are; shapes it has."""
    one = np.array([1])
    with pytest.raises(backend.UnsupportedOperatorError, match=r"operator Add \(node 0\): not"):
        backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [one, one], device)
    (size,) = backend.run_node(helper.make_node("Size", ["a"], ["b"]), [image(3, 5)], device)
    check_same(size, np.array(15))
    (numbers,) = backend.run_node(
        helper.make_node("Range", ["a", "b", "c"], ["d"]),
        [np.int32(3), wg.asarray(np.array(-4, np.int32), device=device), np.int32(-3)],
        device,
    )
    check_same(numbers, np.array([3, 0, -3], np.int32))


BROKEN = {
    "a division by zero": (
        "d = Div(n, i0)",
        "Div node 2: on the host, with inputs of shapes .*: divide by zero",
    ),
    "an index": ("d = Gather(s, i7)", "Gather node 2: on the host, .*: index 7 is out of bounds"),
    "shapes that do not fit": ("d = Add(s, three)", "Add node 2: on the host, with inputs of shapes .*"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_on_the_host_is_refused_by_node(device: wg.Device, what: str) -> None:
    text, words = BROKEN[what]
    model = parsed(f"""(float[n, 4] x) => (int64[k] d)
        <int64 i0 = {{0}}, int64 i7 = {{7}}, int64[3] three = {{1, 2, 3}}>
        {{ s = Shape(x) n = Gather(s, i0) {text} }}""")
    prepared = backend.prepare(model, device)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"(?s){words}"):
            prepared.run([image(2, 4)])


def test_the_page_and_the_docstring_name_every_operator() -> None:
    page = (ROOT / "docs" / "integrations" / "onnx.md").read_text("utf-8").replace("\n", " ")
    docstring = " ".join((backend.Backend.__doc__ or "").split())
    assert ", ".join(sorted(COMPUTING)) in page
    operators = sorted(RULES)
    assert f"{', '.join(operators)}, and Constant" in page
    assert f"{', '.join(operators[:-1])} and {operators[-1]} of every opset" in docstring
    for operator in HOST_ONLY - COMPUTING:
        assert operator in page
        assert operator in docstring


def test_origins() -> None:
    tensor, given, shapes, constant = Origin.TENSOR, Origin.INPUT, Origin.SHAPES, Origin.CONSTANT
    cases: list[tuple[str, list[Origin | None], Origin]] = [
        ("Shape", [tensor], shapes),
        ("Range", [tensor, given, constant], shapes),
        ("Transpose", [tensor], tensor),
        ("Reshape", [tensor, shapes], tensor),
        ("Transpose", [constant], constant),
        ("Concat", [constant, shapes], shapes),
        ("Concat", [given, given], given),
        ("Concat", [given, shapes], shapes),
        ("Concat", [shapes, tensor], tensor),
        ("Gather", [constant, given], given),  # an embedding
        ("Gather", [shapes, given], shapes),
        ("Gather", [given, constant], given),
        ("Slice", [given, shapes, shapes], given),
        ("Slice", [shapes, given, given, None], shapes),
        ("Pad", [shapes, constant, None], shapes),
    ]
    cases += [(operator, [given, constant], shapes) for operator in COMPUTING]
    for operator, inputs, expected in cases:
        assert origin_of(operator, inputs) is expected, (operator, inputs)
    for operator in COMPUTING:
        assert origin_of(operator, [shapes, tensor]) is None
