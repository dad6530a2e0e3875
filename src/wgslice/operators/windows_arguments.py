"""Windows as users pass them, checked: offsets, sizes, strides and a fill; and offsets of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

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
from wgslice.errors import WindowError, named
from wgslice.plans.copy import plan_anew
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.windows import DROPPED, Windows
from wgslice.tensors.placed import as_assigned, check_of_numbers

Outside: TypeAlias = Literal["refuse", "clamp", "drop"]


class OnGpu(NamedTuple):
    """What is known of device-resident offsets."""

    shape: tuple[int, ...]
    dtype: DType


class Prepared(NamedTuple):
    """Windows of a call, checked, and what plans them."""

    windows: Windows
    planner: Planner
    planning: Callable[..., Plan]


# Calls that are kept with their plans and tables, if each of their arrays has so few values. Preparing 16
# windows takes 0.5 ms, and what else such a call takes on the host 0.1 (two cores of an AMD EPYC).
MAX_PREPARED, MAX_PREPARED_PLANS = 16, 4


def cached_by_value(prepare: Callable[..., tuple[Windows, Planner]]) -> Callable[..., Prepared]:
    """Cache what a function prepares of arguments of few values, of arrays by their content.

    With a cache for plans: windows of a training loop are cut from equal tensors.
    """

    def anew(*arguments: Any) -> Prepared:
        return Prepared(*prepare(*arguments), lru_cache(maxsize=MAX_PREPARED_PLANS)(plan_anew))

    cached = lru_cache(maxsize=MAX_PREPARED)(lambda *keys: anew(*map(value_of, keys)))

    def prepared(*arguments: Any) -> Prepared:
        keys = [each if isinstance(each, OnGpu) else key_of(each) for each in arguments]
        return anew(*arguments) if NotImplemented in keys else cached(*keys)

    return prepared


EXTRACTING: dict[str, str] = {  # values of `outside`, each with the remedy that it is
    "refuse": "move it",
    "clamp": 'outside="clamp" moves it inside',
}
INSERTING = {**EXTRACTING, "drop": 'outside="drop" drops the elements outside'}


def repeated_bytes(fill: Any, dtype: DType) -> bytes:
    """A scalar as 16 bytes of elements."""
    with named("fill"):
        check_of_numbers(fill)
    if isinstance(fill, str | bytes):
        raise TypeError(f"fill = {fill!r}: must be a number, which is taken for all that lies outside")
    if np.ndim(fill) != 0:
        raise TypeError(f"fill has shape {np.shape(fill)}: must be a scalar")
    return np.full(16 // dtype.itemsize, as_assigned(fill, dtype)).tobytes()


def extracted_windows(
    offsets: ArrayLike | OnGpu,
    input_sizes: tuple[int, ...],
    sizes: Integers,
    strides: ArrayLike | None,
    fill: bytes | None,
    outside: Outside | None = None,
) -> Windows:
    """Windows of some sizes of an input, those at known offsets each checked."""
    rule = checked_outside(outside, EXTRACTING, known=not isinstance(offsets, OnGpu), filled=fill is not None)
    table = offsets_table("the input", input_sizes, offsets)
    rank = len(input_sizes)
    extents = integers("sizes", sizes)
    if len(extents) != rank:
        raise WindowError(f"{len(extents)} sizes for an input of rank {rank}: there must be one a dimension")
    anywhere = fill is not None or 0 in extents
    for axis, (extent, size) in enumerate(zip(extents, input_sizes, strict=True)):
        most = I32_MAX if anywhere else size
        if not 0 <= extent <= most:
            what = f"an i32 of at least 0, 0 to {most}" if anywhere else f"0 to the input's size, {most}"
            raise WindowError(f"sizes[{axis}] = {extent}: must be {what}")
    steps, flips = checked_strides(strides, table.shape)
    return placed_windows(table, extents, steps, flips, input_sizes, rule, fill, "the input")


def inserted_windows(
    offsets: ArrayLike | OnGpu,
    batch_sizes: tuple[int, ...],
    tensor_sizes: tuple[int, ...],
    strides: ArrayLike | None,
    outside: Outside | None = None,
) -> Windows:
    """Windows of a batch of sizes (B, ...), to be inserted into a tensor of other sizes."""
    rule = checked_outside(outside, INSERTING, known=not isinstance(offsets, OnGpu))
    table = offsets_table("x", tensor_sizes, offsets)
    rank, count = len(tensor_sizes), table.shape[0]
    if len(batch_sizes) != rank + 1 or batch_sizes[0] != count:
        raise ValueError(
            f"windows have sizes {batch_sizes}: must be ({count}, ...), for each of the offsets a window "
            f"of the {rank} dimensions of x"
        )
    steps, flips = checked_strides(strides, table.shape)
    extents = tuple(max((size - 1) * step + 1, 0) for size, step in zip(batch_sizes[1:], steps, strict=True))
    anywhere = rule == "drop" or 0 in batch_sizes
    for axis, (extent, size) in enumerate(zip(extents, tensor_sizes, strict=True)):
        most, remedy = (I32_MAX, "") if anywhere else (size, f", the size of x; {INSERTING['drop']}")
        if extent > most:
            raise WindowError(
                f"windows reach over {extent} indices of dimension {axis}, {batch_sizes[axis + 1]} in "
                f"steps of {steps[axis]}: must be at most {most}{remedy}"
            )
    fill = DROPPED if rule == "drop" else None
    return placed_windows(table, extents, steps, flips, tensor_sizes, rule, fill, "x")


def offsets_table(name: str, sizes: tuple[int, ...], offsets: ArrayLike | OnGpu) -> NDArray[np.int64] | OnGpu:
    """Offsets of a tensor's windows as a table (B, rank), on the host or the GPU."""
    table = offsets if isinstance(offsets, OnGpu) else integer_array("offsets", offsets)
    if isinstance(table, OnGpu) and (table.dtype.kind not in "iu" or table.dtype.itemsize > 8):
        raise TypeError(f"offsets have dtype {table.dtype}: must be integers")
    rank = len(sizes)
    if len(table.shape) != 2 or table.shape[1] != rank:
        raise ValueError(
            f"offsets have shape {table.shape}: must be (windows, {rank}), one for each dimension"
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
    """Windows at known offsets by the rule for out-of-bounds ones, or at device-resident ones.

    The kernels clamp device-resident offsets where there is no fill. Windows without elements lie anywhere.
    """
    if not sizes:  # as of a tensor of one element in one dimension
        table, extents, steps, sizes = np.zeros((len(flips), 1), np.int64), (1,), (1,), (1,)
    if isinstance(table, OnGpu):
        return Windows(extents, steps, flips, None, table.dtype.itemsize, table.dtype.kind == "i", fill)
    if 0 in extents:
        table, rule = np.zeros_like(table), "clamp"
    highest = np.subtract(sizes, extents, dtype=np.int64)
    leaving = (table < 0) | (table > highest)
    if rule == "refuse" and leaving.any():
        window, axis = (int(index) for index in np.argwhere(leaving)[0])
        remedies = EXTRACTING | {"fill": "name a fill"} if name == "the input" else INSERTING
        raise WindowError(
            f"offsets[{window}][{axis}] = {table[window, axis]}: a window of size {extents[axis]} from "
            f"there leaves {name}'s size {sizes[axis]} in dimension {axis}, must be 0 to "
            f"{highest[axis]}; {', or '.join(remedies.values())}"
        )
    clamped = rule == "clamp"
    known = np.clip(table, *((0, highest) if clamped else (I32_MIN, I32_MAX))).astype(np.int32)
    return Windows(extents, steps, flips, known, 4, True, fill if leaving.any() and not clamped else None)


def checked_outside(outside: str | None, values: dict[str, str], *, known: bool, filled: bool = False) -> str:
    """The rule for out-of-bounds windows: `outside`, refused if it is not possible, or the default."""
    if outside is None:
        return "fill" if filled else "refuse" if known else "clamp"
    if outside not in values:
        raise ValueError(f"outside = {outside!r}: must be one of {', '.join(map(repr, values))}")
    if filled:
        raise ValueError(
            f"outside = {outside!r} and a fill: a window that reads the fill outside may lie anywhere; "
            "give one of them"
        )
    if outside == "refuse" and not known:
        others = " or ".join(f'outside="{value}"' for value in values if value != "refuse")
        raise WindowError(
            f'outside = "refuse": offsets in a tensor are not read back; give {others}, or an array of them'
        )
    return outside


def integer_array(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Integers in an array; unsigned ones that need 64 bits as the nearest that do not."""
    with named(name):
        check_of_numbers(values)
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list says nothing of its dtype
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} have dtype {array.dtype}: must be integers")
    return int64_of(array)


def checked_strides(
    strides: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], NDArray[np.uint32]]:
    """Magnitudes, the same for all windows, and directions."""
    count, rank = shape
    given = np.ones(rank, np.int64) if strides is None else integer_array("strides", strides)
    if given.shape not in ((rank,), (count, rank)):
        raise ValueError(f"strides have shape {given.shape}: must be ({rank},) or ({count}, {rank})")
    rows = given if given.ndim == 2 else given[None]
    if len(rows) == 0:  # no windows, and none that says how they go
        rows = np.ones((1, rank), np.int64)
    magnitudes = np.abs(rows)
    for wrong, rule in (
        (rows == 0, "must not be 0"),
        ((rows < I32_MIN) | (rows > I32_MAX), f"must be an i32, {I32_MIN} to {I32_MAX}"),
        (magnitudes != magnitudes[0], "must have the magnitude of the first window's"),
    ):
        if wrong.any():
            window, axis = (int(index) for index in np.argwhere(wrong)[0])
            place = f"[{window}][{axis}]" if given.ndim == 2 else f"[{axis}]"
            raise WindowError(f"strides{place} = {int(rows[window, axis])}: {rule}")
    bits = ((rows < 0) << np.arange(rank)).sum(axis=1).astype(np.uint32)
    steps = tuple(int(step) for step in magnitudes[0])
    return steps, np.ascontiguousarray(np.broadcast_to(bits, count))


def tile_offsets(shape: OneOrMore, tile: OneOrMore, overlap: OneOrMore = 0) -> NDArray[np.int64]:
    """Compute the offsets of tiles that cover a tensor, for `extract_windows` and `insert_windows`.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the tensor, 0 to 8 of them.
    tile : int or sequence of int
        Sizes of a tile, at least 1: of each dimension, or one for all.
    overlap : int or sequence of int, optional
        Elements that a tile has in common with the next, at least 0 and less than its size, likewise.

    Returns
    -------
    numpy.ndarray
        int64, (tiles, rank): the first element of each tile, row-major. The last one along a dimension
        sticks out where the sizes do not go into each other, which `extract_windows` takes with `fill`, and
        `insert_windows` with `outside="drop"`. None sticks out by as much as would make it superfluous; of a
        tensor without elements there are none.

    Raises
    ------
    TypeError, ValueError
        What is given is no integers, not of the tensor's rank, or breaks one of these rules.

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
                raise ValueError(f"tile[{axis}] = {size}: must be an i32 of at least 1")
            if not 0 <= common < size:
                raise ValueError(
                    f"overlap[{axis}] = {common}: must be 0 to {size - 1}, less than tile[{axis}]"
                )
    starts = []
    for size, length, common in zip(sizes, tiles, shared, strict=True):
        step = length - common
        count = -(-max(size - common, 1) // step) if size else 0
        starts.append(np.arange(count, dtype=np.int64) * step)
    grid = np.meshgrid(*starts, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.zeros((1, 0), np.int64)


def each(name: str, value: OneOrMore, rank: int) -> tuple[int, ...]:
    """One integer for each dimension."""
    values = one_or_more(name, value)
    if isinstance(value, Iterable):
        if len(values) != rank:
            raise ValueError(f"{name} {values}: must be one integer, or {rank}, one for each dimension")
        return values
    return values * rank
