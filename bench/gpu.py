"""`python3 run gpu`: doctor, tune, the page's programs, copies, core tests and slices in ten minutes.

Writes one JSON file after each part, one picture, and prints one line to paste. Needs no network.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from rich.console import Console

from bench.atlas import FOLDER, keep_shared
from bench.cases import CASES, COPIES, PERMUTES, Case
from bench.contest import ROOT, Process
from bench.entries import OURS, entries
from bench.gpu_chart import copy_speeds, draw_gpu, gigabytes_per_s
from bench.gpu_programs import LIMITS
from bench.gpu_times import measure_programs
from bench.provenance import commit, every_kernel
from bench.regret import kept_of, measure_case
from bench.report import RESULTS, about, file_name, geometric_mean, results_json, show_failures, write_json
from bench.rivals.ours import describe, device
from bench.schedule import Schedule, contest, say_what_is_left, scheduled
from bench.worker import explain
from wgslice.calibration.store import processor
from wgslice.calibration.tune import calibrated_profile, measured, summary
from wgslice.calibration.verdict import verdict
from wgslice.doctor.report import examine
from wgslice.gpu.device import shipped_profile
from wgslice.version import VERSION

__all__ = ["PARTS", "line", "main"]

BUDGET_S = 480.0  # of ten minutes; the rest is for installing, and for a slice that has begun
# Tests of kernels and of what reaches them, which need no other packages than the extra `gpu`.
TESTS = [
    f"tests/test_{name}.py"
    for name in (
        *("kernels", "modules", "slice1", "slice", "slice_grad", "extract_windows", "insert_windows"),
        *("advanced_index", "gathering", "scattering", "putting", "index_kernels", "writes", "views"),
        *("conversions", "record", "programs", "textures", "reused_memory", "large_cases"),
    )
]
IN_PARALLEL = ("-nauto", "--maxprocesses=8", "--dist=loadgroup", "--max-worker-restart=0")
SHOWN_FAILURES = 20


class Run(NamedTuple):
    """The terminal, the command line, and the seconds that a part may take."""

    console: Console
    arguments: Namespace
    seconds: float


def main() -> int:
    """Run every part within the budget; return 1 if a test, a kernel or a part failed."""
    arguments = parse()
    console = Console(width=None if sys.stdout.isatty() else 200)
    begun = perf_counter()
    content: dict[str, Any] = {
        "commit": commit(),
        **about([], arguments),
        "contenders": {OURS: describe()},
        **described(),
        "seconds": {},
        "failures": [],
    }
    path = arguments.into / f"gpu-{file_name(content['contenders'][OURS]['adapter'])}.json"
    for name, (part, share) in PARTS.items():
        started = perf_counter()
        left_s = begun + arguments.budget - started
        console.print(f"{name}: {left_s:.0f} s are left", highlight=False)
        try:
            found = part(Run(console, arguments, left_s * share)) if left_s > 0 else {}
        except Exception as error:
            console.print(f"{name} failed: {explain(error)}", markup=False)
            found = {"failures": [{"name": name, "failure": explain(error)}]}
        content["failures"] += found.pop("failures", [])
        content |= found
        content["seconds"][name] = round(perf_counter() - started, 1)
        write_json(content, path)
    draw_gpu(content, path.with_suffix(".png"))
    keep_shared(content, path.parent / FOLDER.name)
    console.print(f"kept in {path} and .png", highlight=False, markup=False)
    print(line(content))
    return 1 if failed(content) else 0


def described() -> dict[str, Any]:
    """Return what the atlas needs of the adapter, and its parts, which are empty until they are measured."""
    adapter, handle = device.adapter, device.adapter.handle
    limits = {
        re.sub("-(.)", lambda found: found[1].upper(), name): value for name, value in handle.limits.items()
    }
    host = {"system": platform.platform(), "browser": "", "processor": processor(), "cores": os.cpu_count()}
    return {
        **{"format": "wgslice gpu", "version": 1, "by": "run gpu", "wgslice": VERSION},
        "fingerprint": every_kernel(LIMITS),
        "host": host,
        "adapter": {
            "name": adapter.name,
            "backend": adapter.backend,
            "driver": adapter.driver,
            "software": adapter.software,
        },
        "limits": limits,
        "features": sorted(handle.features),
        **{"timings_valid": True, "clock": None, "side": None, "constants": None},
        **{name: [] for name in ("kernels", "races", "speeds", "choices", "notes")},
    }


def run_doctor(run: Run) -> dict[str, Any]:
    """Test each kernel, known faults of drivers, and a few speeds."""
    report = examine()
    run.console.print(str(report), highlight=False, markup=False)
    found = report.as_json()
    return {"doctor": found, "kernels": found["kernels"]}


def run_tune(run: Run) -> dict[str, Any]:
    """Measure cost parameters, without keeping them, and state their effect on typical slices."""
    record = measured(device, lambda _, __: None)
    run.console.print(summary(device.adapter, record, table=True), highlight=False, markup=False)
    shipped, tuned = shipped_profile(device.adapter), calibrated_profile(device.adapter, record)
    return {"tune": {**record.as_json(), "verdict": str(verdict(shipped, tuned))}}


def run_programs(run: Run) -> dict[str, Any]:
    """Run and time the programs of the page "Test your GPU", which the atlas shows."""
    return measure_programs(device, run.seconds, partial(run.console.print, highlight=False, markup=False))


def run_copies(run: Run) -> dict[str, Any]:
    """Time contiguous copies and permutes by every strategy, the buffer copy among them."""
    models = {"shipped": shipped_profile(device.adapter).costs}
    content: dict[str, Any] = {"copies": [], "permutes": [], "failures": []}
    found = []
    sections: Sequence[tuple[str, Case]] = [
        *(("copies", case) for case in COPIES),
        *(("permutes", case) for case in PERMUTES),
    ]
    with Schedule(run.console, len(sections), run.seconds) as schedule:
        for section, case in sections:
            if schedule.spent:
                break
            schedule.begin(case.name)
            try:
                one = measure_case(case, run.arguments.rounds, models, None)
            except Exception as error:  # a wrong result, or no memory
                content["failures"].append({"name": case.name, "failure": explain(error)})
                schedule.finish(f"{case.name}: {explain(error)}")
                continue
            content[section] += kept_of([one], list(models))["slices"]
            found += [one] * (section == "permutes")
            speed = gigabytes_per_s(content[section][-1])
            schedule.finish(f"{case.name}: {speed:.3g} GB/s by {one.chosen['shipped'][0]}")
    return content | ({"regret": kept_of(found, list(models))["regret"]} if found else {})


def run_tests(run: Run) -> dict[str, Any]:
    """Run the core tests on the adapter, as many as end in time."""
    environment = {**os.environ, "WGSLICE_TEST_ADAPTERS": str(device.adapter)}
    environment.pop("WGSLICE_ADAPTER", None)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *IN_PARALLEL, *TESTS]
    pytest = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = pytest.communicate(timeout=run.seconds)
        ended = True
    except subprocess.TimeoutExpired:  # pytest then ends with the results so far
        pytest.terminate() if os.name == "nt" else pytest.send_signal(signal.SIGINT)
        output, _ = pytest.communicate()
        ended = False
    lines = output.splitlines() or [""]
    run.console.print("\n".join(lines[-SHOWN_FAILURES:]), highlight=False, markup=False)
    counts = {
        what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|skipped|error)", lines[-1])
    }
    names = [text for text in lines if text.startswith(("FAILED", "ERROR"))][:SHOWN_FAILURES]
    failures = [] if counts else [{"name": "tests", "failure": lines[-1] if ended else "not ended in time"}]
    tests = {"status": pytest.returncode, "ended": ended, **counts, "failed_tests": names}
    return {"tests": tests, "failures": failures}


def run_slices(run: Run) -> dict[str, Any]:
    """Time the bench's slices on wgslice, its baselines and NumPy, as many as fit in."""
    processes = [Process(entry) for entry in entries([])]
    try:
        with scheduled(run.console, CASES, run.seconds) as schedule:
            results = contest(schedule, CASES, processes, run.arguments.rounds, run.arguments.turn)
    finally:
        for process in processes:
            process.stop()
    show_failures(run.console, results)
    say_what_is_left(run.console, CASES, results, run.seconds)
    failures = [
        {"name": case.name, "failure": outcomes[OURS].failure}
        for case, outcomes in results.items()
        if outcomes[OURS].failure
    ]
    found = results_json(results, processes, {}, {}, run.arguments)
    return {name: found[name] for name in ("contenders", "summary", "slices")} | {"failures": failures}


