"""What descriptors have in common: all are planned on a device and compiled, many have one window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from wgslice.dialects.window import Window, Windowed
from wgslice.dtypes import check_same_dtype
from wgslice.gpu.device import Device
from wgslice.layout import check_disjoint
from wgslice.operators.binding import PlannedOperator
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.tensor_desc import TensorDesc

__all__ = ["Descriptor", "WindowDescriptor"]


class Descriptor(ABC):
    """What an operator does, checked, before there is a device."""

    @abstractmethod
    def planned(self, device: Device) -> PlannedOperator:
        """What `explain` calls: plans on `device`, without a pipeline."""

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        return CompiledOperator(self.planned(device))


@dataclass(frozen=True, init=False)
class WindowDescriptor(Descriptor, Windowed):
    """Two tensors, and a window of the one that the other fills."""

    input: TensorDesc
    output: TensorDesc
    window: Window

    def _hold(
        self, input: TensorDesc, output: TensorDesc, window: Window, *, filled: Literal["input", "output"]
    ) -> None:
        """Take over what is checked but for what two tensors must have in common."""
        check_same_dtype(input.dtype, output.dtype)
        window.check_filled((input if filled == "input" else output).sizes, filled)
        check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "window", window)
