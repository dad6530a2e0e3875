"""Arguments that moving functions refuse, by name and before anything reaches a GPU: no adapter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from helpers import unread
from numpy.exceptions import AxisError

import wgslice as wg
from wgslice import array_api
from wgslice.numpy_protocol import taking
from wgslice.tensors import views

MODULES = array_api, taking, views, wg
F: Any = SimpleNamespace(**{name: value for module in MODULES for name, value in vars(module).items()})

tensor = partial(unread, dtype="int16")
X = tensor((2, 3))
EMPTY = tensor((0, 3))
DEEP = tensor((1,) * 8)

NOT_TENSORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.concat([[3]]), "concat: arrays is of type list: must be a sequence, with a tensor in it"),
    (lambda: F.stack([3]), "stack: arrays is of type list: must be a sequence, with a tensor in it"),
    (lambda: F.stack([X, [X, X]]), "stack: a sequence of tensors: stack joins them"),
    (lambda: F.unstack([1]), "unstack: x is of type list"),
    (lambda: F.split([1], 1), "split: x is of type list"),
    (lambda: F.roll([1], 1), "roll: x is of type list"),
    (lambda: F.pad([1], 1), "pad: x is of type list"),
    (lambda: F.take([1], 1), "take: x is of type list"),
    (lambda: F.take_along_axis([1], [1]), "take_along_axis: x is of type list"),
    (lambda: F.tile([1], 1), "tile: x is of type list"),
    (lambda: F.repeat([1], 1), "repeat: x is of type list"),
    (lambda: F.flip([1]), "flip: x is of type list"),
    (lambda: F.moveaxis([1], 0, 0), "moveaxis: x is of type list"),
    (lambda: F.expand_dims([1], 0), "expand_dims: x is of type list"),
    (lambda: F.rot90([1]), "rot90: x is of type list"),
    (lambda: F.broadcast_arrays([1]), r"broadcast_arrays: arrays\[0\] is of type list"),
    (lambda: F.meshgrid([1]), r"meshgrid: arrays\[0\] is of type list"),
    (lambda: F.tril([[1]]), "tril: x is of type list"),
    (lambda: F.triu([[1]]), "triu: x is of type list"),
    (lambda: F.empty_like([1]), "empty_like: x is of type list"),
    (lambda: F.zeros_like([1]), "zeros_like: x is of type list"),
    (lambda: F.ones_like([1]), "ones_like: x is of type list"),
    (lambda: F.full_like([1], 1), "full_like: x is of type list"),
]
TYPES = [
    *NOT_TENSORS,
    (
        lambda: F.concat([X, tensor((2, 3), dtype="uint8")]),
        r"concat: the dtype of arrays\[1\] is uint8: must be int16 as the tensors have, since",
    ),
    (
        lambda: F.concat([X, np.zeros((2, 3))]),
        r"concat: the dtype of arrays\[1\] is float64: must be int16 as the tensors have",
    ),
    (
        lambda: F.stack([X, tensor((2, 3), dtype="int8")]),
        r"stack: the dtype of arrays\[1\] is int8: must be int16",
    ),
    (
        lambda: wg.put(X, [0], 5, axis=cast("Any", (1, 0))),
        r"^put: axis = \(1, 0\): must be an integer, not tuple",
    ),
    (lambda: F.unstack(X, axis=(0, 1)), r"^unstack: axis = \(0, 1\): must be an integer, not tuple"),
    (lambda: F.split(X, 2, axis=(0,)), r"^split: axis = \(0,\): must be an integer, not tuple"),
    (lambda: F.split(X, 1.5), "split: indices_or_sections = 1.5: must be an integer"),
    (lambda: F.roll(X, 0.5), "roll: shift = 0.5: must be an integer"),
    (lambda: F.roll(X, 1, 0.5), "roll: axis = 0.5: must be an integer"),
    (lambda: F.pad(X, 0.5), "pad: pad_width = 0.5: must be integers, not float64"),
    (lambda: F.tile(X, 0.5), "tile: repetitions = 0.5: must be an integer"),
    (lambda: F.repeat(X, [0.5]), r"repeat: repeats\[0\] = 0.5: must be an integer"),
    (lambda: F.repeat(X, tensor((6,), dtype="int64")), "repeat: repeats is a Tensor: .* repeats.numpy()"),
    (lambda: F.take(X, [0.5]), "take: indices have dtype float64: must be integers"),
    (lambda: F.take(X, tensor((2,), dtype="bool")), "take: indices have dtype bool: must be integers"),
    (lambda: F.tril(X, k=0.5), "tril: k = 0.5: must be an integer"),
    (lambda: F.permute(X), r"permute: no orders are given: pass one, as in permute\(x, axes\)"),
    (lambda: F.permute(X, 1, 0, axes=(1, 0)), "permute: two orders are given"),
    (lambda: F.reverse(X, 0, axis=1), "reverse: axes = 0 and axis = 1: name the dimensions once"),
    (lambda: F.ones(3, object), "must be numbers or bools, not Python objects"),
    (
        lambda: F.full(3, "abc"),
        "full: dtype <U3: strings and structured dtypes are unsupported: pass x.view",
    ),
]
VALUES = [
    (lambda: F.concat([]), "concat: arrays is empty: name at least one tensor"),
    (lambda: F.stack(()), "stack: arrays is empty"),
    (
        lambda: F.concat([X, tensor((3, 2))]),
        r"concat: arrays\[1\] has shape \(3, 2\): sizes must equal those of",
    ),
    (
        lambda: F.concat([X, tensor((3, 2))]),
        r"arrays\[0\], \(2, 3\), except .* axis 0: dimension 1 is 2, not 3",
    ),
    (lambda: F.concat([X, tensor((3,))]), r"concat: arrays\[1\] has shape \(3,\): .* except along axis 0$"),
    (lambda: F.stack([X, tensor((2, 4))]), r"stack: arrays\[1\] has shape \(2, 4\): must be \(2, 3\)"),
    (lambda: F.stack([DEEP]), "stack: .*the result would have rank 9, must be at most 8"),
    (lambda: F.split(X, 2, 1), "split: .* = 2: must divide the size 3 of axis 1; or give the indices"),
    (lambda: F.split(X, 0), "split: indices_or_sections = 0: must divide the size 2 of axis 0"),
    (lambda: F.split(X, -1), "split: indices_or_sections = -1"),
    (
        lambda: F.roll(X, (1, 2), (0, 1, 0)),
        "roll: shift has 2 numbers, axis 3: must be equal, or one of them 1",
    ),
    (lambda: F.pad(X, -9), r"pad: pad_width\[0\] = \(-9, -9\): crops more than dimension 0 has"),
    (lambda: F.pad(X, {1: (9, -99)}), r"pad: pad_width\[1\] = \(9, -99\): crops more than dimension 1 has"),
    (
        lambda: F.pad(X, 1, interior=-1),
        "pad: interior = -1 with mode = 'constant': must be one number or 2, ",
    ),
    (lambda: F.pad(X, 1, interior=(1, 2, 3)), r"pad: interior = \(1, 2, 3\) with mode = 'constant': must be"),
    (lambda: F.pad(X, 1, "edge", interior=1), "pad: interior = 1 with mode = 'edge': .* 0 but for modes "),
    (
        lambda: F.pad(X, 1, interior=1, constant_values=(1, 2)),
        "pad: constant_values: shape .*: must be one",
    ),
    (lambda: F.pad(X, [(1, 1)] * 3), r"pad: pad_width has shape \(3, 2\): must be one number, a pair, or"),
    (lambda: F.pad(X, 1, "nope"), "pad: mode = 'nope': must be one of 'constant', 'empty', 'edge', "),
    (lambda: F.concat([tensor(())]), "concat: zero-dimensional arrays cannot be concatenated; stack joins"),
    (lambda: F.pad(EMPTY, 1, "wrap"), "pad: mode = 'wrap': needs an element to repeat"),
    (lambda: F.pad(X, 2**32), r"pad: shape\[0\] = 8589934594: must be an integer from 0 to 4294967295"),
    (lambda: F.take_along_axis(X, [1]), r"take_along_axis: indices have shape \(1,\): must have 2 dimens"),
    (lambda: F.tile(X, (2, -1)), r"tile: repetitions = \(2, -1\): must not be negative"),
    (lambda: F.tile(X, (1,) * 9), "tile: .* must be at most 8"),
    (lambda: F.repeat(X, -1), r"repeat: repeats = \(-1,\): must not be negative"),
    (
        lambda: F.repeat(X, [1, 2], 1),
        "repeat: repeats has 2 numbers: must be one, or 3, one for each element",
    ),
    (
        lambda: array_api.reshape(X, 6, copy=cast("Any", "never")),
        "reshape: strings are not allowed for 'copy' keyword. Use True/F",
    ),
    (lambda: F.asarray(3, copy="always"), "asarray: strings are not allowed for 'copy' keyword"),
    (
        lambda: array_api.from_dlpack(3, copy=cast("Any", "")),
        "from_dlpack: strings are not allowed for 'copy' keyword",
    ),
    (lambda: X.__array__(copy=cast("Any", "never")), "strings are not allowed for 'copy' keyword"),
    (lambda: F.asarray(3, copy=0), "asarray: copy=False: elements have to be copied from this machine's mem"),
    (lambda: F.expand_dims(DEEP, 0), "expand_dims: .* rank 9, must be at most 8"),
    (lambda: F.expand_dims(X, (0, 0)), "expand_dims: .* an axis is repeated"),
    (lambda: F.rot90(X, 1, (0,)), r"rot90: axes = \(0,\): must be the two dimensions of a plane"),
    (lambda: F.moveaxis(X, (0, 1), 0), "moveaxis: source has 2 axes, destination 1"),
    (lambda: F.moveaxis(X, (0, -2), (0, 1)), r"moveaxis: source = \(0, -2\): an axis is repeated"),
    (lambda: F.broadcast_arrays(X, tensor((4,))), "broadcast_arrays: shape mismatch"),
    (lambda: F.meshgrid(X), r"meshgrid: arrays\[0\] has rank 2: must have rank 1"),
    (lambda: F.meshgrid(*[X[0]] * 9), "meshgrid: .* has rank 9"),
    (lambda: F.meshgrid(indexing="yx"), "meshgrid: indexing = 'yx': must be 'xy' or 'ij'"),
    (lambda: F.tril(X[0, 0]), "tril: x has no dimensions: a matrix has two"),
    (lambda: F.triu(X[0, 0]), "triu: x has no dimensions: a matrix has two"),
]
AXES = [
    (lambda: F.concat([X, X], 2), "concat: axis 2"),
    (lambda: F.stack([X, X], 3), "stack: axis 3"),
    (lambda: F.unstack(X, axis=2), "unstack: axis 2"),
    (lambda: F.split(X, 1, -3), "split: axis -3"),
    (lambda: F.roll(X, 1, 2), "roll: axis 2"),
    (lambda: F.pad(X, {2: 1}), "pad: axis 2"),
    (lambda: F.take(X, 0, 2), "take: axis 2"),
    (lambda: F.take_along_axis(X, [[0]], 2), "take_along_axis: axis 2"),
    (lambda: F.repeat(X, 1, 2), "repeat: axis 2"),
    (lambda: F.flip(X, 2), "flip: axis 2"),
    (lambda: F.moveaxis(X, 2, 0), "moveaxis: axis 2"),
    (lambda: F.moveaxis(X, 0, -3), "moveaxis: axis -3"),
    (lambda: X.swapaxes(0, 2), "swapaxes: axis 2"),
    (lambda: F.expand_dims(X, 3), "expand_dims: axis 3"),
    (lambda: F.rot90(X, 1, (0, 2)), "rot90: axis 2"),
]


INDICES = [
    (lambda: F.take_along_axis(X, [[True]]), "take_along_axis: indices have dtype bool: must be integers"),
    (
        lambda: F.take_along_axis(X, [[1]] * 3),
        r"take_along_axis: indices have shape \(3, 1\), x \(2, 3\): sizes of dimension 0 must be equal or 1",
    ),
]


def of_number(case: object) -> str | None:
    return "" if callable(case) else None


REFUSED = {TypeError: TYPES, ValueError: VALUES, AxisError: AXES, IndexError: INDICES}


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [(error, *case) for error, cases in REFUSED.items() for case in cases],
    ids=of_number,
)
def test_wrong_arguments_are_refused(error: type[Exception], call: Callable[[], Any], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(("index", "axis"), [(2, 0), (-3, 0), (3, 1), (-4, 1), (6, None), (-7, None)])
def test_indices_out_of_range_are_refused(index: int, axis: int | None) -> None:
    words = f"index {index} is out of bounds for axis {axis or 0} with size"
    with pytest.raises(IndexError, match=words):
        wg.take(X, [[0], [index]], axis)


def test_constants_that_a_dtype_does_not_hold_are_refused() -> None:
    words = "pad: constant_values: Python integer 70000 out of bounds for int16"
    with pytest.raises(OverflowError, match=words):
        wg.pad(X, 1, constant_values=70000)
    with pytest.raises(OverflowError, match="full: Python integer 300 out of bounds for uint8"):
        wg.full(3, 300, np.uint8)
