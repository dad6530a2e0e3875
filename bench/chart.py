"""One picture: how long each contender takes for a slice that takes NumPy one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt

from bench.entries import ALLOCATING, COPY, OURS
from bench.report import MEBIBYTE, Results, geometric_mean, ratio

__all__ = ["draw"]

HIGHLIGHT, PLAIN, CEILING = "#0b7a75", "#9aa5b1", "#d7dde3"


def draw(results: Results, names: Sequence[str], subtitle: str, path: Path) -> None:
    """Draw a bar for each contender's geometric mean and a dot for each of its slices."""
    rows = []
    for name in names:
        chosen = [case for case in results if case.nbytes >= MEBIBYTE and case.rivals]
        found = [value for case in chosen if (value := ratio(results[case], name, ALLOCATING)) is not None]
        if found:
            rows.append((geometric_mean(found), name, found))
    rows.sort(key=lambda row: row[0], reverse=True)
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.55 * len(rows)), layout="constrained")
    for place, (mean, name, found) in enumerate(rows):
        color = {OURS: HIGHLIGHT, COPY: CEILING}.get(name, PLAIN)
        axes.barh(place, mean, color=color, height=0.6, zorder=2)
        axes.plot(found, [place] * len(found), "o", color="black", markersize=3, alpha=0.35, zorder=3)
        label = f"{mean:.2g}x" if mean < 10 else f"{mean:.0f}x"
        axes.annotate(
            f"{label} of {len(found)}",
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
    axes.axvline(1, color="black", linewidth=1, zorder=4)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(
        "time over NumPy's for the same slice: left is faster; bars: geometric mean, dots: slices"
    )
    axes.set_title(f"Slices of 1 MiB and more\n{subtitle}", loc="left", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
