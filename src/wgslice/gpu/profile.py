"""What plans know of an adapter: how work is dealt on its kind, and what work costs on it."""

from __future__ import annotations

from dataclasses import replace

from wgslice.gpu.adapter import Adapter
from wgslice.plans.profiles import CPU, GPU, Profile
from wgslice.plans.shipped import shipped_for

__all__ = ["profile_for"]


def profile_for(adapter: Adapter) -> Profile:
    """The profile of the adapter's kind, with the costs that are known of it."""
    kind = CPU if adapter.software else GPU
    costs = shipped_for(adapter.name, adapter.backend, adapter.driver, software=adapter.software)
    return replace(kind, costs=costs)
