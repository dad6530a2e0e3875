"""Times of Python in a browser tab, beside the same calls by JavaScript in it: `python3 run browser --times`.

The seconds to a first slice, the host's time of a tiny copy, and large copies. JavaScript runs the program
that Python has saved, by `program.mjs` and on a device of its own; turns alternate.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import tab
from helpers import ROOT

from bench.report import RESULTS, write_json
from wgslice.calibration.store import processor

ROUNDS = 8
TINY = 200  # copies of a turn
LARGE = 5
FILES = [ROOT / "src" / "wgslice" / "programs" / "program.mjs", ROOT / "tests" / "tab_times.mjs"]

FIRST_SLICE = """
import numpy as np, wgslice as wg
x = wg.asarray(np.arange(24, dtype=np.uint8).reshape(4, 6))
print(x[1:3, ::-2].numpy().tolist())
"""
TINY_COPIES = f"""
from time import perf_counter
def tiny():
    begun = perf_counter()
    for _ in range({TINY}):
        x[1:3, ::-2].copy()
    seconds = (perf_counter() - begun) / {TINY}
    x.device.synchronize()
    return seconds
"""
# What is timed at both sides: each is saved where JavaScript finds its files.
SAVED = f"""
large = wg.asarray(np.arange(2**24, dtype=np.float32).reshape(4096, 4096))
out = wg.empty(large.shape, large.dtype)
def flip(input, output):
    output[...] = input[:, ::-1]
def transpose(input, output):
    output[...] = input.T
def tiny_slice(input, output):
    output[...] = input[1:3, ::-2]
programs = {{each.__name__: wg.capture(each, input=large, output=out) for each in (flip, transpose)}}
for name, program in programs.items():
    program.save("/saved/" + name)
wg.capture(tiny_slice, input=x, output=x[1:3, ::-2].copy()).save("/saved/tiny")
def copies(name):
    begun = perf_counter()
    for _ in range({LARGE}):
        programs[name](input=large, output=out)
    x.device.synchronize()
    return (perf_counter() - begun) / {LARGE}
"""
JAVASCRIPT = f"""(async () => {{
  const {{ turns }} = await import("/tab_times.mjs");
  globalThis.turns = await turns("/saved", {TINY}, {LARGE});
}})()"""
TURNS = {
    "tiny copy, us": ("tiny()", "turns.tiny()"),
    "tiny copy between kept buffers, us": (None, "turns.bound()"),
    "flip of 64 MiB, ms": ("copies('flip')", "turns.flip()"),
    "transpose of 64 MiB, ms": ("copies('transpose')", "turns.transpose()"),
}


def keep_times() -> None:
    """Print and keep the times."""
    found: dict[str, Any] = {}
    with tab.opened(files=FILES) as page:
        for cache in ("cold", "cached"):
            if cache != "cold":
                page.load()
            assert page.run(FIRST_SLICE) == "[[11, 9, 7], [17, 15, 13]]"
            found[f"first slice, {cache}, s"] = page.browser.evaluate("performance.now()") / 1e3
        found["browser"] = page.browser.evaluate("navigator.userAgent.match(/Chrome.[0-9.]+/)[0]")
        page.run(TINY_COPIES + SAVED)
        page.browser.evaluate(JAVASCRIPT)
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            for name, (python, javascript) in TURNS.items():
                scale = 1e6 if name.endswith("us") else 1e3
                if python is not None:
                    note(best, f"{name}, Python", float(page.run(f"print({python})")) * scale)
                note(best, f"{name}, JavaScript", page.browser.evaluate(javascript) * scale)
    found |= best
    native = "".join((FIRST_SLICE, TINY_COPIES, f"print(min(tiny() for _ in range({ROUNDS})))"))
    done = subprocess.run([sys.executable, "-c", native], check=True, capture_output=True, text=True)
    found["tiny copy on the native host, us"] = float(done.stdout.splitlines()[-1]) * 1e6
    for name, value in found.items():
        print(f"browser: {name}: {value if isinstance(value, str) else f'{value:.3g}'}", flush=True)
    machine = {"processor": processor(), "cores": os.cpu_count(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    version = json.loads((tab.CORE / "package.json").read_text("utf-8"))["version"]
    write_json({"pyodide": version, **machine, "times": found}, RESULTS / "browser-times.json")


def note(best: dict[str, float], name: str, value: float) -> None:
    """Keep the least value of a name."""
    best[name] = min(value, best.get(name, value))
