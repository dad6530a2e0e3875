"""Measurements on pages, from the results files: `python -m bench.results_page` writes them between marks.

A page says `<!-- figures: slices -->`, then what the block of that name returns, then `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from bench.atlas import atlas, draw_kept
from bench.chart import CHARTED, groups
from bench.cliffs_page import report, table
from bench.compilers.chart import costs_of
from bench.contest import ROOT
from bench.costs import FROM_START, pays_from
from bench.entries import ALLOCATING, COPY, OURS
from bench.gpu_chart import copy_speeds, gigabytes_per_s
from bench.provenance import STALE, is_stale
from bench.report import MEBIBYTE, RESULTS, machine_of, mean_speed_up, stored_speed_ups
from bench.without import ledger

__all__ = ["MEASURING", "PAGES", "filled", "write_pages"]

README, PERFORMANCE = ROOT / "README.md", ROOT / "docs" / "performance.md"
OF_RESULTS = tuple(RESULTS / f"{name}.md" for name in ("README", "cliffs", "kernels"))
PAGES = (README, PERFORMANCE, ROOT / "docs" / "atlas.md", *OF_RESULTS)
MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
MEASURING = (
    "Timings are being measured again, because plans and kernels have changed since the last measurement."
)
WIDTH = 138  # of lines: the README has few of them
MAIN, COMPILERS = "*-cores.json", ("compilers-*.json", "variants")

Content = Mapping[str, Any]
Tables = Callable[[Content], Iterable[str]]

# What GPU compilers are asked about, of all that they have compiled.
COMPILED = (
    *(
        "f32 crop, aligned",
        "f32 crop, odd offsets",
        "u8 RGB crop, odd offsets",
        "u16 volume crop, odd offsets",
    ),
    *("f32 horizontal flip", "f32 every second column", "f32 every third column, backwards", "u8 half size"),
    *("u8 RGB to BGR", "u8 RGB horizontal flip", "u8 RGB, the green channel", "f32 transpose"),
    *("f16 transpose", "u8 transpose", "f32 x.T[::2]", "f16 NCHW to NHWC", "u8 NCHW to NHWC, 3 channels"),
    *("u8 NHWC to NCHW, 3 channels", "10,000 crops of 16 x 16 RGB", "10,000 crops of 64 x 64 RGB"),
    "10,000 patches of 64 x 64 RGB on a grid, written",
    "10,000 patches of 64 x 64 RGB on a grid, mirrored at random, written",
)
TYPICAL = "f32 crop, aligned", "u8 RGB crop, odd offsets", "u8 RGB to BGR", "f32 transpose"
TRANSFERS = "asarray", "numpy()"
THROUGHPUT, INSTRUCTIONS = "inverse throughput", "instructions"  # of AMD's compiler, and of the others


class Run(NamedTuple):
    """A results file."""

    path: Path
    content: Content

    @property
    def adapter(self) -> str:
        """The adapter, with the version of Mesa or of another driver."""
        ours = next(iter(self.content["contenders"].values()))
        name, _, backend = ours["adapter"].rpartition(" via ")
        mesa = re.search(r"Mesa [\d.]*\d", ours["driver"])
        if mesa and "llvmpipe" in name:
            return f"{'lavapipe' if backend == 'Vulkan' else 'llvmpipe'} of {mesa[0]}"
        return f"{name}, {ours['driver']}".removesuffix(", ")

    @property
    def link(self) -> str:
        """The adapter with a link to the file, and the machine."""
        return f"[{self.adapter}]({self.path.name}), {machine_of(self.content)}"


def runs(pattern: str, section: str) -> list[Run]:
    """Return the results files of a kind that have a section, by name."""
    found = [Run(path, json.loads(path.read_text("utf-8"))) for path in sorted(RESULTS.glob(pattern))]
    return [run for run in found if run.content.get(section)]


def fresh(pattern: str, section: str) -> list[Run]:
    """Return the results files of a kind that are not stale, those of the newest Mesa first."""
    found = [run for run in runs(pattern, section) if not is_stale(run.content)]
    return sorted(found, key=lambda run: ("mesa" in run.path.name, run.path.name), reverse=True)


def shown(value: float | None) -> str:
    """Format a number with three digits."""
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds with two digits."""
    return f"{seconds * 1e3:.2g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def grid(label: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table of cells by row and column, with dashes where a row lacks a column."""
    columns = dict.fromkeys(chain(*rows.values()))
    lines = [" | ".join([name, *(row.get(column, "-") for column in columns)]) for name, row in rows.items()]
    return table(" | ".join([label, *columns]), lines)


