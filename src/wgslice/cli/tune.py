"""`wgslice tune`: measure the constants of an adapter, show or forget them."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import Any

import wgslice as wg
from wgslice.calibration.measure import constants_of
from wgslice.calibration.store import VARIABLE, Machine, folder, forget, say
from wgslice.calibration.tune import calibrated_profile, described, kept_record
from wgslice.cli.progress import progress_bar
from wgslice.gpu.adapter import Adapter, choose_adapter

__all__ = ["add_tune"]


def add_tune(commands: Any) -> None:
    """Describe it to the parser."""
    tuning = commands.add_parser("tune", help="measure an adapter, and scale its cost model to that")
    tuning.add_argument("--adapter", metavar="NAME", help="part of an adapter's name or backend")
    instead = tuning.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="show the constants that devices plan by")
    instead.add_argument("--forget", action="store_true", help="remove what was measured")
    tuning.add_argument("--json", action="store_true", help="the same for programs")
    tuning.set_defaults(run=tune)


def tune(arguments: Namespace) -> int:
    """`wgslice tune`: measure, unless something else is asked for."""
    if arguments.forget:
        return forget_constants(arguments)
    if arguments.show:
        return show_constants(arguments)
    folder()  # there is one, or nothing is measured in vain
    device = wg.Device.request(arguments.adapter) if arguments.adapter is not None else wg.default_device()
    with progress_bar() as progress:
        tuning = wg.tune(device, progress=progress)
    print(json.dumps(tuning.as_json(), indent=1) if arguments.json else tuning)
    if VARIABLE in os.environ:
        say(f"{VARIABLE}={os.environ[VARIABLE]} is set, so devices do not look at what was kept")
    return 0 if tuning.path else 1


def show_constants(arguments: Namespace) -> int:
    """`wgslice tune --show`: print what was measured, or what is shipped."""
    adapter = chosen(arguments.adapter)
    record = kept_record(adapter)
    profile = calibrated_profile(adapter, record)
    origin = profile.costs.origin
    if record is None:
        content: dict[str, Any] = {"path": None, "origin": origin, "constants": constants_of(profile)}
        text = f"{adapter}: {origin}; `wgslice tune` measures it"
    else:
        content = {"path": record.path and str(record.path), "origin": origin, **record.as_json()}
        text = described(adapter, record)
    print(json.dumps(content, indent=1) if arguments.json else text)
    return 0


def forget_constants(arguments: Namespace) -> int:
    """`wgslice tune --forget`: remove files, and say which."""
    machine = None if arguments.adapter is None else Machine.of(chosen(arguments.adapter))
    paths = [str(path) for path in forget(machine)]
    if arguments.json:
        print(json.dumps({"forgotten": paths}, indent=1))
    else:
        print("\n".join(f"forgotten: {path}" for path in paths) or "nothing was kept")
    return 0


def chosen(name: str | None) -> Adapter:
    """The adapter of a name, or else the default one."""
    return choose_adapter(wg.adapters(), os.environ.get("WGSLICE_ADAPTER") if name is None else name)
