"""The script `matrix`: which wrong programs its rows find, and what it keeps."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import matrix
import pytest
import roots
from helpers import on_one_adapter
from hosts.python import as_arrays, wrong_by_python
from pages import README
from saved_cases import PLANTED, Case, drawn_cases, planted, save_cases, trial_cases
from test_programs import FUNCTIONS, made

import wgslice as wg


def program_cases(device: wg.Device) -> list[Case]:
    """The programs of the functions that are captured in other tests."""
    found = []
    for function in FUNCTIONS:
        arrays = made(1)
        given = dict(zip("xy", made(1), strict=True))
        tensors = {name: wg.asarray(array, device=device) for name, array in given.items()}
        program = wg.capture(function, **tensors)
        results = dict(enumerate(as_arrays(function(*arrays))))
        found.append(Case(function.__name__, program, given, dict(zip("xy", arrays, strict=True)) | results))
    return found


def saved(device: wg.Device, folder: Path, cases: list[Case]) -> Path:
    """Save programs and two with wrong bits."""
    folder.mkdir()
    planted(device, folder)
    names = save_cases(folder, [*cases])
    (folder / "cases.json").write_text(json.dumps([*names, *PLANTED]), "utf-8")
    return folder


@on_one_adapter
def test_wrong_bits_in_constants_and_modules_are_found(device: wg.Device, tmp_path: Path) -> None:
    drawn = [*islice(drawn_cases(device), 5)]
    folder = saved(device, tmp_path / "programs", [*program_cases(device), *drawn])
    found = wrong_by_python(device, folder)
    assert found["adapter"] == str(device.adapter)
    assert {*found["wrong"]} == {*PLANTED}
    assert found["wrong"][PLANTED[0]] == "1: int32 (32,) has wrong bytes"
    assert "Acompute" in found["wrong"][PLANTED[1]]


@pytest.mark.slow
@on_one_adapter
def test_javascript_finds_the_same_programs_wrong(device: wg.Device, tmp_path: Path) -> None:
    folder = saved(device, tmp_path / "programs", program_cases(device))
    matrix.copy_runner(folder)
    environment = matrix.swiftshader() or dict(os.environ)
    try:
        found = matrix.dawn_row(environment, folder)
    except roots.CannotRunError as error:
        pytest.skip(str(error))
    assert {*found["wrong"]} == {*PLANTED}


@pytest.mark.slow
@on_one_adapter
def test_trials_bind_only_their_own_bytes(device: wg.Device, tmp_path: Path) -> None:
    """Some of all kernels: loading checks that bindings are inside of their buffers."""
    folder = tmp_path / "programs"
    folder.mkdir()
    names = save_cases(folder, islice(trial_cases(device), 0, None, 25))
    assert len(names) > 20
    assert wrong_by_python(device, folder)["wrong"] == {}


@pytest.mark.deep
def test_every_row_finds_wrong_bits() -> None:
    assert matrix.main(["--plant"]) == 0


def row(implementation: str, adapter: str = "", **rest: Any) -> dict[str, Any]:
    return {"implementation": implementation, "adapter": adapter, "driver": "", **rest}


def test_rows_of_other_machines_are_kept() -> None:
    before = [row("a", "x", wrong={"one": "?"}), row("a", "y", wrong={}), row("b", reason="missing")]
    before.append(row("b", "z", reason="refused"))
    after = [row("a", "x", wrong={}), row("b", "y", wrong={}), row("c", reason="missing")]
    assert matrix.kept_rows(before, after) == [after[0], before[1], after[1], before[3], after[2]]


def test_rows_are_stale_where_a_kernel_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = row("a", wrong={}, programs=1000, commit="0" * 40, fingerprint=matrix.fingerprint())
    assert matrix.cells(own)[-1] == "0000000"
    monkeypatch.setattr("bench.provenance.kernel_module", lambda kernel: f"// {kernel}")
    monkeypatch.setattr(matrix, "fingerprint", matrix.fingerprint.__wrapped__)
    assert matrix.cells(own)[-1] == "0000000, stale"
    assert not matrix.is_stale(row("b", reason="missing"))


def test_a_root_is_made_again_when_its_contents_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(roots, "ROOTS", tmp_path)
    monkeypatch.setattr(roots, "may_make_roots", lambda: True)
    made: list[Path] = []
    for contents in (["wine 1"], ["wine 1"], ["wine 2"]):
        assert roots.made_root("wine", contents, made.append) == tmp_path / "wine"
    assert made == [tmp_path / "wine"] * 2


def test_rows_say_what_a_debian_root_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(roots, "ROOTS", tmp_path)
    monkeypatch.setattr(roots, "may_make_roots", lambda: False)
    found = matrix.finished("a", "", "", lambda: {"root": str(roots.made_root("wine", [], print))})
    assert found["reason"] == "a Debian root needs Linux, root's rights, and apt-get install debootstrap"


def test_results_are_complete_and_on_their_page() -> None:
    kept = json.loads(matrix.MATRIX.read_text("utf-8"))
    assert matrix.MATRIX.with_suffix(".md").read_text("utf-8") == matrix.page(kept)
    ran = [each for each in kept["rows"] if "wrong" in each and not matrix.is_stale(each)]
    found = {each["implementation"].partition(" to ")[0] for each in ran}
    assert found >= {"wgpu", "Dawn in Node.js", "Chromium", "naga"}, "run `python3 run matrix` again"
    assert all(each["wrong"] == {} for each in ran)
    emulated = [each for each in ran if "QEMU" in each["implementation"]]
    assert all(each["programs"] == roots.ARM_PROGRAMS for each in emulated)
    fewest = min(each["programs"] for each in ran if "programs" in each and each not in emulated)
    assert fewest >= 1000
    assert f"{fewest:,} [saved programs]" in README.read_text("utf-8")
