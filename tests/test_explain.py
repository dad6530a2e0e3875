"""What would run, why, and what in the layout keeps it from a faster way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wgslice as wg
from wgslice.arguments import I32_MAX
from wgslice.gpu.pipelines import Pipelines
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.extract_windows import plan_extract_windows
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import CPU, GPU, Limits, Profile
from wgslice.plans.terms import Terms
from wgslice.plans.windows_steps import Windows

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
    """What a program without a type checker may pass."""
    return value


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be prepared for a GPU."""
    monkeypatch.setattr(Pipelines, "prepare", lambda *_: pytest.fail("compiled"))


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_descriptors_plan_is_the_compiled_ones(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    described = DESCRIPTORS[name]()
    with monkeypatch.context() as patch:
        patch.setattr(Pipelines, "prepare", lambda *_: pytest.fail("compiled"))
        explained = wg.explain(described, device)
    assert str(explained) == str(device.compile(described).plan)
    assert explained.steps


@pytest.mark.parametrize("key", [np.s_[1:, ::-2], np.s_[:, 1:], np.s_[2:4], np.s_[3, 5], np.s_[5:5]])
def test_a_views_plan_is_what_its_copy_runs(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, key: Any
) -> None:
    view = wg.asarray(np.arange(9 * 200, dtype=np.uint8).reshape(9, 200), device)[key]
    explained = wg.explain(view)
    assert explained is wg.explain(view, device)
    ran: list[Plan] = []
    prepare = Pipelines.prepare

    def noting(pipelines: Pipelines, plan: Plan) -> Any:
        ran.append(plan)
        return prepare(pipelines, plan)

    monkeypatch.setattr(Pipelines, "prepare", noting)
    view.copy()
    assert ran == [explained]


def test_a_buffer_that_cannot_be_copied_from_is_said(device: wg.Device) -> None:
    import wgpu

    buffer = device.wgpu_device.create_buffer(size=64, usage=wgpu.BufferUsage.STORAGE)
    plan = wg.explain(wg.from_buffer(buffer, (16,), np.float32))
    assert plan.hindrances == ("in the way of a buffer copy: a buffer has no usage COPY_SRC or COPY_DST",)


def test_the_default_device_explains_descriptors(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgslice.operators.explain.default_device", lambda: device)
    assert str(wg.explain(DESCRIPTORS["Slice"]())) == str(wg.explain(DESCRIPTORS["Slice"](), device))


def test_what_cannot_be_explained_is_refused(device: wg.Device, uncompiled: None) -> None:
    x = wg.asarray(np.arange(4), device)
    other = wg.Device.request(device.adapter.backend)
    with pytest.raises(ValueError, match=r"^explain: the tensor is on .*: leave device out$"):
        wg.explain(x, other)
    with pytest.raises(TypeError, match=r"^explain: device is of type str: must be a Device$"):
        wg.explain(DESCRIPTORS["Slice"](), untyped("vulkan"))
    for nothing in (np.arange(4), None, wg.Slice1):
        with pytest.raises(TypeError, match=r"^explain takes a tensor or a descriptor such as Slice1, not "):
            wg.explain(untyped(nothing))
    sides = wg.TensorDesc("float64", (2**32 - 1,)), wg.TensorDesc("float64", (3,))
    with pytest.raises(ValueError, match=r"^Slice1: input sizes"):
        wg.explain(wg.Slice1(*sides, [0], [3]), device)


def test_a_plan_shows_itself() -> None:
    plan = planned(Layout.of((4, 100), (200, 1), 1), 1, CPU)
    assert repr(plan) == str(plan)
    assert str(plan).splitlines()[-2:] == [f"  {line}" for line in plan.hindrances]


def planned(
    source: Layout, itemsize: int, profile: Profile, target: Layout | None = None, **terms: Any
) -> Plan:
    limits = Limits(2**27, 32, 65535, profile)
    return plan_copy(source, target or Layout.packed(source.sizes), itemsize, Terms(limits, **terms))


COPY, VECTORS, BLOCKS = (
    f"in the way of {faster}: "
    for faster in ("a buffer copy", "vectors of 16 bytes", "blocks of 16 bytes from any byte on")
)
WORDS = "no multiple of 4: "
# Layouts, item sizes, what the plan says, and the layout where that is mended, whose plan no longer does.
HINDERED: dict[str, tuple[Layout, int, list[str], Layout]] = {
    "backwards": (
        Layout.of((256,), (-1,), 255),
        4,
        [f"{COPY}the input is read backwards"],
        Layout.of((256,), (1,)),
    ),
    "steps": (
        Layout.of((512,), (3,)),
        4,
        [f"{way}neighbours of a row lie 12 bytes apart in the input" for way in (COPY, BLOCKS)],
        Layout.of((512,), (1,)),
    ),
    "steps backwards": (
        Layout.of((512,), (-3,), 1533),
        2,
        [f"{way}neighbours of a row lie 6 bytes apart in the input, backwards" for way in (COPY, BLOCKS)],
        Layout.of((512,), (1,)),
    ),
    "a broadcast": (
        Layout.of((64, 64), (64, 0)),
        4,
        [f"{way}the input repeats one element along each row" for way in (COPY, BLOCKS)],
        Layout.of((64, 64), (64, 1)),
    ),
    "rows": (
        Layout.of((64, 16), (32, 1)),
        4,
        [f"{COPY}one each for 64 rows of 64 bytes"],
        Layout.of((64, 16), (16, 1)),
    ),
    "the length of rows": (
        Layout.of((64, 66), (80, 1)),
        4,
        [f"{COPY}one each for 64 rows of 264 bytes", f"{VECTORS}no multiple of 16: length of rows 264"],
        Layout.of((64, 68), (80, 1)),
    ),
    "where rows begin": (
        Layout.of((64, 64), (80, 1), 3),
        4,
        [f"{VECTORS}no multiple of 16: first byte 12 of the input"],
        Layout.of((64, 64), (80, 1), 4),
    ),
    "how far rows are apart": (
        Layout.of((64, 64), (82, 1)),
        4,
        [f"{VECTORS}no multiple of 16: distance of rows 328 in the input"],
        Layout.of((64, 64), (84, 1)),
    ),
    "bytes": (
        Layout.of((2**16,), (1,), 1),
        1,
        [f"{COPY}{WORDS}first byte 1 of the input"],
        Layout.of((2**16,), (1,), 4),
    ),
    "short rows": (
        Layout.of((64, 15), (40, -2), 29),
        4,
        [f"{BLOCKS}rows of 60 bytes are too short"],
        Layout.of((64, 16), (40, -2), 31),
    ),
}


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", HINDERED)
def test_what_stands_in_the_way_is_named_and_gone_when_it_is_mended(name: str, profile: Profile) -> None:
    source, itemsize, said, mended = HINDERED[name]
    assert set(said) <= set(planned(source, itemsize, profile).hindrances)
    ways = {line.partition(": ")[0] for line in said}
    left = planned(mended, itemsize, profile).hindrances
    assert ways - {line.partition(": ")[0] for line in left}
    assert not set(said) & set(left)


def test_a_permuted_input_names_the_dimension() -> None:
    permuted = Layout.of((70, 90), (1, 70))
    lines = [
        f"{way}permuted, neighbours of the input lie along merged dimension 0 of (70, 90)"
        for way in (COPY, BLOCKS)
    ]
    assert planned(permuted, 4, CPU).hindrances == tuple(lines)
    assert planned(permuted, 4, GPU).hindrances == tuple(lines[:1])  # through tiles, which are what there is


def test_what_the_output_does_is_said() -> None:
    every_second = Layout.of((256,), (2,))
    plan = planned(Layout.packed((256,)), 4, CPU, every_second)
    assert plan.hindrances == tuple(
        f"{way}neighbours of a row lie 8 bytes apart in the output" for way in (COPY, BLOCKS)
    )
    interleaved = Layout.of((3, 40), (41, 2))
    plan = planned(Layout.packed((3, 40)), 1, CPU, interleaved)
    assert "neighbours of a row lie 2 bytes apart in the output" in plan.hindrances[0]
    woven = Layout.of((2, 300, 32), (16, 33 * 32, 33))
    assert not woven.overlaps
    assert all(way in str(planned(Layout.packed(woven.sizes), 1, CPU, woven)) for way in (COPY, BLOCKS))


def test_a_buffer_without_room_is_said() -> None:
    """Below the size from which the end is cut off."""
    backwards = Layout.of((300,), (-1,), 300)
    room = 301 * 4 // 16 * 16
    assert (
        f"{BLOCKS}a buffer ends inside the last of them"
        in planned(backwards, 4, CPU, source_room_nbytes=room).hindrances
    )
    assert len(planned(backwards, 4, CPU, source_room_nbytes=room + 16).hindrances) == 1


def test_a_piece_that_is_even_though_the_whole_is_not() -> None:
    limits = Limits(2048, 32, 65535, CPU)
    plan = plan_copy(Layout.of((4098,), (1,), 1), Layout.packed((4098,)), 1, Terms(limits))
    assert len(plan.steps) > 2
    assert all(line.startswith((COPY, VECTORS, BLOCKS)) for line in plan.hindrances)
    assert not any(line.endswith(": ") for line in plan.hindrances)


def test_what_is_fastest_has_nothing_in_its_way() -> None:
    assert planned(Layout.packed((64, 64)), 4, CPU).hindrances == ()
    assert planned(Layout.packed((0, 64)), 4, CPU).hindrances == ()
    assert planned(Layout.of((32, 16), (32, 1)), 16, CPU).hindrances == (
        f"{COPY}one each for 32 rows of 256 bytes",
    )


def windows(extents: tuple[int, ...], *, steps: int = 1, flips: int = 0) -> Windows:
    bits = np.array([flips, 0], np.uint32)
    sizes_steps = (*[1] * (len(extents) - 1), steps)
    return Windows(extents, sizes_steps, bits, np.zeros((2, len(extents)), np.int32), 4, False, None)


BYTE = (2, 8, 64)
WINDOWS: dict[str, tuple[Windows, Layout, Layout | None, int, str]] = {
    "steps": (windows((8, 191), steps=2), Layout.packed((64, 256)), None, 1, "steps of 2 inside of rows"),
    "apart": (
        windows((8, 64)),
        Layout.of((64, 256), (512, 2)),
        None,
        1,
        "neighbours of a window are none in the input",
    ),
    "padded": (
        windows((8, 64)),
        Layout.packed((64, 256)),
        Layout.of(BYTE, (1024, 128, 1)),
        1,
        "the output is not packed",
    ),
    "short": (
        windows((8, 63)),
        Layout.packed((64, 256)),
        None,
        1,
        "rows of 63 bytes are too short for blocks of 16 bytes",
    ),
    "long": (
        windows((1, 64)),
        Layout.of((1, I32_MAX), (I32_MAX, 1)),
        None,
        1,
        f"a dimension of {I32_MAX} is too long to count from outside of it",
    ),
    "pixels": (
        windows((8, 16, 16), flips=2),
        Layout.packed((64, 256, 16), 1),
        None,
        1,
        "16 elements that keep their order in a mirrored row, at most 15",
    ),
    "empty": (windows((8, 64)), Layout.packed((0, 64)), None, 1, "the input is empty"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_say_why_they_go_by_elements(name: str) -> None:
    asked, source, target, itemsize, said = WINDOWS[name]
    limits = Limits(2**31, 32, 65535, CPU)
    plan = plan_extract_windows(
        asked, source, target or Layout.packed((2, *asked.sizes)), itemsize, Terms(limits)
    )
    assert plan.steps
    assert all(str(step).endswith(f"windows, element by element: {said}") for step in plan.steps)


def test_windows_without_room_say_so() -> None:
    limits = Limits(2**31, 32, 65535, CPU)
    asked, source, target = windows((8, 65)), Layout.packed((64, 256)), Layout.packed((2, 8, 65))
    for terms in (
        Terms(limits, source_room_nbytes=64 * 256 - 16),
        Terms(limits, target_room_nbytes=2 * 8 * 65 // 16 * 16 - 16),
    ):
        last = plan_extract_windows(asked, source, target, 1, terms).steps[-1]
        assert str(last).endswith("element by element: the buffer ends inside a vector of 16 bytes")
