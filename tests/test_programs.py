"""Captured programs: replayed on other tensors, they give what the function gives, and make nothing anew."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import wgpu
from hosts.python import as_arrays
from numpy.typing import NDArray
from running import Compile, created, noted

import wgslice as wg
from wgslice.gpu.pipelines import MIN_REUSED_NBYTES
from wgslice.plans.kernels import Kernel
from wgslice.plans.steps import Dispatch
from wgslice.shaders import kernel_module

SHAPE = (6, 10)


class Halves(NamedTuple):
    first: Any
    rest: Any


def views(x: Any, y: Any) -> Any:
    return {"flipped": x[:, ::-2].copy(), "view": x[1:, 2:], "transposed": [y.T.copy(), x[2]]}


def writes(x: Any, y: Any) -> Any:
    y[1:3] = x[::-1][:2]
    y[0] = np.arange(10)
    x[:, 3] = 7
    return None


def joins(x: Any, y: Any) -> Any:
    both = np.stack([x, y])
    both[0, 1:3] = y[2:4]
    return np.concatenate([both[0], x]), np.pad(both, ((0, 0), (1, 1), (2, 0)), constant_values=5)


def indices(x: Any, y: Any) -> Any:
    rows = np.array([3, 0, 5, 3])
    y[[4, 1]] = x[:2]
    return x[rows], y[:, [9, 0, 2]], np.take_along_axis(x, np.zeros((1, 10), np.int64), 0)


def constants(x: Any, y: Any) -> Any:
    of_tensors = isinstance(x, wg.Tensor)
    asarray = partial(wg.asarray, device=x.device) if of_tensors else np.asarray
    table = asarray(np.arange(10, dtype=np.int32))
    changed = np.zeros_like(x)
    changed[2] = x[0]  # other rows are zeros in every replay
    first = asarray(np.ones(10, np.int32))
    kept = first.copy()
    first[:4] = x[0, :4]
    first[4:6] = np.array([8, 9], np.int32)
    return table, changed, first, kept


FUNCTIONS = [views, writes, joins, indices, constants]


def made(seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-1000, 1000, (2, *SHAPE), dtype=np.int32)
    return x, y


def check_replay(device: wg.Device, program: wg.Program, function: Callable[..., Any], seed: int) -> None:
    """Compare what a program returns and writes with what its function does with arrays."""
    arrays = made(seed)
    tensors = [wg.asarray(each, device=device) for each in arrays]
    returned = as_arrays(program(x=tensors[0], y=tensors[1]))
    expected = as_arrays(function(*arrays))
    assert len(returned) == len(expected)
    for one, other in zip([*returned, *map(np.asarray, tensors)], [*expected, *arrays], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_replays_give_what_the_function_gives(device: wg.Device, function: Callable[..., Any]) -> None:
    x, y = (wg.asarray(each, device=device) for each in made(0))
    program = wg.capture(function, x=x, y=y)
    for each, before in zip((x, y), made(0), strict=True):
        assert np.array_equal(each.numpy(), before)  # nothing ran
    for seed in (1, 1, 2):
        check_replay(device, program, function, seed)


def test_a_second_replay_reads_what_changed_in_the_same_buffers(device: wg.Device) -> None:
    x = wg.asarray(np.arange(8, dtype=np.uint8), device=device)
    program = wg.capture(lambda x: x[::-1].copy(), x=x)
    assert program(x=x).numpy().tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    x[2:4] = 9
    assert program(x=x).numpy().tolist() == [7, 6, 5, 4, 9, 9, 1, 0]


def test_other_tensors_of_the_function_stay_those_of_the_capture(device: wg.Device) -> None:
    state = wg.zeros(4, np.float32, device=device)
    x = wg.asarray(np.arange(4, dtype=np.float32), device=device)

    def step(x: wg.Tensor) -> None:
        state[1:] = state[:3].copy()
        state[0] = x[3]

    program = wg.capture(step, x=x)
    program(x=x)
    program(x=wg.asarray(np.full(4, 8, np.float32), device=device))
    assert state.numpy().tolist() == [8, 3, 0, 0]


def test_buffers_and_offsets_are_bound_as_tensors_are(device: wg.Device) -> None:
    data = np.arange(600, dtype=np.float32)
    x = wg.asarray(data, device=device)
    program = wg.capture(lambda x: x[::-3].copy(), x=x[64:84])  # 256 bytes from the start
    for start in (0, 128, 512):
        assert np.array_equal(program(x=(x.buffer, 4 * start)).numpy(), data[start : start + 20][::-3])
        assert np.array_equal(program(x=x[start : start + 20]).numpy(), data[start : start + 20][::-3])
    with pytest.raises(
        ValueError, match=r"^<lambda>: x: the element at index 0 is 4 bytes after a multiple of"
    ):
        program(x=x[1:21])


def test_a_result_has_the_functions_types(device: wg.Device) -> None:
    x = wg.asarray(np.arange(6, dtype=np.int32), device=device)
    program = wg.capture(lambda x: Halves(x[:3], [x[3:].copy()]), x=x)
    found = program(x=x)
    assert type(found) is Halves
    assert found.first.numpy().tolist() == [0, 1, 2]
    assert [each.numpy().tolist() for each in found.rest] == [[3, 4, 5]]


def test_tensors_without_elements_are_parameters(device: wg.Device) -> None:
    x = wg.zeros((0, 3), np.float32, device=device)
    program = wg.capture(lambda x: (x.copy(), wg.roll(x, 1, 1)), x=x)
    assert [each.shape for each in program(x=wg.zeros((0, 3), np.float32, device=device))] == [(0, 3), (0, 3)]


def test_a_record_runs_with_the_callers_commands(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12, dtype=np.int16).reshape(3, 4), device=device)
    program = wg.capture(lambda x: (x.T.copy(), x[:, 1:].copy()), x=x)
    encoder = device.wgpu_device.create_command_encoder()
    transposed, cut = program.record(encoder, x=x)
    device.queue.submit([encoder.finish()])
    assert np.array_equal(transposed.numpy(), x.numpy().T)
    assert np.array_equal(cut.numpy(), x.numpy()[:, 1:])


def test_a_cache_step_moves_by_its_offsets_and_makes_nothing(device: wg.Device) -> None:
    """1,000 replays at moving positions: only encoders and their command buffers are made."""
    heads, capacity, width = 2, 64, 4
    cache = wg.zeros((heads, capacity, width), np.float16, device=device)
    token = wg.zeros((1, heads, 1, width), np.float16, device=device)
    position = wg.zeros((1, 3), np.int32, device=device)
    assert token.buffer is not position.buffer  # what is given out is found alive by the first call

    def step(cache: wg.Tensor, token: wg.Tensor, position: wg.Tensor) -> wg.Tensor:
        wg.insert_windows(cache, position, token, overlap="last")
        return wg.extract_windows(cache, position, (heads, 8, width), outside="clamp")

    program = wg.capture(step, cache=cache, token=token, position=position)
    window = program(cache=cache, token=token, position=position)
    rng = np.random.default_rng(0)
    expected = np.zeros(cache.shape, np.float16)
    program(cache=cache, token=token, position=position, out=window)
    cache[...] = 0
    with created() as made:
        for count in range(1000):
            at, values = int(rng.integers(capacity)), rng.random((heads, 1, width)).astype(np.float16)
            device.queue.write_buffer(position.buffer, 0, np.array([0, at, 0], np.int32))
            device.queue.write_buffer(token.buffer, 0, values)
            made.clear()
            program(cache=cache, token=token, position=position, out=window)
            assert made == {"wgpuDeviceCreateCommandEncoder": 1}
            expected[:, at : at + 1] = values
            if count % 250 == 0:
                start = min(at, capacity - 8)
                assert np.array_equal(window.numpy()[0], expected[:, start : start + 8])
    assert np.array_equal(cache.numpy(), expected)


def test_tensors_used_one_after_another_share_a_buffer(device: wg.Device) -> None:
    def chain(x: Any) -> Any:
        for _ in range(6):
            x = x.T[::-1].copy()
        return x

    array = np.arange(600, dtype=np.uint32).reshape(20, 30)
    x = wg.asarray(array, device=device)
    program = wg.capture(chain, x=x)
    with noted(device, "new_buffer", lambda size, usage: size) as sizes:
        found = [program(x=x).numpy() for _ in range(2)]
    assert sizes.count(array.nbytes) == 3  # two in turn, and that of the result
    expected = chain(array)
    assert all(np.array_equal(each, expected) for each in found)


def test_the_last_writer_wins_in_each_replay(device: wg.Device) -> None:
    """Winner indices of an earlier replay, with other offsets, do not count."""
    values = np.arange(1, 9, dtype=np.int32).reshape(4, 2)
    x, y = wg.zeros(16, np.int32, device=device), wg.zeros(16, np.int32, device=device)
    windows = wg.asarray(values, device=device)
    offsets = wg.zeros((4, 1), np.int32, device=device)

    def step(x: wg.Tensor, y: wg.Tensor, windows: wg.Tensor, offsets: wg.Tensor) -> None:
        wg.insert_windows(x, offsets, windows, overlap="last")
        y[offsets[:, 0]] = windows[:, 1]

    program = wg.capture(step, x=x, y=y, windows=windows, offsets=offsets)
    by_windows, by_indices = np.zeros((2, 16), np.int32)
    for seed in range(6):
        starts = np.random.default_rng(seed).integers(0, 6, (4, 1)).astype(np.int32)
        offsets[...] = starts
        program(x=x, y=y, windows=windows, offsets=offsets)
        for (start,), pair in zip(starts, values, strict=True):
            by_windows[start : start + 2] = pair
            by_indices[start] = pair[1]
        assert np.array_equal(x.numpy(), by_windows)
        assert np.array_equal(y.numpy(), by_indices)


def test_a_printed_program_lists_its_plans(device: wg.Device) -> None:
    x = wg.zeros((4, 8), np.float32, device=device)
    program = wg.capture(lambda x: x[:, ::-1].copy(), x=x)
    assert program.input_names == ("x",)
    assert str(program).startswith("<lambda>(x: float32 (4, 8)) -> float32 (4, 8): 1 plan in 1 submission; ")
    assert "strategy    " in str(program)
    assert len(program.plans) == 1


def test_what_cannot_be_captured_is_refused(device: wg.Device) -> None:
    x = wg.asarray(np.arange(4, dtype=np.float32), device=device)
    with pytest.raises(wg.CaptureRefused, match="16 bytes are read back, which a captured call cannot do"):
        wg.capture(lambda x: x.numpy(), x=x)
    with pytest.raises(wg.CaptureRefused, match="read back, which a captured call cannot do"):
        wg.capture(lambda x, mask: x[mask], x=x, mask=wg.zeros(4, bool, device=device))
    texture = device.wgpu_device.create_texture(
        size=(2, 2, 1), format="r32float", usage=wgpu.TextureUsage.COPY_SRC
    )
    with pytest.raises(wg.CaptureRefused, match="textures are copied, which no program does"):
        wg.capture(lambda x: wg.from_texture(texture), x=x)
    with pytest.raises(TypeError, match="the result is of type int: must be a Tensor"):
        wg.capture(lambda x: 3, x=x)
    with pytest.raises(TypeError, match="capture: no tensors: give the function's arguments by name"):
        wg.capture(lambda: None)
    with pytest.raises(ValueError, match="capture: two tensors share a buffer"):
        wg.capture(lambda x, y: None, x=x, y=x[1:])
    program = wg.capture(lambda x: x.copy(), x=x)
    with pytest.raises(wg.CaptureRefused, match="a program is replayed, which an explained call cannot do"):
        wg.explain(program, x=x)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (lambda x, y: {"x": x}, TypeError, "given x: the parameters are x, y"),
        (lambda x, y: {"x": x, "y": y.view(np.uint32)}, TypeError, "y: dtype uint32: captured with float32"),
        (
            lambda x, y: {"x": x, "y": y[:3]},
            ValueError,
            r"y: shape \(3,\) with strides \(1,\): captured with",
        ),
        (lambda x, y: {"x": x, "y": 3}, TypeError, "of type int: must be a wgpu.GPUBuffer"),
        (lambda x, y: {"x": x, "y": y.numpy()}, TypeError, r"or a Tensor, which asarray\(array\) makes"),
        (lambda x, y: {"x": x, "y": x}, ValueError, "y: another parameter has the same buffer, and one of"),
        (
            lambda x, y: {"x": x, "y": wg.broadcast_to(y[:1].copy(), (4,))},
            ValueError,
            r"y: shape \(4,\) with strides \(0,\)",
        ),
    ],
)
def test_what_is_not_as_captured_is_refused(
    device: wg.Device, given: Callable[..., Any], error: type[Exception], says: str
) -> None:
    x, y = (wg.asarray(np.arange(4, dtype=np.float32), device=device) for _ in range(2))
    program = wg.capture(lambda x, y: wg.copyto(y, x[::-1]), x=x, y=y)
    with pytest.raises(error, match=says):
        program(**given(x, y))
    assert y.numpy().tolist() == [0, 1, 2, 3]


def test_a_destroyed_buffer_is_noticed(device: wg.Device) -> None:
    x = wg.asarray(np.arange(4, dtype=np.float32), device=device)
    program = wg.capture(lambda x: x[::-1].copy(), x=x)
    program(x=x)
    x.buffer.destroy()
    with pytest.raises(ValueError, match="x: the buffer has been destroyed"):
        program(x=x)


def test_a_dropped_program_frees_its_buffers_at_once(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12).reshape(3, 4), device=device)
    program = wg.capture(lambda x: x.T.copy(), x=x)
    result = program(x=x)
    found = [weakref.ref(program), weakref.ref(result.memory)]
    gc.disable()
    try:
        del program, result
        assert [each() for each in found] == [None, None]
    finally:
        gc.enable()


def reused(x: Any, table: Any) -> list[Any]:
    """What one array and one index, changed between their uses, give in calls that upload them."""
    is_tensor = isinstance(x, wg.Tensor)
    array, at = np.zeros(2000, np.int32), np.zeros(2, np.int64)
    found = []
    for k in (1, 2):
        array[:], at[:] = k, (k, k + 3)
        assigned, placed = table.copy(), table.copy()
        assigned[2:4] = array[:2]
        assigned[at] = array[:2]
        if is_tensor:
            wg.insert_windows(placed, at[:, None], array[:2, None])
        else:
            placed[at] = array[:2]
        uploaded = wg.asarray(array, device=x.device) if is_tensor else array.copy()
        found += [assigned, placed, np.concatenate([x, array]), uploaded, table[at]]
    array[:], at[:] = 9, 0
    return found


def test_arrays_have_the_values_of_each_use(device: wg.Device, tmp_path: Path) -> None:
    x, table = (wg.asarray(np.arange(6, dtype=np.int32) + k, device=device) for k in (0, 100))
    program = wg.capture(lambda x: reused(x, table), x=x)
    program.save(tmp_path / "saved")
    expected = reused(x.numpy(), table.numpy())
    for each in (program, wg.load_program(tmp_path / "saved", device)):
        for one, other in zip(each(x=x), expected, strict=True):
            assert one.numpy().tolist() == other.tolist()


def recorded_step(device: wg.Device, x: wg.Tensor, encoder: Any) -> wg.Tensor:
    """The result of commands that write a tensor and read another one, which nothing else refers to."""
    read, written = (wg.asarray(np.full(MIN_REUSED_NBYTES, k, np.uint8), device=device) for k in (7, 1))

    def step(x: wg.Tensor) -> wg.Tensor:
        written[:8] = x
        return read[:8].copy()

    result: wg.Tensor = wg.capture(step, x=x).record(encoder, x=x)
    return result


def test_recorded_commands_keep_tensors_of_the_function(device: wg.Device) -> None:
    """Buffers of tensors that were dropped before the commands are submitted are not reused."""
    x = wg.asarray(np.arange(8, dtype=np.uint8), device=device)
    encoder = device.wgpu_device.create_command_encoder()
    result = recorded_step(device, x, encoder)
    others = [wg.asarray(np.full(MIN_REUSED_NBYTES, 99, np.uint8), device=device) for _ in range(3)]
    device.queue.submit([encoder.finish()])
    assert result.numpy().tolist() == [7] * 8
    assert all((other.numpy() == 99).all() for other in others)


@pytest.mark.parametrize("early", [True, False], ids=["before the first call", "after it"])
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1]], ids=["copied", "bound"])
def test_a_destroyed_tensor_of_the_function_is_refused(
    device: wg.Device, tmp_path: Path, key: slice, early: bool
) -> None:
    x, read = (wg.asarray(np.arange(4, dtype=np.float32), device=device) for _ in range(2))
    written = wg.zeros(4, np.float32, device=device)

    def step(x: wg.Tensor) -> wg.Tensor:
        written[...] = x[key]
        return read[key].copy()

    for destroyed in (read, written):
        program = wg.capture(step, x=x)
        if not early:
            program(x=x)
        destroyed.buffer.destroy()
        with pytest.raises(
            ValueError, match=r"^step: a tensor of the function .*: the buffer has been destroyed"
        ):
            program(x=x)
        with pytest.raises(ValueError, match="the buffer has been destroyed"):
            program.save(tmp_path / "saved")
        read = wg.asarray(np.arange(4, dtype=np.float32), device=device)
    assert x.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("writes", [True, False])
def test_a_parameter_may_be_a_tensor_of_the_function_if_read(device: wg.Device, writes: bool) -> None:
    x, table = (wg.asarray(np.arange(4, dtype=np.float32) + k, device=device) for k in (0, 9))

    def step(x: wg.Tensor) -> wg.Tensor:
        if writes:
            table[::-1] = x
        return wg.concat([x[::-1], table[::2]])

    program = wg.capture(step, x=x)
    if writes:
        with pytest.raises(
            ValueError, match=r"x: a tensor of the function .* has the same buffer, and one of"
        ):
            program(x=table)
        assert table.numpy().tolist() == [9, 10, 11, 12]
    else:
        assert program(x=table).numpy().tolist() == [12, 11, 10, 9, 9, 11]


def test_threads_replay_a_program_on_their_own_tensors(device: wg.Device) -> None:
    table = wg.asarray(np.arange(64, dtype=np.uint8), device=device)

    def step(x: wg.Tensor, out: wg.Tensor) -> None:
        out[::2], out[1::2] = x[::-1].copy(), table[:32]

    given = [
        (wg.asarray(np.full(32, k, np.uint8), device=device), wg.zeros(64, np.uint8, device=device))
        for k in range(4)
    ]
    program = wg.capture(step, x=given[0][0], out=given[0][1])

    def replay(pair: tuple[wg.Tensor, wg.Tensor]) -> list[int]:
        x, out = pair
        for k in range(20):
            x[k] = 100 + k
            program(x=x, out=out)
        found: list[int] = out.numpy().tolist()
        return found

    with ThreadPoolExecutor() as threads:
        results = list(threads.map(replay, given))
    for k, found in enumerate(results):
        assert found[::2] == [*[k] * 12, *range(119, 99, -1)]
        assert found[1::2] == [*range(32)]


def test_tensors_of_another_device_are_refused(device: wg.Device) -> None:
    x = wg.zeros(4, np.float32, device=device)
    other = wg.zeros(4, np.float32, device=wg.Device.request(device.adapter))
    for function in (lambda x: wg.copyto(other, other[::-1].copy()), lambda x: other):
        with pytest.raises(ValueError, match=r"^capture: the (function uses|result has) tensors of"):
            wg.capture(function, x=x)


def test_programs_avoid_kernels_that_fail_the_self_test(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, compile_modules: Compile
) -> None:
    """One that writes nothing."""
    monkeypatch.setattr(device, "limits", device.limits)
    data = np.arange(5000, dtype=np.int32)
    x, kept = wg.asarray(data, device=device), wg.asarray(data, device=device)

    def function(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        return x[::-1].copy(), wg.asarray(data[:9], device=device)

    plan, _ = wg.capture(function, x=x).plans
    (kernel,) = (step.kernel for step in plan.steps if isinstance(step, Dispatch))

    def module(each: Kernel) -> str:
        text, begin = kernel_module(each), "(own: Invocation) {"
        return (
            text.replace(begin, f"{begin} if (own.index < 9999u) {{ return; }}") if each is kernel else text
        )

    compile_modules(module)
    program = wg.capture(function, x=x)
    before = program(x=x)
    assert not before[0].numpy().any()
    device.update_limits(lambda limits: replace(limits, disabled=frozenset({kernel})))
    again, _ = program.plans
    assert kernel not in [getattr(step, "kernel", None) for step in again.steps]
    x[0] = 7
    after = program(x=x)
    assert after[0].numpy().tolist() == [*range(4999, 0, -1), 7]
    assert after[1].numpy().tolist() == [*range(9)]
    assert not before[0].numpy().any()  # an earlier result stays what it is
    assert (kept.numpy() == data).all()
    device.update_limits(lambda limits: replace(limits, disabled=frozenset()))
    assert [step.name for step in program.plans[0].steps] == [step.name for step in plan.steps]
    assert not program(x=x)[0].numpy().any()
