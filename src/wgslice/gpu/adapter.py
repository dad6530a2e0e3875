"""Adapters: enumeration, choice, required limits, advice on drivers, and protection of forked children."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from wgslice.errors import NoAdapterError, fitted
from wgslice.gpu.hosts import dawn_host, default_host, has_dawn
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.gpu.protocols import GPUDevice
from wgslice.plans.profiles import CPU, GPU, STAGING_NBYTES, TILE_NBYTES, WIDE_TILE_SIDES

KIND_ORDER = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")  # all that wgpu tells apart
DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
NATIVE_BACKENDS = ("Vulkan", "Metal", "D3D12")
RUNTIME_FOLDER = "XDG_RUNTIME_DIR"
WARP = "Microsoft Basic Render Driver"  # on Windows without a GPU's driver listed as a GPU too (wgpu 3485)

# Limits that kernels and staging need. WebGPU's defaults are higher; a program may request lower ones.
MIN_LIMITS = {
    "max-bind-groups": 1,
    "max-bindings-per-bind-group": 6,
    "max-buffer-size": STAGING_NBYTES,
    "max-compute-invocations-per-workgroup": max(CPU.workgroup_size, GPU.workgroup_size),
    "max-compute-workgroup-size-x": max(CPU.workgroup_size, GPU.workgroup_size),
    "max-compute-workgroup-storage-size": max(
        TILE_NBYTES**2 // 4 + TILE_NBYTES,  # of elements of 4 bytes, with a column of padding
        *(side**2 * nbytes for nbytes, side in WIDE_TILE_SIDES.items()),
    ),
    "max-compute-workgroups-per-dimension": 1,
    "max-storage-buffer-binding-size": 1024,  # holds any element from any aligned offset
    "max-storage-buffers-per-shader-stage": 5,
    "max-uniform-buffer-binding-size": 880,  # the struct `Windows`
    "max-uniform-buffers-per-shader-stage": 1,
}

# By operating system: the backend that it gives, and what gives it an adapter.
LINUX = (
    "Vulkan",
    "install your GPU's Vulkan driver, or Mesa's software driver lavapipe with the Vulkan loader "
    "(packages often named mesa-vulkan-drivers and libvulkan1)",
)
SYSTEMS = {
    "Darwin": ("Metal", "Metal is part of macOS 10.13 and later; this one offers no Metal device"),
    "Emscripten": (
        "WebGPU",
        "this browser offers no WebGPU here: use one that has it, and a page from https or localhost",
    ),
    "Windows": ("D3D12", "Direct3D 12 is part of Windows 10 and later; update the graphics driver"),
}
COMMANDS = {  # by families of Linux
    "debian ubuntu": "sudo apt-get install --no-install-recommends mesa-vulkan-drivers",
    "fedora rhel": "sudo dnf install mesa-vulkan-drivers vulkan-loader",
    "suse": "sudo zypper install libvulkan_lvp libvulkan1",
    "arch": "sudo pacman -S vulkan-swrast vulkan-icd-loader",
}

# By host and backend, enumerated once: OpenGL adapters of two enumerations share one context under two locks,
# and the process aborts when two threads use their devices (wgpu-native 29, "BadAccess").
found_adapters: dict[tuple[str, str], list[Adapter]] = {}
process_lock = threading.RLock()
devices_in_use: WeakSet[GPUDevice] = WeakSet()  # a forked child must never release these
gpu_process_ids: list[int] = []  # id of the first process that used the GPU


@dataclass(frozen=True)
class Adapter:
    """A GPU or software renderer of this machine, reached through one graphics interface.

    Attributes
    ----------
    name : str
        The device's name, as the driver reports it.
    backend : str
        "Vulkan", "Metal", "D3D12" or "OpenGL".
    kind : str
        "DiscreteGPU", "IntegratedGPU", "CPU" or "Unknown".
    driver : str
        The driver's description, often with its version; empty if the driver reports none.
    host : str
        What offers WebGPU on it: "wgpu", "dawn" or "browser".
    """

    name: str
    backend: str
    kind: str
    driver: str
    host: str = "wgpu"
    handle: Any = field(default=None, repr=False, compare=False)  # the wgpu.GPUAdapter

    @property
    def software(self) -> bool:
        """Whether the adapter runs on the CPU: lavapipe, SwiftShader, WARP, llvmpipe."""
        return self.kind == "CPU"

    def __str__(self) -> str:
        """Return "name via backend", which `WGSLICE_ADAPTER` and `--adapter` are searched in."""
        return f"{self.name} via {self.backend}{' by Dawn' * (self.host == 'dawn')}"


def describe_adapter(host: WebGPU, handle: Any) -> Adapter:
    """Make an `Adapter` of a host's handle."""
    info = handle.info
    name, driver = info["device"] or info["description"] or "unnamed", info["description"]
    kind = "CPU" if name == WARP else info["adapter_type"]
    return Adapter(name, info["backend_type"], kind, driver, host.name, handle)


def choose_adapter(adapters: Sequence[Adapter], query: str | None = None) -> Adapter:
    """Return the best adapter, or the n-th, from 0, whose name or backend contains `query` before `#n`."""
    if not adapters:
        raise NoAdapterError(f"this machine has no WebGPU adapter: {install_advice()}")
    wanted, number = split_query(query)
    fitting = [adapter for adapter in adapters if wanted in str(adapter).lower()]
    if len(fitting) <= number:
        origin = " (from WGSLICE_ADAPTER)" * (os.environ.get("WGSLICE_ADAPTER") == query)
        last = f": the last that fits is #{len(fitting) - 1}" * bool(fitting)
        native, _ = SYSTEMS.get(platform.system(), LINUX)
        advice = f"; {install_advice()}" * (not fitting and wanted in native.lower())
        raise NoAdapterError(
            f"no adapter has {query!r}{origin} in its name or backend{last}; name a part of one that "
            f"this machine has: {'; '.join(map(str, adapters))}{advice}"
        )
    # GPUs before software adapters, then native backends before OpenGL.
    fitting.sort(key=lambda each: (KIND_ORDER.index(each.kind), each.backend not in NATIVE_BACKENDS))
    return fitting[number]


