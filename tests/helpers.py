"""Buffers with known bytes, and what NumPy says a copy does to them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.profiles import CostClass

ROOT = Path(__file__).parents[1]

Bytes = NDArray[np.uint8]

STORAGE, COPY_SRC, COPY_DST = 0x80, 0x4, 0x8
WIDTHS = (1, 2, 4, 8, 16)
DTYPES = {1: "int8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}  # one of each width
LARGE_PACKAGES = ["onnxruntime", "pygfx", "torch", "xarray"]  # of `run test --all` only; markers by name
GUARD = 64  # bytes around each output that must not change

# Constants on which buffer copies take a second each, as no machine has them.
MEASURED = {
    "submission_s": 1e-4,
    "dispatch_s": 2e-4,
    "copy_s": 1.0,
    "copy_bytes_per_s": 1e15,
    "shader_bytes_per_s": 3e9,
}
FACTORS = {CostClass.parsed("slice1 4"): 0.25, CostClass.parsed("subword_rows 1 contiguous"): 4.0}


# The adapters to test on: all that WGSLICE_TEST_ADAPTERS names, or else the best of the machine.
named = os.environ.get("WGSLICE_TEST_ADAPTERS", "").split(";")
ADAPTERS = [name.strip() for name in named if name.strip()] or [""]


def adapter_id(name: str) -> str:
    """The name of an adapter in a test's id."""
    return name or "best"


# For a test whose fixture `device` need not be each of them, since nothing in it depends on the adapter.
on_one_adapter = pytest.mark.parametrize("device", ADAPTERS[:1], indirect=True, ids=adapter_id)


def load_bootstrap() -> Any:
    """The script `run` as a module."""
    loader = SourceFileLoader("run_script", str(ROOT / "run"))
    spec = spec_from_loader("run_script", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def in_default_tier() -> bool:
    """Whether tests run in the default tier, by its number of examples."""
    return settings().max_examples <= 15


def default_tier(values: Sequence[Any], ids: Sequence[str], count: int) -> list[Any]:
    """Parameters of which only the first ones run in the default tier, and in CI on every adapter."""
    marks = [pytest.mark.slow, pytest.mark.first_adapter]
    return [
        pytest.param(value, id=name, marks=() if number < count else marks)
        for number, (value, name) in enumerate(zip(values, ids, strict=True))
    ]


class Window(NamedTuple):
    """A Slice1 window as a test writes it."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    output_sizes: tuple[int, ...]


def random_bytes(nbytes: int, seed: int = 0) -> Bytes:
    """Every bit pattern: NaN payloads, denormals, negative zeros."""
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def random_array(shape: Sequence[int], dtype: Any, seed: int = 0) -> Any:
    """Any bits of a dtype; bool has two values only."""
    element = np.dtype(dtype)
    raw = random_bytes(int(np.prod(shape, dtype=int)) * element.itemsize, seed)
    return (raw & 1 if element.kind == "b" else raw).view(element).reshape(shape)


def unread(shape: Sequence[int], dtype: Any = np.float32) -> Any:
    """A tensor without a device, which would fail if it were read."""
    nothing: Any = None
    return wg.Tensor(nothing, nothing, np.dtype(dtype), Layout.packed(shape))


def whole_words(nbytes: int) -> int:
    return -(-nbytes // 4) * 4


def view_bytes(buffer: Bytes, layout: Layout, width: int) -> NDArray[np.void]:
    """NumPy's view of a layout of elements that are nothing but bits."""
    strides = [stride * width for stride in layout.strides]
    return np.ndarray(layout.sizes, f"V{width}", buffer.data, layout.offset * width, strides)


def view_of(array: Any, key: Any) -> Any:
    """The elements that a key selects, an array even where NumPy returns a scalar."""
    items = key if isinstance(key, tuple) else (key,)
    return array[items] if any(item is Ellipsis for item in items) else array[(*items, ...)]


def numpy_window(array: NDArray[Any], window: Window) -> NDArray[Any]:
    """The window in NumPy's words: cut it out, walk it, and keep the first elements."""
    for axis, (offset, size, stride, count) in enumerate(zip(*window, strict=True)):
        array = np.moveaxis(np.moveaxis(array, axis, 0)[offset : offset + size][::stride][:count], 0, axis)
    return array


def copied(source: Bytes, source_layout: Layout, target: Bytes, target_layout: Layout, width: int) -> Bytes:
    """A copy of all of `target` after NumPy copied one layout into the other."""
    result = target.copy()
    view_bytes(result, target_layout, width)[...] = view_bytes(source, source_layout, width)
    return result


def make_buffer(device: wg.Device, content: Bytes, usage: int = STORAGE | COPY_SRC | COPY_DST) -> Any:
    """A buffer of the caller's own."""
    return device.wgpu_device.create_buffer_with_data(data=content, usage=usage)


def record(device: wg.Device, operator: wg.CompiledOperator, **bindings: Any) -> None:
    """Record an operator on the caller's buffers, and submit it."""
    encoder = device.wgpu_device.create_command_encoder()
    operator.record(encoder, **bindings)
    device.wgpu_device.queue.submit([encoder.finish()])


def read_buffer(buffer: Any) -> Bytes:
    """All bytes of a buffer, also of one that cannot be copied from."""
    return wg.from_buffer(buffer, buffer.size, np.uint8).numpy()


def bits(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def check_same(ours: NDArray[Any], numpys: NDArray[Any]) -> None:
    """Same shape, same dtype, same bits."""
    assert ours.shape == numpys.shape
    assert ours.dtype == numpys.dtype
    assert bits(ours) == bits(numpys)


def check_bytes(ours: Bytes, expected: Bytes) -> None:
    """Same bytes; says where the first differs."""
    assert ours.size == expected.size
    different = np.flatnonzero(ours != expected)
    assert different.size == 0, f"{different.size} bytes differ, first at {different[0]} of {ours.size}"


def check_refused(
    call: Callable[..., Any],
    arguments: Mapping[str, Any],
    made: Mapping[str, Callable[[], Any]],
    error: type[Exception],
    message: str,
    written: Any,
) -> None:
    """A call raises, its name first, and leaves a buffer as it is; arguments may name what is made first."""
    before = read_buffer(written)
    given = {
        name: made[value]() if isinstance(value, str) and value in made else value
        for name, value in arguments.items()
    }
    with pytest.raises(error, match=f"^{call.__name__}: .*{message}"):
        call(**given)
    check_bytes(read_buffer(written), before)


def all_windows(size: int) -> Iterable[Window]:
    """Every 1-D window, stride and output size of a tensor of `size` elements."""
    for offset in range(size):
        for extent in range(1, size - offset + 1):
            for stride in [s for s in range(-extent - 1, extent + 2) if s]:
                for count in range(1, 2 + (extent - 1) // abs(stride)):
                    yield Window((offset,), (extent,), (stride,), (count,))


def elements_of(layout: Layout) -> NDArray[np.int64]:
    """The place of each index, by the definition of a layout."""
    indices = np.indices(layout.sizes).reshape(layout.rank, -1) if layout.rank else np.zeros((0, 1), int)
    places: NDArray[np.int64] = layout.offset + np.asarray(layout.strides, int) @ indices
    return places


def packed_strides(sizes: Sequence[int]) -> list[int]:
    return [int(np.prod(sizes[axis + 1 :], dtype=int)) for axis in range(len(sizes))]


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """Do work in threads at once, each with its number, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_python(
    code: str, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
