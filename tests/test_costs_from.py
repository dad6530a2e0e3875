"""`bench.costs_from`: a cost model that is fitted to files of a family chooses nearly the best strategies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from bench import atlas, costs_from
from bench.gpu_programs import LIMITS, SIDES
from bench.provenance import every_kernel
from wgslice.plans.choose import seconds_of
from wgslice.plans.profiles import Costs, shipped

pytestmark = pytest.mark.slow

SIDE = SIDES["small"]
FILES = atlas.files()


def content(costs: Costs, **changed: Any) -> dict[str, Any]:
    """A file of an adapter whose times are those of a cost model, but for 10% of noise."""
    noise = np.random.default_rng(0)
    choices = [
        {
            "name": name,
            "ways_s": {
                way: seconds_of(steps, costs) * float(noise.uniform(0.9, 1.1)) for way, steps in ways.items()
            },
        }
        for name, ways in costs_from.steps_of(SIDE).items()
    ]
    return {
        "fingerprint": every_kernel(LIMITS),
        "timings_valid": True,
        "adapter": {"name": "an adapter"},
        "side": SIDE,
        "date": "2026-11-24T00:00:00+00:00",
        "constants": {name: getattr(costs, name) for name in costs_from.FIXED},
        "choices": choices,
        **changed,
    }


def means(printed: str) -> list[float]:
    return [float(value) for value in re.findall(r"geometric mean ([\d.]+)", printed)]


def test_a_fitted_model_chooses_within_a_tenth_of_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, model = tmp_path / "file.json", tmp_path / "model.json"
    given.write_text(json.dumps(content(shipped("swiftshader"))), "utf-8")
    assert costs_from.main([str(given), "--output", str(model)]) == 0
    before, after = means(capsys.readouterr().out)
    assert before > 1.2
    assert after < 1.1
    kept = json.loads(model.read_text("utf-8"))
    assert kept["about"] == "an adapter"
    assert kept["costs"]["classes"].keys() == {str(kind) for kind in shipped("gpus").classes}
    assert kept["costs"].keys() == {"classes", "pipeline_s", "clear_bytes_per_s", *costs_from.FIXED}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fingerprint": "0" * 16}, "other kernels or plans than today's were timed"),
        ({"timings_valid": False}, "its times are invalid"),
        ({"constants": None}, "its times are invalid, or some are missing"),
    ],
)
def test_files_that_say_nothing_of_today_are_refused(changed: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        costs_from.fitted([content(shipped("swiftshader"), **changed)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_kept_files_follow_the_schema_and_fit(path: Path) -> None:
    kept = FILES[path]
    Draft202012Validator(atlas.SCHEMA).validate(kept)
    if atlas.is_older(kept) or not kept["choices"]:
        return
    found, costs = [*costs_from.samples([kept])], costs_from.fitted([kept])
    (after,) = means(costs_from.slowdown(found, costs))
    assert after <= 1.1


def test_the_atlas_marks_software_older_and_wrong_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(atlas, "FOLDER", tmp_path)
    assert atlas.atlas() == "No file has been kept yet."
    line = {"kernel": "rows", "trials": 2, "wrong": 0, "failure": ""}
    timed = [
        {"name": name, "group": name, "nbytes": 2**22, "best_s": seconds, "share": 0.001 / seconds}
        for name, seconds in (("buffer copy", 0.001), ("kernel copy", 0.002), ("slices", 0.004))
    ]
    chosen = {"name": "a", "ways_s": {"x": 2.0, "y": 1.0}, "shipped": {"chosen": "x", "estimate_s": 1.0}}
    first = {
        "by": "page",
        "adapter": {"name": "google swiftshader", "software": True},
        "host": {"browser": "Chromium 156", "system": "Linux"},
        "kernels": [line],
        "races": [line],
        "speeds": timed,
        "choices": [chosen],
        "fingerprint": "0" * 16,
        "commit": "0123456789",
        "date": "2026-11-24T00:00:00+00:00",
        "timings_valid": True,
    }
    gpu = {"name": "a GPU", "software": False}
    wrong = {**first, "adapter": gpu, "races": [{**line, "wrong": 1}], "fingerprint": every_kernel(LIMITS)}
    for number, each in enumerate((first, wrong)):
        (tmp_path / f"{number}.json").write_text(json.dumps(each), "utf-8")
    *_, of_gpu, of_software = [text for text in atlas.atlas().splitlines() if text.startswith("|")]
    assert of_gpu.startswith("| a GPU | page, Chromium 156 | **wrong: rows** | 4.19 | 0.5 | 0.25 | - |")
    assert of_gpu.endswith("| 2.00, at worst 2.00 | 2026-11-24 | 0123456 |")
    assert of_software.startswith("| google swiftshader, software | page, Chromium 156 | 1 of 1 |")
    assert of_software.endswith("| 0123456, older |")
    atlas.draw_atlas([first, wrong], tmp_path / "atlas.png")
    assert (tmp_path / "atlas.png").stat().st_size > 5_000
