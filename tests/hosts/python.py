"""`python.py ADAPTER FOLDER` runs the saved programs of a folder, and prints what is wrong as JSON."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg


def wrong_by_python(device: wg.Device, folder: Path) -> dict[str, Any]:
    """Run the programs of a folder; return adapter, driver and what is wrong by program."""
    wrong = {}
    for name in json.loads((folder / "cases.json").read_text("utf-8")):
        try:
            found = difference(device, folder / name)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong[name] = found
    adapter = device.adapter
    return {
        "version": f"wgpu-py {version('wgpu')}",
        "adapter": str(adapter),
        "driver": adapter.driver,
        "wrong": wrong,
    }


def difference(device: wg.Device, folder: Path) -> str:
    """Describe the first tensor of a program that is not as wanted; empty if there is none."""
    program = wg.load_program(folder, device, trusted=True)  # as other hosts run it
    inputs = json.loads((folder / "program.json").read_text("utf-8"))["inputs"]
    arrays = {each["name"]: np.fromfile(folder / f"{each['name']}.in", each["dtype"]) for each in inputs}
    given = {
        each["name"]: wg.asarray(arrays[each["name"]].reshape(each["shape"]), device=device)
        for each in inputs
    }
    results = dict(enumerate(as_arrays(program(**given))))
    for which, array in {**results, **{name: x.numpy() for name, x in given.items()}}.items():
        if array.tobytes() != (folder / f"{which}.want").read_bytes():
            return f"{which}: {array.dtype} {array.shape} has wrong bytes"
    return ""


def as_arrays(result: Any) -> list[NDArray[Any]]:
    """The arrays of a nested result, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for each in result for array in as_arrays(each)]
    return [] if result is None else [np.asarray(result)]


if __name__ == "__main__":
    print(json.dumps(wrong_by_python(wg.Device.request(sys.argv[1]), Path(sys.argv[2]))))
