"""One picture: what GPU compilers say that each slice costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt

__all__ = ["draw_compilers"]

COLORS = ("#0b7a75", "#9aa5b1", "#e0a458", "#5b6875", "#b56576", "#6d597a", "#355070")
COST = "inverse throughput"


def draw_compilers(kept: Mapping[str, Any], path: Path) -> None:
    """Draw a dot for each slice and compiler that says a throughput: cycles for 16 useful bytes."""
    costs: dict[str, dict[str, float]] = {}
    for variant in kept["variants"]:
        for name in variant["slices"]:
            for driver, said in variant["compilers"].items():
                of_slice = costs.setdefault(name, {})
                of_slice[driver] = of_slice.get(driver, 0) + said.get(COST, 0)
    names = sorted(costs, key=lambda name: max(costs[name].values(), default=0), reverse=True)
    drivers = [driver for driver in kept["devices"] if any(costs[name].get(driver) for name in names)]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.24 * len(names)), layout="constrained")
    for driver, color in zip(drivers, COLORS, strict=False):
        places = [place for place, name in enumerate(names) if costs[name].get(driver)]
        found = [costs[names[place]][driver] for place in places]
        axes.plot(found, places, "o", color=color, label=kept["devices"][driver])
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", alpha=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("cycles for 16 useful bytes, left is better; memory left out")
    axes.legend(loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
