"""Gathers and scatters beyond a binding, a grid or the tables of kernels: in parts, of one submission."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import check_same, make_buffer, on_one_adapter, random_array, random_bytes
from index_keys import placed
from planning import USUAL
from running import Limit, noted, recording

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import OF_INDICES, Kernel
from wgslice.plans.profiles import CPU, GPU
from wgslice.plans.steps import Clear

PART = 1200  # elements of a binding, which tensors and indices exceed


class Case(NamedTuple):
    """A tensor, as a function of the dtype's size, and its index."""

    sizes: tuple[int, ...]
    index: Any
    transposed: bool = False


def spread(size: int, shape: Any, seed: int) -> Any:
    """Indices of a dimension, counted from both ends, with repeats."""
    return np.random.default_rng(seed).integers(-size, size, shape)


CASES = {
    "elements": Case((5000,), (spread(5000, 3000, 1),)),
    "few of many": Case((9000,), (spread(9000, 40, 2),)),
    "many of few": Case((7,), (spread(7, 5000, 3),)),
    "short rows": Case((1500, 3), (spread(1500, 900, 4),)),
    "rows of vectors": Case((400, 16), (spread(400, 100, 5),)),
    "long rows": Case((9, 900), (spread(9, 12, 6),)),
    "columns": Case((11, 700), (slice(None), spread(700, 120, 7))),
    "columns of a transposed": Case((500, 13), (spread(500, 120, 8),), transposed=True),
    "two tables": Case((90, 80), (spread(90, (500, 1), 9), spread(80, (1, 3), 10))),
    "places in both": Case((90, 80), (spread(90, 1500, 11), spread(80, 1500, 12))),
    "around a dimension": Case(
        (30, 3, 40), (spread(30, 450, 13), slice(None, None, -1), spread(40, 450, 14))
    ),
}


