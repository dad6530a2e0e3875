"""Checks of window arguments (offsets, sizes, strides, fill, lists), and the offsets of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

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
from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import WindowError, fitted, named
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Binding, Planning, plan_between, run_copies
from wgslice.layout import Layout
from wgslice.layout_rules import unsqueezed
from wgslice.operators.binding import TensorDesc
from wgslice.plans.copy import plan_anew
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.plan import Planner
from wgslice.plans.windows import DROPPED, Packing, SizedWindows, Windows
from wgslice.tensors.placed import (
    Placed,
    as_assigned,
    as_copied,
    check_input,
    check_of_numbers,
    uploaded,
)
from wgslice.tensors.tensor import Tensor, allocate

Table: TypeAlias = NDArray[np.int64]
AnyWindows: TypeAlias = Windows | SizedWindows
SomeWindows = TypeVar("SomeWindows")
Outside: TypeAlias = Literal["refuse", "clamp", "drop"]


class OnGpu(NamedTuple):
    """Shape and dtype of device-resident offsets."""

    shape: tuple[int, ...]
    dtype: DType


def packed_windows(sizes: Table, itemsize: int) -> Packing:
    """Return the places of windows of some sizes, (B, rank), in a packed buffer."""
    unit = WIDEST_NBYTES // itemsize
    stops = np.cumsum(-(-sizes.prod(axis=1) // unit) * unit)
    inner = np.hstack([np.ones_like(sizes[:, :1]), sizes[:, :0:-1]])
    strides = np.ascontiguousarray(inner.cumprod(axis=1)[:, ::-1])
    starts = np.concatenate([[0], stops[:-1]])[: len(sizes)]
    return Packing(starts, strides, int(stops[-1]) if len(stops) else 0)


# Preparing 16 windows costs 0.5 ms on the host, 1,000 of different sizes 15 ms; the rest of such calls costs
# 0.1 and 4 ms (two cores of an AMD EPYC).
MAX_PREPARED, MAX_PREPARED_PLANS, MAX_PREPARED_VALUES = 16, 4, 2**14


def cached_by_value(
    prepare: Callable[..., tuple[SomeWindows, Planner]],
) -> Callable[..., tuple[SomeWindows, Planner, Planning]]:
    """Cache a function by the content of its arguments, with a cache of plans for each result."""

    def anew(*arguments: Any) -> tuple[SomeWindows, Planner, Planning]:
        planning = partial(plan_between, lru_cache(maxsize=MAX_PREPARED_PLANS)(plan_anew))
        return *prepare(*arguments), planning

    cached = lru_cache(maxsize=MAX_PREPARED)(lambda *keys: anew(*map(value_of, keys)))

    def prepared(*arguments: Any) -> tuple[SomeWindows, Planner, Planning]:
        keys = [each if isinstance(each, OnGpu) else key_of(each, MAX_PREPARED_VALUES) for each in arguments]
        return anew(*arguments) if NotImplemented in keys else cached(*keys)

    return prepared


def given_offsets(offsets: ArrayLike | Placed | TensorDesc) -> Table | OnGpu:
    """Return offsets on the host as an array, whose content caches compare, or what is known of others."""
    if isinstance(offsets, Placed):
        return OnGpu(offsets.shape, offsets.dtype)
    if isinstance(offsets, TensorDesc):
        return OnGpu(offsets.sizes, offsets.dtype)
    return integer_array("offsets", offsets)


def bound_offsets(offsets: Any, windows: AnyWindows) -> Binding | None:
    """Return the layout of offsets in a tensor, unless windows need none."""
    return offsets.bound_layout if isinstance(offsets, Placed) and windows.offsets is None else None


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
    sizes: Integers | ArrayLike,
    strides: ArrayLike | None,
    fill: bytes | None,
    outside: Outside | None,
    itemsize: int,
) -> AnyWindows:
    """Return checked windows of an input, packed in their batch; device-resident offsets are not checked."""
    rule = checked_outside(outside, EXTRACTING, known=not isinstance(offsets, OnGpu), filled=fill is not None)
    table = offsets_table("the input", input_sizes, offsets)
    if are_per_window(sizes):
        extents: NDArray[Any] = sizes_table(sizes, table.shape)
    else:
        extents = np.array(integers("sizes", cast("Integers", sizes)), object)  # of integers of any size
        if len(extents) != table.shape[1]:
            raise WindowError(
                f"{len(extents)} sizes for an input of rank {table.shape[1]}: must be one for each dimension"
            )
    anywhere = have_none(extents) | (fill is not None)
    most = np.where(anywhere, I32_MAX, np.array(input_sizes, np.int64))
    for place in places_of((extents < 0) | (extents > most)):
        bound = "" if anywhere[place[:-1]] else "the input's size, "
        raise WindowError(f"sizes{indexed(place)} = {extents[place]}: must be 0 to {bound}{most[place]}")
    steps, flips = checked_strides(strides, table.shape)
    extents = extents.astype(np.int64)
    each = 1 + (extents - 1) // np.array(steps, np.int64)
    packing = packed_windows(each, itemsize) if extents.ndim == 2 else None
    return placed_windows(table, extents, steps, flips, input_sizes, rule, fill, "the input", packing)


def inserted_windows(
    offsets: ArrayLike | OnGpu,
    window_sizes: tuple[int, ...] | Table,
    tensor_sizes: tuple[int, ...],
    strides: ArrayLike | None,
    outside: Outside | None = None,
    packing: Packing | None = None,
) -> AnyWindows:
    """Return checked windows to insert into a tensor: of a batch of sizes `(B, ...)`, or each packed."""
    rule = checked_outside(outside, INSERTING, known=not isinstance(offsets, OnGpu))
    table = offsets_table("x", tensor_sizes, offsets)
    count, rank = table.shape
    if packing is None and (len(window_sizes) != rank + 1 or window_sizes[0] != count):
        raise ValueError(
            f"windows have sizes {window_sizes}: must be ({count}, ...), one window of rank {rank} for each "
            "of the offsets"
        )
    sizes = np.array(window_sizes if packing else window_sizes[1:], np.int64)
    if packing and sizes.shape != table.shape:
        raise ValueError(
            f"{len(sizes)} windows of rank {sizes.shape[1]}: must be {count} of rank {rank}, one for each of "
            "the offsets"
        )
    steps, flips = checked_strides(strides, table.shape)
    extents = np.maximum((sizes - 1) * np.array(steps, np.int64) + 1, 0)
    anywhere = have_none(extents) | (rule == "drop") | (count == 0)
    most = np.where(anywhere, I32_MAX, np.array(tensor_sizes, np.int64))
    for place in places_of(extents > most):
        of_one = f"windows{indexed(place[:-1])} " + ("has" if packing else "have")
        remedy = "" if anywhere[place[:-1]] else f", the size of x; {INSERTING['drop']}"
        raise WindowError(
            f"{of_one} extent {extents[place]} in dimension {place[-1]}, {sizes[place]} elements in steps of "
            f"{steps[place[-1]]}: must be at most {most[place]}{remedy}"
        )
    fill = DROPPED if rule == "drop" else None
    return placed_windows(table, extents, steps, flips, tensor_sizes, rule, fill, "x", packing)


def are_per_window(sizes: Any) -> bool:
    """Whether sizes are of shape (B, rank)."""
    if isinstance(sizes, np.ndarray):
        return sizes.ndim == 2
    return isinstance(sizes, Sequence) and any(np.ndim(each) for each in sizes)


def sizes_table(sizes: Any, shape: tuple[int, ...]) -> Table:
    """Return sizes per window as a table of the shape of the offsets."""
    table = integer_array("sizes", sizes)
    if table.shape != shape:
        raise ValueError(
            f"sizes have shape {table.shape}: must be {shape}, as offsets, or one size for each dimension"
        )
    return table


def have_none(extents: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether windows have no elements, of all, (1,), or of each, (B, 1): these may be anywhere."""
    return np.asarray((extents == 0).any(axis=-1, keepdims=True), np.bool_)


