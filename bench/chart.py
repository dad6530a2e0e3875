"""A chart of wgslice's speed-ups over others, for each group of slices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.cases import CASES
from bench.entries import ALLOCATING, OURS
from bench.report import MEBIBYTE, machine_of, mean_speed_up

__all__ = ["CHARTED", "HIGHLIGHT", "PLAIN", "draw", "draw_speed_ups", "groups", "save", "subtitle"]

HIGHLIGHT, PLAIN = "#0b7a75", "#9aa5b1"
# The contenders in the chart, with colours.
CHARTED = {
    ALLOCATING: HIGHLIGHT,
    "tinygrad WebGPU": "#d1751f",
    "ONNX Runtime WebGPU": "#7b3fa0",
}
# By a pattern of their names, the first that matches.
GROUPS = {
    "transposes": r"transpose|permute|x\.T",
    "channels first or last": "CHW",
    "channels of pixels": "BGR|green|RGBA",
    "flips": "flip|mirrored|reversed inside",
    "steps": "every|size|step|focus|merging",
    "crops": "crop|halves",
}
SCALE = {case.name for case in CASES if not case.rivals}  # the same crop, larger and larger


def groups(content: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the slices with 1 MiB of output and more by group, those of a growing crop left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for case in content["slices"]:
        name = next((name for name, pattern in GROUPS.items() if re.search(pattern, case["name"])), "others")
        if case["nbytes"] >= MEBIBYTE and case["name"] not in SCALE:
            found.setdefault(name, []).append(case)
    return {name: found[name] for name in [*reversed(GROUPS), "others"] if name in found}


def draw(content: Mapping[str, Any], path: Path) -> None:
    """Draw kept results into a file."""
    figure, axes = plt.subplots(figsize=(9, 5.2), layout="constrained")
    title = draw_speed_ups(axes, content)
    axes.set_title(f"{title}\n{subtitle(content)}", loc="left", fontsize=10)
    save(figure, path)


def draw_speed_ups(axes: Axes, content: Mapping[str, Any]) -> str:
    """Draw a bar for each group and contender, the geometric mean of its speed-ups; return the title."""
    found = groups(content)
    rivals = [name for name in CHARTED if name in content["contenders"]]
    height = 0.8 / max(len(rivals), 1)
    for number, rival in enumerate(rivals):
        for place, cases in enumerate(found.values()):
            mean = mean_speed_up(cases, rival)
            if mean is None:
                continue
            line = place - 0.4 + (number + 0.5) * height
            axes.barh(line, mean - 1, height, left=1, color=CHARTED[rival], zorder=2)
            axes.annotate(
                f"{mean:.2g}",
                (mean, line),
                xytext=(3 if mean > 1 else -3, 0),
                textcoords="offset points",
                ha="left" if mean > 1 else "right",
                va="center",
                fontsize=7,
            )
        axes.barh(0, 0, left=1, color=CHARTED[rival], label=f"over {rival}")
    axes.set_yticks(range(len(found)), [f"{name} ({len(cases)})" for name, cases in found.items()])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="black", linewidth=1, zorder=4)
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(
        "left of the line wgslice is slower, right of it faster; geometric means, 1 MiB of output and more"
    )
    axes.legend(fontsize=8)
    return "speed-up of wgslice, larger is better"


def subtitle(content: Mapping[str, Any]) -> str:
    """Return the adapter, its driver and the machine that results were measured on, in two lines."""
    ours = content["contenders"][OURS]
    return f"{ours['adapter']}, {ours['driver']}\n{machine_of(content)}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
