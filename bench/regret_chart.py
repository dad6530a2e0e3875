"""A chart of regret: for each case the time of the planned strategy over that of the best."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt

from bench.report import machine_of

__all__ = ["draw_regret"]

COLORS = {"shipped": "#9aa5b1", "tuned": "#0b7a75"}


def draw_regret(content: Mapping[str, Any], path: Path) -> None:
    """Draw kept results: a line per case, a dot per cost model."""
    values = {
        case["name"]: {
            name: case["ways_s"][case[name]["chosen"]] / min(case["ways_s"].values()) for name in COLORS
        }
        for case in content["slices"]
    }
    names = sorted(values, key=lambda name: max(values[name].values()))
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.2 * len(names)), layout="constrained")
    for model, color in COLORS.items():
        places = [values[name][model] for name in names]
        axes.plot(places, range(len(names)), "o", color=color, markersize=5, label=f"{model} cost model")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xlabel("time of the planned strategy over the best one's")
    axes.set_xlim(left=0.95)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right")
    ours = content["contenders"]["wgslice"]
    axes.set_title(f"regret: {ours['adapter']}, {ours['driver']}\n{machine_of(content)}", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
