"""Run random calls by every applicable strategy, in many limits, and compare all bytes with NumPy's.

`python3 run fuzz --minutes N` goes through the operations of `operations.py` in turn, some cases of each, and
adds its counts to `bench/results/fuzz.json`. It stops at the first mismatch, makes that small, prints the
line that reproduces it, and fails.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import hypothesis
from contracts import EVERY
from forcing import SETTINGS, Setting, Tally, check_call
from hypothesis import HealthCheck, Phase, given, reproduce_failure, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import DidNotReproduce
from operations import Call

import wgslice as wg
from bench.provenance import commit
from bench.report import write_json

RESULTS = Path(__file__).parents[1] / "bench" / "results" / "fuzz.json"
CASES = 50  # of an operation in a round
MAX_SETTINGS = 6  # of a case
BLOB = re.compile(r"@reproduce_failure\([^,]+, b'([^']+)'\)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if a result differs from NumPy's."""
    options = parse(arguments)
    device = wg.Device.request(options.adapter)
    if options.reproduce:
        failure = failing(device, options.operation[0], Tally(), reproduced(options.reproduce))
        print(failure or "fuzz: no result differs any more")
        return int(bool(failure))
    tally, begun, failure = Tally(), monotonic(), ""
    print(f"fuzz: {device.adapter}, seed {options.seed}", flush=True)
    number, said_s = options.seed, 0.0
    while not failure and monotonic() - begun < 60 * options.minutes:
        for name in options.operation:
            chosen = seed(number)
            failure = failing(device, name, tally, chosen)
            if failure or monotonic() - begun >= 60 * options.minutes:
                break
        number += 1
        seconds = monotonic() - begun
        if seconds - said_s >= 60 or failure:
            said_s = seconds
            print(f"fuzz: {tally.executions:,} executions in {seconds:.0f} s; next seed {number}", flush=True)
    seconds = monotonic() - begun
    total = keep(device, tally, seconds, mismatches=int(bool(failure)))
    print(
        failure
        or f"fuzz: {tally.executions:,} executions of {tally.cases:,} cases in {seconds:.0f} s, "
        f"{tally.executions / seconds:.0f} a second; {sum(tally.forced.values()):,} plans by "
        f"{len(tally.forced)} strategies; {tally.refused} refused, {tally.skipped} skipped; no result differs"
    )
    print(f"fuzz: {RESULTS.name} has {total['executions']:,} executions, {total['mismatches']} mismatches")
    return int(bool(failure))


def reproduced(blob: str) -> Callable[[Any], Any]:
    """Returns a decorator that lets a property test run one case only."""
    return reproduce_failure(hypothesis.__version__, blob.encode())


def failing(device: wg.Device, name: str, tally: Tally, chosen: Callable[[Any], Any]) -> str:
    """Run cases of an operation; return the text of the smallest that differs from NumPy, or nothing."""

    @chosen
    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=True,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        EVERY[name],
        st.lists(st.sampled_from(SETTINGS), min_size=1, max_size=MAX_SETTINGS, unique=True),
    )
    def check(call: Call, chosen_settings: list[Setting]) -> None:
        check_call(device, call, chosen_settings, tally, name)

    try:
        check()
    except DidNotReproduce:
        return ""
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        blob = BLOB.search(notes)
        line = ["python3", "run", "fuzz", "--adapter", device.adapter.backend, "--operation", name]
        line += ["--reproduce", blob[1]] if blob else []
        return (
            f"{notes.partition('You can reproduce')[0]}\n{type(error).__name__}: {error}\n{shlex.join(line)}"
        )
    return ""


def keep(device: wg.Device, tally: Tally, seconds: float, *, mismatches: int) -> dict[str, Any]:
    """Add a run to those of the same commit and adapter, and return the totals of all."""
    runs = json.loads(RESULTS.read_text("utf-8"))["runs"] if RESULTS.exists() else []
    own = {"commit": commit(), "adapter": str(device.adapter), "driver": device.adapter.driver}
    found = [run for run in runs if own.items() <= run.items()]
    before = found[0] if found else {}
    added = {**vars(tally), "seconds": round(seconds), "mismatches": mismatches}
    merged = {
        name: dict(sorted((Counter(before.get(name, {})) + value).items()))
        if isinstance(value, Counter)
        else before.get(name, 0) + value
        for name, value in added.items()
    }
    kept = [run for run in runs if run is not before]
    kept.append({**own, "date": datetime.now(UTC).isoformat(timespec="seconds"), **merged})
    totals = {name: sum(run[name] for run in kept) for name in ("executions", "mismatches")}
    write_json({**totals, "runs": kept}, RESULTS)
    return totals


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="run fuzz", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; 1 by default")
    parser.add_argument("--adapter", help="part of a name or backend; the best one by default")
    parser.add_argument(
        "--operation", nargs="+", choices=EVERY, default=[*EVERY], metavar="NAME", help="only these"
    )
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31), help="of the first round")
    parser.add_argument("--reproduce", metavar="CASE", help="run one case of an operation, as a failure says")
    options = parser.parse_args(arguments)
    if options.reproduce and len(options.operation) != 1:
        parser.error("--reproduce needs --operation NAME")
    return options


if __name__ == "__main__":
    sys.exit(main())
