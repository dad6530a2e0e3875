"""Devices and adapters: found, chosen, shared, lost."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import weakref
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import wgpu
from helpers import ADAPTERS, check_same, on_one_adapter, random_bytes, run_python
from planning import preferring
from running import counted

import wgslice as wg
from wgslice.gpu.adapter import MIN_LIMITS, choose_adapter, describe_adapter, find_adapter, install_advice
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, TILE_NBYTES, WIDE_TILE_SIDES
from wgslice.shaders import kernel_module

DISCRETE = wg.Adapter("Radeon", "Vulkan", "DiscreteGPU", "RADV")
DISCRETE_GL = wg.Adapter("Radeon", "OpenGL", "DiscreteGPU", "Mesa")
INTEGRATED = wg.Adapter("Iris", "Vulkan", "IntegratedGPU", "ANV")
SOFTWARE = wg.Adapter("llvmpipe", "Vulkan", "CPU", "lavapipe")
SOFTWARE_GL = wg.Adapter("llvmpipe", "OpenGL", "CPU", "Mesa")
ODD = wg.Adapter("thing", "Vulkan", "Unknown", "")
ALL = ["Vulkan", "Metal", "D3D12", "OpenGL"]  # backends, in wgpu's order


def machine(*adapters: wg.Adapter) -> dict[tuple[str, str], list[wg.Adapter]]:
    """The adapters of a machine by host and backend."""
    return {("wgpu", backend): [each for each in adapters if each.backend == backend] for backend in ALL}


def test_the_machine_lists_its_adapters(device: wg.Device) -> None:
    assert device.adapter in wg.adapters()
    for adapter in wg.adapters():
        assert adapter.name
        assert adapter.backend in ("Vulkan", "Metal", "D3D12", "OpenGL")
        assert adapter.software == (adapter.kind == "CPU")


@pytest.mark.parametrize("listed", ["CPU", "IntegratedGPU"])
def test_warp_is_a_software_adapter_however_it_is_listed(listed: str) -> None:
    info = {"device": "Microsoft Basic Render Driver", "description": "", "backend_type": "D3D12"}
    host: Any = SimpleNamespace(name="wgpu")
    assert describe_adapter(host, SimpleNamespace(info={**info, "adapter_type": listed})).software


def test_adapters_are_enumerated_once() -> None:
    """Two enumerations of OpenGL adapters would share a context under two locks, and abort in threads."""
    first, second = wg.adapters(), wg.adapters()
    assert first is not second
    assert all(one.handle is other.handle for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("query", "best"),
    [
        (None, DISCRETE),
        ("", DISCRETE),
        ("opengl", DISCRETE_GL),
        ("OpenGL", DISCRETE_GL),
        ("llvm", SOFTWARE),
        ("llvmpipe via OpenGL", SOFTWARE_GL),
        ("IRIS", INTEGRATED),
        ("thing", ODD),
    ],
)
def test_best_matching_adapter_is_chosen(query: str | None, best: wg.Adapter) -> None:
    found = [SOFTWARE_GL, ODD, SOFTWARE, INTEGRATED, DISCRETE_GL, DISCRETE]
    assert choose_adapter(found, query) is best
    assert choose_adapter(found[::-1], query) is best


def test_equal_adapters_are_chosen_by_number() -> None:
    """Of those that fit, best first, counted from 0."""
    other = replace(DISCRETE)
    found = [SOFTWARE, DISCRETE_GL, DISCRETE, other]
    assert other == DISCRETE
    assert choose_adapter(found, "Radeon#0") is DISCRETE
    assert choose_adapter(found, "radeon via vulkan #1") is other
    assert choose_adapter(found, "radeon#2") is DISCRETE_GL
    assert choose_adapter(found, "#3") is SOFTWARE
    for query in ("radeon#3", "llvmpipe#1", "#4", "voodoo#0"):
        with pytest.raises(wg.NoAdapterError, match=rf"no adapter has '{query}' .*: llvmpipe via Vulkan; Ra"):
            choose_adapter(found, query)


@on_one_adapter
def test_equal_adapters_have_separate_devices(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(device.adapter, handle=wgpu.gpu.request_adapter_sync())
    monkeypatch.setattr("wgslice.gpu.adapter.found_adapters", machine(device.adapter, other))
    monkeypatch.setattr("wgslice.gpu.device.default_devices", [])
    monkeypatch.setattr("wgslice.gpu.device.shared_devices", [])
    names = [f"{device.adapter.backend}#{number}" for number in range(2)]
    first, second = (wg.asarray([1, 2], device=name).device for name in names)
    assert first is not second
    assert second.adapter.handle is other.handle
    assert [wg.empty((), device=name).device for name in names] == [first, second]


def test_kinds_rank_before_backends() -> None:
    assert choose_adapter([SOFTWARE, DISCRETE_GL]) is DISCRETE_GL
    assert choose_adapter([SOFTWARE_GL, SOFTWARE]) is SOFTWARE
    assert choose_adapter([SOFTWARE, ODD]) is ODD


NVIDIA, NVIDIA_D3D12 = (wg.Adapter("GeForce", backend, "DiscreteGPU", "") for backend in ("Vulkan", "D3D12"))
WINDOWS = machine(INTEGRATED, NVIDIA, NVIDIA_D3D12)
LAPTOP = machine(INTEGRATED, SOFTWARE, SOFTWARE_GL)
ZINK = replace(DISCRETE_GL, name="zink Vulkan 1.3 (Radeon)")
OLD = machine(SOFTWARE, ZINK)


@pytest.mark.parametrize(
    ("present", "query", "chosen", "started"),
    [
        (WINDOWS, None, NVIDIA, ALL[:1]),
        (WINDOWS, "geforce", NVIDIA, ALL[:1]),
        (WINDOWS, "#1", NVIDIA_D3D12, ALL[:3]),
        (WINDOWS, "d3d12", NVIDIA_D3D12, ["D3D12"]),
        (WINDOWS, "GeForce via D3D12", NVIDIA_D3D12, ["D3D12"]),
        (WINDOWS, "iris", INTEGRATED, ALL),
        (LAPTOP, None, INTEGRATED, ALL),
        (LAPTOP, "OpenGL", SOFTWARE_GL, ["OpenGL"]),
        (LAPTOP, "vulkan#1", SOFTWARE, ["Vulkan"]),
        (OLD, None, ZINK, ALL),
        (OLD, "Vulkan", SOFTWARE, ["Vulkan"]),
        (OLD, "metal", None, ["Metal", "Vulkan", "D3D12", "OpenGL"]),
    ],
)
def test_backends_start_that_may_have_the_adapter(
    monkeypatch: pytest.MonkeyPatch,
    present: dict[tuple[str, str], list[wg.Adapter]],
    query: str | None,
    chosen: wg.Adapter | None,
    started: list[str],
) -> None:
    monkeypatch.setattr("wgslice.gpu.adapter.found_adapters", {})
    monkeypatch.setattr("wgslice.gpu.adapter.describe_adapter", lambda _, adapter: adapter)
    asked: list[str] = []

    def found_handles(_: object, backend: str) -> list[wg.Adapter]:
        asked.append(backend)
        return present["wgpu", backend]

    monkeypatch.setattr("wgslice.gpu.hosts.wgpu_native.WgpuNative.found_handles", found_handles)
    if chosen is None:
        with pytest.raises(wg.NoAdapterError, match="has: llvmpipe via Vulkan; zink"):
            find_adapter(query)
    else:
        assert find_adapter(query) is chosen
    assert asked == started
    assert wg.adapters() == [adapter for backend in ALL for adapter in present["wgpu", backend]]
    assert sorted(asked) == sorted(ALL)


def test_a_named_backend_alone_is_started(device: wg.Device) -> None:
    """And all of the machine's adapters are listed afterwards."""
    code = """
import wgslice as wg
from wgslice.gpu.adapter import found_adapters
wg.asarray([1])
print(*[backend for _, backend in found_adapters], [*map(str, wg.adapters())])
"""
    done = run_python(code, WGSLICE_ADAPTER=device.adapter.backend)
    assert done.stdout == f"{device.adapter.backend} {[*map(str, wg.adapters())]}\n", done.stderr


