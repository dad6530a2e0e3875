"""Run saved programs on every WebGPU implementation of this machine, and compare all bytes with NumPy's.

`python3 run matrix` saves trials of the self-test and drawn operations as programs, and runs them by wgpu on
each adapter, by Dawn in Node.js, in headless Chromium, and on Direct3D 12 under Wine; naga translates their
modules, which spirv-val and Microsoft's compilers check. Its rows replace those of the same implementation,
adapter and driver in `bench/results/matrix.json` and `.md`. It fails if a byte is wrong. With `--plant` it
keeps nothing, and fails unless each row finds wrong bits in two programs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from browser import Browser, chromium, served
from roots import (
    CHAIN,
    D3D12_HOSTS,
    HOSTS,
    PROFILES,
    CannotRunError,
    Row,
    arm64_row,
    compiled_wrong,
    d3d12_row,
)
from saved_cases import PLANTED, cases, flip_bit, planted, save_cases, save_modules

import wgslice as wg
from bench.compilers.report import NPM, TRANSLATE
from bench.contest import ROOT
from bench.provenance import commit, every_kernel
from bench.report import RESULTS, write_json

MATRIX = RESULTS / "matrix.json"
TIMEOUT_S = 3600  # of a row
PLANTED_AMONG = 20  # programs without a wrong bit
NODE, SPIRV_VAL = shutil.which("node"), shutil.which("spirv-val")
LANGUAGES = {"hlsl": "HLSL", "msl": "MSL 2.0", "glsl": "GLSL 4.30", "spv": "SPIR-V"}
KEY = "implementation", "adapter", "driver"

# Dawn's package in Node.js: its objects crash once `gpu` is collected.
SCRIPT = """
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const [folder, packages] = process.argv.slice(1);
const { run } = await import(pathToFileURL(`${folder}/matrix.mjs`));
const { create } = await import(createRequire(`${packages}/`).resolve("webgpu"));
const gpu = globalThis.gpu = create(["verbose=1"]);
console.log(JSON.stringify(await run(gpu, (file) => readFile(`${folder}/${file}`))));
process.exit(0);
"""
ON_PAGE = """
import("./matrix.mjs").then(({ run }) =>
  run(navigator.gpu, async (file) => new Uint8Array(await (await fetch(file)).arrayBuffer())))
"""

Environment: TypeAlias = Mapping[str, str]
# Implementation, adapter, driver, and what runs the row.
Planned: TypeAlias = tuple[str, str, str, Callable[[], Row]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if a byte is wrong, or a planted bit is not found."""
    options = parse(arguments)
    device = wg.Device.request()
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "programs"
        folder.mkdir()
        names = save_cases(folder, islice(cases(device), PLANTED_AMONG if options.plant else None))
        if options.plant:
            planted(device, folder)
            names += PLANTED
            (folder / "cases.json").write_text(json.dumps(names), "utf-8")
        copy_runner(folder)
        print(f"matrix: saved {len(names):,} programs", flush=True)
        planned = [*program_rows(folder, names, arm64=options.arm64)]
        planned += module_rows(folder, names, plant=options.plant)
        own = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit(), "system": platform.platform()}
        own["fingerprint"] = fingerprint()
        rows = []
        for each in planned:
            if any(text in each[0] for text in options.only or [""]):
                rows.append(shown(finished(*each) | own))
                if not options.plant:
                    keep(rows[-1])
    if not rows:
        sys.exit(f"matrix: no row's implementation contains {' or '.join(options.only)}")
    if options.plant:
        missed = [row["implementation"] for row in rows if "wrong" in row and not finds_planted(row)]
        print(f"matrix: rows that do not find the planted bits: {', '.join(missed) or 'none'}")
        return int(bool(missed))
    return int(any(row.get("wrong") for row in rows))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="run matrix", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--plant", action="store_true", help="plant wrong bits, which each row must find")
    only = "run the rows whose implementation contains this; repeatable"
    parser.add_argument("--only", action="append", metavar="TEXT", help=only)
    arm64 = "add Linux on ARM64 by QEMU, which takes a quarter of an hour to set up"
    parser.add_argument("--arm64", action="store_true", help=arm64)
    return parser.parse_args(arguments)


