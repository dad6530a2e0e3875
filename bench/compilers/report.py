"""`python -m bench --compilers`: compile slices' kernels for GPUs, print and store the statistics."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import wgslice as wg
from bench.compilers.accesses import READ, WRITTEN, accesses
from bench.compilers.drivers import available, compile_folder
from bench.compilers.planned import ASKED
from bench.compilers.variants import Variant, variants
from bench.contest import ROOT
from bench.report import RESULTS, keep
from bench.schedule import Schedule

__all__ = ["NPM", "STATISTICS", "TRANSLATE", "run_compilers", "selected"]

NPM = ROOT / ".npm"  # where `run` puts packages of npm
TRANSLATE = Path(__file__).with_name("translate.mjs")

# The statistics to store, by any of their names, and whether they are per 16 useful bytes.
# Each is in the driver's own unit, so that a driver compares with itself. Counts are of a subgroup
# (only Intel's vary in size), with both sides of a branch. Cycles are of Intel a thread's from start to end,
# waits for memory included, loops ten times; of NVIDIA the delays in its listing; of Mali the busiest unit's.
# Registers are of Intel 32 bytes of a subgroup, of Adreno four words of an invocation.
STATISTICS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "instructions": (True, ("Instructions", "Instruction Count", "Instruction count")),
    "memory instructions": (True, ("Memory Instructions",)),
    "inverse throughput": (True, ("Inverse Throughput",)),
    "cycles": (True, ("Cycle Count", "Delays")),
    "registers": (False, ("VGPRs", "Max live registers", "Number of GPRs", "Registers used")),
    "occupancy": (False, ("Subgroups per SIMD", "Max Waves Per Core", "Threads")),
    "subgroup size": (False, ("Max dispatch width",)),
    "spills": (False, ("Spilled VGPRs", "Spill Count", "STP Count")),
    "scratch bytes": (False, ("Scratch size", "Scratch Memory Size", "SLM Size")),
}


def run_compilers(console: Console, _: Namespace) -> None:
    """Compile all variants by the installed drivers, print a table and store it."""
    node = shutil.which("node")
    if node is None:
        console.print("bench: --compilers needs node, which runs naga: install Node.js 20 or newer")
        return
    if not (NPM / "node_modules" / "naga-wasm").is_dir():
        console.print("bench: naga is not installed: `python3 run bench --compilers` does that")
        return
    drivers = available()
    if not drivers:
        console.print("bench: no GPU driver of Mesa is installed: mesa-vulkan-drivers has AMD's")
        return
    chosen = list(variants(ASKED))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_modules(node, chosen, Path(folder))
        with Schedule(console, len(drivers) + 1) as schedule:
            schedule.begin("accesses")
            touched = {case.name: accesses(case) for case in ASKED}
            schedule.finish("accesses")
            for driver in drivers:
                schedule.begin(driver.name)
                found[driver.name] = compile_folder(driver, Path(folder))
                schedule.finish(driver.name)
    for name, answer in found.items():
        if "failure" in answer:
            console.print(f"{name} cannot: {answer['failure']}", highlight=False, markup=False)
    kept = {
        "wgslice": wg.__version__,
        "devices": {name: answer.get("device", answer.get("failure")) for name, answer in found.items()},
        "variants": [kept_of(variant, number, found) for number, variant in enumerate(chosen)],
        "accesses": touched,
    }
    from bench.compilers.chart import draw_compilers  # imported here: it loads matplotlib

    console.print(table(kept))
    keep(console, kept, RESULTS / f"{stem_of(kept)}.json", draw_compilers)


def stem_of(kept: Mapping[str, Any]) -> str:
    """Return the stem of the result files of one version of Mesa."""
    versions = re.findall(r"Mesa ([\d.]+)", " ".join(kept["devices"].values()))
    return f"compilers-mesa-{versions[0].replace('.', '-')}"


def write_modules(node: str, chosen: Sequence[Variant], folder: Path) -> None:
    """Write each variant as WGSL and, by naga, as SPIR-V; names begin with the entry point."""
    for number, variant in enumerate(chosen):
        (folder / f"{variant.entry_point}-{number}.wgsl").write_text(variant.text, "utf-8")
    command = [node, str(TRANSLATE), str(folder), str(NPM), "spv"]
    subprocess.run(command, check=True)


def kept_of(variant: Variant, number: int, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a variant as JSON: its slices, and the statistics of each compiler."""
    name = f"{variant.entry_point}-{number}"
    said = {
        driver: selected(variant, answer["statistics"][name])
        for driver, answer in found.items()
        if name in answer.get("statistics", {})
    }
    return {"kernel": variant.kernel, "slices": list(variant.slices), "compilers": said}


def selected(variant: Variant, statistics: Mapping[str, float]) -> dict[str, float]:
    """Select the statistics of a driver that are compared."""
    found = {}
    for label, (per_block, names) in STATISTICS.items():
        value = next((statistics[name] for name in names if name in statistics), None)
        if value is not None:
            found[label] = round(variant.per_block(value), 1) if per_block else value
    return found


def table(kept: Mapping[str, Any]) -> Table:
    """Return a table of the cost of each variant, and of the useful share of its accesses."""
    drivers = list(kept["devices"])
    shown = Table(title="inverse throughput, or else cycles or instructions, for 16 useful bytes")
    for column in ("slices", "kernel", *drivers, "useful of read", "of written"):
        shown.add_column(column, justify="left" if column in ("slices", "kernel") else "right")
    for variant in kept["variants"]:
        more = f" and {len(variant['slices']) - 1} more" if len(variant["slices"]) > 1 else ""
        cells = [cost(variant["compilers"].get(driver, {})) for driver in drivers]
        touched = kept["accesses"][variant["slices"][0]].values()
        cells += [f"{min(of_wave[name] for of_wave in touched):.2f}" for name in (READ, WRITTEN)]
        shown.add_row(variant["slices"][0] + more, variant["kernel"], *cells)
    return shown


def cost(said: Mapping[str, float]) -> str:
    """Format the statistic closest to time, and spills."""
    value = next(
        (said[label] for label in ("inverse throughput", "cycles", "instructions") if label in said), None
    )
    spills = f" ({said['spills']:.0f} spills)" if said.get("spills") else ""
    return "-" if value is None else f"{value:.0f}{spills}"
