"""Random public calls of the installed wgslice, by number: `differential.py` runs this file in two versions.

Reads lines of a first number and a count, and prints what each call gives: dtype, shape and digest of every
result and of every tensor that it may have written, or the class of its error. It imports nothing of the
tests, since the other version has its own.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
import wgslice.array_api as xp

Random: TypeAlias = np.random.Generator
Results: TypeAlias = Sequence[Any]  # tensors and arrays

DTYPES = ["u1", "i1", "?", "u2", "f2", "i4", "f4", "u8", "f8", "c8", "c16"]
MAX_ELEMENTS = 4000
TEXELS = {"r8unorm": ("u1", 1), "rgba8uint": ("u1", 4), "rg16float": ("f2", 2), "rgba32float": ("f4", 4)}


# arrays and keys


def array(rng: Random, shape: Sequence[int], dtype: Any = None) -> NDArray[Any]:
    """An array of any bits."""
    kind = np.dtype(dtype or str(rng.choice(DTYPES)))
    data = rng.integers(0, 2 if kind.kind == "b" else 256, prod(shape) * kind.itemsize, dtype=np.uint8)
    return data.view(kind).reshape(shape)


def random_shape(rng: Random, least: int = 0, most: int = 5) -> tuple[int, ...]:
    """A shape of few elements, now and then of none."""
    while True:
        smallest = 0 if rng.random() < 0.05 else 1
        found = tuple(int(n) for n in rng.integers(smallest, 18, rng.integers(least, most + 1)))
        if prod(found) <= MAX_ELEMENTS:
            return found


def a_slice(rng: Random, size: int) -> slice:
    """A slice of either direction, whose ends may be outside."""
    start, stop = (None if rng.random() < 0.4 else int(rng.integers(-size - 2, size + 3)) for _ in range(2))
    return slice(start, stop, int(rng.choice([1, 1, 1, 2, 3, -1, -1, -2, -3])))


def basic(rng: Random, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Slices and integers, with an ellipsis or a new axis now and then."""
    key: list[Any] = [
        a_slice(rng, size) if rng.random() < 0.85 or size == 0 else int(rng.integers(-size, size))
        for size in sizes
    ]
    if key and rng.random() < 0.2:
        key[int(rng.integers(len(key)))] = Ellipsis
    if rng.random() < 0.15:
        key.insert(int(rng.integers(len(key) + 1)), None)
    return tuple(key)


def indices(rng: Random, size: int, count: Any) -> NDArray[Any]:
    """Indices from either end."""
    return rng.integers(-size, size, count) if size else np.zeros(0, int)


def advanced(rng: Random, sizes: Sequence[int]) -> Any:
    """A mask, or a key with one or two lists of indices, a list or a mask of one axis."""
    if not sizes:
        return np.array(rng.random() < 0.5)
    kind, axis = int(rng.integers(5)), int(rng.integers(len(sizes)))
    if kind == 0:
        return rng.random(sizes) < 0.4
    key: list[Any] = [slice(None)] * len(sizes)
    count = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 3)))
    key[axis] = indices(rng, sizes[axis], count)
    if kind == 1 and len(sizes) > 1:
        other = int((axis + 1 + rng.integers(len(sizes) - 1)) % len(sizes))
        key[other] = indices(rng, sizes[other], count)
    if kind == 2 and key[axis].size:
        key[axis] = key[axis].tolist()
    if kind == 3:
        key = [
            each if isinstance(each, np.ndarray) else a_slice(rng, size)
            for each, size in zip(key, sizes, strict=True)
        ]
    if kind == 4:
        key[axis] = rng.random(sizes[axis]) < 0.5
    return tuple(key)


def on_device(rng: Random, key: Any) -> Any:
    """The key, or the key with its arrays on the device."""
    if rng.random() < 0.6:
        return key
    if isinstance(key, tuple):
        return tuple(wg.asarray(each) if isinstance(each, np.ndarray) and each.size else each for each in key)
    return wg.asarray(key)


