"""Slice1 through the public interface, bit for bit against NumPy, every byte of the output buffer."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers import (
    DTYPES,
    GUARD,
    WIDTHS,
    all_windows,
    check_bytes,
    check_refused,
    check_same,
    copied,
    make_buffer,
    numpy_window,
    random_bytes,
    read_buffer,
    view_bytes,
    whole_words,
)
from hypothesis import given
from planning import preferring
from running import Limit
from strategies import Case, cases

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel

pytestmark = pytest.mark.every_adapter

ALL_DTYPES = [
    *("float32", "float16", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
    *("float64", "int64", "uint64", "bool", "complex64", "complex128"),
    *("datetime64[ns]", "timedelta64[us]"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
]
EXAMPLE: dict[str, Any] = {"offsets": (0, 0, 0, 1), "sizes": (1, 1, 4, 3)}
EXAMPLES = [((1, 1, 2, 2), [[2, 4], [10, 12]]), ((1, 1, -2, 2), [[14, 16], [6, 8]])]


@pytest.mark.parametrize(("strides", "expected"), EXAMPLES)
def test_the_worked_examples(device: wg.Device, strides: tuple[int, ...], expected: list[list[int]]) -> None:
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    result = np.array([[expected]], np.float32)
    check_same(wg.slice1(wg.asarray(x, device=device), **EXAMPLE, strides=strides).numpy(), result)
    operator = device.compile(
        wg.Slice1(
            input=wg.TensorDesc("float32", (1, 1, 4, 4)),
            output=wg.TensorDesc("float32", (1, 1, 2, 2)),
            strides=strides,
            **EXAMPLE,
        )
    )
    check_same(operator(wg.asarray(x, device=device)).numpy(), result)


@given(case=cases())
def test_any_slice1_on_tensors_writes_its_elements_alone(device: wg.Device, case: Case) -> None:
    dtype, width = DTYPES[case.width], case.width
    source = random_bytes(whole_words(case.input.stop * width), case.seed)
    target = random_bytes(whole_words(case.output.stop * width) + GUARD, case.seed + 1)
    x = wg.from_buffer(
        make_buffer(device, source),
        case.input.sizes,
        dtype,
        offset=case.input.offset * width,
        strides=case.input.strides,
    )
    backwards = [-stride for stride in case.output.strides]  # an output may run backwards too
    target_layout = Layout.of(case.output.sizes, backwards, case.output.stop - 1)
    output = make_buffer(device, target)
    out = wg.from_buffer(
        output, target_layout.sizes, dtype, offset=target_layout.offset * width, strides=backwards
    )
    window, output_sizes = case.window[:3], case.window.output_sizes
    assert wg.slice1(x, *window, output_sizes=output_sizes, out=out) is out
    check_bytes(read_buffer(output), copied(source, case.source, target, target_layout, width))
    fresh = wg.slice1(x, *window, output_sizes=output_sizes)
    assert fresh.is_packed
    assert fresh.buffer is not x.buffer
    check_same(
        fresh.numpy(),
        np.ascontiguousarray(view_bytes(source, case.source, width)).view(dtype).reshape(output_sizes),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_every_window_of_a_short_vector(device: wg.Device, width: int) -> None:
    """All of them recorded into one encoder, side by side in one poisoned output buffer."""
    encoder = device.wgpu_device.create_command_encoder()
    sources = {size: random_bytes(whole_words((size + 3) * width), size) for size in range(1, 6)}
    inputs = {size: make_buffer(device, content) for size, content in sources.items()}
    windows = [(size, window) for size in sources for window in all_windows(size)]
    count = sum(window.output_sizes[0] + 1 for _, window in windows)
    expected = random_bytes(whole_words((count + 1) * width), 99)
    output = make_buffer(device, expected)
    position = 1
    for number, (size, window) in enumerate(windows):
        shift = number % 4
        operator = device.compile(
            wg.Slice1(
                wg.TensorDesc(DTYPES[width], (size,)),
                wg.TensorDesc(DTYPES[width], window.output_sizes),
                *window[:3],
            )
        )
        operator.record(encoder, input=(inputs[size], shift * width), output=(output, position * width))
        vector = view_bytes(sources[size], Layout.packed((size,), shift), width)
        view_bytes(expected, Layout.packed(window.output_sizes, position), width)[...] = numpy_window(
            vector, window
        )
        position += window.output_sizes[0] + 1
    device.wgpu_device.queue.submit([encoder.finish()])
    check_bytes(read_buffer(output), expected)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_dtype_at_every_rank(device: wg.Device, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    for rank in range(1, 9):
        sizes = (3, 2, 4, 1, 2, 3, 2, 5)[-rank:]
        x = random_bytes(int(np.prod(sizes)) * dtype.itemsize, rank).view(dtype).reshape(sizes)
        strides = tuple(itertools.islice(itertools.cycle([-2, 1, -1, 3]), rank))
        expected = x[tuple(slice(None, None, stride) for stride in strides)]
        result = wg.slice1(wg.asarray(x, device=device), (0,) * rank, sizes, strides)
        assert result.dtype == dtype
        check_same(result.numpy(), np.ascontiguousarray(expected))


def test_signalling_nans_denormals_and_negative_zeros_survive(device: wg.Device) -> None:
    patterns = np.array(
        [0x7F800001, 0xFFBFFFFF, 0x7FC12345, 0x00000001, 0x807FFFFF, 0x80000000, 0x3F800000], np.uint32
    )
    x = wg.asarray(patterns.view(np.float32), device=device)
    result = wg.slice1(x, [0], [7], [-2]).numpy()
    assert result.view(np.uint32).tolist() == patterns[::-2].tolist()


def test_fewer_outputs_than_the_window_allows(device: wg.Device) -> None:
    x = wg.asarray(np.arange(10, dtype=np.int16), device=device)
    assert wg.slice1(x, [2], [6], [-2]).numpy().tolist() == [7, 5, 3]
    assert wg.slice1(x, [2], [6], [-2], output_sizes=[2]).numpy().tolist() == [7, 5]
    out = wg.empty(1, np.int16, device=device)
    assert wg.slice1(x, [2], [6], [-2], output_sizes=[1], out=out).numpy().tolist() == [7]


def test_a_stride_beyond_the_window_selects_one_element(device: wg.Device) -> None:
    x = wg.asarray(np.arange(10, dtype=np.uint8), device=device)
    assert wg.slice1(x, [2], [3], [2**31 - 1]).numpy().tolist() == [2]
    assert wg.slice1(x, [2], [3], [-(2**31)]).numpy().tolist() == [4]


def test_a_padded_output_is_made_as_described(device: wg.Device) -> None:
    x = np.arange(12, dtype=np.uint8).reshape(3, 4)
    operator = device.compile(
        wg.Slice1(
            wg.TensorDesc("uint8", (3, 4)), wg.TensorDesc("uint8", (3, 2), (5, 1)), (0, 1), (3, 2), (-1, 1)
        )
    )
    y = operator(wg.asarray(x, device=device))
    assert y.strides == (5, 1)
    check_same(y.numpy(), np.ascontiguousarray(x[::-1, 1:3]))


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"offsets": (0, 5)}, wg.WindowError, r"offsets\[1\] \+ sizes\[1\] = 5 \+ 6 = 11"),
    ({"strides": (0, 1)}, wg.WindowError, r"strides\[0\] = 0"),
    ({"sizes": (0, 6)}, wg.WindowError, r"sizes\[0\] = 0"),
    ({"output_sizes": (5, 6)}, wg.WindowError, r"output sizes\[0\] = 5: must be 1 to 4"),
    ({"output_sizes": (0, 6)}, wg.WindowError, r"output sizes\[0\] = 0"),
    ({"output_sizes": (4,)}, wg.WindowError, "rank 1"),
    ({"output_sizes": (4.0, 6)}, TypeError, r"output_sizes\[0\] = 4.0"),
    ({"output_sizes": (3, 6)}, ValueError, r"out has sizes \(4, 6\): must be \(3, 6\)"),
    ({"offsets": (0,), "sizes": (1,)}, wg.WindowError, "rank 1 on an input of rank 2"),
    ({"x": np.zeros((4, 6))}, TypeError, "x is of type ndarray: must be a Tensor"),
    ({"out": np.zeros((4, 6))}, TypeError, "out is of type ndarray"),
    ({"out": "int32"}, TypeError, "output has dtype int32, the input float32"),
    ({"out": "5 x 6"}, ValueError, r"out has sizes \(5, 6\): must be \(4, 6\); output_sizes copies fewer"),
    ({"out": "3 x 6"}, ValueError, r"out has sizes \(3, 6\): must be \(4, 6\); output_sizes copies fewer"),
    ({"out": "broadcast"}, ValueError, "two elements share bytes"),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED)
def test_a_refused_call_touches_no_output(
    device: wg.Device, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    x = wg.asarray(np.arange(24, dtype=np.float32).reshape(4, 6), device=device)
    buffer = make_buffer(device, random_bytes(5 * 6 * 4, 3))
    outs: dict[str, Any] = {
        "int32": lambda: wg.from_buffer(buffer, (4, 6), np.int32),
        "broadcast": lambda: wg.from_buffer(buffer, (4, 6), np.float32, strides=(0, 1)),
        "5 x 6": lambda: wg.from_buffer(buffer, (5, 6), np.float32),
        "3 x 6": lambda: wg.from_buffer(buffer, (3, 6), np.float32),
        "fits": lambda: wg.from_buffer(buffer, (4, 6), np.float32),
    }
    arguments = {"x": x, "offsets": (0, 0), "sizes": (4, 6), "out": "fits", **changes}
    check_refused(wg.slice1, arguments, outs, error, message, buffer)
    assert x.numpy().tolist() == np.arange(24).reshape(4, 6).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_more_bytes_than_a_binding(device: wg.Device, limit: Limit, dtype: Any) -> None:
    """Both sides beyond the binding that WebGPU promises, unaligned and reversed."""
    binding_nbytes = min(device.limits.binding_nbytes, 2**27)
    profile = preferring(device.limits.profile, Kernel.SHIFTED_ROWS)
    limit(binding_nbytes=binding_nbytes, profile=profile)
    rows = binding_nbytes // np.dtype(dtype).itemsize // 4096 + 3
    x = np.arange(rows * 4099, dtype=np.uint32).astype(dtype).reshape(rows, 4099)
    window = (1, 1), (rows - 1, 4098), (-1, 1)
    y = wg.slice1(wg.asarray(x, device=device), *window)
    assert np.array_equal(y.numpy(), x[:0:-1, 1:])
    described = wg.TensorDesc(dtype, x.shape), wg.TensorDesc(dtype, y.shape)
    assert len(device.compile(wg.Slice1(*described, *window)).plan.steps) > 1


def test_what_no_buffer_holds_is_refused_at_compile(device: wg.Device) -> None:
    small = wg.TensorDesc("uint8", (1,))
    huge = wg.TensorDesc("uint8", (2**32 - 1,), (2**31,))
    wide = wg.TensorDesc("uint8", (2**32 - 1,), (0,))
    with pytest.raises(
        ValueError, match=r"Slice1: input sizes .* need \d+ bytes: a buffer of .* has at most"
    ):
        device.compile(wg.Slice1(huge, small, (0,), (1,)))
    with pytest.raises(ValueError, match="Slice1: output sizes"):
        device.compile(wg.Slice1(wide, huge, (0,), (2**32 - 1,)))