def on_gpu(device: wg.Device, index: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """The same index, its arrays on the device."""
    return tuple(
        wg.asarray(item.astype(dtype), device=device) if isinstance(item, np.ndarray) else item
        for item in index
    )


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_indices_beyond_a_binding_move_what_numpy_moves(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, name: str, dtype: str, profile: Any
) -> None:
    """By indices of the host and of the GPU, the later of equal ones written; each call one submission."""
    sizes, index, transposed = CASES[name]
    itemsize = max(np.dtype(dtype).itemsize, 2)
    limit(profile=profile, binding_nbytes=PART * itemsize + device.limits.binding_alignment_nbytes)
    array = random_array(sizes, dtype)
    x = wg.asarray(array, device=device)
    array, tensor = (array.T, x.T) if transposed else (array, x)
    index = (slice(None), *index) if transposed else index
    values = random_array(array[index].shape, dtype, 5)
    for key in (index, on_gpu(device, index, "int32"), on_gpu(device, index, "int64")):
        recorded.clear()
        with noted(wg.Device, "submit") as submitted:
            found = tensor[key]
        assert len(submitted) == 1
        on_host = any(isinstance(item, np.ndarray) for item in key)  # where buffer copies may be one step
        assert on_host or sum(len(plan.steps) for plan in recorded) > 1
        check_same(found.numpy(), array[index])
        written = wg.asarray(values, device=device)
        with noted(wg.Device, "submit") as submitted:
            tensor[key] = written
        assert len(submitted) == 1
        array[index] = values
        check_same(tensor.numpy(), array)
        array[index] = array.flat[0]
        tensor[key] = array.flat[0]
        check_same(tensor.numpy(), array)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("width", ["uint8", "float32"])
def test_parts_clamp_and_drop_as_the_whole_does(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, dtype: str, width: str
) -> None:
    """Each index out of range reads the nearest element, and writes none, in exactly one part."""
    size = 100 if dtype == "int8" else 3000
    itemsize = np.dtype(width).itemsize
    random, ends = np.random.default_rng(1), np.iinfo(dtype)
    inner = [*random.integers(0, size, 300), 0, size - 1, size // 2, size // 2 - 1]
    outer = [each for each in (size, size + 1, -size - 1, ends.min, ends.max) if ends.min <= each <= ends.max]
    negative = [-1, -size, -size // 2] if ends.min else []
    indices = random.permutation(np.array(inner + outer * 3 + negative, object)).astype(dtype)
    wide = indices.astype(object)
    counted = np.where(wide < 0, wide + size, wide)
    nearest = np.clip(counted, 0, size - 1).astype(int)
    for parts in (1, 2, 5):
        nbytes = -(-size * itemsize // parts) + device.limits.binding_alignment_nbytes
        limit(binding_nbytes=max(nbytes, 2 * device.limits.binding_alignment_nbytes))
        both = placed(device, Layout.packed((size,)), width)
        held = wg.asarray(indices, device=device)
        check_same(both.tensor[held].numpy(), both.array[nearest])
        values = random_array(indices.shape, width, parts)
        both.tensor[held] = values
        inside = counted == nearest
        both.array[nearest[inside]] = values[inside]
        both.check()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_copy_is_split_where_it_exceeds_a_binding(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, width: int, beyond: int
) -> None:
    """At both sides of the largest binding: of the view that is indexed, and of the other side."""
    alignment = max(device.limits.binding_alignment_nbytes, 32)
    limit(profile=CPU, binding_nbytes=64 * alignment + device.limits.binding_alignment_nbytes)
    dtype = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}[width]
    most = 64 * alignment // width
    both = [(most + beyond, 30), (30, most + beyond)]
    for size, count in both[: 1 if width == 1 else 2]:  # 2 bytes per index
        array = random_array((size,), dtype)
        indices = np.concatenate([np.random.default_rng(2).integers(0, size, count - 2), [size - 1, 0]])
        x, held = wg.asarray(array, device=device), wg.asarray(indices.astype(np.uint16), device=device)
        recorded.clear()
        check_same(x[held].numpy(), array[indices])
        assert len(recorded[-1].steps) == 1 + beyond
        values = random_array((count,), dtype, 1)
        x[held] = wg.asarray(values, device=device)
        array[indices] = values
        check_same(x.numpy(), array)
        clears = [step for step in recorded[-1].steps if isinstance(step, Clear)]
        writes = [step for step in recorded[-1].steps if step.name.startswith("scatter")]
        assert len(writes) == 1 + beyond
        assert len(clears) == (0 if "scatter_in_order" in recorded[-1].summary else beyond)


def test_more_rows_than_a_grid_are_several_dispatches(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit
) -> None:
    limit(workgroups=3)
    array = random_array((50, 40), "float32")
    x = wg.asarray(array, device=device)
    rows = spread(50, 300, 1)
    check_same(x[rows].numpy(), array[rows])
    held, values = wg.asarray(rows, device=device), random_array((300, 40), "float32", 2)
    x[held] = values
    array[rows] = values
    check_same(x.numpy(), array)
    assert all(len(plan.steps) > 1 for plan in recorded if "indices" in str(plan))
    for plan in recorded:
        grids = [step.share.workgroups for step in plan.steps if hasattr(step, "share")]
        assert max((max(each) for each in grids), default=0) <= 3


def test_parts_stay_inside_an_unpadded_buffer(device: wg.Device, limit: Limit) -> None:
    """A caller's buffer that ends with the last word of the view."""
    data = random_bytes(4 * 1001)
    limit(binding_nbytes=1024 + device.limits.binding_alignment_nbytes)
    for dtype in ("uint8", "float32"):
        array = data.view(dtype)[1:].copy()
        x = wg.from_buffer(make_buffer(device, data), array.shape, dtype, offset=np.dtype(dtype).itemsize)
        rows = np.concatenate([spread(array.size, 900, 3), [-1, 0]])
        held = wg.asarray(rows, device=device)
        check_same(x[held].numpy(), array[rows])
        x[held] = array[::-1][: rows.size].copy()
        array[rows] = array[::-1][: rows.size].copy()
        check_same(x.numpy(), array)


def test_a_captured_copy_in_parts_runs_again(device: wg.Device, limit: Limit) -> None:
    """Winner indices of a part are cleared in each run."""
    limit(binding_nbytes=1024 + device.limits.binding_alignment_nbytes)
    array, rows = random_array((900,), "float32"), spread(900, 1500, 4)
    values = random_array((1500,), "float32", 2)
    given = [wg.asarray(each, device=device) for each in (array, rows.astype(np.int32), values)]

    def moved(x: Any, rows: Any, values: Any) -> Any:
        x[rows] = values
        return x[rows]

    program = wg.capture(moved, x=given[0], rows=given[1], values=given[2])
    for shift in (0, 7):
        x = wg.asarray(array, device=device)
        turned = np.roll(rows, shift)
        expected = array.copy()
        expected[turned] = values
        found = program(x=x, rows=wg.asarray(turned.astype(np.int32), device=device), values=given[2])
        check_same(x.numpy(), expected)
        check_same(found.numpy(), expected[turned])


def test_parts_are_printed_with_their_indices(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit
) -> None:
    limit(profile=CPU, binding_nbytes=4096 + USUAL.binding_alignment_nbytes)
    x, held = wg.zeros((1500,), np.float32, device=device), wg.asarray(np.arange(90), device=device)
    x[held]
    assert [str(step).rpartition(": ")[2] for step in recorded[-1].steps] == [
        "one index per element, of indices 0 to 749",
        "one index per element, of indices 750 to 1,499",
    ]


OTHERWISE = {
    "five arrays": Case(
        (3, 4, 3, 4, 3), np.ix_(*map(np.array, ([2, 0, 1], [3, 0, 1], [2, 0, 1], [0, 3, 1], [2, 0, 1])))
    ),
    "points": Case(
        (4, 5, 6, 3, 3), tuple(spread(size, 20, seed) for seed, size in enumerate((4, 5, 6, 3, 3)))
    ),
    "around a dimension": Case((7, 6, 5), (spread(7, (4, 1), 1), slice(None), spread(5, 3, 2))),
    "an even step between": Case((7, 6, 5), np.ix_(np.array([3, 1, 2]), np.arange(6), np.array([4, 0, 3]))),
}


@pytest.mark.parametrize("disabled", [frozenset(), frozenset(OF_INDICES)], ids=["enabled", "disabled"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
@pytest.mark.parametrize("name", OTHERWISE)
def test_indices_that_kernels_do_not_take_move_the_same(
    device: wg.Device, limit: Limit, name: str, dtype: str, disabled: frozenset[Kernel]
) -> None:
    """More tables than kernels take, and disabled kernels; values in any layout."""
    limit(disabled=disabled)
    sizes, index, _ = OTHERWISE[name]
    array = random_array(sizes, dtype)
    values = random_array(array[index].shape[::-1], dtype, 3).T
    expected = array.copy()
    expected[index] = values
    for key in (index, on_gpu(device, index, "int64")):
        x = wg.asarray(array, device=device)
        check_same(x[key].numpy(), array[index])
        x[key] = wg.asarray(values.T.copy(), device=device).T
        check_same(x.numpy(), expected)


@on_one_adapter
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("shape", [(500,), (20, 30), (1, 700)])
def test_more_tables_than_kernels_take_beyond_a_binding(
    device: wg.Device, limit: Limit, shape: tuple[int, ...], dtype: str
) -> None:
    """Their windows' offsets exceed a binding, and are made for one half of the indices after the other."""
    array = random_array((3, 4, 3, 4, 3, 5), dtype)
    random = np.random.default_rng(len(shape))
    indices = tuple(random.integers(-size, size, shape) for size in array.shape[:5])
    x, tables = wg.asarray(array, device=device), tuple(wg.asarray(each, device=device) for each in indices)
    limit(binding_nbytes=4096)
    with recording() as plans:
        check_same(x[tables].numpy(), array[indices])
    assert any("in halves" in str(plan) for plan in plans)
    value = random_array(array[indices].shape, dtype, 1)
    x[tables] = wg.asarray(value, device=device)
    array[indices] = value  # of equal indices, the last one
    check_same(x.numpy(), array)