def random_tensor(rng: Random, sizes: Sequence[int] | None = None, dtype: Any = None) -> wg.Tensor:
    """A tensor, packed, or a view with its axes in another order and direction."""
    x = wg.asarray(array(rng, random_shape(rng) if sizes is None else sizes, dtype))
    if rng.random() < 0.5:
        return x
    y = x.transpose(tuple(int(axis) for axis in rng.permutation(x.ndim))) if x.ndim else x
    return y[tuple(slice(None, None, -1 if rng.random() < 0.3 else 1) for _ in range(y.ndim))]


def value_for(rng: Random, x: wg.Tensor, key: Any) -> Any:
    """What is assigned: a scalar, an array or a tensor."""
    if rng.random() < 0.3:
        return x.dtype.type(1)
    value = array(rng, np.empty(x.shape)[key].shape, x.dtype)
    return wg.asarray(value) if rng.random() < 0.6 else value


class Windows:
    """Random windows of an array."""

    def __init__(self, rng: Random) -> None:
        rank, self.count = int(rng.integers(1, 4)), int(rng.integers(1, 7))
        sizes = rng.integers(3, 14, rank)
        self.array = array(rng, [int(size) for size in sizes])
        self.inside, self.alike = rng.random() < 0.6, rng.random() < 0.6
        drawn = rng.integers(1, sizes + 1, (1 if self.alike else self.count, rank))
        self.boxes = np.broadcast_to(drawn, (self.count, rank))
        beyond = 0 if self.inside else 2
        self.offsets = rng.integers(0 * self.boxes - beyond, sizes - self.boxes + beyond + 1)
        self.steps = rng.choice([-2, -1, 1, 1, 2], (self.count, rank) if rng.random() < 0.5 else rank)


# kinds of calls


def read(rng: Random) -> Results:
    """A basic key."""
    x = random_tensor(rng)
    return [x[basic(rng, x.shape)]]


def read_advanced(rng: Random) -> Results:
    """A key with indices or a mask."""
    x = random_tensor(rng)
    return [x[on_device(rng, advanced(rng, x.shape))]]


def write(rng: Random) -> Results:
    """An assignment to a basic key."""
    x = random_tensor(rng)
    key = basic(rng, x.shape)
    x[key] = value_for(rng, x, key)
    return [x]


def write_advanced(rng: Random) -> Results:
    """An assignment to a key with indices or a mask."""
    x = random_tensor(rng)
    key = advanced(rng, x.shape)
    x[on_device(rng, key)] = value_for(rng, x, key)
    return [x]


def join(rng: Random) -> Results:
    """A concatenation or a stack, of views now and then."""
    x = random_tensor(rng)
    axis = int(rng.integers(-x.ndim, x.ndim)) if x.ndim else 0
    key = basic(rng, x.shape) if rng.random() < 0.5 else ()
    parts = [x[key] for _ in range(int(rng.integers(1, 6)))]
    joined: Any = (np.concatenate if rng.random() < 0.5 else np.stack)(parts, axis=axis)
    return [joined]


def numpys_functions(rng: Random) -> Results:
    """One of NumPy's functions."""
    x: Any = random_tensor(rng)
    sizes = x.shape
    axis = int(rng.integers(-x.ndim, x.ndim)) if x.ndim else 0
    number = int(rng.integers(-4, 5))
    reversed_ = x[tuple(slice(None, None, -1) for _ in sizes)]
    functions: list[Callable[[], Any]] = [
        lambda: np.roll(x, 5 * number, axis),
        lambda: np.tile(x, tuple(int(n) for n in rng.integers(0, 3, int(rng.integers(1, 4))))),
        lambda: np.repeat(x, abs(number), axis),
        lambda: np.flip(x, axis),
        lambda: np.rot90(x, number),
        lambda: np.delete(x, number, axis),
        lambda: np.insert(x, number, x.dtype.type(1), axis),
        lambda: np.take(x, indices(rng, max(sizes[axis], 1) if sizes else 1, 5), axis),
        lambda: np.where(rng.random(sizes) < 0.5, x, reversed_),
        lambda: np.tril(x, number),
        lambda: np.resize(x, random_shape(rng)),
        lambda: np.broadcast_to(x, (2, *sizes)),
        lambda: x.reshape(-1),
        lambda: x.copy(order="F"),
        lambda: xp.permute_dims(x, tuple(int(n) for n in rng.permutation(x.ndim))),
        lambda: xp.expand_dims(x, axis=axis),
    ]
    return [functions[int(rng.integers(len(functions)))]()]


