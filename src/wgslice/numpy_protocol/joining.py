"""Tensors put one behind the other, along a dimension that they have or a new one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import SupportsIndex

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.numpy_protocol import copies as rules
from wgslice.numpy_protocol.copies import Copies
from wgslice.rearrange import unsqueezed
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["concat", "stack"]


def concat(arrays: Iterable[Tensor], axis: SupportsIndex | None = 0) -> Tensor:
    """Put tensors one behind the other; the semantics are those of `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one dtype and on one device, with equal sizes but for that of `axis`; views welcome.
    axis : int or None
        The dimension along which they lie; a negative one counts from the last. With None all elements of
        each tensor, in row-major order.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        One is no tensor, or the dtypes differ: elements are moved, not converted.
    ValueError
        There is none, they have no dimensions, sizes or devices differ, `axis` is out of range
        (`numpy.exceptions.AxisError`), or a buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6).reshape(2, 3))
    >>> wg.concat([x, x[:, ::-2]], axis=1).numpy()
    array([[0, 1, 2, 2, 0],
           [3, 4, 5, 5, 3]])
    """
    with named("concat"):
        given = alike(arrays)
        tensors = list(given.values())
        if axis is None:
            *starts, end = accumulate((x.size for x in tensors), initial=0)
            sizes = checked_shape(end)
            with Copies(given) as copies:
                result = copies.empty(sizes, tensors[0].dtype)
                for x, start in zip(tensors, starts, strict=True):
                    copies.copy(x, x.layout, result, Layout.packed(x.shape, start))
            return result
        first = tensors[0].shape
        if not first:
            raise ValueError("zero-dimensional arrays cannot be concatenated; stack puts them together")
        (along,) = distinct_axes("axis", axis, len(first))
        others = first[:along] + first[along + 1 :]
        for name, x in given.items():
            if x.ndim != len(first) or x.shape[:along] + x.shape[along + 1 :] != others:
                raise ValueError(
                    f"{name} has shape {x.shape}: must be {first} as arrays[0] has, but for axis {along}"
                )
        with Copies(given) as copies:
            return rules.joined(copies, tensors, [x.layout for x in tensors], along)


def stack(arrays: Iterable[Tensor], axis: SupportsIndex = 0) -> Tensor:
    """Put tensors one behind the other along a new dimension; the semantics are those of `numpy.stack`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one shape and dtype and on one device; views welcome.
    axis : int
        The new dimension, as the result counts; a negative one counts from the last.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        One is no tensor, or the dtypes differ: elements are moved, not converted.
    ValueError
        There is none, shapes or devices differ, `axis` is out of range (`numpy.exceptions.AxisError`), the
        result would have more than 8 dimensions, or a buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

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
        given = alike(arrays)
        tensors = list(given.values())
        first = tensors[0].shape
        for name, x in given.items():
            if x.shape != first:
                raise ValueError(f"{name} has shape {x.shape}: must be {first} as arrays[0] has")
        (along,) = distinct_axes("axis", axis, len(first) + 1)
        layouts = [unsqueezed(x.layout, [along]) for x in tensors]
        with Copies(given) as copies:
            return rules.joined(copies, tensors, layouts, along)


def alike(arrays: Iterable[Tensor]) -> dict[str, Tensor]:
    """Tensors that one result is made of, by what errors call them: at least one, of one dtype."""
    given = {f"arrays[{number}]": array for number, array in enumerate(arrays)}
    if not given:
        raise ValueError("arrays is empty: name at least one tensor")
    first = given["arrays[0]"]
    for name, array in given.items():
        check_tensor(name, array)
        if array.dtype != first.dtype:
            raise TypeError(
                f"{name} has dtype {array.dtype}: must be {first.dtype} as arrays[0] has, since elements are "
                "moved and not converted; asarray(x.numpy().astype(...)) converts"
            )
    return given
