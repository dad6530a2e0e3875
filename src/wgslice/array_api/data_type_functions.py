"""Functions of data types, and the standard's inspection; nothing is converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.arguments import MAX_RANK
from wgslice.docstrings import NO_MEMORY, NO_TENSOR, UNREADABLE, documented
from wgslice.dtypes import AnyDType, DType, element_dtype
from wgslice.errors import fitted, named, public
from wgslice.gpu.device import AnyDevice, Device, checked_device, default_device
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

NO_TYPE = "TypeError", "An argument is not a dtype, or not one of elements of 1, 2, 4, 8 or 16 bytes."

# Of Python's numbers that are given without a data type.
DEFAULTS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}

# fmt: off
STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)
# fmt: on

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a floating-point type; of a complex one, those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@documented(
    ("Tensor", "`x` itself if `copy` is false and it is on the device, else packed in a new buffer."),
    NO_TENSOR,
    ("ComputationRefused", "`dtype` is not the tensor's own: nothing is converted."),
    UNREADABLE,
    NO_MEMORY,
    x=("Tensor", "Of any rank; an array of NumPy's is converted by NumPy and uploaded."),
    dtype=("dtype_like", "The tensor's own."),
    copy=("bool", "Whether to copy in any case."),
    device=("Device or str, optional", "Where the result is; the tensor's own by default."),
)
@fitted()
def astype(
    x: Tensor | NDArray[Any], dtype: DTypeLike, /, *, copy: bool = True, device: AnyDevice = None
) -> Tensor:
    """Copy a tensor of the same dtype, or return it where `copy` is False.

    Not of the standard: an array of NumPy's is converted and uploaded, which xarray needs for masks.

    >>> x = xp.asarray([1, 2])
    >>> xp.astype(x, xp.int64, copy=False) is x
    True
    """
    if isinstance(x, np.ndarray):
        return asarray(x.astype(dtype), device=device)
    with named("astype"):
        check_tensor("x", x)
    own = x.astype(dtype, copy=False)
    moved = own if device is None else own.to_device(device)
    return moved.copy() if copy and moved is x else moved


@documented(
    ("bool", "Whether every value of the one dtype is one of the other."),
    NO_TYPE,
    from_=("dtype_like or Tensor", "A dtype, or a tensor for its own."),
    to=("dtype_like", "The other dtype."),
)
@public()
def can_cast(from_: DTypeLike | Tensor, to: DTypeLike, /) -> bool:
    """Return whether a type becomes another without loss, by NumPy's rules.

    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    return bool(np.can_cast(dtype_of(from_), element_dtype(to)))


@documented(
    (
        "FloatInfo",
        "`bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`; of a complex one, of its parts.",
    ),
    ("TypeError", "The dtype is not a floating-point one."),
    type=("dtype_like or Tensor", "A dtype, or a tensor for its own."),
)
@public()
def finfo(type: DTypeLike | Tensor, /) -> FloatInfo:
    """Return limits of a floating-point type, as Python's numbers.

    >>> xp.finfo(xp.float32).bits
    32
    """
    dtype = dtype_of(type)
    if dtype.kind not in "fc":
        raise TypeError(f"dtype {dtype}: must be a floating-point one; iinfo knows integers")
    info: Any = np.finfo(cast("Any", dtype))
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, eps, most, least, normal, info.dtype)


@documented(
    ("numpy.iinfo", "`bits`, `max`, `min` and `dtype`."),
    ("TypeError", "The dtype is not an integer one."),
    type=("dtype_like or Tensor", "A dtype, or a tensor for its own."),
)
@public()
def iinfo(type: DTypeLike | Tensor, /) -> np.iinfo[Any]:
    """Return limits of an integer type.

    >>> xp.iinfo(xp.uint8).max
    255
    """
    dtype = dtype_of(type)
    if dtype.kind not in "iu":
        raise TypeError(f"dtype {dtype}: must be an integer one; finfo knows floating-point ones")
    return np.iinfo(cast("Any", dtype))


@documented(
    ("bool", "Whether the dtype is one of these."),
    NO_TYPE,
    ("ValueError", "A kind is unknown."),
    dtype=("dtype_like", "The dtype."),
    kind=("dtype_like, str or tuple", 'Another dtype, a kind such as "integral", or a tuple of these.'),
)
@public()
def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Return whether a dtype equals another, or is of a kind such as "integral", or any of a tuple of these.

    >>> xp.isdtype(xp.int8, "signed integer"), xp.isdtype(xp.int8, (xp.bool, "real floating"))
    (True, False)
    """
    given = element_dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for each in kinds:
        if isinstance(each, str) and each not in KINDS:
            known = ", ".join(map(repr, KINDS))
            raise ValueError(f"kind = {each!r}: must be a dtype or one of {known}")
    return any(
        given.kind in KINDS[each] if isinstance(each, str) else given == element_dtype(each) for each in kinds
    )


@documented(
    ("numpy.dtype", "The smallest that holds all values, by NumPy's rules."),
    NO_TYPE,
    ("ValueError", "There is neither a tensor nor a dtype."),
    arrays_and_dtypes=("Tensor, dtype_like or number", "At least one tensor or dtype."),
)
@public()
def result_type(*arrays_and_dtypes: Tensor | DTypeLike | complex) -> DType:
    """Return the dtype that arguments promote to, by NumPy's rules; Python's numbers adapt to the others.

    >>> xp.result_type(xp.uint8, xp.int8, 1)
    dtype('int16')
    """
    if all(map(is_pythons, arrays_and_dtypes)):
        raise ValueError("name at least one tensor or dtype")
    given: list[Any] = [each if is_pythons(each) else dtype_of(each) for each in arrays_and_dtypes]
    found: DType = np.result_type(*given)
    return found


def is_pythons(value: object) -> bool:
    """Whether a number has no dtype; some of NumPy's numbers are Python's floats and complex ones too."""
    return isinstance(value, int | float | complex) and not isinstance(value, np.generic)


def dtype_of(given: Any) -> DType:
    """Return the dtype of a tensor or a NumPy scalar, or the given dtype."""
    return given.dtype if isinstance(given, Tensor) else element_dtype(given)


def default_dtype(dtype: AnyDType, *numbers: complex) -> DType:
    """Return a given dtype, or the standard's default for the widest kind of some numbers."""
    if dtype is not None:
        return element_dtype(dtype)
    kinds = (kind for kind in (complex, float) if any(isinstance(number, kind) for number in numbers))
    return np.dtype(DEFAULTS[next(kinds, int)])


class Info:
    """Capabilities, dtypes and devices of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return support of masks and of counts in tensors, and the maximum rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_RANK}

    def default_device(self) -> Device:
        """Return the default device."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """Return the default device; `Device.request` makes others of `adapters()`."""
        return (default_device(),)

    def default_dtypes(self, *, device: AnyDevice = None) -> dict[str, DType]:
        """Return the default dtypes of numbers, the same on each device."""
        if device is not None:
            checked_device(device)
        kinds = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
        return {name: np.dtype(DEFAULTS[kind]) for name, kind in kinds.items()}

    def dtypes(
        self, *, device: AnyDevice = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the standard's dtypes of some or all kinds, the same on each device."""
        if device is not None:
            checked_device(device)
        return {name: np.dtype(name) for name in STANDARD if kind is None or isdtype(name, kind)}
