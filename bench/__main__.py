"""`python -m bench`: time the slices, print a table, keep the figures, draw the chart."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.cases import CASES, Case
from bench.contest import Entry, Outcome, Process, run_case
from bench.report import BASELINE, COPY, NUMPY, OURS, show_summary, summary, table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
OWN = Path(sys.executable)

ENTRIES = [
    Entry(OURS, "bench.rivals.ours", "Wgslice", OWN),
    Entry(BASELINE, "bench.rivals.ours", "Slice1Kernel", OWN),
    Entry(COPY, "bench.rivals.ours", "BufferCopy", OWN),
    Entry(NUMPY, "bench.rivals.numpy_", "Allocating", OWN),
    Entry("NumPy, out given", "bench.rivals.numpy_", "Given", OWN),
]


def main() -> int:
    """Run what the command line asks for."""
    arguments = parse()
    console = Console(width=None if sys.stdout.isatty() else 170)
    cases = [case for case in CASES if re.search(arguments.cases, case.name)]
    if not cases:
        sys.exit(
            f"bench: no slice's name has {arguments.cases!r}; there are: {', '.join(c.name for c in CASES)}"
        )
    processes = [Process(entry) for entry in ENTRIES]
    try:
        results = run(console, cases, processes, arguments.rounds, arguments.budget)
    finally:
        for process in processes:
            process.stop()
    names = [entry.name for entry in ENTRIES]
    console.print(table(results, names))
    show_summary(console, summary(results, names))
    return 0


def run(
    console: Console, cases: Sequence[Case], processes: Sequence[Process], rounds: int, budget: float
) -> dict[Case, dict[str, Outcome]]:
    """Time every slice on every contender, with a bar that shows how far it is."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cases) * len(processes) * (rounds + 1))
        results = {}
        for case in cases:
            progress.update(task, description=case.name)
            results[case] = run_case(case, processes, rounds, budget, lambda: progress.advance(task))
    return results


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="run bench", description="Time slices on wgslice and its rivals.")
    parser.add_argument(
        "--cases", default="", metavar="REGEX", help="slices whose names match; all by default"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender's turn comes")
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of a turn, at least one run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
