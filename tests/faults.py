"""Faults of wgpu: the n-th call of its native functions fails as in wgpu, or the device is lost before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock, RLock, current_thread, main_thread
from typing import Any
from weakref import ref

import pytest
import wgpu
from wgpu.backends.wgpu_native import _api, ffi

import wgslice as wg
from wgslice.gpu.hosts import wgpu_native

# Functions that may fail. Others poll, in threads of their own, release or return what is known.
FAILING = re.compile(
    r"wgpu(Adapter|Buffer|Command|Compute|Device|Queue|Texture)(?!\w*(Poll|Release|Get|Has|Label))\w+"
)
NATIVE: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(_api.libf).items()
    if FAILING.fullmatch(name) or name == "wgpuBufferGetMappedRange"
}
MAPPING = "wgpuBufferMapAsync"  # fails in its callback
ABORTING = ("wgpuQueueSubmit", "wgpuBufferGetMappedRange")  # end the process where the device is lost
WAIT = "wait"  # a point besides the native functions: the begin of a wait for the GPU


def said(call: str, reason: str) -> str:
    """wgpu's text of an error."""
    return f"Validation Error\n\nCaused by:\n  In {call}\n    {reason}"


# What a failing call raises, by kind of fault; where wgpu has two classes, by the number of the call in turn.
ERRORS: dict[str, tuple[Callable[[str], BaseException], ...]] = {
    "out of memory": (
        lambda call: wgpu.GPUValidationError(said(call, "Not enough memory left.")),
        lambda call: wgpu.GPUOutOfMemoryError(said(call, "Out of memory")),
    ),
    "refused": (
        lambda call: wgpu.GPUValidationError(said(call, "a reason of the driver's")),
        lambda call: wgpu.GPUInternalError(said(call, "a reason of the driver's")),
    ),
    "interrupt": (lambda call: KeyboardInterrupt(),),
    "device lost": (lambda call: wgpu.GPUValidationError(said(call, "Parent device is lost")),),
}
KINDS = tuple(ERRORS)


class Fault:
    """The n-th call of wgpu, of all threads together, from 1; `happened` tells whether there were as many."""

    def __init__(self, kind: str, number: int, device: wg.Device) -> None:
        self.kind, self.number, self.device = kind, number, ref(device)
        self.calls: list[str] = []
        self.lock = Lock()
        self.aborting = RLock()  # held by a call that would end the process if the device were lost meanwhile
        self.is_lost = False

    @property
    def happened(self) -> bool:
        return len(self.calls) >= self.number

    def in_place_of(self, call: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Count a call, raise if it fails, and return what to call."""
        with self.lock:
            self.calls.append(call)
            fails = len(self.calls) == self.number
        errors = ERRORS[self.kind]
        if self.kind == "device lost":
            if fails:
                device = self.device()
                assert device is not None
                with self.aborting:
                    device.wgpu_device.destroy()
                    self.is_lost = True
            if self.is_lost and call in ABORTING:
                raise errors[self.number % len(errors)](call)
        elif fails and self.kind == "interrupt":
            # Interrupts reach the main thread alone; in a mapping, wgpu-py would wait for it ever after.
            if call != MAPPING and current_thread() is main_thread():
                raise errors[self.number % len(errors)](call)
        elif fails and call == MAPPING:
            return fail_in_callback
        elif fails and call != WAIT:
            raise errors[self.number % len(errors)](call)
        return function


def fail_in_callback(*arguments: Any) -> None:
    """Fail to map a buffer."""
    text = ffi.new("char[]", b"a reason of the driver's")
    message = ffi.new("WGPUStringView *", {"data": text, "length": len(text) - 1})
    *_, callback, handle, other = arguments[-1]
    callback(_api.lib.WGPUMapAsyncStatus_Error, message[0], handle, other)


@contextmanager
def failing(kind: str, number: int, device: wg.Device) -> Iterator[Fault]:
    """Let the n-th call of wgpu fail that is made in the block."""
    fault, finishes_before_loss = Fault(kind, number, device), wgpu_native.finishes_before_loss

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            # Another thread's loss of the device waits for a call that would end the process.
            with fault.aborting if kind == "device lost" and name in ABORTING else nullcontext():
                return fault.in_place_of(name, function)(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, function in NATIVE.items():
            patch.setattr(_api.libf, name, counted(name, function))
        patch.setattr(wgpu_native, "finishes_before_loss", counted(WAIT, finishes_before_loss))
        yield fault
