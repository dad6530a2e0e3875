"""A chart of GPU compilers' cost of each slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

__all__ = ["draw_compilers"]

COLORS = ("#0b7a75", "#9aa5b1", "#e0a458", "#5b6875", "#b56576", "#6d597a", "#355070")
# What each panel shows, and how its axis is named: AMD's compiler alone says a throughput.
PANELS = {
    "inverse throughput": "cycles of inverse throughput for 16 useful bytes, memory left out",
    "instructions": "instructions for 16 useful bytes, both sides of each branch",
}


def draw_compilers(kept: Mapping[str, Any], path: Path) -> None:
    """Draw a dot for each slice and compiler in each panel; left is better."""
    costs = {label: costs_of(kept["variants"], label) for label in PANELS}
    worst = {name: max(said.values()) for name, said in costs["instructions"].items()}
    names = sorted(worst, key=lambda name: worst[name], reverse=True)
    size = 12, 1.8 + 0.24 * len(names)
    figure, panels = plt.subplots(1, len(PANELS), sharey=True, figsize=size, layout="constrained")
    for axes, (label, unit) in zip(panels, PANELS.items(), strict=True):
        draw_panel(axes, costs[label], names, kept["devices"])
        axes.set_xlabel(unit)
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def costs_of(variants: Sequence[Mapping[str, Any]], label: str) -> dict[str, dict[str, float]]:
    """Return a statistic by slice and compiler, summed over dispatches."""
    costs: dict[str, dict[str, float]] = {}
    for variant in variants:
        for name in variant["slices"]:
            of_slice = costs.setdefault(name, {})
            for driver, said in variant["compilers"].items():
                if label in said:
                    of_slice[driver] = of_slice.get(driver, 0) + said[label]
    return costs


def draw_panel(
    axes: Axes, costs: Mapping[str, Mapping[str, float]], names: Sequence[str], devices: Mapping[str, str]
) -> None:
    """Draw the dots of one statistic, a row per slice."""
    for (driver, device), color in zip(devices.items(), COLORS, strict=False):
        places = [place for place, name in enumerate(names) if driver in costs[name]]
        if places:
            found = [costs[names[place]][driver] for place in places]
            version = device.rpartition(", ")[2]
            axes.plot(found, places, "o", color=color, label=f"{driver}, {version}")
    axes.set_yticks(range(len(names)), names)
    axes.margins(y=0.02)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", alpha=0.4)
    axes.spines[["top", "right"]].set_visible(False)
