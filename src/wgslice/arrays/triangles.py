"""The lower or upper triangle of matrices, and zeros besides."""

from __future__ import annotations

from typing import SupportsIndex

from wgslice.arguments import integer
from wgslice.arrays.assembled import check_readable, filled_by
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.layout_rules import lower_triangle
from wgslice.rearrange import repeated
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["tril", "triu"]


def tril(x: Tensor, k: SupportsIndex = 0) -> Tensor:
    """Copy the lower triangle of matrices, with zeros above it; the semantics are those of `numpy.tril`.

    Parameters
    ----------
    x : Tensor
        The last two dimensions are those of the matrices; one of rank 1 is the row of a square matrix,
        repeated. Views welcome.
    k : int
        The last diagonal that is kept: 0 the main one, above it if positive.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for, of some `2 * log2(n)`
        copies for matrices of n rows.

    Raises
    ------
    TypeError
        `x` is no tensor, or `k` no integer.
    ValueError
        `x` has no dimensions, or its buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.triangles import tril
    >>> tril(wg.asarray(np.arange(1, 10).reshape(3, 3))).numpy()
    array([[1, 0, 0],
           [4, 5, 0],
           [7, 8, 9]])
    """
    with named("tril"):
        x, last = checked(x, k)
        rows, columns = x.shape[-2:]
        result = Layout.packed(x.shape)
        blocks = lower_triangle(rows, columns, last)
        return filled_by(x.shape, x, [(x, block.of(x.layout), block.of(result)) for block in blocks])


def triu(x: Tensor, k: SupportsIndex = 0) -> Tensor:
    """Copy the upper triangle of matrices, with zeros below it; the semantics are those of `numpy.triu`.

    Parameters
    ----------
    x : Tensor
        The last two dimensions are those of the matrices; one of rank 1 is the row of a square matrix,
        repeated. Views welcome.
    k : int
        The first diagonal that is kept: 0 the main one, above it if positive.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for, of some `2 * log2(n)`
        copies for matrices of n rows.

    Raises
    ------
    TypeError
        `x` is no tensor, or `k` no integer.
    ValueError
        `x` has no dimensions, or its buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.triangles import triu
    >>> triu(wg.asarray(np.arange(1, 10).reshape(3, 3)), 1).numpy()
    array([[0, 2, 3],
           [0, 0, 6],
           [0, 0, 0]])
    """
    with named("triu"):
        x, first = checked(x, k)
        rows, columns = x.shape[-2:]
        order = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]  # the upper triangle is the transpose's lower
        source, result = x.layout.permuted(order), Layout.packed(x.shape).permuted(order)
        blocks = lower_triangle(columns, rows, -first)
        return filled_by(x.shape, x, [(x, block.of(source), block.of(result)) for block in blocks])


def checked(x: Tensor, k: SupportsIndex) -> tuple[Tensor, int]:
    """Matrices, of which one row stands for all as in NumPy, and the diagonal that bounds their triangle."""
    check_tensor("x", x)
    diagonal = integer("k", k)
    if x.ndim == 0:
        raise ValueError("x has no dimensions: a matrix has two")
    check_readable(x.device, x, "x")
    return (viewed(x, repeated(x.layout, x.shape * 2)) if x.ndim == 1 else x), diagonal
