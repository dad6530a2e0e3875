"""Captured programs: replayed on other tensors, they give what the function gives, and make nothing anew."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import wgpu
from numpy.typing import NDArray
from running import created

import wgslice as wg

SHAPE = (6, 10)


class Halves(NamedTuple):
    first: Any
    rest: Any


def as_arrays(result: Any) -> list[NDArray[Any]]:
    """The arrays of a nested result, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for each in result for array in as_arrays(each)]
    return [] if result is None else [np.asarray(result)]


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
    again, _ = program.record(encoder, x=x)
    device.queue.submit([encoder.finish()])
    assert again.buffer is transposed.buffer
    assert np.array_equal(transposed.numpy(), x.numpy().T)
    assert np.array_equal(cut.numpy(), x.numpy()[:, 1:])


def test_a_cache_step_moves_by_its_offsets_and_makes_nothing(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 replays at moving positions: only encoders and their command buffers are made."""
    heads, capacity, width = 2, 64, 4
    cache = wg.zeros((heads, capacity, width), np.float16, device=device)
    token = wg.zeros((1, heads, 1, width), np.float16, device=device)
    position = wg.zeros((1, 3), np.int32, device=device)

    def step(cache: wg.Tensor, token: wg.Tensor, position: wg.Tensor) -> wg.Tensor:
        wg.insert_windows(cache, position, token, overlap="last")
        return wg.extract_windows(cache, position, (heads, 8, width), outside="clamp")

    program = wg.capture(step, cache=cache, token=token, position=position)
    window = program(cache=cache, token=token, position=position)
    rng = np.random.default_rng(0)
    expected = np.zeros(cache.shape, np.float16)
    with created(monkeypatch) as made:
        for count in range(1000):
            at, values = int(rng.integers(capacity)), rng.random((heads, 1, width)).astype(np.float16)
            device.queue.write_buffer(position.buffer, 0, np.array([0, at, 0], np.int32))
            device.queue.write_buffer(token.buffer, 0, values)
            made.clear()
            program(cache=cache, token=token, position=position)
            assert made == {"wgpuDeviceCreateCommandEncoder": 1}
            expected[:, at : at + 1] = values
            if count % 250 == 0:
                start = min(at, capacity - 8)
                assert np.array_equal(window.numpy()[0], expected[:, start : start + 8])
    assert np.array_equal(cache.numpy(), expected)


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
    buffer = weakref.ref(result.memory)
    gc.disable()
    try:
        del program, result
        assert buffer() is None
    finally:
        gc.enable()
