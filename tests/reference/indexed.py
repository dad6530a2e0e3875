"""Reference implementations of the kernels that gather and scatter at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference.elements import WORD_NBYTES, Copied, elements_of, write_elements
from reference.inserting import greatest_winners
from reference.memory import Bytes, Flags, Observed, Trace, Words, Writes, bound
from reference.pieces import Pieces, divide, find_pieces, invocation_numbers, taken

from wgslice.plans.facade import IndexedDispatch
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.shaders import block_dtype, uniform_block

Indices = NDArray[np.generic]


def trace_indexed(
    step: IndexedDispatch,
    source: Bytes,
    target: Bytes,
    indices: Indices | None,
    winners: Bytes | None = None,
) -> Trace:
    """Map the invocations of one kernel to what they load and store; nothing is written.

    `indices` are the device-resident ones, `winners` those on places, if there are any.
    """
    block = np.frombuffer(uniform_block(step), block_dtype("Indexed"))[0]
    known = indices if step.copy.host is None else step.copy.host.values
    assert known is not None
    known = known.ravel()[step.table_binding.offset_nbytes // known.itemsize :]
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    tables = Tables(known, None if winners is None else winners.view(np.uint32))
    writes = index_kernels[step.kernel](block, step, read, kept, tables)
    return Trace(writes, read.loads, kept.loads)


class Tables(NamedTuple):
    """Bindings of kernels besides source and target."""

    indices: Indices
    winners: Words | None  # on places, where several indices may name one


class Rows(NamedTuple):
    """The first elements of rows."""

    source: Words  # elements, without what tables add, modulo 2^32
    target: Words  # elements, without what tables add, modulo 2^32
    winner: Words  # winners, without what tables add
    number: Words  # indices before theirs
    numbers: list[Words]  # of each table's index


def find_rows(block: np.void, step: IndexedDispatch, number: Words) -> Rows:
    """Rows by their numbers."""
    strides = block["dimensions"]["table_strides"]
    source, target = (np.full_like(number, block[side]) for side in ("source_offset", "target_offset"))
    winner, before = np.zeros_like(number), np.zeros_like(number)
    numbers = [np.full_like(number, block["table_offsets"][t]) for t in range(len(step.copy.tables))]
    rest = number
    for d in reversed(range(int(block["rank"]) - 1)):
        c = rest
        if d:
            rest = divide(rest, block["dimensions"]["multiplier"][d], block["dimensions"]["shift"][d])
            c = c - rest * block["dimensions"]["size"][d]
        source = source + c * block["dimensions"]["source_stride"][d]
        target = target + c * block["dimensions"]["target_stride"][d]
        winner = winner + c * block["dimensions"]["winner_stride"][d]
        before = before + c * block["dimensions"]["number_stride"][d]
        numbers = [first + c * strides[d, t] for t, first in enumerate(numbers)]
    return Rows(source, target, winner, before, numbers)


class Reached(NamedTuple):
    """Offsets that tables add to elements."""

    elements: Words  # of the indexed side, further on
    winners: Words  # further on
    copied: Flags  # whether all indices, clamped, are in the ranges of the dispatch
    inside: Flags  # whether they are, and none had to be clamped


def find_reached(block: np.void, step: IndexedDispatch, tables: Tables, rows: Rows, c: Words) -> Reached:
    """The offsets that tables add to the c-th elements of rows."""
    strides = block["dimensions"]["table_strides"]
    elements, winners = np.zeros_like(c), np.zeros_like(c)
    copied, inside = np.ones(c.shape, bool), np.ones(c.shape, bool)
    for t, table in enumerate(step.copy.tables):
        number = rows.numbers[t] + c * strides[int(block["rank"]) - 1, t]
        given = tables.indices[np.minimum(number, np.uint32(tables.indices.size - 1))].astype(object)
        value = np.where(given < 0, given + table.wrap, given)
        nearest = np.clip(value, 0, table.extent - 1)
        inside &= (given != 0 if step.copy.masked else value == nearest).astype(bool)
        own = nearest
        if table.part is not None:
            own = np.clip(nearest, block["bounds"]["firsts"][t], block["bounds"]["stops"][t] - np.uint32(1))
            copied &= (own == nearest).astype(bool)
        elements = elements + own.astype(np.uint32) * block["bounds"]["steps"][t]
        winners = winners + (own - table.copied.start).astype(np.uint32) * block["bounds"]["winner_steps"][t]
    return Reached(elements, winners, copied, inside & copied)


class Taken(NamedTuple):
    """The elements of rows that invocations take."""

    owner: Words  # the invocation
    c: Words  # elements of the row before it
    rows: Rows
    reached: Reached


def find_taken(block: np.void, step: IndexedDispatch, tables: Tables) -> Taken:
    """The elements of all pieces."""
    pieces = pieces_of(block, step)
    nowhere = np.zeros_like(pieces.row)
    stop = nowhere + block["dimensions"]["size"][int(block["rank"]) - 1]
    owner, c = taken(step.share, pieces, nowhere, stop)
    of_pieces = find_rows(block, step, pieces.row)
    numbers = [number[owner] for number in of_pieces.numbers]
    source, target, winner, number = (place[owner] for place in of_pieces[:4])
    rows = Rows(source, target, winner, number, numbers)
    return Taken(owner, c, rows, find_reached(block, step, tables, rows, c))


def pieces_of(block: np.void, step: IndexedDispatch) -> Pieces:
    """The pieces of all invocations that have one."""
    if step.rows == 1:
        return find_pieces(block, step.share, int(block["count"]))
    invocation = invocation_numbers(step.share)
    turn = divide(invocation, block["rows_multiplier"], block["rows_shift"])
    group = divide(turn, block["pieces_multiplier"], block["pieces_shift"])
    row = invocation - (turn - group) * block["rows"]
    return Pieces(np.minimum(row, block["count"] - np.uint32(1)), turn - group * block["pieces"])


def gather_units(
    block: np.void, step: IndexedDispatch, source: Observed, tables: Tables, unit_nbytes: int
) -> Writes:
    """Elements at indices, written in units."""
    last = int(block["rank"]) - 1
    owner, c, rows, reached = find_taken(block, step, tables)
    read = rows.source + c * block["dimensions"]["source_stride"][last] + reached.elements
    written = rows.target + c * block["dimensions"]["target_stride"][last]
    mine = reached.copied
    return write_elements(
        source, Copied(read[mine], written[mine], owner[mine]), step.width_nbytes, unit_nbytes
    )


def gather(
    block: np.void, step: IndexedDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/gather.wgsl`."""
    return gather_units(block, step, source, tables, WORD_NBYTES)


