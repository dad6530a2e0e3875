"""`wgslice doctor`: whether an adapter is right and how fast it is, to paste into an issue."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from wgslice.cli.progress import progress_bar
from wgslice.doctor.report import examine

__all__ = ["add_doctor"]


def add_doctor(commands: Any) -> None:
    """Describe it to the parser."""
    examining = commands.add_parser("doctor", help="test every kernel on an adapter, and say how fast it is")
    examining.add_argument("--adapter", metavar="NAME", help="part of an adapter's name or backend")
    examining.add_argument("--json", action="store_true", help="the report for programs")
    examining.set_defaults(run=show_report)


def show_report(arguments: Namespace) -> int:
    """Print the report; the status is 1 where a kernel is wrong."""
    with progress_bar() as progress:
        report = examine(arguments.adapter, progress)
    print(json.dumps(report.as_json(), indent=1) if arguments.json else report)
    return 0 if report.tested.passed else 1
