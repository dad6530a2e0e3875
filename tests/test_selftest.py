"""The self-test: its cases are right, it finds every broken kernel by name, and slices stay right without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from helpers import (
    ADAPTERS,
    DTYPES,
    adapter_id,
    check_bytes,
    check_same,
    on_one_adapter,
    random_array,
    random_bytes,
)
from planning import USUAL, costing, dispatches_of, names_of, planned_copy
from reference.plans import run_plan
from running import MODULE_OF, by_step, counted
from trials import by_kernel, thinned, trials_of, trying, with_few_pipelines

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Profile
from wgslice.shaders import kernel_module

pytestmark = pytest.mark.xdist_group("doctor")  # one process, so that the driver compiles each kernel once


class Fault(NamedTuple):
    """A kernel's module with something replaced."""

    kernel: Kernel
    what: str
    right: str
    wrong: str


NOT_COMPILED = "no such variable"

# Several at once, as many devices as groups: each group leaves kernels that can do what the broken ones did.
FAULTS = {
    "blocks": [
        Fault(Kernel.SUBWORD_ROWS, NOT_COMPILED, "left = select(left - 1u,", "left = select(light - 1u,"),
        Fault(Kernel.ROWS, "half an element", "target_units[2u * target_element + 1u] = high;", ""),
        Fault(Kernel.SHIFTED_ROWS, "a wrong shift", "vec4(offset % 4u * 8u)", "vec4(offset % 2u * 8u)"),
        Fault(Kernel.SHIFTED_GRID, "half an offset", "lowest % 16u;", "lowest % 8u;"),
        Fault(Kernel.WIDE_ROWS, "a missing tail", "k < each;", "k < max(each, 2u) - 1u;"),
        Fault(
            Kernel.WIDE_GRID,
            "one unit for all",
            "source_units[source_unit + k * source_ahead]",
            "source_units[source_unit]",
        ),
        Fault(Kernel.SUBWORD_STEPS, "a run too few", "i < runs_per_word", "i < 1u"),
        Fault(Kernel.PIXELS, "a wrong shift", "(place % 4u * 8u)", "(place % 2u * 8u)"),
        Fault(Kernel.REGISTER_TILES, "one tile for all", "+ k * source_step", "+ 0u * source_step"),
        Fault(
            Kernel.WIDE_TILES,
            "halves of the wrong element",
            "(left >> 16u) | (right & 0xffff0000u)",
            "(right >> 16u) | (left & 0xffff0000u)",
        ),
        Fault(
            Kernel.WINDOW_ROWS, "one index too few", "reach - extent + step) / step", "reach - extent) / step"
        ),
        Fault(
            Kernel.INSERT_ROWS,
            "backwards forwards",
            "block_of_row(row.source, row.backwards,",
            "block_of_row(row.source, false,",
        ),
    ],
    "words": [
        Fault(Kernel.SIZED_WINDOWS, "one row for all", "run_row + row_in_run, added)", "run_row, added)"),
        Fault(Kernel.SIZED_ENDS, "a missing last word", "max(word + 1u, stop / 4u)", "word + 1u + stop"),
        Fault(
            Kernel.ROW_ENDS,
            "a missing tail",
            "if (edges.count == 0u) {",
            "if (edges.count == 0u || edges.first == extent.stop_unit) {",
        ),
        Fault(Kernel.SUBWORD_ENDS, "a missing word", "piece.number < 4u", "piece.number < 3u"),
        Fault(Kernel.ROWS, "runs without a carry", "runs * row.source_carry", "0u * row.source_carry"),
        Fault(
            Kernel.SUBWORD_ROWS,
            "the bytes of a word in reverse",
            "<< (i * 8u * element_bytes)",
            "<< ((per_word - 1u - i) * 8u * element_bytes)",
        ),
        Fault(
            Kernel.WORD_GRID,
            "rows below the plane",
            "if (inside && first.row + k * copy.ahead_rows < rows) {",
            "if (inside) {",
        ),
        Fault(
            Kernel.TILES,
            "not transposed",
            "let place = k % each * (each + 1u) + k / each;",
            "let place = k / each * (each + 1u) + k % each;",
        ),
        Fault(
            Kernel.INSERT_WORDS,
            "a neighbour's bytes",
            "write_bits(word, value, mask);",
            "atomicStore(&target_words[word], value);",
        ),
        Fault(
            Kernel.GATHER_WORDS,
            "one index for a row",
            "                    if (!by_rows) {",
            "                    if (false) {",
        ),
        Fault(Kernel.WINDOW_ROWS, "steps of 2 alone", "ahead * distance", "ahead * min(distance, 2u)"),
        Fault(Kernel.WINDOW_WORDS, "rows too long by one", "cursor.left > 1u", "cursor.left > 0u"),
    ],
    "elements": [
        Fault(
            Kernel.SLICE1,
            "swapped strides",
            "source_element += c * source_stride_of(d - 1u);",
            "source_element += c * target_stride_of(d - 1u);",
        ),
        Fault(
            Kernel.EXTRACT_WINDOWS,
            "one index beyond",
            "index - copy.dimensions[d].begin < copy.dimensions[d].extent",
            "index - copy.dimensions[d].begin <= copy.dimensions[d].extent",
        ),
        Fault(
            Kernel.GATHER,
            "negative indices from the end of another dimension",
            "low + select(0u, wrap, negative)",
            "low + select(0u, wrap + 1u, negative)",
        ),
        Fault(
            Kernel.PAIR_GATHER,
            "the same for every index",
            "element.source_element + reached.elements",
            "element.source_element",
        ),
        Fault(
            Kernel.WIDE_GATHER,
            "one element for all",
            "element = after(element, piece.step)",
            "element = piece.first",
        ),
        Fault(
            Kernel.SCATTER,
            "what is out of range is written",
            "return reached.inside;",
            "return true;",
        ),
        Fault(
            Kernel.SCATTER_SUBWORD,
            "what is there is written",
            "read_subword(element.source_element)",
            "read_subword(element.target_element)",
        ),
        Fault(
            Kernel.SCATTER_IN_ORDER,
            "words without what is there",
            "insertBits(target_words[word],",
            "insertBits(0u,",
        ),
        Fault(Kernel.MASKED_WORDS, "a word of ones", "& ~written)", "& written)"),
        Fault(Kernel.MASKED_PAIRS, "what is false", "value, written)", "value, true)"),
        Fault(Kernel.MASKED_VALUES, "what is false", "(bits & 1u) == 1u);", "true);"),
        Fault(
            Kernel.LAST_WRITER_INDICES, "the first one's", "atomicMax(&new_winners", "atomicMin(&new_winners"
        ),
        Fault(
            Kernel.LAST_WRITER_WINDOWS, "the first one's", "atomicMax(&new_winners", "atomicMin(&new_winners"
        ),
        Fault(Kernel.LAST_WRITER_ROWS, "all of blocks at ends", "block >= row.extent.stop_unit", "false"),
        Fault(
            Kernel.INSERT_WINDOWS,
            "one word for all",
            "source_words[source_element * words + i]",
            "source_words[source_element * words]",
        ),
        Fault(
            Kernel.SHIFTED_ROWS,
            "backwards forwards",
            "select(turn(block, copy.element_bytes), block, is_forwards())",
            "block",
        ),
    ],
}


