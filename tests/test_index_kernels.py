"""Kernels that gather and scatter at indices: reference implementations, and adapters against these."""

from __future__ import annotations

from dataclasses import replace
from operator import getitem, setitem

import numpy as np
import pytest
from changed_modules import numbered_module
from helpers import Bytes, check_bytes, check_same, random_bytes
from planning import USUAL, dispatches_of
from reference.indexed import index_kernels
from reference.memory import Writes
from reference.plans import run_plan, trace
from running import Compile, Limit
from test_mapping import PROFILES as MAPPING_PROFILES
from test_mapping import check_mapping
from trials import of_the_tier

import wgslice as wg
from wgslice.array_api import take_along_axis
from wgslice.doctor.indexing import BREADTH, HEIGHT, IndexCase, MaskCase, index_cases, index_trials
from wgslice.doctor.trials import Trial, run_trials
from wgslice.plans.facade import forced
from wgslice.plans.kernels import GATHERS, Kernel
from wgslice.plans.profiles import CPU, GPU, Profile, shipped

PROFILES = pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])


def given(
    case: IndexCase | MaskCase, trial: Trial
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """The indices that the GPU has."""
    if trial.table is None:
        return None
    if isinstance(case, MaskCase):
        return trial.table.reshape(HEIGHT, BREADTH, -1)
    return case.indices().astype(case.index_dtype)


@PROFILES
@pytest.mark.parametrize("kernel", index_kernels, ids=lambda kernel: kernel.value)
def test_reference_implementations_write_what_numpy_does(kernel: Kernel, profile: Profile) -> None:
    limits, seen = replace(USUAL, profile=profile), 0
    for case in index_cases():
        trial = case.trial(limits)
        if trial.kernel is kernel:
            source, before = random_bytes(trial.source_nbytes, 1), random_bytes(trial.target_nbytes, 2)
            after = before.copy()
            run_plan(trial.plan, source, after, given(case, trial))
            check_bytes(after, trial.expected(source, before))
            seen += 1
    assert seen >= (20 if kernel in GATHERS.values() else 50)  # gathers share their cases by width


@pytest.mark.first_adapter
@MAPPING_PROFILES
@pytest.mark.parametrize(
    "kernel",
    [
        *GATHERS.values(),
        Kernel.GATHER_WORDS,
        Kernel.SCATTER,
        Kernel.SCATTER_IN_ORDER,
        Kernel.MASKED_WORDS,
        Kernel.MASKED_PAIRS,
        Kernel.MASKED_VALUES,
    ],
    ids=lambda kernel: kernel.value,
)
def test_invocations_write_what_the_reference_writes(
    device: wg.Device, compile_modules: Compile, kernel: Kernel, profile: Profile
) -> None:
    compile_modules(numbered_module)
    limits = replace(device.limits, profile=profile)
    tables = {
        replace(trial, table=np.zeros(4, np.uint8) if trial.table is None else trial.table): given(
            case, trial
        )
        for case in index_cases()
        for trial in [case.trial(limits)]
        if trial.kernel is kernel
    }

    def written(trial: Trial, source: Bytes, target: Bytes) -> Writes:
        return trace(dispatches_of(trial.plan)[0], source, target, tables[trial]).writes

    check_mapping(device, list(tables), written)


@pytest.mark.parametrize("kernel", index_kernels, ids=lambda kernel: kernel.value)
def test_kernels_write_what_numpy_does(device: wg.Device, kernel: Kernel) -> None:
    trials = [trial for trial in index_trials(device.limits) if trial.kernel is kernel]
    assert [verdict for verdict in run_trials(device, [*of_the_tier(trials)]) if verdict] == []


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("cost_model", "sizes", "strategy"),
    [
        ("lavapipe-25-0", (32, 64), "gather down columns"),
        ("lavapipe-25-0", (31, 64), "gather"),  # columns of fewer elements than an invocation copies
        ("lavapipe-25-0", (64, 15), "gather"),  # rows of less than a cache line
        ("lavapipe-25-0", (32, 8), "gather"),  # fewer columns than invocations of a workgroup
        ("lavapipe-25-0", (2, 999, 999), "gather down columns"),
        ("lavapipe-22-3", (2, 999, 999), "gather"),
    ],
)
def test_gathers_go_down_columns_where_that_is_cheaper(
    device: wg.Device,
    limit: Limit,
    cost_model: str,
    sizes: tuple[int, ...],
    strategy: str,
) -> None:
    profile = replace(CPU, costs=shipped(cost_model))
    limit(profile=profile)
    random, height = np.random.default_rng(5), sizes[-2]
    array = random.integers(0, 2**32, sizes, np.uint32)
    rows = random.integers(-height, height, sizes)
    x, indices = wg.asarray(array, device=device), wg.asarray(rows, device=device)
    (plan,) = wg.explain(take_along_axis, x, indices, axis=-2).plans
    assert plan.choice is not None
    assert plan.choice.name == strategy
    found = take_along_axis(x, indices, axis=-2)
    assert np.array_equal(found.numpy(), np.take_along_axis(array, rows, -2))


