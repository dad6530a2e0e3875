"""Verdicts on tests from their records, and the lists of tests that are left out.

A test passes if the suite passes it and it moved elements on the GPU: a plan ran, or elements were read back.
Uploads do not count, since most tests prepare data by them. A test that compared only a shape, a dtype, no
elements or an error that wgslice gave is in a class of its own. Every other test is listed in
`left_out/NAME.toml`, by id, with class and reason; one that is not listed has failed. No verdict depends on
an error's words.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PASSED, UNMOVED, REFUSED, NOT_APPLICABLE, MISSING, FAILED = CLASSES = (
    "passed",
    "passed without a move",
    "refused",
    "not applicable",
    "missing",
    "failed",
)
# Where an id may be cut for a pattern: after a file, a class, or a function, each without parameters.
CUT = re.compile(r"(?<=::)|(?<=_param_)|(?<=\[)")
PARAMETERS = re.compile(r"(?<=_param_)\d+_\{.*\}(?=::)", re.DOTALL)  # of CuPy's classes

Record = Mapping[str, Any]


class LeftOut(NamedTuple):
    """Tests that do not pass, for one reason."""

    kind: str
    reason: str
    tests: Sequence[str]  # ids, or patterns in which * is any text

    def holds(self, test: str) -> bool:
        """Whether a test is one of them."""
        return any(matcher(pattern).fullmatch(test) for pattern in self.tests)


@cache
def matcher(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern."""
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def is_pass(record: Record, creation: Sequence[str] = ()) -> bool:
    """Whether a test passed, moving or not, and asked something of wgslice, other than to be refused."""
    asked = record["calls"] + (record["creations"] if record["id"].startswith(tuple(creation)) else 0)
    return bool(record["outcome"] == "passed" and asked and record["ended_by"] != "ComputationRefused")


def verdict(record: Record, left_out: Sequence[LeftOut], creation: Sequence[str] = ()) -> str:
    """Return the class of a test; a listed refusal needs an exception other than of a comparison."""
    if is_pass(record, creation):
        return PASSED if record["moves"] + record["readbacks"] else UNMOVED
    kind = next((each.kind for each in left_out if each.holds(record["id"])), FAILED)
    has_raised = record["ended_by"] or record["error"] not in ("", "AssertionError")
    return FAILED if kind == REFUSED and not (has_raised or record["refusal"]) else kind


def suggested(record: Record) -> tuple[str, str] | None:
    """Return class and reason of a test that did not pass, where types of exceptions decide them."""
    if record["outcome"] == "skipped":
        return NOT_APPLICABLE, "skipped by the suite"
    if record["ended_by"] == "ComputationRefused":
        return REFUSED, f"computes: {record['refused'][-1]}"
    if record["refusal"]:
        return REFUSED, "computes"
    if record["outcome"] == "passed":
        return NOT_APPLICABLE, "asks nothing of wgslice"
    if "NotImplementedError" in (record["ended_by"], record["error"]) and record["absent"]:
        return MISSING, record["absent"][-1]
    return None


def read(path: Path) -> list[LeftOut]:
    """Return the list of a suite; an empty one if there is none."""
    if not path.exists():
        return []
    rows = tomllib.loads(path.read_text("utf-8"))["left_out"]
    return [LeftOut(row["class"], row["reason"], row["tests"]) for row in rows]


def refreshed(
    records: Sequence[Record], left_out: Sequence[LeftOut], creation: Sequence[str] = ()
) -> list[LeftOut]:
    """Return a list without tests that pass or are gone, and with those that types of exceptions decide.

    Classes and reasons given by hand stay. Failures stay out of the list.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if is_pass(record, creation):
            continue
        listed = next((each for each in left_out if each.holds(record["id"])), None)
        is_judged = listed is not None and verdict(record, [listed]) != FAILED
        key = (listed.kind, listed.reason) if listed and is_judged else suggested(record)
        if key is not None:
            reasons.setdefault(key, []).append(record["id"])
    every = [record["id"] for record in records]
    return [LeftOut(*key, shortened(tests, every)) for key, tests in sorted(reasons.items())]


def shortened(tests: Iterable[str], every: Iterable[str]) -> list[str]:
    """Return few patterns that hold for these tests of all, and for no others."""
    chosen = set(tests)
    held: dict[str, set[str]] = {}
    for test in every:
        for pattern in patterns_of(test):
            held.setdefault(pattern, set()).add(test)
    found = []
    for test in sorted(chosen):
        fitting = (each for each in patterns_of(test) if len(held[each]) > 1 and held[each] <= chosen)
        found.append(next(fitting, test))
    return sorted(set(found))


def patterns_of(test: str) -> list[str]:
    """Return the patterns that hold for a test, those that hold for most first."""
    beginnings = [f"{test[: cut.start()]}*" for cut in CUT.finditer(test)]
    return [*beginnings, PARAMETERS.sub("*", test)] if PARAMETERS.search(test) else beginnings


def written(left_out: Sequence[LeftOut]) -> str:
    """Return the text of a list in TOML, whose strings are JSON's."""
    blocks = []
    for each in left_out:
        tests = "".join(f"  {json.dumps(test)},\n" for test in each.tests)
        names = f"class = {json.dumps(each.kind)}\nreason = {json.dumps(each.reason)}"
        blocks.append(f"[[left_out]]\n{names}\ntests = [\n{tests}]\n")
    return "\n".join(blocks)
