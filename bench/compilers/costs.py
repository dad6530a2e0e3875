"""Estimate cost classes of a GPU without measuring it, from a compiler's cycle count and its bandwidth.

`python -m bench.compilers.costs` prints the works of `plans/cost_models/gpus.json`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from reference.plans import trace

from bench.compilers.accesses import WAVES, moved_nbytes, sampled
from bench.compilers.drivers import available, compile_folder
from bench.compilers.planned import LIMITS
from bench.compilers.report import write_modules
from bench.compilers.variants import Variant, variant_of
from bench.cost_classes import work_of
from bench.probes import probes
from wgslice.plans.facade import IndexedDispatch, SizedDispatch, WindowDispatch
from wgslice.plans.profiles import ClassCost, CostClass
from wgslice.plans.steps import OnGrid

__all__ = ["MEMORY_BYTES_PER_S", "works"]

COMPILER = "AMD NAVI21"  # whose inverse throughput counts
PROBE_NBYTES = 2**22

# How loops begin that go round once on a GPU, but for some invocations: over the rows and the words of one
# that takes a single word or block, over the ends of its row, and over the windows of a workgroup.
ONCE = (
    *("while (element < stop)", "for (var word = ", "for (var left = edges.count"),
    *("while (place < stop)", "for (; block * 16u", "while (stop - window > 1u)"),
)

# Of each class of work its dispatches, each with the name that its cycles are known by.
Steps: TypeAlias = Mapping[CostClass, Sequence[tuple[str, OnGrid]]]

# Memory of 500 GB/s, read and written together, and time for 400 cycles of an invocation while it moves 16
# bytes from one side to the other: between an H200, which has time for 200 instructions, and an integrated
# GPU, which has time for 500 simple ones.
MEMORY_BYTES_PER_S = 500e9
CYCLE_S = 2 * 16 / MEMORY_BYTES_PER_S / 400


def seconds(step: OnGrid, cycles: float) -> float:
    """Return the cycles of an invocation of a dispatch."""
    some, source, target = sampled(step)
    traced = trace(some, source, target)
    invocations = some.share.invocations
    touched = np.mean([sum(moved_nbytes(traced, wave)[:2]) for wave in WAVES])
    return cycles * CYCLE_S + float(touched) / MEMORY_BYTES_PER_S / invocations


def once(text: str) -> str:
    """Return a module without loops that mostly run once: the compiler counts each loop eight times."""
    for loop in ONCE:
        start = text.find(loop)
        depth, place = 0, text.find("{", start)
        while start >= 0:
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if depth == 0:
                text = f"{text[:place]}break;\n{text[place:]}"
                break
            place += 1
    return text


def works(cycles: Mapping[str, float], steps: Steps) -> dict[CostClass, ClassCost]:
    """Return the cost of each class from the cycles of its variants."""
    found: dict[CostClass, ClassCost] = {}
    for work, named in steps.items():
        points = [(step.invocation_nbytes, 1, seconds(step, cycles[name])) for name, step in named]
        found[work] = work_of(work, points, 0.0, found)
    return found


def main() -> int:
    """Compile every probe, and print the estimated costs."""
    node = shutil.which("node")
    driver = next((one for one in available() if one.name == COMPILER), None)
    if node is None or driver is None:
        print("bench: node and AMD's driver are needed", file=sys.stderr)
        return 1
    chosen: list[Variant] = []
    steps: dict[CostClass, list[tuple[str, OnGrid]]] = {}
    for probe in probes():
        named: list[tuple[str, OnGrid]] = []
        for step in probe.steps(PROBE_NBYTES, LIMITS):
            variant = variant_of(str(probe.work), step)
            named.append((f"{variant.entry_point}-{len(chosen)}", step))
            is_of_windows = isinstance(step, WindowDispatch | IndexedDispatch | SizedDispatch)
            chosen.append(replace(variant, text=once(variant.text)) if is_of_windows else variant)
        steps[probe.work] = named
    with tempfile.TemporaryDirectory() as folder:
        write_modules(node, chosen, Path(folder))
        said = compile_folder(driver, Path(folder))["statistics"]
    cycles = {name: of["Inverse Throughput"] for name, of in said.items()}
    for name, work in works(cycles, steps).items():
        costs = f'"invocation_s": {work.invocation_s:.3g}, "bytes_per_s": {work.bytes_per_s:.3g}'
        print(f'   "{name}": {{{costs}}},')
    return 0


if __name__ == "__main__":
    sys.exit(main())
