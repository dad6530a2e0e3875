"""Measure the tests by mutants: each changes one line of the project so that it breaks a rule.

`python3 run mutants` applies each mutant of `mutants.toml` to a temporary copy of the project. It runs the
test files that the mutant names, and for mutants that survive them the default tier. It fails if the tests
find fewer than 95 % of the mutants.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "mutants.toml"
RESULTS = ROOT / "out" / "mutants.json"
MIN_FOUND = 0.95
JOBS = min(os.cpu_count() or 1, 8)  # as many processes as `run test` starts
TIER_TIMEOUT_S = 1200
# The default tier without tests that compare texts, of mutants with the code, of kernels with kept results.
TIER = [f"--ignore=tests/test_{name}.py" for name in ("figures", "matrix", "mutants")]


class Mutant(NamedTuple):
    """One wrong line."""

    name: str
    part: str
    rule: str  # that it breaks, to express it again when the code moves
    old: str  # in one place of all sources
    new: str
    tests: list[str]  # files that are likely to find it

    def applied(self) -> tuple[str, str]:
        """The file that has the line, and its text with the wrong one.

        Raises ValueError where the mutant no longer fits the code.
        """
        found = [(file, text) for file, text in sources().items() if self.old in text]
        count = sum(text.count(self.old) for _, text in found)
        if count != 1:
            raise ValueError(f"{self.name}: the sources have {count} places of {self.old!r}")
        if self.old == self.new:
            raise ValueError(f"{self.name}: changes nothing")
        missing = [file for file in self.tests if not (ROOT / file).is_file()]
        if missing or not self.tests:
            raise ValueError(f"{self.name}: test files are missing: {missing}")
        ((file, text),) = found
        mutated = text.replace(self.old, self.new)
        if file.endswith(".py"):
            try:
                compile(mutated, file, "exec")
            except SyntaxError as error:
                raise ValueError(f"{self.name}: does not compile: {error}") from None
        return file, mutated


@cache
def sources() -> dict[str, str]:
    """The texts of the package and of its kernels, by files relative to the project."""
    found = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "wgsl").glob("*.*"),
        *(ROOT / "wgsl").glob("shared/*"),
    ]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in found}


class Verdict(NamedTuple):
    """Whether the tests found a mutant."""

    mutant: Mutant
    found_by: str  # the test that failed; empty where all passed
    tier: bool  # whether the default tier was needed
    seconds: float


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Read the list of mutants."""
    return [Mutant(**entry) for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]]


def misfits(mutants: Sequence[Mutant]) -> list[str]:
    """Say which mutants no longer fit the code."""
    found = []
    for mutant in mutants:
        try:
            mutant.applied()
        except ValueError as error:
            found.append(str(error))
    return found


def copy_project(folder: Path, mutant: Mutant | None = None) -> None:
    """Copy the project, with a mutant if one is given, and lay its package out for imports."""
    ignored = (ROOT / ".gitignore").read_text("utf-8").replace("__pycache__/", "").replace("/", "").split()
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", *ignored))
    file, text = mutant.applied() if mutant is not None else ("", "")
    if file:
        (folder / file).write_text(text, "utf-8")
    shutil.copytree(folder / "src", folder / "package")
    shutil.copytree(folder / "wgsl", folder / "package" / "wgslice" / "wgsl")


