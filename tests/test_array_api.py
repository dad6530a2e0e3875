"""`wgslice.array_api` compared with array_api_strict: names, signatures, bits, types and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from math import prod
from typing import Any

import array_api_strict
import numpy as np
import pytest
from helpers import check_same
from hypothesis import given
from hypothesis import strategies as st
from moving import Pair, axis_of, numbered, pairs, shapes, shares

import wgslice as wg
from wgslice import array_api
from wgslice.array_api import REFUSED
from wgslice.tensors.uncomputed import INSTEAD, REMEDY

xp: Any = array_api
strict: Any = array_api_strict

STANDARD = ["bool", "uint8", "int16", "float32", "int64", "complex64", "complex128"]  # float16 is not
VIEWS = {"broadcast_to", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "squeeze"}
WORKS_OF_THE_HOST = [name for name in xp.__all__ if inspect.isfunction(getattr(xp, name))]


def bare(function: Any) -> str:
    """A signature without annotations; strict has defaults of its own for what it leaves out."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=each.empty, default=None if "UNDEF" in repr(each.default) else each.default)
        for each in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


@pytest.mark.parametrize("name", WORKS_OF_THE_HOST)
def test_signatures_are_the_standards(name: str) -> None:
    assert bare(getattr(xp, name)) == bare(getattr(strict, name))
    assert inspect.getdoc(getattr(xp, name))


def test_every_name_of_the_standard_is_there_or_refused() -> None:
    own = {"ArrayAPIStrictFlags", "Device", "__version__", "fft", "linalg"}
    own |= {f"{verb}_array_api_strict_flags" for verb in ("get", "set", "reset")}
    assert not set(xp.__all__) & set(REFUSED)
    assert {*xp.__all__, *REFUSED} == set(strict.__all__) - own
    assert xp.__array_api_version__ == strict.__array_api_version__
    assert set(dir(xp)) == {*xp.__all__, "__all__", "__doc__"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_computes_refuses_by_name(name: str) -> None:
    function = getattr(xp, name)
    assert function.__name__ == name
    computes = name not in INSTEAD
    kind, words = (wg.ComputationRefused, REMEDY) if computes else (NotImplementedError, INSTEAD[name])
    with pytest.raises(NotImplementedError, match=rf"^{name}: .*{re.escape(words)}$") as refused:
        function("anything", axis=0)
    assert type(refused.value) is kind


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex64", "M8[s]"])
def test_any_of_one_element_is_its_truth_value(device: wg.Device, dtype: str) -> None:
    """By which array_api_compat finds that tensors are not lazy."""
    for count in (0, 1):
        for shape in ((), (1,), (1, 1)):
            array = np.full(shape, count, dtype)
            found = xp.any(xp.asarray(array, device=device))
            assert (found.shape, found.dtype, found.device) == ((), xp.bool, device)
            assert bool(found) is bool(array.any())
    nothing = xp.any(xp.zeros((0, 2), dtype=dtype, device=device))
    assert bool(nothing) is False
    point = xp.reshape(xp.ones((2, 3), dtype=dtype, device=device), (-1,))[0]
    assert bool(xp.any(point)) is True
    with pytest.raises(wg.ComputationRefused, match=r"^any: tensors are moved"):
        xp.any(xp.ones(2, device=device))


@pytest.mark.parametrize("name", ["linalg", "fft", "nothing_of_this_name"])
def test_what_the_standard_leaves_open_is_absent(name: str) -> None:
    assert not hasattr(xp, name)


def test_constants_and_dtypes() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(xp.nan)
    for name, dtype in xp.__array_namespace_info__().dtypes().items():
        assert dtype is getattr(xp, name)
        assert dtype == np.dtype(name)


def converted(pair: Pair) -> Any:
    """The same array of array_api_strict's."""
    return strict.asarray(pair.array.copy())


def check_alike(found: Any, expected: Any) -> None:
    """Equal in elements, shape and type; also if there are several."""
    if isinstance(expected, tuple | list):
        assert type(found) is type(expected)
        for one, other in zip(found, expected, strict=True):
            check_alike(one, other)
    else:
        check_same(found.numpy(), np.asarray(expected))


def drawn_axes(draw: Any, rank: int) -> tuple[int, ...]:
    """Some dimensions, each at most once."""
    axes = st.lists(axis_of(rank), unique_by=lambda axis: axis % rank, max_size=rank)
    return tuple(draw(axes)) if rank else ()


# What functions of one array take behind that, of its sizes and rank.
ARGUMENTS: dict[str, Callable[[Any, tuple[int, ...], int], tuple[Any, ...]]] = {
    "broadcast_to": lambda draw, sizes, rank: (
        (draw(st.integers(0, 3)), *(draw(st.integers(0, 3)) if size == 1 else size for size in sizes)),
    ),
    "moveaxis": lambda draw, sizes, rank: moves(draw, rank),
    "permute_dims": lambda draw, sizes, rank: (tuple(draw(st.permutations(range(rank)))),),
    "repeat": lambda draw, sizes, rank: (draw(st.integers(0, 3)),),
    "reshape": lambda draw, sizes, rank: ((prod(sizes),),),
    "roll": lambda draw, sizes, rank: (draw(st.integers(-9, 9)),),
    "squeeze": lambda draw, sizes, rank: (tuple(axis for axis in range(rank) if sizes[axis] == 1),),
    "tile": lambda draw, sizes, rank: (tuple(draw(st.lists(st.integers(0, 3), max_size=4))),),
}
OPTIONS: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "expand_dims": lambda draw, rank: {"axis": draw(axis_of(rank + 1))},
    "flip": lambda draw, rank: {"axis": draw(st.sampled_from([None, drawn_axes(draw, rank)]))},
    "repeat": lambda draw, rank: {"axis": draw(st.one_of(st.none(), axis_of(rank))) if rank else None},
    "reshape": lambda draw, rank: {"copy": draw(st.sampled_from([None, True]))},
    "roll": lambda draw, rank: {"axis": draw(st.sampled_from([None, drawn_axes(draw, rank) or None]))},
    "tril": lambda draw, rank: {"k": draw(st.integers(-6, 6))},
    "triu": lambda draw, rank: {"k": draw(st.integers(-6, 6))},
    "unstack": lambda draw, rank: {"axis": draw(axis_of(rank))},
}


