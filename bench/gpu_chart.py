"""The picture of `python3 run gpu`: bandwidth of copies and permutes, and speed-ups over NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.chart import HIGHLIGHT, PLAIN, draw_speed_ups, save, subtitle
from bench.report import MEBIBYTE

__all__ = ["copy_speeds", "draw_gpu", "gigabytes_per_s"]

BUFFER_COPY = "buffer copy"


def gigabytes_per_s(each: Mapping[str, Any]) -> float:
    """Return the bandwidth of the planned strategy of a case, in bytes of its output."""
    nbytes: int = each["nbytes"]
    seconds: float = each["ways_s"][each["shipped"]["chosen"]]
    return nbytes / seconds / 1e9


def copy_speeds(each: Mapping[str, Any]) -> tuple[float, float]:
    """Return the bandwidth of a contiguous copy as buffer copy and by the best kernel."""
    by_kernel = min((s for name, s in each["ways_s"].items() if name != BUFFER_COPY), default=inf)
    return each["nbytes"] / each["ways_s"][BUFFER_COPY] / 1e9, each["nbytes"] / by_kernel / 1e9


def draw_gpu(content: Mapping[str, Any], path: Path) -> None:
    """Draw the results of `python3 run gpu`, as far as they were measured."""
    figure = Figure(figsize=(9, 13), layout="constrained")
    copies, permutes, slices = figure.subplots(3, height_ratios=(3, 4, 2))
    figure.suptitle(subtitle(content), x=0.01, ha="left", fontsize=10)
    copies.set_title("contiguous copies, with submission and wait", loc="left", fontsize=10)
    measured = content.get("copies", [])
    sizes = [each["nbytes"] / MEBIBYTE for each in measured]
    for number, (label, color) in enumerate(((BUFFER_COPY, PLAIN), ("compute copy, best kernel", HIGHLIGHT))):
        speeds = [copy_speeds(each)[number] for each in measured]
        copies.plot(sizes, speeds, "o-", color=color, label=label)
    copies.set_xscale("log", base=2)
    copies.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    copies.set_ylim(bottom=0)
    copies.set(xlabel="MiB", ylabel="GB/s of output")
    copies.legend()

    shown = content.get("permutes", [])[::-1]
    permutes.set_title("permutes of about 64 MiB, by the planned strategy", loc="left", fontsize=10)
    permutes.barh(
        [each["name"] for each in shown], [gigabytes_per_s(each) for each in shown], color=HIGHLIGHT
    )
    if large := [each for each in measured if each["nbytes"] == 64 * MEBIBYTE]:
        permutes.axvline(gigabytes_per_s(large[0]), color="black", label="copy of 64 MiB")
        permutes.legend()
    permutes.set_xlabel("GB/s of output")

    title = draw_speed_ups(slices, content) if "slices" in content else "slices: not measured"
    slices.set_title(title, loc="left", fontsize=10)
    save(figure, path)
