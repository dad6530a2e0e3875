"""Faults and the state after them: a lost device, exhausted memory, an interrupted wait."""

from __future__ import annotations

import _thread
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import wgpu
from helpers import check_same, make_buffer, run_python
from waits import LONGEST_SECONDS, WAITS, check_ends_when_lost, transposing, unanswered, waits
from wgpu.backends.wgpu_native._api import libf

import wgslice as wg
from wgslice import directml as dml
from wgslice.gpu import adapter as adapter_module
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.hosts.wgpu_native import Polled, WgpuNative

STEP = wg.Slice1(wg.TensorDesc("int32", (64,)), wg.TensorDesc("int32", (32,)), (0,), (64,), (-2,))
COPY = wg.Slice1(wg.TensorDesc("int32", (64,)), wg.TensorDesc("int32", (64,)), (0,), (64,))
ARRAY = np.arange(600 * 5000, dtype=np.int32).reshape(600, 5000)  # 12 MB, so that a readback has two chunks


def lost_uses(device: wg.Device) -> dict[str, Callable[[], Any]]:
    """Calls on a device and its tensors, after which the device is lost."""
    x, y = wg.asarray(np.arange(64, dtype=np.int32), device=device), wg.empty(64, np.int32, device=device)
    grid, picks = x.reshape(8, 8), wg.asarray(np.zeros((3, 2), np.int32), device=device)
    step, copy, model = device.compile(STEP), device.compile(COPY), transposing(device, (8, 8))
    buffer = make_buffer(device, np.zeros(256, np.uint8))
    begun = device.wgpu_device.create_command_encoder()
    fresh = device.wgpu_device.create_command_encoder
    step.record(begun, input=x, output=y.buffer)

    def assign(value: Any, key: Any = np.s_[:]) -> None:
        y[key] = value

    return {
        "asarray": lambda: wg.asarray([1, 2], device=device),
        "from_dlpack": lambda: wg.from_dlpack(np.arange(3), device),
        "empty": lambda: wg.empty(3, np.int8, device=device),
        "zeros": lambda: wg.zeros(0, np.int8, device=device),
        "from_buffer": lambda: wg.from_buffer(buffer, 8, np.int32),
        "wrap": lambda: wg.Device.wrap(device.wgpu_device),
        "synchronize": device.synchronize,
        "numpy": x.numpy,
        "numpy of a view": x[::-2].numpy,
        "np.asarray": lambda: np.asarray(grid.T),
        "np.from_dlpack": lambda: np.from_dlpack(x),
        "bool": lambda: bool(x[3]),
        "asarray on another device": lambda: wg.asarray(x, device=wg.default_device()),
        "copy": x.copy,
        "copy of a view": grid.T.copy,
        "assign a scalar": lambda: assign(7),
        "assign an array": lambda: assign(np.arange(22), np.s_[::3]),
        "assign a tensor": lambda: assign(x),
        "copyto": lambda: wg.copyto(y, x),
        "slice1": lambda: wg.slice1(x, [0], [64], [-1], out=y),
        "slice": lambda: wg.slice(x, [0], [8]),
        "slice_grad": lambda: wg.slice_grad(x[:8], [0], [8], output_sizes=[64], out=y),
        "slice_grad onto itself": lambda: wg.slice_grad(x[:8], [0], [8], output_sizes=[64], out=x),
        "extract_windows": lambda: wg.extract_windows(grid, [[0, 0]], (3, 3)),
        "extract_windows on the GPU": lambda: wg.extract_windows(grid, picks, (3, 3)),
        "compile": lambda: device.compile(STEP),
        "call": lambda: step(x),
        "call with out": lambda: copy(x, out=y),
        "record": lambda: step.record(fresh(), input=x, output=y.buffer),
        "record a copy": lambda: copy.record(fresh(), input=x, output=y.buffer),
        "record more": lambda: step.record(begun, input=x, output=y.buffer),
        "run a model": lambda: model.run([np.zeros((8, 8), np.int32)]),
        "run a model on tensors": lambda: model.run_on_device([grid]),
        "prepare a model": lambda: transposing(device, (8, 8)).run([grid]),
        "DirectML": lambda: dml.DMLCreateDevice(device.wgpu_device, dml.DML_CREATE_DEVICE_FLAG_NONE),
        "destroy": device.wgpu_device.destroy,
    }


