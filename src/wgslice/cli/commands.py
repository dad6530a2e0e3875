"""All commands, and what they have in common: how they are parsed, and one line for every refusal."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

import wgslice as wg
from wgslice.cli.adapters import add_adapters
from wgslice.cli.doctor import add_doctor
from wgslice.cli.kernel import add_kernel
from wgslice.cli.slice import add_slice
from wgslice.cli.tune import add_tune

__all__ = ["main"]

COMMANDS = (
    add_adapters,
    add_slice,
    add_kernel,
    add_doctor,
    add_tune,
)  # in the order in which they are listed


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    0, 1 for what is refused or wrong, 2 for wrong usage, 130 for Ctrl-C.
    """
    words = sys.argv[1:] if argv is None else argv
    described = parser()
    if not words:
        described.print_help()
        return 0
    arguments = described.parse_args([guarded(word) for word in words])
    try:
        status: int | None = arguments.run(arguments)
    except (
        ValueError,
        TypeError,
        IndexError,
        OSError,
        RuntimeError,
        MemoryError,
        ImportError,
        EOFError,
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"wgslice: error: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("wgslice: interrupted", file=sys.stderr)
        return 130
    return status or 0


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="wgslice", description="Slice tensors on any GPU.")
    top.add_argument("--version", action="version", version=f"wgslice {wg.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return top


def guarded(word: str) -> str:
    """Put an index that begins with a minus sign in parentheses, or argparse would take it for an option."""
    return f"({word})" if re.fullmatch(r"-\d+\s*([:,].*)?", word) else word
