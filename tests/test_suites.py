"""The runner of public suites: its verdicts on tests, its lists of tests left out, its results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from suites import report, verdicts
from suites.checkouts import check_out, find_clone
from suites.table import SUITES
from suites.verdicts import FAILED, MISSING, NOT_APPLICABLE, PASSED, REFUSED, UNMOVED, LeftOut

ROOT = Path(__file__).parents[1]

ASKED = {
    "outcome": "passed",
    "calls": 2,
    "creations": 1,
    "moves": 1,
    "ended_by": "",
    "refusal": False,
    "error": "",
}
RECORD: Mapping[str, Any] = {**ASKED, "id": "a.py::test[1]", "readbacks": 1, "refused": [], "absent": []}
NO_CALL = {"calls": 0, "moves": 0}
REFUSED_BY_TYPE = {"outcome": "failed", "refused": ["numpy.add"], "ended_by": "ComputationRefused"}
ABSENT = {"outcome": "failed", "absent": ["numpy.insert"], "ended_by": "NotImplementedError"}
LISTED = [
    LeftOut(REFUSED, "computes: numpy.add", ["a.py::test[*"]),
    LeftOut(NOT_APPLICABLE, "CUDA's pointers", ["a.py::test_pointer"]),
]


@pytest.mark.parametrize(
    ("difference", "kind"),
    [
        ({}, PASSED),
        ({"ended_by": "ValueError"}, PASSED),  # an error that the test expects
        ({"moves": 0}, PASSED),  # a view was read back
        ({"moves": 0, "readbacks": 0}, UNMOVED),
        ({"moves": 0, "readbacks": 0, "ended_by": "IndexError"}, UNMOVED),
        (NO_CALL, FAILED),
        ({**NO_CALL, "id": "a.py::test_pointer"}, NOT_APPLICABLE),
        ({"id": "a.py::test_pointer"}, PASSED),  # whatever the list says
        ({"outcome": "failed", "error": "AssertionError"}, FAILED),  # listed as refused, and nothing was
        (REFUSED_BY_TYPE, REFUSED),
        ({"outcome": "failed", "refusal": True}, REFUSED),  # the cause of another error
        ({**REFUSED_BY_TYPE, "outcome": "passed"}, REFUSED),  # any error would have done
        ({**REFUSED_BY_TYPE, "id": "b.py::test"}, FAILED),  # not listed
        ({"outcome": "skipped"}, FAILED),
    ],
)
def test_verdict_follows_work_exception_type_and_list(difference: Mapping[str, Any], kind: str) -> None:
    assert verdicts.verdict({**RECORD, **difference}, LISTED) == kind


def test_creation_counts_where_it_is_the_subject() -> None:
    record = {**RECORD, **NO_CALL}
    assert verdicts.verdict(record, [], creation=("a.py",)) == PASSED
    assert verdicts.verdict(record, [], creation=("b.py",)) == FAILED


def test_refreshed_list_keeps_reasons_and_drops_passes() -> None:
    records = [
        {**RECORD, "id": "a.py::test[1]"},
        {**RECORD, **REFUSED_BY_TYPE, "id": "a.py::test[2]"},
        {**RECORD, **REFUSED_BY_TYPE, "id": "a.py::test_pointer"},
        {**RECORD, **ABSENT, "id": "a.py::test_insert"},
        {**RECORD, "outcome": "skipped", "id": "a.py::test_skipped"},
        {**RECORD, **NO_CALL, "id": "a.py::test_idle"},
        {**RECORD, "outcome": "failed", "id": "a.py::test_wrong"},
    ]
    assert verdicts.refreshed(records, LISTED) == [
        LeftOut(MISSING, "numpy.insert", ["a.py::test_insert"]),
        LeftOut(NOT_APPLICABLE, "CUDA's pointers", ["a.py::test_pointer"]),
        LeftOut(NOT_APPLICABLE, "asks nothing of wgslice", ["a.py::test_idle"]),
        LeftOut(NOT_APPLICABLE, "skipped by the suite", ["a.py::test_skipped"]),
        LeftOut(REFUSED, "computes: numpy.add", ["a.py::test[2]"]),
    ]


def test_patterns_hold_for_the_chosen_tests_only() -> None:
    every = [f"{file}::{test}[{number}]" for file in "ab" for test in ("one", "two") for number in range(3)]
    chosen = [test for test in every if test.startswith("a") or test in ("b::one[0]", "b::two[1]")]
    patterns = verdicts.shortened(chosen, every)
    assert patterns == ["a::*", "b::one[0]", "b::two[1]"]
    listed = LeftOut(REFUSED, "computes", patterns)
    assert [test for test in every if listed.holds(test)] == chosen


def test_lists_are_read_as_they_are_written(tmp_path: Path) -> None:
    left_out = [LeftOut(REFUSED, 'adds "1"', ["a::*", r"b::test[\x00-'']"])]
    path = tmp_path / "suite.toml"
    path.write_text(verdicts.written(left_out), "utf-8")
    assert verdicts.read(path) == left_out


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    output: str = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return output.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Git, as checkouts do")
def test_checkout_of_a_clone_is_at_its_commit(tmp_path: Path) -> None:
    clone = tmp_path / "clones" / "owner" / "name"
    clone.mkdir(parents=True)
    git(clone, "init", "--quiet")
    for text in ("first", "second"):
        (clone / "file").write_text(text)
        git(clone, "add", "file")
        git(clone, "commit", "--quiet", "--message", text)
    first = git(clone, "rev-parse", "HEAD~1")
    assert find_clone(tmp_path / "clones", "owner/name") == clone
    check_out("owner/name", first, tmp_path / "checkout", tmp_path / "clones")
    assert (tmp_path / "checkout" / "file").read_text() == "first"
    with pytest.raises(FileNotFoundError, match="no clone of owner/other"):
        check_out("owner/other", first, tmp_path / "other", tmp_path / "clones")


TESTS = """
import wgslice as wg, pytest
def test_moves(): assert wg.asarray([1, 2, 3])[[2, 0]].tolist() == [3, 1]
def test_idle(): pass
def test_computes(): wg.asarray([1, 2, 3]) + 1
def test_wrong(): assert wg.asarray([1, 2, 3])[::-1].tolist() == [1, 2, 3]
def test_raises():
    with pytest.raises(IndexError): wg.asarray([1, 2, 3])[3]