def test_every_use_of_a_lost_device_raises(device: wg.Device) -> None:
    uses = lost_uses(wg.Device.request(device.adapter))
    uses.pop("destroy")()
    unnamed = "the device is lost: request a new one and upload again"
    for use in uses.values():
        with pytest.raises(wg.DeviceLostError, match=f"^.+: {unnamed}$"):
            use()


def test_views_of_a_lost_tensor_need_no_device(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    x = wg.asarray(np.arange(64), device=lost).reshape(8, 8)
    lost.wgpu_device.destroy()
    assert (x[1:, ::-2].shape, x.T.shape, wg.permute(x, (1, 0))[3].shape) == ((7, 4), (8, 8), (8,))
    assert "shape=(8, 8)" in repr(x)
    assert wg.explain(x.T).summary
    assert x[:0].numpy().shape == (0, 8)


def test_a_lost_default_device_is_replaced(device: wg.Device) -> None:
    code = """
import wgslice as wg
first = wg.default_device()
x = wg.asarray([4, 5])
first.wgpu_device.destroy()
second = wg.default_device()
assert second is not first and second is wg.default_device()
try:
    x.numpy()
except wg.DeviceLostError:
    print(wg.asarray([1, 2, 3])[::-1].numpy().tolist())
"""
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter))
    assert done.stdout.strip() == "[3, 2, 1]", done.stderr


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_ends_when_the_device_is_lost(device: wg.Device, wait: str) -> None:
    lost = wg.Device.request(device.adapter)
    check_ends_when_lost(lost, waits(lost, ARRAY)[wait])


@pytest.fixture
def interruptible() -> Iterator[None]:
    """An interrupt raises, also in a process that was started in the background, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_wait_leaves_the_device_usable(device: wg.Device, wait: str) -> None:
    fresh = wg.Device.request(device.adapter)
    begin = waits(fresh, ARRAY)
    begin["numpy"]()
    kept = list(fresh.staging.buffers)
    with unanswered(fresh) as stall:

        def interrupt() -> None:
            if stall.begun.wait(LONGEST_SECONDS):
                _thread.interrupt_main()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            begin[wait]()
        thread.join()
        assert not stall.timed_out
        mapped = set(kept) - set(fresh.staging.buffers)  # what is being mapped is not used again
        assert len(mapped) == (wait != "synchronize" and not fresh.maps_tensors)
    fresh.synchronize()
    check_same(begin["numpy"](), ARRAY)
    check_same(begin["numpy of a view"](), ARRAY[::-1, ::2].copy())
    check_same(begin["a model"]()[0], ARRAY.T.copy())
    fresh.synchronize()


def test_an_interrupted_callback_ends_the_mapping_and_raises(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll runs the callbacks of all mappings that are done, in whichever thread polls."""
    fresh = wg.Device.request(device.adapter)
    x = wg.asarray(ARRAY, device=fresh)
    pending, finish, raised = x.numpy_async(), Polled.finish, [KeyboardInterrupt()]

    def interrupted(mapping: Polled, failure: str) -> None:
        if raised:
            raise raised.pop()
        finish(mapping, failure)

    monkeypatch.setattr(Polled, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fresh.synchronize()
    assert pending._readback.mapping.is_over()
    check_same(pending.sync_wait(), ARRAY)
    check_same(x.numpy(), ARRAY)


def test_an_interrupt_finds_all_adapters_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_module, "found_adapters", {})
    monkeypatch.setattr(WgpuNative, "found_handles", lambda _, backend: [1, 2] * (backend == "Vulkan"))
    interrupts = [KeyboardInterrupt()]

    def describe(_: WgpuNative, handle: int) -> Adapter:
        if handle == 2 and interrupts:
            raise interrupts.pop()
        return Adapter(str(handle), "Vulkan", "CPU", "")

    monkeypatch.setattr(adapter_module, "describe_adapter", describe)
    with pytest.raises(KeyboardInterrupt):
        wg.adapters()
    assert len(wg.adapters()) == 2


