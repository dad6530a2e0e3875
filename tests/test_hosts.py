"""Hosts of WebGPU: what each offers, which one is taken, and that accelerations change no result."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import wgpu
from helpers import check_same, run_python

import wgslice as wg
from wgslice.gpu import hosts
from wgslice.gpu.hosts import navigator
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.gpu.hosts.wgpu_native import WgpuNative

OVERRIDDEN = sorted(
    name for name in vars(WgpuNative).keys() & vars(WebGPU).keys() if not name.startswith("_")
)
# What the public host calls of wgpu-py's API besides handles' methods that the types of `protocols` name.
OFFERED = {
    "GPU": ["enumerate_adapters_sync", "enumerate_adapters_async"],
    "GPUAdapter": ["features", "info", "limits", "request_device_sync", "request_device_async"],
    "GPUDevice": ["adapter", "features", "limits", "queue", "create_bind_group", "create_bind_group_layout"],
    "GPUBuffer": ["map_async", "map_state", "read_mapped", "unmap", "size", "usage", "destroy"],
    "GPUQueue": ["on_submitted_work_done_async", "submit", "write_buffer"],
    "GPUTexture": ["create_view", "format", "mip_level_count", "sample_count", "size", "usage"],
    "GPUCommandEncoder": ["copy_buffer_to_buffer", "copy_buffer_to_texture", "copy_texture_to_buffer"],
    "GPUComputePassEncoder": ["set_pipeline", "set_bind_group", "dispatch_workgroups", "end"],
}


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    """Name, kind and default of each parameter."""
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_a_faster_call_has_the_signature_of_the_public_one(name: str) -> None:
    ours, theirs = getattr(WgpuNative, name), getattr(WebGPU, name)
    if callable(ours):
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)
        assert parameters(ours) == parameters(theirs)


@pytest.mark.parametrize("name", OFFERED)
def test_a_browser_has_the_names_of_wgpus_api(name: str) -> None:
    ours: Any = getattr(navigator, name)
    made = inspect.getsource(ours)
    for member in OFFERED[name]:
        assert hasattr(getattr(wgpu, name), member)
        assert hasattr(ours, member) or member in ours.__annotations__ or f"self.{member}" in made, member


def test_the_browsers_host_imports_without_a_browser() -> None:
    program = "import sys, wgslice.gpu.hosts.navigator; print({'js', 'pyodide', 'wgpu'} & sys.modules.keys())"
    done = run_python(program)
    assert done.stdout == "set()\n", done.stderr


SLICES = """
import asyncio, sys, numpy as np, wgslice as wg
device = wg.Device.request(sys.argv[1])
print(type(device.host).__name__)
array = np.arange(600_000, dtype=np.int32).reshape(600, 1000)
x = wg.asarray(array, device=device)
assert (x[::-1, ::-3].numpy() == array[::-1, ::-3]).all()
assert (x[:, 5:505].copy().T.numpy() == array[:, 5:505].T).all()
assert (wg.from_buffer(x.buffer, (1000, 600), np.int32).numpy() == array.reshape(1000, 600)).all()
program = wg.capture(lambda x: [x.T.copy(), x[::2].copy()], x=x)
for _ in range(3):
    turned, halved = program(x=x)
    assert (turned.numpy() == array.T).all() and (halved.numpy() == array[::2]).all()

async def read():
    return await x[:, 1].numpy_async()

assert (asyncio.run(read()) == array[:, 1]).all()
assert (x[1].numpy_async().sync_wait() == array[1]).all()
texture = device.wgpu_device.create_texture(size=(500, 600), format="r32sint", usage=1 | 2)
wg.copy_to_texture(x[:, ::2], texture)
assert (wg.from_texture(texture).numpy() == array[:, ::2]).all()
assert (wg.map_texture(texture, origin=(3, 2)) == array[2:, 6::2]).all()
y = wg.empty(9, np.int32, device=device)
y.buffer.destroy()
try:
    y[:] = x[0, :9]
except ValueError as error:
    print(error)
device.wgpu_device.destroy()
for call in (x.numpy, device.synchronize, lambda: wg.zeros(3, device=device).numpy()):
    try:
        call()
    except wg.DeviceLostError as error:
        print(error)
"""


def test_accelerations_change_no_result(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same calls with and without them, also on destroyed buffers and lost devices."""
    faster = run_python(SLICES, str(device.adapter))
    monkeypatch.setenv("WGSLICE_HOST", "public")
    public = run_python(SLICES, str(device.adapter))
    lines = faster.stdout.splitlines(), public.stdout.splitlines()
    assert [each[:1] for each in lines] == [["WgpuNative"], ["WebGPU"]], faster.stderr + public.stderr
    assert lines[0][1:] == lines[1][1:]
    assert len(lines[0]) == 5


def test_other_values_of_the_variable_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WGSLICE_HOST", "native")
    done = run_python("import wgslice as wg; wg.adapters()")
    assert done.stderr.splitlines()[-1] == (
        "ValueError: WGSLICE_HOST = 'native': must be unset, or 'public' to use no names of wgpu that are "
        "private"
    )


def test_an_unknown_version_runs_by_public_names() -> None:
    program = "import wgpu; wgpu.__version__ = '0.99.0'\n" + SLICES.replace("sys.argv[1]", "None")
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "WebGPU"


def test_dawn_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpudawn", None)
    hosts.dawn_host.cache_clear()
    with pytest.raises(
        wg.NoAdapterError, match=r"Dawn needs the package wgpudawn.*pip install wgslice\[dawn\]"
    ):
        wg.Device.request("dawn")


def test_handles_that_do_not_tell_their_device_need_it(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by public names: the only device of the host, or a given one."""
    buffer = device.wgpu_device.create_buffer(size=64, usage=wgpu.BufferUsage.STORAGE)
    other = wg.Device.request(device.adapter)
    monkeypatch.setattr(type(device.host), "owner_of", lambda _, handle: getattr(handle, "wgpu_device", None))
    package = device.host.api.__name__
    with pytest.raises(
        ValueError, match=rf"{package}.GPUBuffer does not tell its device, and \d+ are in use: give dev"
    ):
        wg.from_buffer(buffer, 16, np.float32)
    x = wg.from_buffer(buffer, 16, np.float32, device=device)
    check_same(x.numpy(), np.zeros(16, np.float32))
    assert x.device is device is not other


def test_a_device_that_several_threads_may_not_call_is_called_by_one(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of Dawn without the feature for it."""
    monkeypatch.setattr(WebGPU, "is_safe", lambda *_: False)
    fresh = wg.Device.request(device.adapter)
    kind = type(fresh.host)
    make, inside, most = kind.make_bind_group, [0], [0]

    def counted(*arguments: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.005)  # in which another thread would come in
        made = make(*arguments)
        inside[0] -= 1
        return made

    monkeypatch.setattr(kind, "make_bind_group", counted)
    array = np.arange(600, dtype=np.int32).reshape(20, 30)
    x = wg.asarray(array, device=fresh)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda step: x[:, ::step].copy().numpy(), [-1, 2, -3, 4] * 3))
    for step, result in zip([-1, 2, -3, 4] * 3, found, strict=True):
        check_same(result, array[:, ::step].copy())
    assert most == [1]
