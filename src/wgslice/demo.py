"""Five slices of a photograph on this machine's best adapter, each compared with NumPy bit for bit."""

from __future__ import annotations

import logging
import sys
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from wgslice.whole_files import written_whole

__all__ = ["main"]

Array = NDArray[Any]
SHEET = Path("out") / "wgslice-demo.png"
ROUNDS = 7  # timed runs of each slice; the best is printed


Example = tuple[str, Array, str, Any]  # title, array, NumPy's notation of an index, and the index


def main() -> int:
    """Run the demo; status 1 where a result differs from NumPy's."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # omits messages about its caches
    device = wg.default_device()
    photo = load_photo()
    print(f"adapter     {device.adapter} ({device.adapter.kind}; {device.adapter.driver})")
    print(f"photograph  {photo.shape[1]} x {photo.shape[0]} pixels, 8-bit RGB")
    shown = [("photograph", photo)]
    status = 0
    for example in examples(photo):
        result, is_equal = run_example(device, *example)
        shown.append((example[0], result))
        status |= not is_equal
    print(f"\ncontact sheet: {write_sheet(shown)}")
    return status


def load_photo() -> Array:
    """Matplotlib's sample photograph of Grace Hopper (public domain), cut to an odd width."""
    from matplotlib import cbook, image

    path: Any = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
    pixels: Array = image.imread(path)
    odd_width = pixels.shape[1] - 1 + pixels.shape[1] % 2
    return np.ascontiguousarray(pixels[:, :odd_width])


def examples(photo: Array) -> list[Example]:
    """The five slices."""
    height, width, _ = photo.shape
    floats = photo.astype(np.float32) / np.float32(255)
    last_row, last_column = height - 40, width - 50
    turned = np.s_[last_row:40:-3, last_column:50:-2]
    return [
        ("crop", photo, "x[31:331, 77:378]", np.s_[31:331, 77:378]),
        ("half size", photo, "x[::2, ::2]", np.s_[::2, ::2]),
        ("horizontal flip", photo, "x[:, ::-1]", np.s_[:, ::-1]),
        ("RGB to BGR", photo, "x[..., ::-1]", np.s_[..., ::-1]),
        ("float32 window, turned", floats, f"x[{last_row}:40:-3, {last_column}:50:-2]", turned),
    ]


def run_example(device: wg.Device, title: str, array: Array, code: str, key: Any) -> tuple[Array, bool]:
    """Run and time one slice and print its plan; return its result, and whether that equals NumPy's."""
    view = wg.asarray(array, device=device)[key]
    expected = np.ascontiguousarray(array[key])
    y = view.copy()
    result = y.numpy()
    is_equal = result.tobytes() == expected.tobytes()

    def copy_and_wait() -> None:
        wg.copyto(y, view)
        device.synchronize()

    gpu_ms = best_ms(copy_and_wait)
    numpy_ms = best_ms(lambda: np.copyto(expected, array[key]))
    print(
        f"\n{title}: {code} -> {result.shape} {result.dtype}\n"
        f"  plan    {wg.explain(view).summary}\n"
        f"  time    {gpu_ms:.2f} ms, including the wait; NumPy {numpy_ms:.2f} ms\n"
        f"  result  {'equal to NumPy, bit for bit' if is_equal else 'WRONG: differs from NumPy'}"
    )
    return result, is_equal


def best_ms(run: Callable[[], None]) -> float:
    """The shortest of ROUNDS runs, in milliseconds."""
    return min(timeit.repeat(run, number=1, repeat=ROUNDS)) * 1e3


def write_sheet(panels: Sequence[tuple[str, Array]]) -> Path:
    """Draw six titled pictures into one PNG; returns its absolute path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, picture) in zip(figure.subplots(2, 3).flat, panels, strict=True):
        axes.imshow(picture)
        axes.set_title(f"{title}\n{picture.shape[1]} x {picture.shape[0]}, {picture.dtype}", fontsize=10)
        axes.set_axis_off()
    SHEET.parent.mkdir(exist_ok=True)
    with written_whole(SHEET) as part:
        figure.savefig(part, dpi=110)
    return SHEET.resolve()


if __name__ == "__main__":
    sys.exit(main())
