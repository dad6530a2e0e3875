"""Results of a run: the table on the terminal, the summary, and the JSON that is stored."""

from __future__ import annotations

import json
import os
import platform
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import exp, isfinite, log
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cases import Case
from bench.contest import ROOT, Outcome, Process
from bench.entries import ALLOCATING, COPY, OURS
from bench.provenance import provenance
from wgslice.calibration.store import processor
from wgslice.whole_files import written_whole

__all__ = [
    "GPU_COLUMN",
    "MEBIBYTE",
    "RESULTS",
    "Results",
    "about",
    "clocked",
    "file_name",
    "geometric_mean",
    "keep",
    "machine_of",
    "mean_speed_up",
    "results_json",
    "show_failures",
    "show_summary",
    "speed_up",
    "stem_of",
    "stored_speed_ups",
    "summary",
    "table",
    "write_json",
]

Results = Mapping[Case, Mapping[str, Outcome]]

MEBIBYTE = 2**20
RESULTS = ROOT / "bench" / "results"
GPU_COLUMN = "GPU's own ms"  # of wgslice


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers."""
    return exp(sum(map(log, values)) / len(values))


def speed_up(outcomes: Mapping[str, Outcome], name: str, over: str) -> float | None:
    """Return the speed-up of one contender over another by best times; None if either has none."""
    if any(other not in outcomes or not outcomes[other].times for other in (name, over)):
        return None
    return outcomes[over].best / outcomes[name].best


def stored_speed_ups(outcomes: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the speed-up of the first contender of a stored case over each, by best times."""
    best_s = {name: outcome["best_s"] for name, outcome in outcomes.items() if "best_s" in outcome}
    first = best_s.get(next(iter(outcomes)))
    return {name: seconds / first for name, seconds in best_s.items()} if first else {}


def mean_speed_up(cases: Iterable[Mapping[str, Any]], name: str) -> float | None:
    """Return the geometric mean of the speed-ups of stored cases over a contender; None without any."""
    found = [ratios[name] for case in cases if name in (ratios := stored_speed_ups(case["outcomes"]))]
    return geometric_mean(found) if found else None


def table(results: Results, names: Sequence[str]) -> Table:
    """Milliseconds of NumPy, and the speed-up of each contender over NumPy."""
    shown = Table(title="speed-up over NumPy: larger is better", title_justify="left")
    shown.add_column("slice")
    shown.add_column("MiB", justify="right")
    shown.add_column("NumPy ms", justify="right")
    others = [name for name in names if name != ALLOCATING]
    for name in others:
        shown.add_column(name, justify="right")
    for column in ("GB/s", GPU_COLUMN):
        shown.add_column(column, justify="right")
    for case, outcomes in results.items():
        row = [case.name, f"{case.nbytes / MEBIBYTE:.3g}", f"{outcomes[ALLOCATING].best * 1e3:.3g}"]
        for name in others:
            value = speed_up(outcomes, name, ALLOCATING)
            row.append("-" if value is None else f"{value:.2f}")
        ours = outcomes[OURS]
        row.append("-" if ours.failure else f"{case.nbytes / ours.best / 1e9:.2f}")
        shown.add_row(*row, clocked(ours))
    return shown


def clocked(outcome: Outcome) -> str:
    """Milliseconds by the GPU's own clock, where its adapter has timestamps."""
    return f"{min(outcome.gpu_times) * 1e3:.3g}" if outcome.gpu_times else "-"


def summary(results: Results, names: Sequence[str]) -> dict[str, float]:
    """Return the summary: mean and worst speed-ups."""
    large = [case for case in results if case.rivals and case.nbytes >= MEBIBYTE]
    slices = [case for case in large if not case.axes]
    return {
        **means("1 MiB and more", results, slices, names),
        **worst("4 MiB and more", results, [case for case in slices if case.nbytes >= 4 * MEBIBYTE]),
        **means("permutes", results, [case for case in large if case.axes], names),
        **scaling(results),
    }


def means(what: str, results: Results, cases: Sequence[Case], names: Sequence[str]) -> dict[str, float]:
    """Return the mean speed-up of wgslice over each contender for some cases."""
    chosen = [results[case] for case in cases]
    found = {
        f"speed-up over {name}, {what}": [speed_up(each, OURS, name) for each in chosen]
        for name in names
        if name != OURS
    }
    clocked = [clocked_speed_up(each) for each in chosen]
    found[f"speed-up over {COPY} by the GPU's own clock, {what}"] = clocked
    known = {label: [value for value in ratios if value is not None] for label, ratios in found.items()}
    return {
        f"{label}, geometric mean of {len(ratios)}": geometric_mean(ratios)
        for label, ratios in known.items()
        if ratios
    }


