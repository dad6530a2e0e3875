"""Every call by every strategy; and the scripts `fuzz` and `soak`: what they find, print and keep."""

from __future__ import annotations

import json
import re
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

import differential
import fuzz
import numpy as np
import pytest
import soak
from contracts import EVERY
from forcing import SETTINGS, Tally, check_call
from helpers import ADAPTERS, in_default_tier, on_one_adapter
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from running import MODULE_OF, by_step

import wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module


def test_a_call_that_differs_from_another_versions_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    started, refusing = differential.started, tmp_path / "refusing.py"
    refusing.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps(['OSError'] * json.loads(line)[1]), flush=True)\n",
        "utf-8",
    )
    monkeypatch.setattr("sys.argv", ["differential", sys.executable, "--seconds", "0"])
    assert differential.main() == 0
    assert re.fullmatch(r"20 calls, \d refused by the other version: 0 differ\n", capsys.readouterr().out)
    calls = [refusing, differential.CALLS]
    monkeypatch.setattr(differential, "started", lambda python: started(python, calls.pop(0)))
    assert differential.main() == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("20 calls, 20 refused by the other version: ")
    assert printed[0].startswith("call 0: theirs OSError, ours ")


@pytest.mark.every_adapter
@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_every_strategy_gives_numpys_bytes(
    device: wg.Device, name: str, request: pytest.FixtureRequest, data: st.DataObject
) -> None:
    """Of each call, as each kind of adapter plans it, in small limits too; of the second adapter in fewer."""
    on_another = request.node.callspec.params["device"] in ADAPTERS[1:]
    most = 1 if on_another and in_default_tier() else 3
    drawn = data.draw(st.lists(st.sampled_from(SETTINGS), min_size=1, max_size=most, unique=True))
    tally = Tally()
    check_call(device, data.draw(EVERY[name]), drawn, tally, name)
    assert tally.executions + tally.refused + tally.skipped >= len(drawn)


def with_wrong_bit(kernel: Kernel) -> str:
    """The module of a kernel; that of `slice1` flips a bit of each word that it stores."""
    text = kernel_module(kernel)
    return text.replace("i], word);", "i], word ^ 4u);") if kernel is Kernel.SLICE1 else text


@on_one_adapter
def test_a_wrong_bit_is_found_and_reproduced_by_its_printed_line(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In what one kernel stores, which no plan would choose here."""
    kept = tmp_path / "fuzz.json"
    monkeypatch.setattr(fuzz, "RESULTS", kept)
    monkeypatch.setattr(fuzz, "SETTINGS", SETTINGS[:1])  # others have other pipelines to compile
    own = ["--adapter", device.adapter.backend, "--operation", "slice1"]
    with monkeypatch.context() as patch:
        patch.setattr(MODULE_OF, by_step(with_wrong_bit))
        assert fuzz.main([*own, "--minutes", "1", "--seed", "3"]) == 1
        line = next(text for text in capsys.readouterr().out.splitlines() if "--reproduce" in text)
        python, run, verb, *arguments = shlex.split(line)
        assert [python, run, verb] == ["python3", "run", "fuzz"]
        assert fuzz.main(arguments) == 1
        assert "bytes differ from NumPy's" in capsys.readouterr().out
    assert fuzz.main(arguments) == 0
    assert "no result differs any more" in capsys.readouterr().out
    found = json.loads(kept.read_text("utf-8"))
    assert found["mismatches"] == 1
    assert (
        found["executions"] == found["runs"][0]["executions"] == sum(found["runs"][0]["operations"].values())
    )


@on_one_adapter
def test_runs_of_a_commit_on_an_adapter_add_up(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fuzz, "RESULTS", tmp_path / "fuzz.json")
    tally = Tally(cases=2, executions=9)
    tally.forced.update(["rows", "rows", "slice1"])
    tally.operations["roll"] += 9
    for commit in ("a", "b", "a"):
        monkeypatch.setattr(fuzz, "commit", lambda commit=commit: commit)
        totals = fuzz.keep(device, tally, 1.5, mismatches=0)
    assert totals == {"executions": 27, "mismatches": 0}
    runs = json.loads((tmp_path / "fuzz.json").read_text("utf-8"))["runs"]
    assert [(run["commit"], run["executions"], run["forced"]) for run in runs] == [
        ("b", 9, {"rows": 2, "slice1": 1}),
        ("a", 18, {"rows": 4, "slice1": 2}),
    ]


# soak


def of_bytes(device: wg.Device, random: Generator) -> None:
    """An upload and a readback, of few shapes."""
    x = np.arange(random.integers(1000, 1004), dtype=np.uint8)
    assert np.array_equal(wg.asarray(x, device=device)[::-1].numpy(), x[::-1])


@on_one_adapter
def test_a_run_that_leaks_is_told_from_one_that_does_not(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "RESULTS", tmp_path)
    monkeypatch.setattr(soak, "MAX_PLANS", 10)
    monkeypatch.setattr(soak, "STEADY", 1)
    kept: list[wg.Tensor] = []

    def leaking(device: wg.Device, random: Generator) -> None:
        kept.extend(wg.zeros(40_000, np.uint8, device=device) for _ in range(10))

    arguments = ["--adapter", device.adapter.backend, "--minutes", "0.02"]
    stem = f"soak-{device.adapter.backend.lower()}"
    for workloads, status in (([of_bytes], 0), ([of_bytes, leaking], 1)):
        monkeypatch.setattr(soak, "WORKLOADS", workloads)
        assert soak.main(arguments) == status
        found = json.loads((tmp_path / f"{stem}.json").read_text("utf-8"))
        assert ("buffers grew" in str(found["verdict"])) == bool(status)
        assert found["samples"][-1]["operations"] > 10
        assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
    assert "soak: buffers grew from" in capsys.readouterr().out


def test_each_quantity_may_grow_by_its_allowance_only() -> None:
    flat: list[dict[str, Any]] = [
        {"seconds": float(second), **dict.fromkeys((each.name for each in soak.QUANTITIES), 1e6)}
        for second in range(60)
    ]
    assert soak.verdict(flat, 20.0) == []
    for quantity in soak.QUANTITIES:
        growing = [{**each, quantity.name: 1e6 * (1 + each["seconds"] / 100)} for each in flat]
        assert [line.partition(" grew")[0] for line in soak.verdict(growing, 20.0)] == [quantity.name]
        early = [{**each, quantity.name: min(each["seconds"] / 20, 1.0) * 1e6} for each in flat]
        assert soak.verdict(early, 20.0) == []


@on_one_adapter
def test_a_wrong_result_in_a_thread_fails_the_run(device: wg.Device) -> None:
    def wrong(device: wg.Device, random: Generator) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise AssertionError("not NumPy's")

    _, failures = soak.soak(device, 5.0, [wrong])
    assert set(failures) == {"AssertionError: not NumPy's"}
