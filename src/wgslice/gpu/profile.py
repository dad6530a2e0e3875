"""What plans know of an adapter: how work is dealt on its kind, and what work costs on it."""

from __future__ import annotations

from dataclasses import replace

from wgslice.gpu.adapter import Adapter
from wgslice.kept_costs.store import find
from wgslice.plans.costs import shipped_for
from wgslice.plans.profiles import CPU, GPU, Profile

__all__ = ["profile_for"]


def profile_for(adapter: Adapter) -> Profile:
    """The profile of the adapter's kind, with the costs that were measured of it here, or those shipped."""
    facts = adapter.name, adapter.backend, adapter.driver
    kept = find(*facts)
    costs = kept.record.costs if kept else shipped_for(*facts, software=adapter.software)
    return replace(CPU if adapter.software else GPU, costs=costs)
