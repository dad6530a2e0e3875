"""Reference implementations of `sized_windows` and `sized_ends`: one piece after the other."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference.memory import Bytes, Observed, Trace, Writes, bound
from reference.window_places import in_32_bits

from wgslice.plans.facade import DIMENSION_COLUMNS, FIXED_COLUMNS, SizedDispatch
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.shaders import block_dtype, uniform_block


class Columns(NamedTuple):
    """The columns of the table that every window has, as the file of the kernel names them."""

    first_piece: int
    pieces: int
    pieces_multiplier: int
    pieces_shift: int
    each: int
    units: int
    units_multiplier: int
    units_shift: int
    unit_bytes: int
    run_rows: int
    row_bytes: int
    row_multiplier: int
    row_shift: int
    source: int
    target: int
    distance: int
    number: int
    low: int
    high: int


class Row(NamedTuple):
    """A row, in bytes from the starts of both bindings."""

    source: int  # before the first, modulo 2^32
    start: int  # before the first in the target
    low: int  # of the row before those inside of the tensor
    high: int  # of the row before the end of those


class Copier:
    """What an invocation reads: the parameters, the table, both bindings and the offsets."""

    def __init__(
        self, step: SizedDispatch, source: Observed, target: Observed, offsets: NDArray[np.generic] | None
    ) -> None:
        self.step, self.source, self.target = step, source, target
        self.block = np.frombuffer(uniform_block(step), block_dtype("Sized"))[0]
        self.table = step.table[: step.columns * len(step.boxes.numbers)].reshape(-1, step.columns).tolist()
        self.of_groups = step.table[step.columns * len(step.boxes.numbers) :].tolist()
        self.offsets = None
        if offsets is not None:
            self.offsets = in_32_bits(offsets).tolist()
        self.writes: list[tuple[int, bytes, int]] = []  # unit, its bytes, and the invocation

    def added(self, words: list[int]) -> int:
        """The places that offsets in device memory add."""
        if self.step.device is None:
            return 0
        assert self.offsets is not None
        bounds = words[FIXED_COLUMNS + DIMENSION_COLUMNS * int(self.block["rank"]) :]
        own = self.offsets[Columns(*words[:FIXED_COLUMNS]).number]
        return sum(
            min(max(offset, 0), most) * stride
            for offset, most, stride in zip(own, bounds[::2], bounds[1::2], strict=True)
        )

    def row(self, words: list[int], number: int, added: int) -> Row:
        """Row `number` of a window."""
        fixed, step = Columns(*words[:FIXED_COLUMNS]), self.step
        inserts = step.device is not None and step.device.inserts
        source, target = fixed.source + added * (not inserts), fixed.target + added * inserts
        low, high, rest = fixed.low, fixed.high, number
        for d in range(int(self.block["rank"])):
            inner, _, _, of_source, of_target, first, stop = words[FIXED_COLUMNS + DIMENSION_COLUMNS * d :][
                :7
            ]
            c, rest = divmod(rest, inner)
            source += c * of_source
            target += c * of_target
            if step.boxes.fill is not None and not first <= c < stop:
                high = low
        return Row(source % 2**32, target % 2**32, low, high)

    def read(self, row: Row, position: int, distance: int, n: int) -> Bytes:
        """The 16 bytes at a byte of a row; those outside of the row are zeros."""
        places = position + np.arange(WIDEST_NBYTES, dtype=np.int64)
        element, byte = np.divmod(places, self.step.element_nbytes)
        inside = (places >= row.low) & (places < row.high)
        read = (row.source + element * distance + byte)[inside] % 2**32
        value = np.zeros(WIDEST_NBYTES, np.uint8)
        if self.step.boxes.fill is not None:
            value = np.frombuffer(self.step.boxes.fill, np.uint8)[places % WIDEST_NBYTES]
        blocks = self.source.blocks(
            (read // WIDEST_NBYTES).astype(np.uint32), np.full(len(read), n, np.uint32)
        )
        value = value.copy()
        value[inside] = blocks[np.arange(len(read)), read % WIDEST_NBYTES]
        return value

    def write(self, place: int, values: Bytes, n: int) -> None:
        """Write bytes from a place on: whole words, and parts of words where runs share none."""
        stop = place + len(values)
        for word in range(place // WORD_NBYTES, -(-stop // WORD_NBYTES)):
            begin, end = max(place, word * WORD_NBYTES), min(stop, (word + 1) * WORD_NBYTES)
            if end - begin < WORD_NBYTES and not self.block["own_words"]:
                continue
            kept = self.target.elements(np.array([word], np.uint32), WORD_NBYTES, np.array([n], np.uint32))
            found = kept.view(np.uint8).copy()
            found[begin % WORD_NBYTES : end - word * WORD_NBYTES] = values[begin - place : end - place]
            self.writes.append((word, found.tobytes(), n))

    def window(self, n: int) -> list[int]:
        """The row of the table with the window of an invocation."""
        group = n // self.step.share.workgroup_size
        first, last = self.of_groups[group : group + 2]
        return self.table[max(w for w in range(first, last + 1) if self.table[w][0] <= n)]

    def copy(self, n: int) -> None:
        """One invocation of `sized_windows`."""
        words = self.window(n)
        fixed, added = Columns(*words[:FIXED_COLUMNS]), self.added(words)
        unit, number = divmod(n - fixed.first_piece, fixed.pieces)
        run, unit_in_run = divmod(unit, fixed.units)
        start = self.row(words, run * fixed.run_rows, added).start
        end = start + fixed.run_rows * fixed.row_bytes
        unit_start = start + unit_in_run * fixed.unit_bytes
        whole = -(-unit_start // WIDEST_NBYTES) if unit_in_run else start // WIDEST_NBYTES
        block = whole + number * fixed.each
        begin = max(start, block * WIDEST_NBYTES)
        unit_stop = min(end, -(-(unit_start + fixed.unit_bytes) // WIDEST_NBYTES) * WIDEST_NBYTES)
        stop = min(unit_stop, (block + fixed.each) * WIDEST_NBYTES)
        found = []
        while begin < stop:
            row_number = (begin - start) // fixed.row_bytes
            row = self.row(words, run * fixed.run_rows + row_number, added)
            row_start = start + row_number * fixed.row_bytes
            row_stop = min(row_start + fixed.row_bytes, stop)
            for place in range(begin, row_stop, WIDEST_NBYTES):
                value = self.read(row, place - row_start, fixed.distance, n)
                found.append((place, value[: row_stop - place]))
            begin = row_stop
        if found:
            self.write(found[0][0], np.concatenate([values for _, values in found]), n)

    def copy_ends(self, n: int) -> None:
        """One invocation of `sized_ends`, which writes elements."""
        words, width = self.window(n), self.step.element_nbytes
        fixed, added = Columns(*words[:FIXED_COLUMNS]), self.added(words)
        run_row = (n - fixed.first_piece) * fixed.run_rows
        start = self.row(words, run_row, added).start
        end = start + fixed.run_rows * fixed.row_bytes
        for place in range(start, end, width):
            word = place // WORD_NBYTES * WORD_NBYTES
            if word >= start and word + WORD_NBYTES <= end:
                continue
            row_number = (place - start) // fixed.row_bytes
            row = self.row(words, run_row + row_number, added)
            value = self.read(row, place - start - row_number * fixed.row_bytes, fixed.distance, n)
            self.target.elements(np.array([place // width], np.uint32), width, np.array([n], np.uint32))
            self.writes.append((place // width, value[:width].tobytes(), n))


def sized_windows(
    step: SizedDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic] | None
) -> Trace:
    """Mirrors `wgsl/sized_windows.wgsl`: maps invocations to what they load and store; writes nothing."""
    return traced(step, source, target, offsets, Copier.copy, WORD_NBYTES)


def sized_ends(
    step: SizedDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic] | None
) -> Trace:
    """Mirrors `wgsl/sized_ends.wgsl`, as `sized_windows`."""
    return traced(step, source, target, offsets, Copier.copy_ends, step.element_nbytes)


def traced(
    step: SizedDispatch,
    source: Bytes,
    target: Bytes,
    offsets: NDArray[np.generic] | None,
    copy: Callable[[Copier, int], None],
    unit_nbytes: int,
) -> Trace:
    """What all invocations load and store, in units of some bytes."""
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    copier = Copier(step, read, kept, offsets)
    invocations = prod(step.share.workgroups) * step.share.workgroup_size
    for n in range(min(step.pieces.total, invocations)):
        copy(copier, n)
    units, values, owners = zip(*copier.writes, strict=True) if copier.writes else ((), (), ())
    content = np.frombuffer(b"".join(values), f"V{unit_nbytes}")
    places = np.array(units, np.uint32), content, np.array(owners, np.uint32)
    return Trace(Writes(unit_nbytes, *places), read.loads, kept.loads)


sized_kernels = {Kernel.SIZED_WINDOWS: sized_windows, Kernel.SIZED_ENDS: sized_ends}
