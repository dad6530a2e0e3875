"""Writes the shipped cost model of an adapter: medians of several measurements.

`python -m bench.figures lavapipe-25-0 --runs 3` writes it into `src/wgslice/plans/cost_models`.
With `--classes`, a pattern, it writes those cost classes alone, on any machine: relative to all others.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from statistics import median
from typing import Any, TypeAlias

from rich.console import Console

from bench.contest import ROOT
from bench.cost_classes import time_all
from bench.rivals.ours import device
from wgslice.calibration.store import processor
from wgslice.plans.profiles import Costs, shipped_for
from wgslice.whole_files import written_whole

ClassCosts: TypeAlias = dict[str, float]  # of one cost class

COST_MODELS = ROOT / "src" / "wgslice" / "plans" / "cost_models"
TYPICAL_NBYTES = 64  # of an invocation


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of the file, which there is already")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--classes", default="", help="pattern of the cost classes to write, all if empty")
    arguments = parser.parse_args()
    console = Console()
    path = COST_MODELS / f"{arguments.name}.json"
    adapter = device.adapter
    known = shipped_for(adapter.name, adapter.backend, adapter.driver, software=adapter.software)
    runs = []
    for number in range(arguments.runs):
        console.print(f"run {number + 1} of {arguments.runs} on {adapter}", highlight=False)
        runs.append(time_all(device, known))
        if runs[-1].classes.keys() != known.classes.keys():
            raise SystemExit("the driver had kernels to compile, which left no time for all: run again")
    cores = os.cpu_count() or 1
    content = json.loads(path.read_text("utf-8"))
    if arguments.classes:
        added = relative_to_others(
            arguments.classes, content["costs"]["classes"], middle_of(known, runs)["classes"]
        )
        content["costs"]["classes"] |= added
        content["measured"] += (
            f"; cost classes like {arguments.classes} relative to the others on {processor()}, "
            f"{cores} cores, medians of {len(runs)}"
        )
    else:
        content |= {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "measured": f"medians of {len(runs)} measurements, by `python -m bench.figures`",
            "adapter": {"name": adapter.name, "backend": adapter.backend, "driver": adapter.driver},
            "processor": {"name": processor(), "cores": cores},
            "costs": middle_of(known, runs),
        }
    text = json.dumps(content, indent=1)
    short = re.sub(r"(?<=: )\d+\.\d+(e[+-]\d+)?", lambda figure: f"{float(figure[0]):.3g}", text)
    one_line = re.sub(r'\{\s+("invocation_s": \S+)\s+("bytes_per_s": \S+)\s+\}', r"{\1 \2}", short)
    with written_whole(path) as part:
        part.write_text(f"{one_line}\n", "utf-8")
    console.print(f"written: {path}", highlight=False)


def relative_to_others(
    pattern: str, kept: Mapping[str, ClassCosts], measured: Mapping[str, ClassCosts]
) -> dict[str, ClassCosts]:
    """Cost classes that match, as fast as measured relative to those that do not."""
    shares = [
        typical_seconds(kept[name]) / typical_seconds(measured[name])
        for name in measured
        if not re.search(pattern, name)
    ]
    slower = median(shares)
    return {
        name: {
            "invocation_s": costs["invocation_s"] * slower,
            "bytes_per_s": costs["bytes_per_s"] / slower,
        }
        for name, costs in measured.items()
        if re.search(pattern, name)
    }


def typical_seconds(costs: ClassCosts) -> float:
    """Return the median seconds of an invocation."""
    return costs["invocation_s"] + TYPICAL_NBYTES / costs["bytes_per_s"]


def middle_of(known: Costs, runs: Sequence[Costs]) -> dict[str, Any]:
    """The median of each cost parameter, of three digits."""

    def middle(values: Sequence[float]) -> float:
        return float(f"{median(values):.3g}")

    fixed = {
        field.name: middle([getattr(run, field.name) for run in runs])
        for field in fields(Costs)
        if field.type == "float"
    }
    # The driver may have compiled the kernels before, and a later run finds them made.
    fixed["pipeline_s"] = max(known.pipeline_s, *(run.pipeline_s for run in runs))
    classes = {
        str(name): {
            "invocation_s": middle([run.classes[name].invocation_s for run in runs]),
            "bytes_per_s": middle([run.classes[name].bytes_per_s for run in runs]),
        }
        for name in runs[0].classes
    }
    return {**fixed, "classes": classes}


if __name__ == "__main__":
    main()