def test_missing_adapter_lists_adapters_or_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        wg.NoAdapterError, match=r"no adapter has 'voodoo' .*: Radeon via Vulkan; Iris via Vulkan"
    ):
        choose_adapter([DISCRETE, INTEGRATED], "voodoo")
    with pytest.raises(wg.NoAdapterError, match=r"this machine has no WebGPU adapter: .*(install|driver)"):
        choose_adapter([])
    only_opengl = wg.Adapter("llvmpipe", "OpenGL", "CPU", "")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(wg.NoAdapterError, match=r"'Vulkan' .* has: llvmpipe via OpenGL; .*(install|driver)"):
        choose_adapter([only_opengl], "Vulkan")
    with pytest.raises(wg.NoAdapterError, match="'no such adapter'"):
        wg.Device.request("no such adapter")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Vulkan#3", "no adapter has 'Vulkan#3' in its name or backend: the last that fits is #1"),
        ("#9", "no adapter has '#9' in its name or backend: the last that fits is #2"),
        ("Metal", "no adapter has 'Metal' in its name or backend"),
        ("D3D12", "no adapter has 'D3D12' in its name or backend"),
    ],
)
def test_a_driver_that_would_not_help_is_not_advised(
    monkeypatch: pytest.MonkeyPatch, query: str, words: str
) -> None:
    """One of another system's backend, or of a backend that the machine has."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    found = "llvmpipe via Vulkan; Radeon via Vulkan; llvmpipe via OpenGL"
    with pytest.raises(wg.NoAdapterError) as refused:
        choose_adapter([SOFTWARE, DISCRETE, SOFTWARE_GL], query)
    assert str(refused.value) == f"{words}; name a part of one that this machine has: {found}"


@pytest.mark.parametrize(
    ("system", "release", "advice"),
    [
        ("Linux", {"ID": "debian"}, "apt-get install --no-install-recommends mesa-vulkan-drivers"),
        ("Linux", {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "apt-get install"),
        ("Linux", {"ID": "elementary", "ID_LIKE": "ubuntu"}, "apt-get install"),
        ("Linux", {"ID": "tencentos", "ID_LIKE": "rhel"}, "dnf install"),
        ("Linux", {"ID": "fedora"}, "dnf install mesa-vulkan-drivers"),
        ("Linux", {"ID": "arch"}, "pacman -S"),
        ("Linux", {"ID": "unheard-of"}, "lavapipe"),
        ("Darwin", {}, "Metal"),
        ("Windows", {}, "Direct3D 12"),
    ],
)
def test_the_advice_is_for_this_system(
    monkeypatch: pytest.MonkeyPatch, system: str, release: dict[str, str], advice: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    assert advice in install_advice()


def test_default_device_is_made_once_for_the_variable(device: wg.Device) -> None:
    code = """