def moves(draw: Any, rank: int) -> tuple[Any, ...]:
    """Some dimensions, and as many places."""
    source = drawn_axes(draw, rank)
    return source, tuple(draw(st.permutations(range(rank))))[: len(source)]


OF_ONE = [
    *("broadcast_to", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "repeat"),
    *("reshape", "roll", "squeeze", "tile", "tril", "triu", "unstack", "zeros_like", "ones_like"),
]


@pytest.mark.parametrize("name", OF_ONE)
@given(data=st.data())
def test_functions_of_one_array(device: wg.Device, name: str, data: st.DataObject) -> None:
    least = {"matrix_transpose": 2, "tril": 2, "triu": 2, "unstack": 1}.get(name, 0)
    dtype = data.draw(st.sampled_from(STANDARD))
    x = data.draw(pairs(device, shapes(least=least, most=4), dtype))
    shape, rank = x.array.shape, x.array.ndim
    arguments = ARGUMENTS[name](data.draw, shape, rank) if name in ARGUMENTS else ()
    options = OPTIONS[name](data.draw, rank) if name in OPTIONS else {}
    found = getattr(xp, name)(x.tensor, *arguments, **options)
    check_alike(found, getattr(strict, name)(converted(x), *arguments, **options))
    if name in VIEWS:
        assert shares(found, x.tensor)


@pytest.mark.parametrize("name", ["concat", "stack", "broadcast_arrays", "meshgrid"])
@given(data=st.data())
def test_functions_of_several_arrays(device: wg.Device, name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1, most=1 if name == "meshgrid" else 3))
    count = data.draw(st.integers(1, 3))
    given_pairs = [data.draw(pairs(device, shape, "int16", 1 + 100 * number)) for number in range(count)]
    tensors, arrays = [pair.tensor for pair in given_pairs], [converted(pair) for pair in given_pairs]
    if name in ("concat", "stack"):
        axis = data.draw(axis_of(len(shape)))
        check_alike(getattr(xp, name)(tensors, axis=axis), getattr(strict, name)(arrays, axis=axis))
    else:
        check_alike(getattr(xp, name)(*tensors), getattr(strict, name)(*arrays))


