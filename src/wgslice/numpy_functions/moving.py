"""NumPy's functions that copy elements, in one submission."""

from __future__ import annotations

from typing import Any

from wgslice.arguments import check_row_major
from wgslice.arrays import padding, taking
from wgslice.errors import ComputationRefused
from wgslice.numpy_functions.options import check_unused
from wgslice.tensors import transfer
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["copy", "copyto", "pad", "take"]

PAD_OPTION = {  # NumPy's, by mode
    "constant": "constant_values",
    "linear_ramp": "end_values",
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), "stat_length"),
}


def copy(a: Tensor, order: str | None = "K", subok: bool = False) -> Tensor:
    """Copy a tensor; packed, whatever its strides."""
    check_tensor("a", a)
    check_row_major(order, a.shape)
    return a.copy()


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write into a tensor."""
    if casting != "same_kind":
        raise ValueError(f"casting = {casting!r}: must be 'same_kind' for tensors")
    if where is not True:
        raise TypeError(f"where is of type {type(where).__name__}: must be left out; dst[mask] = src does it")
    transfer.copyto(dst, src)


def pad(array: Tensor, pad_width: Any, mode: Any = "constant", **options: Any) -> Tensor:
    """Put a border around a tensor, by the modes that compute nothing."""
    unknown = options.keys() - {PAD_OPTION.get(mode)} if isinstance(mode, str) else set()
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if options.pop("reflect_type", "even") == "odd":
        raise ComputationRefused("reflect_type = 'odd': computes; must be 'even', and x.numpy() is an array")
    return padding.pad(array, pad_width, mode, **(options if mode == "constant" else {}))


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
