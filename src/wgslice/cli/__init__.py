"""The command line `wgslice`: its parser, its commands, and one line on stderr per error."""

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
from wgslice.calibration.store import VARIABLE, Machine, find, folder, forget, say
from wgslice.calibration.tune import calibrated_profile, cost_table, summary
from wgslice.cli.export import add_arguments, export
from wgslice.cli.progress import progress_bar
from wgslice.cli.slice import slice_file
from wgslice.doctor.report import examine
from wgslice.gpu.adapter import Adapter, find_adapter
from wgslice.gpu.device import checked_device
from wgslice.gpu.pipelines import fewest_checks
from wgslice.plans.kernels import Kernel
from wgslice.shaders import entry_point, kernel_module

__all__ = ["main"]

REFUSALS = ValueError, TypeError, IndexError, OSError, RuntimeError, MemoryError, ImportError, EOFError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    0 on success, 1 on an error or a failed kernel, 2 on wrong usage, 130 on Ctrl-C.
    """
    words = sys.argv[1:] if argv is None else argv
    top = parser()
    if not words:
        top.print_help()
        return 0
    arguments = top.parse_args([guarded(word) for word in words])
    try:
        status: int | None = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # such as head has read enough; Python flushes again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except REFUSALS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"wgslice: error: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("wgslice: interrupted", file=sys.stderr)
        return 130
    return status or 0


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    top = argparse.ArgumentParser(prog="wgslice", description="Slice tensors on any GPU.")
    top.add_argument("--version", action="version", version=f"wgslice {wg.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, help: str, more: str = "") -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}{more}.")
        added.set_defaults(run=run)
        return added

    adapter: dict[str, Any] = {"metavar": "NAME", "help": "part of an adapter's name or backend"}
    command("adapters", list_adapters, "list the adapters of this machine; * is the default")
    slicing = command(
        "slice",
        slice_file,
        "slice an array or image file of any size as NumPy does",
        ', for example: wgslice slice volume.npy "100:200, ::-1" -o part.npy',
    )
    slicing.add_argument("input", metavar="IN", type=Path, help="a .npy file, a Zarr array or an image")
    slicing.add_argument("key", metavar="KEY", help='a NumPy index, such as "100:200, ::-1"')
    slicing.add_argument(
        "-o", "--output", metavar="OUT", type=Path, required=True, help=".npy, .zarr or an image"
    )
    slicing.add_argument(
        "--limit", metavar="SIZE", default="256 MiB", help="maximum memory in use; default 256 MiB"
    )
    slicing.add_argument("--chunks", metavar="A,B,C", help="chunk sizes of OUT, if it is a .zarr")
    slicing.add_argument("--adapter", **adapter)
    example = ', for example: wgslice export 480,640,4 uint8 "::2, ::-2" -o halved'
    add_arguments(command("export", export_slice, "save a slice as a program for any WebGPU host", example))
    names = [kernel.value for kernel in Kernel]
    printing = command("kernel", print_kernel, "print a kernel as complete WGSL, for any WebGPU host")
    printing.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    examining = command(
        "doctor",
        show_report,
        "test every kernel on an adapter, and measure its speed",
        "; the exit status is 1 if a kernel is wrong",
    )
    examining.add_argument("--adapter", **adapter)
    examining.add_argument("--json", action="store_true", help="print the report as JSON")
    tuning = command("tune", tune, "measure an adapter, so that plans choose the fastest kernels on it")
    tuning.add_argument("--adapter", **adapter)
    instead = tuning.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="show the cost model in use; measure nothing")
    instead.add_argument(
        "--forget", action="store_true", help="remove all measurements, or those of --adapter"
    )
    form = tuning.add_mutually_exclusive_group()
    form.add_argument("--table", action="store_true", help="print each cost parameter, with its meaning")
    form.add_argument("--json", action="store_true", help="print the result as JSON")
    return top


def guarded(word: str) -> str:
    """Put an index that begins with a minus sign in parentheses, so that argparse reads no option."""
    return f"({word})" if re.fullmatch(r"-\d+\s*([:,].*)?", word) else word


def list_adapters(_: object) -> None:
    """`wgslice adapters`: print one line per adapter."""
    adapters = wg.adapters()
    default = find_adapter(os.environ.get("WGSLICE_ADAPTER"))
    for adapter in adapters:
        mark = "*" if adapter.handle is default.handle else " "
        print(f"{mark} {adapter}, {adapter.kind}{', software' * adapter.software}, {adapter.driver}")


def export_slice(arguments: Namespace) -> None:
    """`wgslice export`: save a slice as a program."""
    export(arguments, chosen(arguments.adapter))


def print_kernel(arguments: Namespace) -> None:
    """`wgslice kernel`: print a kernel's module, with its entry point, constants and bindings."""
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
    """`wgslice doctor`: print the report; the status is 1 if a kernel failed."""
    with progress_bar(lines=True) as progress:
        report = examine(arguments.adapter, progress)
    show(arguments, report.as_json(), report)
    return 0 if report.tested.passed else 1


def tune(arguments: Namespace) -> int:
    """`wgslice tune`: measure, unless --show or --forget is given."""
    if arguments.forget or arguments.show:
        (forget_constants if arguments.forget else show_constants)(arguments)
        return 0
    folder()  # raises before the measurement if its result cannot be stored
    device = checked_device(arguments.adapter)
    with progress_bar() as progress:
        tuning = wg.tune(device, progress=progress)
        if fewest_checks(device.adapter) < device.pipelines.checks:
            wg.selftest(device, progress=progress)  # decides whether kernels run without checks on this GPU
    show(arguments, tuning.as_json(), summary(device.adapter, tuning.record, table=arguments.table))
    if VARIABLE in os.environ:
        say(f"{VARIABLE}={os.environ[VARIABLE]} is set, so new devices do not load this measurement")
    return 0 if tuning.path else 1


def show_constants(arguments: Namespace) -> None:
    """`wgslice tune --show`: print the measured cost model, or the shipped one."""
    adapter = chosen(arguments.adapter)
    record = find(Machine.of(adapter))
    profile = calibrated_profile(adapter, record)
    content: dict[str, Any] = {"path": None, "origin": profile.costs.origin}
    if record is None:
        content["constants"] = constants_of(profile)
        text = f"{adapter}: {profile.costs.origin}; `wgslice tune` measures it"
        text += f"\n\n{cost_table(adapter, None)}" * arguments.table
    else:
        content |= {"path": record.path and str(record.path), **record.as_json()}
        text = summary(adapter, record, table=arguments.table)
    show(arguments, content, text)


def forget_constants(arguments: Namespace) -> None:
    """`wgslice tune --forget`: remove stored measurements, and print their files."""
    machine = None if arguments.adapter is None else Machine.of(chosen(arguments.adapter))
    paths = [str(path) for path in forget(machine)]
    removed = "\n".join(f"removed: {path}" for path in paths)
    show(arguments, {"forgotten": paths}, removed or "nothing was stored")


def show(arguments: Namespace, content: dict[str, Any], text: object) -> None:
    """Print a result as JSON or as text."""
    print(json.dumps(content, indent=1) if arguments.json else text)


def chosen(name: str | None) -> Adapter:
    """Return the adapter of a name, or the default one."""
    return find_adapter(os.environ.get("WGSLICE_ADAPTER") if name is None else name)
