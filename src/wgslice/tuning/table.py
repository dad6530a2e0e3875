"""Costs as a table that people read."""

from __future__ import annotations

from pathlib import Path

from wgslice.kept_costs.record import Record
from wgslice.plans.costs import Costs

__all__ = ["described", "table"]


def described(record: Record, path: Path | None) -> str:
    """A record, what it is of, and the file that keeps it."""
    subject, costs = record.subject, record.costs
    lines = [
        f"adapter    {subject.adapter} via {subject.backend}",
        f"driver     {subject.driver}",
        f"processor  {subject.processor}, {subject.cores} cores",
        f"figures    {costs.origin.removeprefix('figures ')}, in {record.seconds:.1f} s",
        f"kept in    {path or 'no file'}",
    ]
    return "\n".join([*lines, "", table(costs)])


def table(costs: Costs) -> str:
    """A line a figure, with its unit."""
    fixed = {
        "to submit and wait": f"{number(costs.submission_s * 1e6)} us",
        "a dispatch": f"{number(costs.dispatch_s * 1e6)} us",
        "a buffer copy or a clear": f"{number(costs.copy_s * 1e6)} us",
        "bytes of buffer copies": f"{number(costs.copy_bytes_per_s / 1e9)} GB/s",
        "bytes of clears": f"{number(costs.clear_bytes_per_s / 1e9)} GB/s",
        "a pipeline, once": f"{number(costs.pipeline_s * 1e3)} ms",
    }
    rows = [("kernel, bytes an element, source", "GB/s written", "ns an invocation")]
    rows += [
        (name, number(work.bytes_per_s / 1e9), number(work.invocation_s * 1e9))
        for name, work in costs.works.items()
    ]
    wide = max(len(name) for name, _, _ in rows)
    lines = [f"{name:<{wide}} {figure:>12}" for name, figure in fixed.items()]
    lines += ["", *(f"{name:<{wide}} {rate:>12} {each:>16}" for name, rate, each in rows)]
    return "\n".join(lines)


def number(figure: float) -> str:
    """Three digits of a figure, without an exponent where that is short."""
    return f"{float(f'{figure:.3g}'):g}"