# rows


def finished(implementation: str, adapter: str, driver: str, run: Callable[[], Row]) -> Row:
    """Run a row; return it with its seconds, or with the reason why it cannot run."""
    row: Row = {"implementation": implementation, "adapter": adapter, "driver": driver}
    began = time.perf_counter()
    try:
        return row | run() | {"seconds": round(time.perf_counter() - began)}
    except (CannotRunError, ConnectionError, RuntimeError, subprocess.TimeoutExpired) as error:
        return row | {"reason": f"{error}"}


@cache
def fingerprint() -> str:
    """A digest of what the rows run: kernels, plans, and the scripts that draw programs."""
    found = sha256(every_kernel().encode())
    for name in ("saved_cases.py", "operations.py"):
        found.update(Path(__file__).with_name(name).read_bytes())
    return found.hexdigest()[:16]


def is_stale(row: Row) -> bool:
    """Whether a row ran other kernels, plans or programs than today's."""
    return "reason" not in row and row.get("fingerprint") != fingerprint()


def counted(count: Row, run: Callable[..., Row], *given: Path) -> Row:
    """Run a row, and add the number of what it runs."""
    return count | run(*given)


def program_rows(folder: Path, names: Sequence[str], *, arm64: bool) -> Iterator[Planned]:
    """Yield a row of each implementation that runs programs."""
    plain, software = dict(os.environ), swiftshader()
    vulkan = [each for each in wg.adapters() if each.backend == "Vulkan"]
    planned: list[tuple[str, str, str, Callable[[Path], Row]]] = [
        ("wgpu", str(each), each.driver, partial(python_row, str(each), plain)) for each in wg.adapters()
    ]
    planned += [("Dawn in Node.js", str(each), each.driver, partial(dawn_row, plain)) for each in vulkan[:1]]
    if software is not None:
        planned.append(("wgpu", "SwiftShader", "", partial(python_row, "SwiftShader", software)))
        planned.append(("Dawn in Node.js", "SwiftShader", "", partial(dawn_row, software)))
    planned.append(("Chromium", "", "", chromium_row))
    planned += [(f"{host}, D3D12 ({CHAIN})", "", "", partial(d3d12_row, host)) for host in D3D12_HOSTS]
    for implementation, adapter, driver, run in planned:
        yield implementation, adapter, driver, partial(counted, {"programs": len(names)}, run, folder)
    if arm64:
        yield "Linux on ARM64 (QEMU)", "", "", partial(arm64_row, folder, names)


def copy_runner(folder: Path) -> None:
    """Copy the modules of JavaScript that run the programs of a folder."""
    for source in (files("wgslice.programs") / "program.mjs", ROOT / "tests" / "matrix.mjs"):
        (folder / source.name).write_bytes(source.read_bytes())


