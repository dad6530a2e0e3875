"""Results of captured programs: in buffers of their own, or in tensors that a call names."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from running import created

import wgslice as wg

Capture = Callable[..., wg.Program]


@pytest.fixture(params=["captured", "loaded", "loaded, trusted"])
def capture(request: pytest.FixtureRequest, device: wg.Device, tmp_path: Path) -> Capture:
    """Captures a function; the program is used itself, or saved and loaded."""

    def make(function: Callable[..., Any], **tensors: wg.Tensor) -> wg.Program:
        program = wg.capture(function, **tensors)
        if request.param == "captured":
            return program
        program.save(tmp_path / "saved")
        return wg.load_program(tmp_path / "saved", device, trusted="trusted" in request.param)

    return make


@contextmanager
def without_collector() -> Iterator[None]:
    """Cycles of references stay."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Parts(NamedTuple):
    flipped: Any
    given: Any
    others: Any


DATA = np.arange(24, dtype=np.uint8).reshape(4, 6)


def parts(x: Any) -> Parts:
    """Results of a kernel, of an upload and of zeros that nothing writes, and a view of the parameter."""
    is_tensor = isinstance(x, wg.Tensor)
    asarray = (lambda array: wg.asarray(array, device=x.device)) if is_tensor else np.array
    zeros = wg.zeros(5, np.uint8, device=x.device) if is_tensor else np.zeros(5, np.uint8)
    return Parts(x[:, ::-1].copy(), x[1:], {"upload": asarray(DATA[0]), "zeros": zeros})


def listed(found: Any) -> Any:
    """The values of a result of `parts`, of which a loaded program makes a plain tuple."""
    flipped, given, others = found
    return [flipped.tolist(), given.tolist(), {name: each.tolist() for name, each in others.items()}]


def tensor(device: wg.Device, number: int = 0) -> wg.Tensor:
    return wg.asarray(DATA + np.uint8(50 * number), device=device)


@pytest.mark.every_adapter
def test_results_that_are_held_keep_their_elements(device: wg.Device, capture: Capture) -> None:
    program = capture(parts, x=tensor(device))
    inputs = [tensor(device, number) for number in range(4)]
    held = [program(x=x) for x in inputs]
    views = [program(x=x)[0][1:, ::2] for x in inputs]  # of results that are dropped
    for number in range(4):
        array = DATA + np.uint8(50 * number)
        assert listed(held[number]) == listed(parts(array))
        assert views[number].tolist() == array[1:, ::-2].tolist()


def test_what_a_caller_wrote_into_a_result_is_in_no_later_one(device: wg.Device, capture: Capture) -> None:
    x = tensor(device)
    program = capture(parts, x=x)
    for _ in range(6):
        found = program(x=x)
        assert listed(found) == listed(parts(DATA))
        for each in (found[0], *found[2].values()):
            each[...] = 77
        del found, each


def test_dropped_results_are_written_again_without_making_anything(
    device: wg.Device, capture: Capture
) -> None:
    inputs = [tensor(device, number) for number in range(3)]
    program = capture(parts, x=inputs[0])
    for x in inputs:
        program(x=x)
    with created() as made:
        for x in [*inputs, *inputs]:
            program(x=x)
    assert made == {"wgpuDeviceCreateCommandEncoder": 6}
    held = program(x=inputs[1])
    program(x=inputs[2])
    assert listed(held) == listed(parts(DATA + 50))


@pytest.mark.every_adapter
def test_threads_share_a_program(device: wg.Device, capture: Capture) -> None:
    """Each result is that of its own input, also after other threads have called."""
    program = capture(parts, x=tensor(device))

    def replay(number: int) -> list[int]:
        wrong, held = [], []
        x = tensor(device, number)
        for repeat in range(30):
            x[0, 0] = repeat
            expected = DATA + np.uint8(50 * number)
            expected[0, 0] = repeat
            held.append((program(x=x)[0], expected[:, ::-1]))
            wrong += [repeat for found, array in held[-3:] if found.tolist() != array.tolist()]
            del held[: -1 - repeat % 5]
        return wrong

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(replay, range(4))) == [[]] * 4


