"""The result file of the suites, and the table of it on their page."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suites.table import SUITES
from suites.verdicts import CLASSES

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results.json"
PAGE = ROOT / "docs" / "suites.md"
TABLE = re.compile(r"(?<=<!-- results -->\n)(.*\n)*(?=<!-- end of results -->)")

VERSIONS = """
import importlib.metadata, json, platform, sys, wgslice
names = ["numpy", "wgpu", "pytest", "hypothesis"]
adapter = wgslice.default_device().adapter
print(json.dumps({
    "python": platform.python_version(),
    "adapter": f"{adapter}, {adapter.driver}",
    **{name: importlib.metadata.version(name) for name in names},
}))
"""


def read() -> dict[str, Any]:
    """Return the kept results by suite."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return results


def keep(results: Mapping[str, Any], python: Path) -> None:
    """Write results of suites, with commit and versions, into the result file and the page."""
    done = subprocess.run([python, "-c", VERSIONS], stdout=subprocess.PIPE, text=True, check=True)
    origin = {"wgslice": described_commit(), **json.loads(done.stdout)}
    known = {**read(), **{name: {**result, "origin": origin} for name, result in results.items()}}
    kept = {suite.name: known[suite.name] for suite in SUITES if suite.name in known}
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), kept), "utf-8")


def described_commit() -> str:
    """Return the commit that is checked out, with a mark where the package differs from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def with_table(text: str, results: Mapping[str, Any]) -> str:
    """Return the text of the page with the table of results."""
    return TABLE.sub(lambda _: table(results), text)


def table(results: Mapping[str, Any]) -> str:
    """Return a row for each suite, and one of sums."""
    names = ("tests", *CLASSES)
    rows: list[Sequence[str]] = [("suite", "commit", *names), ("---", "---", *["---:"] * len(names))]
    for name, result in results.items():
        address = f"https://github.com/{result['repository']}/tree/{result['commit']}"
        rows.append((name, f"[{result['commit'][:7]}]({address})", *(f"{result[each]:,}" for each in names)))
    rows.append(("all", "", *(f"{sum(result[each] for result in results.values()):,}" for each in names)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
