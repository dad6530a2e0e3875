"""`python -m bench`: time the slices, print a table, store the measurements, draw the chart."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path

from rich.console import Console

from bench.cases import CASES, Case
from bench.contest import Outcome, Process
from bench.entries import RIVALS, entries
from bench.family import run_family
from bench.schedule import contest, say_what_is_left, scheduled


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
    """Run another benchmark than the slices if asked to; modules that load wgpu are imported there."""
    families = {
        "family": ("windows", "insertions", "gradients", "batches"),
        "boxes": ("boxes", "put_back", "paddings"),
        "graphs": ("graphs",),
    }
    for name, kinds in families.items():
        if getattr(arguments, name):
            run_family(console, arguments, kinds, name)
            return True
    if arguments.compilers:
        from bench.compilers.report import run_compilers

        run_compilers(console)
    elif arguments.costs:
        from bench.costs import measure_costs, show_costs

        show_costs(console, measure_costs(console))
    elif arguments.overheads:
        from bench.overheads import measure_overheads, show_overheads

        show_overheads(console, measure_overheads())
    elif arguments.cliffs:
        from bench.cliffs import run_cliffs

        run_cliffs(console, arguments)
    elif arguments.regret:
        from bench.regret import run_regret

        run_regret(console, arguments)
    elif arguments.stream:
        from bench.stream import run_stream

        run_stream(console, arguments)
    else:
        return False
    return True


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
    parser.add_argument("--family", action="store_true", help="time windows, gradients and batches instead")
    parser.add_argument("--boxes", action="store_true", help="time windows of different sizes instead")
    parser.add_argument("--stream", action="store_true", help="time streams between files instead")
    parser.add_argument("--graphs", action="store_true", help="time graphs of ONNX operators instead")
    parser.add_argument(
        "--costs", action="store_true", help="time what comes once, and calls of each size, instead"
    )
    parser.add_argument(
        "--overheads",
        action="store_true",
        help="time what calls and key-value caches cost the host, transfers and textures, instead",
    )
    parser.add_argument(
        "--compilers", action="store_true", help="ask GPU compilers about the kernels instead; needs node"
    )
    parser.add_argument(
        "--regret",
        action="store_true",
        help="instead, time every strategy that plans choose from, and compare",
    )
    parser.add_argument(
        "--cliffs",
        action="store_true",
        help="instead, time every function that moves elements against bare kernels",
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
