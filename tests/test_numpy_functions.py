"""NumPy's functions on tensors: what NumPy gives of arrays, bit for bit, or a refusal by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any
from unittest import mock

import numpy as np
import pytest
from helpers import check_same, random_bytes, unread
from hypothesis import given
from hypothesis import strategies as st
from moving import GATHERED, numbered, pairs, shapes, submissions

import wgslice as wg
import wgslice.array_api as xp
from wgslice.numpy_protocol.table import FUNCTIONS, LIKE
from wgslice.tensors.uncomputed import INSTEAD, REMEDY

Case = Callable[[Any], Any]
numpy: Any = np  # whose stubs know nothing of tensors

# Each is called with an array and with a tensor of the same elements, of various ranks: where NumPy refuses
# one, a tensor is refused too.
VIEWS: dict[str, list[Case]] = {
    "atleast_1d": [np.atleast_1d, lambda x: np.atleast_1d(x, x)],
    "atleast_2d": [np.atleast_2d, lambda x: np.atleast_2d(x, x)],
    "atleast_3d": [np.atleast_3d, lambda x: np.atleast_3d(x, x)],
    "broadcast_arrays": [
        lambda x: list(np.broadcast_arrays(x, x[..., :1])),
        lambda x: np.broadcast_arrays(x)[0],
    ],
    "broadcast_to": [lambda x: np.broadcast_to(x, (2, *x.shape)), lambda x: np.broadcast_to(x, (7, 3))],
    "diagonal": [
        np.diagonal,
        lambda x: np.diagonal(x, 1),
        lambda x: np.diagonal(a=x, offset=-1, axis1=-1, axis2=0),
        lambda x: np.diagonal(x, 0, 2, 1),
    ],
    "expand_dims": [lambda x: np.expand_dims(x, 0), lambda x: np.expand_dims(a=x, axis=(0, -1))],
    "flip": [np.flip, lambda x: np.flip(x, 1), lambda x: np.flip(m=x, axis=(0, -1))],
    "fliplr": [np.fliplr],
    "flipud": [np.flipud],
    "moveaxis": [lambda x: np.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, [0, 1], [1, 0])],
    "rollaxis": [lambda x: np.rollaxis(x, -1), lambda x: np.rollaxis(a=x, axis=0, start=2)],
    "rot90": [np.rot90, lambda x: np.rot90(x, 3), lambda x: np.rot90(m=x, k=-2, axes=(1, 0))],
    "split": [
        lambda x: np.split(x, 2),
        lambda x: np.split(ary=x, indices_or_sections=[1, 3], axis=-1),
        lambda x: np.split(x, [-2, 1, 9], -1),
    ],
    "array_split": [lambda x: np.array_split(x, 3, axis=-1), lambda x: np.array_split(x, [1], axis=0)],
    "vsplit": [lambda x: np.vsplit(x, [1])],
    "hsplit": [lambda x: np.hsplit(x, [2])],
    "dsplit": [lambda x: np.dsplit(x, [1, 2])],
    "squeeze": [np.squeeze, lambda x: np.squeeze(x[None], axis=0), lambda x: np.squeeze(x, 0)],
    "swapaxes": [lambda x: np.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, 2)],
    "transpose": [np.transpose, lambda x: np.transpose(x, (1, 0)), lambda x: np.transpose(a=x, axes=None)],
}
COPIES: dict[str, list[Case]] = {
    "append": [lambda x: np.append(x, x[::-1]), lambda x: np.append(arr=x, values=x, axis=-1)],
    "block": [
        lambda x: np.block([[x, x], [x, x]]),
        lambda x: np.block([x[..., :1], x]),
        lambda x: np.block([[x[..., 1:], x[..., :1]], [x[:1]]]),
        lambda x: np.block([[[x]], [[x[0]]]]),
        np.block,
        lambda x: np.block([[x], x]),
        lambda x: np.block([x, []]),
        lambda x: np.block([x, (x,)]),
    ],
    "choose": [
        lambda x: numpy.choose(np.arange(x.shape[-1]) % 2, x),
        lambda x: numpy.choose(a=[[0], [1]], choices=[x, x[..., ::-1]]),
        lambda x: numpy.choose([5, -7, 1], [x[..., :1], x[..., -1:]], mode="clip"),
        lambda x: numpy.choose([5, -7, 1], (x[..., :1], x[..., -1:]), mode="wrap"),
        lambda x: numpy.choose(True, [x, x[::-1]]),
        lambda x: numpy.choose([0, -1], [x[..., :1]]),
    ],
    "compress": [
        lambda x: np.compress([True, False, True], x),
        lambda x: numpy.compress(condition=[0, 2], a=x, axis=-1),
        lambda x: numpy.compress([[1]], x),
        lambda x: np.compress([], x, axis=0),
    ],
    "column_stack": [lambda x: np.column_stack([x, x]), lambda x: np.column_stack((x[0], x))],
    "concatenate": [
        lambda x: np.concatenate([x, x[::-1]]),
        lambda x: np.concatenate((x, x), axis=-1, dtype=x.dtype),
        lambda x: np.concatenate((x, x), axis=None),
        lambda x: np.concatenate([x, x[..., None]]),
    ],
    "copy": [np.copy],
    "delete": [
        lambda x: np.delete(x, 1),
        lambda x: np.delete(arr=x, obj=[0, -1, 0], axis=-1),
        lambda x: np.delete(x, slice(None, None, -2), axis=0),
        lambda x: np.delete(x, np.ones(x.shape[0], bool), axis=0),
        lambda x: np.delete(x, [True], axis=0),
        lambda x: np.delete(x, [], axis=1),
        lambda x: numpy.delete(x, 0.5),
    ],
    "diagflat": [np.diagflat, lambda x: np.diagflat(v=x, k=2), lambda x: np.diagflat(x, -1)],
    "dstack": [lambda x: np.dstack([x, x])],
    "extract": [
        lambda x: np.extract(np.arange(x.size) % 3 == 0, x),
        lambda x: np.extract(condition=[[1, 0], [1, 0]], arr=x),
    ],
    "full_like": [
        lambda x: np.full_like(x, 1),
        lambda x: np.full_like(a=x, fill_value=3, dtype="i2", shape=(2, 5)),
    ],
    "hstack": [lambda x: np.hstack([x, x])],
    "insert": [
        lambda x: np.insert(x, 1, 7),
        lambda x: np.insert(arr=x, obj=-1, values=x[0], axis=0),
        lambda x: np.insert(x, [0], x, axis=-1),
        lambda x: np.insert(x, [1, 0, 1], x[..., :1], axis=-1),
        lambda x: np.insert(x, slice(None), 5, axis=0),
        lambda x: np.insert(x, [], 5, axis=0),
        lambda x: np.insert(x, [[0]], 5, axis=0),
        lambda x: np.insert(x, 99, 5, axis=0),
        lambda x: np.insert(x, [0, 1], [1, 2, 3], axis=0),
    ],
    "ones_like": [np.ones_like, lambda x: np.ones_like(x, "f4"), lambda x: np.ones_like(x, shape=3)],
    "pad": [
        *(
            lambda x, mode=mode: np.pad(x, 1, mode)
            for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
        ),
        lambda x: np.pad(x, (2, 1), constant_values=1),
        lambda x: np.pad(array=x, pad_width=3, mode="reflect", reflect_type="even"),
        *(
            lambda x, mode=mode: np.pad(x, [(17, 5), *[(0, 2)] * (x.ndim - 1)], mode)
            for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
        ),
        lambda x: np.pad(x, -1),
    ],
    "repeat": [lambda x: np.repeat(x, 2), lambda x: np.repeat(a=x, repeats=3, axis=-1)],
    "resize": [
        lambda x: np.resize(x, 7),
        lambda x: np.resize(a=x, new_shape=(5, x.size + 1)),
        lambda x: np.resize(x, ()),
        lambda x: np.resize(x, (2, -1)),
    ],
    "fft.fftshift": [np.fft.fftshift, lambda x: np.fft.fftshift(x, axes=-1)],
    "fft.ifftshift": [np.fft.ifftshift, lambda x: np.fft.ifftshift(x, (1, 0))],
    "roll": [
        lambda x: np.roll(x, 2),
        lambda x: np.roll(x, (1, -1), (0, 1)),
        lambda x: np.roll(a=x, shift=1, axis=0),
        lambda x: np.roll(x, (1, 3), 0),
    ],
    "select": [
        lambda x: numpy.select([np.arange(x.shape[-1]) % 2 == 0, np.ones(x.shape, bool)], [x, x[::-1]]),
        lambda x: numpy.select(condlist=[[[True], [False]]], choicelist=[x[..., :1]], default=1),
        lambda x: numpy.select([[True, False, True], False], [x[..., -1:], x], x[..., :1]),
        lambda x: numpy.select([[1, 0]], [x[..., :1]]),
        lambda x: numpy.select([[True], [False]], [x]),
    ],
    "stack": [lambda x: np.stack([x, x]), lambda x: np.stack((x, x, x), axis=-1)],
    "take": [
        lambda x: np.take(x, [1, -1]),
        lambda x: np.take(x, [[0], [1]], axis=-1),
        lambda x: np.take(x, [-9, 99], axis=0, mode="clip"),
        lambda x: np.take(x, [-9, 99], axis=0, mode="wrap"),
        lambda x: np.take(x, 1, 0),
        lambda x: np.take(x, 99),
    ],
    "take_along_axis": [
        lambda x: np.take_along_axis(x, np.zeros((*x.shape[:-1], 2), int), axis=-1),
        lambda x: np.take_along_axis(x, np.zeros((*x.shape[:-1], 2), int) + 99, axis=-1),
        lambda x: np.take_along_axis(x, np.array([1, -1, 0]), axis=None),
        lambda x: np.take_along_axis(x, np.zeros((*x.shape[:-2], 99, 2), int), axis=-1),
        lambda x: np.take_along_axis(x, np.zeros((*x.shape, 1), int), axis=-1),
        lambda x: np.take_along_axis(x, np.zeros((*x.shape[:-1], 2)), axis=-1),
    ],
    "tile": [lambda x: np.tile(x, 2), lambda x: np.tile(A=x, reps=(2, 1, 3))],
    "tril": [np.tril, lambda x: np.tril(m=x, k=1)],
    "triu": [np.triu, lambda x: np.triu(x, -1)],
    "vstack": [lambda x: np.vstack([x, x])],
    "where": [
        lambda x: np.where(np.arange(x.shape[-1]) % 2 == 0, x, x[::-1]),
        lambda x: np.where([[2], [0]], 1, x),
        lambda x: np.where(True, x[..., :1], 3),
        lambda x: numpy.where(False, x),
    ],
    "zeros_like": [np.zeros_like, lambda x: np.zeros_like(x, np.int16, shape=(2, 2))],
}
# A view where there is one.
EITHER: dict[str, list[Case]] = {
    "diag": [np.diag, lambda x: np.diag(v=x, k=1), lambda x: np.diag(x, -2)],
    "meshgrid": [
        lambda x: tuple(np.meshgrid(x, indexing="ij")),
        *(
            lambda x, options=options: tuple(
                np.meshgrid(x, x.reshape(-1)[:2], x.reshape(-1)[::-3], **options)
            )
            for options in (
                {"indexing": "xy"},
                {"indexing": "ij", "sparse": True},
                {"indexing": "ij", "copy": False},
                {"sparse": True, "copy": False},
                {"indexing": "nope"},
            )
        ),
    ],
    "ravel": [np.ravel, *(lambda x, order=order: np.ravel(x, order) for order in (None, "c", "F", "A", "k"))],
    "reshape": [
        lambda x: np.reshape(x, -1),
        lambda x: np.reshape(x, (x.shape[-1], -1)),
        *(lambda x, order=order: np.reshape(x, (-1, x.shape[0]), order) for order in (None, "f", "A")),
        lambda x: np.reshape(x, (7, 11)),
    ],
}
SHAPES: dict[str, list[Case]] = {
    "ndim": [np.ndim],
    "shape": [np.shape],
    "size": [np.size, lambda x: np.size(x, 0), lambda x: np.size(x, -1), lambda x: np.size(a=x, axis=5)],
    "may_share_memory": [
        lambda x: np.may_share_memory(x, x[1:]),
        lambda x: np.may_share_memory(x[:1], x[1:]),
        lambda x: np.may_share_memory(x[..., ::2], x[..., 1::2]),
    ],
    "shares_memory": [
        lambda x: np.shares_memory(x, x.T),
        lambda x: np.shares_memory(x[:1], x[1:]),
        lambda x: np.shares_memory(x[..., ::2], x[..., 1::2]),
        lambda x: np.shares_memory(x[..., ::2], x.T[1:2]),
    ],
}
if hasattr(np, "matrix_transpose"):  # NumPy 2.0
    VIEWS["permute_dims"] = [lambda x: np.permute_dims(x, (1, 0))]
    VIEWS["matrix_transpose"] = [np.matrix_transpose]
    VIEWS["linalg.matrix_transpose"] = [np.linalg.matrix_transpose]
    VIEWS["linalg.diagonal"] = [np.linalg.diagonal, lambda x: np.linalg.diagonal(x, offset=-1)]
if hasattr(np, "unstack"):  # NumPy 2.1
    VIEWS["unstack"] = [np.unstack, lambda x: np.unstack(x, axis=-1)]
CHOOSING = {  # which copy what they choose from, or several choices, by further submissions
    *("choose", "compress", "delete", "extract", "insert", "select", "take", "take_along_axis", "where"),
}
EVERYTHING = {**VIEWS, **COPIES, **EITHER, **SHAPES}
# Of arrays on the host, also for tensors.
INDICES: dict[str, list[Case]] = {
    "diag_indices_from": [np.diag_indices_from, lambda x: np.diag_indices_from(arr=x[:3, :3])],
    "tril_indices_from": [np.tril_indices_from, lambda x: np.tril_indices_from(arr=x, k=1)],
    "triu_indices_from": [np.triu_indices_from, lambda x: np.triu_indices_from(x, -1)],
}


def outcome(call: Case, x: Any) -> Any:
    """The result of a call, or its exception."""
    try:
        return call(x)
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return error


def check(ours: Any, numpys: Any) -> None:
    """The same elements, in tensors; or the same numbers; or both refused."""
    if isinstance(numpys, Exception):
        assert isinstance(ours, Exception), ours
        assert isinstance(ours, type(numpys)) or isinstance(numpys, type(ours)), (ours, numpys)
    elif isinstance(numpys, tuple | list) and not all(isinstance(each, int) for each in numpys):
        assert isinstance(ours, type(numpys))
        assert len(ours) == len(numpys)
        for mine, theirs in zip(ours, numpys, strict=True):
            check(mine, theirs)
    elif isinstance(numpys, np.ndarray | np.generic):
        assert isinstance(ours, wg.Tensor), ours
        check_same(ours.numpy(), np.asarray(numpys))
    else:
        assert ours == numpys


def tensors_in(found: Any) -> list[wg.Tensor]:
    """The tensors of a result."""
    return [
        each
        for each in (found if isinstance(found, tuple | list) else [found])
        if isinstance(each, wg.Tensor)
    ]


@pytest.mark.first_adapter
@pytest.mark.parametrize("name", EVERYTHING)
@given(data=st.data())
def test_what_numpy_gives_of_arrays(device: wg.Device, name: str, data: st.DataObject) -> None:
    sizes = data.draw(shapes(least=1, smallest=int(name == "take")))
    x, array = data.draw(
        pairs(device, sizes, data.draw(st.sampled_from(["uint8", "int16", "float32", "int64", "complex128"])))
    )
    gathered = data.draw(st.sampled_from([0, 2**15]))  # elements that are moved by one gather
    for case in EVERYTHING[name]:
        # Reused memory may have to be cleared, by one submission more; whether it is reused is chance.
        anew = mock.patch.object(device.pool, "max_nbytes", 0)
        with anew, mock.patch(GATHERED, gathered), submissions(device) as counted:
            found = outcome(case, x)
        check(found, outcome(case, array))
        if name in VIEWS:
            assert all(each.buffer is x.buffer for each in tensors_in(found))
        if name in COPIES:
            assert all(each.buffer is not x.buffer and each.is_packed for each in tensors_in(found))
            assert len(counted) <= 1 or name in CHOOSING


@pytest.mark.parametrize("shape", [(3, 3), (4, 5), (0, 0), (3, 3, 3), (3,), ()])
@pytest.mark.parametrize("name", INDICES)
def test_indices_of_a_shape_are_numpys(name: str, shape: tuple[int, ...]) -> None:
    """Of no element is anything read."""
    x = unread(shape)
    for case in INDICES[name]:
        found, expected = (outcome(case, each) for each in (x, np.zeros(shape)))
        assert type(found) is type(expected)
        if isinstance(expected, tuple):
            for ours, numpys in zip(found, expected, strict=True):
                check_same(ours, numpys)


# Of a matrix x, a vector v and a tensor z without dimensions.
CORNERS: list[Callable[[Any, Any, Any], Any]] = [
    *(lambda x, v, z, axis=axis: numpy.squeeze(z, axis) for axis in (0, -1, 1, (0,), ())),
    lambda x, v, z: z.squeeze(0),
    *(lambda x, v, z, axis=axis: numpy.take(z, [0, 0], axis) for axis in (0, -1, 1)),
    *(lambda x, v, z, mode=mode: numpy.take(z, [5, -9], 0, mode=mode) for mode in ("clip", "wrap", "raise")),
    *(lambda x, v, z, axis=axis: numpy.repeat(z, 3, axis) for axis in (0, -1, 1)),
    lambda x, v, z: numpy.repeat(z, [3, 2], 0),
    *(
        lambda x, v, z, axis=axis, index=index: numpy.take(x[:, :0], index, axis)
        for axis in (0, 1, -2, None)
        for index in (1, 2, [0, -3], [[-2, 1]], [], 0)
    ),
    *(lambda x, v, z, index=index: numpy.take(x[:0], index, 1) for index in (9, [0, 9], [])),
    *(lambda x, v, z, mode=mode: numpy.take(x[:, :0], [9, -9], 0, mode=mode) for mode in ("clip", "wrap")),
    *(
        lambda x, v, z, axis=axis, condition=condition: numpy.compress(condition, x[:, :0], axis)
        for axis in (0, 1, None)
        for condition in ([0, 0, 1], [0, 1], [])
    ),
    *(
        lambda x, v, z, repeats=repeats, axis=axis: numpy.repeat(x[:, :0], repeats, axis)
        for axis in (0, 1, 2, None)
        for repeats in (-1, [-1], [-1, -1], [])
    ),
    *(
        lambda x, v, z, repeats=repeats, count=count: numpy.tile(x[:count], repeats)
        for count in (0, 2)
        for repeats in (-1, (-1, 2), (0, -1), (-1, 0), (-1, 1, 1), (1, -1, 1))
    ),
    *(
        lambda x, v, z, place=place, values=values, where=where: numpy.put(
            (v, z, v[:0])[where], place, values
        )
        for where in (0, 1, 2)
        for place in (9, [9, 0], np.array([[-9]]), [])
        for values in (np.empty(0), np.empty((0, 2)), 5)
    ),
    *(
        lambda x, v, z, place=place: v.flat.__setitem__(place, [])
        for place in ([9], [-9, 0], [True] * 9, 9, slice(9))
    ),
    *(lambda x, v, z, order=order: numpy.ravel(v[::2], order) for order in "CFAK"),
    *(lambda x, v, z, k=k: numpy.tril(v[::-1], k) for k in (-1, 0, 2)),
    *(lambda x, v, z, k=k: numpy.triu(v, k) for k in (-1, 0, 2)),
    lambda x, v, z: numpy.tril(v[:0]),
    lambda x, v, z: numpy.repeat(x, [True, False], axis=0),
    lambda x, v, z: numpy.repeat(x, np.array([False, True]), axis=0),
    *(
        lambda x, v, z, repeats=repeats: numpy.repeat(x, repeats)
        for repeats in ([[1, 2], [3, 4]], [[2]], [[1], [1, 2]], "a", [], [-1], None, {1})
    ),
    *(lambda x, v, z, shift=shift: numpy.roll(x, shift) for shift in ("a", ["a"], [[1]], [], None, True)),
    lambda x, v, z: numpy.roll(x, "a", axis=0),
    *(
        lambda x, v, z, shift=shift, axis=axis: numpy.roll(x, shift, axis)
        for shift in ((), 1, (1, 2), [[1]])
        for axis in (2, (0, -2), (0, 2), ())
    ),
    *(lambda x, v, z, axes=axes: numpy.fft.fftshift(x, axes) for axes in ((0, -2), (1, 1), ())),
    *(lambda x, v, z, axis=axis: numpy.take_along_axis(x, np.zeros(3, int), axis) for axis in (1, 2)),
    lambda x, v, z: numpy.put_along_axis(v, np.zeros((1, 1), int), 5, 1),
    lambda x, v, z: numpy.pad(x, 1, nope=3),
    lambda x, v, z: numpy.pad(x, 1, "nope"),
    lambda x, v, z: numpy.pad(x, 1, "edge", constant_values=3),
    lambda x, v, z: numpy.pad(x, 1, "wrap", reflect_type="even"),
    lambda x, v, z: x.view("c16"),
    lambda x, v, z: z.view("c16"),
    lambda x, v, z: x.view("nope"),
    *(lambda x, v, z, axis=axis: numpy.concatenate([z, z], axis) for axis in (0, 1, None)),
    lambda x, v, z: numpy.concatenate([z, x]),
    *(lambda x, v, z, order=order: numpy.copy(x, order) for order in (None, "c", "K", "cheese", "", 3)),
    *(lambda x, v, z, order=order: numpy.ones_like(v, order=order) for order in (None, "f", "F", "z")),
    lambda x, v, z: numpy.full_like(x, 3, order="F", shape=(1, 4, 1)),
    *(lambda x, v, z, order=order: v.astype(v.dtype, order=order) for order in (None, "f", "a", "q")),
    lambda x, v, z: numpy.reshape(x, -1, order="K"),
    *(
        lambda x, v, z, values=values: numpy.insert(x, [2, 0], values, 1)
        for values in (np.arange(2), 2.9, [[1], [2]], [[1, 2], [3, 4]], [[[5]]])
    ),
    *(
        lambda x, v, z, place=place: numpy.insert(v, place, z)
        for place in (0, 3, -3, -4, [3, 3], [4, 0], 0.5, [0.5, 1])
    ),
    lambda x, v, z: numpy.insert(v, np.array([True, False, True]), z),
    lambda x, v, z: numpy.insert(z, 0, v),
    lambda x, v, z: numpy.insert(z, 0, v, 0),
    lambda x, v, z: numpy.delete(z, 0),
    *(
        lambda x, v, z, where=where: numpy.delete(v, where)
        for where in (3, -4, True, np.array([1.0]), [[0], [1]])
    ),
    lambda x, v, z: numpy.append(v, [True, False]),
    lambda x, v, z: numpy.append(np.int16(3), v),
    lambda x, v, z: numpy.append(x, v, axis=0),
    lambda x, v, z: numpy.resize(x[:0], (2, 3)),
    lambda x, v, z: numpy.resize(x.T, (3, 5)),
    lambda x, v, z: numpy.resize(z, (2, 2)),
    lambda x, v, z: numpy.block([[x, v[:2, None]], [v, z]]),
    lambda x, v, z: numpy.block([z, z]),
    lambda x, v, z: numpy.block([[v, x]]),
    *(lambda x, v, z, k=k: numpy.diag(v, k) for k in (-2, 0, 3)),
    lambda x, v, z: numpy.diag(z),
    lambda x, v, z: numpy.diagflat(z, -1),
    lambda x, v, z: numpy.diag(x, 99),
    *(lambda x, v, z, axes=axes: numpy.diagonal(x, 0, *axes) for axes in ((0, 0), (0, 2), (1, 0))),
    *(lambda x, v, z, start=start: numpy.rollaxis(x, 1, start) for start in (-3, -2, -1, 0, 1, 2, 3)),
    lambda x, v, z: numpy.compress([0, 0, 1], x, 0),
    lambda x, v, z: numpy.compress([True], z),
    lambda x, v, z: numpy.extract(x, x),
    lambda x, v, z: numpy.extract([0] * 6 + [1], x),
    lambda x, v, z: numpy.ix_(v, v[:2]),
    lambda x, v, z: numpy.ix_(v, z),
    lambda x, v, z: numpy.meshgrid(v, z, x)[2],
    *(
        lambda x, v, z, given=given: np.lib.stride_tricks.sliding_window_view(x, *given)
        for given in (
            ((2, 2),),
            (0, 1),
            (2, (1, 1)),
            ((1, 2), (1, 1)),
            (2,),
            (3, 0),
            (-1, 0),
            (1, 2),
            (1, ()),
        )
    ),
    lambda x, v, z: np.lib.stride_tricks.sliding_window_view(z, ()),
    lambda x, v, z: numpy.concatenate([x, x], out=x),
    lambda x, v, z: numpy.stack([v, v], out=x.T),
    lambda x, v, z: numpy.concatenate([v, v], out=z),
    lambda x, v, z: numpy.concatenate([v, v], out=x.reshape(6), dtype="i8"),
    lambda x, v, z: numpy.take(x, [1, 0, 1], 1, out=x),
    lambda x, v, z: numpy.take(x, 1, 0, out=v),
    lambda x, v, z: numpy.take(v, 1, out=z),
    lambda x, v, z: numpy.take(v, [0, 9, -9], out=v, mode="wrap"),
    lambda x, v, z: numpy.take(v, [0, 1], out=v),
    lambda x, v, z: numpy.compress([1, 0, 1, 1], v[[0, 1, 2, 0]], out=v),
    lambda x, v, z: numpy.ravel(z, "K"),
    lambda x, v, z: numpy.choose(z, [v, v[::-1]], mode="wrap"),
    lambda x, v, z: numpy.choose(x, [z, 5, 6], mode="clip"),
    lambda x, v, z: numpy.choose(x, v, x, "wrap"),
    lambda x, v, z: x.choose(v, mode="clip"),
    lambda x, v, z: v.choose([]),
    lambda x, v, z: v.choose(np.empty((0, 3))),
    lambda x, v, z: v.choose(x, mode="nope"),
    lambda x, v, z: numpy.choose(v, np.empty((2, 0)), out=z),
    lambda x, v, z: numpy.choose([0.5], v),
    lambda x, v, z: numpy.choose([9], [z]),
    lambda x, v, z: numpy.select([np.bool_(True)], [z], v),
    *(
        lambda x, v, z, other=other, number=number: numpy.meshgrid(v, other, v)[number]
        for other in (np.array([10, 20], "f4"), np.array([7, 8, 9], "u1"), np.array([1j, 2]))
        for number in range(3)
    ),
    *(
        lambda x, v, z, place=place: numpy.insert(v, np.arange(6) == place, 99)
        for place in (0, 3, 4, 5)  # beyond the end from 4 on
    ),
    *(
        lambda x, v, z, axis=axis, call=call: call(x, axis)
        for axis in ((0,), (0, 1), (), -2)
        for call in (
            lambda x, axis: numpy.take(x, [0], axis),
            lambda x, axis: numpy.repeat(x, 2, axis),
            lambda x, axis: numpy.delete(x, 0, axis),
            lambda x, axis: numpy.insert(x, 0, 5, axis),
            lambda x, axis: numpy.compress([True], x, axis),
            lambda x, axis: numpy.concatenate([x, x], axis),
            lambda x, axis: numpy.stack([x, x], axis),
            lambda x, axis: numpy.array_split(x, 2, axis)[0],
            lambda x, axis: numpy.take_along_axis(x, np.zeros((2, 3), int), axis),
        )
    ),
    *(
        lambda x, v, z, values=values: numpy.pad(x.view("u8"), 1, constant_values=values)
        for values in (np.array([300, -1]), np.array([3, 4]), np.array([2**63, 1], np.uint64), (1, 2, 3))
    ),
    *(
        lambda x, v, z, given=given: numpy.copyto(
            x[: given[0]], np.zeros(given[1], int), where=np.ones(given[2], bool)
        )
        for given in ((0, 5, 7), (0, 3, 7), (0, 3, 3), (2, 3, (1, 2, 3)), (2, (1, 2, 3), 3))
    ),
    *(
        lambda x, v, z, casting=casting: numpy.concatenate([v, np.array([1], np.int8)], casting=casting)
        for casting in ("bogus", "no", "safe", "unsafe")
    ),
    lambda x, v, z: numpy.concatenate([v, v], casting="bogus"),
    lambda x, v, z: numpy.concatenate(each for each in (v, v)),
    lambda x, v, z: v.astype(v.dtype, "F"),
]


@pytest.mark.parametrize("number", range(len(CORNERS)))
def test_corner_cases_are_numpys(device: wg.Device, number: int) -> None:
    """Elements, or the same kind of exception."""
    arrays = numbered((2, 3), "int64"), numbered((3,), "int64"), numbered((), "int64")
    tensors = tuple(wg.asarray(array, device=device) for array in arrays)
    found, expected = (outcome(lambda given: CORNERS[number](*given), given) for given in (tensors, arrays))
    check(found, expected)
    if isinstance(expected, Exception):
        assert type(found) is type(expected)
    for tensor, array in zip(tensors, arrays, strict=True):
        check_same(tensor.numpy(), array)  # written or not


def test_a_split_takes_indices_of_any_iterable(device: wg.Device) -> None:
    parts = wg.split(wg.arange(6, device=device), (each for each in (2, 3)))
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3, 4, 5]]


def test_a_reshape_is_a_view_where_there_is_one(device: wg.Device) -> None:
    x = wg.asarray(numbered((4, 6), "int16"), device=device)
    assert numpy.reshape(x, (2, 12)).buffer is x.buffer
    assert numpy.ravel(x).buffer is x.buffer
    assert numpy.reshape(x.T, 24).buffer is not x.buffer
    assert numpy.ravel(x[:, 1:]).buffer is not x.buffer


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.1 has reshape's copy")
def test_a_reshape_copies_as_its_argument_says(device: wg.Device) -> None:
    array = numbered((4, 6), "int16")
    x: Any = wg.asarray(array, device=device)
    copied = numpy.reshape(x, (2, 12), copy=True)
    assert copied.buffer is not x.buffer
    check_same(copied.numpy(), array.reshape(2, 12))
    assert numpy.reshape(x, (2, 12), copy=False).buffer is x.buffer
    with pytest.raises(ValueError, match=r"numpy\.reshape: shape .* with strides .* cannot be viewed"):
        numpy.reshape(x.T, 24, copy=False)
    copy: Any
    for copy in (0, 1, None, "never", "", [], np.arange(2)):
        for each in (lambda a, copy: a.reshape(24, copy=copy), lambda a, copy: a.T.reshape(24, copy=copy)):
            found, expected = (outcome(partial(each, copy=copy), given) for given in (x, array))
            check(found, expected)
            assert type(found) is type(expected) or not isinstance(expected, Exception)


def test_arrays_among_tensors_are_uploaded(device: wg.Device) -> None:
    """An `out` of the tensors' dtype."""
    array = numbered((3, 4), "float32")
    x: Any = wg.asarray(array, device=device)
    cases: tuple[Callable[[Any, Any], Any], ...] = (
        lambda first, second: numpy.concatenate([first, second, second]),
        lambda first, second: numpy.stack((second, first), axis=1),
        lambda first, second: numpy.vstack([second[0], first]),
        lambda first, second: numpy.hstack([second, first]),
        lambda first, second: numpy.dstack([second, first]),
        lambda first, second: numpy.column_stack([first, second[:, 0]]),
    )
    for case in cases:
        found: Any = case(x, array[::-1])
        assert found.device is device
        check_same(found.numpy(), np.asarray(case(array, array[::-1])))
    with pytest.raises(
        TypeError,
        match=r"numpy\.concatenate: the dtype of arrays\[1\] is int64: must be float32 as the tensors",
    ):
        numpy.concatenate([x, np.arange(4)[None]])
    with pytest.raises(
        TypeError, match=r"numpy\.stack: dtype is float64: must be float32 as the tensors have"
    ):
        numpy.stack([x, array], dtype="f8", casting="unsafe")


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float16", ">f4", "float64", "datetime64[s]", "complex128"]
)
def test_tensors_and_arrays_meet_bit_for_bit(device: wg.Device, dtype: str) -> None:
    """NaN payloads too, whichever comes first."""
    bits = random_bytes(12 * np.dtype(dtype).itemsize)
    array = (bits & 1 if dtype == "bool" else bits).view(dtype).reshape(3, 4)
    native = array.astype(array.dtype.newbyteorder("="))
    x: Any = wg.asarray(array, device=device)
    joins: tuple[Callable[[Any, Any], Any], ...] = (
        lambda first, second: wg.concat([first, second[::-1]]),
        lambda first, second: wg.concat((first, second[:1]), axis=None),
        lambda first, second: wg.stack([first[:, ::-1], second, first], axis=1),
        lambda first, second: xp.concat([first, second], axis=-1),
    )
    theirs: tuple[Callable[[Any, Any], Any], ...] = (
        lambda first, second: np.concatenate([first, second[::-1]]),
        lambda first, second: np.concatenate((first, second[:1]), axis=None),
        lambda first, second: np.stack([first[:, ::-1], second, first], axis=1),
        lambda first, second: np.concatenate([first, second], axis=-1),
    )
    for ours, numpys in zip(joins, theirs, strict=True):
        for pair in ((x, array), (array, x)):
            found = ours(*pair)
            assert found.device is device
            check_same(found.numpy(), numpys(native, native))
    for sources in ((x[:, :1], array[0]), (array[:, :1], x[0]), (x, array, array[0, 0])):
        parts = numpy.broadcast_arrays(*sources)
        for part, source in zip(parts, sources, strict=True):
            assert isinstance(part, wg.Tensor)
            assert part.device is device
            expected = np.broadcast_to(np.asarray(source).astype(native.dtype), (3, 4))
            check_same(part.numpy(), expected.copy())