def swiftshader() -> dict[str, str] | None:
    """The environment in which the Vulkan driver of Chromium's package is found alone; None without one."""
    program = chromium()
    folders = [Path("/usr/lib/chromium"), *([Path(program).resolve().parent] if program else [])]
    for manifest in (folder / "vk_swiftshader_icd.json" for folder in folders):
        if manifest.exists():
            return {**os.environ, "VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}
    return None


def completed(command: Sequence[str], environment: Environment) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what it printed; raise CannotRunError if it fails."""
    environment = {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **environment}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        raise CannotRunError(f"{Path(command[0]).name} ended with {done.returncode}: {last[0]}")
    return done


def python_row(adapter: str, environment: Environment, folder: Path) -> Row:
    """Run the programs of a folder by `wg.load_program`, in a process of its own."""
    command = [sys.executable, str(HOSTS / "python.py"), adapter, str(folder)]
    row: Row = json.loads(completed(command, environment).stdout)
    return row


def dawn_row(environment: Environment, folder: Path) -> Row:
    """Run the programs of a folder by `program.mjs` in Node.js."""
    package = NPM / "node_modules" / "webgpu" / "package.json"
    if NODE is None or not package.exists():
        raise CannotRunError("node or its package webgpu is missing: install Node.js 20 or newer, with npm")
    command = [NODE, "--input-type=module", "-e", SCRIPT, str(folder), str(NPM)]
    done = completed(command, environment)
    row: Row | None = json.loads(done.stdout.splitlines()[-1])
    if row is None:
        reasons = re.findall("^Warning: (.*)", done.stderr, re.MULTILINE) or ["there is none"]
        raise CannotRunError(f"Dawn accepts no adapter here: {reasons[0]}")
    return row | {"version": f"webgpu {json.loads(package.read_text('utf-8'))['version']} of npm"}


def chromium_row(folder: Path) -> Row:
    """Run the programs of a folder by `program.mjs` on a page from localhost."""
    program = chromium()
    if program is None:
        raise CannotRunError("Chromium is missing: apt-get install chromium")
    (folder / "index.html").write_text("<!doctype html><title>Saved programs</title>", "utf-8")
    with served(folder) as url, Browser(program, TIMEOUT_S) as browser:
        browser.open(url)
        if not browser.evaluate("'gpu' in navigator"):
            raise CannotRunError("this Chromium has no WebGPU")
        row: Row | None = browser.evaluate(ON_PAGE)
        if row is None:
            raise CannotRunError("Chromium finds no adapter")
        return row | {"version": browser.send("Browser.getVersion")["product"]}


def module_rows(folder: Path, names: Sequence[str], *, plant: bool) -> Iterator[Planned]:
    """Yield a row of each language that naga translates the modules to, and of each compiler of these."""
    modules = folder.parent / "modules"
    paths = save_modules(folder, names, modules)
    rows = {
        f"naga to {language}": partial(naga_wrong, paths, suffix) for suffix, language in LANGUAGES.items()
    }
    rows["spirv-val"] = partial(spirv_wrong, paths, plant=plant)
    for profile, compiler in PROFILES.items():
        rows[f"{compiler}, {profile}"] = partial(hlsl_wrong, paths, profile, plant=plant)
    for implementation, run in rows.items():
        yield implementation, "", "", partial(counted, {"modules": len(paths)}, run)


def naga_wrong(paths: Sequence[Path], suffix: str) -> Row:
    """Translate modules to a language; return the version of naga, and its message by module."""
    package = NPM / "node_modules" / "naga-wasm" / "package.json"
    if NODE is None or not package.exists():
        raise CannotRunError(
            "node or its package naga-wasm is missing: install Node.js 20 or newer, with npm"
        )
    command = [NODE, str(TRANSLATE), str(paths[0].parent), str(NPM), suffix]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())[:300]
    wrong = {path.stem: said for path in paths if not path.with_suffix(f".{suffix}").exists()}
    return {"version": f"naga-wasm {json.loads(package.read_text('utf-8'))['version']}", "wrong": wrong}


def spirv_wrong(paths: Sequence[Path], *, plant: bool) -> Row:
    """Validate the SPIR-V of modules; return the version of `spirv-val`, and its message by module."""
    written = [path for each in paths if (path := each.with_suffix(".spv")).exists()]
    if SPIRV_VAL is None or not written:
        raise CannotRunError("spirv-val or SPIR-V is missing: apt-get install spirv-tools")
    if plant:
        flip_bit(written[0], 20)  # in the first instruction
    wrong = {}
    for path in written:
        command = [SPIRV_VAL, "--target-env", "vulkan1.1", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong[path.stem] = " ".join((done.stdout + done.stderr).split())[:300]
    named = subprocess.run([SPIRV_VAL, "--version"], capture_output=True, text=True, check=True).stdout
    return {"version": named.split(",")[0].strip(), "wrong": wrong}


def hlsl_wrong(paths: Sequence[Path], profile: str, *, plant: bool) -> Row:
    """Compile the HLSL of modules for a profile; return the compiler's version, and its message by module."""
    if not any(path.with_suffix(".hlsl").exists() for path in paths):
        naga_wrong(paths, "hlsl")
    written = [path for each in paths if (path := each.with_suffix(".hlsl")).exists()]
    with tempfile.TemporaryDirectory() as folder:
        for path in written:
            shutil.copy(path, folder)
        if plant:
            planted = Path(folder) / written[0].name
            flip_bit(planted, planted.read_bytes().index(b"[numthreads"))  # which begins with Z then
        return compiled_wrong(Path(folder), profile)


def finds_planted(row: Row) -> bool:
    """Whether a row found what was planted, and no more: two programs, one of which has a wrong module."""
    return {*row["wrong"]} == {*PLANTED} if "programs" in row else len(row["wrong"]) == 1


# results


def shown(row: Row) -> Row:
    """Print a row, and return it."""
    print(f"matrix: {' | '.join(cells(row))}", flush=True)
    for name, what in list(row.get("wrong", {}).items())[:5]:
        print(f"  {name}: {' '.join(what.split())[:200]}", flush=True)
    return row


def cells(row: Row) -> list[str]:
    """The cells of a row in a table."""
    named = [row["implementation"], row.get("version", ""), row["adapter"], row["driver"]]
    at = (row["commit"] or "")[:7] + ", stale" * is_stale(row)
    if "reason" in row:
        return [*named, f"not run: {row['reason']}", "", "", "", at]
    count = f"{row['programs']:,} programs" if "programs" in row else f"{row['modules']:,} modules"
    seconds = f"{row['seconds']:,} s" if "seconds" in row else ""
    slowest = f"{row['slowest']['ms'] / 1e3:.1f} s: {row['slowest']['program']}" if "slowest" in row else ""
    return [*named, count, f"{len(row['wrong']):,}", seconds, slowest, at]


def kept_rows(before: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
    """Add rows to those of other implementations, adapters and drivers; drop reasons of what runs by now."""
    found = {tuple(row[part] for part in KEY): row for row in (*before, *rows)}
    ran = {row["implementation"] for row in found.values() if "reason" not in row}
    return [
        row
        for _, row in sorted(found.items())
        if "reason" not in row or row["adapter"] or row["implementation"] not in ran
    ]


def keep(row: Row) -> None:
    """Write the results and their page: a row, and those of earlier runs."""
    before = json.loads(MATRIX.read_text("utf-8"))["rows"] if MATRIX.exists() else []
    content = {"rows": kept_rows(before, [row])}
    write_json(content, MATRIX)
    MATRIX.with_suffix(".md").write_text(page(content), "utf-8")


def page(content: Mapping[str, Any]) -> str:
    """The page of kept results."""
    heading = ["implementation", "version", "adapter", "driver", "ran", "wrong"]
    heading += ["time", "slowest pipeline", "commit"]
    lines = [heading, ["---"] * len(heading), *map(cells, content["rows"])]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""# Saved programs on every implementation

What `python3 run matrix` has kept: [matrix.json](matrix.json). Trials of the self-test and drawn operations
are [saved programs](../../docs/saved-programs.md), which each row runs. Inputs and outputs are compared with
NumPy's, byte by byte. naga translates each module with its constants, spirv-val validates the SPIR-V, and
Microsoft's FXC and DXC compile the HLSL. D3D12 is that of Wine, on a software adapter: neither Windows nor a
GPU. "Not run" is what a machine lacked; a row is stale if kernels, plans or programs have changed since.

{table}
"""


if __name__ == "__main__":
    sys.exit(main())
