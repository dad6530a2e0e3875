"""ONNX's Gather, GatherElements and ReverseSequence against NumPy, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from helpers import check_same, random_array
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx_graphs import node, parsed
from test_onnx import model_of

import wgslice as wg
from wgslice import onnx as backend

sizes_of = st.lists(st.integers(1, 5), min_size=1, max_size=4)
DTYPES = st.sampled_from([np.uint8, np.float16, np.float32, np.int64, np.complex128])


def viewed(x: Any, data: st.DataObject, device: wg.Device) -> tuple[Any, Any]:
    """An array and an input of the same elements: an array, or a tensor that is not packed."""
    if data.draw(st.booleans()):
        return x, x
    axes = data.draw(st.permutations(range(x.ndim)))
    turned = wg.permute(wg.asarray(x, device=device), axes)
    flipped = turned[::-1]
    return np.transpose(x, axes)[::-1], flipped


@given(data=st.data(), sizes=sizes_of, dtype=DTYPES)
def test_any_gather_is_numpys(device: wg.Device, data: st.DataObject, sizes: list[int], dtype: Any) -> None:
    x, given_x = viewed(random_array(sizes, dtype), data, device)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
    count = int(np.prod(shape))
    index = st.integers(-size, size - 1)
    indices = np.array(data.draw(st.lists(index, min_size=count, max_size=count)), np.int64).reshape(shape)
    indices = indices.astype(data.draw(st.sampled_from([np.int32, np.int64])))
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    given_indices = wg.asarray(indices, device=device) if data.draw(st.booleans()) else indices
    (y,) = backend.run_node(node, [given_x, given_indices], device)
    check_same(y, np.take(x, indices, axis))


@given(data=st.data(), sizes=sizes_of, dtype=DTYPES)
def test_any_gather_of_elements_is_numpys(
    device: wg.Device, data: st.DataObject, sizes: list[int], dtype: Any
) -> None:
    x, given_x = viewed(random_array(sizes, dtype), data, device)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shape = [data.draw(st.integers(0, size)) for size in x.shape]
    shape[axis] = data.draw(st.integers(0, 7))
    seed = data.draw(st.integers(0, 99))
    indices = np.random.default_rng(seed).integers(-x.shape[axis], x.shape[axis], shape)
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    (y,) = backend.run_node(node, [given_x, indices], device)
    whole = list(shape)
    whole[axis] = x.shape[axis]
    part = x[tuple(map(slice, whole))]
    check_same(y, np.take_along_axis(part, indices, axis))


@given(data=st.data(), sizes=st.lists(st.integers(1, 6), min_size=2, max_size=4), dtype=DTYPES)
def test_any_reversed_sequences(device: wg.Device, data: st.DataObject, sizes: list[int], dtype: Any) -> None:
    x, given_x = viewed(random_array(sizes, dtype), data, device)
    batch_axis = data.draw(st.integers(0, 1))
    time = x.shape[1 - batch_axis]
    count = x.shape[batch_axis]
    lengths = data.draw(st.lists(st.integers(0, time), min_size=count, max_size=count))
    options: dict[str, Any] = {"batch_axis": batch_axis, "time_axis": 1 - batch_axis}
    if batch_axis == 1 and data.draw(st.booleans()):
        options = {}
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], **options)
    (y,) = backend.run_node(node, [given_x, np.array(lengths)], device)
    expected = np.moveaxis(x.copy(), batch_axis, 0)
    for sequence, length in zip(expected, lengths, strict=True):
        sequence[:length] = sequence[:length][::-1].copy()
    check_same(y, np.moveaxis(expected, 0, batch_axis))


def gather_model(indices: Any, axis: int = 0) -> onnx.ModelProto:
    """Of a free number of rows and an output that is read without a copy."""
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    return model_of([node], {"x": (1, ("n", 6))}, {"y": 1 + np.ndim(indices)}, {"i": indices})


@pytest.mark.parametrize(
    ("indices", "axis", "tensors"),
    [
        (2, 0, 0),  # rows of the wanted layout are read without a copy
        ([0, 1, 2], 0, 0),
        ([[0, 1], [2, 3]], 0, 0),
        (-1, 1, 1),  # views of other kinds are packed before they are read
        ([4, 2, 0], 0, 1),
        ([3, 3, 3], 0, 1),
        ([0, 1, 3], 0, 1),  # a gather
    ],
)
def test_evenly_spaced_indices_make_a_view(device: wg.Device, indices: Any, axis: int, tensors: int) -> None:
    x = np.arange(42, dtype=np.float32).reshape(7, 6)
    prepared = backend.prepare(gather_model(indices, axis), device)
    check_same(prepared.run([wg.asarray(x, device=device)])[0], np.take(x, indices, axis))
    assert prepared.memory is not None
    assert prepared.memory.tensors == prepared.memory.submissions == tensors


def test_an_embedding_stays_on_the_gpu(device: wg.Device) -> None:
    """A tensor of ids is read back, since negative ones are legal, and others refused."""
    table = np.random.default_rng(1).random((50, 6), np.float32)
    model = parsed("(int64[n] i) => (float[n, 6] y) { y = Gather(x, i) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "x"))
    prepared = backend.prepare(model, device)
    ids = np.array([49, -50, 7, 7, -1])
    for given_ids in (ids, wg.asarray(ids, device=device)):
        (y,) = prepared.run_on_device([given_ids])
        check_same(y.numpy(), table[ids])
        assert prepared.memory is not None
        assert prepared.memory.submissions == 1


@pytest.mark.parametrize(
    ("operator", "indices", "words"),
    [
        (node("Gather", 2), [0, 3], r"index 3: must be -3 to 2, as axis 0 has size 3"),
        (node("Gather", 2, axis=1), [[-5]], r"index -5: must be -4 to 3, as axis 1 has size 4"),
        (node("Gather", 2, axis=2), [0], "axis 2 is out of bounds"),
        (node("Gather", 2), np.zeros((1,) * 8, np.int64), "has rank 9: the rank must be 0 to 8"),
        (
            node("GatherElements", 2),
            [[0, 1, 2, 0, 0]],
            "indices have size 5 in dimension 1: must be at most 4",
        ),
        (node("GatherElements", 2), [0], "indices have rank 1: must have rank 2 as the input has"),
        (node("GatherElements", 2, axis=-1), [[4]], "index 4: must be -4 to 3, as axis 1 has size 4"),
        (
            node("ReverseSequence", 2),
            [1, 2, 3],
            r"sequence_lens = \(1, 2, 3\): must be 4, one a sequence, each 0 to 3",
        ),
        (node("ReverseSequence", 2), [1, 2, 3, 4], "must be 4, one a sequence, each 0 to 3"),
        (node("ReverseSequence", 2), [1, 2, -1, 3], "must be 4, one a sequence, each 0 to 3"),
        (
            node("ReverseSequence", 2, time_axis=1),
            [1],
            "batch_axis = 1 and time_axis = 1 of .*: must be 0 and 1, or",
        ),
    ],
)
def test_indices_that_break_a_rule_are_refused(
    device: wg.Device, operator: onnx.NodeProto, indices: Any, words: str
) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.raises(ValueError, match=f"run_node: {operator.op_type} node 0: .*{words}"):
        backend.run_node(operator, [x, np.array(indices)], device)


def test_indices_are_int32_or_int64(device: wg.Device) -> None:
    x = np.arange(3, dtype=np.float32)
    for indices, kind in ((np.zeros(1, np.float32), "of dtype float32"), (None, "missing")):
        with pytest.raises(TypeError, match=f"Gather node 0: indices are {kind}: must be int32 or int64"):
            backend.run_node(node("Gather", 2), [x, indices], device)
    with pytest.raises(ValueError, match="index 0: must be 0 to -1, as axis 0 has size 0"):
        backend.run_node(node("Gather", 2), [x[:0], np.array([0])], device)
