"""Notations that go from a start to an end by a step: ONNX's, TensorFlow's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

from wgslice.arguments import (
    I32_MAX,
    I32_MIN,
    I64_MAX,
    I64_MIN,
    check_within,
    distinct_axes,
    integer,
    integers,
    tensor_sizes,
)
from wgslice.dialects.numpy_index import numpy_index
from wgslice.dialects.selection import Selection
from wgslice.errors import named

__all__ = ["onnx_slice", "tensorflow_strided_slice"]


def onnx_slice(
    input_sizes: Sequence[int],
    starts: Iterable[SupportsIndex],
    ends: Iterable[SupportsIndex],
    axes: Iterable[SupportsIndex] | None = None,
    steps: Iterable[SupportsIndex] | None = None,
) -> Selection:
    """ONNX's Slice of any opset: in each of `axes` from `starts` to `ends`, the latter not included.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    starts, ends : sequence of int
        i64; negative ones count from the dimension's end, and what lies outside of it is moved to its border,
        so that INT_MAX and INT_MIN say "as far as there is".
    axes : sequence of int, optional
        Dimensions, each once; negative ones count from the last. The first ones by default.
    steps : sequence of int, optional
        i64, not 0; a negative one goes backwards from `starts` down to `ends`. 1 by default.

    Returns
    -------
    Selection
        Of the tensor's rank; without elements where a step goes away from its end.

    Raises
    ------
    TypeError, ValueError
        A rule above is broken; for an axis out of range it is `numpy.exceptions.AxisError`.

    Notes
    -----
    As ONNX's reference implementation, and NumPy: `starts` before the first element selects nothing with a
    negative step, where the operator's text moves it to the first element.
    """
    with named("onnx_slice"):
        entries = strided_entries(starts=starts, ends=ends, steps=steps)
        sizes = tensor_sizes(input_sizes)
        chosen = range(len(entries)) if axes is None else integers("axes", axes)
        if len(chosen) != len(entries):
            raise ValueError(f"{len(chosen)} axes and {len(entries)} starts: there must be one of each")
        key = [slice(None)] * len(sizes)
        for number, axis in enumerate(distinct_axes("axes", chosen, len(sizes))):
            check_step("steps", number, entries[number][2])
            key[axis] = slice(*entries[number])
        return numpy_index(sizes, tuple(key))


def tensorflow_strided_slice(
    input_sizes: Sequence[int],
    begin: Iterable[SupportsIndex],
    end: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
    begin_mask: SupportsIndex = 0,
    end_mask: SupportsIndex = 0,
    ellipsis_mask: SupportsIndex = 0,
    new_axis_mask: SupportsIndex = 0,
    shrink_axis_mask: SupportsIndex = 0,
) -> Selection:
    """TensorFlow's `tf.strided_slice`: bit i of each mask says how entry i of the three lists is meant.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor.
    begin, end : sequence of int
        i64, an entry for each of the first dimensions, or for what the masks say; negative ones count from
        the dimension's end, and what lies outside of it is moved to its border.
    strides : sequence of int, optional
        i64, not 0 where it counts; a negative one goes backwards from `begin` down to `end`. 1 by default.
    begin_mask, end_mask : int
        Where a bit is set, `begin` or `end` is as far as there is.
    ellipsis_mask : int
        Where its one bit is set, the entry stands for all dimensions that no other entry names.
    new_axis_mask : int
        Where a bit is set, the entry adds a dimension of size 1.
    shrink_axis_mask : int
        Where a bit is set, the entry takes the element at `begin`, which must be inside, and drops the
        dimension; its stride must be positive.

    Returns
    -------
    Selection
        Of the tensor's rank, but for axes that are added and shrunk.

    Raises
    ------
    TypeError, ValueError
        A rule above is broken.
    IndexError
        A shrunk axis has no such element, or there are more entries than dimensions.

    Notes
    -----
    Of several bits set for one entry the ellipsis counts before the new axis, and that before the shrunk one.
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
                check_step("strides", number, step)
                key.append(slice(None if number in begins else start, None if number in ends else stop, step))
        return numpy_index(input_sizes, tuple(key))


def strided_entries(**columns: Iterable[SupportsIndex] | None) -> list[tuple[int, ...]]:
    """A start, an end and a step for each entry, all i64; the steps are 1 where None."""
    found: list[tuple[int, ...]] = []
    for name, values in columns.items():
        found.append((1,) * len(found[0]) if values is None else integers(name, values))
        check_within(name, found[-1], I64_MIN, I64_MAX, "an i64")
        if len(found[-1]) != len(found[0]):
            raise ValueError(
                f"{len(found[-1])} {name} for {len(found[0])} {next(iter(columns))}: one of each is needed"
            )
    return list(zip(*found, strict=True))


def check_step(name: str, number: int, step: int) -> None:
    """Refuse a step that stays where it is."""
    if step == 0:
        raise ValueError(f"{name}[{number}] = 0: must not be 0")


def bits(name: str, mask: SupportsIndex) -> set[int]:
    """The positions of an i32's set bits."""
    value = integer(name, mask)
    if not I32_MIN <= value <= I32_MAX:
        raise ValueError(f"{name} = {value}: must be an i32, {I32_MIN} to {I32_MAX}")
    return {position for position in range(32) if value >> position & 1}