# A kernel outside of each group, which stays right; `test_a_healthy_device_passes` tries all of them.
HEALTHY = {"blocks": Kernel.ROW_ENDS, "words": Kernel.WIDE_ROWS, "elements": Kernel.INSERT_WORDS}


def broken_module(fault: Fault) -> str:
    """The kernel's module with the fault in it."""
    text = kernel_module(fault.kernel)
    assert fault.right in text, f"{fault.kernel.value} has no {fault.right!r}"
    return text.replace(fault.right, fault.wrong)


def test_every_kernel_is_broken_somewhere() -> None:
    found = [fault for faults in FAULTS.values() for fault in faults]
    assert {fault.kernel for fault in found} == set(Kernel)
    for fault in found:
        assert broken_module(fault) != kernel_module(fault.kernel)


def random_slices(seed: int) -> Iterator[tuple[np.ndarray[Any, Any], Any, Any]]:
    """Arrays of every width, some permuted, and an index of each."""
    rng = np.random.default_rng(seed)
    for number in range(60):
        rank = int(rng.integers(1, 4))
        shape = [int(rng.integers(1, {1: 600, 2: 60, 3: 20}[rank])) for _ in range(rank)]
        if number % 3 == 0:
            shape.append(int(rng.integers(2, 5)))
        dtype = np.dtype(DTYPES[(1, 2, 4, 8, 16)[number % 5]])
        array = random_array(shape, dtype, number)
        axes = rng.permutation(len(shape)) if number % 4 == 0 else np.arange(len(shape))
        key = []
        for size in np.array(shape)[axes]:
            step = int(rng.choice([1, 1, 1, -1, -1, 2, -2, 3, 4]))
            start = int(rng.integers(0, size // 3 + 1))
            key.append(slice(start, None, step) if step > 0 else slice(int(size) - 1 - start, None, step))
        yield array, tuple(int(axis) for axis in axes), tuple(key)


def slices(device: wg.Device) -> Iterator[bool]:
    """Whether some slices, written into a window too, are NumPy's."""
    for array, axes, key in random_slices(3):
        view = wg.permute(wg.asarray(array, device=device), axes)[key]
        expected = np.ascontiguousarray(array.transpose(axes)[key])
        target = wg.zeros((*view.shape, 3), array.dtype, device=device)
        target[..., 1] = view
        expected_target = np.zeros(target.shape, array.dtype)
        expected_target[..., 1] = expected
        pairs = ((view.copy().numpy(), expected), (target.numpy(), expected_target))
        yield all(ours.tobytes() == numpys.tobytes() for ours, numpys in pairs)


def windows(device: wg.Device) -> Iterator[bool]:
    """Whether some windows, in rows and in steps, inside and not, are NumPy's."""
    for dtype, step in (("uint8", 1), ("uint8", 2), ("float16", 3), ("float32", 1), ("float64", 3)):
        array = random_array((30, 41), dtype, step)
        padded = np.pad(array.view(f"u{array.itemsize}"), 9, constant_values=0).view(dtype)
        offsets = [(3, 1), (-9, 5), (12, 22), (21, 11)]
        arguments: Any = wg.asarray(array, device=device), offsets, (9, 28), (1, -step)
        found = wg.extract_windows(*arguments, fill=0).numpy()
        expected = [padded[y + 9 : y + 18, x + 9 : x + 37][:, ::-step] for y, x in offsets]
        yield found.tobytes() == np.ascontiguousarray(expected).tobytes()


def inserts(device: wg.Device) -> Iterator[bool]:
    """Whether some windows that are inserted into a tensor are NumPy's."""
    overlap: Literal["refuse", "last"]
    for dtype, step, overlap in (
        *(("uint8", 1, "refuse"), ("uint8", 2, "refuse"), ("float16", 1, "refuse"), ("uint8", 1, "last")),
        *(("float32", -1, "refuse"), ("float64", 1, "refuse"), ("complex128", 3, "refuse")),
    ):
        offsets = [(3, 1), (12, 5), (20, 3), (26, -2)] if overlap == "refuse" else [(3, 1), (5, 3), (4, 9)]
        windows = random_array((len(offsets), 6, 37), dtype, 1)
        before = random_array((30, 120), dtype, 2)
        x, expected = wg.asarray(before, device=device), np.pad(before, 9)
        y = wg.asarray(windows, device=device)
        if Kernel.INSERT_WINDOWS in device.limits.disabled and abs(step) > 1:
            with pytest.raises(wg.NoKernelError, match="no kernel is left for windows"):
                wg.insert_windows(x, offsets, y, (1, step), overlap=overlap, outside="drop")
            continue
        wg.insert_windows(x, offsets, y, (1, step), overlap=overlap, outside="drop")
        for (row, column), window in zip(offsets, windows, strict=True):
            columns = slice(column + 9, column + 9 + 36 * abs(step) + 1, abs(step))
            expected[row + 9 : row + 15, columns] = window[:, :: 1 if step > 0 else -1]
        yield x.numpy().tobytes() == np.ascontiguousarray(expected[9:-9, 9:-9]).tobytes()


@pytest.mark.parametrize("adapter", ADAPTERS, ids=adapter_id)
@pytest.mark.parametrize(
    "group",
    [
        "blocks",
        *(  # each compiles a dozen wrong kernels, and slices without them
            pytest.param(each, marks=[pytest.mark.first_adapter, pytest.mark.slow])
            for each in ("words", "elements")
        ),
    ],
)
def test_broken_kernels_are_found_and_slices_stay_right(
    monkeypatch: pytest.MonkeyPatch, adapter: str, group: str
) -> None:
    faults = FAULTS[group]
    broken = {fault.kernel: broken_module(fault) for fault in faults}
    monkeypatch.setattr(MODULE_OF, by_step(lambda kernel: broken.get(kernel) or kernel_module(kernel)))
    device = wg.Device.request(adapter)
    not_compiled = {fault.kernel.value for fault in faults if fault.what == NOT_COMPILED}
    if not not_compiled:  # what follows compiles them
        assert not all(chain(inserts(device), slices(device), windows(device)))
    with trying({*broken, HEALTHY[group]}):
        tested = wg.selftest(device)
    assert {test.kernel for test in tested.kernels} == {kernel.value for kernel in (*broken, HEALTHY[group])}
    assert set(tested.failed) == {kernel.value for kernel in broken}
    assert device.limits.disabled == set(broken)
    assert not tested.passed
    for test in tested.kernels:
        if test.passed:
            assert (test.wrong, test.failure) == (0, "")
        else:
            assert 0 < test.wrong <= test.trials
            assert test.failure
            assert f"{test.kernel}: WRONG in {test.wrong} of {test.trials} trials" in str(tested)
            compiles = test.kernel not in not_compiled
            assert test.failure.startswith("it does not compile: ") != compiles
            assert (" bytes are wrong, the first is number " in test.failure) == compiles
    assert all(chain(slices(device), windows(device), inserts(device)))


def test_a_healthy_device_passes(device: wg.Device) -> None:
    """On OpenGL by one device: a thread that waits for another device's context aborts the process."""
    device.limits = replace(device.limits, disabled=frozenset({Kernel.SLICE1}))  # by an earlier one
    with counted(wg.Device, ["request"]) as others, trying(set(Kernel)):
        tested = wg.selftest(device)
    if device.adapter.software:
        assert others["request"] == (device.adapter.backend != "OpenGL")
    assert tested.passed
    assert tested.failed == ()
    assert device.limits.disabled == frozenset()
    assert tested.adapter == device.adapter
    assert {Kernel.SLICE1.value, Kernel.EXTRACT_WINDOWS.value} < {test.kernel for test in tested.kernels}
    lines = str(tested).splitlines()
    assert lines[0].startswith(
        f"{len(tested.kernels)} of {len(tested.kernels)} kernels are correct on {device.adapter}"
    )
    assert all(": correct in " in line for line in lines[1:])
    assert len(lines) == 1 + len(tested.kernels)


def test_only_devices_are_tested() -> None:
    with pytest.raises(TypeError, match="selftest: device is of type int: must be a Device"):
        wg.selftest(7)  # type: ignore[arg-type]  # which is what is refused
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'voodoo' in its name or backend"):
        wg.selftest("voodoo")


PROFILES = pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])


