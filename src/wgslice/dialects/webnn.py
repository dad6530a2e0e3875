"""Converters of WebNN's slice, reverse, pad and gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from wgslice.arguments import (
    U32_MAX,
    Integers,
    check_within,
    distinct_axes,
    int64_of,
    integer,
    integers,
    tensor_sizes,
)
from wgslice.dialects.advanced import non_negative
from wgslice.dialects.basic import Selection
from wgslice.errors import WindowError, named


def webnn_slice(
    input_sizes: Sequence[int], starts: Integers, sizes: Integers, strides: Integers | None = None
) -> Selection:
    """Convert WebNN's `MLGraphBuilder.slice`: every `strides`-th element of a window.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    starts, sizes : sequence of int
        First element and extent of the window, u32, each size at least 1; `starts + sizes` is at most the
        dimension's size.
    strides : sequence of int, optional
        Step within the window, u32, at least 1; 1 by default. `webnn_reverse` reverses.

    Returns
    -------
    Selection
        Of `1 + (sizes - 1) // strides` elements in each dimension.

    Raises
    ------
    WindowError, TypeError
        The window breaks one of these rules, or a number is no integer.

    Examples
    --------
    >>> from wgslice.dialects import webnn_slice
    >>> webnn_slice((10,), [3], [5], [2]).items
    (range(3, 8, 2),)
    """
    with named("webnn_slice"):
        given = tensor_sizes(input_sizes)
        first, extents = integers("starts", starts), integers("sizes", sizes)
        steps = (1,) * len(first) if strides is None else integers("strides", strides)
        if not len(given) == len(first) == len(extents) == len(steps):
            raise WindowError(
                f"{len(first)} starts, {len(extents)} sizes and {len(steps)} strides for an input of rank "
                f"{len(given)}: there must be one of each for every dimension"
            )
        check_within("starts", first, 0, U32_MAX, WindowError)
        check_within("sizes", extents, 1, U32_MAX, WindowError)
        check_within("strides", steps, 1, U32_MAX, WindowError)
        for axis, (start, extent, size) in enumerate(zip(first, extents, given, strict=True)):
            if start + extent > size:
                raise WindowError(
                    f"starts[{axis}] + sizes[{axis}] = {start} + {extent} = {start + extent}: "
                    f"must be at most the input's size {size} in dimension {axis}"
                )
        window = zip(first, extents, steps, strict=True)
        return Selection(given, tuple(range(start, start + extent, step) for start, extent, step in window))


def webnn_reverse(input_sizes: Sequence[int], axes: Integers | None = None) -> Selection:
    """Convert WebNN's `MLGraphBuilder.reverse`: all elements, in reversed order along `axes`.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    axes : sequence of int, optional
        Dimensions, u32, each once. All by default.

    Returns
    -------
    Selection
        Of all elements.

    Raises
    ------
    TypeError, ValueError
        An axis is no integer, negative, not less than the rank, or named twice.

    Examples
    --------
    >>> from wgslice.dialects import webnn_reverse
    >>> webnn_reverse((3,), [0]).items
    (range(2, -1, -1),)
    """
    with named("webnn_reverse"):
        given = tensor_sizes(input_sizes)
        flipped = range(len(given)) if axes is None else integers("axes", axes)
        for position, axis in enumerate(flipped):
            if not 0 <= axis < len(given):
                raise ValueError(
                    f"axes[{position}] = {axis}: must be at least 0, less than the rank {len(given)}"
                )
        distinct_axes("axes", flipped, len(given))
        return Selection(
            given, tuple(range(size)[:: -1 if axis in flipped else 1] for axis, size in enumerate(given))
        )


WEBNN_MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect"}


def webnn_pad(
    input_sizes: Sequence[int],
    beginning_padding: Integers,
    ending_padding: Integers,
    mode: str = "constant",
    value: Any = 0,
) -> dict[str, Any]:
    """Convert WebNN's `MLGraphBuilder.pad`: a border of constants or of the tensor's own elements.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    beginning_padding, ending_padding : sequence of int
        Numbers of elements added before and after each dimension, u32; with mode "reflection" less than the
        dimension's size.
    mode : "constant", "edge" or "reflection"
        Elements of the border: `value`, the nearest element, or the tensor reversed without its edge.
    value : scalar
        For mode "constant".

    Returns
    -------
    dict
        Arguments of `wgslice.pad`: `wgslice.pad(x, **webnn_pad(x.shape, …))`.

    Raises
    ------
    TypeError, ValueError
        A number is no u32, or there is not one for every dimension; the mode is another one; or a reflection
        is as large as the dimension.

    Examples
    --------
    >>> from wgslice.dialects import webnn_pad
    >>> webnn_pad((4,), [1], [2], "edge")
    {'pad_width': array([[1, 2]]), 'mode': 'edge', 'constant_values': 0}
    """
    with named("webnn_pad"):
        given = tensor_sizes(input_sizes)
        names = "beginning_padding", "ending_padding"
        sides = [integers(*pair) for pair in zip(names, (beginning_padding, ending_padding), strict=True)]
        for name, widths in zip(names, sides, strict=True):
            check_within(name, widths, 0, U32_MAX)
            if len(widths) != len(given):
                raise ValueError(
                    f"{name} has {len(widths)} numbers for an input of rank {len(given)}: one each"
                )
            for axis, (width, size) in enumerate(zip(widths, given, strict=True)):
                if mode == "reflection" and width >= size:
                    raise ValueError(
                        f"{name}[{axis}] = {width} with mode = 'reflection': must be less than the input's "
                        f"size {size} in dimension {axis}"
                    )
        if mode not in WEBNN_MODES:
            raise ValueError(f"mode = {mode!r}: must be one of {', '.join(map(repr, WEBNN_MODES))}")
        pad_width = np.array(sides, np.int64).T
        return {"pad_width": pad_width, "mode": WEBNN_MODES[mode], "constant_values": value}


def webnn_gather(input_sizes: Sequence[int], indices: Any, axis: SupportsIndex = 0) -> tuple[Any, ...]:
    """Convert WebNN's `MLGraphBuilder.gather`: elements at indices along a dimension.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    indices : array_like of int, or Tensor of integers
        Of any shape, int32, uint32 or int64; negative ones count from the end.
    axis : int
        The dimension, u32, less than the rank.

    Returns
    -------
    tuple
        An index: `x[webnn_gather(x.shape, …)]` has the dimensions of `indices` in place of `axis`. An index
        in a tensor that is out of range reads the nearest element.

    Raises
    ------
    TypeError, ValueError
        `indices` have another dtype, or `axis` is no such dimension.
    IndexError
        An index of an array is out of range.

    Examples
    --------
    >>> from wgslice.dialects import webnn_gather
    >>> webnn_gather((4, 6), [3, 0], axis=1)
    (slice(None, None, None), array([3, 0]))
    """
    with named("webnn_gather"):
        given, along = tensor_sizes(input_sizes), integer("axis", axis)
        if not 0 <= along < len(given):
            raise ValueError(f"axis = {along}: must be at least 0, less than the rank {len(given)}")
        places = (
            indices if hasattr(indices, "dtype") else np.asarray(indices, None if np.size(indices) else "i8")
        )
        if places.dtype.name not in ("int32", "uint32", "int64"):
            raise TypeError(f"indices have dtype {places.dtype}: must be int32, uint32 or int64")
        if isinstance(places, np.ndarray | np.generic):
            non_negative(int64_of(np.asarray(places)), given[along], along)
        return (*[slice(None)] * along, places)