def by_columns(label: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table of cells by column and row."""
    names = dict.fromkeys(chain(*columns.values()))
    return grid(label, {name: {key: each.get(name, "-") for key, each in columns.items()} for name in names})


def outcomes_table(label: str, cases: Sequence[Content]) -> str:
    """Return a row per case: MiB, the first contender's best time, and its speed-up over each other one."""
    rows = {}
    for case in cases:
        row = {"MiB": shown(case["nbytes"] / MEBIBYTE)}
        for number, (name, ratio) in enumerate(stored_speed_ups(case["outcomes"]).items()):
            seconds = case["outcomes"][name]["best_s"]
            row |= {name: shown(ratio)} if number else {f"{name}, ms": shown(seconds * 1e3)}
        rows[case["name"]] = row
    return grid(label, rows)


def slices(content: Content) -> Iterator[str]:
    """Yield means of groups, then every slice and permute."""
    rivals = [*content["contenders"]][1:]
    found = groups(content)
    yield grid(
        "group", {f"{name} ({len(cases)})": mean_cells(cases, rivals) for name, cases in found.items()}
    )
    yield outcomes_table("slice or permute", content["slices"])


def family(content: Content) -> Iterator[str]:
    """Yield a table for each kind of tasks."""
    kinds = "windows", "insertions", "gradients", "batches", "boxes", "put_back", "paddings", "graphs"
    for kind in kinds:
        if kind in content:
            yield outcomes_table(kind.replace("_", " "), content[kind])


def graphs(content: Content) -> Iterator[str]:
    """Yield the times of graphs, and the device memory of each."""
    yield from family(content)
    memory = [
        f"- {graph['name']}: {next(iter(graph['outcomes'].values()))['plan']}" for graph in content["graphs"]
    ]
    yield "\n".join(["Device memory:", "", *memory])


def regret(found: Sequence[Run]) -> Iterator[str]:
    """Yield a row per run: mean and worst slowdown by either cost model."""
    rows = {
        run.link: {
            f"{kind}, {model}": f"{each['geometric_mean']:.2f}, {each['worst']:.2f}"
            for kind, models in run.content["regret"].items()
            for model, each in models.items()
        }
        for run in found
    }
    yield grid("run", rows)
    yield from pictures(found)


def streams(content: Content) -> Iterator[str]:
    """Yield a row per window."""
    rows = {}
    for name, stream in content["streams"].items():
        ours_s, numpys_s = (stream["best_s"][each] for each in (OURS, ALLOCATING))
        rows[name.replace(", [", ", `[") + "`"] = {
            "speed-up over NumPy": shown(numpys_s / ours_s),
            "GB/s": shown(stream["nbytes"] / ours_s / 1e9),
            **{stage: f"{share:.0%}" for stage, share in stream["shares"].items()},
        }
    yield grid("window", rows)


def compilers(found: Sequence[Run]) -> Iterator[str]:
    """Yield a table per version of Mesa: the cost of each slice by each compiler, and the useful shares."""
    for path, content in found:
        cost = cost_of(content)
        devices = {name: said for name, said in content["devices"].items() if "Mesa" in said}
        kernels = {
            name: dict.fromkeys(
                f"`{each['kernel']}`" for each in content["variants"] if name in each["slices"]
            )
            for name in COMPILED
        }
        rows = {
            name: {
                "kernel": ", ".join(kernels[name]),
                **{device: shown_count(cost(name, device)) for device in devices},
                **useful_shares(content["accesses"][name]),
            }
            for name in COMPILED
            if kernels[name]
        }
        version = next(iter(devices.values())).rpartition(", ")[2]
        yield f"[{version}]({path.name}){at_commit(content)}:"
        yield grid("slice", rows)
    yield from pictures(found)


def useful_shares(touched: Content) -> dict[str, str]:
    """Return the useful shares of sectors, the least of waves of any size."""
    waves = list(touched.values())
    return {
        name: f"{min(wave[name] for wave in waves):.2f}" for name in waves[0] if name.startswith("useful")
    }


def cost_of(content: Content) -> Callable[[str, str], float | None]:
    """Return AMD's inverse throughput, or the instructions of others, by slice and device."""
    costs = {label: costs_of(content["variants"], label) for label in (THROUGHPUT, INSTRUCTIONS)}
    return lambda name, device: (
        costs[THROUGHPUT if device.startswith("AMD") else INSTRUCTIONS].get(name, {}).get(device)
    )


def shown_count(value: float | None) -> str:
    """Format a count without digits after the point."""
    return "-" if value is None else f"{value:.0f}"


def costs(found: Sequence[Run]) -> Iterator[str]:
    """Yield seconds of what comes once, milliseconds of calls by size, and the sizes from which they pay."""
    once, calls = {}, {}
    for run in found:
        kept = run.content["costs"]
        worth, faster = map(from_size, pays_from(kept))
        once[run.link] = {name: f"{s:.2f}" for name, s in (kept["once_s"] | kept["start_s"]).items()}
        calls[run.link] = {
            **{f"{call['nbytes'] // 1024} KiB": times_of(call) for call in kept["calls"]},
            "copying is half of it": worth,
            "less than NumPy": faster,
        }
    yield by_columns("once a process, s", once)
    yield by_columns("a crop, wgslice and NumPy, ms", calls)


def times_of(call: Mapping[str, float]) -> str:
    """Format the milliseconds of a call and of NumPy's."""
    return f"{milliseconds(call['wgslice_s'])} and {milliseconds(call['numpy_s'])}"


def from_size(nbytes: int | None) -> str:
    """Name the size from which on something holds."""
    return "at no size" if nbytes is None else f"from {nbytes // 1024} KiB on"


def host(found: Sequence[Run]) -> Iterator[str]:
    """Yield microseconds of calls, transfers and textures, and MiB of memory."""
    columns = {
        run.link: {
            name: f"{value / MEBIBYTE:.1f} MiB" if name.startswith("memory") else shown(value * 1e6)
            for name, value in run.content["overheads"].items()
        }
        for run in found
    }
    yield by_columns("what, us", columns)


def gpu(content: Content) -> Iterator[str]:
    """Yield what `python3 run gpu` has kept: tests, bandwidth, slices."""
    tests = ", ".join(
        f"{count} {name}" for name, count in content["tests"].items() if name in ("passed", "failed")
    )
    yield paragraph(f"Tests: {tests}. Cost parameters: {content['tune'].get('verdict', 'not measured')}.")
    speeds = {each["name"]: map(shown, copy_speeds(each)) for each in content["copies"]}
    names = "buffer copy", "best kernel"
    copies = {name: dict(zip(names, each, strict=True)) for name, each in speeds.items()}
    permutes = {each["name"]: {"planned": shown(gigabytes_per_s(each))} for each in content["permutes"]}
    yield grid("GB/s of output", copies | permutes)
    yield from slices(content)


def cliffs(content: Content) -> Iterator[str]:
    """Yield the worst rows, and pairs of expressions."""
    yield report(content)


def at_commit(content: Content) -> str:
    """Name the commit that was measured."""
    return f" at {content['commit'][:12]}" if content.get("commit") else ""


def pictures(found: Iterable[Run]) -> Iterator[str]:
    """Yield the picture of each run that has one."""
    for run in found:
        if run.path.with_suffix(".png").exists():
            yield f"![{run.path.stem.replace('-', ' ')}]({run.path.stem}.png)"


def by_run(tables: Tables) -> Callable[[Sequence[Run]], Iterator[str]]:
    """Yield the tables of each run below its name."""

    def body(found: Sequence[Run]) -> Iterator[str]:
        for run in found:
            yield f"[{run.adapter}]({run.path.name}),\n{machine_of(run.content)}{at_commit(run.content)}:"
            yield from tables(run.content)
            yield from pictures([run])

    return body


def block(pattern: str, section: str, body: Callable[[Sequence[Run]], Iterator[str]]) -> Callable[[], str]:
    """Return a block about the results files of a kind, marked where any of them is stale."""

    def text() -> str:
        found = runs(pattern, section)
        stale = any(is_stale(run.content) for run in found)
        return "\n\n".join([*[STALE] * stale, *body(found)]) if found else "Not measured yet."

    return text


def performance() -> str:
    """Return what readers ask first, of the runs that are not stale."""
    found = fresh(MAIN, "slices")
    if not found:
        return f"**{MEASURING}**"
    main = found[0]
    columns = {
        f"{run.adapter}, {machine_of(run.content)}: {kind}": each
        for run in found
        for kind, each in means(run.content).items()
    }
    answers = [f"{against_numpy(main)}; {extremes(main)}.", of_calls(main), of_transfers(main)]
    answers += map(of_compilers, fresh(*COMPILERS)[:1])
    intro = (
        f"Measured{at_commit(main.content)}. A speed-up is the other's time over wgslice's: above 1, wgslice "
        "is faster. Geometric means of the slices and permutes with 1 MiB of output and more, all of "
        "which are in `bench/results/README.md`:"
    )
    parts = paragraph(intro), by_columns("speed-up over", columns), chart(main, "../bench/results/")
    return "\n\n".join([*parts, "\n".join(paragraph(f"- {answer}") for answer in answers)])


def readme() -> str:
    """Return the means of the main run in a few lines."""
    found = fresh(MAIN, "slices")
    if not found:
        return paragraph(MEASURING)
    main = found[0]
    of_slices, of_permutes = means(main.content).values()
    speeds = "; ".join(
        f"{name} {of_slices[name]} and {of_permutes.get(name, '-')}"
        for name in dict.fromkeys((ALLOCATING, COPY, *CHARTED))
        if name in of_slices
    )
    said = (
        f"Mean speed-ups, the other's time over wgslice's (0.25: wgslice takes 4 times as long), of slices "
        f"and of permutes, with {main.adapter} on {machine_of(main.content)}: over {speeds}. "
        f"{against_numpy(main)}; {extremes(main)}."
    )
    return f"{paragraph(said)}\n{chart(main, 'bench/results/')}"


def chart(run: Run, folder: str) -> str:
    """Return the chart of a run, in a folder."""
    return (
        f"![Speed-ups by group of slices with {run.adapter}, larger is better]({folder}{run.path.stem}.png)"
    )


def means(content: Content) -> dict[str, dict[str, str]]:
    """Return the mean speed-ups over each rival, of slices and of permutes with 1 MiB of output and more."""
    found: dict[str, list[Content]] = {"slices": [], "permutes": []}
    for case in chain(*groups(content).values()):
        found["permutes" if case["axes"] else "slices"].append(case)
    return {kind: mean_cells(cases, [*content["contenders"]][1:]) for kind, cases in found.items()}


def mean_cells(cases: Sequence[Content], rivals: Iterable[str]) -> dict[str, str]:
    """Return the mean speed-up over each rival that ran any of the cases."""
    found = {rival: mean_speed_up(cases, rival) for rival in rivals}
    return {rival: shown(mean) for rival, mean in found.items() if mean is not None}


def against_numpy(run: Run) -> str:
    """Name the groups in which wgslice is slower than NumPy, and those in which it is faster."""
    grouped = by_speed(
        {name: mean_speed_up(cases, ALLOCATING) for name, cases in groups(run.content).items()}
    )
    slower = [f"{name} {shown(mean)}" for mean, name in grouped if mean < 1]
    faster = [f"{name} {shown(mean)}" for mean, name in grouped if mean >= 1]
    return f"Slower than NumPy: {', '.join(slower) or 'none'}; faster: {', '.join(faster) or 'none'}"


def extremes(run: Run) -> str:
    """Name the cases with the lowest and the highest speed-up over NumPy."""
    cases = chain(*groups(run.content).values())
    (lowest, slow), *_, (highest, fast) = by_speed(
        {case["name"]: mean_speed_up([case], ALLOCATING) for case in cases}
    )
    return f"from {shown(lowest)} (`{slow}`) to {shown(highest)} (`{fast}`)"


def by_speed(means: Mapping[str, float | None]) -> list[tuple[float, str]]:
    """Sort names by their speed-ups, without those that have none."""
    return sorted((mean, name) for name, mean in means.items() if mean is not None)


def of_calls(run: Run) -> str:
    """State what a call and a process cost."""
    costs = run.content["costs"]
    ours, numpys = (
        [milliseconds(call[name]) for call in costs["calls"] if call["nbytes"] in (1024, MEBIBYTE)]
        for name in ("wgslice_s", "numpy_s")
    )
    whole, bare = (costs["start_s"][name] for name in FROM_START)
    return (
        f"A call for a crop of 1 KiB takes {ours[0]} ms with the wait, of 1 MiB {ours[1]} ms; NumPy takes "
        f"{numpys[0]} and {numpys[1]} ms. A crop is faster than NumPy's {from_size(pays_from(costs)[1])}. "
        f"The first slice of a process ends {whole:.2f} s after its start if no compiled kernel is kept, "
        f"a dispatch of bare wgpu {bare:.2f} s."
    )


def of_transfers(run: Run) -> str:
    """State what transfers cost."""
    found = run.content["overheads"]
    upload, readback = (found[f"{name} of 64 MiB"] / found["memcpy of 64 MiB"] for name in TRANSFERS)
    return (
        f"An upload of 64 MiB takes {shown(upload)} times a `memcpy` into memory that is in use, a readback "
        f"into a new array {shown(readback)} times."
    )


def of_compilers(run: Run) -> str:
    """State what AMD's compiler says of typical slices."""
    cost, device = cost_of(run.content), "AMD NAVI21"
    compiler = run.content["devices"][device].rpartition(", ")[2]
    said = "; ".join(f"{name} {shown_count(cost(name, device))}" for name in TYPICAL)
    return (
        f"GPU compilers: {compiler} estimates for {device} the busy cycles of a wave whose invocations "
        f"each write 16 bytes, without waiting for memory, less is better: {said}. "
        "[How to read it](#gpu-compilers)."
    )


def paragraph(text: str) -> str:
    """Wrap a paragraph, or an item of a list."""
    indent = "  " * text.startswith("- ")
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


BLOCKS: dict[str, Callable[[], str]] = {
    "readme": readme,
    "performance": performance,
    "atlas": atlas,
    "slices": block(MAIN, "slices", by_run(slices)),
    "gpu": block("gpu-*.json", "tests", by_run(gpu)),
    "regret": block("*-cores-regret.json", "regret", regret),
    "compilers": block(*COMPILERS, compilers),
    "costs": block(MAIN, "costs", costs),
    "host": block(MAIN, "overheads", host),
    "family": block("*-family.json", "windows", by_run(family)),
    "boxes": block("*-boxes.json", "boxes", by_run(family)),
    "graphs": block("*-graphs.json", "graphs", by_run(graphs)),
    "streams": block("*-stream.json", "streams", by_run(streams)),
    "cliffs": block("*-cliffs.json", "cliffs", by_run(cliffs)),
    "kernels": ledger,
}


def filled(page: Path) -> str:
    """Return a page with what its marked blocks show today."""
    return MARKED.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n", page.read_text("utf-8"))


def write_pages() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(filled(page), "utf-8")


if __name__ == "__main__":
    draw_kept()
    write_pages()
