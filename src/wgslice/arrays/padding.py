"""Tensors with a border: of a constant, or of their own elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.arrays.assembled import assembled, check_readable, filled_by
from wgslice.errors import ComputationRefused, named
from wgslice.layout import Layout
from wgslice.layout_rules import MODES, border_parts, padded, stages
from wgslice.plans.copy import fills, pattern_size
from wgslice.tensors.placed import check_of_numbers, check_tensor
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uploading import asarray
from wgslice.tensors.writing import as_assigned

__all__ = ["pad"]

Widths = list[tuple[int, int]]


def pad(
    x: Tensor,
    pad_width: ArrayLike | Mapping[SupportsIndex, Any],
    mode: str = "constant",
    *,
    constant_values: ArrayLike = 0,
) -> Tensor:
    """Put a border around a tensor; the semantics are those of `numpy.pad`.

    Parameters
    ----------
    x : Tensor
        Of any rank; views welcome.
    pad_width : int, pair of int, sequence of pairs, or dict
        How many elements come before and behind each dimension, at least 0: one number or one pair for all
        dimensions, a pair for each, or by axis what comes around that one, and nothing around others.
    mode : "constant", "edge", "reflect", "symmetric" or "wrap"
        What the border consists of: `constant_values`, the nearest element, the tensor mirrored at its first
        and last elements or behind them, or the tensor again. NumPy's other modes compute.
    constant_values : scalar, pair, or sequence of pairs
        For mode "constant", in the same forms but for the dict, cast as NumPy assigns them.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    ComputationRefused
        The mode is one of NumPy's that compute.
    TypeError
        `x` is no tensor, or a width no integer.
    ValueError
        A width is negative, there are not as many as dimensions, the mode is none of these, a dimension that
        its own elements shall surround has none, or the buffer is destroyed or mapped.
    OverflowError
        A constant is a Python integer that the dtype does not hold.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(1, 4))
    >>> wg.pad(x, (1, 2)).numpy()
    array([0, 1, 2, 3, 0, 0])
    >>> wg.pad(x, 2, mode="reflect").numpy()
    array([3, 2, 1, 2, 3, 2, 1])
    """
    with named("pad"):
        check_tensor("x", x)
        if mode not in MODES and mode != "constant":
            known = ", ".join(map(repr, ("constant", *MODES)))
            if callable(mode) or mode in ("linear_ramp", "maximum", "mean", "median", "minimum"):
                raise ComputationRefused(
                    f"mode = {mode!r} computes: must be one of {known}; or pad x.numpy()"
                )
            raise ValueError(f"mode = {mode!r}: must be one of {known}")
        widths = checked_widths(pad_width, x.ndim)
        sizes = checked_shape(
            [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]
        )
        if mode == "constant":
            constants = np.broadcast_to(as_assigned(constant_values, x.dtype), (x.ndim, 2))
            check_readable(x.device, x, "x")
            return with_constants(x, widths, sizes, constants)
        segmented = [padded(mode, size, *width) for size, width in zip(x.shape, widths, strict=True)]
        check_readable(x.device, x, "x")
        return assembled(x, stages(x.layout, segmented))


def checked_widths(pad_width: ArrayLike | Mapping[SupportsIndex, Any], rank: int) -> Widths:
    """A pair of widths for each dimension, from any of NumPy's forms."""
    if isinstance(pad_width, Mapping):
        widths = np.zeros((rank, 2), np.int64)
        axes = distinct_axes("pad_width", list(pad_width), rank)
        for axis, width in zip(axes, pad_width.values(), strict=True):
            widths[axis] = checked_widths(width, 1)[0]
        return [(before, behind) for before, behind in widths.tolist()]
    with named("pad_width"):
        check_of_numbers(pad_width)
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu":
        raise TypeError(f"pad_width = {pad_width!r}: must be integers, not {given.dtype}")
    if given.shape not in ((), (1,), (2,), (1, 1), (1, 2), (rank, 1), (rank, 2)):
        raise ValueError(
            f"pad_width has shape {given.shape}: must be one number, a pair, or a pair for each of the "
            f"{rank} dimensions"
        )
    if given.size and given.min() < 0:
        raise ValueError(f"pad_width = {pad_width!r}: must not be negative; x[1:-1] crops")
    return [(before, behind) for before, behind in np.broadcast_to(given, (rank, 2)).tolist()]


def with_constants(x: Tensor, widths: Widths, sizes: tuple[int, ...], constants: NDArray[Any]) -> Tensor:
    """`x` inside of a new tensor of zeros, and each part of the border whose constant is something else."""
    inner = [range(before, before + size) for size, (before, _) in zip(x.shape, widths, strict=True)]
    filling: dict[bytes, list[tuple[Layout, Layout]]] = {}  # copies, by the bits that they repeat
    for parts, sides in zip(border_parts(sizes, inner), constants, strict=True):
        for border, constant in zip(parts, sides, strict=True):
            if border.size and any(constant.tobytes()):
                filling.setdefault(constant.tobytes(), []).extend(fills(border, x.dtype.itemsize))
    copies = [(x, x.layout, Layout.packed(sizes).select(inner))]
    for bits, pieces in filling.items():
        pattern = asarray(np.frombuffer(bits * pattern_size(pieces), x.dtype), device=x.device)
        copies += [(pattern, repeated, piece) for repeated, piece in pieces]
    return filled_by(sizes, x, copies)
