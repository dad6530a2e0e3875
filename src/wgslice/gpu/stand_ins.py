"""What stands for a buffer inside this package: a lease of its memory, or a placeholder without memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

from wgslice.gpu.protocols import Buffer, GPUDevice


class StandIn:
    """Stands for a buffer, with the attributes of one."""

    wgpu_device: GPUDevice
    size: int
    usage: int
    label = ""


class Lease(StandIn):
    """The memory of a buffer until the lease is dropped, which gives the buffer back.

    The user gets the host's handle itself, and owns the memory from then on as long as the handle exists:
    `give_back`, told so, frees the buffer instead of using it again.
    """

    def __init__(
        self, wgpu_device: GPUDevice, buffer: Any, give_back: Callable[[Any, bool], None] = lambda *_: None
    ) -> None:
        self.wgpu_device = wgpu_device
        self.size: int = buffer.size
        self.usage: int = buffer.usage
        self.is_given_out = False  # whether the user may keep or destroy the buffer, or use it in commands
        self.handle = handle_of(buffer)
        self._buffer = buffer
        self._give_back = give_back

    @property
    def map_state(self) -> str:
        """Whether the buffer is "unmapped", "pending" or "mapped"."""
        state: str = self.handle.map_state
        return state

    def __del__(self) -> None:
        self._give_back(self._buffer, self.is_given_out)


@dataclass(eq=False)
class Placeholder(StandIn):
    """Replaces a buffer in a captured call, without memory."""

    wgpu_device: GPUDevice
    size: int
    usage: int
    used_nbytes: int  # whole words that tensors may use
    zeroed: bool = True  # whether the call relies on zeros where it does not write
    map_state = "unmapped"


leases: WeakKeyDictionary[Any, ref[Lease]] = WeakKeyDictionary()  # by handles that were given out


def handle_of(buffer: Any) -> Any:
    """Return the host's handle of a buffer or of what stands for one."""
    if isinstance(buffer, Placeholder):
        raise ValueError(
            "the tensor comes from an explained or captured call, which did not run: it has no elements"
        )
    return buffer.handle if isinstance(buffer, Lease) else buffer


def given_out(buffer: Any) -> Any:
    """Return the host's handle of a buffer, for the user, who may keep or destroy it from now on."""
    if not isinstance(buffer, Lease):
        return buffer
    if not buffer.is_given_out:
        buffer.is_given_out = True
        leases[buffer.handle] = ref(buffer)
    return buffer.handle


def is_given_out(buffer: Buffer) -> bool:
    """Whether the user may have a buffer's handle, or commands that use it."""
    return buffer.is_given_out if isinstance(buffer, Lease) else not isinstance(buffer, Placeholder)


def known(handle: Any) -> Any:
    """Return what stands for a buffer whose handle the user gives back, or the handle of another buffer."""
    lease = leases.get(handle)
    return (lease and lease()) or handle
