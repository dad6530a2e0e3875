"""Where an operator writes."""

from __future__ import annotations

from collections.abc import Sequence

from wgslice.dtypes import check_same_dtype
from wgslice.tensors.placed import check_destination, check_tensor
from wgslice.tensors.tensor import Tensor, allocate

__all__ = ["output_for"]


def output_for(
    x: Tensor, sizes: Sequence[int], out: Tensor | None, before: str = "", behind: str = ""
) -> Tensor:
    """`out`, refused where an operator on `x` cannot write so many sizes there, or a new tensor of them.

    The words stand before and behind the sizes where they are refused.
    """
    if out is None:
        return allocate(sizes, x.dtype, x.device)
    check_tensor("out", out)
    check_same_dtype(x.dtype, out.dtype)
    check_destination(out)
    if out.shape != tuple(sizes):
        raise ValueError(f"out has sizes {out.shape}: must be {before}{tuple(sizes)}{behind}")
    return out
