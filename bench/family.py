"""Time many windows at once, gradients, batches and graphs, against rivals."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.boxes import BOXES, PADDINGS, PUT_BACK
from bench.cases import Case
from bench.contest import Entry, Outcome, Process
from bench.entries import entry_of
from bench.graphs import GRAPHS
from bench.report import GPU_COLUMN, RESULTS, about, clocked, keep, stem_of
from bench.schedule import contest, say_what_is_left, scheduled
from bench.tasks import BATCHES, GRADIENTS, INSERTIONS, WINDOWS

__all__ = ["CONTESTS", "family_json", "run_family", "speed_ups"]

Results = Mapping[Case, Mapping[str, Outcome]]

# For each kind of task its contenders: name, environment, module, class. Speed-ups are the first one's.
CONTESTS: dict[str, tuple[Sequence[Case], list[tuple[str, str, str, str]]]] = {
    "windows": (
        WINDOWS,
        [
            ("extract_windows", "", "family_ours", "Extract"),
            ("extract_windows, offsets on the GPU", "", "family_ours", "ExtractOnGpu"),
            ("slice1 in a loop", "", "family_ours", "SliceLoop"),
            ("NumPy in a loop", "", "family_numpy", "Loop"),
            ("NumPy, sliding_window_view", "", "family_numpy", "SlidingWindows"),
            ("PyTorch in a loop", "torch", "family_torch", "Loop"),
            ("PyTorch, unfold", "torch", "family_torch", "Unfolded"),
        ],
    ),
    "insertions": (
        INSERTIONS,
        [
            ("insert_windows", "", "family_ours", "Insert"),
            ("extract_windows of the same", "", "family_ours", "ExtractBack"),
            ("NumPy in a loop", "", "family_numpy", "InsertLoop"),
            ("PyTorch in a loop", "torch", "family_torch", "InsertLoop"),
        ],
    ),
    "gradients": (
        GRADIENTS,
        [
            ("slice_grad", "", "family_ours", "SliceGrad"),
            ("slice_grad, cleared and written", "", "family_ours", "Cleared"),
            ("slice_grad, each byte once", "", "family_ours", "WrittenOnce"),
            ("NumPy", "", "family_numpy", "Assigned"),
            ("PyTorch", "torch", "family_torch", "Assigned"),
        ],
    ),
    "batches": (
        BATCHES,
        [
            ("indexed by an array", "", "batches_ours", "Indexed"),
            ("indexed by a tensor", "", "batches_ours", "IndexedOnGpu"),
            ("extract_windows", "", "batches_ours", "Extracted"),
            ("a buffer copy", "", "batches_ours", "Copied"),
            ("NumPy", "", "family_numpy", "Indexed"),
            ("PyTorch", "torch", "family_torch", "Indexed"),
        ],
    ),
    "boxes": (
        BOXES,
        [
            ("extract_windows", "", "boxes_ours", "Extract"),
            ("extract_windows of one size", "", "boxes_ours", "Equal"),
            ("a buffer copy", "", "boxes_ours", "Copied"),
            ("slices in a loop", "", "boxes_ours", "SliceLoop"),
            ("slices in one submission", "", "boxes_ours", "SlicesInOne"),
            ("NumPy in a loop", "", "boxes_numpy", "Loop"),
            ("PyTorch in a loop", "torch", "boxes_torch", "Loop"),
        ],
    ),
    "put_back": (
        PUT_BACK,
        [
            ("insert_windows", "", "boxes_ours", "Insert"),
            ("extract_windows of one size", "", "boxes_ours", "EqualBack"),
            ("a buffer copy", "", "boxes_ours", "Copied"),
            ("assignments in a loop", "", "boxes_ours", "Assigned"),
            ("assignments in one submission", "", "boxes_ours", "AssignedInOne"),
            ("NumPy in a loop", "", "boxes_numpy", "Assigned"),
            ("PyTorch in a loop", "torch", "boxes_torch", "Assigned"),
        ],
    ),
    "paddings": (
        PADDINGS,
        [
            ("pad_windows", "", "boxes_ours", "Padded"),
            ("insert_windows", "", "boxes_ours", "Insert"),
            ("extract_windows of one size", "", "boxes_ours", "WholeParts"),
            ("a buffer copy", "", "boxes_ours", "Copied"),
            ("assignments in a loop", "", "boxes_ours", "Assigned"),
            ("assignments in one submission", "", "boxes_ours", "AssignedInOne"),
            ("NumPy in a loop", "", "boxes_numpy", "Assigned"),
            ("PyTorch, split and pad_sequence", "torch", "boxes_torch", "Padded"),
        ],
    ),
    "graphs": (
        GRAPHS,
        [
            ("wgslice.onnx, tensors", "", "graphs_ours", "OnDevice"),
            ("wgslice.onnx, captured", "", "graphs_ours", "Captured"),
            ("wgslice.onnx, arrays", "", "graphs_ours", "InMemory"),
            ("NumPy, arrays", "", "graphs_numpy", "InMemory"),
            ("ONNX Runtime, arrays", "onnxruntime", "graphs_onnxruntime", "InMemory"),
            ("ONNX Runtime WebGPU, tensors", "onnxruntime-webgpu", "graphs_onnxruntime_webgpu", "OnDevice"),
        ],
    ),
}


# The kinds of tasks by the option that asks for them, which names the results too.
FAMILIES = {
    "family": ("windows", "insertions", "gradients", "batches"),
    "boxes": ("boxes", "put_back", "paddings"),
    "graphs": ("graphs",),
}


def run_family(console: Console, arguments: argparse.Namespace) -> None:
    """Run the kinds of tasks that are asked for; store the results of a complete run."""
    name, kinds = next((name, kinds) for name, kinds in FAMILIES.items() if getattr(arguments, name))
    kept: dict[str, Any] = {}
    chosen = {
        kind: [task for task in CONTESTS[kind][0] if re.search(arguments.cases, task.name)] for kind in kinds
    }
    every = [task for tasks in chosen.values() for task in tasks]
    found: Results = {}
    with scheduled(console, every, arguments.budget) as schedule:
        for kind, tasks in chosen.items():
            processes = [Process(entry) for entry in installed(CONTESTS[kind][1], arguments.rivals)]
            try:
                results = contest(schedule, tasks, processes, arguments.rounds, arguments.turn)
            finally:
                for process in processes:
                    process.stop()
            if not results:
                continue
            console.print(table(kind, results, processes))
            found = {**found, **results}
            of_kind = family_json(kind, results, processes, arguments)
            kept |= {**of_kind, "contenders": {**kept.get("contenders", {}), **of_kind["contenders"]}}
    say_what_is_left(console, every, found, arguments.budget)
    if len(found) == sum(len(CONTESTS[kind][0]) for kind in kinds):
        keep(console, kept, RESULTS / f"{stem_of(kept)}-{name}.json")
    else:
        console.print("not kept: only a run of all tasks is")


def installed(contenders: Sequence[tuple[str, str, str, str]], rivals: Sequence[str]) -> list[Entry]:
    """Return wgslice's contenders, and the rivals that are asked for and installed."""
    found = [entry_of(*contender) for contender in contenders if contender[1] in ("", *rivals)]
    return [entry for entry in found if entry.python.exists()]


