"""NumPy's functions that take a tensor apart, into views."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.arguments import distinct_axes, integer
from wgslice.arrays import concat
from wgslice.numpy_functions.options import check_rank
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["array_split", "dsplit", "hsplit", "vsplit"]


def array_split(ary: Tensor, indices_or_sections: Any, axis: Any = 0) -> list[Tensor]:
    """Cut at indices, or into so many pieces that differ by one element at most, the longer ones first."""
    check_tensor("ary", ary)
    if np.ndim(indices_or_sections) > 0:
        return concat.split(ary, indices_or_sections, axis)
    (along,) = distinct_axes("axis", axis, ary.ndim)
    sections = integer("indices_or_sections", indices_or_sections)
    if sections < 1:
        raise ValueError(f"indices_or_sections = {sections}: must be at least 1")
    least, longer = divmod(ary.shape[along], sections)
    return concat.split(ary, [least * piece + min(piece, longer) for piece in range(1, sections)], along)


def vsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Cut the first dimension of at least two."""
    check_rank("ary", ary, 2)
    return concat.split(ary, indices_or_sections, 0)


def hsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Cut the second dimension, or the only one."""
    check_rank("ary", ary, 1)
    return concat.split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def dsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Cut the third dimension."""
    check_rank("ary", ary, 3)
    return concat.split(ary, indices_or_sections, 2)