def places_of(wrong: NDArray[np.bool_]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of wrong values, in order."""
    yield from map(tuple, np.argwhere(wrong).tolist())


def indexed(place: Iterable[int]) -> str:
    """Return indices as they are printed behind a name."""
    return "".join(f"[{index}]" for index in place)


def offsets_table(name: str, sizes: tuple[int, ...], offsets: ArrayLike | OnGpu) -> Table | OnGpu:
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
    table: Table | OnGpu,
    extents: Table,
    steps: tuple[int, ...],
    flips: NDArray[np.uint32],
    sizes: tuple[int, ...],
    rule: str,
    fill: bytes | None,
    name: str,
    packing: Packing | None,
) -> AnyWindows:
    """Return windows with the rule for out-of-bounds ones applied to offsets on the host."""
    if not sizes:  # rank 0: as one dimension of one element
        table, steps, sizes = np.zeros((len(flips), 1), np.int64), (1,), (1,)
        extents = np.ones((*extents.shape[:-1], 1), np.int64)
        packing = packing and packing._replace(strides=extents)
    known, nbytes, signed = None, 4, True
    if isinstance(table, OnGpu):  # without a fill the kernels clamp them
        nbytes, signed = table.dtype.itemsize, table.dtype.kind == "i"
    else:
        empty, highest = have_none(extents), np.array(sizes, np.int64) - extents
        leaving = (table < 0) | (table > highest)
        if empty.any():
            leaving, table = leaving & ~empty, np.where(empty, 0, table)
        remedies = EXTRACTING | {"fill": "name a fill"} if name == "the input" else INSERTING
        for place in places_of(leaving & (rule == "refuse")):
            extent, size = np.broadcast_to(extents, table.shape)[place], sizes[place[1]]
            raise WindowError(
                f"offsets{indexed(place)} = {table[place]}: must be 0 to {size - extent} for a window of "
                f"size {extent} in dimension {place[1]} of {name}, of size {size}; "
                f"{', or '.join(remedies.values())}"
            )
        bounds = (0, np.maximum(highest, 0)) if rule == "clamp" else (I32_MIN, I32_MAX)
        known = np.clip(table, *bounds).astype(np.int32)
        fill = fill if leaving.any() and rule != "clamp" else None
    placed = steps, flips, known, nbytes, signed, fill
    if packing is None:
        return Windows(tuple(extents.tolist()), *placed)
    return SizedWindows(extents, *placed, packing)


def with_a_dimension(windows: AnyWindows, tensor: Layout, batch: Layout) -> tuple[Layout, Layout]:
    """Return layouts of a tensor and its windows; of a tensor of rank 0 as one dimension of one element."""
    if tensor.rank:
        return tensor, batch
    packed = isinstance(windows, SizedWindows)
    return unsqueezed(tensor, [0]), batch if packed else unsqueezed(batch, [1])


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


def integer_array(name: str, values: Any) -> Table:
    """Return integers as an int64 array; uint64 values beyond its range become its maximum."""
    with named(name):
        check_of_numbers(values)
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list has no dtype of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} have dtype {array.dtype}: must be integers")
    return array if array.dtype == np.int64 else int64_of(array)


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
        for place in places_of(wrong):
            raise WindowError(f"strides{indexed(place[-given.ndim :])} = {rows[place]}: {rule}")
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
        found, rank = [], len(sizes)
        for name, value in (("tile", tile), ("overlap", overlap)):
            values = one_or_more(name, value)
            if isinstance(value, Iterable) and len(values) != rank:
                raise ValueError(f"{name} {values}: must be one integer, or {rank}, one for each dimension")
            found.append(values if isinstance(value, Iterable) else values * rank)
        tiles, shared = found
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


# windows in buffers: lists of tensors, and packed ones


def by_buffer(tensors: list[Tensor]) -> list[tuple[list[int], Binding, Packing]]:
    """Return the numbers of the tensors of each buffer, all of it that they reach, and their places in it."""
    if not tensors:
        return []
    order: dict[int, list[int]] = {}
    for number, tensor in enumerate(tensors):
        order.setdefault(id(tensor.memory), []).append(number)
    columns = zip(*[tensor.layout for tensor in tensors], strict=True)
    sizes, strides, starts = (np.array(values, np.int64).reshape(len(tensors), -1) for values in columns)
    starts, reaches = starts[:, 0], (sizes - 1) * strides
    lows = starts + np.minimum(reaches, 0).sum(axis=1)
    stops = starts + np.maximum(reaches, 0).sum(axis=1) + 1
    found = []
    for numbers in order.values():
        kept = [number for number in numbers if tensors[number].size]
        low, stop = (int(lows[kept].min()), int(stops[kept].max())) if kept else (0, 0)
        memory, itemsize = tensors[numbers[0]].memory, tensors[numbers[0]].itemsize
        whole = Binding(memory, Layout.of((stop - low,), (1,), low), itemsize)
        found.append((numbers, whole, Packing(starts - low, strides, stop - low)))
    return found


def checked_windows(x: Tensor, windows: list[Any]) -> list[Tensor | NDArray[Any]]:
    """Return the windows of a list as tensors and arrays of the dtype and the rank of their target."""
    found: list[Tensor | NDArray[Any]] = []
    usable: set[int] = set()  # memories: a thousand windows are often of one
    for number, given in enumerate(windows):
        alike = isinstance(given, Tensor) and (given.ndim, given.dtype) == (x.ndim, x.dtype)
        if alike and id(given.memory) in usable:
            found.append(given)
            continue
        name = f"windows[{number}]"
        with named(name):
            window = given if isinstance(given, Tensor) else as_copied(given, x.dtype)
            if isinstance(window, Tensor):
                check_same_dtype(x.dtype, window.dtype)
            if window.ndim != x.ndim:
                raise ValueError(f"shape {window.shape}: must be of rank {x.ndim}, as x")
        if isinstance(window, Tensor):
            check_input(x.device, name, window.memory)
            usable.add(id(window.memory))
        found.append(window)
    return found


def gathered(
    device: Device, dtype: DType, windows: list[Tensor | NDArray[Any]], sizes: Table
) -> tuple[Binding, Packing]:
    """Return one buffer with all windows, and their places in it.

    Tensors of one buffer stay where they are; others are copied into a new one.
    """
    packing = packed_windows(sizes, dtype.itemsize)
    tensors = [each for each in windows if isinstance(each, Tensor)]
    if tensors and len(tensors) == len(windows):
        buffers = by_buffer(tensors)
        if len(buffers) == 1:
            return buffers[0][1:]
    if not tensors:
        packed = np.zeros(packing.size, dtype)
        for window, start in zip(windows, packing.starts.tolist(), strict=True):
            packed[start : start + window.size] = np.asarray(window).reshape(-1)
        return uploaded(device, packed), packing
    target = allocate((packing.size,), dtype, device, zeroed=False)
    copies = []
    for window, start in zip(windows, packing.starts.tolist(), strict=True):
        if window.size:
            read = window.bound_layout if isinstance(window, Tensor) else uploaded(device, window)
            layout = Layout.packed(window.shape, start)
            moved = read.layout.shifted(read.offset_nbytes // dtype.itemsize)
            copies.append((read.buffer, moved, target.memory, layout))
    run_copies(device, dtype.itemsize, copies)
    return target.bound_layout._replace(fresh=True), packing
