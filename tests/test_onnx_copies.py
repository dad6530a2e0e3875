"""ONNX's Tile, Trilu and ScatterND against NumPy, and what they cost."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from helpers import check_same, random_array
from hypothesis import given
from hypothesis import strategies as st
from onnx_graphs import node, parsed

import wgslice as wg
from wgslice import onnx as backend

DTYPES = st.sampled_from([np.uint8, np.float16, np.float32, np.int64, np.complex128])


def turned(x: Any, device: wg.Device) -> wg.Tensor:
    """The same elements in a tensor that is not packed."""
    backwards = x.T[(slice(None, None, -1),) * min(x.ndim, 1)]
    return wg.asarray(backwards, device=device)[(slice(None, None, -1),) * min(x.ndim, 1)].T


@given(
    dimensions=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=8),
    dtype=DTYPES,
    on_gpu=st.booleans(),
)
def test_any_tile_is_numpys(
    device: wg.Device, dimensions: list[tuple[int, int]], dtype: Any, on_gpu: bool
) -> None:
    sizes, counts = [size for size, _ in dimensions], [count for _, count in dimensions]
    if prod(sizes) * prod(counts) > 5000:
        sizes = [min(size, 2) for size in sizes]
    x = random_array(sizes, dtype)
    (y,) = backend.run_node(
        node("Tile", 2), [turned(x, device) if on_gpu else x, np.array(counts, np.int64)], device
    )
    check_same(y, np.tile(x, counts))


def test_a_tile_of_one_dimension_as_it_was_at_first(device: wg.Device) -> None:
    x = random_array((2, 3), np.float32)
    (y,) = backend.run_node(
        node("Tile", 3), [x, np.ones(1, np.float32) * 3, np.ones(1, np.float32)], device, opset_version=1
    )
    check_same(y, np.tile(x, (1, 3)))


@given(
    sizes=st.lists(st.integers(0, 9), min_size=2, max_size=4),
    k=st.one_of(st.none(), st.integers(-11, 11), st.sampled_from([-(2**63), 2**63 - 1])),
    upper=st.booleans(),
    dtype=st.one_of(DTYPES, st.just(np.bool_)),
    on_gpu=st.booleans(),
)
def test_any_triangle_is_numpys(
    device: wg.Device, sizes: list[int], k: int | None, upper: bool, dtype: Any, on_gpu: bool
) -> None:
    x = random_array(sizes, dtype) if dtype is not np.bool_ else random_array(sizes, np.uint8) % 2 == 1
    attributes = {} if upper else {"upper": 0}
    inputs = [turned(x, device) if on_gpu else x, *([] if k is None else [np.array(k)])]
    (y,) = backend.run_node(node("Trilu", len(inputs), **attributes), inputs, device)
    first = max(min(k or 0, 99), -99)
    kept = np.triu(np.ones(sizes, np.bool_), first) if upper else np.tril(np.ones(sizes, np.bool_), first)
    check_same(y, np.where(kept, x, np.zeros((), dtype)))


def test_copies_of_more_dimensions_than_tensors_have(device: wg.Device) -> None:
    x = random_array((2, 1, 2, 1, 2, 1, 2, 3), np.int16)
    for upper in (0, 1):
        (y,) = backend.run_node(node("Trilu", 1, upper=upper), [turned(x, device)], device)
        check_same(y, np.triu(x) if upper else np.tril(x))
    (y,) = backend.run_node(node("Tile", 2), [turned(x, device), np.array([2] * 8)], device)
    check_same(y, np.tile(x, [2] * 8))


@given(data=st.data(), dtype=DTYPES)
def test_any_scatter_is_numpys(device: wg.Device, data: st.DataObject, dtype: Any) -> None:
    """Of equal indices the later one stays, as in NumPy; ONNX promises none."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    indexed = data.draw(st.integers(1, len(sizes)))
    shape = data.draw(st.lists(st.integers(0, 4), max_size=2))
    chosen = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = np.stack([chosen.integers(-size, size, shape) for size in sizes[:indexed]], -1)
    x = random_array(sizes, dtype)
    updates = random_array([*shape, *sizes[indexed:]], dtype, seed=5)
    given_inputs = [x, indices, updates]
    if data.draw(st.booleans()):
        given_inputs = [turned(x, device), wg.asarray(indices, device=device), turned(updates, device)]
    (y,) = backend.run_node(node("ScatterND", 3), given_inputs, device)
    expected = x.copy()
    expected[tuple(np.moveaxis(indices, -1, 0))] = updates
    check_same(y, expected)
    if not isinstance(given_inputs[0], np.ndarray):
        check_same(given_inputs[0].numpy(), x)


def test_a_cache_is_updated_where_it_has_grown(device: wg.Device) -> None:
    """As decoders write the keys of one step; the tensor that is given stays as it is."""
    model = parsed("""(float[n, 8] cache, int64[1] position, float[1, 8] step) => (float[m, 8] y)
        <int64[1] zero = {1}>
        {
            sizes = Shape(step)
            index = Unsqueeze(position, zero)
            y = ScatterND(cache, index, step)
        }""")
    prepared = backend.prepare(model, device)
    cache = np.zeros((6, 8), np.float32)
    given_cache = wg.asarray(cache, device=device)
    for position in (3, -1, 0):
        step = np.full((1, 8), position + 10, np.float32)
        cache[position] = step
        (given_cache,) = prepared.run_on_device([given_cache, np.array([position]), step])
        assert prepared.memory is not None
        assert prepared.memory.submissions == 1
    check_same(given_cache.numpy(), cache)


FLOATS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("operator", "inputs", "words"),
    [
        (node("Tile", 2), [[2]], r"repeats = \(2,\): must be 2, one a dimension, each at least 0"),
        (node("Tile", 2), [[2, -1]], r"repeats = \(2, -1\): must be 2, one a dimension, each at least 0"),
        (node("Tile", 2), [[2**30, 2**30]], r"shape\[0\] = 3221225472|shape\[1\] = 4294967296"),
        (
            node("ScatterND", 3),
            [[[0, 0, 0]], FLOATS[0]],
            r"indices have shape \(1, 3\): the last size must be 1 to 2, the input's rank",
        ),
        (node("ScatterND", 3), [0, FLOATS], r"indices have shape \(\): the last size must be 1 to 2"),
        (
            node("ScatterND", 3),
            [[[0], [1]], FLOATS],
            r"updates have sizes \(3, 4\): must be \(2, 4\), as indices have shape \(2, 1\) and the input",
        ),
        (node("ScatterND", 3), [[[3]], FLOATS[:1]], "index 3: must be -3 to 2, as axis 0 has size 3"),
        (node("ScatterND", 3), [[[0, -5]], FLOATS[0, :1]], "index -5: must be -4 to 3, as axis 1 has size 4"),
    ],
)
def test_nodes_that_break_a_rule_are_refused(
    device: wg.Device, operator: onnx.NodeProto, inputs: list[Any], words: str
) -> None:
    with pytest.raises(ValueError, match=f"run_node: {operator.op_type} node 0: .*({words})"):
        backend.run_node(operator, [FLOATS, *map(np.array, inputs)], device)


def test_other_inputs_that_do_not_fit(device: wg.Device) -> None:
    with pytest.raises(ValueError, match="Trilu node 0: input of rank 1: must have rank 2 at least"):
        backend.run_node(node("Trilu", 1), [FLOATS[0]], device)
    with pytest.raises(TypeError, match="input 2 has dtype float16: must be float32 as input 0 has"):
        backend.run_node(node("ScatterND", 3), [FLOATS, np.array([[0]]), FLOATS[:1].astype("f2")], device)
