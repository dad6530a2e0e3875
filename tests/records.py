"""Costs as nobody would measure them, each figure another, and records of them."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from itertools import count
from typing import Any

from wgslice.gpu.adapter import Adapter
from wgslice.kept_costs.record import Record
from wgslice.kept_costs.subject import Subject
from wgslice.plans.costs import Costs, Work
from wgslice.plans.profiles import CPU

__all__ = ["MEASURED", "costs_from", "record_of"]

DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def costs_from(start: int = 1, origin: str = "figures tuned here on 2026-02-03", **chosen: float) -> Costs:
    """Costs of which no two figures are alike, but for those that a test chooses."""
    numbers = count(start)

    def figures(kind: type) -> dict[str, float]:
        """Some billions of bytes a second and some nanoseconds."""
        names = [field.name for field in fields(kind) if field.type == "float"]
        return {name: next(numbers) * (1e9 if name.endswith("bytes_per_s") else 1.1e-9) for name in names}

    fixed: dict[str, Any] = figures(Costs) | chosen
    works = {name: Work(**figures(Work)) for name in CPU.costs.works}
    return Costs(origin, **fixed, works=works, is_tuned=True)


def record_of(adapter: Adapter, costs: Costs | None = None) -> Record:
    """A record of an adapter on this machine."""
    subject = Subject.here(adapter.name, adapter.backend, adapter.driver)
    return Record(subject, costs or costs_from(), DATE, 12.34)


MEASURED = costs_from(copy_s=1.0, copy_bytes_per_s=1e15)  # buffer copies of a second, as nobody finds them
