"""The list of mutants fits the code, and a mutant in a copy of the project is what the tests would import."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutate
import pytest
from mutate import Mutant

PARTS = [
    *("kernels", "uniforms", "coalescing", "widening", "splitting", "bounds of windows", "alignment"),
    *("overlap", "advanced indexing", "recording", "streaming", "ONNX rules", "indices", "run-time checks"),
    "calibration",
]
VERSION = Mutant(
    name="version",
    part="packaging",
    rule="The package has the version of the project.",
    old='\nVERSION = "',
    new='\nVERSION = "mutated ',
    tests=["tests/test_project.py"],
)


def test_every_mutant_applies_to_one_place() -> None:
    assert mutate.misfits(mutate.read_mutants()) == []


def test_each_part_has_five_mutants_or_more() -> None:
    mutants = mutate.read_mutants()
    counted = Counter(mutant.part for mutant in mutants)
    assert list(counted) == PARTS
    assert min(counted.values()) >= 5
    assert len(mutants) >= 60
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert all(mutant.rule.endswith(".") for mutant in mutants)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"old": "VERSION = '"}, "have 0 places"),
        ({"old": 'VERSION = "'}, "have 2 places"),
        ({"new": '\nVERSION = "'}, "changes nothing"),
        ({"new": '\nVERSION == ("'}, "does not compile"),
        ({"tests": ["tests/test_moved.py"]}, "test files are missing"),
        ({"tests": []}, "test files are missing"),
    ],
)
def test_a_mutant_that_no_longer_fits_is_named(change: dict[str, object], message: str) -> None:
    (misfit,) = mutate.misfits([VERSION._replace(**change)])  # type: ignore[arg-type]  # of any field
    assert misfit.startswith("version: ")
    assert message in misfit


def test_a_mutated_copy_is_imported_from_the_copy(tmp_path: Path) -> None:
    changed = mutate.ROOT / VERSION.applied()[0]
    before = changed.read_bytes()
    copy = tmp_path / "copy"
    mutate.copy_project(copy, VERSION)
    code = "import wgslice, wgslice.wgsl; print(wgslice.__version__, wgslice.wgsl.__file__, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=mutate.environment(copy), capture_output=True, text=True, check=True
    )
    version, kernels = done.stdout.splitlines()
    assert version.startswith("mutated ")
    assert Path(kernels).is_relative_to(copy)
    assert changed.name == "version.py"
    assert changed.read_bytes() == before


@pytest.mark.parametrize("finds", ["named", "tier", ""])
def test_the_default_tier_runs_for_survivors_alone(
    finds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def failure(folder: Path, arguments: list[str], jobs: int, timeout_s: float) -> str:
        ran.append(arguments)
        return "a test" if finds == ("tier" if arguments == mutate.TIER else "named") else ""

    monkeypatch.setattr(mutate, "failure", failure)
    monkeypatch.setattr(mutate, "copy_project", lambda folder, mutant: folder.mkdir())
    verdict = mutate.judge(VERSION, tmp_path, 60)
    assert ran == [VERSION.tests, mutate.TIER][: 1 if finds == "named" else 2]
    assert (verdict.found_by, verdict.tier) == ("a test" if finds else "", finds != "named")


@pytest.mark.parametrize("found", [95, 94])
def test_fewer_than_95_percent_found_fail_the_run(
    found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutate, "RESULTS", tmp_path / "out" / "mutants.json")
    verdicts = [mutate.Verdict(VERSION, "a test" * (number < found), False, 1) for number in range(100)]
    assert mutate.report(verdicts) == (found < 95)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"{found} of 100 mutants found"
    assert len(printed) == 1 + 100 - found
    assert f'"found": {found}' in mutate.RESULTS.read_text("utf-8")
