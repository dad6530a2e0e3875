"""Places of windows: mirrors `windows` of `wgsl/shared/`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference.memory import Flags, Words
from reference.pieces import divide, invocation_numbers

from wgslice.arguments import I32_MAX, I32_MIN
from wgslice.plans.facade import WindowDispatch

Offsets = NDArray[np.int32]  # (windows, rank)


def in_32_bits(offsets: NDArray[np.generic]) -> Offsets:
    """Offsets of any integers as the kernels read them: beyond 32 bits the nearest."""
    info = np.iinfo(offsets.dtype.name)
    fitting: Offsets = np.clip(offsets, max(info.min, I32_MIN), min(info.max, I32_MAX)).astype(np.int32)
    return fitting


class Tables(NamedTuple):
    """Bindings of kernels of windows besides source and target."""

    offsets: Offsets
    winners: Words | None  # on the tensor's indices, where windows may overlap


def are_last(block: np.void, step: WindowDispatch, tables: Tables, winner: Words, window: Words) -> Flags:
    """Whether windows are the last ones that have the indices of winners."""
    if step.winners is None:
        return np.ones(winner.shape, bool)
    assert tables.winners is not None
    known = tables.winners[np.minimum(winner, np.uint32(len(tables.winners) - 1))]
    return np.asarray(known == block["winner_base"] + window, bool)


class Picks(NamedTuple):
    """A window for each of what is copied."""

    number: Words  # windows before it, of all that there are
    flips: Words  # bit d: dimension d goes backwards


def find_picks(block: np.void, step: WindowDispatch, n: Words) -> Picks:
    """The n-th windows of a dispatch; beyond the last one the last, as WebGPU allows."""
    if step.picks is None:
        return Picks(block["first"] + n, np.full_like(n, block["flips"]))
    number = step.picks[np.minimum(n, np.uint32(len(step.picks) - 1))]
    return Picks(number, step.windows.flips[number])


def are_backwards(picks: Picks, d: int) -> Flags:
    """Whether windows go backwards in a dimension."""
    return (picks.flips >> np.uint32(d) & np.uint32(1)).astype(bool)


def find_offsets(block: np.void, offsets: Offsets, picks: Picks, d: int) -> NDArray[np.int32]:
    """The first places of windows in a dimension, or the nearest from which they read the same."""
    number = np.minimum(picks.number, np.uint32(len(offsets) - 1))
    column = min(d, offsets.shape[1] - 1)  # a dimension without offsets begins at 0, whatever is read
    offset = offsets[number, column]
    wrapped = offset + np.where(offset < 0, np.int32(block["dimensions"]["wrap"][d]), np.int32(0))
    lowest, highest = (block["dimensions"][name].astype(np.int32)[d] for name in ("lowest", "highest"))
    begins: NDArray[np.int32] = np.clip(wrapped, lowest, highest)
    return begins


def find_indices(block: np.void, offsets: Offsets, picks: Picks, d: int, c: Words) -> Words:
    """The input's indices that the windows' c-th of a dimension read; outside of it its extent or greater."""
    ahead = block["dimensions"]["step"][d] * (block["dimensions"]["first"][d] + c)
    begins = find_offsets(block, offsets, picks, d).view(np.uint32)
    reached = np.where(are_backwards(picks, d), block["dimensions"]["last"][d] - ahead, ahead)
    return np.asarray(begins + reached, np.uint32)


class WindowPlaces(NamedTuple):
    """Places in the first dimensions of windows."""

    tensor: Words  # elements or bytes before them, as the dispatch counts, modulo 2^32
    batch: Words  # from the first of their windows
    winner: Words  # winners before those of their indices
    inside: Flags  # whether the tensor has them, among the indices that are in use
    rest: Words  # of the indices, in the other dimensions


def find_window_places(
    block: np.void, offsets: Offsets, picks: Picks, index: Words, dimensions: int
) -> WindowPlaces:
    """The places of indices into windows, over their first dimensions."""
    rest = index
    tensor, batch = np.full_like(rest, block["tensor_offset"]), np.zeros_like(rest)
    winner = np.full_like(rest, block["winner_offset"])
    inside = np.ones(rest.shape, bool)
    for d in range(dimensions):
        c = divide(rest, block["dimensions"]["multiplier"][d], block["dimensions"]["shift"][d])
        rest = rest - c * block["dimensions"]["inner"][d]
        index = find_indices(block, offsets, picks, d, c)
        tensor += index * block["dimensions"]["tensor_stride"][d]
        batch += c * block["dimensions"]["batch_stride"][d]
        winner += index * block["dimensions"]["winner_stride"][d]
        inside &= index - block["dimensions"]["begin"][d] < block["dimensions"]["extent"][d]
    return WindowPlaces(tensor, batch, winner, inside, rest)


class Elements(NamedTuple):
    """Elements of windows, and their places on both sides."""

    invocation: Words  # whose each is
    window: Words  # windows before its own, of all that there are
    tensor: Words  # elements
    batch: Words  # elements
    winner: Words  # winners before that of its index
    inside: Flags  # whether the tensor has it, among the indices that are in use

    def of(self, kept: Flags) -> Elements:
        """Some of them."""
        return Elements._make(values[kept] for values in self)


def find_elements(block: np.void, step: WindowDispatch, offsets: Offsets) -> Elements:
    """The elements of all invocations that have one."""
    invocation = invocation_numbers(step.share)
    own = invocation[invocation < block["count"] * block["window_size"]]
    window, rest = np.divmod(own, block["window_size"])
    picks = find_picks(block, step, window)
    places = find_window_places(block, offsets, picks, rest, int(block["rank"]))
    batch = block["batch_offset"] + picks.number * block["window_stride"] + places.batch
    return Elements(own, picks.number, places.tensor, batch, places.winner, places.inside)