def padded(rng: Random) -> Results:
    """A padded tensor."""
    x: Any = random_tensor(rng)
    mode = str(rng.choice(["constant", "edge", "reflect", "symmetric", "wrap"]))
    found: Any = np.pad(x, rng.integers(0, 5, (x.ndim, 2)).tolist(), mode)  # type: ignore[call-overload]  # by NumPy's protocol
    return [found]


def along_axis(rng: Random) -> Results:
    """Elements taken or put along an axis."""
    x: Any = random_tensor(rng)
    shape, axis = list(x.shape), int(rng.integers(-x.ndim, x.ndim)) if x.ndim else 0
    size = shape[axis] if shape else 1
    if shape:
        shape[axis] = 3
    places = rng.integers(-size, size, shape) if size else np.zeros([0] * x.ndim, int)
    if rng.random() < 0.5:
        found: Any = np.take_along_axis(x, places, axis)
        return [found]
    np.put_along_axis(x, places, x.dtype.type(1), axis)
    return [x]


def extract(rng: Random) -> Results:
    """Windows of a tensor."""
    windows = Windows(rng)
    outside: dict[str, Any] = {} if windows.inside else {"fill": 1}
    if outside and rng.random() < 0.3:
        outside = {"outside": "clamp"}
    sizes: Any = windows.boxes
    if windows.alike and rng.random() < 0.8:
        sizes = tuple(int(size) for size in windows.boxes[0])
    offsets: Any = windows.offsets
    if isinstance(sizes, tuple) and rng.random() < 0.3:
        offsets = wg.asarray(offsets.astype(np.int32))
    found = wg.extract_windows(wg.asarray(windows.array), offsets, sizes, windows.steps, **outside)
    return found if isinstance(found, list) else [found]


def insert(rng: Random) -> Results:
    """Windows put into a tensor."""
    windows = Windows(rng)
    x = wg.asarray(windows.array)
    parts = [array(rng, [int(size) for size in box], x.dtype) for box in windows.boxes]
    batch: Any = [wg.asarray(part) for part in parts]
    if windows.alike and rng.random() < 0.8:
        batch = wg.asarray(np.stack(parts))
    outside: dict[str, Any] = {} if windows.inside else {"outside": "drop"}
    wg.insert_windows(x, windows.offsets, batch, overlap="last", **outside)
    return [x]