def clocked_speed_up(outcomes: Mapping[str, Outcome]) -> float | None:
    """Our speed-up over the buffer copy by the GPU's own clock; None where either has none."""
    ours, copy = (outcomes.get(name, Outcome()).gpu_times for name in (OURS, COPY))
    return min(copy) / min(ours) if ours and copy else None


def worst(what: str, results: Results, cases: Sequence[Case]) -> dict[str, float]:
    """Our speed-ups over NumPy of some cases, their mean and the smallest."""
    found = [value for case in cases if (value := speed_up(results[case], OURS, ALLOCATING)) is not None]
    label = f"speed-up over {ALLOCATING}, {what}"
    mean = f"{label}, geometric mean of {len(found)}"
    return {mean: geometric_mean(found), f"{label}, worst": min(found)} if found else {}


def scaling(results: Results) -> dict[str, float]:
    """Return the worst over the best time per byte of one slice at different sizes."""
    sizes = [case for case in results if not case.rivals and results[case][OURS].times]
    per_byte = [results[case][OURS].best / case.nbytes for case in sizes]
    if len(per_byte) < 2:
        return {}
    span = f"{sizes[0].nbytes / MEBIBYTE:.0f} to {sizes[-1].nbytes / MEBIBYTE:.0f} MiB"
    return {f"time per byte from {span}, worst over best": max(per_byte) / min(per_byte)}


def show_failures(console: Console, results: Results) -> None:
    """Return the failures by contender and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for case, outcomes in results.items():
        for name, outcome in outcomes.items():
            if outcome.failure:
                reasons.setdefault((name, outcome.failure), []).append(case.name)
    for (name, failure), cases in reasons.items():
        console.print(f"{name} cannot: {', '.join(cases)}: {failure}", highlight=False, markup=False)


def show_summary(console: Console, values: Mapping[str, float]) -> None:
    """Print the summary, one value per line."""
    for label, value in values.items():
        console.print(f"{label}: [bold]{value:.2f}[/bold]", highlight=False)


def results_json(
    results: Results,
    processes: Sequence[Process],
    overheads: Mapping[str, Any],
    costs: Mapping[str, Any],
    arguments: Namespace,
) -> dict[str, Any]:
    """Return the results and the machine as JSON."""
    return {
        **about(processes, arguments),
        "summary": summary(results, [process.entry.name for process in processes]),
        "overheads": dict(overheads),
        "costs": dict(costs),
        "slices": [
            {
                "name": case.name,
                "dtype": case.dtype,
                "shape": case.shape,
                "key": str(case.key),
                "axes": case.axes,
                "nbytes": case.nbytes,
                "outcomes": {name: outcome.as_json(case.nbytes) for name, outcome in outcomes.items()},
            }
            for case, outcomes in results.items()
        ],
    }


def stem_of(content: Mapping[str, Any]) -> str:
    """Return the stem of result files: one per driver and processor."""
    ours = next(iter(content["contenders"].values()))
    return file_name(f"{ours['driver'] or ours['adapter']} on {machine_of(content)}")


def file_name(text: str) -> str:
    """Return a text as lower-case words of letters and digits, with hyphens between them."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def machine_of(content: Mapping[str, Any]) -> str:
    """Return processor and cores as results name them."""
    machine = content["machine"]
    return f"{' '.join(re.sub(r'[(](R|TM)[)]', '', machine['processor']).split())}, {machine['cores']} cores"


def about(processes: Sequence[Process], arguments: Namespace) -> dict[str, Any]:
    """Return time, machine and contenders of a run."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "processor": processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "rounds": arguments.rounds,  # at most, where there is a budget
        "budget_s": arguments.budget if isfinite(arguments.budget) else None,
        "contenders": {
            process.entry.name: process.description or {"failure": process.unable} for process in processes
        },
    }


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write results to a file, with the provenance of the code."""
    content = {**provenance(content), **content}
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


kept: list[Path] = []  # results that this process has kept


def keep(
    console: Console,
    content: Mapping[str, Any],
    path: Path,
    draw: Callable[[Mapping[str, Any], Path], None] | None = None,
) -> None:
    """Write the results of a complete run and their picture; `bench` writes the pages that show them."""
    write_json(content, path)
    if draw:
        draw(content, path.with_suffix(".png"))
    kept.append(path)
    console.print(f"kept in {path.relative_to(ROOT)}{' and .png' if draw else ''}, and on the pages")