@given(data=st.data(), kind=st.sampled_from(["int64", "int32", "uint8"]))
def test_indices_are_tensors(device: wg.Device, data: st.DataObject, kind: str) -> None:
    """Negative ones count from the end."""
    x = data.draw(pairs(device, shapes(least=1, most=3, smallest=1), "float32"))
    axis = data.draw(axis_of(x.array.ndim))
    size = x.array.shape[axis]
    index = st.integers(0 if kind == "uint8" else -size, size - 1)
    indices = np.array(data.draw(st.lists(index, max_size=5)), kind)
    found = xp.take(x.tensor, wg.asarray(indices, device=device), axis=axis)
    check_alike(found, strict.take(converted(x), strict.asarray(indices), axis=axis))
    turned = np.moveaxis(x.array, axis, -1)
    along = np.moveaxis(np.broadcast_to(indices, (*turned.shape[:-1], len(indices))), -1, axis).copy()
    found = xp.take_along_axis(x.tensor, wg.asarray(along, device=device), axis=axis)
    check_alike(found, strict.take_along_axis(converted(x), strict.asarray(along), axis=axis))


def test_repeats_may_be_a_tensor(device: wg.Device) -> None:
    array, counts = numbered((2, 3), "int16"), np.array([2, 0, 1])
    found = xp.repeat(wg.asarray(array, device=device), wg.asarray(counts, device=device), axis=1)
    check_same(found.numpy(), np.repeat(array, counts, axis=1))


@pytest.mark.parametrize("dtype", [None, "int8", "float32", "complex64"])
@pytest.mark.parametrize("numbers", [(5,), (2, 9), (9, 2, -3), (0.5, 3.25, 0.75), (3, 3)])
def test_ranges(device: wg.Device, numbers: tuple[Any, ...], dtype: str | None) -> None:
    kind = None if dtype is None else getattr(strict, dtype)
    if dtype is None or (dtype[0] != "c" and not isinstance(numbers[0], float)):
        found = xp.arange(*numbers, dtype=dtype, device=device)
        check_alike(found, strict.arange(*numbers, dtype=kind))
    if len(numbers) == 2 and dtype != "int8":
        found = xp.linspace(*numbers, 7, dtype=dtype, endpoint=False, device=device)
        check_alike(found, strict.linspace(*numbers, 7, dtype=kind, endpoint=False))


@given(rows=st.integers(0, 6), columns=st.integers(0, 6), k=st.integers(-7, 7))
def test_eye(device: wg.Device, rows: int, columns: int, k: int) -> None:
    check_alike(xp.eye(rows, columns, k=k, device=device), strict.eye(rows, columns, k=k))
    check_alike(xp.eye(rows, dtype="int16", device=device), strict.eye(rows, dtype=strict.int16))


@pytest.mark.parametrize("value", [True, 7, 2.5, 1 + 2j, -0.0])
def test_defaults_of_numbers(device: wg.Device, value: Any) -> None:
    check_alike(xp.full((2, 3), value, device=device), strict.full((2, 3), value))
    check_alike(xp.asarray(value, device=device), strict.asarray(value))
    check_alike(xp.asarray([[value]], device=device), strict.asarray([[value]]))
    for name in ("zeros", "ones"):
        check_alike(getattr(xp, name)(3, device=device), getattr(strict, name)(3))
    assert xp.empty((), device=device).dtype == strict.empty(()).dtype._np_dtype
    like = xp.asarray([1, 2], dtype=xp.int16, device=device)
    assert xp.empty_like(like, dtype=xp.float32).dtype == xp.float32
    check_same(xp.full_like(like, 7).numpy(), np.array([7, 7], np.int16))


def test_copies_are_made_as_asked(device: wg.Device) -> None:
    x = xp.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device)
    for same in (
        xp.asarray(x),
        xp.asarray(x, copy=False),
        xp.asarray(x, dtype=xp.int16, device=device),
        xp.from_dlpack(x),
        xp.from_dlpack(x, copy=False),
        xp.astype(x, xp.int16, copy=False),
        x.to_device(device),
    ):
        assert same is x
    for copied in (
        xp.asarray(x, copy=True),
        xp.from_dlpack(x, copy=True),
        xp.astype(x, xp.int16),
        xp.reshape(x, (3, 2), copy=True),
        xp.reshape(x.T, (6,)),
    ):
        assert not shares(copied, x)
    for view in (xp.reshape(x, (3, 2)), xp.reshape(x, (3, 2), copy=False), x.mT):
        assert shares(view, x)
    with pytest.raises(ValueError, match=r"reshape: .* copy"):
        xp.reshape(x.T, (6,), copy=False)
    with pytest.raises(ValueError, match="asarray: copy=False: elements have to be copied from this"):
        xp.asarray([1], copy=False)
    with pytest.raises(BufferError, match=r"from_dlpack: .* without a copy"):
        xp.from_dlpack(np.arange(3), copy=False)
    with pytest.raises(wg.ComputationRefused, match="asarray: dtype float32: the tensor has int16"):
        xp.asarray(x, dtype=xp.float32)
    with pytest.raises(wg.ComputationRefused, match="astype: int16 to float32: nothing is converted"):
        xp.astype(x, xp.float32)