"""


@pytest.mark.slow  # a run of pytest in another process
def test_what_tests_ask_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    kept = tmp_path / "records.jsonl"
    options = ["-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider", "-p", "suites.recording"]
    command = [sys.executable, "-m", "pytest", *options, f"--records={kept}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    records = {each["id"].partition("::")[2]: each for each in map(json.loads, kept.read_text().splitlines())}
    found = {
        name: kind if (kind := verdicts.verdict(each, [])) != FAILED else verdicts.suggested(each)
        for name, each in records.items()
    }
    assert found == {
        "test_moves": PASSED,
        "test_idle": (NOT_APPLICABLE, "asks nothing of wgslice"),
        "test_computes": (REFUSED, "computes: Tensor.__add__"),
        "test_wrong": None,
        "test_raises": UNMOVED,
    }, done.stdout
    assert records["test_moves"]["moves"] == 1


@pytest.mark.parametrize(
    "suite", [suite for suite in SUITES if suite.name in report.read()], ids=lambda suite: suite.name
)
def test_results_are_of_the_commit_and_have_no_failures(suite: Any) -> None:
    left_out = verdicts.read(ROOT / "tests" / "suites" / "left_out" / f"{suite.name}.toml")
    assert {each.kind for each in left_out} <= {REFUSED, NOT_APPLICABLE, MISSING}
    assert all(each.reason and each.tests for each in left_out)
    result = report.read()[suite.name]
    assert (result["repository"], result["commit"]) == (suite.repository, suite.commit)
    assert sum(result[kind] for kind in verdicts.CLASSES) == result["tests"]
    assert result[FAILED] == 0
    assert result[PASSED] > 0


def test_the_page_shows_the_results() -> None:
    page = ROOT / "docs" / "suites.md"
    text = page.read_text("utf-8")
    assert report.with_table(text, report.read()) == text
