"""Kernels executed by the checker, and what the checker finds in wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest
from check import MESSAGE, PAGE, RESULTS, Comparison, added, main, page, texts
from checker.drawn import drawn
from checker.execute import Dispatched
from checker.findings import Finding
from checker.memory import Memory, Tally
from checker.mutants import Mutant, found_by, mutants
from checker.sizes import (
    check_large,
    check_moved,
    large_copies,
    large_gathers,
    large_indexing,
    large_masks,
    large_sized,
    large_windows,
)
from checker.translate import Translator
from checker.trials import LAUNCHES, Run, Tallies, all_trials, check_trial, spread
from helpers import in_default_tier
from hypothesis import given, settings
from planning import USUAL
from test_extract_windows import Case as WindowsOfAnyLayout
from test_extract_windows import offset_table

import wgslice as wg
from wgslice.doctor.trials import Trial
from wgslice.gpu.pipelines import Content, KernelCall, MemoryRange
from wgslice.layout import Layout
from wgslice.plans.facade import forced
from wgslice.plans.kernels import Kernel

pytestmark = pytest.mark.xdist_group("checker")  # one process makes all trials


def some(default: int) -> int:
    """Return a number of plans for the tier: four times as many for `all`, forty times for `deep`."""
    return default * settings().max_examples // 15


@pytest.fixture(autouse=True, scope="module")
def launches() -> None:
    """Of the launch configurations, the default tier has two: to plan for all of them takes some seconds."""
    del LAUNCHES[2 if in_default_tier() else len(LAUNCHES) :]


def check(found: list[Finding]) -> None:
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_no_invocation_touches_what_another_owns(kernel: Kernel) -> None:
    for trial in spread(all_trials()[kernel], some(4)):
        check(check_trial(trial, Tallies(Tally)))


@given(drawn)
def test_random_plans_are_right_by_every_strategy(trials: list[Trial]) -> None:
    for trial in trials:
        check(check_trial(trial, Tallies(Tally)))


def test_windows_read_no_offset_beyond_their_table() -> None:
    """Their kernel adds a dimension to the one of the tensor, which has no offsets."""
    one = np.ones(1, np.int64)
    case = WindowsOfAnyLayout(
        1, Layout.packed((9,)), 3 * one[None], (5,), one, None, Layout.packed((1, 5)), 0
    )
    plan = case.plan(USUAL, on_gpu=True)
    source, target = case.buffers()
    alone, table = forced(plan, "window_words"), offset_table(case.offsets)
    trial = Trial(alone, "one window", source.size, target.size, case.expected, table)
    check(check_trial(trial, Tallies(Tally)))


@pytest.mark.slow  # it compiles every kernel; others compare their bytes with NumPy's
@pytest.mark.first_adapter  # whichever: bytes are compared with the checker's
def test_an_adapter_writes_the_bytes_of_the_checker(device: wg.Device) -> None:
    comparison = Comparison(device)
    for trials in all_trials().values():
        check(check_trial(trials[0], Tallies(Tally), runs=comparison.runs))
    assert comparison.differing(0) == []
    assert comparison.count == len(all_trials())
    comparison.runs = [changed_run()]
    assert "1 of" in comparison.differing(0)[0]


def changed_run() -> Run:
    """A run of a plan of which the checker got a byte wrong."""
    runs: list[Run] = []
    check(check_trial(all_trials()[Kernel.ROWS][0], Tallies(Tally), runs=runs))
    runs[0].after[0] ^= 1
    return runs[0]


@pytest.mark.parametrize("plans", [large_copies, large_masks, large_gathers])
def test_copies_of_tensors_of_some_gib_are_right(plans: Callable[[Random], Iterator[Any]]) -> None:
    for large in islice(plans(Random(1)), some(2)):
        check(check_large(large, Tallies(Tally)))


@pytest.mark.parametrize(
    "plans", [large_windows, large_sized, large_indexing], ids=["windows", "sized", "indices"]
)
def test_windows_and_indices_of_some_gib_are_right(plans: Callable[[Random], Iterator[Any]]) -> None:
    for _, plan, moved in islice(plans(Random(1)), some(10)):
        check(check_moved(plan, moved, Tallies(Tally)))


MUTANTS = mutants()
QUICK = MUTANTS[1::20]


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_a_wrong_line_is_found(mutant: Mutant) -> None:
    assert found_by(mutant)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [each for each in MUTANTS if each not in QUICK], ids=lambda mutant: mutant.name
)
def test_every_wrong_line_is_found(mutant: Mutant) -> None:
    assert found_by(mutant)


def test_each_wrong_line_fits_its_kernel() -> None:
    assert not [mutant.name for mutant in MUTANTS if not mutant.fits()]
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 60


# the checker itself

HEAD = """
struct Copy { count: u32, wrapped: u32, // modulo 2^32
}
override workgroup_size: u32 = 8u;
@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;
var<workgroup> held: array<u32, 8>;
@compute @workgroup_size(workgroup_size)
fn main(@builtin(local_invocation_index) index: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let n = group.x * workgroup_size + index;
"""

FINDINGS = {
    "target_words[n] = n + copy.count - copy.count;": [],
    "target_words[n / 2u] = 1u;": ["race"],
    "target_words[n] = target_words[n ^ 1u];": ["race"],
    "target_words[0u] = 5u;": ["race"],
    "target_words[n + 1u] = n;": ["bounds"],
    "target_words[n] = source[n + 1u];": ["bounds"],
    "target_words[n] = source[n + 1u]; // beyond the binding": [],
    "target_words[n] = n - 1u;": ["wrap"],
    "target_words[n] = n - 1u; // modulo 2^32": [],
    "target_words[n] = copy.wrapped - n;": [],
    "target_words[n] = n * 0x10001u * 0x10001u;": ["wrap"],
    "target_words[n] = u32(-2147483647 - i32(n));": ["wrap"],
    "target_words[n] = 1u << (n * 3u);": ["shift"],
    "target_words[n] = extractBits(n, n * 2u, 8u);": ["shift"],
    "target_words[n] = 1u / n;": ["division"],
    "target_words[n] = 1u % (n / 2u);": ["division"],
    "if (n > 0u) { target_words[n] = 1u / n; }": [],
    "if (n > 3u && 8u / (n - 3u) > 1u) { target_words[n] = 1u; }": [],
    "held[index] = n; workgroupBarrier(); target_words[n] = held[index ^ 1u];": [],
    "held[index] = n; target_words[n] = held[index ^ 1u];": ["race"],
    "held[index] = n; workgroupBarrier(); held[0u] = n;": ["race"],
    "held[index + 1u] = n;": ["bounds"],
    "target_words[n] = held[index];": ["unwritten"],
    "if (index < 4u) { held[index] = n; } workgroupBarrier(); target_words[n] = held[index];": ["unwritten"],
    "if (index < 4u) { workgroupBarrier(); }": ["barrier"],
    "if (group.x < 1u) { workgroupBarrier(); }": [],
    "var i = n; while (i < 20u) { i += n; }": ["loop"],
    "for (var i = 0u; i < n; i++) { if (i > 20u) { return; } }": None,
    "target_words[n] = array_of(n)[1];": None,
}


def executed(body: str, **changed: Any) -> list[str]:
    """Return the kinds of what is found of two workgroups of 8 invocations on 16 words."""
    block = np.array([3, 7], "<u4")
    call = KernelCall(
        HEAD + body + "\n}\n",
        "main",
        (),
        ("uniform", "read-only-storage", "storage"),
        {0: Content(block)},
        (MemoryRange(1, 0, 0, 64), MemoryRange(2, 1, 0, 64)),
        (2, 1, 1),
    )._replace(**changed)
    memories = {0: Memory(np.arange(16)), 1: Memory(np.arange(16))}
    return [found.kind for found in Dispatched("main", call, memories, Tally()).run()]


@pytest.mark.parametrize("body", [body for body, kinds in FINDINGS.items() if kinds is not None])
def test_each_kind_of_fault_is_found(body: str) -> None:
    kinds = FINDINGS[body]
    assert kinds is not None
    assert list(dict.fromkeys(executed(body))) == kinds


@pytest.mark.parametrize("body", [body for body, kinds in FINDINGS.items() if kinds is None])
def test_what_the_checker_cannot_execute_is_refused(body: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        executed(body)


def test_operations_equal_those_of_wgsl() -> None:
    body = """
    let v = vec4(n, n + 1u, n << 3u, ~n).wzyx;
    let s = bitcast<i32>(v.x) / 3 + select(1, i32(n) % 1 + -5, n > 4u);
    target_words[n] = bitcast<u32>(s) ^ insertBits(v.y, v.z, 4u, 8u) ^ bitcast<u32>(extractBits(-3, 1u, 4u));
"""
    body = body.replace("i32(n) % 1 + -5", "min(i32(n), 6) - 5")
    memory = Memory(np.zeros(16, np.int64))
    call = KernelCall(
        HEAD + body + "}\n",
        "main",
        (),
        ("uniform", "read-only-storage", "storage"),
        {0: Content(np.array([3, 7], "<u4"))},
        (MemoryRange(1, 0, 0, 64), MemoryRange(2, 1, 0, 64)),
        (2, 1, 1),
    )
    assert not Dispatched("main", call, {0: Memory(np.arange(16)), 1: memory}, Tally()).run()

    def expected(n: int) -> int:
        first = int(np.uint32(~np.uint32(n)).view(np.int32))
        quotient = -(-first // 3) if first < 0 else first // 3
        chosen = min(n, 6) - 5 if n > 4 else 1
        inserted = (n << 3) & ~(0xFF << 4) | ((n + 1) & 0xFF) << 4
        return ((quotient + chosen) ^ inserted ^ -2) & 0xFFFFFFFF

    assert memory.words.tolist() == [expected(n) for n in range(16)]


def test_marks_are_read_from_comments_above_a_statement() -> None:
    assert executed("// Modulo 2^32, on purpose: modulo 2^32.\n    target_words[n] = n - 1u;") == []
    assert Translator(HEAD + "}\n").functions.keys() == {"main"}


# the verb


@pytest.mark.parametrize("adapter", ["", "missing"], ids=["adapter", "no adapter"])
def test_the_verb_prints_what_was_executed_and_compared(
    adapter: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if adapter:
        request = wg.Device.request
        monkeypatch.setattr(wg.Device, "request", lambda _: request(adapter))
    assert main(["--kernel", "tiles", "--seconds", "0"]) == 0
    *rows, compared = capsys.readouterr().out.splitlines()
    assert [row.partition(" | ")[0] for row in rows] == [
        "| kernel",
        "|---|---|---|---|---|",
        "| `tiles`",
        "| all",
    ]
    wanted = "no adapter was found" if adapter else "1 of them ran on"
    assert compared.startswith(f"check: 1 plans; {wanted}")


def test_runs_of_the_same_kernels_add_up() -> None:
    run = {"plans": 2, "adapter_trials": 1, "seconds": 3, "seeds": [1], "texts": texts()}
    run["kernels"] = {"rows": {"dispatches": 1, "accesses": 5, "elements": 7}}
    twice = added(added({"mutants": {}}, run), run)
    assert (twice["plans"], twice["seeds"], twice["mutants"]) == (4, [1, 1], {})
    assert twice["kernels"] == {"rows": {"dispatches": 2, "accesses": 10, "elements": 7}}
    assert added({**run, "texts": "others"}, run)["plans"] == 2


def test_messages_of_all_versions_of_the_layers_are_read() -> None:
    before = (
        "VUID-a(ERROR / SPEC): msgNum: -1 - Validation Error: [ VUID-a ] Object 0; | MessageID = 0xb7 | a\n"
    )
    since = "Validation Warning: [ VUID-b ] | MessageID = 0x7f\nb\n"
    assert MESSAGE.findall(before + since) == [("VUID-a", "a"), ("VUID-b", "b")]


# the page


def test_every_kernel_has_a_row_of_executed_plans() -> None:
    kept = json.loads(RESULTS.read_text("utf-8"))
    assert kept["kernels"].keys() == {kernel.value for kernel in Kernel}
    assert all(each["accesses"] for each in kept["kernels"].values())
    assert sum(each["accesses"] for each in kept["kernels"].values()) >= 10**9
    assert not [name for name, each in kept["kernels"].items() if each["elements"] < 2**31]
    assert {*kept["mutants"]} == {mutant.name for mutant in MUTANTS}
    assert all(each["found"] for each in kept["mutants"].values())


def test_the_page_shows_the_kept_results() -> None:
    text = PAGE.read_text("utf-8")
    assert page(json.loads(RESULTS.read_text("utf-8")), text) == text