def pytest_configure() -> None:
    """Let property tests stop at the first failure, as a pytest plugin: to shrink it takes minutes."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings(), phases=phases, report_multiple_bugs=False)
    settings.load_profile("mutants")


def environment(folder: Path) -> dict[str, str]:
    """The environment in which a copy is imported before what is installed, and tested on one adapter."""
    adapter = os.environ.get("WGSLICE_TEST_ADAPTERS", "").partition(";")[0]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder / "package"), str(folder / "tests")]),
        "WGSLICE_TEST_ADAPTERS": adapter,
        "CI": "true",  # property tests draw the same examples each time
    }


def failure(folder: Path, arguments: Sequence[str], jobs: int, timeout_s: float) -> str:
    """Run pytest in a copy until a test fails; return that test, or nothing where all pass.

    Raises subprocess.TimeoutExpired.
    """
    command = [sys.executable, "-m", "pytest", "-p", Path(__file__).stem, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-x", "-q", "-n", str(jobs), *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
    if done.returncode == 0:
        return ""
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise ValueError(f"pytest {shlex.join(arguments)} has no tests")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - [A-Za-z].*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"exit status {done.returncode}: {done.stdout[-500:]}"


def judge(mutant: Mutant, copies: Path, timeout_s: float) -> Verdict:
    """Run the tests that a mutant names, and the default tier if it survives them.

    `timeout_s` is more than these files take, so that only a mutant that hangs exceeds it.
    """
    folder, start = copies / mutant.name, time.monotonic()
    copy_project(folder, mutant)
    try:
        found_by = failure(folder, mutant.tests, 0, timeout_s)
    except subprocess.TimeoutExpired:
        found_by = f"no end within {timeout_s:.0f} s"
    survived = not found_by
    if survived:
        with suppress(subprocess.TimeoutExpired):  # a slow machine is not a failure
            found_by = failure(folder, TIER, 0, TIER_TIMEOUT_S)
    shutil.rmtree(folder)
    verdict = Verdict(mutant, found_by, survived, time.monotonic() - start)
    where = f"{'default tier: ' if survived else ''}{found_by}" if found_by else "SURVIVED"
    print(f"{mutant.part:<18} {mutant.name:<44} {verdict.seconds:4.0f} s  {where}", flush=True)
    return verdict


def report(verdicts: Sequence[Verdict]) -> int:
    """Print and keep what was found; the exit status."""
    found = sum(bool(verdict.found_by) for verdict in verdicts)
    for verdict in verdicts:
        if not verdict.found_by:
            print(f"survived: {verdict.mutant.name}: {verdict.mutant.rule}")
    print(f"{found} of {len(verdicts)} mutants found")
    rows = [
        {
            "name": verdict.mutant.name,
            "part": verdict.mutant.part,
            "found_by": verdict.found_by,
            "default_tier": verdict.tier,
            "seconds": round(verdict.seconds, 1),
        }
        for verdict in verdicts
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"found": found, "mutants": rows}, indent=1) + "\n", "utf-8")
    return int(found < MIN_FOUND * len(verdicts))


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="run mutants", description=__doc__.partition("\n\n")[0])
    parser.add_argument("names", nargs="*", help="mutants or parts of the list; all by default")
    parser.add_argument("--check", action="store_true", help="only check that the mutants fit the code")
    options = parser.parse_args()
    mutants = read_mutants()
    if options.names:
        mutants = [each for each in mutants if {each.name, each.part} & set(options.names)]
    if not mutants:
        parser.error(f"no mutant and no part is called {' or '.join(options.names)}")
    wrong = misfits(mutants)
    if wrong or options.check:
        print("\n".join(wrong) or f"{len(mutants)} mutants fit the code")
        return int(bool(wrong))
    with TemporaryDirectory(prefix="wgslice-mutants-") as copies:
        unchanged, start = Path(copies) / "unchanged", time.monotonic()
        copy_project(unchanged)
        files = sorted({file for mutant in mutants for file in mutant.tests})
        failed = failure(unchanged, files, JOBS, TIER_TIMEOUT_S)
        if failed:
            sys.exit(f"run: a test fails without any mutant: {failed}")
        run = partial(
            judge,
            copies=Path(copies),
            timeout_s=2 * JOBS * (time.monotonic() - start) + 60,
        )
        with ThreadPoolExecutor(JOBS) as pool:
            verdicts = list(pool.map(run, mutants))
    return report(verdicts)


if __name__ == "__main__":
    sys.exit(main())
