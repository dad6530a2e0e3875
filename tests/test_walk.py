"""The division of windows into tiles and pieces, by integers alone, without an adapter."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from blocks import Blocks, numbered, streams, whole
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from wgslice.dialects import numpy_index
from wgslice.streaming.sinks import tile_starts
from wgslice.streaming.sources import Source
from wgslice.streaming.walk import (
    COPIES_READ,
    COPIES_WRITTEN,
    Piece,
    Shares,
    Tile,
    Walk,
    blocks_touched,
    described_nbytes,
    limit_nbytes,
    shares,
    slots,
)

NBYTES = 4  # of an element of `numbered`


def walked(source: Blocks, key: Any, target: Blocks, within: Shares) -> Walk:
    return Source(source).walk(numpy_index(source.shape, key), tile_starts(target), within)


def meant(block: NDArray[Any], piece: Piece) -> NDArray[Any]:
    """The selected elements of a box, by NumPy."""
    axis = 0
    for item in piece.within:
        if item is None:
            block = np.expand_dims(block, axis)
        elif isinstance(item, int):
            block = block.take(item, axis)
            continue
        else:
            block = block.take(np.array(item), axis)
        axis += 1
    return block


def follow(source: Blocks, target: Blocks, tiles: list[Tile], within: Shares) -> None:
    """Run a walk on the host."""
    arrivals = np.zeros(target.shape, int)
    for tile in tiles:
        arrived = np.zeros(target.shape, int)
        for piece in tile.pieces:
            block = source[piece.box]
            assert block.shape == piece.sizes
            assert block.nbytes <= within.largest_nbytes
            arrived[whole(piece.target)] += 1
            target.array[whole(piece.target)] = meant(block, piece)
        target.written.append(tile.target)
        assert (arrived[whole(tile.target)] == 1).all()  # the pieces of a tile cover it
        assert arrived.sum() * NBYTES <= within.largest_nbytes
        arrivals += arrived
    assert (arrivals == 1).all()


@given(streams(), st.integers(16, 3000), st.integers(1, 4))
def test_every_element_arrives_once_in_pieces_within_the_limit(
    stream: tuple[Blocks, Any, Blocks], largest: int, parts: int
) -> None:
    source, key, target = stream
    expected = source.array[key]
    if not expected.size:
        return
    within = Shares(max(largest // parts, 16), largest)
    walk = walked(source, key, target, within)
    tiles = list(walk.tiles())
    follow(source, target, tiles, within)
    assert np.array_equal(target.array, expected)
    pieces = [piece for tile in tiles for piece in tile.pieces]
    assert max(prod(piece.sizes) for piece in pieces) * NBYTES <= walk.piece_nbytes <= largest
    assert max(prod(b.stop - b.start for b in tile.target) for tile in tiles) * NBYTES == walk.tile_nbytes
    if source.chunks is not None and source.block_nbytes() <= largest:
        window = np.isin(source.array, expected)
        needed = {place for box in np.argwhere(window) for place in source.touched(box_of(box))}
        assert Counter(place for box in source.read for place in source.touched(box)) == Counter(needed)
    if target.chunks is not None and source.chunks is None and target.block_nbytes() <= largest:
        written = Counter(place for part in target.written for place in target.touched(part))
        assert set(written.values()) == {1}


def box_of(index: NDArray[Any]) -> tuple[slice, ...]:
    return tuple(slice(at, at + 1, 1) for at in index.tolist())


@given(streams(), st.integers(16, 3000))
def test_large_steps_skip_pages(stream: tuple[Blocks, Any, Blocks], largest: int) -> None:
    """Of a source without blocks, only pages of the window are read; pages have 16 bytes here."""
    source, key, target = stream
    source.chunks = None
    expected = source.array[key]
    if not expected.size:
        return
    with patch("wgslice.streaming.sources.PAGE_NBYTES", 16):
        walk = walked(source, key, target, Shares(largest, largest))
    (first,) = source.read  # before the walk, to learn the dtype of what is read
    assert source.array[whole(first)].size == 1
    source.read.clear()
    follow(source, target, list(walk.tiles()), Shares(largest, largest))
    pages = np.unique((expected - 1) // 4).size
    assert sum(source.array[box].nbytes for box in source.read) <= 16 * pages


def test_blocks_that_agree_are_read_and_written_once() -> None:
    """Each block of the target consists of four adjacent blocks of the source."""
    source, target = Blocks(numbered((64, 64)), (16, 16)), Blocks(np.zeros((32, 64), np.uint32), (16, 32))
    within = Shares(1024, 2048)
    follow(source, target, list(walked(source, np.s_[::-2], target, within).tiles()), within)
    assert np.array_equal(target.array, source.array[::-2])
    assert set(Counter(map(str, source.read)).values()) == {1}
    assert len(source.read) == 16
    assert len(target.written) == 4


def test_reading_once_has_priority_over_writing_once() -> None:
    source, target = Blocks(numbered((64, 64)), (64, 8)), Blocks(np.zeros((64, 64), np.uint32), (8, 64))
    within = Shares(2048, 2048)
    follow(source, target, list(walked(source, ..., target, within).tiles()), within)
    assert len(source.read) == 8
    assert len(target.written) == 8


def test_pieces_are_joined_rows() -> None:
    source, target = Blocks(numbered((100, 10)), None), Blocks(np.zeros((100, 10), np.uint32), None)
    tiles = list(walked(source, ..., target, Shares(1000, 4000)).tiles())
    assert [tile.target[0] for tile in tiles] == [slice(start, start + 25) for start in (0, 25, 50, 75)]


def test_a_source_in_columns_is_walked_by_columns() -> None:
    array = np.asfortranarray(numbered((10, 100)))
    walk = Source(array).walk(numpy_index(array.shape, np.s_[:, 1:]), None, Shares(1000, 4000))
    assert walk.order == (1, 0)
    assert {piece.sizes[0] for tile in walk.tiles() for piece in tile.pieces} == {10}


@given(st.integers(1, 40), st.integers(1, 9), st.data())
def test_blocks_touched_are_where_the_block_changes(size: int, chunk: int, data: st.DataObject) -> None:
    part = data.draw(st.slices(size))
    indices = range(size)[part]
    blocks = [index // chunk for index in indices]
    changes = [at for at, block in enumerate(blocks) if at == 0 or block != blocks[at - 1]]
    assert blocks_touched(indices, range(0, size, chunk), size) == changes


def test_a_block_ends_before_the_first_index_of_the_next() -> None:
    assert blocks_touched(range(0, 9, 2), range(0, 9, 3), 9) == [0, 2, 3]
    assert blocks_touched(range(8, -1, -2), range(0, 9, 3), 9) == [0, 2, 3]


def test_joined_blocks_stay_within_their_share_of_the_limit() -> None:
    source, target = Blocks(numbered((16, 4)), (4, 4)), Blocks(np.zeros((16, 4), np.uint32), None)
    tiles = list(walked(source, ..., target, Shares(8 * 4 * NBYTES, 16 * 4 * NBYTES)).tiles())
    assert [tile.target[0] for tile in tiles] == [slice(0, 8), slice(8, 16)]


@pytest.mark.parametrize(
    ("limit", "nbytes"),
    [
        (2048, 2048),
        ("256 MiB", 2**28),
        ("1.5GB", 1_500_000_000),
        ("4096", 4096),
        (" 64kib ", 2**16),
        ("2G", 2 * 10**9),
    ],
)
def test_valid_limits_are_parsed(limit: int | str, nbytes: int) -> None:
    assert limit_nbytes(limit) == nbytes


@pytest.mark.parametrize("limit", ["", "MiB", "256 MiBs", "-1 MiB", "1e9", "3 iB", "0.5 KiB", 1023])
def test_invalid_limits_are_refused(limit: int | str) -> None:
    with pytest.raises(ValueError, match=r"limit = .*: must be "):
        limit_nbytes(limit)


def test_a_limit_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"limit = 1.5: must be an integer"):
        limit_nbytes(1.5)  # type: ignore[arg-type]  # which is what is refused


@given(st.integers(1024, 2**34), st.integers(2**20, 2**31), st.data())
def test_memory_in_flight_stays_within_the_limit(
    limit: int, largest_buffer: int, data: st.DataObject
) -> None:
    usual, largest = shares(limit, largest_buffer)
    assert 16 <= usual <= largest <= largest_buffer
    piece, tile = data.draw(st.integers(1, largest)), data.draw(st.integers(1, largest))
    each = COPIES_READ * piece + COPIES_WRITTEN * tile
    assert 1 <= slots(limit, piece, tile) <= 3
    assert slots(limit, piece, tile) * each <= limit
    assert slots(limit, usual, usual) == 3 or limit < 2048


def test_bytes_are_printed_with_units() -> None:
    assert [described_nbytes(nbytes) for nbytes in (0, 1023, 1024, 3 * 2**29)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "1.5 GiB",
    ]
