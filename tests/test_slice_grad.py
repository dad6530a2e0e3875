"""SliceGrad: NumPy's elements, and the identity that ties it to Slice1.

The case's window, with its output as the gradient, and its input as what receives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import (
    Bytes,
    check_bytes,
    check_refused,
    check_same,
    make_buffer,
    numpy_window,
    random_bytes,
    read_buffer,
    view_bytes,
)
from hypothesis import given
from hypothesis import strategies as st
from planning import HEADS_AND_TAILS, buffer_copies_of, dispatches_of, planned_gradient, preferring, priced
from reference.plans import run_plan
from running import Limit
from strategies import Case, cases

import wgslice as wg
from wgslice.dialects.window import Window
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU
from wgslice.plans.steps import UNIT_GRIDS


@dataclass(frozen=True)
class Gradient(Case):
    """A gradient, which is what the window of a case writes, and what receives it."""

    @property
    def sides(self) -> tuple[Layout, Layout]:
        return self.output, self.input

    def expected(self, source: Bytes, target: Bytes) -> Bytes:
        """A copy of the buffer that receives the gradient, after NumPy has written it."""
        result = target.copy()
        view = view_bytes(result, self.input, self.width)
        view[...] = np.zeros((), f"V{self.width}")
        numpy_window(view, self.window)[...] = view_bytes(source, self.output, self.width)
        return result


def gradients() -> st.SearchStrategy[Gradient]:
    return cases().filter(lambda case: not case.input.overlaps).map(lambda case: Gradient(**vars(case)))


@pytest.mark.every_adapter
@given(case=gradients())
def test_any_gradient_recorded_on_the_callers_buffers(device: wg.Device, case: Gradient) -> None:
    """Every byte of the output: the window, the zeros, and what belongs to no element."""
    found = case.recorded(device, wg.SliceGrad(*case.described, *case.window[:3]))
    check_bytes(found, case.expected(*case.buffers()))


PREFERRED = [
    preferring(CPU, copies=True),
    preferring(CPU, Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SUBWORD_ROWS),
    preferring(GPU, Kernel.SHIFTED_GRID, *UNIT_GRIDS),
]


@given(case=gradients(), profile=st.sampled_from([CPU, GPU, *PREFERRED]), copyable=st.booleans())
def test_each_byte_of_a_gradient_is_written_once_or_cleared(
    case: Gradient, profile: Any, copyable: bool
) -> None:
    """The plan on reference implementations, whatever costs least; what is no clear writes nothing twice."""
    window, width = Window.of(*case.window[:3]).ranges(case.output.sizes), case.width
    g, target = case.buffers()
    result = target.copy()
    plan = planned_gradient(profile, case.output, case.input, window, width, copy_to=copyable)
    run_plan(plan, g, result)
    check_bytes(result, case.expected(g, target))
    written_nbytes = sum(step.source.size * step.nbytes for step in buffer_copies_of(plan))
    for step in dispatches_of(plan):
        written_nbytes += step.target.size * step.width_nbytes * (step.kernel not in HEADS_AND_TAILS)
    cleared = "clear of" in str(plan)
    assert written_nbytes == (case.output if cleared else case.input).size * width
    zeroed = target.copy()
    view_bytes(zeroed, case.input, width)[...] = np.zeros((), f"V{width}")
    run_plan(planned_gradient(profile, case.output, case.input, window, width, zeroed=True), g, zeroed)
    check_bytes(zeroed, case.expected(g, target))


@given(case=cases())
def test_a_gradient_is_the_adjoint_of_its_slice(device: wg.Device, case: Case) -> None:
    """sum(slice1(x) * g) == sum(x * slice_grad(g)), on integers, exactly."""
    rng = np.random.default_rng(case.seed)
    x = rng.integers(-1000, 1000, case.input.sizes)
    g = rng.integers(-1000, 1000, case.output.sizes)
    window = case.window[:3]
    y = wg.slice1(wg.asarray(x, device=device), *window, output_sizes=case.output.sizes).numpy()
    back = wg.slice_grad(wg.asarray(g, device=device), *window, output_sizes=x.shape)
    assert back.is_packed
    check_same(y, np.ascontiguousarray(numpy_window(x, case.window)))
    assert np.count_nonzero(back.numpy()) == np.count_nonzero(g)
    assert int((y * g).sum()) == int((x * back.numpy()).sum())
    out = wg.asarray(np.full(x.shape, 7), device=device)
    assert wg.slice_grad(wg.asarray(g, device=device), *window, output_sizes=x.shape, out=out) is out
    check_same(out.numpy(), back.numpy())


@pytest.mark.parametrize(
    ("taken", "clear_bytes_per_s", "cleared"),
    [(512, 16e9, True), (640, 20e9, False), (640, 22e9, True), (16, 5e9, False), (1024, 16e9, None)],
)
def test_a_gradient_is_cleared_first_where_that_is_quicker(
    taken: int, clear_bytes_per_s: float, cleared: bool | None
) -> None:
    """4 MiB in 210 us and 1 us at 20 GB/s, or 1.5 MiB in 197 us and 5 us at 8 GB/s, here."""
    window = range(taken), range(1024)
    sides = Layout.packed((taken, 1024)), Layout.packed((1024, 1024))
    profile = priced(
        CPU,
        lambda *_: (0.0, 8e9),
        dispatch_s=5e-6,
        copy_s=1e-6,
        clear_bytes_per_s=clear_bytes_per_s,
    )
    plan = planned_gradient(profile, *sides, window)
    assert ("clear of" in str(plan)) == (cleared is True)
    assert ("from zeros" in str(plan)) == (cleared is False)
    seconds = [choice.seconds for choice in plan.choices]
    assert seconds == sorted(seconds)
    assert plan.seconds == pytest.approx(seconds[0])


def test_a_gradient_within_one_buffer(device: wg.Device) -> None:
    for start in (0, 3, 12):
        array = np.arange(24, dtype=np.uint8)
        x = wg.asarray(array, device=device)
        expected = array.copy()
        expected[start : start + 10] = 0
        expected[start + 2 : start + 8] = array[4:10][::-1]
        g = x[4:10]
        wg.slice_grad(g, [2], [6], [-1], output_sizes=[10], out=x[start : start + 10])
        assert x.numpy().tolist() == expected.tolist()


def test_a_clear_needs_whole_words(device: wg.Device) -> None:
    """One byte less or further along, and the zeros are written around the window instead."""
    for skip, nbytes, cleared in (
        (0, 64, True),
        (4, 60, True),
        (1, 63, False),
        (0, 63, False),
        (2, 62, False),
        (2, 60, False),
    ):
        target = Layout.packed((nbytes,), skip)
        plan = planned_gradient(preferring(CPU, copies=True), Layout.packed((4,)), target, (range(5, 9),), 1)
        assert ("clear of" in str(plan)) == cleared
        poisoned = random_bytes(64)
        tensor = wg.from_buffer(make_buffer(device, poisoned), (nbytes,), np.uint8, offset=skip)
        wg.slice_grad(wg.asarray(poisoned[:4], device=device), [5], [4], output_sizes=[nbytes], out=tensor)
        expected = poisoned.copy()
        expected[skip:][:nbytes] = 0
        expected[skip + 5 :][:4] = poisoned[:4]
        check_bytes(read_buffer(tensor.buffer), expected)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"offsets": (0, 5)},
            wg.WindowError,
            r"offsets\[1\] \+ sizes\[1\] = .*: must be at most the output's size",
        ),
        ({"strides": (0, 1)}, wg.WindowError, r"strides\[0\] = 0"),
        ({"output_sizes": (4,)}, wg.WindowError, "a window of rank 2 on an output of rank 1"),
        ({"output_sizes": (4, -1)}, ValueError, r"shape\[1\] = -1"),
        ({"sizes": (1, 3)}, wg.WindowError, r"g sizes\[0\] = 2: must be 1 to 1"),
        ({"g": np.zeros((2, 3))}, TypeError, "g is of type ndarray"),
        ({"out": "4 x 5"}, ValueError, r"out has sizes \(4, 5\): must be output_sizes, \(4, 6\)"),
        ({"out": "int32"}, TypeError, "output has dtype int32, the input float32"),
        ({"out": "broadcast"}, ValueError, "two elements share bytes"),
    ],
)
def test_a_refused_gradient_touches_no_output(
    device: wg.Device, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    buffer = make_buffer(device, random_bytes(4 * 6 * 4, 3))
    outs: dict[str, Any] = {
        "int32": lambda: wg.from_buffer(buffer, (4, 6), np.int32),
        "broadcast": lambda: wg.from_buffer(buffer, (4, 6), np.float32, strides=(0, 1)),
        "4 x 5": lambda: wg.from_buffer(buffer, (4, 5), np.float32),
        "fits": lambda: wg.from_buffer(buffer, (4, 6), np.float32),
    }
    arguments: dict[str, Any] = {
        "g": wg.asarray(np.ones((2, 3), np.float32), device=device),
        "offsets": (1, 2),
        "sizes": (2, 3),
        "output_sizes": (4, 6),
        "out": "fits",
        **changes,
    }
    check_refused(wg.slice_grad, arguments, outs, error, message, buffer)


def test_a_gradients_descriptor_has_slice1s_rules() -> None:
    big, small = wg.TensorDesc("f4", (4, 6)), wg.TensorDesc("f4", (2, 3))
    descriptor = wg.SliceGrad(small, big, (1, 2), (2, 3), (1, -1))
    assert descriptor == wg.SliceGrad(small, big, (1, 2), (2, 3), (1, -1))
    assert (descriptor.offsets, descriptor.sizes, descriptor.strides) == ((1, 2), (2, 3), (1, -1))
    with pytest.raises(
        wg.WindowError, match=r"SliceGrad: offsets\[1\] \+ sizes\[1\] = 4 \+ 3 = 7: .* output's size 6"
    ):
        wg.SliceGrad(small, big, (1, 4), (2, 3))
    with pytest.raises(wg.WindowError, match=r"SliceGrad: input sizes\[1\] = 3: must be 1 to 2"):
        wg.SliceGrad(small, big, (1, 2), (2, 2))
    with pytest.raises(ValueError, match=r"SliceGrad: .*two elements share bytes"):
        wg.SliceGrad(small, wg.TensorDesc("f4", (4, 6), (0, 1)), (1, 2), (2, 3))


@pytest.mark.parametrize("profile", [preferring(CPU, copies=True), preferring(GPU, Kernel.ROWS)])
@pytest.mark.parametrize("key", [np.s_[8:24], np.s_[8:24:2]], ids=["buffer copy", "kernel"])
def test_a_refused_recording_records_nothing(
    device: wg.Device, limit: Limit, profile: Any, key: slice
) -> None:
    """A gradient whose input is destroyed: the encoder is submitted, and clears nothing."""
    limit(profile=profile)
    content = random_bytes(32 * 4)
    count = len(range(32)[key])
    operator = device.compile(
        wg.SliceGrad(wg.TensorDesc("f4", (count,)), wg.TensorDesc("f4", (32,)), (8,), (16,), (key.step or 1,))
    )
    g, out = make_buffer(device, content), make_buffer(device, content)
    encoder = device.wgpu_device.create_command_encoder()
    g.destroy()
    with pytest.raises(ValueError, match=r"SliceGrad: .*has been destroyed"):
        operator.record(encoder, input=g, output=out)
    device.wgpu_device.queue.submit([encoder.finish()])
    check_bytes(read_buffer(out), content)


def test_a_large_gradient_is_planned_without_a_walk_through_it() -> None:
    """Of 700 million indices, which took 20 s to go through."""
    window = (range(5, 2**31, 3),)
    sides = Layout.packed((len(window[0]),)), Layout.packed((window[0][-1] + 1,))
    plan = planned_gradient(preferring(CPU, Kernel.SLICE1), *sides, window, 1, copy_to=False)
    zeros = [step.target.sizes for step in dispatches_of(plan) if " from zeros" in str(step)]
    assert zeros[0] == (5,)
    assert sum(step.target.size for step in dispatches_of(plan)) == sides[1].size
