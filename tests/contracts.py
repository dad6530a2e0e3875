"""Calls for the fuzz whose rule is not NumPy's alone: shared programs, broken promises, byte orders."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import zarr
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray
from operations import (
    OPERATIONS,
    Argument,
    Call,
    any_argument,
    array_sizes,
    axis_of,
    host,
    index_values,
    joins,
    paddings,
    pads,
    repeats,
    rolls,
    views,
)
from test_insert_windows import insertions, numpy_insert

import wgslice as wg

__all__ = ["EVERY"]

THREADS = 3
NAMED_BY_ZARR = ["bool", "int8", "uint16", "float16", "float32", "int64", "complex128"]


@st.composite
def shared_programs(draw: st.DrawFn) -> Call:
    """One program, called by several threads with their own tensors, of which each holds its results."""
    call = draw(st.one_of([each() for each in (views, joins, pads, rolls, repeats, paddings)]))
    count = len(call.arguments)
    given = [
        replace(argument, seed=argument.seed + number)
        for number in range(THREADS)
        for argument in call.arguments
    ]

    def parts(values: Sequence[Any]) -> list[Sequence[Any]]:
        return [values[begin : begin + count] for begin in range(0, len(values), count)]

    def ours(*tensors: wg.Tensor) -> list[Any]:
        groups = [{f"x{number}": each for number, each in enumerate(part)} for part in parts(tensors)]
        program = wg.capture(lambda **held: call.ours(*held.values()), **groups[0])

        def replay(group: Any) -> list[Any]:
            held = [program(**group) for _ in range(2)]
            program(**group)  # dropped: its buffers are written by another call
            return [*held, program(**group)]

        with ThreadPoolExecutor(THREADS) as threads:
            return [each for held in threads.map(replay, groups) for each in held]

    def numpys(*arrays: Any) -> list[Any]:
        return [call.numpys(*part) for part in parts(arrays) for _ in range(3)]

    return Call(tuple(given), ours, numpys, text=f"{call.text} on threads")


def bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of each element, in a dimension more."""
    packed = np.ascontiguousarray(array)
    return packed.reshape(-1).view(np.uint8).reshape(*array.shape, array.itemsize)


def settle(x: wg.Tensor, values: wg.Tensor, sources: Sequence[NDArray[np.int64]]) -> None:
    """Where an element of `x` has any of the values that were written to it, write the last of these.

    Each source has the shape of `x`, and the number of the element that one window or index writes, or -1.
    """
    found, given = bytes_of(x.numpy()), bytes_of(values.numpy().reshape(-1))
    last, allowed = found.copy(), np.zeros(x.shape, bool)
    for source in sources:
        allowed |= (source >= 0) & (found == given[source]).all(-1)
        last[source >= 0] = given[source[source >= 0]]
    result = np.where(allowed[..., None], last, found)
    x[...] = np.ascontiguousarray(result).reshape(-1).view(x.dtype).reshape(x.shape)


@st.composite
def broken_puts(draw: st.DrawFn) -> Call:
    """`wg.put` with the promise of disjoint indices, some of which are equal."""
    x = draw(any_argument(array_sizes(1, 1), written=True))
    sizes = x.layout.sizes
    axis = draw(axis_of(len(sizes)))
    indices = draw(index_values(sizes[axis], draw(st.sampled_from([(2,), (5,), (40,)]))))
    before: Any = (slice(None),) * (axis % len(sizes))
    taken = np.empty(sizes, "u1")[(*before, indices)].shape
    assume(prod(taken) <= 3000 and len(taken) <= 8)
    values = draw(any_argument(taken, x.dtype))
    held = (host(indices, indices.dtype.name),) if draw(st.booleans()) else ()
    numbers = np.arange(prod(taken)).reshape(taken)
    sources = []
    for number, index in enumerate(indices.tolist()):
        sources.append(np.full(sizes, -1))
        sources[-1][(*before, index)] = numbers[(*before, number)]

    def ours(x: wg.Tensor, values: wg.Tensor, at: Any = indices) -> None:
        wg.put(x, at, values, axis, overlap="disjoint")
        settle(x, values, sources)

    def numpys(x: Any, values: Any, _: Any = None) -> None:
        x[(*before, indices)] = values

    return Call((x, values, *held), ours, numpys, writes=True, text=f"{indices.tolist()} along {axis}")