def test_sequences_of_tensors_are_joined_without_being_read(device: wg.Device) -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    x = wg.asarray(array, device=device)
    for make in (
        lambda x: [x],
        lambda x: (x[0], np.array([5, 6, 7], np.int8)),
        lambda x: [[x[0, 0], np.int16(5)], [x[1, 2], x[1, 1]]],
        lambda x: [[[x[:, ::-1]]], [[x]]],
        lambda x: [x[:0], np.empty((0, 3), np.int16)],
    ):
        found = wg.capture(lambda x, make=make: xp.asarray(make(x), dtype=xp.int16), x=x)(x=x)
        assert found.is_packed
        check_same(found.numpy(), np.asarray(make(array), np.int16))
    with pytest.raises(ValueError, match=r"asarray: array has parts of shapes \(2, 3\), \(3,\): must be"):
        xp.asarray([x, x[0]])
    with pytest.raises(ValueError, match="asarray: copy=False"):
        xp.asarray([x, x], copy=False)
    for other in (wg.asarray(array.astype(np.int8), device=device), array.astype(np.int64)):
        with pytest.raises(wg.ComputationRefused, match=r"asarray: dtype int16: the \w+ has int"):
            xp.asarray([x, other])


def test_a_tensor_leads_to_its_namespace(device: wg.Device) -> None:
    x = wg.asarray([1, 2, 3], device=device)
    assert x.__array_namespace__() is array_api
    for version in ("2021.12", "2024.12", xp.__array_api_version__):
        assert x.__array_namespace__(api_version=version) is array_api
    with pytest.raises(ValueError, match=r"__array_namespace__: api_version = .2020.12.: must be one"):
        x.__array_namespace__(api_version="2020.12")
    assert x.device is device


def test_tensors_move_between_devices(device: wg.Device) -> None:
    other = wg.Device.request(device.adapter)
    x = wg.asarray(np.arange(6).reshape(2, 3), device=device)[:, ::-1]
    moved = x.to_device(other)
    assert moved.device is other
    check_same(moved.numpy(), x.numpy())
    assert xp.astype(x, x.dtype, device=other).device is other
    assert xp.asarray(x, device=other).device is other
    with pytest.raises(ValueError, match=r"asarray: copy=False: elements have to be copied from .* to "):
        xp.asarray(x, device=other, copy=False)
    with pytest.raises(ValueError, match="to_device: stream = 1: must be None"):
        x.to_device(other, stream=1)
    with pytest.raises(
        ValueError, match=r"concat: arrays\[1\]: .* is not on .* but on another Device object: use one device"
    ):
        xp.concat([x, moved])


def test_inspection(default: wg.Device) -> None:
    info, strictly = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.default_device() is default
    assert info.devices() == (default,)
    assert info.capabilities() == {**strictly.capabilities(), "max dimensions": 8}
    assert {name: str(dtype) for name, dtype in info.default_dtypes(device=default).items()} == {
        "real floating": "float64",
        "complex floating": "complex128",
        "integral": "int64",
        "indexing": "int64",
    }
    for kind in (None, "bool", "integral", "numeric", ("signed integer", "complex floating")):
        assert set(info.dtypes(kind=kind)) == set(strictly.dtypes(kind=kind))
    with pytest.raises(TypeError, match="must be a Device"):
        info.dtypes(device=3)


