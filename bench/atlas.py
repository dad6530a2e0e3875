"""The atlas of GPUs: what the page "Test your GPU" and `python3 run gpu` found, in `bench/results/gpus`.

`python -m bench.results_page` draws its picture and writes its table. To add a visitor's file, put it into
the folder first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.contest import ROOT
from bench.gpu_programs import LIMITS
from bench.gpu_times import shares, slowdowns
from bench.provenance import every_kernel
from bench.report import RESULTS, file_name, geometric_mean

__all__ = ["FOLDER", "SCHEMA", "atlas", "draw_atlas", "draw_kept", "files", "is_older", "keep_shared"]

FOLDER = RESULTS / "gpus"
PICTURE = "atlas.png"
SCHEMA: dict[str, Any] = json.loads((ROOT / "bench" / "gpu.schema.json").read_text("utf-8"))
GROUPS = "kernel copy", "slices", "permutes", "windows", "gathers", "masks"
COLUMNS = ["adapter", "measured by", "kernels right", "buffer copy, GB/s", *GROUPS, "slowdown over best"]
Content: TypeAlias = Mapping[str, Any]


def files() -> dict[Path, Content]:
    """Return the kept files: GPUs before software adapters, the fastest first."""
    found = {path: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    return dict(sorted(found.items(), key=lambda item: rank(item[1])))


def rank(content: Content) -> tuple[bool, float]:
    """Return what files are sorted by."""
    return content["adapter"]["software"], -(copy_bytes_per_s(content) or 0.0)


def copy_bytes_per_s(content: Content) -> float | None:
    """Return the bandwidth of a buffer copy, if it was measured."""
    copy = next((each for each in content["speeds"] if each["group"] == "buffer copy"), None)
    return copy["nbytes"] / copy["best_s"] if copy else None


def is_older(content: Content) -> bool:
    """Whether a file is of other kernels or plans than today's."""
    return bool(content["fingerprint"] != every_kernel(LIMITS))


def keep_shared(content: Content, folder: Path) -> Path:
    """Write what results share with those of the page into a folder; return the file."""
    path = folder / f"run-gpu-{file_name(content['adapter']['name'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {name: content[name] for name in SCHEMA["required"]}
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return path


def atlas() -> str:
    """Return the table and the picture."""
    found = files()
    if not found:
        return "No file has been kept yet."
    rows = [[*COLUMNS, "date", "commit"], ["---"] * (len(COLUMNS) + 2)]
    rows += [cells(content) for content in found.values()]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    picture = f"../bench/results/{FOLDER.name}/{PICTURE}"
    return f"{table}\n\n![Speed of copies by group, as a share of a buffer copy's]({picture})\n"


def cells(content: Content) -> list[str]:
    """Return the cells of a file's row."""
    adapter, host, speed = content["adapter"], content["host"], copy_bytes_per_s(content)
    wrong = [line for line in (*content["kernels"], *content["races"]) if line["wrong"]]
    right = f"{len(content['kernels'])} of {len(content['kernels'])}"
    found, times = shares(content) if speed else {}, [*slowdowns(content)]
    invalid = " (invalid times)" * (not content["timings_valid"])
    commit = (content["commit"] or "unknown")[:7] + ", older" * is_older(content)
    machine = f"`run gpu`, {host.get('processor')}, {host.get('cores')} cores"
    return [
        ", ".join(
            filter(None, [adapter["name"], adapter.get("driver", ""), "software" * adapter["software"]])
        ),
        f"page, {host['browser']}" if content["by"] == "page" else machine,
        f"**wrong: {', '.join(line['kernel'] for line in wrong)}**" if wrong else right,
        f"{speed / 1e9:.3g}{invalid}" if speed else "-",
        *(f"{found[group]:.2g}" if group in found else "-" for group in GROUPS),
        f"{geometric_mean(times):.2f}, at worst {max(times):.2f}" if times else "-",
        content["date"][:10],
        commit,
    ]


def draw_kept() -> None:
    """Draw the kept files, if there are any."""
    if kept := files():
        draw_atlas([*kept.values()], FOLDER / PICTURE)


def draw_atlas(contents: Sequence[Content], path: Path) -> None:
    """Draw the shares of each file: a row of dots for each group."""
    from matplotlib.figure import Figure  # imported here: the table needs no picture

    figure = Figure(figsize=(9, 1.2 + 0.45 * len(GROUPS)), layout="constrained")
    axes = figure.subplots()
    for number, content in enumerate(contents):
        found = shares(content) if content["speeds"] else {}
        places = [place for place, group in enumerate(GROUPS) if group in found]
        label = f"{content['adapter']['name']}, {content['by']}"
        offset = 0.6 * ((number + 0.5) / len(contents) - 0.5)
        axes.plot(
            [found[GROUPS[place]] for place in places], [place + offset for place in places], "o", label=label
        )
    axes.set_yticks(range(len(GROUPS)), GROUPS)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("bytes per second over those of a buffer copy, geometric mean of the group")
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
