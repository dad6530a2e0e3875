"""Functions of data types, and the standard's inspection; nothing is converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.arguments import MAX_RANK
from wgslice.dtypes import AnyDType, DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, Device, checked_device, default_device
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

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


@dataclass(frozen=True)
class IntegerInfo:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def astype(
    x: Tensor | NDArray[Any], dtype: DTypeLike, /, *, copy: bool = True, device: AnyDevice = None
) -> Tensor:
    """Copy a tensor, or return it where `copy` is False; raises ComputationRefused for a dtype not its own.

    Not of the standard: an array of NumPy's is converted by NumPy and uploaded, as xarray does it with masks.
    """
    if isinstance(x, np.ndarray):
        return asarray(x.astype(dtype), device=device)
    with named("astype"):
        check_tensor("x", x)
    own = x.astype(dtype, copy=False)
    moved = own if device is None else own.to_device(device)
    return moved.copy() if copy and moved is x else moved


def can_cast(from_: DTypeLike | Tensor, to: DTypeLike, /) -> bool:
    """Return whether a type becomes another without loss, by NumPy's rules; raises TypeError for no type."""
    with named("can_cast"):
        return bool(np.can_cast(dtype_of(from_), element_dtype(to)))


def finfo(type: DTypeLike | Tensor, /) -> FloatInfo:
    """Return limits of a floating-point type, as Python's numbers; raises TypeError for any other type."""
    with named("finfo"):
        dtype = dtype_of(type)
        if dtype.kind not in "fc":
            raise TypeError(f"dtype {dtype}: must be a floating-point one; iinfo knows integers")
        info: Any = np.finfo(cast("Any", dtype))
        eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
        return FloatInfo(info.bits, eps, most, least, normal, info.dtype)


def iinfo(type: DTypeLike | Tensor, /) -> IntegerInfo:
    """Return limits of an integer type; raises TypeError for any other type."""
    with named("iinfo"):
        dtype = dtype_of(type)
        if dtype.kind not in "iu":
            raise TypeError(f"dtype {dtype}: must be an integer one; finfo knows floating-point ones")
        info = np.iinfo(cast("Any", dtype))
        return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Return whether a type is another, of a kind such as "integral", or of any in a tuple of these.

    Raises ValueError for an unknown kind.
    """
    with named("isdtype"):
        given = element_dtype(dtype)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        found = False
        for each in kinds:
            if isinstance(each, str):
                if each not in KINDS:
                    known = ", ".join(map(repr, KINDS))
                    raise ValueError(f"kind = {each!r}: must be a dtype or one of {known}")
                found |= given.kind in KINDS[each]
            else:
                found |= given == element_dtype(each)
        return found


def result_type(*arrays_and_dtypes: Tensor | DTypeLike | complex) -> DType:
    """Return the type that these become together, by NumPy's rules; Python's numbers adapt to the others.

    Raises ValueError where there is neither a tensor nor a type.
    """
    with named("result_type"):
        if all(map(is_pythons, arrays_and_dtypes)):
            raise ValueError("name at least one tensor or dtype")
        given: list[Any] = [each if is_pythons(each) else dtype_of(each) for each in arrays_and_dtypes]
        found: DType = np.result_type(*given)
        return found


def is_pythons(value: object) -> bool:
    """Whether a number has no dtype; some of NumPy's numbers are Python's floats and complex ones too."""
    return isinstance(value, int | float | complex) and not isinstance(value, np.generic)


def dtype_of(given: Any) -> DType:
    """The type of a tensor or of one of NumPy's numbers, or a type itself."""
    return given.dtype if isinstance(given, Tensor) else element_dtype(given)


def default_dtype(dtype: AnyDType, *numbers: complex) -> DType:
    """The standard's default for the widest kind of some numbers, where no dtype is named."""
    if dtype is not None:
        return element_dtype(dtype)
    for kind in (complex, float):
        if any(isinstance(number, kind) for number in numbers):
            return np.dtype(DEFAULTS[kind])
    return np.dtype(DEFAULTS[int])


class Info:
    """What this namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Return that masks select, `repeat` takes a tensor of counts, and the maximum rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_RANK}

    def default_device(self) -> Device:
        """The device that is used where none is named."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """The default device; `Device.request` makes others of `adapters()`."""
        return (default_device(),)

    def default_dtypes(self, *, device: AnyDevice = None) -> dict[str, DType]:
        """The types of numbers that are given without one, the same on each device."""
        checked(device)
        return {
            "real floating": np.dtype(DEFAULTS[float]),
            "complex floating": np.dtype(DEFAULTS[complex]),
            "integral": np.dtype(DEFAULTS[int]),
            "indexing": np.dtype(DEFAULTS[int]),
        }

    def dtypes(
        self, *, device: AnyDevice = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's types, of some kinds or all, the same on each device."""
        checked(device)
        return {name: np.dtype(name) for name in STANDARD if kind is None or isdtype(name, kind)}


def checked(device: AnyDevice) -> None:
    """Refuse what is no device."""
    if device is not None:
        checked_device(device)
