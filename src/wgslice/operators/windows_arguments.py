"""Checks of window arguments (offsets, sizes, strides, fill), and the offsets of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import prod
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import (
    I32_MAX,
    I32_MIN,
    Integers,
    OneOrMore,
    checked_shape,
    int64_of,
    integers,
    key_of,
    one_or_more,
    value_of,
)
from wgslice.dtypes import DType
from wgslice.errors import WindowError, fitted, named
from wgslice.gpu.recording import Planning, plan_between
from wgslice.layout import Layout
from wgslice.layout_rules import unsqueezed
from wgslice.plans.copy import plan_anew
from wgslice.plans.plan import Planner
from wgslice.plans.windows import DROPPED, Windows
from wgslice.tensors.placed import as_assigned, check_of_numbers

SomeWindows = TypeVar("SomeWindows")
Outside: TypeAlias = Literal["refuse", "clamp", "drop"]


class OnGpu(NamedTuple):
    """Shape and dtype of device-resident offsets."""

    shape: tuple[int, ...]
    dtype: DType


class Prepared(NamedTuple, Generic[SomeWindows]):
    """Checked windows of a call, their planner, and a cache of its plans."""

    windows: SomeWindows
    planner: Planner
    planning: Planning


# Preparing 16 windows costs 0.5 ms on the host, 1,000 of different sizes 15 ms; the rest of such calls costs
# 0.1 and 4 ms (two cores of an AMD EPYC).
MAX_PREPARED, MAX_PREPARED_PLANS, MAX_PREPARED_VALUES = 16, 4, 2**14


def cached_by_value(
    prepare: Callable[..., tuple[SomeWindows, Planner]],
) -> Callable[..., Prepared[SomeWindows]]:
    """Cache a function by the content of its arguments, with a cache of plans for each result."""

    def anew(*arguments: Any) -> Prepared[SomeWindows]:
        planning = partial(plan_between, lru_cache(maxsize=MAX_PREPARED_PLANS)(plan_anew))
        return Prepared(*prepare(*arguments), planning)

    cached = lru_cache(maxsize=MAX_PREPARED)(lambda *keys: anew(*map(value_of, keys)))

    def prepared(*arguments: Any) -> Prepared[SomeWindows]:
        keys = [each if isinstance(each, OnGpu) else key_of(each, MAX_PREPARED_VALUES) for each in arguments]
        return anew(*arguments) if NotImplemented in keys else cached(*keys)

    return prepared


EXTRACTING: dict[str, str] = {  # remedies by the values of `outside`
    "refuse": "move it",
    "clamp": 'outside="clamp" moves it inside',
}
INSERTING = {**EXTRACTING, "drop": 'outside="drop" drops the elements outside'}


def repeated_bytes(value: Any, dtype: DType, name: str = "fill") -> bytes:
    """Return a scalar argument, cast as NumPy assigns it, as 16 bytes of elements."""
    with named(name):
        check_of_numbers(value)
    if isinstance(value, str | bytes):
        raise TypeError(f"{name} = {value!r}: must be a number")
    if np.ndim(value) != 0:
        raise TypeError(f"{name} has shape {np.shape(value)}: must be a scalar")
    with named(name):
        return np.full(16 // dtype.itemsize, as_assigned(value, dtype)).tobytes()


def extracted_windows(
    offsets: ArrayLike | OnGpu,
    input_sizes: tuple[int, ...],
    sizes: Integers,
    strides: ArrayLike | None,
    fill: bytes | None,
    outside: Outside | None = None,
) -> Windows:
    """Return checked windows of an input; device-resident offsets are not checked."""
    rule = checked_outside(outside, EXTRACTING, known=not isinstance(offsets, OnGpu), filled=fill is not None)
    table = offsets_table("the input", input_sizes, offsets)
    rank = len(input_sizes)
    extents = integers("sizes", sizes)
    if len(extents) != rank:
        raise WindowError(f"{len(extents)} sizes for an input of rank {rank}: must be one for each dimension")
    anywhere = fill is not None or 0 in extents
    for axis, (extent, size) in enumerate(zip(extents, input_sizes, strict=True)):
        most = I32_MAX if anywhere else size
        if not 0 <= extent <= most:
            bound = most if anywhere else f"the input's size, {most}"
            raise WindowError(f"sizes[{axis}] = {extent}: must be 0 to {bound}")
    steps, flips = checked_strides(strides, table.shape)
    return placed_windows(table, extents, steps, flips, input_sizes, rule, fill, "the input")


def inserted_windows(
    offsets: ArrayLike | OnGpu,
    batch_sizes: tuple[int, ...],
    tensor_sizes: tuple[int, ...],
    strides: ArrayLike | None,
    outside: Outside | None = None,
) -> Windows:
    """Return checked windows of a batch `(B, ...)` to be inserted into a tensor."""
    rule = checked_outside(outside, INSERTING, known=not isinstance(offsets, OnGpu))
    table = offsets_table("x", tensor_sizes, offsets)
    rank, count = len(tensor_sizes), table.shape[0]
    if len(batch_sizes) != rank + 1 or batch_sizes[0] != count:
        raise ValueError(
            f"windows have sizes {batch_sizes}: must be ({count}, ...), one window of rank {rank} for each "
            "of the offsets"
        )
    steps, flips = checked_strides(strides, table.shape)
    extents = tuple(max((size - 1) * step + 1, 0) for size, step in zip(batch_sizes[1:], steps, strict=True))
    anywhere = rule == "drop" or 0 in batch_sizes
    for axis, (extent, size) in enumerate(zip(extents, tensor_sizes, strict=True)):
        most, remedy = (I32_MAX, "") if anywhere else (size, f", the size of x; {INSERTING['drop']}")
        if extent > most:
            raise WindowError(
                f"windows have extent {extent} in dimension {axis}, {batch_sizes[axis + 1]} elements in "
                f"steps of {steps[axis]}: must be at most {most}{remedy}"
            )
    fill = DROPPED if rule == "drop" else None
    return placed_windows(table, extents, steps, flips, tensor_sizes, rule, fill, "x")


def offsets_table(name: str, sizes: tuple[int, ...], offsets: ArrayLike | OnGpu) -> NDArray[np.int64] | OnGpu:
    """Return the offsets of windows as a table `(B, rank)`, on the host or device-resident."""
    table = offsets if isinstance(offsets, OnGpu) else integer_array("offsets", offsets)
    if isinstance(table, OnGpu) and (table.dtype.kind not in "iu" or table.dtype.itemsize > 8):
        raise TypeError(f"offsets have dtype {table.dtype}: must be integers")
    rank = len(sizes)
    if len(table.shape) != 2 or table.shape[1] != rank:
        raise ValueError(
            f"offsets have shape {table.shape}: must be (windows, {rank}), one offset for each dimension"
        )
    for axis, size in enumerate(sizes):
        if size > I32_MAX:
            raise ValueError(f"{name} has size {size} in dimension {axis}: must be at most {I32_MAX}")
    return table


def placed_windows(
    table: NDArray[np.int64] | OnGpu,
    extents: tuple[int, ...],
    steps: tuple[int, ...],
    flips: NDArray[np.uint32],
    sizes: tuple[int, ...],
    rule: str,
    fill: bytes | None,
    name: str,
) -> Windows:
    """Return windows with the rule for out-of-bounds ones applied to offsets on the host."""
    if not sizes:  # rank 0: as one dimension of one element
        table, extents, steps, sizes = np.zeros((len(flips), 1), np.int64), (1,), (1,), (1,)
    if isinstance(table, OnGpu):  # without a fill the kernels clamp them
        return Windows(extents, steps, flips, None, table.dtype.itemsize, table.dtype.kind == "i", fill)
    if 0 in extents:  # windows without elements may be anywhere
        table, rule = np.zeros_like(table), "clamp"
    highest = np.subtract(sizes, extents, dtype=np.int64)
    leaving = (table < 0) | (table > highest)
    if rule == "refuse":
        check_inside(leaving, table, np.broadcast_to(extents, table.shape), sizes, name)
    clamped = rule == "clamp"
    known = np.clip(table, *((0, highest) if clamped else (I32_MIN, I32_MAX))).astype(np.int32)
    return Windows(extents, steps, flips, known, 4, True, fill if leaving.any() and not clamped else None)


def check_inside(
    leaving: NDArray[np.bool_],
    table: NDArray[np.int64],
    extents: NDArray[np.int64],
    sizes: tuple[int, ...],
    name: str,
) -> None:
    """Raise WindowError for the first window that leaves a tensor, called `name`, of these sizes."""
    if not leaving.any():
        return
    window, axis = (int(index) for index in np.argwhere(leaving)[0])
    extent, size = extents[window, axis], sizes[axis]
    remedies = EXTRACTING | {"fill": "name a fill"} if name == "the input" else INSERTING
    raise WindowError(
        f"offsets[{window}][{axis}] = {table[window, axis]}: must be 0 to {size - extent} for a window of "
        f"size {extent} in dimension {axis} of {name}, of size {size}; {', or '.join(remedies.values())}"
    )


def with_a_dimension(tensor: Layout, batch: Layout) -> tuple[Layout, Layout]:
    """Return layouts of a tensor and its windows; those of rank 0 as one dimension of one element."""
    return (tensor, batch) if tensor.rank else (unsqueezed(tensor, [0]), unsqueezed(batch, [1]))


def checked_outside(outside: str | None, values: dict[str, str], *, known: bool, filled: bool = False) -> str:
    """Return the rule for out-of-bounds windows: `outside` if it is possible here, or the default."""
    if outside is None:
        return "fill" if filled else "refuse" if known else "clamp"
    if outside not in values:
        raise ValueError(f"outside = {outside!r}: must be one of {', '.join(map(repr, values))}")
    if filled:
        raise ValueError(
            f"outside = {outside!r} and a fill are both given: with a fill windows may be anywhere; leave "
            "one of them out"
        )
    if outside == "refuse" and not known:
        others = " or ".join(f'outside="{value}"' for value in values if value != "refuse")
        raise WindowError(
            f'outside = "refuse": offsets in a tensor are not read back; use {others}, or offsets in an array'
        )
    return outside


def integer_array(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return integers as an int64 array; uint64 values beyond its range become its maximum."""
    with named(name):
        check_of_numbers(values)
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list has no dtype of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} have dtype {array.dtype}: must be integers")
    return int64_of(array)