DTYPES = ["bool", *("int8", "int64", "uint8", "uint64", "float32", "float64", "complex64", "complex128")]
KINDS = [
    *("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"),
    "numeric",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_data_types(dtype: str) -> None:
    ours, theirs = getattr(xp, dtype), getattr(strict, dtype)
    for kind in (*KINDS, ("bool", "integral")):
        assert xp.isdtype(ours, kind) is strict.isdtype(theirs, kind)
    for other in DTYPES:
        assert xp.isdtype(ours, getattr(xp, other)) is (dtype == other)
        assert xp.isdtype(ours, ("bool", getattr(xp, other))) is (dtype in (other, "bool"))
        try:
            expected = strict.result_type(theirs, getattr(strict, other))
        except TypeError:
            continue  # left open, NumPy's then
        assert xp.result_type(ours, getattr(xp, other)) == expected._np_dtype
        assert xp.result_type(ours, getattr(np, other.replace("bool", "bool_"))(1)) == expected._np_dtype
        assert xp.can_cast(ours, getattr(xp, other)) is (expected._np_dtype == np.dtype(other))
    assert xp.result_type(ours, 1 if dtype != "bool" else True) == ours


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_limits_of_floats(dtype: str) -> None:
    ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, name) == getattr(theirs, name)
        assert type(getattr(ours, name)) is (int if name == "bits" else float)
    assert ours.dtype == theirs.dtype._np_dtype


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64"])
def test_limits_of_integers(dtype: str) -> None:
    ours, theirs = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
    for name in ("bits", "max", "min"):
        assert getattr(ours, name) == getattr(theirs, name)
        assert type(getattr(ours, name)) is int
    assert ours.dtype == np.dtype(dtype)


def test_repeat_takes_bools_and_refuses_nested_counts(device: wg.Device) -> None:
    array = numbered((2, 3), "int16")
    x = wg.asarray(array, device=device)
    counts = np.array([True, False, True])
    check_same(xp.repeat(x, wg.asarray(counts, device=device), axis=1).numpy(), array.repeat(counts, axis=1))
    check_same(xp.repeat(x, wg.asarray(2, device=device), axis=1).numpy(), array.repeat(2, axis=1))
    with pytest.raises(ValueError, match=r"(?s)repeat: repeats = array\(.*: must be one integer"):
        xp.repeat(x, wg.asarray([[1, 2, 3], [3, 4, 5]], device=device))


@given(data=st.data())
def test_where_is_numpys(device: wg.Device, data: st.DataObject) -> None:
    """Of tensors that broadcast, of a number in either place, and of a tensor of rank 0."""
    shape = data.draw(shapes())
    x = data.draw(pairs(device, shape))
    less = tuple(data.draw(st.sampled_from([1, size])) for size in shape)
    y = data.draw(pairs(device, less, x.array.dtype.name, 101))
    mask = np.asarray(np.arange(np.prod(less, dtype=int)).reshape(less) * 7 % 5 < 3)
    condition = wg.asarray(mask, device=device)
    number = x.array.dtype.type(1)
    others = [y, (wg.asarray(number, device=device), number), (number.item(), number)]
    for ours, theirs in others:
        check_same(xp.where(condition, x.tensor, ours).numpy(), np.where(mask, x.array, theirs))
        check_same(xp.where(condition, ours, x.tensor).numpy(), np.where(mask, theirs, x.array))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_where_does_not_read_its_mask_back(device: wg.Device, dtype: str) -> None:
    x = wg.asarray(numbered((4, 6), dtype), device=device)
    condition = wg.asarray(np.eye(4, 6, dtype=bool), device=device)
    assert "mask" in str(wg.explain(xp.where, condition, x, 1))  # explaining raises for what reads back


@given(data=st.data())
def test_sliding_windows_are_numpys(device: wg.Device, data: st.DataObject) -> None:
    x = data.draw(pairs(device, shapes(least=1, most=4, smallest=1), "int16"))
    axes = data.draw(st.lists(axis_of(x.array.ndim), min_size=1, unique_by=lambda axis: axis % x.array.ndim))
    windows = [data.draw(st.integers(1, x.array.shape[axis])) for axis in axes]
    found = xp.lib.stride_tricks.sliding_window_view(x.tensor, windows, axes)
    assert shares(found, x.tensor)
    check_same(found.numpy(), np.lib.stride_tricks.sliding_window_view(x.array, windows, tuple(axes)).copy())