CREATIONS = tuple(f"wgpuDeviceCreate{kind}" for kind in ("Buffer", "BindGroup", "ComputePipeline"))


def test_no_memory_left_is_a_memory_error_and_leaves_nothing(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each creation fails once, by what wgpu raises then; all that it was for is right when done again."""
    full = wg.Device.request(device.adapter)
    full.staging.max_nbytes = 0  # what is kept would be freed, and the creation repeated
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    countdown = [-1]

    def create(original: Any, *arguments: Any) -> Any:
        countdown[0] -= 1
        if countdown[0] == 0:
            raise wgpu.GPUValidationError("In wgpuDeviceCreateBuffer\n  Not enough memory left.")
        return original(*arguments)

    for name in CREATIONS:
        monkeypatch.setattr(libf, name, partial(create, getattr(libf, name)))
    output = wg.zeros(32, np.int32, device=full)
    encoder = full.wgpu_device.create_command_encoder()

    def work() -> None:
        tensor = wg.asarray(x, device=full)
        check_same(tensor.numpy(), x)
        tensor[:, 1:] = tensor[:, :-1]  # through a staging copy
        check_same(tensor[::-1, ::3].numpy(), np.concatenate([x[:, :1], x[:, :-1]], axis=1)[::-1, ::3].copy())
        windows = wg.extract_windows(tensor, [[0, 0], [5, 4]], (3, 3), [[1, 1], [1, -1]])
        check_same(windows[0, :, 0].numpy(), x[:3, 0].copy())
        program = wg.capture(lambda x: x.T.copy(), x=tensor)
        check_same(program(x=tensor).numpy(), tensor.numpy().T.copy())
        full.compile(STEP).record(encoder, input=wg.asarray(x.reshape(-1), device=full), output=output)

    said: list[str] = []
    done = False
    while not done:
        full.pipelines = full.new_pipelines()
        countdown[0] = len(said) + 1
        try:
            work()
            done = True
        except MemoryError as error:
            said.append(f"{type(error).__name__}: {error}")
        countdown[0] = -1
        work()
    assert len(said) > 10
    assert all(
        re.fullmatch(r"OutOfDeviceMemory: .*: .*no memory left.* drop tensors .*", text) for text in said
    )
    full.submit(encoder)
    check_same(output.numpy(), x.reshape(-1)[::-2].copy())


EXHAUSTING = """
import resource
import numpy as np, wgslice as wg
device = wg.default_device()
x = np.arange(1 << 20, dtype=np.int32)
tensor = wg.asarray(x, device=device)
assert np.array_equal(tensor[::-1].numpy(), x[::-1])
with open("/proc/self/statm") as pages:
    mapped = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (100 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
for attempt in range(3):
    held = []
    try:
        while len(held) < 100:
            held.append(tensor[::-1].copy())
    except wg.OutOfDeviceMemory as error:
        print("out of memory", error)
    assert np.array_equal(held[-1].numpy(), x[::-1])
    del held
    assert np.array_equal(tensor[::-3].copy().numpy(), x[::-3])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory so")
def test_exhausted_memory_leaves_the_device_usable(device: wg.Device) -> None:
    if not (device.adapter.software and device.adapter.backend == "Vulkan"):
        pytest.skip("memory of a GPU is not the process's, and OpenGL promises what it does not have")
    done = run_python(EXHAUSTING, WGSLICE_ADAPTER=str(device.adapter))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("out of memory copy: the device has no memory left") == 3
