"""Compare with another version of wgslice on the same random public calls: `python3 run differential PYTHON`.

PYTHON is an interpreter with the other version installed, and `onnx`. Both versions run in processes of their
own. A difference is printed with the number that repeats it: `--only NUMBER`. It is a regression, or a change
that the changelog tells.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import monotonic

CALLS = Path(__file__).with_name("differential_calls.py")
AT_ONCE = 20  # calls of a line


def started(python: str, calls: Path = CALLS) -> subprocess.Popen[str]:
    """The process of a version."""
    return subprocess.Popen([python, calls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def outcomes(process: subprocess.Popen[str], first: int, count: int) -> list[object] | None:
    """What some calls give, or nothing where the process has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    found: list[object] | None = json.loads(line) if line else None
    if found is None:
        print(f"{process.args!r} ended at call {first} to {first + count - 1}")
    return found


def main() -> int:
    """Parse the command line and compare; the exit status."""
    parser = argparse.ArgumentParser(prog="run differential", description=__doc__.partition(": ")[0] + ".")
    parser.add_argument("python", help="an interpreter with the other version, and onnx")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one call alone")
    given = parser.parse_args()
    processes = [started(given.python), started(sys.executable)]
    first = number = given.first if given.only is None else given.only
    count, end = AT_ONCE if given.only is None else 1, monotonic() + given.seconds
    refused = different = 0
    while number == first or (given.only is None and monotonic() < end):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps([number, count]) + "\n")
            process.stdin.flush()
        before, now = (outcomes(process, number, count) for process in processes)
        if before is None or now is None:
            return 1
        for call, (theirs, ours) in enumerate(zip(before, now, strict=True), number):
            refused += isinstance(theirs, str)
            if theirs != ours:
                different += 1
                print(f"call {call}: theirs {theirs}, ours {ours}")
        number += count
    for process in processes:
        process.communicate()
    print(f"{number - first} calls, {refused} refused by the other version: {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