@st.composite
def broken_insertions(draw: st.DrawFn) -> Call:
    """`insert_windows`, of one array or of a list, with the promise of disjoint windows that may meet."""
    case = draw(insertions())
    sides = Argument(case.tensor, case.dtype, case.seed + 1), Argument(case.batch, case.dtype, case.seed)
    held = (host(case.offsets, "int32"),) if draw(st.booleans()) else ()
    as_list = draw(st.booleans())
    shape = case.batch.sizes
    numbers = np.arange(prod(shape)).reshape(shape)
    strides = np.broadcast_to(case.strides, case.offsets.shape)
    sources = []
    for number in range(len(case.offsets)):
        sources.append(np.full(case.tensor.sizes, -1))
        one = slice(number, number + 1)
        numpy_insert(sources[-1], numbers[one], case.offsets[one], strides[one])

    def ours(x: wg.Tensor, windows: wg.Tensor, offsets: Any = case.offsets) -> None:
        given: Any = [windows[number] for number in range(len(windows))] if as_list else windows
        wg.insert_windows(x, offsets, given, case.strides, overlap="disjoint", outside="drop")
        settle(x, windows, sources)

    def numpys(x: Any, windows: Any, _: Any = None) -> None:
        numpy_insert(x, windows, case.offsets, case.strides)

    return Call((*sides, *held), ours, numpys, writes=True, text=f"{case} {as_list}")


@st.composite
def byte_orders(draw: st.DrawFn) -> Call:
    """Arrays and dtypes of the other byte order, uploaded, assigned and made."""
    x = draw(any_argument())
    other = np.dtype(x.dtype).newbyteorder()
    content = x.array(x.content())
    swapped = content.astype(other)

    def ours(x: wg.Tensor) -> list[wg.Tensor]:
        device = x.device
        assigned = wg.empty(x.shape, other, device=device)
        assigned[...] = swapped
        ones: Any = np.ones_like(x, dtype=other)
        filled = wg.full(x.shape, 1, other, device=device)
        return [wg.asarray(swapped, device=device), wg.asarray(x, dtype=other).copy(), assigned, ones, filled]

    def numpys(x: Any) -> list[Any]:
        ones = np.ones(x.shape, x.dtype)
        return [swapped.astype(x.dtype)] * 3 + [ones] * 2

    return Call((x,), ours, numpys, text=f"{other}")


@st.composite
def stores(draw: st.DrawFn) -> Call:
    """A Zarr array written by a tensor: whole chunks, parts of them, empty ones; then the tensor changes."""
    x = draw(any_argument(array_sizes(1, 1), draw(st.sampled_from(NAMED_BY_ZARR)), written=True))
    sizes = x.layout.sizes
    chunks = tuple(draw(st.sampled_from([size, 1, size + 1, max(size // 2, 1)])) for size in sizes)
    options: dict[str, Any] = {
        "chunks": chunks,
        "fill_value": draw(st.sampled_from([0, 1])),
        "config": {"write_empty_chunks": draw(st.booleans())},
        "compressors": draw(st.sampled_from([None, "auto"])),
    }
    if draw(st.booleans()):
        options["shards"] = tuple(2 * chunk for chunk in chunks)
    key = tuple(slice(draw(st.integers(0, 1)), None) for _ in sizes) if draw(st.booleans()) else (...,)
    empty = draw(st.booleans())  # all elements are those of missing chunks

    def store(x: Any) -> Any:
        if empty:
            x[...] = np.asarray(options["fill_value"], x.dtype)
        array = zarr.create_array({}, shape=sizes, dtype=x.dtype, **options)
        array[key] = x[key]
        return array

    def ours(x: wg.Tensor) -> wg.Tensor:
        own = x.copy()
        array = store(own)
        own[...] = np.ones((), x.dtype)  # which a store of arrays would show, where it keeps views of these
        return wg.asarray(array[...], device=x.device)

    def numpys(x: Any) -> Any:
        return np.asarray(store(x.copy())[...])

    return Call((x,), ours, numpys, text=f"{options} {key} {empty}")


EVERY: dict[str, st.SearchStrategy[Call]] = {
    **OPERATIONS,
    "shared program": shared_programs(),
    "broken put": broken_puts(),
    "broken insert": broken_insertions(),
    "byte order": byte_orders(),
    "store": stores(),
}