ON_CPU = replace(USUAL, profile=CPU)


@PROFILES
def test_trials_expect_what_reference_implementations_write(profile: Profile) -> None:
    """So that a trial that fails is the kernel's fault, and no other kernel's."""
    for trials in trials_of(replace(USUAL, profile=profile)).values():
        changed = 0
        for number, trial in enumerate(trials[::11]):
            source, before = (
                random_bytes(trial.source_nbytes, number),
                random_bytes(trial.target_nbytes, 1000),
            )
            after = before.copy()
            offsets = None if trial.table is None else trial.table.view(np.uint8)
            if offsets is None:
                run_plan(trial.plan, source, after)
                check_bytes(after, trial.expected(source, before))
                changed += not np.array_equal(after, before)
        assert changed > 0


@PROFILES
def test_few_pipelines_have_every_constant(profile: Profile) -> None:
    for trials in trials_of(replace(USUAL, profile=profile)).values():
        few, more = (with_few_pipelines(trials, most) for most in (1, 1000))
        every, covered = (
            {constant for trial in tried for constant in trial.constants if " " not in constant[0]}
            for tried in (trials, few)
        )
        assert covered == every
        pairs, all_pairs = (
            {pair for trial in tried for pair in combinations(trial.constants, 2)} for tried in (more, trials)
        )
        assert pairs == all_pairs
        assert len(few) <= len(more) <= len(trials)


