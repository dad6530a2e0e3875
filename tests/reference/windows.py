"""Reference implementations of window kernels by elements and words; all window kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.elements import WORD_NBYTES, Copied, elements_of, write_elements
from reference.inserting import greatest_winners, insert_rows, insert_words, last_writer_rows
from reference.memory import Bytes, Observed, Trace, Writes, bound
from reference.pieces import divide, invocation_numbers
from reference.window_places import (
    Tables,
    are_last,
    find_elements,
    find_picks,
    find_window_places,
    in_32_bits,
)
from reference.window_rows import window_rows

from wgslice.plans.facade import WindowDispatch
from wgslice.plans.kernels import Kernel
from wgslice.shaders import block_dtype, uniform_block


def trace_windows(
    step: WindowDispatch,
    source: Bytes,
    target: Bytes,
    offsets: NDArray[np.generic] | None = None,
    winners: Bytes | None = None,
) -> Trace:
    """Map the invocations of one kernel to what they load and store; nothing is written.

    `offsets` are the device-resident ones, `winners` those on indices, if there are any.
    """
    known = offsets if step.windows.offsets is None else step.windows.offsets
    assert known is not None
    block = np.frombuffer(uniform_block(step), block_dtype("Windows"))[0]
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    tables = Tables(in_32_bits(known), None if winners is None else winners.view(np.uint32))
    writes = window_kernels[step.kernel](block, step, read, kept, tables)
    return Trace(writes, read.loads, kept.loads)


def extract_windows(
    block: np.void, step: WindowDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/extract_windows.wgsl`."""
    found = find_elements(block, step, tables.offsets)
    found = found.of(~found.inside | (found.tensor < block["segment"]))
    nbytes = step.element_nbytes
    # Elements outside of the tensor are read anywhere, and then replaced.
    read = np.where(found.inside, found.tensor, np.uint32(0))
    copied = Copied(read, found.batch, found.invocation)
    writes = write_elements(source, copied, nbytes, min(nbytes, WORD_NBYTES))
    values = np.where(found.inside, writes.values, block["fill"].view(f"V{nbytes}")[0])
    return Writes(writes.unit_nbytes, writes.units, values, writes.invocations)


def insert_windows(
    block: np.void, step: WindowDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/insert_windows.wgsl`."""
    found = find_elements(block, step, tables.offsets)
    found = found.of(found.inside & are_last(block, step, tables, found.winner, found.window))
    copied = Copied(found.batch, found.tensor, found.invocation)
    return write_elements(source, copied, step.element_nbytes, min(step.element_nbytes, WORD_NBYTES))


def last_writer_windows(
    block: np.void, step: WindowDispatch, _source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/last_writer_windows.wgsl`; of all winners on an index only the greatest is listed."""
    found = find_elements(block, step, tables.offsets)
    found = found.of(found.inside)
    winners = np.asarray(block["winner_base"] + found.window)
    return greatest_winners(target, found.winner, winners, found.invocation)


def window_words(
    block: np.void, step: WindowDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/window_words.wgsl`."""
    nbytes = step.element_nbytes
    per_word = WORD_NBYTES // nbytes
    start = np.uint32((step.batch_offset + step.first * step.window_stride) % 2**32)
    each = np.arange(block["each"], dtype=np.uint32)
    words = start // np.uint32(per_word) + invocation_numbers(step.share)[:, None] * block["each"] + each
    numbers, owners = words.ravel(), np.repeat(invocation_numbers(step.share), len(each))
    taken_ = numbers * np.uint32(per_word) < start + block["elements"]
    word, own = numbers[taken_], owners[taken_]

    element = elements_of(word, per_word) - start
    mine = element < block["elements"]
    values = target.elements(elements_of(word, per_word), nbytes, own[:, None])
    window = divide(element[mine], block["window_multiplier"], block["window_shift"])
    picks = find_picks(block, step, window)
    index = element[mine] - window * block["window_size"]
    places = find_window_places(block, tables.offsets, picks, index, int(block["rank"]))
    read = np.where(places.inside, places.tensor, np.uint32(0))
    by = np.broadcast_to(own[:, None], mine.shape)[mine]
    fill = block["fill"].view(f"V{nbytes}")[0]
    values[mine] = np.where(places.inside, source.elements(read, nbytes, by), fill)
    return Writes(WORD_NBYTES, word, values, own)


Implementation = Callable[[np.void, Any, Observed, Observed, Tables], Writes]

window_kernels: dict[Kernel, Implementation] = {
    Kernel.EXTRACT_WINDOWS: extract_windows,
    Kernel.WINDOW_ROWS: window_rows,
    Kernel.WINDOW_WORDS: window_words,
    Kernel.INSERT_WINDOWS: insert_windows,
    Kernel.INSERT_ROWS: insert_rows,
    Kernel.INSERT_WORDS: insert_words,
    Kernel.LAST_WRITER_WINDOWS: last_writer_windows,
    Kernel.LAST_WRITER_ROWS: last_writer_rows,
}