def checked_strides(
    strides: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], NDArray[np.uint32]]:
    """Return the magnitudes of strides, equal for all windows, and a bit mask of reversed dimensions each."""
    count, rank = shape
    given = np.ones(rank, np.int64) if strides is None else integer_array("strides", strides)
    if given.shape not in ((rank,), (count, rank)):
        raise ValueError(f"strides have shape {given.shape}: must be ({rank},) or ({count}, {rank})")
    rows = given if given.ndim == 2 else given[None]
    if len(rows) == 0:
        rows = np.ones((1, rank), np.int64)
    magnitudes = np.abs(rows)
    for wrong, rule in (
        (rows == 0, "must not be 0"),
        ((rows < I32_MIN) | (rows > I32_MAX), f"must be an integer from {I32_MIN} to {I32_MAX}"),
        (magnitudes != magnitudes[0], "must have the magnitude of the first window's"),
    ):
        if wrong.any():
            window, axis = (int(index) for index in np.argwhere(wrong)[0])
            place = f"[{window}][{axis}]" if given.ndim == 2 else f"[{axis}]"
            raise WindowError(f"strides{place} = {int(rows[window, axis])}: {rule}")
    bits = ((rows < 0) << np.arange(rank)).sum(axis=1).astype(np.uint32)
    steps = tuple(int(step) for step in magnitudes[0])
    return steps, np.ascontiguousarray(np.broadcast_to(bits, count))