PIXELS = 2**16
SLICES, CORRECTED = "slices", "all in order, then slices"


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "pixels", "order", "read", "written"),
    [
        ("uint8", PIXELS, [2, 1, 0, 3], CORRECTED, CORRECTED),
        ("float32", PIXELS, [4, 2, 3, 5], SLICES, SLICES),  # not consecutive
        ("float32", PIXELS // 4, [1, 3, 2, *range(4, 17)], CORRECTED, CORRECTED),
        ("uint16", PIXELS, [0, 2, 1], CORRECTED, CORRECTED),
        ("uint8", 4 * PIXELS, [3, 0, 1, 2], SLICES, SLICES),
        ("uint8", PIXELS // 4, [3, 0, 1, 2], "gather_words", "scatter_subword"),
        ("uint8", 4 * PIXELS, [0, 0, 0, 3], SLICES, "scatter_subword"),  # equal indices
        ("float32", PIXELS, [1, 0, 3, 2, 5, 4, 7, 6], SLICES, SLICES),
        ("float32", PIXELS // 4, [1, 0, 3, 2, 5, 4, 7, 6, 9, 8], "gather", "scatter"),  # five slices
        ("uint8", PIXELS // 4, [*range(8), *range(12, 20)], SLICES, SLICES),
        ("uint8", PIXELS // 4, [*range(8), *range(11, 20)], "gather_words", "scatter_subword"),  # 17 indices
    ],
    ids=str,
)
def test_short_lists_are_slices_where_that_is_cheaper(
    device: wg.Device,
    limit: Limit,
    dtype: str,
    pixels: int,
    order: list[int],
    read: str,
    written: str,
) -> None:
    profile = replace(CPU, costs=shipped("lavapipe-22-3"))
    limit(profile=profile)
    nbytes = pixels * (max(order) + 1) * np.dtype(dtype).itemsize
    array = random_bytes(nbytes, 1).view(dtype).reshape(pixels, -1)
    x, key = wg.asarray(array, device=device), np.s_[:, order]
    values = wg.asarray(array[:, : len(order)], device=device)
    choices = [wg.explain(*call).plans[0].choice for call in ((getitem, x, key), (setitem, x, key, values))]
    assert [choice and choice.name for choice in choices] == [read, written]
    check_same(x[key].numpy(), array[key])
    x[key] = values
    expected = array.copy()
    expected[key] = array[:, : len(order)]
    check_same(x.numpy(), expected)


def test_slices_of_a_list_run_in_the_order_of_the_list(device: wg.Device) -> None:
    """Also where all elements in order are a buffer copy, and the others a dispatch, and not chosen."""
    x = wg.asarray(np.arange(7, dtype=np.int32), device=device)
    plan = wg.explain(getitem, x, [1, 0, 2, 3, 4, 5, 6]).plans[0]
    (corrected,) = [each for each in plan.choices if each.name == CORRECTED]
    assert [step.name == "buffer copy" for step in corrected.steps] == [True, False]


@pytest.mark.parametrize("key", [[3, 2, 1, 7], [8, 0, 4]])
def test_long_rows_at_a_list_on_an_inner_axis_may_be_slices(device: wg.Device, key: list[int]) -> None:
    """Buffer copies then, where windows of one index each have rows that are apart."""
    array = random_bytes(3 * 9 * 64 * 4).view(np.float32).reshape(3, 9, 64)
    x = wg.asarray(array, device=device)
    (plan,) = wg.explain(getitem, x, (slice(None), key)).plans
    names = [step.name for step in forced(plan, "slices").steps]
    assert names
    assert all("buffer cop" in name for name in names)
    check_same(x[:, key].numpy(), array[:, key])
    values = random_bytes(3 * len(key) * 64 * 4, 1).view(np.float32).reshape(3, len(key), 64)
    x[:, key] = values
    array[:, key] = values
    check_same(x.numpy(), array)


@pytest.mark.every_adapter
def test_lists_that_repeat_despite_a_promise_are_no_slices(device: wg.Device) -> None:
    """A slice would place two elements of its output on the same bytes."""
    array, values = (random_bytes(PIXELS * 4, seed).reshape(PIXELS, 4) for seed in (1, 2))
    x = wg.asarray(array, device=device)
    given = wg.put, x, [3, 3, 0, 1], values
    assert "scatter" in wg.explain(*given, axis=1, overlap="disjoint").plans[-1].summary
    wg.put(*given[1:], axis=1, overlap="disjoint")
    found = x.numpy()
    check_same(found[:, :3], np.stack([values[:, 2], values[:, 3], array[:, 2]], axis=1))
    assert ((found[:, 3] | values[:, 0] | values[:, 1]) == (values[:, 0] | values[:, 1])).all()


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "sizes", "profile", "gathered"),
    [
        ("int64", (3, 128, 3), CPU, (3, 3, 40)),
        ("int64", (200, 3), CPU, (3, 40)),
        ("float32", (2, 6, 5), CPU, (2, 40, 5)),  # longer runs
        ("int64", (3, 128, 3), GPU, (3, 40, 3)),
    ],
)
def test_short_runs_are_gathered_along_the_indices_on_cpus(
    device: wg.Device,
    limit: Limit,
    dtype: str,
    sizes: tuple[int, ...],
    profile: Profile,
    gathered: tuple[int, ...],
) -> None:
    limit(profile=profile)
    array = np.arange(np.prod(sizes)).reshape(sizes).astype(dtype)
    pixels = np.random.default_rng(6).integers(-sizes[-2], sizes[-2], 40)
    x, indices = wg.asarray(array, device=device), wg.asarray(pixels, device=device)
    (plan,) = wg.explain(lambda: x[..., indices, :]).plans
    assert f"kernel {GATHERS[array.itemsize].value} on {gathered}" in str(plan)
    assert np.array_equal(x[..., indices, :].numpy(), array[..., pixels, :])


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float32", (3, 512)), ("float32", (1, 512)), ("int64", (2, 3, 256))]
)
def test_gathers_along_rows_give_numpys_elements(
    device: wg.Device, dtype: str, sizes: tuple[int, ...]
) -> None:
    random = np.random.default_rng(6)
    array = np.arange(np.prod(sizes)).reshape(sizes).astype(dtype)
    order, rows = random.permutation(sizes[-1]), random.permutation(sizes[0])[:, None]
    x, indices = wg.asarray(array, device=device), wg.asarray(order - sizes[-1], device=device)
    assert np.array_equal(x[..., indices].numpy(), array[..., order])
    assert np.array_equal(x[..., ::-1][rows, ..., order].numpy(), array[..., ::-1][rows, ..., order])
    along = random.permuted(np.broadcast_to(order, sizes), axis=-1)
    found = take_along_axis(x, wg.asarray(along, device=device), axis=-1)
    assert np.array_equal(found.numpy(), np.take_along_axis(array, along, -1))


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64"])
def test_rows_a_few_elements_apart_are_not_widened_past_them(device: wg.Device, dtype: str) -> None:
    array = np.arange(40 * 6).reshape(40, 6).astype(dtype)
    x = wg.asarray(array, device=device)
    order = np.random.default_rng(4).permutation(40)
    for width in (2, 4):
        assert np.array_equal(x[:, :width][order].numpy(), array[:, :width][order])
        array[:, :width][order] = array[:, 2 : 2 + width].copy()
        x[:, :width][order] = x[:, 2 : 2 + width].copy()
        assert np.array_equal(x.numpy(), array)
