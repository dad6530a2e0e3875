"""Saves the programs of the page that slices a picture in a browser: `python docs/try/programs.py FOLDER`."""

import inspect
import json
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

import wgslice as wg
from wgslice.plans.profiles import Limits

PICTURE = (480, 640, 4)  # rows, columns, and red, green, blue and alpha of 8 bits
WINDOW = (240, 320, 4)


def cut(picture, offsets, output):
    """Copy the window."""
    wg.extract_windows(picture, offsets, WINDOW, outside="clamp", out=output[None])


def flip(picture, offsets, output):
    """Copy the window with its columns reversed."""
    wg.extract_windows(picture, offsets, WINDOW, (1, -1, 1), outside="clamp", out=output[None])


def step(picture, offsets, output):
    """Copy every second row and column of the window."""
    wg.extract_windows(picture, offsets, WINDOW, (2, 2, 1), outside="clamp", out=output[None])


def transpose(picture, offsets, output):
    """Copy the window with rows and columns exchanged."""
    window = wg.extract_windows(picture, offsets, WINDOW, outside="clamp")[0]
    output[...] = window.transpose(1, 0, 2)


def swap_channels(picture, offsets, output):
    """Copy the window with red and blue exchanged."""
    window = wg.extract_windows(picture, offsets, WINDOW, outside="clamp")[0]
    np.take(window, [2, 1, 0, 3], axis=-1, out=output)


# Each function, what NumPy would write, and the shape of the output.
OPERATIONS = [
    (cut, "window", WINDOW),
    (flip, "window[:, ::-1]", WINDOW),
    (step, "window[::2, ::2]", (120, 160, 4)),
    (transpose, "window.transpose(1, 0, 2)", (320, 240, 4)),
    (swap_channels, "window[..., [2, 1, 0, 3]]", WINDOW),
]


def save(folder: Path) -> None:
    """Save the program of each operation, a list of the operations as the page shows them, and the runner."""
    device = wg.Device.request()
    device.update_limits(lambda _: Limits())  # plans for every WebGPU device, as `wgslice export` makes them
    picture = wg.zeros(PICTURE, np.uint8, device=device)
    offsets = wg.zeros((1, 3), np.int32, device=device)
    operations = []
    folder.mkdir(parents=True, exist_ok=True)
    for function, numpys, shape in OPERATIONS:
        output = wg.zeros(shape, np.uint8, device=device)
        program = wg.capture(function, picture=picture, offsets=offsets, output=output)
        program.save(folder / program.name)
        shown = {"numpy": numpys, "python": inspect.getsource(function), "plan": str(program)}
        operations.append({"name": program.name, **shown})
    (folder / "operations.json").write_text(json.dumps(operations, indent=1), "utf-8")
    runner = files("wgslice.programs") / "program.mjs"
    (folder / "program.js").write_bytes(runner.read_bytes())  # a name that every server has a type for


if __name__ == "__main__":
    save(Path(sys.argv[1]))
