"""Converters of the slice notations of DirectML, ONNX and TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from wgslice.arguments import (
    I32_MAX,
    I32_MIN,
    I64_MAX,
    I64_MIN,
    Integers,
    check_within,
    distinct_axes,
    integer,
    integers,
    tensor_sizes,
)
from wgslice.dialects.basic import Selection, numpy_index
from wgslice.dialects.window import Window
from wgslice.errors import named


def directml_slice1(
    input_sizes: Sequence[int],
    offsets: Integers,
    sizes: Integers,
    strides: Integers | None = None,
    output_sizes: Integers | None = None,
) -> Selection:
    """Convert DirectML's Slice1, as `slice1` has it: a window with signed strides.

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
        Elements per dimension, 1 to `1 + (sizes - 1) // abs(strides)`; the maximum by default.

    Returns
    -------
    Selection
        Of `output_sizes` elements in each dimension.

    Raises
    ------
    WindowError, TypeError
        The window breaks one of these rules, or a number is no integer.

    Examples
    --------
    >>> from wgslice.dialects import directml_slice1
    >>> directml_slice1((10,), [2], [6], [-2]).items
    (range(7, 1, -2),)
    """
    with named("directml_slice1"):
        given_sizes = tensor_sizes(input_sizes)
        window = Window.of(offsets, sizes, strides)
        window.check_inside(given_sizes)
        counts = window.max_output_sizes if output_sizes is None else integers("output_sizes", output_sizes)
        window.check_filled(counts)
        return Selection(given_sizes, window.ranges(counts))


def directml_slice(
    input_sizes: Sequence[int], offsets: Integers, sizes: Integers, strides: Integers | None = None
) -> Selection:
    """Convert DirectML's older Slice: `sizes` elements from `offsets` on, at positive `strides`.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor, 1 to 8 of them.
    offsets, sizes, strides : sequence of int
        As for DirectML's Slice, u32; strides are 1 by default.

    Returns
    -------
    Selection
        Of `sizes` elements in each dimension.

    Raises
    ------
    WindowError, TypeError
        As `directml_slice1`.

    Examples
    --------
    >>> from wgslice.dialects import directml_slice
    >>> directml_slice((10,), [3], [3], [2]).items
    (range(3, 9, 2),)
    """
    with named("directml_slice"):
        given_sizes = tensor_sizes(input_sizes)
        window = Window.spanning(offsets, sizes, strides, given_sizes)
        return Selection(given_sizes, window.ranges(window.max_output_sizes))


def onnx_slice(
    input_sizes: Sequence[int],
    starts: Integers,
    ends: Integers,
    axes: Integers | None = None,
    steps: Integers | None = None,
) -> Selection:
    """Convert ONNX's Slice of any opset: along `axes`, from `starts` to `ends` exclusive.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    starts, ends : sequence of int
        i64; negative ones count from the dimension's end. Values outside of it are clamped, as INT_MAX is.
    axes : sequence of int, optional
        Dimensions, each once; negative ones count from the last. The first ones by default.
    steps : sequence of int, optional
        i64, not 0; a negative one steps from `starts` down to `ends`. 1 by default.

    Returns
    -------
    Selection
        Of the tensor's rank; empty if a step leads away from its end.

    Raises
    ------
    TypeError, ValueError
        A rule above is violated; `numpy.exceptions.AxisError` for an axis out of range.

    Notes
    -----
    `starts` before the first element selects nothing with a negative step, as in ONNX's reference
    implementation and NumPy; the operator's text clamps it.

    Examples
    --------
    >>> from wgslice.dialects import onnx_slice
    >>> onnx_slice((10,), starts=[7], ends=[2], steps=[-2]).items
    (range(7, 2, -2),)
    """
    with named("onnx_slice"):
        entries = strided_entries(starts=starts, ends=ends, steps=steps)
        sizes = tensor_sizes(input_sizes)
        chosen = range(len(entries)) if axes is None else integers("axes", axes)
        if len(chosen) != len(entries):
            raise ValueError(f"{len(chosen)} axes and {len(entries)} starts: there must be one of each")
        key = [slice(None)] * len(sizes)
        for number, axis in enumerate(distinct_axes("axes", chosen, len(sizes))):
            if entries[number][2] == 0:
                raise ValueError(f"steps[{number}] = 0: must not be 0")
            key[axis] = slice(*entries[number])
        return numpy_index(sizes, tuple(key))


def tensorflow_strided_slice(
    input_sizes: Sequence[int],
    begin: Integers,
    end: Integers,
    strides: Integers | None = None,
    begin_mask: SupportsIndex = 0,
    end_mask: SupportsIndex = 0,
    ellipsis_mask: SupportsIndex = 0,
    new_axis_mask: SupportsIndex = 0,
    shrink_axis_mask: SupportsIndex = 0,
) -> Selection:
    """Convert TensorFlow's `tf.strided_slice`: bit i of each mask changes entry i of the three lists.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    begin, end : sequence of int
        i64, for the first dimensions, or as the masks define; negative ones count from the dimension's end.
        Values outside of it are clamped.
    strides : sequence of int, optional
        i64, not 0 where used; a negative one steps from `begin` down to `end`. 1 by default.
    begin_mask, end_mask : int
        Where a bit is set, `begin` or `end` is the end of the dimension in that direction.
    ellipsis_mask, new_axis_mask : int
        Where a bit is set, the entry stands for all dimensions without another entry, at most once, or adds a
        dimension of size 1.
    shrink_axis_mask : int
        Where a bit is set, the entry selects the element at `begin` and drops the dimension; its stride must
        be positive.

    Returns
    -------
    Selection
        Of the tensor's rank, plus added and minus shrunk axes.

    Raises
    ------
    TypeError, ValueError, IndexError
        A rule above is violated, or a shrunk axis has no element at `begin`.

    Notes
    -----
    If bits of several masks are set for one entry, the first of ellipsis, new axis and shrunk axis applies.

    Examples
    --------
    >>> from wgslice.dialects import tensorflow_strided_slice
    >>> tensorflow_strided_slice((10,), [7], [2], [-2]).items
    (range(7, 2, -2),)
    """
    with named("tensorflow_strided_slice"):
        entries = strided_entries(begin=begin, end=end, strides=strides)
        begins, ends = bits("begin_mask", begin_mask), bits("end_mask", end_mask)
        ellipses, added = bits("ellipsis_mask", ellipsis_mask), bits("new_axis_mask", new_axis_mask)
        shrunk = bits("shrink_axis_mask", shrink_axis_mask)
        if len(ellipses) > 1:
            raise ValueError(f"ellipsis_mask = {ellipsis_mask}: must have at most one bit set")
        key: list[Any] = []
        for number, (start, stop, step) in enumerate(entries):
            if number in ellipses:
                key.append(Ellipsis)
            elif number in added:
                key.append(None)
            elif number in shrunk:
                if step <= 0:
                    raise ValueError(f"strides[{number}] = {step}: must be positive where an axis is shrunk")
                key.append(start)
            else:
                if step == 0:
                    raise ValueError(f"strides[{number}] = 0: must not be 0")
                key.append(slice(None if number in begins else start, None if number in ends else stop, step))
        return numpy_index(input_sizes, tuple(key))


def strided_entries(**columns: Integers | None) -> list[tuple[int, ...]]:
    """A start, an end and a step per entry, all i64; steps default to 1."""
    found: list[tuple[int, ...]] = []
    for name, values in columns.items():
        found.append((1,) * len(found[0]) if values is None else integers(name, values))
        check_within(name, found[-1], I64_MIN, I64_MAX)
        if len(found[-1]) != len(found[0]):
            raise ValueError(
                f"{len(found[-1])} {name} for {len(found[0])} {next(iter(columns))}: one of each is needed"
            )
    return list(zip(*found, strict=True))


def bits(name: str, mask: SupportsIndex) -> set[int]:
    """The positions of an i32's set bits."""
    value = integer(name, mask)
    if not I32_MIN <= value <= I32_MAX:
        raise ValueError(f"{name} = {value}: must be an integer from {I32_MIN} to {I32_MAX}")
    return {position for position in range(32) if value >> position & 1}
