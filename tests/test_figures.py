"""Measurements on the pages: each is one that the bench has kept, of today's code unless marked stale."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES, README, RESULTS, ROOT

from bench.cases import CASES
from bench.cliffs_page import PAGE as CLIFFS
from bench.cliffs_page import page as cliffs_page
from bench.compilers.accesses import READ, WRITTEN
from bench.costs import NAMES, pays_from
from bench.entries import ALLOCATING, COPY, GIVEN
from bench.provenance import STALE, is_stale
from bench.report import MEBIBYTE, geometric_mean, machine_of
from bench.tasks import MANY_WINDOWS

pytestmark = pytest.mark.slow

TABLES = RESULTS / "README.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PERMUTED = {case.name for case in CASES if case.work.permuted}
KINDS = "slices", "permutes", "windows"  # that plans choose strategies for


def results(name: str) -> dict[str, Any]:
    """Kept results by the end of a link to them."""
    content: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return content


def rows(page: Path, first_cell: str, heading: str = "") -> list[tuple[str, list[str]]]:
    """The rows of tables whose first cell matches, of a section or of the page."""
    text = page.read_text("utf-8").partition(heading)[2] if heading else page.read_text("utf-8")
    section = text.partition("\n## ")[0] if heading else text
    found = re.findall(rf"^\| ({first_cell}) \| (.*) \|$", section, re.MULTILINE)
    return [(name, cells.split(" | ")) for name, *_, cells in found]


MEASURING = "Timings are being measured again"


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
    kept = [path.name for path in RESULTS.iterdir() if path.suffix != ".md"]
    unused = [name for name in kept if f"({name})" not in text]
    assert unused == []


SLICES = r"\[[^]]*\]\([^)]*\.json\)"  # a row of means links its results


def speed_up(entry: dict[str, Any], name: str) -> float | None:
    """The speed-up of the first contender over another; None where either has no time."""
    outcomes = entry["outcomes"]
    ours, other = (outcomes.get(each, {}).get("best_s") for each in (next(iter(outcomes)), name))
    return other / ours if ours and other else None


def mean_speed_up(kept: dict[str, Any], name: str) -> float | None:
    """Over the slices with 1 MiB of output and more, without permutes and growing crops."""
    chosen = {case.name for case in CASES if case.rivals and not case.axes and case.nbytes >= MEBIBYTE}
    found = [speed_up(each, name) for each in kept["slices"] if each["name"] in chosen]
    known = [value for value in found if value is not None]
    return geometric_mean(known) if known else None


def shown(value: float | None, form: str) -> str:
    """A cell of a table."""
    return "-" if value is None else f"{value:{form}}"


def test_means_of_slices_are_those_of_the_results() -> None:
    found = rows(TABLES, SLICES)
    assert len(found) >= 4
    rivals = ALLOCATING, GIVEN, COPY, "slice1.wgsl", "tinygrad WebGPU", "ONNX Runtime WebGPU"
    for link, (machine, *cells) in found:
        kept = results(link.rpartition("(")[2].rstrip(")"))
        assert machine == machine_of(kept)
        assert cells == [shown(mean_speed_up(kept, name), ".2f") for name in rivals]
    of_epyc = results(found[2][0].rpartition("(")[2].rstrip(")"))
    for name in ("PyTorch", "ONNX Runtime"):
        assert f"over {name} on the CPU {'is ' * (name == 'PyTorch')}{mean_speed_up(of_epyc, name):.2f}" in (
            TABLES.read_text("utf-8")
        )


def linked(suffix: str, heading: str = "") -> dict[str, Any]:
    """The results that the page links below a heading, of a kind."""
    page = TABLES.read_text("utf-8")
    section = page.partition(heading)[2].partition("\n## ")[0] if heading else page
    names = re.findall(rf"\(([^()\s]*-{suffix}\.json)\)", section)
    (name,) = set(names)
    kept = results(name)
    assert machine_of(kept) in page
    return kept


def test_figures_of_each_slice_are_those_of_the_results() -> None:
    """One column for each row of the table of means, in its order."""
    links = [link.rpartition("(")[2].rstrip(")") for link, _ in rows(TABLES, SLICES)]
    columns = [{each["name"]: each for each in results(name)["slices"]} for name in links]
    found = rows(TABLES, "|".join(map(re.escape, columns[0])), "## Slices")
    assert [name for name, _ in found] == list(columns[0])
    for name, (_, *cells) in found:
        assert cells == [shown(speed_up(column[name], ALLOCATING), ".3g") for column in columns]


def test_regret_is_that_of_the_results() -> None:
    """A row for each run that is kept: geometric mean and worst."""
    kept = {path.name: results(path.name) for path in RESULTS.glob("*-regret.json")}
    found = rows(TABLES, r"(?:lavapipe|llvmpipe|SwiftShader)[^|]*", "## How well plans choose")
    assert kept
    assert sorted(cells[-1] for _, cells in found) == sorted(f"[each]({name})" for name in kept)
    for adapter, (machine, *shown, link) in found:
        run = kept[link.rpartition("(")[2].rstrip(")")]
        ours = run["contenders"]["wgslice"]
        assert adapter.split()[-1] in f"{ours['adapter']} {ours['driver']}"
        assert machine == machine_of(run)
        kinds = dict.fromkeys(PERMUTED, "permutes") | {task.name: "windows" for task in MANY_WINDOWS}
        for cell, (kind, costs) in zip(shown, product(KINDS, ("shipped", "tuned")), strict=True):
            chosen = [
                each["ways_s"][each[costs]["chosen"]] / min(each["ways_s"].values())
                for each in run["slices"]
                if kinds.get(each["name"], "slices") == kind
            ]
            assert bool(chosen) == (kind in run["regret"]) == (cell != "–")
            if not chosen:
                continue
            said = run["regret"][kind][costs]
            assert said["worst"] == max(chosen)
            assert said["geometric_mean"] == pytest.approx(geometric_mean(chosen))
            assert cell == f"{said['geometric_mean']:.2f}, {said['worst']:.2f}"


def test_cliffs_are_those_of_the_results() -> None:
    assert CLIFFS.read_text("utf-8") == cliffs_page()


def test_streams_are_those_of_the_results() -> None:
    """A row for each window of each run that is kept: speed-up, GB/s, and the share of each stage."""
    page = TABLES
    kept = sorted(RESULTS.glob("*-stream.json"))
    assert kept
    for path in kept:
        assert f"]({path.name})" in page.read_text("utf-8")
        run = results(path.name)
        found = rows(page, r"[^|]*`\[[^|]*\]`", f"{path.name})")
        assert [name for name, _ in found] == [name.replace(", [", ", `[") + "`" for name in run["streams"]]
        for (_, cells), stream in zip(found, run["streams"].values(), strict=True):
            best = stream["best_s"]
            speed = stream["nbytes"] / best["wgslice"] / 1e9
            shares = [f"{share:.0%}" for share in stream["shares"].values()]
            assert cells == [f"{best['NumPy'] / best['wgslice']:.2f}", f"{speed:.2f}", *shares]


def test_shipped_models_name_their_origin() -> None:
    """Cost models of devices until they are tuned: measured with the driver that is named, or assumed."""
    page = ROOT / "docs" / "commands" / "tune.md"
    listed = dict(rows(page, r"`[^`|]*\.json`", "## What is shipped"))
    folder = ROOT / "src" / "wgslice" / "plans" / "cost_models"
    assert sorted(listed) == sorted(f"`{path.name}`" for path in folder.glob("*.json"))
    for name, (_, said) in listed.items():
        kept = json.loads((folder / name.strip("`")).read_text("utf-8"))
        if "adapter" in kept:
            assert kept["measured"].startswith("medians of 3 measurements, by `python -m bench.figures`")
            assert kept["processor"] == {"name": "AMD EPYC", "cores": 2}
            version = re.search(r"Mesa [\d.]*\d", kept["adapter"]["driver"])
            assert said == f"measured with {version[0]}" if version else "measured"
        else:
            assert said == "assumed"


def test_figures_of_permutes_are_those_of_the_results() -> None:
    section = TABLES.read_text("utf-8").partition("## Permutes")[2].partition("\n## ")[0]
    (name,) = re.findall(r"\(([^()\s]*\.json)\)", section)
    kept = results(name)
    assert machine_of(kept) in section
    permutes = {each["name"]: each for each in kept["slices"] if each["axes"] != sorted(each["axes"])}
    found = rows(TABLES, "|".join(map(re.escape, permutes)), "## Permutes")
    assert {name for name, _ in found} == set(permutes)
    for name, (_, ours, *others) in found:
        assert ours == f"{permutes[name]['outcomes']['wgslice']['best_s'] * 1e3:.1f}"
        names = ("NumPy", "PyTorch", "ONNX Runtime", "tinygrad WebGPU")
        assert others == [shown(speed_up(permutes[name], other), ".2f") for other in names]


def test_figures_of_compilers_are_those_of_the_results() -> None:
    """AMD's inverse throughput, instructions of the others, and the useful shares of what is touched."""
    kept = results("compilers-mesa-25-0-7.json")
    found = rows(TABLES, r"[^|`]*", "## What GPU compilers say")[2:]
    assert len(found) >= 15
    for name, (kernels, *cells) in found:
        variants = [variant for variant in kept["variants"] if name in variant["slices"]]
        assert {*re.findall(r"`(\w+)`", kernels)} == {variant["kernel"] for variant in variants}
        taken = [variant["compilers"] for variant in variants]
        expected = [
            f"{sum(said[device][figure] for said in taken):.0f}"
            for device in kept["devices"]
            for figure in ["inverse throughput" if device.startswith("AMD") else "instructions"]
        ]
        touched = kept["accesses"][name].values()
        expected += [f"{min(of_wave[share] for of_wave in touched):.2f}" for share in (READ, WRITTEN)]
        assert cells == expected, name