def find_adapter(query: str | None = None) -> Adapter:
    """Return what `choose_adapter` returns of a host's adapters; start no backend that cannot change it.

    The word Dawn in a query chooses that host, others the one of `import wgpu`. On Windows with two GPUs,
    Direct3D 12 takes seconds to start (wgpu issue 9932).
    """
    check_process()
    wanted, number = split_query(query)
    host = dawn_host() if re.search(DAWN_WORD, (query or "").lower()) else default_host()
    if not wanted and number == 0:
        with process_lock, runtime_folder():
            best = host.best_handle
        if best is not None:
            return describe_adapter(host, best)
    named = [backend for backend in host.backends if f" via {wanted}".endswith(f" via {backend.lower()}")]
    found: list[Adapter] = []
    for backend in named or [backend for backend in host.backends if backend in NATIVE_BACKENDS]:
        found += adapters_of(host, backend)
        kinds = [adapter.kind for adapter in found if wanted in str(adapter).lower()]
        if (len(kinds) if named else kinds.count(KIND_ORDER[0])) > number:
            return choose_adapter(found, query)
    every = adapters_by(host)
    if host.name == "dawn" and not every:
        raise NoAdapterError(
            "Dawn takes no adapter of this machine: it needs Metal, D3D12 or Vulkan, and refuses lavapipe of "
            "Mesa 22; leave the word Dawn out to use wgpu"
        )
    return choose_adapter(every, query)


DAWN_WORD = r"\b(by )?dawn\b"


def split_query(query: str | None) -> tuple[str, int]:
    """Return what a query asks for without the word Dawn, in lower case, and the number after `#`."""
    wanted = re.sub(DAWN_WORD, "", (query or "").lower()).strip()
    numbered = re.fullmatch(r"(.*)#(\d+)", wanted)
    return (numbered[1].strip(), int(numbered[2])) if numbered else (wanted, 0)


def check_limits(adapter: Adapter, limits: Mapping[str, int]) -> None:
    """Raise NoAdapterError if a limit of the device is too low for the kernels."""
    for name, least in MIN_LIMITS.items():
        if limits[name] < least:
            raise NoAdapterError(
                f"the device on {adapter} has {name} = {limits[name]}: the kernels need at least {least}; "
                "request it in required_limits, or use another adapter"
            )


def install_advice() -> str:
    """Say what to unset, install or update to give this operating system an adapter."""
    given = " and ".join(f"{name}={os.environ[name]}" for name in DRIVER_VARIABLES if name in os.environ)
    hidden = f"{given} hides all other Vulkan drivers, correct or unset that; else " * bool(given)
    try:
        release = platform.freedesktop_os_release()
    except OSError:  # of another system, too
        release = {}
    families = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    command = next((command for names, command in COMMANDS.items() if families & {*names.split()}), None)
    software = f"install a Vulkan driver, such as the software one: {command}"
    return hidden + (software if command else SYSTEMS.get(platform.system(), LINUX)[1])


@fitted()
def adapters() -> list[Adapter]:
    """List the adapters of this machine.

    Returns
    -------
    list of Adapter
        In wgpu's order, then those of Dawn if its package is installed; empty if this machine has none.

    Raises
    ------
    RuntimeError
        This process is a forked child of one that has used a GPU.

    Examples
    --------
    >>> import wgslice as wg
    >>> any(adapter.backend in ("Vulkan", "Metal", "D3D12", "OpenGL") for adapter in wg.adapters())
    True
    """
    found = adapters_by(default_host())
    return found + adapters_by(dawn_host()) if has_dawn() else found


def adapters_by(host: WebGPU) -> list[Adapter]:
    """Return the adapters of a host."""
    return [adapter for backend in host.backends for adapter in adapters_of(host, backend)]


def adapters_of(host: WebGPU, backend: str) -> list[Adapter]:
    """Return the adapters of a backend, which is started by the first call."""
    check_process()
    key = host.name, backend
    with process_lock:
        if key not in found_adapters:
            with runtime_folder():
                handles = host.found_handles(backend)
            found_adapters[key] = [describe_adapter(host, handle) for handle in handles]
        return found_adapters[key]


@contextmanager
def runtime_folder() -> Iterator[None]:
    """Set XDG_RUNTIME_DIR temporarily if it is unset, as in containers: drivers print warnings otherwise."""
    if RUNTIME_FOLDER in os.environ or platform.system() != "Linux":
        yield
        return
    import tempfile  # and six modules more

    os.environ[RUNTIME_FOLDER] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ[RUNTIME_FOLDER]


def check_process() -> None:
    """Raise RuntimeError in a forked child, where drivers hang because their threads are in the parent."""
    if not gpu_process_ids:
        gpu_process_ids.append(os.getpid())
    elif gpu_process_ids[0] != os.getpid():
        raise RuntimeError(
            "a GPU cannot be used in a forked child of a process that has used one: start the child with "
            "multiprocessing.set_start_method('spawn') or 'forkserver'; Dask's options for that are "
            "multiprocessing.context and distributed.worker.multiprocessing-method"
        )


def keep_parents_devices() -> None:
    """Keep a forked child from ever releasing its parent's devices: drivers hang then."""
    for device in devices_in_use:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(device))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=keep_parents_devices)
