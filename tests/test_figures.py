"""Measurements on pages: each is one that the bench has kept, of today's code unless marked stale."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES, README, RESULTS, ROOT

from bench import results_page
from bench.cases import CASES
from bench.entries import ALLOCATING, COPY, OURS
from bench.provenance import STALE, is_stale, provenance
from bench.results_page import BLOCKS, MEASURING, filled

pytestmark = pytest.mark.slow

PERFORMANCE = ROOT / "docs" / "performance.md"
DESCRIBED = {"adapter": "llvmpipe via Vulkan", "driver": "Mesa 25.0.7 (LLVM 19)", "kind": "CPU"}


def results(name: str) -> dict[str, Any]:
    """Kept results by the end of a link to them."""
    content: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return content


@pytest.mark.parametrize("page", results_page.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_marked_blocks_are_those_of_the_results(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<!-- figures: " in text
    assert text == filled(page), "`python -m bench.results_page` writes it anew"


def test_every_block_is_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in results_page.PAGES)
    assert sorted(re.findall(r"<!-- figures: (\w+) -->", text)) == sorted(BLOCKS)
    assert text.count("<!-- end -->") == len(BLOCKS)


def kept(folder: Path, kind: str, section: dict[str, Any]) -> None:
    """Write results of a kind as a run of today would."""
    content = {
        "machine": {"processor": "AMD EPYC", "cores": 2},
        "contenders": {OURS: DESCRIBED, COPY: DESCRIBED, ALLOCATING: {}},
        **section,
    }
    (folder / f"mesa-on-amd-epyc-2-cores{kind}.json").write_text(
        json.dumps({**content, **provenance(content), "commit": "0123456789abcdef"}), "utf-8"
    )


def sliced(name: str, ours_s: float, copy_s: float, numpy_s: float | None) -> dict[str, Any]:
    """A stored slice or permute with its best times."""
    (case,) = (case for case in CASES if case.name == name)
    times = {OURS: ours_s, COPY: copy_s, ALLOCATING: numpy_s}
    outcomes = {key: {"best_s": time} if time else {"failure": "cannot"} for key, time in times.items()}
    return {"name": name, "nbytes": case.nbytes, "axes": case.axes, "outcomes": outcomes}


MAIN_RUN = {
    "slices": [
        sliced("f32 horizontal flip", 0.010, 0.005, 0.020),
        sliced("f32 vertical flip", 0.010, 0.005, 0.080),
        sliced("f32 focus", 0.010, 0.010, 0.001),
        sliced("f32 transpose", 0.040, 0.010, 0.020),
        sliced("u8 transpose", 0.040, 0.010, None),
        sliced("f32 4 x 16", 0.010, 0.001, 0.001),
    ],
    "costs": {
        "once_s": {"import wgslice": 0.06},
        "start_s": {"first slice of a process": 1.03, "first dispatch of a process, bare wgpu": 0.74},
        "calls": [
            {"nbytes": 2**10, "wgslice_s": 1e-4, "numpy_s": 4e-7},
            {"nbytes": 2**20, "wgslice_s": 2e-4, "numpy_s": 3e-4},
        ],
    },
    "overheads": {"memcpy of 64 MiB": 0.004, "asarray of 64 MiB": 0.006, "numpy() of 64 MiB": 0.011},
}


def test_kept_speed_ups_and_costs_are_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Speed-ups over NumPy are 2, 8 and 0.1, of a permute 0.5; of tiny slices they do not count."""
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    kept(tmp_path, "", MAIN_RUN)
    readme = " ".join(BLOCKS["readme"]().split())
    assert "with lavapipe of Mesa 25.0.7 on AMD EPYC, 2 cores: over NumPy 1.17 and 0.5; buffer copy" in readme
    assert "Slower than NumPy: steps 0.1, transposes 0.5; faster: flips 4; from 0.1 (" in readme
    quoted = " ".join(BLOCKS["performance"]().split())
    assert "Measured at 0123456789ab." in quoted
    assert "| NumPy | 1.17 | 0.5 | " in quoted
    assert "from 0.1 (`f32 focus`) to 8 (`f32 vertical flip`)" in quoted
    assert "1 KiB takes 0.1 ms with the wait, of 1 MiB 0.2 ms; NumPy takes 0.0004 and 0.3 ms." in quoted
    assert "A crop is faster than NumPy's from 1024 KiB on" in quoted
    assert "An upload of 64 MiB takes 1.5 times a `memcpy` into memory that is in use, a readback" in quoted
    assert "into a new array 2.75 times." in quoted
    table = BLOCKS["slices"]()
    assert "| flips (2) | 0.5 | 4 |" in table
    assert "| u8 transpose | 64 | 40 | 0.25 | - |" in table
    assert "| 1 KiB | 0.1 and 0.0004 |" in BLOCKS["costs"]()
    assert STALE not in table