def test_figures_of_the_older_compiler_are_those_of_the_results() -> None:
    kept = results("compilers-mesa-22-3-6.json")
    assert "Mesa 22.3.6" in kept["devices"]["AMD NAVI21"]
    said = re.search(r"says (\d+) for the first row and (\d+)\s+for the transpose", TABLES.read_text("utf-8"))
    assert said is not None
    for name, figure in zip(("f32 crop, aligned", "f32 transpose"), said.groups(), strict=True):
        (found,) = (each["compilers"]["AMD NAVI21"] for each in kept["variants"] if name in each["slices"])
        assert f"{found['inverse throughput']:.0f}" == figure


def test_figures_of_windows_are_those_of_the_results() -> None:
    windows = linked("family", "## Many windows at once")["windows"]
    names = "|".join(re.escape(window["name"]) for window in windows)
    found = rows(TABLES, names, "## Many windows at once")
    assert [name for name, _ in found] == [window["name"] for window in windows]
    for window, (_, cells) in zip(windows, found, strict=True):
        first, *others = map(float, cells)
        assert first == round(window["outcomes"]["extract_windows"]["best_s"] * 1e3, 1)
        over = [speed_up(window, name) for name in window["outcomes"]][2:]  # after extract_windows itself
        assert others == [round(value, 1) for value in over if value is not None]


