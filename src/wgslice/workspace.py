"""Where a program of many copies runs: one command encoder, and buffers that are used again when free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wgslice.copies import CopyPlanner
from wgslice.device import Device, translated_errors
from wgslice.dtypes import DType, native_dtype
from wgslice.execute import Operand, record
from wgslice.integers import checked_shape
from wgslice.layout import Layout
from wgslice.plan import Planner
from wgslice.rearrange import broadcast
from wgslice.tensor import Tensor
from wgslice.transfer import upload

if TYPE_CHECKING:
    from wgslice.device import Buffer, CommandEncoder

__all__ = ["MemoryUse", "Workspace"]


@dataclass(frozen=True)
class MemoryUse:
    """Device memory that a run took.

    Attributes
    ----------
    peak_nbytes : int
        Bytes of the buffers that the run needed, for its inputs, intermediates and outputs. Constants, and
        tensors that the caller gave, are not among them.
    buffers : int
        How many buffers those were.
    tensors_nbytes, tensors : int
        Bytes and number of the tensors that were put into them: what it would have taken without reuse.
    submissions : int
        How often commands were submitted; more than once where a parameter was computed and had to be read.
    """

    peak_nbytes: int
    buffers: int
    tensors_nbytes: int
    tensors: int
    submissions: int

    def __str__(self) -> str:
        return (
            f"{self.peak_nbytes:,} bytes in {self.buffers} buffers, for {self.tensors} tensors of "
            f"{self.tensors_nbytes:,} bytes; submitted {self.submissions} times"
        )


class Workspace:
    """Records copies into one encoder, on buffers that it uses again as soon as no value lies in them.

    The GPU works in the order of the commands, so a buffer is free once its last reader is recorded.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.owned: dict[int, Buffer] = {}  # by id: what the last run has used
        self.begin()

    def begin(self) -> None:
        """Start a run: no value is held, and what the last run has used is free."""
        self.encoder: CommandEncoder | None = None
        self.free = dict(self.owned)
        self.held: Counter[int] = Counter()  # values in a buffer, by its id
        self.used: dict[int, Buffer] = {}
        self.given: list[Buffer] = []  # used too, and now the caller's
        self.requests: list[int] = []
        self.submissions = 0

    def end(self) -> MemoryUse:
        """Keep the buffers that this run has used for the next one, and say how many they were."""
        sizes = [buffer.size for buffer in (*self.used.values(), *self.given)]
        self.owned = self.used
        return MemoryUse(sum(sizes), len(sizes), sum(self.requests), len(self.requests), self.submissions)

    def empty(self, sizes: Iterable[int], dtype: DType) -> Tensor:
        """A packed tensor of any content, in the smallest free buffer that holds it, or in a new one."""
        layout = Layout.packed(checked_shape(sizes))
        nbytes = layout.size * dtype.itemsize
        fitting = [buffer for buffer in self.free.values() if buffer.size >= nbytes]
        buffer = min(fitting, key=lambda buffer: buffer.size, default=None) or self.device.create_buffer(
            nbytes
        )
        self.free.pop(id(buffer), None)
        self.used[id(buffer)] = buffer
        self.requests.append(nbytes)
        return Tensor(self.device, buffer, dtype, layout)

    def upload(self, array: NDArray[Any]) -> Tensor:
        """An array, on the device."""
        native = array.astype(native_dtype(array.dtype), order="C", copy=False)
        self.submit()  # what is recorded may still read the buffer that this writes at once
        tensor = self.empty(native.shape, native.dtype)
        if native.size:
            upload(self.device, tensor.buffer, native.reshape(-1).view(np.uint8))
        return tensor

    def run(self, planner: Planner, source: Operand, target: Operand) -> None:
        """Record what a planner plans, unless there is nothing to write."""
        if target.layout.size == 0:
            return
        if self.encoder is None:
            self.encoder = self.device.wgpu_device.create_command_encoder()
        record(self.device, self.encoder, planner, source, target)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Record a copy of the same dtype, repeated to the target's sizes."""
        layout = broadcast(source.layout, target.shape)
        assert layout is not None
        assert source.dtype == target.dtype
        self.run(CopyPlanner(source.dtype.itemsize), Operand(source.buffer, layout), target.operand)

    def packed(self, x: Tensor) -> Tensor:
        """A packed copy."""
        copied = self.empty(x.shape, x.dtype)
        self.copy(x, copied)
        return copied

    def submit(self) -> None:
        """Let the GPU begin with what is recorded."""
        if self.encoder is None:
            return
        with translated_errors():
            self.device.wgpu_device.queue.submit([self.encoder.finish()])
        self.encoder = None
        self.submissions += 1

    def read(self, x: Tensor) -> NDArray[Any]:
        """Read back, after what is recorded."""
        self.submit()
        return x.numpy()

    def hold(self, value: object) -> None:
        """Keep the buffers that a value lies in."""
        self.held.update(id(tensor.buffer) for tensor in tensors_of(value))

    def drop(self, value: object) -> None:
        """Let the buffers of a held value be used again, where no other value lies in them."""
        for tensor in tensors_of(value):
            key = id(tensor.buffer)
            self.held[key] -= 1
            if self.held[key] == 0 and key in self.used:
                self.free[key] = tensor.buffer

    def give_away(self, x: Tensor) -> Tensor:
        """A held value as a tensor for the caller to keep: packed, in a buffer that holds nothing else."""
        key = id(x.buffer)
        own = key in self.used and self.held[key] == 1
        if not (own and x.is_packed and x.offset == 0 and x.buffer.size < x.nbytes + 16):
            x = self.packed(x)
        self.given.append(self.used.pop(id(x.buffer)))
        return x


def tensors_of(value: object) -> list[Tensor]:
    """The tensors in a value: one, none, or those of a sequence."""
    if isinstance(value, list):
        return [tensor for item in value for tensor in tensors_of(item)]
    return [value] if isinstance(value, Tensor) else []