def speed_ups(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """The speed-up of the first contender over each, by best times."""
    first = next(iter(outcomes.values()))
    return {
        name: outcome.best / first.best for name, outcome in outcomes.items() if outcome.times and first.times
    }


def table(kind: str, results: Results, processes: Sequence[Process]) -> Table:
    """Milliseconds of the first contender, and its speed-up over each other one."""
    names = [process.entry.name for process in processes]
    shown = Table(title=f"{kind}: speed-up of {names[0]} over others, larger is better", title_justify="left")
    for column in (kind, "MiB", f"{names[0]}, ms", GPU_COLUMN, *names[1:]):
        shown.add_column(column, justify="left" if column == kind else "right")
    for task, outcomes in results.items():
        over = speed_ups(outcomes)
        first = outcomes[names[0]]
        best = f"{first.best * 1e3:.3g}" if first.times else first.failure
        cells = [f"{over[name]:.2f}" if name in over else outcomes[name].failure for name in names[1:]]
        shown.add_row(task.name, f"{task.nbytes / 2**20:.3g}", best, clocked(first), *cells)
    return shown


def family_json(
    kind: str, results: Results, processes: Sequence[Process], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return the results of one kind, and the machine, as JSON."""
    return {
        **about(processes, arguments),
        kind: [
            {
                "name": task.name,
                "dtype": task.dtype,
                "shape": task.shape,
                "task": str(task.key),
                "nbytes": task.nbytes,
                "speed_up_over": speed_ups(outcomes),
                "outcomes": {name: outcome.as_json(task.nbytes) for name, outcome in outcomes.items()},
            }
            for task, outcomes in results.items()
        ],
    }
