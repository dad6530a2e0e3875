"""What a process has once: its adapters, and the right to use a GPU."""

from __future__ import annotations

import ctypes
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from wgslice.gpu.adapter import Adapter, describe_adapter
from wgslice.gpu.protocols import GPUDevice

__all__ = ["adapters", "check_process", "devices_in_use", "native_version", "process_lock"]

RUNTIME_FOLDER = "XDG_RUNTIME_DIR"

# Enumerated once: OpenGL adapters of two enumerations share one context under two locks, and their devices,
# used in two threads, abort the process (wgpu-native 29, "BadAccess").
found_adapters: list[Adapter] = []
process_lock = threading.RLock()
gpu_process_ids: list[int] = []  # the process that uses the GPU, once one does
devices_in_use: WeakSet[GPUDevice] = WeakSet()  # what a forked child must never let go of


def adapters() -> list[Adapter]:
    """List the adapters of this machine.

    Returns
    -------
    list of Adapter
        In wgpu's order; empty where there is none.

    Raises
    ------
    RuntimeError
        This is a forked child of a process that has used a GPU.
    """
    import wgpu

    check_process()
    with process_lock:
        if not found_adapters:
            with runtime_folder():
                found = [describe_adapter(adapter) for adapter in wgpu.gpu.enumerate_adapters_sync()]
            found_adapters.extend(found)  # all or, where it was interrupted, none
        return list(found_adapters)


def native_version() -> str:
    """The version of wgpu-native, the library underneath wgpu."""
    from wgpu.backends import wgpu_native

    return str(wgpu_native.__version__)


@contextmanager
def runtime_folder() -> Iterator[None]:
    """Name one for a moment where there is none, in containers: drivers complain on stderr otherwise."""
    if RUNTIME_FOLDER in os.environ or platform.system() != "Linux":
        yield
        return
    os.environ[RUNTIME_FOLDER] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ[RUNTIME_FOLDER]


def check_process() -> None:
    """Refuse GPU work in a forked child, where drivers hang: their threads stayed in the parent."""
    if not gpu_process_ids:
        gpu_process_ids.append(os.getpid())
    elif gpu_process_ids[0] != os.getpid():
        raise RuntimeError(
            "a GPU cannot be used in a forked child of a process that has used one: start the child with "
            "multiprocessing.set_start_method('spawn') or 'forkserver'; in Dask's configuration these are "
            "multiprocessing.context and distributed.worker.multiprocessing-method"
        )


def keep_parents_devices() -> None:
    """Keep a forked child from releasing its parent's devices, at its end at the latest: drivers hang."""
    for device in devices_in_use:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(device))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=keep_parents_devices)