def test_figures_of_gradients_are_those_of_the_results() -> None:
    gradients = {each["name"]: each for each in linked("family", "## Many windows at once")["gradients"]}
    found = rows(TABLES, "|".join(map(re.escape, gradients)), "## Many windows at once")
    assert [name for name, _ in found] == list(gradients)
    for name, (best, *others) in found:
        assert best == f"{gradients[name]['outcomes']['slice_grad']['best_s'] * 1e3:.1f}"
        names = [*gradients[name]["outcomes"]][1:]
        assert others == [shown(speed_up(gradients[name], other), ".1f") for other in names]


def test_figures_of_windows_and_batches_are_those_of_the_results() -> None:
    heading = "## Windows written, and batches in another order"
    run = linked("family", heading)
    kept = [*run["insertions"], *run["batches"]]
    found = rows(TABLES, "|".join(re.escape(each["name"]) for each in kept), heading)
    assert [name for name, _ in found] == [each["name"] for each in kept]
    for each, (_, (_, best, *others)) in zip(kept, found, strict=True):
        first, *rest = each["outcomes"]
        assert best == f"{each['outcomes'][first]['best_s'] * 1e3:.1f}"
        names = ("extract_windows", "a buffer copy", "NumPy", "PyTorch")
        rivals = [next((key for key in rest if key.startswith(name)), "") for name in names]
        assert others == [shown(speed_up(each, rival), ".2f") for rival in rivals]


