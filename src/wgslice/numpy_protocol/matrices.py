"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import SupportsIndex

from wgslice import layout_rules
from wgslice.arguments import checked_shape, integer
from wgslice.docstrings import COPYING, MATRICES, documented
from wgslice.errors import public
from wgslice.layout_rules import repeated_to, reshaped
from wgslice.numpy_protocol import copies as rules
from wgslice.numpy_protocol.copies import Copies
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.strided_views import diagonal
from wgslice.tensors.tensor import Tensor


@documented(*COPYING, x=MATRICES)
@public()
def tril(x: Tensor, /, *, k: SupportsIndex = 0) -> Tensor:
    """Copy the lower triangle of matrices `(…, m, n)`, with zeros above the diagonal `k`.

    >>> xp.tril(xp.ones((2, 2), dtype=xp.int64)).numpy()
    array([[1, 0],
           [1, 1]])
    """
    return triangle(x, k, upper=False)


@documented(*COPYING, x=MATRICES)
@public()
def triu(x: Tensor, /, *, k: SupportsIndex = 0) -> Tensor:
    """Copy the upper triangle of matrices `(…, m, n)`, with zeros below the diagonal `k`.

    >>> xp.triu(xp.ones((2, 2), dtype=xp.int64)).numpy()
    array([[1, 1],
           [0, 1]])
    """
    return triangle(x, k, upper=True)


def triangle(x: Tensor, k: SupportsIndex, *, upper: bool) -> Tensor:
    """Copy a triangle of matrices; one of rank 1 is the row of a square matrix, repeated, as in NumPy."""
    check_tensor("x", x)
    diagonal = integer("k", k)
    if x.ndim == 0:
        raise ValueError("x has no dimensions: a matrix has two")
    layout = repeated_to(x.layout, x.shape * 2) if x.ndim == 1 else x.layout
    with Copies([x]) as copies:
        return rules.triangle(copies, x, layout, diagonal, upper=upper)


def diag(v: Tensor, k: SupportsIndex = 0) -> Tensor:
    """View a diagonal of a matrix, read-only, or make a matrix with a diagonal, as `numpy.diag`."""
    check_tensor("v", v)
    if v.ndim not in (1, 2):
        raise ValueError(f"v has shape {v.shape}: Input must be 1- or 2-d.")
    return diagonal(v, k) if v.ndim == 2 else diagflat(v, k)


def diagflat(v: Tensor, k: SupportsIndex = 0) -> Tensor:
    """Make a matrix of zeros with the flattened elements on a diagonal, as `numpy.diagflat`."""
    check_tensor("v", v)
    offset = integer("k", k)
    side = v.size + abs(offset)
    sizes = checked_shape((side, side))
    with Copies([v], "v") as copies:
        result = copies.empty(sizes, v.dtype, zeroed=True)
        written = reshaped(layout_rules.diagonal(result.layout, offset, 0, 1), v.shape)
        assert written is not None  # one dimension is as many
        copies.copy(v, v.layout, result, written)
        return result