@PROFILES
def test_thinned_trials_are_of_every_pipeline(profile: Profile) -> None:
    for trials in trials_of(replace(USUAL, profile=profile)).values():
        few = with_few_pipelines(trials, 5)
        found, given = (Counter(trial.constants for trial in some) for some in (thinned(few, 128), few))
        each = max(128 // len(given), 16)
        assert found == {constants: min(count, each) for constants, count in given.items()}


def test_trials_that_a_device_cannot_hold_are_left_out() -> None:
    """They would be refused, and taken for a kernel that does not compile."""
    whole = trials_of(ON_CPU)
    small = replace(ON_CPU, binding_nbytes=4096, workgroups=1)
    held = by_kernel(chain.from_iterable(whole.values()), small)
    assert held.keys() == whole.keys()
    for trials in held.values():
        for step in (step for trial in trials for step in dispatches_of(trial.plan)):
            assert max(step.source_binding.nbytes, step.target_binding.nbytes) <= 4096
            assert step.share.workgroups == (1, 1, 1)
    assert all(held.values())
    assert sum(map(len, held.values())) < sum(map(len, whole.values()))


def test_a_trial_dispatches_its_own_kernel_alone() -> None:
    """So that a wrong kernel is named by its own trials; winner indices are read by kernels that write."""
    readers = {
        Kernel.LAST_WRITER_WINDOWS: {"insert_windows"},
        Kernel.LAST_WRITER_INDICES: {"scatter", "scatter_subword"},
        Kernel.LAST_WRITER_ROWS: {"insert_rows", "insert_words"},
    }
    for kernel, trials in trials_of(ON_CPU).items():
        names = {step.name for trial in trials for step in trial.plan.steps}
        assert names == {kernel.value} | readers.get(kernel, set())


# Copies that a kernel performs.
TAKEN = {
    Kernel.SHIFTED_ROWS: (1, Layout.of((9, 400), (500, 1), 3)),
    Kernel.ROW_ENDS: (1, Layout.of((9, 401), (500, 1), 3)),
    Kernel.SUBWORD_ROWS: (1, Layout.of((9, 401), (500, 1), 3)),
    Kernel.ROWS: (4, Layout.of((9, 400), (500, 3), 3)),
    Kernel.WIDE_ROWS: (16, Layout.of((9, 400), (500, 3), 3)),
}


@pytest.mark.parametrize("kernel", TAKEN, ids=lambda kernel: kernel.value)
def test_a_plan_names_disabled_kernels(kernel: Kernel) -> None:
    width, source = TAKEN[kernel]
    needed = {kernel, *([Kernel.SHIFTED_ROWS] if kernel is Kernel.ROW_ENDS else [])}
    others = {kind: (1e-6, 1e3) if kind.kernel is Kernel.SLICE1 else None for kind in CPU.costs.classes}
    profile = costing(CPU, {str(kind): price for kind, price in others.items() if kind.kernel not in needed})
    limits = replace(USUAL, profile=profile)
    plan = planned_copy(limits, source, width=width, copy_to=False)
    assert f" {kernel.value} on " in str(plan)
    assert "self-test" not in str(plan)
    without = replace(limits, disabled=frozenset({kernel}))
    plan = planned_copy(without, source, width=width, copy_to=False)
    assert names_of(plan) == ["slice1"]
    assert "its kernel failed the self-test of this device" in f"{plan}\n"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=adapter_id)
