"""Stored results of cliffs: on a terminal, on their page, and as a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files

import matplotlib.pyplot as plt

from bench.report import geometric_mean, machine_of

__all__ = ["DTYPES", "draw_cliffs", "exceeding", "report"]

DTYPES = {"uint8": "#0b7a75", "float16": "#d1751f", "float32": "#7b3fa0", "int64": "#3f3f3f"}  # with colours
PAIR_LIMIT = 1.5  # times the equivalent
WORST = 20  # rows of a table

Content = Mapping[str, Any]


def ratio(row: Content) -> float:
    """Time over the ceiling."""
    return float(row["best_s"] / row["ceiling_s"])


def worst_first(content: Content) -> list[Content]:
    """The rows that have times."""
    return sorted((row for row in content["cliffs"] if "best_s" in row), key=ratio, reverse=True)


def pairs(content: Content) -> Iterator[tuple[str, str, dict[str, float]]]:
    """An expression, its equivalent, and with each dtype how many times as long it takes."""
    best_s = {(row["dtype"], row["expression"]): row["best_s"] for row in worst_first(content)}
    for ours, other in content["equivalents"].items():
        known = [dtype for dtype in DTYPES if {(dtype, ours), (dtype, other)} <= best_s.keys()]
        yield ours, other, {dtype: best_s[dtype, ours] / best_s[dtype, other] for dtype in known}


def exceeding(content: Content) -> list[str]:
    """Rows that take longer than they should, alone or against an equivalent, and rows without a time."""
    rows = [row["name"] for row in content["cliffs"] if "failure" in row or ratio(row) > row["limit"]]
    slower = [
        f"{dtype} {ours} against {other}"
        for ours, other, ratios in pairs(content)
        for dtype in ratios
        if ratios[dtype] > PAIR_LIMIT
    ]
    return rows + slower


def report(content: Content) -> str:
    """The worst rows first, then pairs, rows without a time, ceilings, and the mean; in Markdown."""
    rows = worst_first(content)
    worst = [
        f"{row['dtype']} | `{row['expression']}` | {row['best_s'] * 1e3:.2f} | {row['ceiling']} | "
        f"{ratio(row):.1f} | {row['limit']:g} | {row['best_s'] / row['numpy_s']:.1f}"
        for row in rows[:WORST]
    ]
    compared = [
        " | ".join([f"`{ours}`", f"`{other}`", *(f"{ratios.get(dtype, nan):.2f}" for dtype in DTYPES)])
        for ours, other, ratios in pairs(content)
        if ratios
    ]
    failed = [f"- `{row['name']}`: {row['failure']}" for row in content["cliffs"] if "failure" in row]
    ceilings = ", ".join(f"{name} {best_s * 1e3:.3g} ms" for name, best_s in content["ceilings_s"].items())
    mean = geometric_mean([*map(ratio, rows)]) if rows else nan
    return "\n\n".join(
        [
            table("dtype | expression | ms | ceiling | times the ceiling | limit | times NumPy", worst),
            table(f"expression | equivalent, limit {PAIR_LIMIT} times | {' | '.join(DTYPES)}", compared),
            *["\n".join(failed)] * bool(failed),
            f"Ceilings: {ceilings}.",
            f"{len(rows)} rows, geometric mean {mean:.2f} times the ceiling; "
            f"{len(exceeding(content))} limits exceeded.",
        ]
    )


def table(columns: str, rows: Sequence[str]) -> str:
    """A table of Markdown."""
    return "\n".join(f"| {row} |" for row in [columns, re.sub(r"[^|]+", "---", columns), *rows])


def draw_cliffs(content: Content, path: Path) -> None:
    """Draw a line an expression, the worst on top, with a dot for each dtype and a mark at the limit."""
    rows = worst_first(content)
    limits = {row["expression"]: row["limit"] for row in rows}
    names = list(limits)[::-1]
    figure, axes = plt.subplots(figsize=(11, 1.4 + 0.19 * len(names)), layout="constrained")
    for dtype, color in DTYPES.items():
        some = [row for row in rows if row["dtype"] == dtype]
        lines = [names.index(row["expression"]) for row in some]
        axes.plot([*map(ratio, some)], lines, "o", color=color, markersize=4, label=dtype)
    places = [limits[name] for name in names]
    axes.plot(places, range(len(names)), "|", color="black", markersize=8, label="limit")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(-1, len(names))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("time over the ceiling, smaller is better")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right")
    ours = content["contenders"]["wgslice"]
    axes.set_title(f"cliffs: {ours['adapter']}, {ours['driver']}\n{machine_of(content)}", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
