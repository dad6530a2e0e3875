"""Printed plans: the steps, their reasons, and why faster strategies do not apply."""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import COPY_SRC, STORAGE
from hypothesis import given
from hypothesis import strategies as st
from planning import USUAL, favouring, names_of, planned_copy, planned_extraction, planned_gradient

import wgslice as wg
from bench.compilers.planned import ASKED
from bench.compilers.planned import planned as planned_case
from wgslice.layout import Layout
from wgslice.operators.explain import Submission, Upload
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU as SHIPPED_CPU
from wgslice.plans.profiles import GPU as SHIPPED_GPU
from wgslice.plans.profiles import Limits, Profile

DESCRIPTORS: dict[str, Any] = {
    "Slice1": lambda: wg.Slice1(
        wg.TensorDesc("uint8", (9, 80)), wg.TensorDesc("uint8", (5, 27)), (1, 0), (5, 79), (-1, 3)
    ),
    "Slice": lambda: wg.Slice(wg.TensorDesc("float32", (10,)), wg.TensorDesc("float32", (3,)), [2], [3], [3]),
    "SliceGrad": lambda: wg.SliceGrad(
        wg.TensorDesc("int16", (4, 3)), wg.TensorDesc("int16", (9, 9)), (0, 0), (7, 3), (2, 1)
    ),
    "ExtractWindows": lambda: wg.ExtractWindows(
        wg.TensorDesc("uint8", (30, 90)), wg.TensorDesc("uint8", (2, 8, 64)), [[1, 2], [3, 4]], (8, 64)
    ),
    "offsets on the GPU": lambda: wg.ExtractWindows(
        wg.TensorDesc("uint8", (30,)), wg.TensorDesc("uint8", (2, 8)), wg.TensorDesc("int32", (2, 1)), [8]
    ),
}