def test_a_compiled_operator_replaces_a_kernel_that_fails(
    monkeypatch: pytest.MonkeyPatch, adapter: str
) -> None:
    kernel = Kernel.SUBWORD_ROWS
    (fault,) = (fault for fault in FAULTS["words"] if fault.kernel is kernel)
    broken = broken_module(fault)
    monkeypatch.setattr(
        MODULE_OF, by_step(lambda wanted: broken if wanted is kernel else kernel_module(wanted))
    )
    device = wg.Device.request(adapter)
    device.update_limits(lambda current: replace(current, profile=CPU))
    array = random_array((20, 50), "uint8")
    x = wg.asarray(array, device=device)
    described = wg.TensorDesc("uint8", (20, 50)), wg.TensorDesc("uint8", (20, 25))
    operator = device.compile(wg.Slice(*described, (0, 0), (20, 25), (1, 2)))
    given = wg.zeros((20, 25), np.uint8, device=device)
    assert names_of(operator.plan) == [kernel.value]
    assert operator(x).numpy().tobytes() != array[:, ::2].tobytes()
    with trying({kernel}):
        wg.selftest(device)
    for out in (None, given):
        check_same(operator(x, out=out).numpy(), array[:, ::2].copy())
    assert operator.plan_for(input=x, output=given) is operator.plan
    assert kernel.value not in names_of(operator.plan)


@on_one_adapter
def test_a_device_without_any_kernel_refuses_by_name(device: wg.Device) -> None:
    """Buffer copies are left."""
    alone = wg.Device.request(device.adapter)
    alone.limits = replace(alone.limits, disabled=frozenset(Kernel))
    array = np.arange(400, dtype=np.uint16).reshape(20, 20)
    x, picks = wg.asarray(array, device=alone), wg.asarray([[1, 2]], device=alone)
    copy, windows = (f"no kernel is left for {what} of sizes " for what in ("a copy", "windows"))
    refused: dict[str, Callable[[], object]] = {
        rf"^copy: {copy}\(10, 7\): extract_windows, gather, gather_words, ": x[::2, ::3].copy,
        rf"{copy}\(20, 10\): ": lambda: wg.slice1(x, [0, 0], [20, 20], [1, -2]),
        rf"{copy}": lambda: wg.take(x, picks, 1),
        rf"{windows}\(5, 5\): .* use another adapter": lambda: wg.extract_windows(x, [[1, 2]], (5, 5)),
    }
    for match, refuse in refused.items():
        with pytest.raises(wg.NoKernelError, match=match):
            refuse()
    check_same(x[4:].copy().numpy(), array[4:])
    check_same(x.numpy(), array)
