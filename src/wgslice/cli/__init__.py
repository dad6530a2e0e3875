"""The command line `wgslice`: how it is parsed, its commands, and one line for every refusal."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wgslice as wg
from wgslice.calibration.measure import constants_of
from wgslice.calibration.store import VARIABLE, Machine, folder, forget, say
from wgslice.calibration.tune import calibrated_profile, described, kept_record
from wgslice.cli.progress import progress_bar
from wgslice.cli.slice import slice_file
from wgslice.doctor.report import examine
from wgslice.gpu.adapter import Adapter, choose_adapter
from wgslice.plans.kernels import Kernel
from wgslice.shaders import entry_point, kernel_module

__all__ = ["main"]

REFUSALS = ValueError, TypeError, IndexError, OSError, RuntimeError, MemoryError, ImportError, EOFError


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
    except REFUSALS as error:
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

    def command(name: str, run: Any, help: str) -> argparse.ArgumentParser:
        described = commands.add_parser(name, help=help)
        described.set_defaults(run=run)
        return described

    adapter: dict[str, Any] = {"metavar": "NAME", "help": "part of an adapter's name or backend"}
    command("adapters", list_adapters, "list what this machine has; * is the default")
    slicing = command("slice", slice_file, "slice an array or image as NumPy does, of any size")
    slicing.add_argument("input", metavar="IN", type=Path, help="a .npy file, a Zarr array or an image")
    slicing.add_argument("key", metavar="KEY", help='a NumPy index, such as "100:200, ::-1"')
    slicing.add_argument(
        "-o", "--output", metavar="OUT", type=Path, required=True, help=".npy, .zarr or an image"
    )
    slicing.add_argument("--limit", metavar="SIZE", default="256 MiB", help="memory to take at most; 256 MiB")
    slicing.add_argument("--chunks", metavar="A,B,C", help="of OUT, where it is a .zarr")
    slicing.add_argument("--adapter", **adapter)
    names = [kernel.value for kernel in Kernel]
    printing = command("kernel", print_kernel, "print a kernel: complete WGSL, for any host of WebGPU")
    printing.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    examining = command("doctor", show_report, "test every kernel on an adapter, and say how fast it is")
    examining.add_argument("--adapter", **adapter)
    examining.add_argument("--json", action="store_true", help="the report for programs")
    tuning = command("tune", tune, "measure an adapter, and scale its cost model to that")
    tuning.add_argument("--adapter", **adapter)
    instead = tuning.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="show the constants that devices plan by")
    instead.add_argument("--forget", action="store_true", help="remove what was measured")
    tuning.add_argument("--json", action="store_true", help="the same for programs")
    return top


def guarded(word: str) -> str:
    """Put an index that begins with a minus sign in parentheses, or argparse would take it for an option."""
    return f"({word})" if re.fullmatch(r"-\d+\s*([:,].*)?", word) else word


def list_adapters(_: object) -> None:
    """`wgslice adapters`: a line each."""
    adapters = wg.adapters()
    default = choose_adapter(adapters, os.environ.get("WGSLICE_ADAPTER"))
    for adapter in adapters:
        mark = "*" if adapter is default else " "
        print(f"{mark} {adapter}, {adapter.kind}{', software' * adapter.software}, {adapter.driver}")


def print_kernel(arguments: Namespace) -> None:
    """`wgslice kernel`: the module that runs, and what a host gives it."""
    kernel = Kernel(arguments.name)
    module = kernel_module(kernel)
    constants = re.findall(r"^override (\w+: \w+ = -?\w+;) +// (.*)$", module, re.MULTILINE)
    bindings = re.findall(r"^@group\(0\) @binding\((\d)\) var(<.*> \w+: .*;)", module, re.MULTILINE)
    print(f"// Entry point `{entry_point(kernel)}`.\n//\n// Constants of a pipeline, and their defaults:")
    for declared, meaning in sorted(constants):
        print(f"//   {declared.rstrip(';'):30}  {meaning}")
    print("//\n// Bindings of group 0:")
    for number, declared in sorted(bindings):
        print(f"//   {number}  {declared.rstrip(';')}")
    print(f"\n{module}", end="")


def show_report(arguments: Namespace) -> int:
    """Print the report; the status is 1 where a kernel is wrong."""
    with progress_bar() as progress:
        report = examine(arguments.adapter, progress)
    print(json.dumps(report.as_json(), indent=1) if arguments.json else report)
    return 0 if report.tested.passed else 1


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