def pair_gather(
    block: np.void, step: IndexedDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/gather.wgsl`."""
    return gather_units(block, step, source, tables, WORD_NBYTES)


def wide_gather(
    block: np.void, step: IndexedDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/gather.wgsl`."""
    return gather_units(block, step, source, tables, WIDEST_NBYTES)


def gather_words(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/gather_words.wgsl`; words of several rows are listed once."""
    per_word, last = np.uint32(WORD_NBYTES // step.width_nbytes), int(block["rank"]) - 1
    start = block["target_offset"]
    invocation = invocation_numbers(step.share)
    number = invocation[:, None] * block["each"] + np.arange(block["each"], dtype=np.uint32)
    mine = (number + start // per_word) * per_word < start + block["elements"]
    own = np.broadcast_to(invocation[:, None], number.shape)[mine]
    word = number[mine] + start // per_word
    element = elements_of(word, int(per_word)) - start
    inside = element < block["elements"]
    row = divide(element[inside], block["dimensions"]["multiplier"][last], block["dimensions"]["shift"][last])
    c = element[inside] - row * block["dimensions"]["size"][last]
    rows = find_rows(block, step, row)
    reached = find_reached(block, step, tables, rows, c)
    values = target.elements(elements_of(word, int(per_word)), step.width_nbytes, own[:, None])
    by = np.broadcast_to(own[:, None], inside.shape)[inside]
    read = rows.source + c * block["dimensions"]["source_stride"][last] + reached.elements
    given = source.elements(read, step.width_nbytes, by)
    values[inside] = np.where(reached.copied, given, values[inside])
    return Writes(WORD_NBYTES, word, values, own)


def scatter(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/scatter.wgsl`."""
    last = int(block["rank"]) - 1
    owner, c, rows, reached = find_taken(block, step, tables)
    stays = reached.inside
    if step.copy.masked and step.share.contiguous:
        stays = np.ones_like(stays)
    if step.winners is not None:
        assert tables.winners is not None
        winner = rows.winner + c * block["dimensions"]["winner_stride"][last] + reached.winners
        number = rows.number + c * block["dimensions"]["number_stride"][last]
        stays = stays & (tables.winners[winner] == number + np.uint32(1))
    read = (rows.source + c * block["dimensions"]["source_stride"][last])[stays]
    written = (rows.target + c * block["dimensions"]["target_stride"][last] + reached.elements)[stays]
    copied = Copied(read, written, owner[stays])
    writes = write_elements(source, copied, step.width_nbytes, min(step.width_nbytes, WORD_NBYTES))
    if step.copy.masked:
        kept = target.elements(written, step.width_nbytes, copied.invocations)
        writes = writes._replace(values=np.where(reached.inside[stays], writes.values, kept))
    return writes


def scatter_subword(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/scatter_subword.wgsl`; of the words that elements share it lists the elements."""
    return scatter(block, step, source, target, tables)


def scatter_in_order(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/scatter_in_order.wgsl`; of the elements written twice only the last is listed."""
    last, width = int(block["rank"]) - 1, step.width_nbytes
    owner, c, rows, reached = find_taken(block, step, tables)
    read = (rows.source + c * block["dimensions"]["source_stride"][last])[reached.inside]
    written = (rows.target + c * block["dimensions"]["target_stride"][last] + reached.elements)[
        reached.inside
    ]
    _, backward = np.unique(written[::-1], return_index=True)  # rows are in order
    lasting = written.size - 1 - backward
    copied = Copied(read[lasting], written[lasting], owner[reached.inside][lasting])
    if width >= WORD_NBYTES:
        return write_elements(source, copied, width, WORD_NBYTES)
    per_word = np.uint32(WORD_NBYTES // width)
    word, first, of_word = np.unique(
        copied.target_elements // per_word, return_index=True, return_inverse=True
    )
    own = copied.invocations[first]
    values = target.elements(elements_of(word, int(per_word)), width, own[:, None])
    values[of_word, copied.target_elements % per_word] = source.elements(
        copied.source_elements, width, copied.invocations
    )
    return Writes(WORD_NBYTES, word, values, own)


def last_writer_indices(
    block: np.void, step: IndexedDispatch, _source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/last_writer_indices.wgsl`; of all winners on a place only the greatest is listed."""
    last = int(block["rank"]) - 1
    owner, c, rows, reached = find_taken(block, step, tables)
    inside = reached.inside
    place = (rows.winner + c * block["dimensions"]["winner_stride"][last] + reached.winners)[inside]
    winner = (rows.number + c * block["dimensions"]["number_stride"][last] + np.uint32(1))[inside]
    return greatest_winners(target, place, winner, owner[inside])


def masked_words(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/masked_words.wgsl`."""
    per_word = np.uint32(WORD_NBYTES // step.width_nbytes)
    start, elements = block["target_offset"], block["elements"]
    pieces = find_pieces(block, step.share, 1)
    nowhere = np.zeros_like(pieces.row)
    stop_word = (start + elements + per_word - np.uint32(1)) // per_word
    owner, word = taken(step.share, pieces, nowhere + start // per_word, nowhere + stop_word)
    values = target.elements(elements_of(word, int(per_word)), step.width_nbytes, owner[:, None])
    ahead = elements_of(word, int(per_word)) - start
    inside = ahead < elements
    inside[inside] = tables.indices.view(np.uint8)[block["table_offsets"][0] + ahead[inside]] != 0
    by = np.broadcast_to(owner[:, None], inside.shape)[inside]
    read = block["source_offset"] + ahead[inside] * block["dimensions"]["source_stride"][0]
    values[inside] = source.elements(read, step.width_nbytes, by)
    return Writes(WORD_NBYTES, word, values, owner)


def masked_pairs(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/masked_pairs.wgsl`."""
    width, pieces = step.width_nbytes, find_pieces(block, step.share, 1)
    nowhere = np.zeros_like(pieces.row)
    owner, element = taken(step.share, pieces, nowhere, nowhere + block["elements"])
    written = tables.indices.view(np.uint8)[block["table_offsets"][0] + element] != 0
    if not step.share.contiguous:
        owner, element, written = owner[written], element[written], written[written]
    read = block["source_offset"] + element * block["dimensions"]["source_stride"][0]
    copied = Copied(read, block["target_offset"] + element, owner)
    writes, kept = write_elements(source, copied, width, width), target.elements(copied[1], width, owner)
    return writes._replace(values=np.where(written, writes.values, kept))


def masked_values(
    block: np.void, step: IndexedDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/masked_values.wgsl`; the last word is listed once."""
    per_word, number = WORD_NBYTES // step.width_nbytes, np.arange(block["count"], dtype=np.uint32)
    bits, before = tables.indices.view(np.uint32).reshape(-1, 2).T
    word = elements_of(number, 32 // per_word) + block["target_offset"] // np.uint32(per_word)
    written = bits[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    read = block["source_offset"] + before[:, None] + np.cumsum(written, axis=1, dtype=np.uint32) - written
    mine = word <= (block["target_offset"] + block["elements"] - np.uint32(1)) // np.uint32(per_word)
    own = np.broadcast_to(number[:, None], word.shape)[mine]
    inside, read = (each.reshape(*word.shape, per_word)[mine] for each in (written == 1, read))
    values = target.elements(elements_of(word[mine], per_word), step.width_nbytes, own[:, None])
    by = np.broadcast_to(own[:, None], inside.shape)[inside]
    values[inside] = source.elements(read[inside], step.width_nbytes, by)
    return Writes(WORD_NBYTES, word[mine], values, own)


Implementation = Callable[[np.void, IndexedDispatch, Observed, Observed, Tables], Writes]

index_kernels: dict[Kernel, Implementation] = {
    Kernel.GATHER: gather,
    Kernel.PAIR_GATHER: pair_gather,
    Kernel.WIDE_GATHER: wide_gather,
    Kernel.GATHER_WORDS: gather_words,
    Kernel.SCATTER: scatter,
    Kernel.SCATTER_SUBWORD: scatter_subword,
    Kernel.SCATTER_IN_ORDER: scatter_in_order,
    Kernel.LAST_WRITER_INDICES: last_writer_indices,
    Kernel.MASKED_WORDS: masked_words,
    Kernel.MASKED_PAIRS: masked_pairs,
    Kernel.MASKED_VALUES: masked_values,
}
