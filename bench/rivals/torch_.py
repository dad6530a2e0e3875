"""PyTorch, on the CPU and on CUDA. It has no negative steps: `flip` turns the result of a positive one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.cases import Cut
from bench.rivals.keys import written_out

__all__ = ["Cpu", "Cuda", "Written", "describe"]

SAME_BITS = {"uint16": np.int16, "uint32": np.int32, "uint64": np.int64}  # what its kernels lack


def describe() -> dict[str, str]:
    """Versions and device."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return {"torch": torch.__version__, "device": device, "threads": str(torch.get_num_threads())}


def forwards(key: Any, shape: tuple[int, ...]) -> tuple[tuple[int | slice, ...], list[int]]:
    """The same elements with positive steps, and the dimensions of the result to flip."""
    positive: list[int | slice] = []
    flipped, axis = [], 0
    for index, size in zip(written_out(key, len(shape)), shape, strict=False):
        if isinstance(index, int):
            positive.append(index)
            continue
        taken = range(size)[index]
        if taken.step < 0:
            flipped.append(axis)
            taken = taken[::-1]
        positive.append(slice(taken.start, taken.stop, taken.step))
        axis += 1
    return tuple(positive), flipped


class Written:
    """Work that leaves its output in a tensor of PyTorch's."""

    out: Any

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        result: NDArray[Any] = self.out.numpy()
        return result


class Cpu:
    """`out.copy_(x.permute(axes)[key])`, or `flip` of that into a new tensor where a step is negative."""

    device = "cpu"

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.dtype = array.dtype
        same_bits = array.view(SAME_BITS.get(array.dtype.name, array.dtype))
        x = torch.from_numpy(same_bits).to(self.device).permute(cut.axes)
        positive, self.flipped = forwards(cut.key, x.shape)
        self.view = x[positive]
        self.out = torch.empty(self.view.shape, dtype=self.view.dtype, device=self.device)

    def start(self) -> None:
        """Slice, without waiting."""
        if self.flipped:
            self.out = torch.flip(self.view, self.flipped)
        else:
            self.out.copy_(self.view)

    def run(self) -> None:
        """Slice."""
        self.start()

    def result(self) -> NDArray[Any]:
        """The output."""
        result: NDArray[Any] = self.out.cpu().numpy().view(self.dtype)
        return result


class Cuda(Cpu):
    """The same on the GPU."""

    device = "cuda"

    def run(self) -> None:
        """Slice, wait."""
        self.start()
        torch.cuda.synchronize()

    def gpu_seconds(self) -> float:
        """One more run between two events."""
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        self.start()
        after.record()
        torch.cuda.synchronize()
        milliseconds: float = before.elapsed_time(after)
        return milliseconds / 1e3