def window_of(rng: Random, sizes: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Offsets, sizes and strides of a window inside."""
    offsets = rng.integers(0, np.array(sizes))
    window = rng.integers(1, np.array(sizes) - offsets + 1)
    return offsets.tolist(), window.tolist(), rng.choice([-3, -2, -1, 1, 2, 3], len(sizes)).tolist()


def slice1(rng: Random) -> Results:
    """DirectML's slice and its gradient."""
    x = random_tensor(rng, [*rng.integers(1, 9, int(rng.integers(1, 5)))])
    window = window_of(rng, x.shape)
    part = wg.slice1(x, *window)
    return [part, wg.slice_grad(part, *window, output_sizes=x.shape)]


def compiled(rng: Random) -> Results:
    """A compiled slice, called, with an output, and bound and recorded."""
    x = wg.asarray(array(rng, [*rng.integers(1, 9, int(rng.integers(1, 5)))]))
    window = window_of(rng, x.shape)
    part = wg.slice1(x, *window)
    sides = wg.TensorDesc(x.dtype, x.shape), wg.TensorDesc(x.dtype, part.shape)
    device = x.device
    operator: Any = device.compile(wg.Slice1(*sides, *window))
    given, bound = (wg.empty(part.shape, x.dtype, device=device) for _ in range(2))
    encoder = device.wgpu_device.create_command_encoder()
    operator.bind(input=x, output=bound).record(encoder)
    device.wgpu_device.queue.submit([encoder.finish()])
    return [operator(x), operator(x, given), given, bound]


def captured(rng: Random) -> Results:
    """A captured function, on two tensors."""
    x = random_tensor(rng)
    key, other = basic(rng, x.shape), array(rng, x.shape, x.dtype)

    def parts(x: Any) -> list[Any]:
        joined: Any = np.concatenate([x, x[::-1]]) if x.ndim else x.copy()
        return [x[key].copy(), joined]

    program = wg.capture(parts, x=x)
    first = [each.copy() for each in program(x=x)]
    return [*first, *program(x=wg.asarray(other))]


def textures(rng: Random) -> Results:
    """A region of a texture, written and read."""
    name = str(rng.choice([*TEXELS]))
    dtype, channels = TEXELS[name]
    height, width, y, x = (int(n) for n in rng.integers(1, 40, 4))
    device = wg.default_device()
    texture = device.wgpu_device.create_texture(size=(width + x, height + y, 1), format=name, usage=0x7)
    shape = (height, width, channels) if channels > 1 else (height, width)
    wg.copy_to_texture(wg.asarray(array(rng, shape, dtype)), texture, origin=(x, y))
    part = wg.from_texture(texture, origin=(x, y), size=(width, height))
    return [part, part[::-1, ::2], wg.from_texture(texture), wg.map_texture(texture)]


def streamed(rng: Random) -> Results:
    """A stream of blocks out of an array."""
    source = array(rng, random_shape(rng, 1, 4))
    key = tuple(a_slice(rng, size) for size in source.shape)
    return [wg.stream(source, key, limit=int(rng.integers(2**12, 2**16)))]


def graph(rng: Random) -> Results:
    """An ONNX graph of a slice, a transpose and a concatenation."""
    import onnx

    from wgslice import onnx as backend

    rank = int(rng.integers(1, 5))
    sizes = [int(n) for n in rng.integers(1, 9, rank)]
    order = [int(n) for n in rng.permutation(rank)]
    starts, ends = ([int(rng.integers(-size - 2, size + 3)) for size in sizes] for _ in range(2))
    steps = [int(n) for n in rng.choice([-2, -1, 1, 2], rank)]
    helper, int64, float32 = onnx.helper, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["part"]),
        helper.make_node("Transpose", ["part"], ["turned"], perm=order),
        helper.make_node("Concat", ["turned", "turned"], ["y"], axis=int(rng.integers(rank))),
    ]
    named = {"starts": starts, "ends": ends, "axes": [*range(rank)], "steps": steps}
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "a graph",
            [helper.make_tensor_value_info("x", float32, sizes)],
            [helper.make_tensor_value_info("y", float32, [None] * rank)],
            [helper.make_tensor(name, int64, [rank], values) for name, values in named.items()],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
    )
    return list(backend.run_model(model, [array(rng, sizes, "f4")]))


KINDS: list[Callable[[Random], Results]] = [
    *(read, read, read_advanced, write, write_advanced, join, numpys_functions, numpys_functions),
    *(padded, along_axis, extract, extract, insert, insert, slice1, compiled, captured),
    *(textures, streamed, graph),
]


def outcome(number: int) -> Any:
    """What a call gives."""
    rng = np.random.default_rng(number)
    try:
        found = KINDS[int(rng.integers(len(KINDS)))](rng)
        arrays = [each.numpy() if isinstance(each, wg.Tensor) else np.asarray(each) for each in found]
    except ModuleNotFoundError:
        raise
    except Exception as error:
        return type(error).__name__
    return [[str(each.dtype), each.shape, hashlib.sha256(each.tobytes()).hexdigest()[:16]] for each in arrays]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        first, count = json.loads(line)
        print(json.dumps([outcome(number) for number in range(first, first + count)]), flush=True)