# Each part, and its share of the seconds that are left.
PARTS: dict[str, tuple[Callable[[Run], dict[str, Any]], float]] = {
    "doctor": (run_doctor, 1),
    "tune": (run_tune, 1),
    "programs": (run_programs, 0.3),
    "copies": (run_copies, 0.35),
    "tests": (run_tests, 0.5),
    "slices": (run_slices, 0.95),
}


def failed(content: Mapping[str, Any]) -> bool:
    """Whether a part, a copy, a slice, a kernel or a test failed."""
    tests, kernels_passed = content.get("tests", {}), content.get("doctor", {}).get("passed", True)
    return bool(content["failures"] or not kernels_passed or tests.get("failed") or tests.get("error"))


def line(content: Mapping[str, Any]) -> str:
    """Return the results in a line to paste; parts that were left out are missing."""
    ours, tests = content["contenders"][OURS], content.get("tests", {})
    code = f"wgslice {ours['wgslice']} at {(content['commit'] or 'an unknown commit')[:12]}"
    parts = [f"{ours['adapter']} ({ours['driver']}), {code}"]
    if "status" in tests:
        counts = [f"{tests[what]} {what}" for what in ("passed", "failed", "error") if what in tests]
        parts.append(f"tests: {', '.join(counts) or 'none'}{'' if tests['ended'] else ', not all in time'}")
    if "passed" in content.get("doctor", {}):
        parts.append(f"kernels: {'all correct' if content['doctor']['passed'] else 'WRONG, see the report'}")
    if "verdict" in content.get("tune", {}):
        parts.append(f"tune: {content['tune']['verdict']}")
    if content["failures"]:
        parts.append(f"failures: {', '.join(each['name'] for each in content['failures'])}")
    if content.get("copies"):
        largest, speeds = content["copies"][-1], copy_speeds(content["copies"][-1])
        parts.append(f"{largest['name']}: {speeds[0]:.3g} GB/s by buffer copy, {speeds[1]:.3g} by kernel")
        if permutes := content["permutes"]:
            mean = geometric_mean([gigabytes_per_s(each) for each in permutes]) / max(speeds)
            parts.append(f"{len(permutes)} permutes: {mean:.2f} of that copy")
    for label, value in content.get("summary", {}).items():
        if label.startswith(("speed-up over NumPy, 1 MiB", "speed-up over NumPy, permutes")):
            parts.append(f"{label}: {value:.2f}")
    return "; ".join(parts)


def parse() -> Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="run gpu",
        description="Test and measure the adapter WGSLICE_ADAPTER, or the best, in ten minutes.",
        epilog="--pack [FOLDER] [--python 3.12]: only pack what it needs without a network",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--into", type=Path, default=RESULTS, metavar="FOLDER", help="for JSON and picture")
    parser.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS", help="of all parts")
    parser.add_argument("--rounds", type=int, default=3, help="how often each strategy's turn comes")
    parser.add_argument("--turn", type=float, default=0.05, help="seconds of a contender's turn")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
