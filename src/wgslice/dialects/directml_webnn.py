"""Notations that walk a window: DirectML's, WebNN's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

from wgslice.arguments import integers, tensor_sizes
from wgslice.dialects.numpy_index import numpy_index
from wgslice.dialects.selection import Selection
from wgslice.dialects.window import Window, check_u32
from wgslice.errors import WindowError, named

__all__ = ["directml_slice", "directml_slice1", "webnn_reverse", "webnn_slice"]


def webnn_slice(
    input_sizes: Sequence[int],
    starts: Iterable[SupportsIndex],
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
) -> Selection:
    """WebNN's `slice`: of the window of `sizes` at `starts` every `strides`-th element, forwards.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    starts : sequence of int
        First element of the window in each dimension, u32; `starts + sizes` is at most the dimension's size.
    sizes : sequence of int
        Extent of the window in elements, u32, at least 1.
    strides : sequence of int, optional
        Step within the window, u32, at least 1; 1 by default. To go backwards is `webnn_reverse`'s work.

    Returns
    -------
    Selection
        Of `1 + (sizes - 1) // strides` elements in each dimension.

    Raises
    ------
    WindowError
        The window breaks one of these rules.
    TypeError
        A number is no integer.

    Notes
    -----
    Semantics: `MLGraphBuilder.slice`.
    """
    with named("webnn_slice"):
        given, first, extents = (
            tensor_sizes(input_sizes),
            integers("starts", starts),
            integers("sizes", sizes),
        )
        steps = (1,) * len(first) if strides is None else integers("strides", strides)
        if not len(given) == len(first) == len(extents) == len(steps):
            raise WindowError(
                f"{len(first)} starts, {len(extents)} sizes and {len(steps)} strides for an input of rank "
                f"{len(given)}: there must be one of each for every dimension"
            )
        window = list(zip(first, extents, steps, strict=True))
        for axis, ((start, extent, step), size) in enumerate(zip(window, given, strict=True)):
            check_u32("starts", axis, start, 0)
            check_u32("sizes", axis, extent, 1)
            check_u32("strides", axis, step, 1)
            if start + extent > size:
                raise WindowError(
                    f"starts[{axis}] + sizes[{axis}] = {start} + {extent} = {start + extent}: "
                    f"must be at most the input's size {size} in dimension {axis}"
                )
        return Selection(given, tuple(range(start, start + extent, step) for start, extent, step in window))


def webnn_reverse(input_sizes: Sequence[int], axes: Iterable[SupportsIndex] | None = None) -> Selection:
    """WebNN's `reverse`: all elements, in `axes` from the last to the first.

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

    Notes
    -----
    Semantics: `MLGraphBuilder.reverse`.
    """
    with named("webnn_reverse"):
        given = tensor_sizes(input_sizes)
        flipped = range(len(given)) if axes is None else integers("axes", axes)
        for position, axis in enumerate(flipped):
            if not 0 <= axis < len(given):
                raise ValueError(
                    f"axes[{position}] = {axis}: must be at least 0, less than the rank {len(given)}"
                )
        if len(set(flipped)) < len(flipped):
            raise ValueError(f"axes = {tuple(flipped)}: an axis is repeated")
        return numpy_index(
            given, tuple(slice(None, None, -1 if axis in flipped else 1) for axis in range(len(given)))
        )


def directml_slice1(
    input_sizes: Sequence[int],
    offsets: Iterable[SupportsIndex],
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
    output_sizes: Iterable[SupportsIndex] | None = None,
) -> Selection:
    """DirectML's Slice1: a window walked with signed strides, a negative one from the window's end.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor, 1 to 8 of them.
    offsets, sizes : sequence of int
        First element and extent of the window, u32, each size at least 1; `offsets + sizes` is at most the
        dimension's size.
    strides : sequence of int, optional
        Step within the window, i32, not 0; 1 by default.
    output_sizes : sequence of int, optional
        Elements to take, 1 to `1 + (sizes - 1) // abs(strides)`; that most by default.

    Returns
    -------
    Selection
        Of `output_sizes` elements in each dimension.

    Raises
    ------
    WindowError
        The window breaks one of these rules.
    TypeError
        A number is no integer.

    Notes
    -----
    Semantics: `DML_SLICE1_OPERATOR_DESC`, as in `slice1`.
    """
    with named("directml_slice1"):
        given_sizes = tensor_sizes(input_sizes)
        window = Window.of(offsets, sizes, strides)
        window.check_inside(given_sizes)
        given = None if output_sizes is None else integers("output_sizes", output_sizes)
        taken = window.most_output_sizes if given is None else given
        window.check_filled(taken)
        return Selection(given_sizes, window.ranges(taken))


def directml_slice(
    input_sizes: Sequence[int],
    offsets: Iterable[SupportsIndex],
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
) -> Selection:
    """DirectML's older Slice: `sizes` elements from `offsets` on, `strides` apart, forwards.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor, 1 to 8 of them.
    offsets, sizes : sequence of int
        First element and number of elements, u32, each size at least 1; `offsets + (sizes - 1) * strides` is
        less than the dimension's size.
    strides : sequence of int, optional
        Step, u32, at least 1; 1 by default.

    Returns
    -------
    Selection
        Of `sizes` elements in each dimension.

    Raises
    ------
    WindowError, TypeError
        As `directml_slice1`.

    Notes
    -----
    Semantics: `DML_SLICE_OPERATOR_DESC`, as in `slice`.
    """
    with named("directml_slice"):
        given_sizes = tensor_sizes(input_sizes)
        window = Window.spanning(offsets, sizes, strides, given_sizes)
        return Selection(given_sizes, window.ranges(window.most_output_sizes))