def test_figures_of_graphs_are_those_of_the_results() -> None:
    graphs = linked("graphs")["graphs"]
    found = rows(TABLES, r"20 operators, [^|]*|focus, [^|]*")
    assert [name for name, _ in found] == [graph["name"] for graph in graphs]
    for graph, (_, cells) in zip(graphs, found, strict=True):
        first, *others = map(float, cells)
        ours = graph["outcomes"]["wgslice.onnx, tensors"]
        assert first == round(ours["best_s"] * 1e3, 1)
        over = [speed_up(graph, name) for name in [*graph["outcomes"]][1:]]
        assert others[:3] == [round(value, 1) for value in over if value is not None]
        nbytes = [int(digits.replace(",", "")) for digits in re.findall(r"([\d,]+) bytes", ours["plan"])]
        assert others[3:] == [round(value / 2**20, 1) for value in nbytes]


def test_costs_are_those_of_the_results() -> None:
    text = TABLES.read_text("utf-8")
    section = text[text.index("## What a call costs") :]
    (name,) = re.findall(r"\(([^()\s]*\.json)\)", section[: section.index("\n## ")])
    kept = results(name)
    assert machine_of(kept) in section
    once = {name: float(cells[0]) for name, cells in rows(TABLES, "|".join(NAMES))}
    assert once == {name: round(kept["costs"]["once_s"][name], 2) for name in NAMES}
    calls = {int(name.split()[0]): cells for name, cells in rows(TABLES, r"\d+ KiB")}
    for call in kept["costs"]["calls"]:
        ours, theirs = calls[call["nbytes"] // 1024]
        assert float(ours) == float(f"{call['wgslice_s'] * 1e3:.2g}")
        assert float(theirs) == float(f"{call['numpy_s'] * 1e3:.2g}")
    start = kept["costs"]["start_s"]
    whole = start["first slice of a process"]
    ours = start["first slice of a process beyond wgpu's own start"]
    assert f"takes {whole:.2f} s, of which {ours:.2f} s are wgslice's" in section
    worth, quicker = pays_from(kept["costs"])
    assert worth
    assert f"from {worth // 1024} KiB on" in section
    assert ("never quicker than NumPy" in section) == (quicker is None)


def test_one_place_lists_what_has_not_been_run() -> None:
    heading = "## What has not been run"
    assert [page for page in PAGES if heading in page.read_text("utf-8")] == [PERFORMANCE]
    section = PERFORMANCE.read_text("utf-8").partition(heading)[2].partition("\n## ")[0]
    for unrun in ("Metal", "D3D12", "GPU"):
        assert unrun in section
    measured = {name for kept in RESULTS.glob("*cores*.json") for name in kinds_of(kept)}
    assert measured == {"CPU"}, "a GPU has been measured: say so, and what remains"


def kinds_of(path: Path) -> set[str]:
    """The kinds of adapters that kept results are of."""
    contenders = json.loads(path.read_text("utf-8"))["contenders"].values()
    return {each["kind"] for each in contenders if "kind" in each}
