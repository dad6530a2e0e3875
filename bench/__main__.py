"""`python -m bench`: time the slices, print a table, keep the figures, draw the chart."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.cases import CASES, Case
from bench.contest import ROOT, Outcome, Process, run_case
from bench.entries import ALLOCATING, OURS, RIVALS, entries
from bench.family import run_family


def main() -> int:
    """Run what the command line asks for."""
    arguments = parse()
    if arguments.list_rivals:
        print(*arguments.rivals)
        return 0
    console = Console(width=None if sys.stdout.isatty() else 200)
    if arguments.family:
        run_family(console, arguments, ("windows", "gradients"), "family")
        return 0
    if arguments.compilers:
        from bench.compilers.report import run_compilers

        run_compilers(console)
        return 0
    if arguments.costs:
        from bench.costs import measure_costs, show_costs  # loads wgpu

        show_costs(console, measure_costs())
        return 0
    if arguments.graphs:
        run_family(console, arguments, ("graphs",), "graphs")
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
        results = contest(console, cases, processes, arguments.rounds, arguments.budget)
    finally:
        for process in processes:
            process.stop()
    conclude(console, results, processes, arguments)
    return 0


def contest(
    console: Console, cases: Sequence[Case], processes: Sequence[Process], rounds: int, budget: float
) -> dict[Case, dict[str, Outcome]]:
    """Time every slice on every contender, with a bar that shows how far it is, in a pipe a line for each."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cases) * len(processes))
        results = {}
        for case in cases:
            progress.update(task, description=case.name)
            chosen = [process for process in processes if case.rivals or not process.entry.environment]
            results[case] = run_case(case, chosen, rounds, budget)
            if not console.is_terminal:  # where there is no bar
                console.print(f"{len(results)} of {len(cases)}: {case.name}: {outcome_line(results[case])}")
            progress.advance(task, len(processes))
    return results


def outcome_line(outcomes: Mapping[str, Outcome]) -> str:
    """Our time of a slice and NumPy's, or why there is none."""
    ours = outcomes[OURS]
    if ours.failure:
        return ours.failure
    return f"{ours.best * 1e3:.3g} ms, NumPy {outcomes[ALLOCATING].best * 1e3:.3g} ms"


def conclude(
    console: Console,
    results: dict[Case, dict[str, Outcome]],
    processes: Sequence[Process],
    arguments: argparse.Namespace,
) -> None:
    """Print what was found; of a whole run, also measure the overheads, and keep everything."""
    from bench.chart import draw  # imported after the contest: they load wgpu and matplotlib
    from bench.costs import measure_costs, show_costs
    from bench.overheads import measure_overheads, show_overheads
    from bench.report import (
        RESULTS,
        results_json,
        show_failures,
        show_summary,
        stem_of,
        summary,
        table,
        write_json,
    )

    names = [process.entry.name for process in processes]
    console.print(table(results, names))
    show_failures(console, results)
    show_summary(console, summary(results, names))
    if len(results) < len(CASES):
        console.print("not kept: only a run of all slices is")
        return
    overheads = measure_overheads()
    show_overheads(console, overheads)
    costs = measure_costs()
    show_costs(console, costs)
    kept = results_json(results, processes, overheads, costs, arguments.rounds)
    stem = stem_of(kept)
    write_json(kept, RESULTS / f"{stem}.json")
    draw(kept, RESULTS / f"{stem}.png")
    console.print(f"kept in {(RESULTS / stem).relative_to(ROOT)}.json and .png")


def parse() -> argparse.Namespace:
    """The command line."""
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
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of a turn, at least one run")
    parser.add_argument("--family", action="store_true", help="time windows and gradients instead of slices")
    parser.add_argument("--graphs", action="store_true", help="time graphs of ONNX operators instead")
    parser.add_argument(
        "--costs", action="store_true", help="time what comes once, and calls of each size, instead"
    )
    parser.add_argument(
        "--compilers", action="store_true", help="ask GPU compilers about the kernels instead; needs node"
    )
    parser.add_argument("--list-rivals", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.rivals) - set(RIVALS))
    if unknown:
        parser.error(f"--rivals {','.join(unknown)}: there are {','.join(RIVALS)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
