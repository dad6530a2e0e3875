"""What work costs on a GPU that nobody has measured: by a compiler's count of its cycles, and its memory.

`python -m bench.compilers.costs` prints the works of `plans/figures/gpus.json`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path

import numpy as np

from bench.compilers.accesses import WAVES, moved_nbytes, sampled
from bench.compilers.drivers import available, compile_folder
from bench.compilers.planned import LIMITS
from bench.compilers.report import write_modules
from bench.compilers.variants import Variant, variant_of
from wgslice.plans.costs import Work
from wgslice.plans.steps import Dispatch, dispatch_of
from wgslice.plans.terms import span_of
from wgslice.shaders.twins import trace
from wgslice.tuning.measure import work_of
from wgslice.tuning.probes import Probe, probes

__all__ = ["MEMORY_BYTES_PER_S", "works"]

COMPILER = "AMD NAVI21"  # whose inverse throughput counts
PROBE_NBYTES = 2**22

# Memory of 500 GB/s, read and written together, and time for 400 cycles of an invocation while it moves 16
# bytes from one side to the other: between an H200, which has time for 200 instructions, and an integrated
# GPU, which has time for 500 simple ones.
MEMORY_BYTES_PER_S = 500e9
CYCLE_S = 2 * 16 / MEMORY_BYTES_PER_S / 400


def dispatches(probe: Probe) -> Iterator[Dispatch]:
    """A probe's copies, as they are dealt on a GPU."""
    kernel, reason, paired = probe.candidate
    width = probe.width_nbytes
    for source, target in probe.copies(PROBE_NBYTES):
        bindings = span_of(source, width, LIMITS), span_of(target, width, LIMITS)
        yield dispatch_of(kernel, source, target, width, bindings, LIMITS, reason, paired)


def seconds(step: Dispatch, cycles: float) -> float:
    """What an invocation of a dispatch takes."""
    some, source, target = sampled(step)
    assert isinstance(some, Dispatch)
    traced = trace(some, source, target)
    invocations = prod(some.share.workgroups) * some.share.workgroup_size
    touched = np.mean([sum(moved_nbytes(traced, wave)[:2]) for wave in WAVES])
    return cycles * CYCLE_S + float(touched) / MEMORY_BYTES_PER_S / invocations


def works(cycles: Mapping[str, float], steps: Mapping[str, list[tuple[str, Dispatch]]]) -> dict[str, Work]:
    """The costs of each class of work, of what its variants' cycles are."""
    found: dict[str, Work] = {}
    for work, dealt in steps.items():
        points = [(step.invocation_nbytes, 1, seconds(step, cycles[name])) for name, step in dealt]
        found[work] = work_of(work, points, 0.0, found)
    return found


def main() -> int:
    """Compile every probe, and print what follows."""
    node = shutil.which("node")
    driver = next((one for one in available() if one.name == COMPILER), None)
    if node is None or driver is None:
        print("bench: node and AMD's driver are needed", file=sys.stderr)
        return 1
    chosen: list[Variant] = []
    steps: dict[str, list[tuple[str, Dispatch]]] = {}
    for probe in probes():
        dealt = []
        for step in dispatches(probe):
            dealt.append((f"{step.kernel.value}-{len(chosen)}", step))
            chosen.append(variant_of(probe.work, step))
        steps[probe.work] = dealt
    with tempfile.TemporaryDirectory() as folder:
        write_modules(node, chosen, Path(folder))
        said = compile_folder(driver, Path(folder))["statistics"]
    cycles = {name: of["Inverse Throughput"] for name, of in said.items()}
    for name, work in works(cycles, steps).items():
        print(f'    "{name}": Work({work.invocation_s:.2e}, {work.bytes_per_s:.2e}),')
    return 0


if __name__ == "__main__":
    sys.exit(main())
