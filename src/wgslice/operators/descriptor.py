"""What every descriptor can do: be planned on a device, and compiled."""

from __future__ import annotations

from abc import ABC, abstractmethod

from wgslice.gpu.device import Device
from wgslice.operators.binding import PlannedOperator
from wgslice.operators.compiled import CompiledOperator

__all__ = ["Descriptor"]


class Descriptor(ABC):
    """What an operator does, checked, before there is a device."""

    @abstractmethod
    def planned(self, device: Device) -> PlannedOperator:
        """What `explain` calls: plans on `device`, without a pipeline."""

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        return CompiledOperator(self.planned(device))