def untyped(value: object) -> Any:
    """An argument that only a type checker would refuse."""
    return value


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_descriptors_plan_is_the_compiled_ones(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    described = DESCRIPTORS[name]()
    with monkeypatch.context() as patch:
        patch.setattr(device.pipelines, "prepare", lambda *_: pytest.fail("compiled"))
        explained = wg.explain(described, device)
    assert str(explained) == str(device.compile(described).plan)
    assert explained.steps


@pytest.mark.parametrize("key", [np.s_[1:, ::-2], np.s_[:, 1:], np.s_[2:4], np.s_[3, 5], np.s_[5:5]])
def test_a_views_plan_is_what_its_copy_runs(device: wg.Device, recorded: list[wg.Plan], key: Any) -> None:
    view = wg.asarray(np.arange(9 * 200, dtype=np.uint8).reshape(9, 200), device=device)[key]
    explained = wg.explain(view)
    assert explained.steps is wg.explain(view, device).steps
    view.copy()
    assert [plan.steps for plan in recorded] == [explained.steps]


def test_a_buffer_without_copy_src_is_a_printed_reason(device: wg.Device) -> None:
    buffer = device.wgpu_device.create_buffer(size=64, usage=STORAGE)
    plan = wg.explain(wg.from_buffer(buffer, (16,), np.float32))
    assert plan.rejected == ("buffer copy: the input buffer lacks usage COPY_SRC",)


def test_the_default_device_explains_descriptors(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgslice.gpu.device.default_device", lambda: device)
    assert str(wg.explain(DESCRIPTORS["Slice"]())) == str(wg.explain(DESCRIPTORS["Slice"](), device))


def test_what_cannot_be_explained_is_refused(device: wg.Device) -> None:
    x = wg.asarray(np.arange(4), device=device)
    other = wg.Device.request(device.adapter.backend)
    with pytest.raises(ValueError, match=r"^explain: the tensor is on .*: leave device out$"):
        wg.explain(x, other)
    for more in ({"axis": 1}, {"device": None, "axis": 1}):
        explain: Any = wg.explain
        with pytest.raises(
            TypeError, match=r"^explain: axis = 1: .* takes only device=; .* name the function"
        ):
            explain(x, **more)
    with pytest.raises(TypeError, match=r"^explain: device is of type int: must be a Device, which "):
        wg.explain(DESCRIPTORS["Slice"](), device=untyped(7))
    for what in (x, DESCRIPTORS["Slice"]()):
        with pytest.raises(TypeError, match=r"^explain: slice\(.*; index first, as in explain\(x\[key\]\)"):
            wg.explain(what, untyped(np.s_[::2]))
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'voodoo' in its name or backend"):
        wg.explain(DESCRIPTORS["Slice"](), "voodoo")
    for nothing in (np.arange(4), None, wg.Slice1, device.compile(DESCRIPTORS["Slice"]())):
        with pytest.raises(
            TypeError, match=r"^explain takes a tensor or a descriptor .*, or a function .*, not "
        ):
            wg.explain(untyped(nothing))
    sides = wg.TensorDesc("float64", (2**32 - 1,)), wg.TensorDesc("float64", (3,))
    with pytest.raises(ValueError, match=r"^Slice1: input sizes"):
        wg.explain(wg.Slice1(*sides, [0], [3]), device)


def test_a_plan_shows_itself() -> None:
    plan = planned(Layout.of((64, 144), (200, 1), 1), 1)
    assert repr(plan) == str(plan)


def test_a_view_of_too_many_elements_is_refused_as_its_copy_is(device: wg.Device) -> None:
    many = wg.broadcast_to(wg.asarray(np.zeros(1, np.uint8), device=device), (65536, 65537))
    with pytest.raises(ValueError, match=r"^explain: 4295032832 elements"):
        wg.explain(many)


@pytest.mark.parametrize("offset", [0, 1, 3, 16, 33])
def test_views_in_unpadded_buffers_are_explained_as_copied(
    device: wg.Device, recorded: list[wg.Plan], offset: int
) -> None:
    size = 332 + 4 * (offset // 4)
    buffer = device.wgpu_device.create_buffer(size=size, usage=STORAGE | COPY_SRC)
    view = wg.from_buffer(buffer, (300,), np.uint8, offset=offset)[::-1]
    explained = wg.explain(view)
    view.copy()
    assert [plan.steps for plan in recorded] == [explained.steps]


# Bytes decide alone, however few they are.
CPU, GPU = (
    replace(profile, costs=replace(profile.costs, dispatch_s=0, copy_s=3e-7, pipeline_s=0))
    for profile in (SHIPPED_CPU, SHIPPED_GPU)
)


def planned(
    source: Layout, itemsize: int = 4, profile: Profile = CPU, target: Layout | None = None, **context: Any
) -> wg.Plan:
    return planned_copy(profile, source, target, itemsize, **context)


# Problems whose printed plans are kept in plans.txt: both sides of every condition.
PROBLEMS: dict[str, wg.Plan] = {
    "packed": planned(Layout.packed((64, 64))),
    "empty": planned(Layout.packed((0, 64))),
    "rows as buffer copies": planned(Layout.of((17, 16), (32, 1))),
    "rows by a kernel": planned(Layout.of((17, 16), (32, 1))),
    "rows on a GPU": planned(Layout.of((2, 16), (32, 1)), profile=GPU),
    "no COPY_SRC": planned(Layout.packed((64,)), copy_from=False),
    "few rows, no COPY_DST": planned(Layout.of((3, 16), (32, 1)), copy_to=False),
    "no usage, and bytes": planned(Layout.of((256,), (1,), 1), 1, copy_from=False, copy_to=False),
    "the length of rows": planned(Layout.of((64, 66), (80, 1))),
    "and their distance, twice that": planned(Layout.of((64, 65), (130, 1))),
    "where rows begin": planned(Layout.of((64, 64), (80, 1), 3 + 64)),
    "flipped rows": planned(Layout.of((64, 64), (-82, 1), 63 * 82)),
    "an output that is padded": planned(Layout.packed((64, 64)), target=Layout.of((64, 64), (66, 1), 1)),
    "rows of 31 bytes": planned(Layout.of((64, 31), (40, 1)), 1),
    "rows of 30 bytes": planned(Layout.of((64, 15), (20, 1)), 2),
    "backwards": planned(Layout.of((64, 36), (40, -1), 35)),
    "one byte": planned(Layout.of((), (), 2), 1),
    "every fourth": planned(Layout.of((512,), (4,))),
    "every third": planned(Layout.of((512,), (3,))),
    "every third, backwards": planned(Layout.of((512,), (-3,), 1533), 2),
    "every second of the output": planned(Layout.packed((256,)), target=Layout.of((256,), (2,))),
    "backwards into every second": planned(Layout.of((5,), (-1,), 4), target=Layout.of((5,), (2,))),
    "a broadcast along rows": planned(Layout.of((64, 64), (1, 0)), profile=GPU),
    "a broadcast by rows": planned(Layout.of((64, 64), (1, 0))),
    "permuted": planned(Layout.of((72, 80, 96), (1, 72, 5760)), profile=GPU),
    "permuted, at odd places": planned(Layout.of((70, 80, 90), (1, 70, 5600), 1), profile=GPU),
    "permuted and flipped": planned(Layout.of((72, 96), (-1, 72), 72), profile=GPU),
    "permuted, unpadded": planned(
        Layout.of((71, 96), (1, 72)), source_capacity_nbytes=(95 * 72 + 71) * 4 // 16 * 16, profile=GPU
    ),
    "permuted, by rows": planned(Layout.of((70, 80, 90), (1, 70, 5600))),
    "permuted, every second neighbour": planned(Layout.of((70, 80, 90), (2, 140, 11200))),
    "permuted bytes": planned(Layout.of((70, 90), (1, 70)), 1, profile=GPU),
    "permuted, two columns": planned(Layout.of((2, 92), (1, 8)), profile=GPU),
    "rows that interleave": planned(Layout.packed((2, 3, 64)), 1, target=Layout.of((2, 3, 64), (100, 70, 1))),
    "an unpadded input": planned(Layout.of((300,), (-1,), 300), source_capacity_nbytes=301 * 4 // 16 * 16),
    "an unpadded output": planned(Layout.of((301,), (-1,), 300), target_capacity_nbytes=301 * 4 // 16 * 16),
}


SMALL, ROWS = planned(Layout.packed((64, 64))), planned(Layout.of((17, 16), (32, 1)))
CALLS: dict[str, wg.Explanation] = {
    "a call that submits nothing": wg.Explanation("getitem -> uint8 (3, 4)", ()),
    "a call that uploads": wg.Explanation("setitem", (Upload(2048),)),
    "a call of two submissions": wg.Explanation(
        "setitem", (Upload(1), Submission([SMALL]), Upload(16), Submission([SMALL, ROWS]))
    ),
    "a call of nothing to do": wg.Explanation("copy", (Submission([planned(Layout.packed((0,)))]),)),
    "a call of many plans": wg.Explanation(
        "concat -> float32 (640, 64)", (Submission([planned(Layout.packed((0,)))] * 10),)
    ),
    "a call of many steps": wg.Explanation("<lambda>", (Upload(4),) * 9),
}


SNAPSHOTS = Path(__file__).with_name("plans.txt")


def printed() -> str:
    """All of these plans and calls, as they are printed."""
    return "".join(f"# {name}\n{each}\n\n" for name, each in {**PROBLEMS, **CALLS}.items())


def test_printed_plans_are_those_of_the_snapshots() -> None:
    """`python tests/test_explain.py` writes them anew; look at what has changed."""
    assert printed() == SNAPSHOTS.read_text("utf-8")


# Limits by which every slice, permutation, gather, gradient and set of windows of the bench is planned.
LIMITS = {
    "a GPU": Limits(2**31, 64, 65535, profile=GPU),
    "lavapipe": Limits(2**27, 16, 65535, profile=CPU),
    "small": Limits(2**24, 256, 1024, profile=CPU),
}
CASES = Path(__file__).with_name("plans_of_cases.txt")


def planned_cases() -> str:
    """A line for each plan: its strategy, summary and estimate, and a digest of all that is printed."""
    lines = []
    for name, limits in LIMITS.items():
        for case in ASKED:
            plan = planned_case(case, limits)
            strategy = plan.choice.name if plan.choice else "nothing"
            digest = sha256(str(plan).encode()).hexdigest()[:8]
            estimate = f"{(plan.seconds or 0) * 1e6:.4g} us"
            lines.append(f"{name}, {case.name}: {strategy}; {plan.summary}; {estimate}; {digest}\n")
    return "".join(lines)


@pytest.mark.slow  # 267 plans, of up to 1,000 steps
@pytest.mark.first_adapter
def test_the_cases_of_the_bench_are_planned_as_before() -> None:
    """`python tests/test_explain.py` writes them anew; look at what has changed."""
    assert planned_cases().splitlines() == CASES.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "reason",
    [
        "lacks usage COPY_SRC",
        "lacks usage COPY_DST; ",
        "unaligned to 4 bytes: ",
        "unaligned to 16 bytes: rows are ",
        "the input begins 12 bytes past a multiple",
        "output rows are 264 bytes apart",
        "the input is reversed along rows",
        "the input broadcasts one element along each row",
        "elements of the input are 12 bytes apart",
        "elements of the output are 8 bytes apart",
        "input elements are contiguous along coalesced dimension 0",
        "input elements are 8 bytes apart along coalesced",
        "output rows interleave",
        "at least 31 are needed",
        "an unpadded buffer ends inside a vector of 16 bytes",
    ],
)
def test_each_reason_is_in_a_snapshot(reason: str) -> None:
    assert reason in SNAPSHOTS.read_text("utf-8")


def test_printed_plans_name_their_strategy_and_the_buffer_copy() -> None:
    for plan in PROBLEMS.values():
        lines = dict(line.strip().split(maxsplit=1) for line in str(plan).splitlines()[1:])
        assert plan.choice is None or lines["strategy"] == plan.choice.name
        assert plan.choice is None or "buffer copy" in str(plan)
        assert not plan.steps or "\n  faster if   " in str(plan)


LARGE = Layout.packed((512, 512))
PERMUTED = Layout.of((512, 512), (1, 512))
ALIGNED = "rows, strides and offsets are multiples of 16 bytes"
REMEDIES = {  # of a copy, and the copy that is changed as they say
    ALIGNED: (planned(Layout.of((90000, 30), (40, 1)), 1), planned(Layout.of((90000, 32), (48, 1)), 1)),
    "the input is contiguous": (planned(Layout.of((512, 512), (1600, 3)), 1), planned(LARGE, 1)),
    "the output is contiguous": (planned(LARGE, target=Layout.of((512, 512), (1100, 2))), planned(LARGE)),
    "the input and the output are contiguous": (
        planned(Layout.of((512, 512), (1600, 3)), 1, target=Layout.of((512, 512), (1100, 2))),
        planned(LARGE, 1),
    ),
    "the output has the input's order of dimensions": (
        planned(PERMUTED),
        planned(LARGE),
    ),
    "the buffers have usages COPY_SRC and COPY_DST": (planned(LARGE, copy_from=False), planned(LARGE)),
    "the input is not reversed": (planned(Layout.of((512, 512), (-512, -1), 512**2 - 1)), planned(LARGE)),
    "the last dimension is stored first, as planes": (
        planned(Layout.of((1000, 900, 3), (2700, -3, 1), 2697), 1),
        planned(Layout.of((3, 1000, 900), (900_000, 900, -1), 899), 1),
    ),
    "input and output are in different buffers": (planned(LARGE, shared=True), planned(LARGE)),
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_has_the_strategy_and_time_of_the_changed_copy(remedy: str) -> None:
    slow, fast = REMEDIES[remedy]
    assert fast.choice is not None
    (estimate,) = re.findall(r"estimate    (.+?) \(", str(fast))
    assert f"\n  faster if   {remedy}: {fast.choice.name}, {estimate}\n" in f"{slow}\n"
    assert (fast.seconds or 0) < 0.95 * (slow.seconds or 0)
    assert remedy not in str(fast)


def test_planes_of_pixels_that_are_skipped_are_skipped_too() -> None:
    pixels = planned(Layout.of((500, 900, 3), (10800, 6, 1)), 1)
    planes = planned(Layout.of((3, 500, 900), (1_800_000, 3600, 2)), 1)
    assert planes.choice is not None
    (estimate,) = re.findall(r"estimate    (.+?) \(", str(planes))
    remedy = f"the last dimension is stored first, as planes: {planes.choice.name}, {estimate}"
    assert f"\n  faster if   {remedy}\n" in str(pixels)


def test_a_fill_is_advised_to_be_contiguous(device: wg.Device) -> None:
    z = wg.empty((1000, 600), np.float32, device=device)
    slow, fast = (wg.explain(operator.setitem, z, key, 1.0) for key in (np.s_[:, ::2], np.s_[:500]))
    line = re.search(r"\n +faster if   the output is contiguous: .+, (.+)\n", f"{slow}\n")
    assert line is not None
    assert f"estimated time {line[1]}" in str(fast)
    assert fast.seconds < slow.seconds


def test_nothing_is_advised_that_is_hardly_faster() -> None:
    assert "\n  faster if   no known change is estimated" in str(planned(Layout.packed((1 << 20,))))


def test_rounded_times_and_bytes_have_the_next_prefix() -> None:
    plan = planned(Layout.packed((999_600,)), 1)
    assert str(plan).startswith("copy: 1 MB, ")


def test_operators_print_their_dtype_and_shapes(device: wg.Device) -> None:
    plan = wg.explain(DESCRIPTORS["Slice1"](), device)
    assert str(plan).startswith("Slice1: 135 B, uint8 (9, 80) -> (5, 27)\n")
    compiled = device.compile(DESCRIPTORS["Slice1"]())
    x = wg.zeros((9, 80), np.uint8, device=device)
    other = compiled.plan_for(input=x, output=(wg.zeros(150, np.uint8, device=device).buffer, 1))
    assert other is not compiled.plan
    assert str(other).startswith("Slice1: 135 B, uint8 (9, 80) -> (5, 27)\n")
    assert str(wg.explain(x[:, 1:])).startswith("copy: 711 B, uint8 (9, 79)\n")
    assert str(wg.explain(x.view(np.int8)[:, 1:])).startswith("copy: 711 B, int8 (9, 79)\n")


PLACES = ("bytes long", "the input begins", "input rows are")


@given(
    st.tuples(st.integers(64, 200), st.integers(0, 31), st.integers(220, 300)),
    st.sampled_from([CPU, GPU]),
)
def test_what_is_named_is_what_has_to_be_mended(places: tuple[int, int, int], profile: Profile) -> None:
    """The kernel is applicable with all of it mended, and with less it is not."""

    def against(row: int, begin: int, distance: int) -> str:
        choice = planned(Layout.of((99, row), (distance, 1), begin), 1, profile).choice
        assert choice is not None
        return next((each.text for each in choice.rejected if each.name == "wide_rows"), "")

    named = [place in against(*places) for place in PLACES]
    assert any(named) == bool(against(*places))
    mended = [size + -size % 16 if wrong else size for size, wrong in zip(places, named, strict=True)]
    assert not against(*mended)
    for number, wrong in enumerate(named):
        left = [*mended[:number], places[number], *mended[number + 1 :]]
        assert bool(against(*left)) == wrong


def test_parts_of_a_split_copy_have_one_reason() -> None:
    limits = replace(USUAL, binding_nbytes=2048, profile=CPU)
    plan = planned_copy(limits, Layout.of((4098,), (1,), 1), width=1)
    assert len(plan.steps) > 2
    assert plan.rejected == (
        "buffer copy: unaligned to 4 bytes: rows are 4,098 bytes long; the input begins 1 byte past a "
        "multiple",
    )


def test_a_gradients_reasons_are_its_windows_not_its_zeros() -> None:
    sides = Layout.packed((5,) * 4), Layout.packed((9,) * 4)
    plan = planned_gradient(CPU, *sides, (range(0, 9, 2),) * 4, 1)
    assert "from zeros" not in str(plan.steps[0])
    assert any("elements of the output are 2 bytes apart" in line for line in plan.rejected)


BYTES = Layout.packed((64, 256))
LONGEST = 2**31 - 1
# What is extracted, two windows at offsets 0, and what is said of rows in blocks.
WINDOWS: dict[str, tuple[dict[str, Any], str]] = {
    "steps": ({"sizes": (8, 190), "strides": (1, 3)}, "elements of a window row are 3 apart"),
    "strided": (
        {"source": Layout.of((64, 256), (512, 2))},
        "elements of a window row are not contiguous in the input",
    ),
    "padded": ({"target": Layout.of((2, 8, 64), (1024, 128, 1))}, "the windows are not packed in the output"),
    "short": ({"sizes": (8, 15)}, "rows are 15 bytes long; at least 16 are needed"),
    "unaligned": (
        {"sizes": (8, 30)},
        "rows are 30 bytes long; at least 31 are needed",
    ),
    "long": (
        {"source": Layout.of((1, LONGEST), (LONGEST, 1)), "sizes": (1, 64)},
        f"a dimension of {LONGEST} elements exceeds 32-bit signed offsets",
    ),
    "pixels": (
        {
            "source": Layout.packed((64, 256, 16), 1),
            "sizes": (8, 16, 16),
            "strides": [(1, -1, 1), (1, 1, 1)],
        },
        "reversed rows keep 16 elements in order; at most 15 are supported",
    ),
    "empty": ({"source": Layout.packed((0, 64)), "fill": 0}, "the input is empty"),
}


def extracted(limits: Any, sizes: tuple[int, ...] = (8, 64), **asked: Any) -> wg.Plan:
    """The plan of two windows of bytes."""
    source, target = asked.pop("source", BYTES), asked.pop("target", None)
    offsets = asked.pop("offsets", np.zeros((2, len(sizes)), int))
    return planned_extraction(limits, source, target, 1, offsets, sizes, **asked)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_by_elements_print_the_reason(name: str) -> None:
    asked, said = WINDOWS[name]
    limits = replace(USUAL, binding_nbytes=2**31, profile=favouring(CPU, Kernel.WINDOW_ROWS))
    plan = extracted(limits, **asked)
    assert {*names_of(plan)} <= {"window_words", "extract_windows"}
    assert any("window_rows" in line and said in line for line in plan.rejected)


def test_windows_in_unpadded_buffers_print_the_reason() -> None:
    for capacity in (
        {"source_capacity_nbytes": 64 * 256 - 16},
        {"target_capacity_nbytes": prod((2, 8, 65)) // 16 * 16 - 16},
    ):
        plan = extracted(CPU, (8, 65), **capacity)
        assert "an unpadded buffer ends inside a vector of 16 bytes" in str(plan)


def test_windows_beyond_a_binding_print_the_reason() -> None:
    """Rows of 64 bytes go in bindings of their own; all of 65, which share vectors, to parts of the input."""
    source, offsets = Layout.packed((200, 256)), [[0, 0], [150, 0]]
    limits = replace(USUAL, binding_nbytes=8192, profile=CPU)
    rows = "buffer copy per window: the 8 rows of a window are not contiguous"
    assert extracted(limits, (8, 64), source=source, offsets=offsets).rejected == (rows,)
    assert extracted(limits, (8, 65), source=source, offsets=offsets).rejected == (
        rows,
        "window_rows of aligned rows: rows are unaligned to 16 bytes",
    )
    tall = extracted(limits, (100, 64), source=source, offsets=[[0, 0], [90, 0]])
    assert "window_rows" not in names_of(tall)


if __name__ == "__main__":
    SNAPSHOTS.write_text(printed(), "utf-8")
    CASES.write_text(planned_cases(), "utf-8")