def test_other_kinds_of_results_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    assert BLOCKS["regret"]() == "Not measured yet."
    means = {"shipped": {"geometric_mean": 1.034, "worst": 1.5}, "tuned": {"geometric_mean": 1, "worst": 1.2}}
    kept(tmp_path, "-regret", {"regret": {"permutes": means}})
    assert "2 cores | 1.03, 1.50 | 1.00, 1.20 |" in BLOCKS["regret"]()
    stream = {
        "nbytes": 10**9,
        "best_s": {OURS: 0.5, ALLOCATING: 0.25},
        "shares": {"file": 0.4, "kernel": 0.6},
    }
    kept(tmp_path, "-stream", {"streams": {"crop, [:, 1:]": stream}})
    assert "| crop, `[:, 1:]` | 0.5 | 2 | 40% | 60% |" in BLOCKS["streams"]()


def test_blocks_of_other_kernels_are_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    kept(tmp_path, "", MAIN_RUN)
    monkeypatch.setattr("bench.provenance.kernel_module", lambda kernel: f"// {kernel}")
    assert BLOCKS["slices"]().startswith(STALE)
    assert all(MEASURING in " ".join(BLOCKS[name]().split()) for name in ("readme", "performance"))


def cited(text: str) -> set[str]:
    """The results files that a text links, or shows a picture of; other pictures have no such file."""
    found = re.findall(r"[(/]([^()/\s]*)\.(json|png)\)", text)
    return {f"{stem}.json" for stem, kind in found if kind == "json" or (RESULTS / f"{stem}.json").exists()}


@pytest.mark.parametrize("page", [page for page in PAGES if cited(page.read_text("utf-8"))], ids=str)
def test_sections_with_stale_measurements_are_marked(page: Path) -> None:
    for section in re.split(r"^(?=## )", page.read_text("utf-8"), flags=re.MULTILINE):
        stale = [name for name in cited(section) if is_stale(results(name))]
        assert (STALE in section) == bool(stale), (section.partition("\n")[0], stale)


def test_the_readme_has_no_stale_figures() -> None:
    text = README.read_text("utf-8")
    assert [name for name in cited(text) if is_stale(results(name))] == []
    assert (MEASURING in text) == (not cited(text))


def test_every_results_file_is_cited_by_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    kept = [path.name for path in RESULTS.iterdir() if path.is_file() and path.suffix != ".md"]
    unused = [name for name in kept if f"({name})" not in text and f"/{name})" not in text]
    assert unused == []


def test_shipped_models_name_their_origin() -> None:
    """Cost models of devices until they are tuned: measured with the driver that is named, or assumed."""
    page = ROOT / "docs" / "commands" / "tune.md"
    listed = dict(
        re.findall(r"^\| (`[^`|]*\.json`) \| [^|]* \| (.*) \|$", page.read_text("utf-8"), re.MULTILINE)
    )
    folder = ROOT / "src" / "wgslice" / "plans" / "cost_models"
    assert sorted(listed) == sorted(f"`{path.name}`" for path in folder.glob("*.json"))
    for name, said in listed.items():
        kept = json.loads((folder / name.strip("`")).read_text("utf-8"))
        if "adapter" in kept:
            assert kept["measured"].startswith("medians of 3 measurements, by `python -m bench.figures`")
            assert kept["processor"] == {"name": "AMD EPYC", "cores": 2}
            version = re.search(r"Mesa [\d.]*\d", kept["adapter"]["driver"])
            assert said == f"measured with {version[0]}" if version else "measured"
        else:
            assert said == "assumed"


def test_one_place_lists_what_has_not_been_run() -> None:
    heading = "## What has not been run"
    assert [page for page in PAGES if heading in page.read_text("utf-8")] == [PERFORMANCE]
    section = PERFORMANCE.read_text("utf-8").partition(heading)[2].partition("\n## ")[0]
    for unrun in ("Metal", "D3D12", "GPU"):
        assert unrun in section
    measured = {name for path in RESULTS.glob("*.json") for name in kinds_of(path)}
    assert measured == {"CPU"}, "a GPU has been measured: say so, and what remains"


def kinds_of(path: Path) -> set[str]:
    """The kinds of adapters that kept results are of."""
    contenders = json.loads(path.read_text("utf-8")).get("contenders", {}).values()
    return {each["kind"] for each in contenders if "kind" in each}