def test_a_result_is_an_input_of_the_next_call(device: wg.Device, capture: Capture) -> None:
    x = wg.asarray(np.arange(6, dtype=np.int16), device=device)
    program = capture(lambda x: wg.roll(x, 1), x=x)
    expected = x.numpy()
    for _ in range(5):
        x, expected = program(x=x), np.roll(expected, 1)
        assert x.tolist() == expected.tolist()


def test_a_returned_tensor_of_the_function_stays_that_tensor(device: wg.Device, capture: Capture) -> None:
    state = wg.zeros(4, np.int32, device=device)

    def step(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        state[1:] = state[:3].copy()
        state[0] = x[0]
        return state, x[::-1].copy()

    x = wg.asarray(np.array([7, 8], np.int32), device=device)
    program = capture(step, x=x)
    first, held = program(x=x)
    x[0] = 9
    second, _ = program(x=x)
    assert first.memory is second.memory
    assert first.tolist() == second.tolist() == [9, 7, 0, 0]
    assert held.tolist() == [8, 7]
    with pytest.raises(ValueError, match=r"step: x: a tensor of the function .* has the same buffer"):
        program(x=first[:2])
    with pytest.raises(TypeError, match=r"step: out\[0\] is given: must be None, since the function returns"):
        program(x=x, out=(wg.zeros(4, np.int32, device=device), None))


def test_a_result_whose_buffer_was_handed_out_is_never_written_again(
    device: wg.Device, capture: Capture
) -> None:
    x, other = tensor(device), tensor(device, 1)
    program = capture(lambda x: x.T.copy(), x=x)
    buffer = program(x=x).buffer
    for _ in range(3):
        program(x=other)
    assert wg.from_buffer(buffer, (6, 4), np.uint8).tolist() == DATA.T.tolist()
    buffer.destroy()
    assert program(x=other).tolist() == (DATA + 50).T.tolist()


# recorded


def test_recorded_results_are_written_by_no_other_call(device: wg.Device, capture: Capture) -> None:
    x, other = tensor(device), tensor(device, 1)
    program = capture(lambda x: x.T.copy(), x=x)
    program(x=x)
    encoder = device.wgpu_device.create_command_encoder()
    recorded = [program.record(encoder, x=x) for _ in range(2)]
    dropped = program.record(encoder, x=x)
    del dropped
    called = [program(x=other) for _ in range(3)]
    device.queue.submit([encoder.finish()])
    assert [each.tolist() for each in recorded] == [DATA.T.tolist()] * 2
    assert [each.tolist() for each in called] == [(DATA + 50).T.tolist()] * 3


def test_recordings_that_name_a_tensor_make_nothing(device: wg.Device) -> None:
    x = tensor(device)
    program = wg.capture(lambda x: x[::-1, ::-1].copy(), x=x)
    out = wg.empty((4, 6), np.uint8, device=device)
    encoder = device.wgpu_device.create_command_encoder()
    for _ in range(2):  # the second finds buffers alive, which the first has given out
        assert program.record(encoder, x=x, out=out) is out
    with created() as made:
        program.record(encoder, x=x, out=out)
    assert not made
    device.queue.submit([encoder.finish()])
    assert out.tolist() == DATA[::-1, ::-1].tolist()


# named by `out`


def guarded(device: wg.Device, shape: tuple[int, ...], dtype: Any, start: int) -> tuple[wg.Tensor, wg.Tensor]:
    """Bytes of 200, and a tensor among them from byte `start` on."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = wg.full(start + nbytes + 300, 200, np.uint8, device=device)
    return memory, memory[start : start + nbytes].view(dtype).reshape(shape)


@pytest.mark.every_adapter
@pytest.mark.parametrize("width", [5, 6, 16, 64])
@pytest.mark.parametrize("start", [0, 256, 6, 260])
def test_out_is_written_and_no_byte_around_it(
    device: wg.Device, capture: Capture, start: int, width: int
) -> None:
    """Directly where it can be bound, else by a copy: whole words or not, aligned or not."""
    arrays = [np.arange(3 * width, dtype=np.uint8).reshape(3, width) + np.uint8(k) for k in range(2)]
    program = capture(lambda x: x[::-1, ::-1].copy(), x=wg.asarray(arrays[0], device=device))
    memory, out = guarded(device, (3, width), np.uint8, start)
    for array in [*arrays, *arrays]:
        assert program(x=wg.asarray(array, device=device), out=out) is out
        assert out.tolist() == array[::-1, ::-1].tolist()
        around = memory.numpy()
        around[start : start + 3 * width] = 200
        assert (around == 200).all()


@pytest.mark.parametrize("start", [0, 6], ids=["bound", "copied"])
def test_zeros_and_uploads_are_written_into_out(device: wg.Device, capture: Capture, start: int) -> None:
    def function(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        zeros = wg.zeros(6, np.uint16, device=x.device)
        zeros[2:4] = x
        return zeros, wg.asarray(np.array([7, 8, 9], np.uint16), device=x.device)

    x = wg.asarray(np.array([1, 2], np.uint16), device=device)
    program = capture(function, x=x)
    memories, out = zip(*(guarded(device, (size,), np.uint16, start) for size in (6, 3)), strict=True)
    for _ in range(2):
        assert all(one is other for one, other in zip(program(x=x, out=out), out, strict=True))
        assert [each.tolist() for each in out] == [[0, 0, 1, 2, 0, 0], [7, 8, 9]]
        for memory, each in zip(memories, out, strict=True):
            assert memory.numpy().tolist().count(200) >= memory.size - each.nbytes
            each[...] = 5


def test_out_has_the_structure_of_the_result(device: wg.Device, capture: Capture) -> None:
    x = tensor(device)
    program = capture(parts, x=x)
    flipped, upload = wg.zeros((4, 6), np.uint8, device=device), wg.zeros(6, np.uint8, device=device)
    found = program(x=x, out=(flipped, None, {"upload": upload, "zeros": None}))
    assert listed(found) == listed(parts(DATA))
    assert (found[0] is flipped, found[2]["upload"] is upload) == (True, True)
    again = program(x=tensor(device, 1), out=Parts(None, None, None))
    assert listed(found) == listed(parts(DATA))
    assert listed(again) == listed(parts(DATA + 50))


def test_parts_of_one_buffer_are_named_apart(device: wg.Device, capture: Capture) -> None:
    x = tensor(device)
    program = capture(lambda x: (x[::-1].copy(), x[:, ::-1].copy()), x=x)
    batch = wg.zeros((3, 4, 6), np.uint8, device=device)
    program(x=x, out=(batch[0], batch[2]))
    assert batch.tolist() == [DATA[::-1].tolist(), np.zeros_like(DATA).tolist(), DATA[:, ::-1].tolist()]
    with pytest.raises(ValueError, match=r"out\[1\]: shares bytes with out\[0\]: give another tensor"):
        program(x=x, out=(batch[1], batch[1]))
    assert not batch[1].numpy().any()


def test_a_view_that_is_returned_is_written_into_one_with_its_strides(
    device: wg.Device, capture: Capture
) -> None:
    x = tensor(device)
    program = capture(lambda x: x.copy()[:, ::3], x=x)
    memory = wg.full((4, 6), 9, np.uint8, device=device)
    program(x=x, out=memory[:, ::3])
    expected = np.full((4, 6), 9, np.uint8)
    expected[:, ::3] = DATA[:, ::3]
    assert memory.tolist() == expected.tolist()


def test_a_parameter_named_out_is_that_parameter(device: wg.Device, capture: Capture) -> None:
    x, out = tensor(device), wg.zeros((4, 6), np.uint8, device=device)

    def function(x: wg.Tensor, out: wg.Tensor) -> wg.Tensor:
        out[...] = x[::-1]
        return x[:2].copy()

    program = capture(function, x=x, out=out)
    assert program(x=x, out=out).tolist() == DATA[:2].tolist()
    assert out.tolist() == DATA[::-1].tolist()
    with pytest.raises(TypeError, match="given x: the parameters are x, out"):
        program(x=x)


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        (lambda x, y, device: y.view(np.int8), TypeError, "out: dtype int8: captured with uint8"),
        (lambda x, y, device: y[:3], ValueError, r"out: shape \(3, 6\) with strides"),
        (lambda x, y, device: y.reshape(6, 4).T, ValueError, r"out: shape \(4, 6\) with strides \(1, 4\)"),
        (lambda x, y, device: x, ValueError, "out: shares its buffer with x: give another tensor"),
        (lambda x, y, device: wg.broadcast_to(y[0], (4, 6)), ValueError, "out: shape"),
        (lambda x, y, device: np.zeros((4, 6), np.uint8), TypeError, "out is of type ndarray: must be a T"),
        (lambda x, y, device: [y], TypeError, "out is of type list: must be a Tensor"),
        (
            lambda x, y, device: wg.zeros((4, 6), np.uint8, device=wg.Device.request(device.adapter)),
            ValueError,
            "out: the buffer of 32 bytes is not on",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    device: wg.Device, out: Callable[..., Any], error: type[Exception], says: str
) -> None:
    x, y = tensor(device), wg.full((4, 6), 3, np.uint8, device=device)
    program = wg.capture(lambda x: x[::-1].copy(), x=x)
    with pytest.raises(error, match=rf"^<lambda>: {says}"):
        program(x=x, out=out(x, y, device))
    assert (y.numpy() == 3).all()
    assert x.tolist() == DATA.tolist()


def test_another_structure_is_refused(device: wg.Device) -> None:
    x = tensor(device)
    y = wg.zeros((4, 6), np.uint8, device=device)
    nothing = wg.capture(lambda x: None, x=x)
    with pytest.raises(TypeError, match="out is of type Tensor: must be None, as the function returns"):
        nothing(x=x, out=y)
    program = wg.capture(parts, x=x)
    with pytest.raises(TypeError, match="out is of type Tensor: must be a list or tuple of 3, as the fun"):
        program(x=x, out=y)
    with pytest.raises(TypeError, match=r"out\[2\] is of type dict: must be a dict with the keys \['upload'"):
        program(x=x, out=(y, None, {"zeros": None}))
    with pytest.raises(TypeError, match=r"out\[1\] is given: must be None"):
        program(x=x, out=(None, y[1:], None))
    flip = wg.capture(lambda x: x[::-1].copy(), x=x)
    for out in (y, guarded(device, (4, 6), np.uint8, 6)[1]):  # bound, and copied to
        flip(x=x, out=out)
        out.buffer.destroy()
        with pytest.raises(ValueError, match=r"^<lambda>: out: the buffer has been destroyed"):
            flip(x=x, out=out)


def test_a_tensor_of_the_function_is_no_out(device: wg.Device) -> None:
    x, table = tensor(device), tensor(device, 1)
    program = wg.capture(lambda x: np.concatenate([x, table])[:4].copy(), x=x)
    with pytest.raises(ValueError, match="out: shares its buffer with a tensor of the function besides"):
        program(x=x, out=table)


# what is not kept


@pytest.mark.parametrize("key", [np.s_[1:], np.s_[:, ::-1]], ids=["buffer copy", "kernel"])
def test_a_program_keeps_no_tensor_that_it_was_given(device: wg.Device, capture: Capture, key: Any) -> None:
    program = capture(lambda x: x[key].copy(), x=tensor(device))
    with without_collector():
        for named in (False, True):
            x = tensor(device)
            out = wg.empty(program(x=x).shape, np.uint8, device=device) if named else None
            result = program(x=x, out=out)
            given = [weakref.ref(each.memory) for each in (x, out) if each is not None]
            del x, out
            if named:
                del result
            assert [each() for each in given] == [None] * len(given)
        assert result is not None if not named else True


def test_a_result_in_a_reference_cycle_leaves_the_program_whole(device: wg.Device, capture: Capture) -> None:
    """The garbage collector finalizes all of a cycle, with whatever only the cycle refers to."""
    inputs = [tensor(device, number) for number in range(2)]
    program = capture(lambda x: x[:, ::-1].copy(), x=inputs[0])
    for _ in range(3):
        cycle: list[Any] = [program(x=inputs[0])]
        cycle.append(cycle)
        del cycle
        gc.collect()
        held = [program(x=x) for x in inputs]
        assert [each.tolist() for each in held] == [(DATA + 50 * k)[:, ::-1].tolist() for k in range(2)]


def test_a_saved_tensor_of_the_function_is_the_loaded_programs(device: wg.Device, tmp_path: Path) -> None:
    """It is returned by each call, named by no `out`, and refused when it is destroyed."""
    state = wg.zeros(4, np.uint8, device=device)

    def step(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        state[1:] = state[:3].copy()
        state[0] = x[0]
        return state, x[::-1].copy()

    x = wg.asarray(np.array([7, 8], np.uint8), device=device)
    wg.capture(step, x=x).save(tmp_path / "saved")
    program = wg.load_program(tmp_path / "saved", device)
    program(x=x)
    own, _ = program(x=x)
    for out in (own[2:], own[1:3]):
        with pytest.raises(ValueError, match=r"out\[1\]: shares its buffer with a tensor of the function"):
            program(x=x, out=(None, out))
    assert own.tolist() == [7, 7, 0, 0]
    own.buffer.destroy()
    encoder = device.wgpu_device.create_command_encoder()
    for call in (program, partial(program.record, encoder)):
        with pytest.raises(ValueError, match=r"tensor of the function .*: the buffer has been destroyed"):
            call(x=x)


def test_zeros_without_a_step_are_zeros_at_each_call(device: wg.Device, tmp_path: Path) -> None:
    """Version 0.3.0 saved none for zeros that nothing writes."""
    x = tensor(device)
    captured = wg.capture(lambda x: (wg.zeros(5, np.uint8, device=device), x[::-1].copy()), x=x)
    captured.save(tmp_path / "saved")
    document = json.loads((tmp_path / "saved" / "program.json").read_text())
    document["steps"] = [step for step in document["steps"] if "clear" not in step]
    (tmp_path / "saved" / "program.json").write_text(json.dumps(document))
    program = wg.load_program(tmp_path / "saved", device)
    for _ in range(3):
        zeros, flipped = program(x=x)
        assert (zeros.tolist(), flipped.tolist()) == ([0] * 5, DATA[::-1].tolist())
        zeros[...] = 77
        del zeros


def test_a_program_packs_the_tensor_of_many_windows(device: wg.Device, capture: Capture) -> None:
    """One channel is copied out, windows are written into the copy, and it is copied back."""
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (200, 200, 3), np.uint8)
    offsets, patches = rng.integers(0, 169, (400, 2)), rng.integers(0, 256, (400, 32, 32), np.uint8)
    expected = picture.copy()
    for (row, column), patch in zip(offsets, patches, strict=True):
        expected[row : row + 32, column : column + 32, 1] = patch
    crops = [expected[row : row + 32, column : column + 32, 1] for row, column in offsets]

    def patched(x: wg.Tensor, windows: wg.Tensor) -> tuple[wg.Tensor, Any]:
        result = x.copy()
        wg.insert_windows(result[..., 1], offsets, windows, overlap="last")
        return result, wg.extract_windows(result[..., 1], offsets, (32, 32))

    given = {"x": wg.asarray(picture, device=device), "windows": wg.asarray(patches, device=device)}
    plans = wg.explain(patched, **given).plans
    assert [plan.choice and plan.choice.name for plan in plans][1:] == ["packed first"] * 2
    program = capture(patched, **given)
    for results in (patched(**given), program(**given), program(**given)):
        assert np.array_equal(results[0].numpy(), expected)
        assert np.array_equal(results[1].numpy(), crops)
