"""Joining tensors along a dimension or a new one, and splitting them into views."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import SupportsIndex

import numpy as np

from wgslice.arguments import OneOrMore, checked_shape, distinct_axes, one_or_more
from wgslice.docstrings import NO_AXIS, NO_TENSOR, documented
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.layout_rules import unsqueezed
from wgslice.numpy_protocol import copies as rules
from wgslice.numpy_protocol.copies import Copies
from wgslice.tensors.placed import check_no_sequence, check_tensor, viewed
from wgslice.tensors.tensor import Tensor


def concat(arrays: Iterable[Tensor], axis: SupportsIndex | None = 0) -> Tensor:
    """Join tensors along a dimension; the semantics are those of `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one dtype and on one device, with equal sizes but for that of `axis`.
    axis : int or None
        The dimension; a negative one counts from the last. With None each tensor is flattened first, in
        row-major order.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        One is not a tensor, or the dtypes differ: elements are moved, not converted.
    ValueError, OutOfDeviceMemory, DeviceLostError
        `arrays` is empty, a tensor has no dimensions, sizes or devices differ, `axis` is out of range
        (`numpy.exceptions.AxisError`); or as `Tensor.copy`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6).reshape(2, 3))
    >>> wg.concat([x, x[:, ::-2]], axis=1).numpy()
    array([[0, 1, 2, 2, 0],
           [3, 4, 5, 5, 3]])
    """
    with named("concat"):
        tensors = alike(arrays)
        if axis is None:
            *starts, end = accumulate((x.size for x in tensors), initial=0)
            sizes = checked_shape(end)
            with Copies(tensors, "arrays[{}]") as copies:
                result = copies.empty(sizes, tensors[0].dtype)
                for x, start in zip(tensors, starts, strict=True):
                    copies.copy(x, x.layout, result, Layout.packed(x.shape, start))
            return result
        first = tensors[0].shape
        if not first:
            raise ValueError("zero-dimensional arrays cannot be concatenated; stack joins them")
        (along,) = distinct_axes("axis", axis, len(first))
        rules.check_joinable([x.shape for x in tensors], along, "arrays[{}]")
        with Copies(tensors, "arrays[{}]") as copies:
            return rules.joined(copies, tensors, [x.layout for x in tensors], along)


def stack(arrays: Iterable[Tensor], axis: SupportsIndex = 0) -> Tensor:
    """Join tensors along a new dimension; the semantics are those of `numpy.stack`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one shape and dtype and on one device.
    axis : int
        The new dimension, as the result counts; a negative one counts from the last.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `concat`; or shapes differ, or the result would have more than 8 dimensions.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(3))
    >>> wg.stack([x, x[::-1]], axis=1).numpy()
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """
    with named("stack"):
        tensors = alike(arrays)
        first = tensors[0].shape
        for number, x in enumerate(tensors):
            if x.shape != first:
                raise ValueError(f"arrays[{number}] has shape {x.shape}: must be {first} as arrays[0] has")
        (along,) = distinct_axes("axis", axis, len(first) + 1)
        layouts = [unsqueezed(x.layout, [along]) for x in tensors]
        with Copies(tensors, "arrays[{}]") as copies:
            return rules.joined(copies, tensors, layouts, along)


def alike(arrays: Iterable[Tensor]) -> list[Tensor]:
    """Return tensors as a list; refuses an empty one, and different dtypes."""
    tensors = list(arrays)
    if not tensors:
        raise ValueError("arrays is empty: name at least one tensor")
    for number, array in enumerate(tensors):
        if not isinstance(array, Tensor):
            check_tensor(f"arrays[{number}]", array)
        if array.dtype != tensors[0].dtype:
            raise TypeError(
                f"arrays[{number}] has dtype {array.dtype}: must be {tensors[0].dtype} as arrays[0] has, "
                "since elements are moved and not converted; asarray(x.numpy().astype(...)) converts"
            )
    return tensors


@documented(("tuple of Tensor", "Views, one of each index."), NO_TENSOR, NO_AXIS)
def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """View each index along a dimension, without that dimension.

    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))[1].numpy()
    array([3, 4])
    """
    with named("unstack"):
        check_tensor("x", x)
        (along,) = distinct_axes("axis", axis, x.ndim)
        others = [axis for axis in range(x.ndim) if axis != along]
        return tuple(viewed(x, x.layout.permuted([along, *others])))


def split(x: Tensor, indices_or_sections: OneOrMore, axis: SupportsIndex = 0) -> list[Tensor]:
    """Split a tensor into views along a dimension; the semantics are those of `numpy.split`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 or more.
    indices_or_sections : int or sequence of int
        Number of equal parts, or the indices where the second and later parts begin.
    axis : int
        The dimension to split; a negative one counts from the last.

    Returns
    -------
    list of Tensor
        Views.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a number is not an integer.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`), or the size is not a
        multiple of the number of parts.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> q, k, v = wg.split(wg.asarray(np.arange(12).reshape(2, 6)), 3, axis=1)
    >>> k.numpy()
    array([[2, 3],
           [8, 9]])
    >>> [part.shape for part in wg.split(q, [1], axis=0)]
    [(1, 2), (1, 2)]
    """
    with named("split"):
        check_tensor("x", x)
        (along,) = distinct_axes("axis", axis, x.ndim)
        size = x.shape[along]
        check_no_sequence(indices_or_sections)
        if np.ndim(indices_or_sections) == 0:  # type: ignore[arg-type]  # of anything
            (sections,) = one_or_more("indices_or_sections", indices_or_sections)
            if sections < 1 or size % sections:
                raise ValueError(
                    f"indices_or_sections = {sections}: must divide the size {size} of axis {along}; or give "
                    "the indices to split at"
                )
            bounds = [size // sections * number for number in range(sections + 1)]
        else:
            bounds = [0, *one_or_more("indices_or_sections", indices_or_sections), size]
        whole = [range(each) for each in x.shape]
        return [
            viewed(x, x.layout.select([*whole[:along], whole[along][slice(*cut)], *whole[along + 1 :]]))
            for cut in pairwise(bounds)
        ]
