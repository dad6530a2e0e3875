"""Computations that tensors refuse, by name; equality and hashes, which they have."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import check_same, on_one_adapter, unread

import wgslice as wg
from wgslice.tensors.uncomputed import INSTEAD, REMEDY

NUMBERS = [3, 2.5, 1j, True, np.float32(2), np.arange(3), [1, 2, 3], (0,)]
COMPARISONS: dict[str, Callable[..., Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "@": operator.matmul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "divmod": divmod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
INPLACE: dict[str, Callable[..., Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "@": operator.imatmul,
    "/": operator.itruediv,
    "&": operator.iand,
}
UNARY: dict[str, Callable[..., Any]] = {
    "-Tensor": operator.neg,
    "+Tensor": operator.pos,
    "~Tensor": operator.inv,
    "abs(Tensor)": abs,
}


@pytest.fixture
def x() -> Any:
    return unread((3,))


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The words of a ComputationRefused that says how to go on."""
    with pytest.raises(wg.ComputationRefused) as refused:
        call(*arguments, **options)
    words = str(refused.value)
    assert words.endswith(f": {REMEDY}")
    return words.removesuffix(f": {REMEDY}")


@pytest.mark.parametrize("symbol", [*COMPARISONS, *ARITHMETIC, *INPLACE])
@pytest.mark.parametrize("other", [*NUMBERS, "tensor"], ids=lambda other: type(other).__name__)
def test_operators_between_tensors_arrays_and_numbers(x: Any, symbol: str, other: Any) -> None:
    compute = {**COMPARISONS, **ARITHMETIC}[symbol]
    other = wg.Tensor(x.device, x.memory, x.dtype, x.layout) if isinstance(other, str) else other
    kind = type(other).__name__
    assert refusal(compute, x, other) == f"Tensor {symbol} {kind}"
    if symbol in INPLACE:
        assert refusal(INPLACE[symbol], x, other) == f"Tensor {symbol} {kind}"


@pytest.mark.parametrize("symbol", ARITHMETIC)
def test_operators_from_the_other_side(x: Any, symbol: str) -> None:
    for other in (3, 2.5, 1j, True):
        assert refusal(ARITHMETIC[symbol], other, x) == (f"{type(other).__name__} {symbol} Tensor")
    if symbol != "divmod":
        assert refusal(ARITHMETIC[symbol], np.arange(3), x).startswith("numpy.")


def test_comparisons_from_the_other_side(x: Any) -> None:
    assert refusal(lambda: x == 0) == "Tensor == int"
    assert refusal(lambda: np.arange(3) == x) == "numpy.equal"
    assert refusal(lambda: np.float32(3) < x) == "numpy.less"


@pytest.mark.parametrize("name", UNARY)
def test_operators_of_one_tensor(x: Any, name: str) -> None:
    assert refusal(UNARY[name], x) == name


def test_every_ufunc_is_refused_by_its_name(x: Any) -> None:
    ufuncs = [found for found in vars(np).values() if isinstance(found, np.ufunc)]
    assert len(ufuncs) > 80
    for ufunc in ufuncs:
        assert refusal(ufunc, *[x] * ufunc.nin) == f"numpy.{ufunc.__name__}"
    assert refusal(np.add.reduce, x) == "numpy.add.reduce"
    assert refusal(np.multiply.outer, np.arange(3), x) == "numpy.multiply.outer"
    assert refusal(np.negative, np.zeros(3), out=x) == "numpy.negative"


def test_membership_is_refused(x: Any) -> None:
    assert refusal(lambda: 3.0 in x) == "float in Tensor"
    assert refusal(lambda: x in x) == "Tensor in Tensor"


def test_tensors_are_found_by_identity(x: Any) -> None:
    """In lists, sets and dicts, and next to objects that are not numbers."""
    other = wg.Tensor(x.device, x.memory, x.dtype, x.layout)
    assert x in [x, other]
    assert [x, other].index(x) == 0
    assert x in (None, "name", x)
    assert len({x, other, x}) == 2
    assert {x: 1, other: 2}[other] == 2
    assert hash(x) == hash(x)
    assert refusal(lambda: x in [other, x]) == "Tensor == Tensor"


@pytest.mark.parametrize("other", [None, "name", object(), {1: 2}])
def test_objects_that_are_no_numbers_are_unequal(x: Any, other: Any) -> None:
    assert (x == other) is False
    assert (other == x) is False
    assert (x != other) is True
    with pytest.raises(TypeError):
        x < other  # noqa: B015 -- refuses
    with pytest.raises(TypeError, match=r"unsupported operand type"):
        x + other


def grid(*shape: int) -> Any:
    return np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)


DIAGONALS = [(0, 0, 1), (1, 0, 1), (-1, 2, 0), (-9, 1, -1), (2, -1, -2)]  # offset, axis1, axis2
REMEDIES: list[tuple[str, dict[str, Any]]] = [  # a name of NumPy's, and its parameters in order; x is first
    *(("common_type", {"x": x, "y": grid(2)}) for x in (grid(2), np.ones(2, np.complex64))),
    *(("compress", {"condition": [0, 1, 1], "x": grid(3, 4, 3), "axis": axis}) for axis in (0, -1, None)),
    *(("fftshift", {"x": grid(4, 5), "axes": axes}) for axes in ((0, 1), (-1,), (1, 0))),
    *(("ifftshift", {"x": grid(4, 5), "axes": axes}) for axes in ((0, 1), (-1,), (1, 0))),
    *(("resize", {"x": grid(2, 3), "shape": shape}) for shape in ((2, 2), (3, 5), (0,), ())),
    *(("transpose", {"x": grid(2, 3, 4), "axes": axes}) for axes in (None, (2, 0, 1))),
]


def on_device(value: Any, device: wg.Device) -> Any:
    """Arrays of numbers as tensors, also in lists."""
    if isinstance(value, list) and not isinstance(value[0], int):
        return [on_device(item, device) for item in value]
    return wg.asarray(value, device=device) if isinstance(value, np.ndarray) else value


def read_back(value: Any) -> Any:
    return value.numpy() if isinstance(value, wg.Tensor) else value


@on_one_adapter
@pytest.mark.parametrize("number", range(len(REMEDIES)), ids=[name for name, _ in REMEDIES])
def test_a_remedy_does_what_numpys_function_does(device: wg.Device, number: int) -> None:
    """Run as it is printed, with the parameters of the function."""
    name, given = REMEDIES[number]
    arrays = {key: value.copy() if key == "x" else value for key, value in given.items()}
    expected = getattr(np.fft if "shift" in name else np, name)(*arrays.values())
    names: dict[str, Any] = {"np": np, "wg": wg}
    for key, value in given.items():
        names[key] = value if key == "condition" else on_device(value, device)
    steps = ast.parse(INSTEAD[name]).body
    *_, last = steps
    if isinstance(last, ast.Expr):
        steps.pop()
    exec(compile(ast.Module(steps, []), name, "exec"), names)
    if isinstance(last, ast.Expr):
        found = eval(compile(ast.Expression(last.value), name, "eval"), names)
    else:  # it is written
        found, expected = (names["x"], arrays["x"]) if expected is None else (names["y"], expected)
    if isinstance(expected, tuple):
        for ours, numpys in zip(found, expected, strict=True):
            check_same(ours, numpys)
    elif isinstance(expected, type):
        assert found is expected
    else:
        check_same(read_back(found), expected)


def test_every_remedy_is_code() -> None:
    for code in INSTEAD.values():
        ast.parse(code)
