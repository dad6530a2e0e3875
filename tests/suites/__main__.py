"""Run public test suites on tensors, and compare what passes with the committed lists.

A suite is taken at its commit, from GitHub or from a folder of clones, and runs in one environment in
`.suites`. Nothing of it is kept in this repository but ids of tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suites import environment, report, verdicts
from suites.checkouts import check_out
from suites.table import SUITES, Suite

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / ".suites"
MAX_PROCESSES = 8  # each of which holds a device


def main() -> int:
    """Parse the command line and run suites; the status is 0 if none has a failure."""
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(prog="run suites", description="Run public test suites on tensors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names)}; all by default")
    parser.add_argument(
        "--from",
        dest="clones",
        type=Path,
        metavar="FOLDER",
        help="take repositories from clones in this folder, not from GitHub",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="rewrite lists: without tests that pass, with tests whose class the exception's type decides",
    )
    parser.add_argument("--kept", action="store_true", help="run nothing: judge the last run's records again")
    processes = min(os.cpu_count() or 1, MAX_PROCESSES)
    parser.add_argument("-n", dest="processes", type=int, default=processes, help="processes, one a core")
    parser.add_argument("-k", dest="keyword", help="run only tests that match, and write nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"unknown suites: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [suite for suite in SUITES if not arguments.names or suite.name in arguments.names]
    python = environment.prepare(WORK / "environment", chosen)
    results = {}
    for suite in chosen:
        seconds = report.read().get(suite.name, {}).get("seconds", 0) if arguments.kept else 0
        kept = WORK / "records" / f"{suite.name}.jsonl"
        if not arguments.kept:
            seconds = run(suite, python, kept, arguments)
        lines = map(json.loads, kept.read_text("utf-8").splitlines())
        records = list({line["id"]: line for line in lines}.values())  # teardown's after the call's
        path = HERE / "left_out" / f"{suite.name}.toml"
        if arguments.refresh and not arguments.keyword:
            refresh(suite, records, path)
        results[suite.name] = judged(suite, records, verdicts.read(path), seconds)
    if not arguments.keyword:
        report.keep(results, python)
    return int(any(result["failed"] for result in results.values()))


def run(suite: Suite, python: Path, kept: Path, arguments: argparse.Namespace) -> float:
    """Run the tests of a suite, which write records into a file, and return the seconds that they took."""
    checkout = WORK / "checkouts" / f"{suite.repository.partition('/')[2]}-{suite.commit[:12]}"
    check_out(suite.repository, suite.commit, checkout, arguments.clones)
    for submodule, repository, commit in suite.submodules:
        check_out(repository, commit, checkout / submodule, arguments.clones)
    folder = (ROOT if suite.folder.startswith("tests/suites/") else checkout) / suite.folder
    kept.parent.mkdir(exist_ok=True)
    kept.unlink(missing_ok=True)
    paths = [*(str(checkout / source) for source in suite.sources), str(HERE.parent)]
    variables = {
        **os.environ,
        **dict(suite.environment),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONSAFEPATH": "1",  # or modules of the folder hide the standard library's
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "SUITE_CHECKOUT": str(checkout),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(WORK / "hypothesis"),
    }
    plugins = ["xdist", "suites.recording", *suite.plugins]
    command = [
        *(str(python), "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}", "-p", "no:cacheprovider"),
        *(word for plugin in plugins for word in ("-p", plugin)),
        *(
            "--quiet",
            "--no-header",
            "--tb=no",
            "--no-summary",
            f"--records={kept}",
            f"-n{arguments.processes}",
        ),
        *(["-k", arguments.keyword] if arguments.keyword else []),
        *suite.options,
        *suite.tests,
    ]
    output = kept.with_suffix(".txt")
    print(f"suites: {suite.name}: running", flush=True)
    start = time.perf_counter()
    with output.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=folder, env=variables, stdout=file, stderr=file, check=False)
    seconds = time.perf_counter() - start
    has_crashed = "node down" in output.read_text("utf-8")  # a process, with the record of its test
    if done.returncode not in (0, 1) or has_crashed or not kept.exists():
        sys.exit(f"suites: {suite.name}: pytest ended with {done.returncode}; see {output.relative_to(ROOT)}")
    return seconds


def refresh(suite: Suite, records: Sequence[Any], path: Path) -> None:
    """Rewrite the list of a suite."""
    left_out = verdicts.refreshed(records, verdicts.read(path), suite.creation)
    path.write_text(verdicts.written(left_out), "utf-8")


def judged(
    suite: Suite, records: Sequence[Any], left_out: Sequence[verdicts.LeftOut], seconds: float
) -> dict[str, Any]:
    """Print the failures and the counts of a suite, and return its result."""
    counts: Counter[str] = Counter()
    for record in records:
        kind = verdicts.verdict(record, left_out, suite.creation)
        counts[kind] += 1
        if kind == verdicts.FAILED:
            print(f"suites: {suite.name}: failed: {record['id']}: {record['error']}", flush=True)
    result = {
        "repository": suite.repository,
        "commit": suite.commit,
        "tests": len(records),
        **{kind: counts[kind] for kind in verdicts.CLASSES},
        "moves": sum(record["moves"] for record in records),
        "seconds": round(seconds),
    }
    said = ", ".join(f"{counts[kind]} {kind}" for kind in verdicts.CLASSES)
    print(f"suites: {suite.name}: {len(records)} tests in {seconds:.0f} s: {said}", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