MASK = xp.ones(2, dtype="bool")
REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: xp.finfo(xp.int8), TypeError, "finfo: dtype int8: must be a floating-point one"),
    (lambda: xp.iinfo(xp.float32), TypeError, "iinfo: dtype float32: must be an integer one"),
    (lambda: xp.isdtype(xp.int8, "integers"), ValueError, "isdtype: kind = 'integers': must be a dtype or"),
    (lambda: xp.result_type(), ValueError, "result_type: name at least one tensor or dtype"),
    (lambda: xp.result_type(1, 2.5), ValueError, "result_type: name at least one tensor or dtype"),
    (lambda: xp.can_cast("text", xp.int8), TypeError, "can_cast: "),
    (lambda: xp.broadcast_shapes((2,), (3,)), ValueError, "broadcast_shapes: shape mismatch"),
    (lambda: xp.arange(1, 2, 0), ValueError, "arange: step = 0: must not be 0"),
    (lambda: xp.take([1], [0]), TypeError, "take: x is of type list: must be a Tensor"),
    (lambda: xp.take_along_axis([1], [0]), TypeError, "take_along_axis: x is of type list"),
    (lambda: xp.matrix_transpose([[1]]), TypeError, "matrix_transpose: x is of type list"),
    (lambda: xp.permute_dims([[1]], (0, 1)), TypeError, "permute_dims: x is of type list"),
    (
        lambda: xp.permute_dims(xp.ones((2, 3)), (0, 0)),
        ValueError,
        r"^permute_dims: axes = \(0, 0\): an axis is rep",
    ),
    (
        lambda: xp.squeeze([1], 0),
        TypeError,
        r"^squeeze: x is of type list: must be a Tensor; asarray\(x\) makes one",
    ),
    (lambda: xp.eye(3, k=1.5), TypeError, "^eye: k = 1.5: must be an integer"),
    (lambda: xp.reshape([1], (1,)), TypeError, "reshape: x is of type list"),
    (lambda: xp.astype([1], xp.int8), TypeError, "astype: x is of type list"),
    (lambda: xp.where([True], 1, 2), TypeError, "where: condition is of type list"),
    (
        lambda: xp.where(xp.ones(2), xp.ones(2), 2),
        TypeError,
        "where: condition has dtype float64: must be bool",
    ),
    (lambda: xp.where(xp.ones(2, dtype="bool"), 1, 2), TypeError, "where: x1 or x2 must be a Tensor"),
    (
        lambda: xp.where(xp.ones(2, dtype="bool"), xp.ones(2), xp.ones(2, dtype="int8")),
        TypeError,
        "where: x1 has dtype float64, x2 int8: must be equal",
    ),
    (
        lambda: xp.where(MASK, xp.ones(2, dtype="int8"), 1.5),
        TypeError,
        "^where: x2 = 1.5: must be a Tensor of dt",
    ),
    (
        lambda: xp.where(MASK, 1, MASK),
        TypeError,
        "^where: x1 = 1: must be a Tensor of dtype bool, or a number",
    ),
    (
        lambda: xp.where(MASK, xp.ones(2), [1, 2]),
        TypeError,
        r"^where: x2 = \[1, 2\]: must be a Tensor of dtype fl",
    ),
    (
        lambda: xp.lib.stride_tricks.sliding_window_view(xp.ones(2), 3),
        ValueError,
        r"sliding_window_view: window_shape = \(3,\): must be 0 to 2, the size, along axis 0",
    ),
    (
        lambda: xp.lib.stride_tricks.sliding_window_view(xp.ones(2), (1, 1)),
        ValueError,
        "sliding_window_view: Since axis is `None`, must provide window_shape for all dimensions",
    ),
    (
        lambda: xp.lib.stride_tricks.sliding_window_view(xp.ones((1,) * 5), (1,) * 5),
        ValueError,
        "sliding_window_view: the result would have rank 10: at most 8",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSALS)
def test_refusals_name_the_function(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_where_takes_numbers_of_the_dtype(device: wg.Device) -> None:
    mask = wg.asarray([True, False], device=device)
    check_same(
        xp.where(mask, np.True_, wg.asarray([False, False], device=device)).numpy(), np.array([True, False])
    )
    check_same(
        xp.where(mask, wg.zeros(2, "f4", device=device), np.float32(2)).numpy(), np.array([0, 2], "f4")
    )


def test_shapes_broadcast_without_arrays() -> None:
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert xp.broadcast_shapes() == ()
