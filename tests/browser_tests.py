"""Run the project's own tests in headless Chromium, by Pyodide: `python3 run browser`.

By default one test of each file, in two minutes; with `--all` the default tier, whose counts are kept in
`bench/results/browser.json`; with arguments of pytest what they choose. `left_out.toml` names the tests that
fail in a tab, and why; with `--all`, a row whose tests all pass is an error.

`--all` opens a tab for every few files, whose memory only grows. A test that does not return in time, or ends
the tab, has failed; a new tab runs the rest.

`--times` runs no test: it keeps the times of a tab in `bench/results/browser-times.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import in_tab
import tab
from expected import row_of, rows_of
from helpers import ROOT
from tab_times import keep_times

from bench.provenance import commit
from bench.report import RESULTS, write_json

WHEELS = ROOT / ".tab"
# Pure wheels of PyPI: what the tests need, for the Python of Pyodide; newer hypothesis is compiled.
PACKAGES = [
    *("pytest==9.1.1", "pluggy==1.7.0", "iniconfig==2.3.1", "packaging==26.3", "pygments==2.21.0"),
    *("hypothesis==6.155.7", "sortedcontainers==2.4.0", "attrs==26.1.0", "einops==0.8.2", "lark==1.3.1"),
    *("array-api-strict==2.6.1", "platformdirs==4.14.7", "typing_extensions==4.16.0", "micropip==0.7.2"),
]
PYTHON = ["--python-version=3.12", "--implementation=py", "--abi=none", "--platform=any"]
PROJECT = ["tests", "bench", "wgsl", "src", "docs", ".ci", "pyproject.toml", "run", "README.md", "LICENSE"]

PROGRAM = """
import os, sys
os.chdir("/project")
os.environ["WGSLICE_TEST_ADAPTERS"] = "WebGPU"
os.environ["WGSLICE_TEST_HOST"] = "browser"
sys.path[:0] = ["/project/tests", "/project"]
import in_tab
in_tab.main({arguments!r}, done={done!r}, first_of_each_file={short})
"""
FILES_PER_TAB = 12
NO_TESTS = 5  # pytest's status where none was chosen


def wheels() -> list[Path]:
    """Return the wheels of PyPI that the tab gets; download those that are missing."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(WHEELS), "--no-deps"]
    WHEELS.mkdir(exist_ok=True)
    missing = [each for each in PACKAGES if not list(WHEELS.glob(f"{wheel_name(each)}-*.whl"))]
    if missing:
        print(f"browser: downloading {' '.join(missing)}", flush=True)
        done = subprocess.run([*pip, "--only-binary=:all:", *PYTHON, *missing], check=False)
        if done.returncode:
            raise tab.CannotRunError("pip could not download the wheels; its message is above")
    return [next(WHEELS.glob(f"{wheel_name(each)}-*.whl")) for each in PACKAGES]


def wheel_name(requirement: str) -> str:
    """Return how the file of a pinned package begins."""
    return requirement.replace("==", "@").replace("-", "_").replace("@", "-")


class Run:
    """Tests in tabs, and what became of them.

    Attributes
    ----------
    outcomes : dict of str to str
        By test: "passed", "failed", "skipped" or "expected failures".
    errors : list of str
        Why tests or files failed.
    browser : str
        Name and version.
    """

    def __init__(self, packages: list[Path], limit_s: float, *, short: bool) -> None:
        self.packages = packages
        self.limit_s = limit_s
        self.short = short
        self.outcomes: dict[str, str] = {}
        self.errors: list[str] = []
        self.browser = ""

    def run(self, arguments: list[str]) -> None:
        """Run the tests that arguments of pytest choose, in a new tab after each one that ends its tab."""
        while not self.run_in_tab(arguments):
            pass

    def run_in_tab(self, arguments: list[str]) -> bool:
        """Run those that are not done in a new tab; return whether it ran all, or failed before the first."""
        program = PROGRAM.format(arguments=arguments, done=[*self.outcomes], short=self.short)
        running = ""
        with tab.opened({ROOT / name: name for name in PROJECT}, self.packages) as page:
            self.browser = page.browser.evaluate("navigator.userAgent.match(/Chrome.[0-9.]+/)[0]")
            try:
                for line in page.stream(program, self.limit_s):
                    if line.startswith(in_tab.MESSAGE):
                        running = self.note(json.loads(line.removeprefix(in_tab.MESSAGE))) or running
                    else:
                        print(line, flush=True)
            except (ConnectionError, RuntimeError) as error:
                self.fail(running or " ".join(arguments), f"ended the tab: {error}")
                return not running
        return True

    def note(self, message: dict[str, Any]) -> str:
        """Keep what the tab says; return the test that begins, if one does."""
        if "ended" in message:
            self.outcomes.setdefault(message["ended"], message["outcome"])
            if message["error"]:
                self.fail(message["ended"], message["error"])
        elif message.get("status", 0) not in (0, 1, NO_TESTS):
            self.errors.append(f"pytest ended with status {message['status']}; its message is above")
        return str(message.get("begun", ""))

    def fail(self, test: str, error: str) -> None:
        """Note that a test has failed."""
        self.outcomes[test] = "failed"
        self.errors.append(f"{test}: {error.splitlines()[0]}")

    def check_table(self) -> None:
        """Note rows of the table that match no test that fails."""
        rows = rows_of("browser")
        expected = [test for test, outcome in self.outcomes.items() if outcome == "expected failures"]
        needed = {row_of(test, rows) for test in expected}
        self.errors += [
            f"left_out.toml: {row.tests!r} is needless: no such test fails"
            for row in rows
            if row not in needed
        ]


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(prog="run browser", description="Run the tests in a browser tab.")
    parser.add_argument("--all", action="store_true", help="the default tier; its counts are kept")
    parser.add_argument("--seconds", type=float, default=180, help="after which a test fails; default 180")
    parser.add_argument("--times", action="store_true", help="time Python in a tab beside JavaScript instead")
    given, arguments = parser.parse_known_args()
    if reason := tab.missing():
        print(f"browser: not run: {reason}")
        return 0
    if given.times:
        keep_times()
        return 0
    try:
        packages = wheels()
    except tab.CannotRunError as error:
        print(f"browser: not run: {error}")
        return 0
    begun_at = commit()
    run = Run(packages, given.seconds, short=not given.all and not arguments)
    names = sorted(f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py"))
    count = FILES_PER_TAB if given.all else len(names)
    groups = [names[at : at + count] for at in range(0, len(names), count)]
    for chosen in [arguments] if arguments else groups:
        run.run(["-v", "--tb=native", *chosen])
    if given.all:
        run.check_table()
    for failure in run.errors:
        print(f"browser: {failure}")
    counts = dict(Counter(run.outcomes.values()))
    print(f"browser: {counts}")
    if given.all:
        version = json.loads((tab.CORE / "package.json").read_text("utf-8"))["version"]
        kept = {"commit": begun_at, "pyodide": version, "browser": run.browser, "tests": counts}
        write_json({**kept, "failed": run.errors}, RESULTS / "browser.json")
    return int(bool(run.errors) or not counts)


if __name__ == "__main__":
    sys.exit(main())
