"""What tensors refuse to compute, by which name, and what they are meanwhile: keys, and themselves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wgslice as wg
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.tensors.uncomputed import REMEDY

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
    """A tensor without a device, which would fail if it were read."""
    nothing: Any = None
    device: wg.Device = nothing
    buffer: Buffer = nothing
    return wg.Tensor(device, buffer, np.dtype(np.float32), Layout.packed((3,)))


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
    other = wg.Tensor(x.device, x.buffer, x.dtype, x.layout) if isinstance(other, str) else other
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
    """In lists, sets and dicts, and beside what nobody computes with."""
    other = wg.Tensor(x.device, x.buffer, x.dtype, x.layout)
    assert x in [x, other]
    assert [x, other].index(x) == 0
    assert x in (None, "name", x)
    assert len({x, other, x}) == 2
    assert {x: 1, other: 2}[other] == 2
    assert hash(x) == hash(x)
    assert refusal(lambda: x in [other, x]) == "Tensor == Tensor"


@pytest.mark.parametrize("other", [None, "name", object(), {1: 2}])
def test_what_nobody_computes_with_is_another_thing(x: Any, other: Any) -> None:
    assert (x == other) is False
    assert (other == x) is False
    assert (x != other) is True
    with pytest.raises(TypeError):
        x < other  # noqa: B015 -- refuses
    with pytest.raises(TypeError, match=r"unsupported operand type"):
        x + other