def test_arrays_keep_their_dtypes_where_shapes_are_joined(device: wg.Device) -> None:
    """An array joined to tensors is cast where that is safe, as NumPy does."""
    x: Any = wg.asarray(np.arange(3, dtype=np.int32), device=device)
    first, second, third = numpy.broadcast_arrays(np.array([[1.5], [2.5]]), x, 7)
    assert (first.dtype, second.dtype, third.dtype) == (np.float64, np.int32, np.asarray(7).dtype)
    assert third.tolist() == [[7] * 3] * 2
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1
    narrow: Any = np.array([-1], np.int8)
    check_same(wg.concat([narrow, x]).numpy(), np.arange(-1, 3, dtype=np.int32))
    with pytest.raises(TypeError, match=r"^numpy\.broadcast_arrays: .*a sequence of tensors"):
        numpy.broadcast_arrays(x, [x, x])
    with pytest.raises(TypeError, match=r"^numpy\.broadcast_arrays: .*dtype <U1"):
        numpy.broadcast_arrays(x, np.array(["a"]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64"])
def test_numbers_in_a_tensor_choose_without_being_read(device: wg.Device, dtype: str) -> None:
    choices, numbers = numbered((2, 3, 4), "int16"), np.array([1, 0, 0, 1], dtype)
    x, a = (wg.asarray(each, device=device) for each in (choices, numbers))
    expected = np.choose(numbers, choices)
    for found in (
        numpy.choose(a, x),
        numpy.choose(a, [*x]),
        wg.capture(numpy.choose, a=a, choices=x)(a=a, choices=x),
    ):
        check_same(found.numpy(), expected)
    if dtype == "int8":
        outside = wg.asarray(np.array([9, -9, -1, 0], dtype), device=device)
        check_same(numpy.choose(outside, x).numpy(), np.choose([1, 0, 1, 0], choices))


def test_masks_in_tensors_select_without_being_read(device: wg.Device) -> None:
    masks = numbered((3, 4), "int8") % 3 == 0, numbered((1, 4), "int8") % 2 == 0
    arrays = numbered((3, 4), "float32"), numbered((3, 1), "float32"), numbered((4,), "float32")
    first, second = (wg.asarray(mask, device=device) for mask in masks)
    x, y, z = (wg.asarray(array, device=device) for array in arrays)
    program = wg.capture(lambda x, y: numpy.select([first, second], [x, y], z), x=x, y=y)
    check_same(program(x=x, y=y).numpy(), np.select(masks, arrays[:2], arrays[2]))
    check_same(numpy.select([first], [7]).numpy(), np.select(masks[:1], [7]))
    check_same(numpy.where(first, z, y).numpy(), np.where(masks[0], arrays[2], arrays[1]))
    with pytest.raises(wg.ComputationRefused, match=r"numpy\.where: a condition alone: computes indices"):
        np.where(first)
    with pytest.raises(wg.ComputationRefused, match="condition has dtype float32: comparing with 0 computes"):
        np.where(x, x, x)
    refused: dict[str, Callable[[], Any]] = {
        "the common dtype is float64: must be float32": lambda: numpy.select([first], [x], np.float64(1)),
        r"condlist\[0\] has dtype float32: must be bool": lambda: numpy.select([x], [x]),
        "indices have dtype float32: must be integers": lambda: numpy.choose(x, [x]),
    }
    for message, call in refused.items():
        with pytest.raises(TypeError, match=message):
            call()


def test_copyto_writes_into_tensors(device: wg.Device) -> None:
    array = numbered((3, 4), "int16")
    x: Any = wg.asarray(array, device=device)
    other = array.copy()
    for source in (7, array[1], array[::-1].copy()):
        numpy.copyto(x[:, ::-1], source)
        numpy.copyto(other[:, ::-1], source)
        check_same(x.numpy(), other)
    with pytest.raises(TypeError, match=r"numpy\.copyto: dst is of type ndarray: must be a Tensor"):
        numpy.copyto(array, x)
    with pytest.raises(TypeError, match=r"numpy\.copyto: where has dtype int64: must be bool"):
        numpy.copyto(x, 7, where=wg.asarray(np.arange(4), device=device))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe", "sometimes"])
def test_copyto_casts_arrays_as_numpy_does(device: wg.Device, casting: Any) -> None:
    """And masks; or raises the same kind of exception, with nothing written."""
    masks: tuple[Any, ...] = (
        True,
        np.True_,
        3.2,
        0,
        [1, 0, 2, 0],
        [[True], [False], [True]],
        np.arange(4),
        "x",
    )
    masks += np.arange(4) > 1, np.ones((2, 3, 4), bool), wg.asarray([True, False, True, True], device=device)
    sources = 1, 300, 2.5, 1j, True, np.int8(3), np.float64(3), np.arange(4), np.arange(4.0), [[1], [2], [3]]
    cases = [*((source, True) for source in sources), *((2, where) for where in masks)]
    for dtype in ("bool", "uint8", "float32"):
        array = numbered((len(cases), 3, 4), dtype)
        x = wg.asarray(array, device=device)
        for number, (source, where) in enumerate(cases):
            mask = where.numpy() if isinstance(where, wg.Tensor) else where
            found = outcome(partial(numpy.copyto, src=source, casting=casting, where=where), x[number])
            expected = outcome(partial(numpy.copyto, src=source, casting=casting, where=mask), array[number])
            assert type(found) is type(expected), (found, expected)
        check_same(x.numpy(), array)


def test_a_tensor_like_another_one(device: wg.Device) -> None:
    x: Any = wg.asarray(numbered((3, 4), "int16"), device=device).T
    made: Any = numpy.empty_like(x)
    assert (made.shape, made.dtype.name, made.is_packed, made.device) == ((4, 3), "int16", True, device)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert numpy.zeros_like(x, device=device).device is device


def test_arrays_like_a_tensor_are_uploaded_to_its_device(device: wg.Device) -> None:
    array = numbered((3, 4), "int16")
    x: Any = wg.asarray(array, device=device).T
    cases: tuple[Callable[..., Any], ...] = (
        *(numpy.asarray, numpy.asanyarray, numpy.ascontiguousarray, numpy.array),
        lambda a, **like: numpy.asarray(a, "float32", **like),
        lambda a, **like: numpy.asarray(a, dtype="u1", order="C", **like),
        lambda a, **like: numpy.array(a, ndmin=3, **like),
    )
    for case in cases:
        for source in (array[::-1], array.tolist(), 7, np.float32(2.5)):
            made = case(source, like=x)
            assert made.device is device
            check_same(made.numpy(), np.asarray(case(source)))
    assert numpy.asarray(x, like=x) is x
    assert numpy.array(x, like=x).buffer is not x.buffer
    for options in ({}, {"ndmin": 2}, {"order": "F"}):
        assert numpy.array(x, copy=False, like=x, **options) is x
    assert numpy.array(x, copy=False, ndmin=3, like=x).shape == (1, 4, 3)
    with pytest.raises(ValueError, match=r"numpy\.array: .*copied to order C"):
        numpy.array(x, copy=0, order="C", like=x)
    assert numpy.atleast_2d(x) is x
    assert numpy.ascontiguousarray(x.T, like=x).buffer is x.buffer
    assert numpy.ascontiguousarray(x, like=x).is_packed
    for order in "CF":
        nested = numpy.asarray([x, x.numpy()], like=x, order=order)
        check_same(nested.numpy(), np.asarray([x.numpy()] * 2))
        assert nested.T.is_packed == (order == "F")
    with pytest.raises(NotImplementedError, match=r"^numpy\.arange: .*: wg.arange\(stop, device=x.device\)"):
        numpy.arange(3, like=x)
    assert {each.__name__ for each in LIKE} == {"array", "asanyarray", "asarray", "ascontiguousarray"}


def test_shared_memory(device: wg.Device) -> None:
    x: Any = wg.asarray(numbered((6,), "int16"), device=device)
    for function in (numpy.may_share_memory, numpy.shares_memory):
        assert function(x, x[::-2])
        assert not function(x[:3], x[3:])
        assert not function(x, x.copy())
        assert not function(x, np.arange(6))
        assert not function(x[:0], x)
    assert numpy.may_share_memory(x[::2], x[1::2])
    assert not numpy.shares_memory(x[::2], x[1::2])
    with pytest.raises(np.exceptions.TooHardError):
        numpy.shares_memory(x[::2], x[::-2], max_work=0)


def dispatched() -> list[Any]:
    """NumPy's functions that ask their arguments what to do."""
    modules = (np, np.linalg, np.fft)
    found = {each for module in modules for each in vars(module).values() if hasattr(each, "_implementation")}
    return sorted(found, key=lambda each: (str(each.__module__), each.__name__))


def refusal_of(call: Callable[..., Any], *arguments: Any) -> NotImplementedError:
    """The refusal, which is no TypeError."""
    with pytest.raises(NotImplementedError) as refused:
        call(*arguments)
    return refused.value


def test_every_other_function_is_refused_by_its_name() -> None:
    x = unread((3, 4))
    functions = [function for function in dispatched() if function not in FUNCTIONS]
    assert len(functions) > 180
    for function in functions:
        error = refusal_of(x.__array_function__, function, (wg.Tensor,), (x,), {})
        assert str(error).startswith(f"{function.__module__}.{function.__name__}: ")
        computes = function.__name__ not in INSTEAD
        assert isinstance(error, wg.ComputationRefused) is computes
        assert str(error).endswith(REMEDY if computes else INSTEAD[function.__name__])
    for call in (np.mean, np.sum, np.sort, np.linalg.norm, np.fft.fft, np.unique, np.isclose):
        arguments = (x,) * (2 if call is np.isclose else 1)
        error = refusal_of(call, *arguments)
        assert isinstance(error, wg.ComputationRefused)
        assert str(error).startswith(f"{call.__module__}.{call.__name__}: tensors are moved")


def test_functions_that_only_move_data_name_what_does_it() -> None:
    x = unread((3, 4))
    calls: dict[str, Callable[[], Any]] = {
        "numpy.array_repr": lambda: np.array_repr(x),
        "numpy.common_type": lambda: np.common_type(x),
    }
    for name, call in calls.items():
        error = refusal_of(call)
        assert not isinstance(error, wg.ComputationRefused)
        instead = re.escape(INSTEAD[name.rpartition(".")[-1]])
        assert re.fullmatch(rf"{name}: not available for tensors; use instead: {instead}", str(error))


def test_the_table_names_functions_of_numpys_own_parameters() -> None:
    """By which callers may name them."""
    written = "copyto", "empty_like", "fill_diagonal", "place", "put", "put_along_axis", "putmask"
    windows = np.lib.stride_tricks.sliding_window_view
    saved = "save", "savetxt", "savez", "savez_compressed"
    names = *EVERYTHING, *INDICES, *written, *saved, "ix_"
    assert {windows, *(attrgetter(name)(np) for name in names)} == set(FUNCTIONS)
    for theirs, ours in FUNCTIONS.items():
        expected = [name for name in inspect.signature(theirs).parameters if name != "kwargs"]
        parameters = inspect.signature(ours).parameters
        if "options" not in parameters:
            assert set(expected) <= set(parameters), theirs


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: numpy.concatenate([x, x], out=np.zeros((6, 4))),
            TypeError,
            "concatenate: out is of type ndarray",
        ),
        (
            lambda x: np.take(x, [0], out=np.zeros(1)),
            TypeError,
            "take: out is of type ndarray: must be a Tensor",
        ),
        (
            lambda x: np.take(x, x, mode="wrap"),
            ValueError,
            "take: mode = 'wrap': must be 'raise' or 'clip', or",
        ),
        (
            lambda x: np.pad(x, 1, "mean"),
            wg.ComputationRefused,
            "pad: mode = 'mean' computes: must be one of",
        ),
        (
            lambda x: np.pad(x, 1, "linear_ramp", end_values=2),
            wg.ComputationRefused,
            "pad: mode = 'linear_ramp' computes",
        ),
        (
            lambda x: np.pad(x, 1, "reflect", reflect_type="odd"),
            wg.ComputationRefused,
            "pad: reflect_type = 'odd': computes",
        ),
        (
            lambda x: numpy.array_split(x, 0),
            ValueError,
            "array_split: indices_or_sections = 0: must be at least 1",
        ),
        (
            lambda x: numpy.array_split(x, 2.5),
            TypeError,
            "array_split: indices_or_sections = 2.5: must be an int",
        ),
        (
            lambda x: np.transpose(x, (0, 0)),
            ValueError,
            "transpose: axes = .* an axis is repeated",
        ),
    ],
)
def test_unsupported_options_are_refused(call: Case, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=rf"^numpy\.{words}"):
        call(unread((3, 4)))


def test_arrays_of_other_libraries_are_asked_next() -> None:
    class Other:
        def __array_function__(self, *_: Any) -> str:
            return "asked"

    other: Any = Other()
    assert numpy.concatenate([unread((3, 4)), other]) == "asked"
    assert numpy.mean(unread((3, 4)), where=other) == "asked"


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_subword_indices_take_of_long_dimensions(device: wg.Device, mode: Any) -> None:
    """NumPy's integers of 8 bits do not compare with sizes that they do not hold."""
    array = np.arange(300)
    indices = np.array([100, 127], np.int8)
    found: Any = np.take(wg.asarray(array, device=device), indices, mode=mode)
    check_same(found.numpy(), np.take(array, indices, mode=mode))
