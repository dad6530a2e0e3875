"""A chart of the speed-up of each contender over NumPy, for slices without permutes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.cases import CASES
from bench.entries import ALLOCATING, COPY, OURS
from bench.report import MEBIBYTE, geometric_mean, machine_of

__all__ = ["HIGHLIGHT", "PLAIN", "draw", "draw_speed_ups", "save", "subtitle"]

HIGHLIGHT, PLAIN, CEILING = "#0b7a75", "#9aa5b1", "#d7dde3"


SCALE = {case.name for case in CASES if not case.rivals}  # on which there are no rivals


def draw(content: Mapping[str, Any], path: Path) -> None:
    """Draw kept results into a file."""
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.55 * len(content["contenders"])), layout="constrained")
    title = draw_speed_ups(axes, content)
    axes.set_title(f"{title}\n{subtitle(content)}", loc="left", fontsize=10)
    save(figure, path)


def draw_speed_ups(axes: Axes, content: Mapping[str, Any]) -> str:
    """Draw a bar for each contender's geometric mean and a dot for each of its slices; return the title."""
    rows = []
    chosen = [
        each
        for each in content["slices"]
        if each["nbytes"] >= MEBIBYTE and each["name"] not in SCALE and not each.get("axes")
    ]
    for name in content["contenders"]:
        found = [
            outcomes[ALLOCATING]["best_s"] / outcomes[name]["best_s"]
            for outcomes in (each["outcomes"] for each in chosen)
            if "best_s" in outcomes.get(name, {}) and "best_s" in outcomes[ALLOCATING]
        ]
        if found:
            rows.append((geometric_mean(found), name, found))
    rows.sort(key=lambda row: row[0])
    for place, (mean, name, found) in enumerate(rows):
        color = {OURS: HIGHLIGHT, COPY: CEILING}.get(name, PLAIN)
        axes.barh(place, mean - 1, left=1, color=color, height=0.6, zorder=2)
        axes.plot(found, [place] * len(found), "o", color="black", markersize=3, alpha=0.35, zorder=3)
        axes.annotate(
            f"{mean:.2f}x" + (f" ({len(found)} slices)" if len(found) < len(chosen) else ""),
            (max(*found, mean), place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            weight="bold" if name == OURS else "normal",
        )
    axes.set_yticks(range(len(rows)), [name for _, name, _ in rows])
    for tick, (_, name, _) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if name == OURS else "normal")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="black", linewidth=1, zorder=4)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("speed-up over NumPy, larger is better; a dot is a slice, a bar the geometric mean")
    return f"{len(chosen)} slices with 1 MiB of output and more"


def subtitle(content: Mapping[str, Any]) -> str:
    """Return the adapter, its driver and the machine that results were measured on, in two lines."""
    ours = content["contenders"][OURS]
    return f"{ours['adapter']}, {ours['driver']}\n{machine_of(content)}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
