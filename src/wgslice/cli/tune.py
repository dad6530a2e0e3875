"""`wgslice tune`: what work costs on an adapter, measured, shown and forgotten."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import Any

import wgslice as wg
from wgslice.cli.progress import progress_bar
from wgslice.gpu.adapter import Adapter, choose_adapter
from wgslice.gpu.limits import profile_for
from wgslice.kept_costs.record import figures_of
from wgslice.kept_costs.store import VARIABLE, find, folder, forget, say
from wgslice.kept_costs.subject import Subject
from wgslice.tuning.table import described, table

__all__ = ["add_tune"]


def add_tune(commands: Any) -> None:
    """Describe it to the parser."""
    tuning = commands.add_parser("tune", help="measure an adapter, and plan by its own figures")
    tuning.add_argument("--adapter", metavar="NAME", help="part of an adapter's name or backend")
    instead = tuning.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="show what devices go by")
    instead.add_argument("--forget", action="store_true", help="remove what was measured")
    tuning.add_argument("--json", action="store_true", help="the same for programs")
    tuning.set_defaults(run=tune)


def tune(arguments: Namespace) -> int:
    """`wgslice tune`: measure, unless something else is asked for."""
    if arguments.forget:
        return forget_figures(arguments)
    if arguments.show:
        return show_figures(arguments)
    folder()  # there is one, or nothing is measured in vain
    device = wg.Device.request(arguments.adapter) if arguments.adapter is not None else wg.default_device()
    with progress_bar() as progress:
        tuning = wg.tune(device, progress=progress)
    print(json.dumps(tuning.as_json(), indent=1) if arguments.json else tuning)
    if VARIABLE in os.environ:
        say(f"{VARIABLE}={os.environ[VARIABLE]} is set, so devices do not look at what was kept")
    return 0 if tuning.path else 1


def show_figures(arguments: Namespace) -> int:
    """`wgslice tune --show`: what was measured, or is shipped."""
    adapter = chosen(arguments.adapter)
    kept = find(adapter.name, adapter.backend, adapter.driver)
    if kept is None:
        costs = profile_for(adapter).costs
        content = {"path": None, "origin": costs.origin, "costs": figures_of(costs)}
        text = f"{adapter}: {costs.origin}; `wgslice tune` measures it\n\n{table(costs)}"
    else:
        content = {"path": str(kept.path), "origin": kept.record.costs.origin, **kept.record.as_json()}
        text = described(*kept)
    print(json.dumps(content, indent=1) if arguments.json else text)
    return 0


def forget_figures(arguments: Namespace) -> int:
    """`wgslice tune --forget`: remove files, and say which."""
    subject = None
    if arguments.adapter is not None:
        adapter = chosen(arguments.adapter)
        subject = Subject.here(adapter.name, adapter.backend, adapter.driver)
    paths = [str(path) for path in forget(subject)]
    if arguments.json:
        print(json.dumps({"forgotten": paths}, indent=1))
    else:
        print("\n".join(f"forgotten: {path}" for path in paths) or "nothing was kept")
    return 0


def chosen(name: str | None) -> Adapter:
    """The adapter of a name, or else the default one."""
    return choose_adapter(wg.adapters(), os.environ.get("WGSLICE_ADAPTER") if name is None else name)
