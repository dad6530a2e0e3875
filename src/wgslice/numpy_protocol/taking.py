"""Gathers: elements read at indices along a dimension."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import int64_of, one_axis
from wgslice.dialects.advanced import AdvancedSelection, non_negative
from wgslice.errors import named, public
from wgslice.operators.binding import output_for
from wgslice.tensors.indexing import indices_held, run_indexed, selected
from wgslice.tensors.methods import packed_copy
from wgslice.tensors.placed import check_no_sequence, check_of_numbers, check_tensor, write
from wgslice.tensors.tensor import Tensor


@public()
def take(x: Tensor, indices: Tensor | ArrayLike, axis: SupportsIndex | None = None) -> Tensor:
    """Gather elements at indices along a dimension; the semantics are those of `numpy.take`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    indices : array_like of int, or Tensor of integers
        Of any shape; negative ones count from the end. A tensor is not read back: an index out of range
        reads the nearest element.
    axis : int, optional
        The dimension; a negative one counts from the last. By default all elements in row-major order.

    Returns
    -------
    Tensor
        With the dimensions of `indices` in place of `axis`: a view for a single index that is not a
        tensor, else packed, in a new buffer. The work is submitted, not waited for; with `axis` left
        out, a view that cannot be flattened is copied first.

    Raises
    ------
    TypeError
        `x` is not a tensor, or `indices` are not integers, or a list of tensors: `stack` joins them.
    IndexError
        An index of an array is out of range; of a tensor, if the environment has WGSLICE_CHECK_INDICES=1,
        with which it is read back.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`), the result would have more than 8 dimensions,
        or the buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.take(wg.asarray(np.arange(12).reshape(3, 4)), [2, 0], axis=1).numpy()
    array([[ 2,  0],
           [ 6,  4],
           [10,  8]])
    """
    return taken(x, indices, axis)


def taken(
    x: Tensor,
    indices: Tensor | ArrayLike,
    axis: SupportsIndex | None,
    mode: str = "raise",
    out: Tensor | None = None,
) -> Tensor:
    """Run `take` in a mode of `numpy.take`, of which "wrap" needs an array, into `out` if it is given."""
    check_tensor("x", x)
    if axis is not None and x.ndim == 0:
        x = x[None]  # one element in one dimension, as in NumPy
    along = 0 if axis is None else one_axis("axis", axis, x.ndim)
    places = as_indices(indices)
    size = x.size if axis is None else x.shape[along]
    item: Any = places
    if isinstance(places, Tensor):
        if mode == "clip":
            item = indices_held(x, places, clipped=True)
    elif size and mode != "raise":
        item = places.clip(0, size - 1) if mode == "clip" else places % size
    source = x.reshape(-1) if axis is None else x
    key = (*[slice(None)] * along, item)
    shape = (*source.shape[:along], *places.shape, *source.shape[along + 1 :])
    # NumPy checks indices once for each position in the outer dimensions
    checked = mode == "raise" and 0 not in x.shape[:along]
    if out is not None or (0 in shape and not (checked and isinstance(places, Tensor))):
        out = output_for(x, shape, out)
        if out.size == 0:
            if checked and isinstance(places, np.ndarray):
                non_negative(places, size, along)
            return out
        selection = selected(source, key)
        shared = any(each.memory is out.memory for each in (x, places) if isinstance(each, Tensor))
        if (
            not isinstance(selection, AdvancedSelection)
            or not out.is_packed
            or shared
            or not run_indexed(source, selection, out.bound_layout, reads=True)
        ):
            write(out, source[key])
        return out
    found = source[key]
    return found if isinstance(places, Tensor) or places.ndim else packed_copy(found)  # else a view


def compress(condition: Any, a: Tensor, axis: Any = None, out: Any = None) -> Tensor:
    """Gather where a condition, which is read back if it is a tensor, is true, as `numpy.compress`."""
    check_no_sequence(condition)
    marks = np.asarray(condition)
    if marks.ndim != 1:
        raise ValueError(f"condition has shape {marks.shape}: condition must be a 1-d array")
    return taken(a, np.flatnonzero(marks), axis, out=out)


def extract(condition: Any, arr: Tensor) -> Tensor:
    """Gather where a condition is true, both flattened, as `numpy.extract`."""
    check_no_sequence(condition)
    return taken(arr, np.flatnonzero(np.asarray(condition)), None)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Return the indices of a grid, as `numpy.ix_`: views of tensors, else arrays; masks are read back."""
    found = []
    for number, each in enumerate(args):
        check_no_sequence(each)
        given = np.asarray(each) if isinstance(each, Tensor) and each.dtype.kind == "b" else each
        if np.ndim(given) != 1:
            raise ValueError(f"args[{number}] has shape {np.shape(given)}: Cross index must be 1 dimensional")
        flat = given if isinstance(given, Tensor) else np.ix_(given)[0]
        found.append(flat.reshape([-1 if axis == number else 1 for axis in range(len(args))]))
    return tuple(found)


def take_along_axis(x: Tensor, indices: Tensor | ArrayLike, axis: SupportsIndex | None = -1) -> Tensor:
    """Gather one element for each index along a dimension, packed, as `numpy.take_along_axis`."""
    with named("take_along_axis"):
        check_tensor("x", x)
        shape = (x.size,) if axis is None else x.shape
        key = along_axis("take_along_axis", shape, indices, 0 if axis is None else axis)
        return (x.reshape(-1) if axis is None else x)[key]


def along_axis(
    function: str, shape: tuple[int, ...], indices: Tensor | ArrayLike, axis: SupportsIndex
) -> tuple[Any, ...]:
    """Return the key that selects one element for each index along a dimension."""
    along = one_axis("axis", axis, len(shape))
    try:
        places = as_indices(indices)
    except TypeError as error:  # NumPy's functions have another
        raise IndexError(f"{function}: {error}") from None
    if places.ndim != len(shape):
        raise ValueError(f"indices have shape {places.shape}: must have {len(shape)} dimensions")
    for number, (size, count) in enumerate(zip(shape, places.shape, strict=True)):
        if number != along and 1 not in (size, count) and size != count:
            raise IndexError(
                f"{function}: indices have shape {places.shape}, x {shape}: sizes of dimension {number} "
                "must be equal or 1"
            )
    rank = len(shape)
    return tuple(
        places if number == along else np.arange(size).reshape([-1] + [1] * (rank - 1 - number))
        for number, size in enumerate(shape)
    )


def as_indices(indices: Tensor | ArrayLike) -> Tensor | NDArray[np.int64]:
    """Return indices as a tensor or an int64 array; refuses other dtypes than integers."""
    if not isinstance(indices, Tensor):
        check_of_numbers(indices)
    given = indices if isinstance(indices, Tensor) else np.asarray(indices)
    if given.size == 0 and not hasattr(indices, "dtype"):
        given = given.astype(np.int64)  # an empty list has no dtype of its own
    if given.dtype.kind not in "iu":
        raise TypeError(f"indices have dtype {given.dtype}: must be integers; indices.astype(np.int64) has")
    return given if isinstance(given, Tensor) else int64_of(given)
