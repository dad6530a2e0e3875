"""`python -m bench`: time the slices, print a table, store the measurements, draw the chart."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from math import inf
from pathlib import Path

from rich.console import Console

from bench.cases import CASES, Case
from bench.contest import Outcome, Process
from bench.entries import RIVALS, entries
from bench.schedule import contest, say_what_is_left, scheduled
from wgslice.plans.kernels import Kernel

# Options of other benchmarks: what they do, and the function, whose module is imported then: it loads wgpu.
INSTEAD = {
    "family": ("time windows, gradients and batches", "family", "run_family"),
    "boxes": ("time windows of different sizes", "family", "run_family"),
    "stream": ("time streams between files", "stream", "run_stream"),
    "graphs": ("time graphs of ONNX operators", "family", "run_family"),
    "costs": ("time what comes once, and calls of each size", "costs", "run_costs"),
    "overheads": (
        "time what calls and key-value caches cost the host, transfers and textures",
        "overheads",
        "run_overheads",
    ),
    "compilers": ("ask GPU compilers about the kernels; needs node", "compilers.report", "run_compilers"),
    "regret": ("time every strategy that plans choose from, and compare", "regret", "run_regret"),
    "cliffs": ("time every function that moves elements against bare kernels", "cliffs", "run_cliffs"),
}


def main() -> int:
    """Run the benchmark that the command line asks for, and write the pages if its results are kept."""
    status = run()
    from bench import report

    if report.kept:
        from bench.results_page import write_pages  # loads matplotlib

        write_pages()
    return status


def run() -> int:
    """Run the benchmark that the command line asks for."""
    arguments = parse()
    if arguments.list_rivals:
        print(*([] if arguments.cliffs else arguments.rivals))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 200)
    if run_instead(console, arguments):
        return 0
    cases = [case for case in CASES if re.search(arguments.cases, case.name)]
    if not cases:
        sys.exit(
            f"bench: no slice matches {arguments.cases!r}; there are: {'; '.join(c.name for c in CASES)}"
        )
    processes = [Process(entry) for entry in entries(arguments.rivals)]
    for name in sorted(set(arguments.rivals) - {process.entry.environment for process in processes}):
        console.print(f"bench: {name} is not installed: `python3 run bench` does that")
    try:
        with scheduled(console, cases, arguments.budget) as schedule:
            results = contest(schedule, cases, processes, arguments.rounds, arguments.turn)
    finally:
        for process in processes:
            process.stop()
    conclude(console, cases, results, processes, arguments)
    return 0


def run_instead(console: Console, arguments: argparse.Namespace) -> bool:
    """Run another benchmark than the slices if asked to."""
    if arguments.without:
        from bench.without import run_without

        run_without(console, arguments)
        return True
    for option, (_, module, function) in INSTEAD.items():
        if getattr(arguments, option):
            getattr(import_module(f"bench.{module}"), function)(console, arguments)
            return True
    return False


def conclude(
    console: Console,
    cases: Sequence[Case],
    results: dict[Case, dict[str, Outcome]],
    processes: Sequence[Process],
    arguments: argparse.Namespace,
) -> None:
    """Print the results; after a complete run, also measure the overheads, and store everything."""
    from bench.chart import draw  # imported after the contest: they load wgpu and matplotlib
    from bench.costs import measure_costs, show_costs
    from bench.overheads import measure_overheads, show_overheads
    from bench.report import (
        RESULTS,
        keep,
        results_json,
        show_failures,
        show_summary,
        stem_of,
        summary,
        table,
    )

    names = [process.entry.name for process in processes]
    console.print(table(results, names))
    show_failures(console, results)
    show_summary(console, summary(results, names))
    say_what_is_left(console, cases, results, arguments.budget)
    if len(results) < len(CASES):
        console.print("not kept: only a run of all slices is")
        return
    overheads = measure_overheads()
    show_overheads(console, overheads)
    costs = measure_costs(console)
    show_costs(console, costs)
    kept = results_json(results, processes, overheads, costs, arguments)
    keep(console, kept, RESULTS / f"{stem_of(kept)}.json", draw)


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="run bench", description="Time slices on wgslice and its rivals.")
    parser.add_argument(
        "--cases", default="", metavar="REGEX", help="slices whose names match; all by default"
    )
    parser.add_argument(
        "--rivals",
        type=lambda text: [name for name in text.split(",") if name],
        default=RIVALS,
        metavar="A,B",
        help=f"of {','.join(RIVALS)}; all by default, '' for none",
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender's turn comes")
    parser.add_argument("--turn", type=float, default=0.05, help="seconds of a turn, at least one run")
    parser.add_argument(
        "--budget",
        type=float,
        default=inf,
        metavar="SECONDS",
        help="of a run of cases: rounds become fewer, what does not fit in is left out; no bound by default",
    )
    for option, (text, *_) in INSTEAD.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"instead, {text}")
    parser.add_argument(
        "--without",
        choices=[kernel.value for kernel in Kernel],
        metavar="KERNEL",
        help="instead, time what becomes slower without a kernel, and keep its row of the ledger",
    )
    cliffs = parser.add_argument_group("with --cliffs")
    cliffs.add_argument("--only", default="", metavar="TEXT", help="rows that have it in their names")
    cliffs.add_argument("--tiny", action="store_true", help="tensors of 32 x 32, against a copy: host cost")
    cliffs.add_argument("--limits", action="store_true", help="exit with 1 where a limit is exceeded")
    cliffs.add_argument(
        "--json", type=Path, metavar="PATH", help="write results there alone, whatever was run"
    )
    parser.add_argument("--list-rivals", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.rivals) - set(RIVALS))
    if unknown:
        parser.error(f"--rivals {','.join(unknown)}: there are {','.join(RIVALS)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