import threading, wgslice as wg
found = []
threads = [threading.Thread(target=lambda: found.append(wg.default_device())) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 4 and all(one is wg.default_device() for one in found)
assert wg.asarray([1]).device is found[0]
print(wg.default_device().adapter)
"""
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter).upper())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(device.adapter)
    refused = run_python("import wgslice; wgslice.default_device()", WGSLICE_ADAPTER="voodoo")
    assert (
        "NoAdapterError: no adapter has 'voodoo' (from WGSLICE_ADAPTER) in its name or backend"
        in refused.stderr
    )


def test_nothing_is_printed_without_a_runtime_folder(device: wg.Device) -> None:
    """In containers, where drivers would complain up to four times; and the environment stays as it was."""
    code = """
import os
os.environ.pop("XDG_RUNTIME_DIR", None)
import wgslice as wg
print(wg.asarray([1, 2, 3])[::-1].numpy(), len(wg.adapters()) > 0, "XDG_RUNTIME_DIR" in os.environ)
"""
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter))
    assert (done.stdout, done.stderr) == ("[3 2 1] True False\n", "")


def test_a_hidden_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(wg.NoAdapterError, match=r"no WebGPU adapter: (?!.*hides)"):
        choose_adapter([])
    for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
        monkeypatch.setenv(name, "/gone.json")
        with pytest.raises(
            wg.NoAdapterError, match=f"{name}=/gone.json hides all other Vulkan drivers, correct or"
        ):
            choose_adapter([])
        monkeypatch.delenv(name)


def test_opengl_instead_of_vulkan_warns(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    opengl = replace(device.adapter, backend="OpenGL")
    present = machine(opengl)
    monkeypatch.setattr("wgslice.gpu.adapter.found_adapters", present)
    monkeypatch.setenv("VK_DRIVER_FILES", "/gone.json")
    for wanted in ("OpenGL", "opengl", str(opengl), opengl):
        wg.Device.request(wanted)
    assert not recwarn.list
    for query in (None, "", opengl.name):
        with pytest.warns(
            RuntimeWarning, match=r"no Vulkan driver fits, so .* via OpenGL is used: VK_DRIVER_FILES="
        ):
            wg.Device.request(query)
    present["wgpu", "Vulkan"] = [replace(opengl, backend="Vulkan")]
    wg.Device.request()
    assert not [one for one in recwarn.list if one.category is RuntimeWarning]


def test_wrap_accepts_devices_only() -> None:
    with pytest.raises(TypeError, match=r"Device.wrap: wgpu_device is of type str: must be a wgpu.GPUDevice"):
        wg.Device.wrap(cast("Any", "device"))
    with pytest.raises(
        TypeError, match=r"^Device: wgpu_device is of type str: .*; Device.request\(name\) make"
    ):
        wg.Device(cast("Any", "vulkan"))
    with pytest.raises(wg.NoAdapterError):
        wg.Device.request("42")


def test_an_adapter_of_the_list_can_be_requested(device: wg.Device) -> None:
    (again,) = [adapter for adapter in wg.adapters() if adapter == device.adapter][:1]
    other = wg.Device.request(again)
    assert other is not device
    assert other.adapter == device.adapter
    assert repr(other) == f"Device({device.adapter})"


DOUBLE_STEP = wg.Slice1(wg.TensorDesc("int64", (8,)), wg.TensorDesc("int64", (4,)), (0,), (8,), (2,))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_raises_with_the_advice_to_spawn(device: wg.Device) -> None:
    code = """
import os, wgslice as wg
x = wg.asarray([1, 2, 3])
x[::-1].numpy()
program = wg.capture(lambda x: x[::-1].copy(), x=x)
program(x=x)
replay = lambda: program(x=x)
if os.fork() == 0:
    for attempt in (lambda: x[::-1].numpy(), lambda: wg.asarray([1]), wg.adapters, wg.Device.request, replay):
        try:
            attempt()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
"""
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter))
    refusals = done.stdout.splitlines()
    assert len(refusals) == 5, done.stderr
    assert all("forked child" in refusal and "spawn" in refusal for refusal in refusals)


@pytest.mark.parametrize("adapter", [3, b"vulkan", wg.Adapter("a", "Vulkan", "CPU", "")])
def test_request_of_anything_but_a_name_or_adapter_raises(adapter: Any) -> None:
    with pytest.raises(
        TypeError, match=r"Device.request: adapter = .*: must be a name or one of adapters\(\)"
    ):
        wg.Device.request(adapter)


def test_low_limits_are_refused_or_planned_for(device: wg.Device) -> None:
    """A program may have asked its device for less than the adapter has."""
    handle = device.adapter.handle
    few = {"max-compute-workgroups-per-dimension": 4, "max-storage-buffer-binding-size": 1024}
    x = np.arange(5000, dtype=np.int16)
    small = wg.Device.wrap(handle.request_device_sync(required_limits=few))
    assert small.limits.workgroups == 4
    check_same(wg.asarray(x, device=small)[::-3].numpy(), x[::-3].copy())


@pytest.mark.parametrize("name", MIN_LIMITS)
def test_a_limit_too_small_for_the_kernels_is_named(device: wg.Device, name: str) -> None:
    too_little = device.adapter.handle.request_device_sync(required_limits={name: MIN_LIMITS[name] - 1})
    message = f"has {name} = {MIN_LIMITS[name] - 1}: the kernels need at least {MIN_LIMITS[name]}"
    with pytest.raises(wg.NoAdapterError, match=message):
        wg.Device.wrap(too_little)


def test_minimum_limits_are_enough(device: wg.Device) -> None:
    least = wg.Device.wrap(device.adapter.handle.request_device_sync(required_limits=MIN_LIMITS))
    assert {name: least.wgpu_device.limits[name] for name in MIN_LIMITS} == MIN_LIMITS
    x = np.arange(600, dtype=np.int16).reshape(20, 30)
    check_same(wg.asarray(x, device=least)[1:, ::-2].numpy(), x[1:, ::-2].copy())
    offsets, fields = [[0, 1], [2, 2]], [[1, 1], [1, -1]]
    windows = wg.extract_windows(wg.asarray(x, device=least), offsets, (4, 8), fields)
    check_same(windows.numpy(), np.stack([x[:4, 1:9], x[2:6, 2:10][:, ::-1]]))
    for profile in (CPU, GPU, preferring(GPU, Kernel.TILES), preferring(GPU, Kernel.WIDE_TILES)):
        least.limits = replace(least.limits, profile=profile)
        turned = wg.asarray(np.arange(4096, dtype=np.float32).reshape(64, 64), device=least)
        assert np.array_equal(turned.T.numpy(), turned.numpy().T)


def test_compiling_compiles(device: wg.Device) -> None:
    fresh = wg.Device.request(device.adapter)
    assert fresh.pipelines.pipeline.cache_info().currsize == 0
    fresh.compile(DOUBLE_STEP)
    assert fresh.pipelines.pipeline.cache_info().currsize == 1


def test_a_device_lives_as_long_as_the_wgpu_device(device: wg.Device) -> None:
    wgpu_device = device.adapter.handle.request_device_sync()
    first = id(wg.Device.wrap(wgpu_device))
    gc.collect()
    assert id(wg.Device.wrap(wgpu_device)) == first
    released = weakref.ref(wgpu_device)
    del wgpu_device
    gc.collect()
    assert released() is None


def test_minimum_limits_hold_the_largest_tile() -> None:
    """Evaluates sizes of workgroup arrays, which wgpu 29 compares with no limit where they are overrides."""
    found = []
    for kernel, unit_nbytes, constants in (
        *((Kernel.TILES, 4, {"each": TILE_NBYTES // width, "element_bytes": width}) for width in (4, 8, 16)),
        *(
            (Kernel.WIDE_TILES, 16, {"side": side, "element_bytes": width})
            for width, side in WIDE_TILE_SIDES.items()
        ),
    ):
        module = kernel_module(kernel)
        ((name, expression),) = re.findall(r"^override (tile_\w+): u32 = (.*);", module, re.MULTILINE)
        assert re.search(rf"^var<workgroup> tile: array<[\w<>]+, {name}>;", module, re.MULTILINE)
        size = eval(re.sub(r"(?<=\d)u", "", expression).replace("/", "//"), {}, constants)
        found.append(size * unit_nbytes)
    assert max(found) == MIN_LIMITS["max-compute-workgroup-storage-size"] == 4224


def test_request_async_without_a_name_makes_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WGSLICE_ADAPTER", ADAPTERS[0])
    monkeypatch.setattr("wgslice.gpu.device.default_devices", [])
    made = asyncio.run(wg.Device.request_async())
    assert made is wg.default_device()
    assert made is asyncio.run(wg.Device.request_async())
    assert ADAPTERS[0] in str(made.adapter)


def test_request_async_of_a_name_makes_a_new_device() -> None:
    first, second = (asyncio.run(wg.Device.request_async(ADAPTERS[0])) for _ in range(2))
    assert first is not second
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'absent'"):
        asyncio.run(wg.Device.request_async("absent"))
    with pytest.raises(TypeError, match=r"^Device.request_async: adapter = 3"):
        asyncio.run(wg.Device.request_async(3))  # type: ignore[arg-type]  # as users may


def test_small_uploads_wait_for_a_submission_but_few_of_them(device: wg.Device) -> None:
    """A submission takes longer than a write of some KiB; what the queue holds takes memory."""
    from wgpu.backends.wgpu_native._api import libf  # not there in a browser

    own = wg.Device.request(device.adapter)
    array = random_bytes(1000)
    with counted(libf, ["wgpuQueueSubmit"]) as submitted:
        tensors = [wg.asarray(array + number, device=own) for number in range(20)]
        assert not submitted
        own.synchronize()
        own.synchronize()
        assert submitted.total() == 1
        tensors += [wg.asarray(array + number, device=own) for number in range(20, 120)]
        assert submitted.total() == 2
        wg.asarray(np.zeros(2**23, np.uint8), device=own)
        assert submitted.total() >= 4
    for number, tensor in enumerate(tensors):
        check_same(tensor.numpy(), array + number)


def test_bindings_have_the_numbers_of_their_entries(device: wg.Device) -> None:
    """Of a layout that a caller makes for the compute stage, 4, on every host."""
    host, x = device.wgpu_device, wg.zeros(4, np.uint32, device=device)
    entry = {"binding": 3, "visibility": 4, "buffer": {"type": "storage"}}
    layout = host.create_bind_group_layout(entries=[entry])
    code = """
        @group(0) @binding(3) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn write() { x[2] = 7u; }
    """
    pipeline = host.create_compute_pipeline(
        layout=host.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": host.create_shader_module(code=code), "entry_point": "write"},
    )
    bound = {"binding": 3, "resource": {"buffer": x.buffer, "offset": 0, "size": 16}}
    encoder = host.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, host.create_bind_group(layout=layout, entries=[bound]))
    compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    host.queue.submit([encoder.finish()])
    check_same(x.numpy(), np.array([0, 0, 7, 0], np.uint32))