@fitted()
def tile_offsets(shape: OneOrMore, tile: OneOrMore, overlap: OneOrMore = 0) -> NDArray[np.int64]:
    """Compute the offsets of tiles that cover a tensor, for `extract_windows` and `insert_windows`.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the tensor, 0 to 8 of them.
    tile : int or sequence of int
        Sizes of a tile, at least 1: of each dimension, or one for all.
    overlap : int or sequence of int, optional
        Elements that a tile has in common with the next, at least 0 and less than its size, given as `tile`.

    Returns
    -------
    numpy.ndarray
        int64, (tiles, rank): the first element of each tile, row-major. The last tile along a dimension may
        exceed the tensor: `extract_windows` accepts that with `fill`, `insert_windows` with `outside="drop"`.
        There are no more tiles than cover the tensor; a tensor without elements has none.

    Raises
    ------
    TypeError, ValueError
        An argument is not of integers, not of the tensor's rank, or breaks one of these rules.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.tile_offsets((4, 7), tile=(4, 3)).tolist()
    [[0, 0], [0, 3], [0, 6]]
    >>> wg.tile_offsets(7, tile=3, overlap=1).tolist()
    [[0], [2], [4]]
    """
    with named("tile_offsets"):
        sizes = checked_shape(shape)
        tiles, shared = each("tile", tile, len(sizes)), each("overlap", overlap, len(sizes))
        for axis, (size, common) in enumerate(zip(tiles, shared, strict=True)):
            if not 1 <= size <= I32_MAX:
                raise ValueError(f"tile[{axis}] = {size}: must be an integer from 1 to {I32_MAX}")
            if not 0 <= common < size:
                raise ValueError(
                    f"overlap[{axis}] = {common}: must be 0 to {size - 1}, less than tile[{axis}]"
                )
    steps = np.array(tiles, np.int64) - np.array(shared, np.int64)
    counts = [
        -(-max(size - common, 1) // int(step)) if size else 0
        for size, common, step in zip(sizes, shared, steps, strict=True)
    ]
    return np.indices(counts, np.int64).reshape(len(counts), prod(counts)).T * steps


def each(name: str, value: OneOrMore, rank: int) -> tuple[int, ...]:
    """Return one integer for each dimension."""
    values = one_or_more(name, value)
    if isinstance(value, Iterable):
        if len(values) != rank:
            raise ValueError(f"{name} {values}: must be one integer, or {rank}, one for each dimension")
        return values
    return values * rank
