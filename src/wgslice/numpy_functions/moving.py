"""NumPy's functions that copy elements, in one submission."""

from __future__ import annotations

from typing import Any

from wgslice.arrays import padding, taking
from wgslice.numpy_functions.options import check_order, check_unused
from wgslice.tensors import writing
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["copy", "copyto", "pad", "take"]


def copy(a: Tensor, order: str = "K", subok: bool = False) -> Tensor:
    """Copy a tensor; packed, whatever its strides."""
    check_tensor("a", a)
    check_order(order, "CKA")
    return a.copy()


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write into a tensor."""
    if casting != "same_kind":
        raise ValueError(f"casting = {casting!r}: must be 'same_kind' for tensors")
    if where is not True:
        raise TypeError(f"where is of type {type(where).__name__}: must be left out; dst[mask] = src does it")
    writing.copyto(dst, src)


def pad(array: Tensor, pad_width: Any, mode: Any = "constant", **options: Any) -> Tensor:
    """Put a border around a tensor, by the modes that compute nothing."""
    constants = {"constant_values": options.pop("constant_values")} if "constant_values" in options else {}
    if options.get("reflect_type") == "even":  # what NumPy does without it
        options.pop("reflect_type")
    check_unused(**options)
    return padding.pad(array, pad_width, mode, **constants)


def take(a: Tensor, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    """Take elements along a dimension.

    Indices in a tensor are not read back: by default negative ones count from the end, and one that is out
    of range reads the nearest element; mode="clip" clips negative ones to 0, as NumPy does.
    """
    check_tensor("a", a)
    check_unused(out=out)
    if mode not in ("raise", "clip", "wrap") or (mode == "wrap" and isinstance(indices, Tensor)):
        raise ValueError(f"mode = {mode!r}: must be 'raise' or 'clip', or 'wrap' for indices in an array")
    return taking.taken(a, indices, axis, mode)
