"""The figures that are shipped for an adapter: what several measurements of it say, by median.

`python -m bench.figures lavapipe-25-0 --runs 3` writes them into `src/wgslice/plans/figures`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from statistics import median

from rich.console import Console

from bench.contest import ROOT
from bench.rivals.ours import device
from wgslice.kept_costs.subject import Subject
from wgslice.plans.costs import Costs
from wgslice.plans.shipped import shipped_for
from wgslice.tuning.measure import time_all

FIGURES = ROOT / "src" / "wgslice" / "plans" / "figures"


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of the file, which there is already")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    console = Console()
    path = FIGURES / f"{arguments.name}.json"
    adapter = device.adapter
    known = shipped_for(adapter.name, adapter.backend, adapter.driver, software=adapter.software)
    runs = []
    for number in range(arguments.runs):
        console.print(f"run {number + 1} of {arguments.runs} on {adapter}", highlight=False)
        runs.append(time_all(device, known, lambda _, __: None))
    subject = Subject.here(adapter.name, adapter.backend, adapter.driver)
    content = {
        **json.loads(path.read_text("utf-8")),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "measured": f"medians of {len(runs)} measurements, by `python -m bench.figures`",
        "adapter": {"name": subject.adapter, "backend": subject.backend, "driver": subject.driver},
        "processor": {"name": subject.processor, "cores": subject.cores},
        "costs": middle_of(known, runs),
    }
    text = json.dumps(content, indent=1)
    short = re.sub(r"(?<=: )\d+\.\d+(e[+-]\d+)?", lambda figure: f"{float(figure[0]):.3g}", text)
    one_line = re.sub(r'\{\s+("invocation_s": \S+)\s+("bytes_per_s": \S+)\s+\}', r"{\1 \2}", short)
    path.write_text(f"{one_line}\n", "utf-8")
    console.print(f"written: {path}", highlight=False)


def middle_of(known: Costs, runs: Sequence[Costs]) -> dict[str, object]:
    """Three digits of the median of each figure."""

    def middle(values: Sequence[float]) -> float:
        return float(f"{median(values):.3g}")

    fixed = {
        field.name: middle([getattr(run, field.name) for run in runs])
        for field in fields(Costs)
        if field.type == "float"
    }
    # The driver may have compiled the kernels before, and a later run finds them made.
    fixed["pipeline_s"] = max(known.pipeline_s, *(run.pipeline_s for run in runs))
    works = {
        name: {
            "invocation_s": middle([run.works[name].invocation_s for run in runs]),
            "bytes_per_s": middle([run.works[name].bytes_per_s for run in runs]),
        }
        for name in runs[0].works
    }
    return {**fixed, "works": works}


if __name__ == "__main__":
    main()
