"""Memory that kernels access, with who read and wrote each word since the last barrier or dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from checker.findings import Findings
from checker.values import Mask, Value
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]

UNOWNED, SEVERAL = -1, -2  # instead of an invocation
PAGE_SHIFT = 8
PAGE = 1 << PAGE_SHIFT  # words


def garbage(words: Numbers) -> Numbers:
    """Return arbitrary words, a function of their numbers."""
    mixed = (words + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(32)).astype(np.int64)


class Memory:
    """The words of a buffer, and for each the invocations that accessed it."""

    def __init__(self, words: Numbers, *, fresh: bool = False) -> None:
        self.words = words
        self.size = words.size
        self.unwritten = np.ones(words.size, np.bool_) if fresh else None  # words that have no value yet
        self.written: dict[int, tuple[int, int]] = {}  # lowest and highest word, by the words written at once
        self.begin()

    def begin(self) -> None:
        """Forget who accessed what."""
        self.writer = np.full(self.words.size, UNOWNED, np.int32)
        self.reader = np.full(self.words.size, UNOWNED, np.int32)
        self.atomic: NDArray[np.bool_] | None = None
        self.changed: Numbers | None = None  # bits that atomicXor changed

    def slots(self, words: Numbers) -> Numbers:
        """Return the places of words in the arrays."""
        return words

    def read(self, words: Numbers) -> Numbers:
        """Return words without noting it."""
        return self.words[words]


class Paged(Memory):
    """A buffer whose words are a function of their numbers, but for pages that were written."""

    def __init__(self, size: int, content: Callable[[Numbers], Numbers], *, fresh: bool = False) -> None:
        super().__init__(np.zeros(0, np.int64), fresh=fresh)
        self.size, self.content = size, content
        self.table = np.full(-(-size // PAGE), -1, np.int32)
        self.pages: list[int] = []

    def slots(self, words: Numbers) -> Numbers:
        pages = words >> PAGE_SHIFT
        missing = np.unique(pages[self.table[pages] < 0])
        if missing.size:
            start = len(self.pages)
            self.table[missing] = np.arange(start, start + missing.size)
            self.pages += missing.tolist()
            content = self.content((missing[:, None] * PAGE + np.arange(PAGE)).reshape(-1))
            added = {"words": content, "writer": UNOWNED, "reader": UNOWNED}
            for name, value in {**added, "unwritten": True, "atomic": False, "changed": 0}.items():
                held = getattr(self, name)
                if held is not None:
                    more = np.broadcast_to(np.asarray(value, held.dtype), content.shape)
                    setattr(self, name, np.concatenate([held, more]))
        slots: Numbers = self.table[pages].astype(np.int64) * PAGE + words % PAGE
        return slots

    def read(self, words: Numbers) -> Numbers:
        found = self.content(words)
        if self.pages:
            page = self.table[words >> PAGE_SHIFT]
            held = page >= 0
            found[held] = self.words[page[held].astype(np.int64) * PAGE + words[held] % PAGE]
        return found

    def numbers(self) -> Numbers:
        """Return the numbers of the words of all pages, in the order of the arrays."""
        return (np.array(self.pages, np.int64)[:, None] * PAGE + np.arange(PAGE)).reshape(-1)


@dataclass
class Tally:
    """What was executed of a kernel."""

    dispatches: int = 0
    invocations: int = 0
    accesses: int = 0  # of buffers and workgroup memory
    elements: int = 0  # of the largest tensor, gaps included


@dataclass
class Buffer:
    """A variable of a module that is bound to a part of a memory, or workgroup memory."""

    name: str
    memory: Memory
    findings: Findings
    tally: Tally
    size: int  # words
    unit: int  # words of an element
    writable: bool
    repeats: bool = False  # whether invocations may write what others write, with equal bits
    first: int = 0  # word of the memory
    bases: Numbers | None = None  # first word of each invocation, for workgroup memory
    proven: bool = False  # whether no load is clamped, so that none may be outside, whatever its mark

    @property
    def length(self) -> int:
        """The number of elements."""
        return self.size // self.unit

    def places(self, index: Value, m: Mask, line: int, *, beyond: bool = False) -> tuple[Any, Any, Any]:
        """Return the active invocations, the first word of each, and which of them are outside."""
        assert m is not None
        active = np.flatnonzero(m)
        chosen = np.broadcast_to(index, m.shape)[active]
        self.tally.accesses += active.size
        outside = None
        if chosen.max() >= self.length:
            outside = chosen >= self.length
            if self.proven or not beyond:
                what = f"an element outside of {self.length:,} is accessed"
                self.complain("bounds", line, active, outside, chosen, what)
        return (
            active,
            chosen * self.unit + (self.first if self.bases is None else self.bases[active]),
            outside,
        )

    def inside(self, index: Value, m: Mask, line: int) -> tuple[Numbers, Numbers]:
        """Return the active invocations whose elements are inside, and the first word of each."""
        active, words, outside = self.places(index, m, line)
        return (active, words) if outside is None else (active[~outside], words[~outside])

    def load(
        self, index: Value, m: Mask, line: int, *, beyond: bool = False, part: int | None = None
    ) -> Value:
        """Return elements, or a component; arbitrary ones outside of the binding, read where `beyond`."""
        constant = isinstance(index, int) and index < self.length
        if constant and not self.writable and self.memory.unwritten is None:
            self.tally.accesses += int(np.count_nonzero(m))  # type: ignore[arg-type]  # of arrays alone
            words = self.memory.read(np.arange(self.unit) + (self.first + index * self.unit)).tolist()
            if part is not None:
                return words[part]
            return tuple(words) if self.unit > 1 else words[0]
        active, places, outside = self.places(index, m, line, beyond=beyond)
        found = []
        for number in range(self.unit) if part is None else [part]:
            words = places + number
            if outside is None:
                values = self.fetch(active, words, line, beyond)
            else:
                values = garbage(words)
                values[~outside] = self.fetch(active[~outside], words[~outside], line, beyond)
            found.append(self.spread(active, values))
        return tuple(found) if len(found) > 1 else found[0]

    def spread(self, active: Numbers, values: NDArray[Any]) -> Numbers:
        """Return values of some invocations as an array over all."""
        if active.size == self.findings.invocations.size:
            return values
        result = np.zeros(self.findings.invocations.size, np.int64)
        result[active] = values
        return result

    def fetch(self, active: Numbers, words: Numbers, line: int, beyond: bool) -> Numbers:
        """Return words, and note who reads them if they may be written."""
        memory = self.memory
        if not beyond:
            self.valued(active, words, line)
        if not self.writable:
            return memory.read(words)
        own = self.findings.invocations[active].astype(np.int32)
        slots = memory.slots(words)
        writer = memory.writer[slots]
        if not self.repeats:
            written = (writer != UNOWNED) & (writer != own)
            self.complain("race", line, active, written, words, "a word is read that", writer)
        before = memory.reader[slots]
        memory.reader[slots] = own
        shared = (memory.reader[slots] != own) | ((before != UNOWNED) & (before != own))
        memory.reader[slots[shared]] = SEVERAL
        if memory.atomic is not None:
            what = "a word with atomics is read without"
            self.complain("mixed", line, active, memory.atomic[slots], words, what)
        return memory.words[slots]

    def valued(self, active: Numbers, words: Numbers, line: int) -> None:
        """Report words that nobody wrote."""
        memory = self.memory
        if memory.unwritten is not None:
            unwritten = memory.unwritten[memory.slots(words)]
            self.complain("unwritten", line, active, unwritten, words, "a word is read that nobody wrote")

    def store(self, index: Value, value: Value, m: Mask, line: int, *, part: int | None = None) -> None:
        """Write elements, or a component of them."""
        active, places = self.inside(index, m, line)
        values = value if isinstance(value, tuple) else (value,)
        for number, each in enumerate(values):
            words = places + (number if part is None else part)
            self.reach(words, len(values))
            self.put(active, words, each[active] if isinstance(each, np.ndarray) else each, line)

    def reach(self, words: Numbers, unit: int) -> None:
        """Note the range of words that are written, and that they have a value."""
        memory = self.memory
        if words.size:
            low, high = memory.written.get(unit, (2**62, 0))
            memory.written[unit] = min(low, int(words.min())), max(high, int(words.max()))
        if memory.unwritten is not None:
            memory.unwritten[memory.slots(words)] = False

    def put(self, active: Numbers, words: Numbers, values: Value, line: int, *, atomic: bool = False) -> None:
        """Write words, and note who does."""
        memory = self.memory
        own = self.findings.invocations[active].astype(np.int32)
        slots = memory.slots(words)
        writer, reader = memory.writer[slots], memory.reader[slots]
        memory.writer[slots] = own
        winner = memory.writer[slots]
        again = (writer != UNOWNED) & (writer != own)
        differs = again & (memory.words[slots] != values)
        memory.words[slots] = values
        at_once = winner != own
        differs |= at_once & (memory.words[slots] != values)
        other = np.where(at_once, winner, writer)
        what = f"a word is written, {'other' if differs.any() else 'equal'} bits, that"
        if not self.repeats:
            self.complain("race", line, active, at_once | again, words, what, other)
            self.complain("race", line, active, (reader != UNOWNED) & (reader != own), words, what, reader)
        self.complain("race", line, active, differs, words, what, other)
        if memory.atomic is not None and not atomic:
            what = "a word with atomics is written without"
            self.complain("mixed", line, active, memory.atomic[slots], words, what)

    def complain(
        self,
        kind: str,
        line: int,
        active: Numbers,
        wrong: Any,
        words: Numbers,
        what: str,
        other: Value = None,
    ) -> None:
        """Report the first wrong access, and who else accessed the word if that is given."""
        if not wrong.any() or (kind, line) in self.findings.found:
            return
        first = int(wrong.argmax())
        if other is not None:
            several = other[first] == SEVERAL
            what += f" {'several invocations' if several else f'invocation {other[first]}'} accessed as well"
        at = f"{self.name}, {words[first]}, invocation {self.findings.invocations[active[first]]}"
        self.findings.add(kind, line, f"{what}: {at}, and {int(wrong.sum()) - 1} more")

    # atomics

    def touched(self, index: Value, m: Mask, line: int) -> tuple[Numbers, Numbers, Numbers]:
        """Return the invocations, words and places of an atomic operation, and note it."""
        active, words = self.inside(index, m, line)
        memory = self.memory
        slots = memory.slots(words)
        if memory.atomic is None:
            memory.atomic = np.zeros(memory.words.size, np.bool_)
            memory.changed = np.zeros(memory.words.size, np.int64)
        memory.atomic[slots] = True
        return active, words, slots

    def atomicLoad(self, index: Value, m: Mask, line: int) -> Value:  # noqa: N802 -- WGSL's name
        active, _, slots = self.touched(index, m, line)
        return self.spread(active, self.memory.words[slots])

    def atomicStore(self, index: Value, value: Value, m: Mask, line: int) -> None:  # noqa: N802 -- WGSL's name
        active, words, slots = self.touched(index, m, line)
        assert self.memory.changed is not None
        given = value[active] if isinstance(value, np.ndarray) else value
        changed = self.memory.changed[slots] != 0
        what = "bits are written that another invocation changed"
        self.complain("race", line, active, changed, words, what)
        self.reach(words, 1)
        self.put(active, words, given, line, atomic=True)

    def atomicXor(self, index: Value, value: Value, m: Mask, line: int) -> Value:  # noqa: N802 -- WGSL's name
        active, words, slots = self.touched(index, m, line)
        changed = self.memory.changed
        assert changed is not None
        given = np.broadcast_to(value, self.findings.invocations.shape)[active]
        twice = (changed[slots] & given) != 0
        self.complain("race", line, active, twice, words, "bits are changed that another invocation changed")
        self.reach(words, 1)
        places, which = np.unique(slots, return_inverse=True)
        differing, any_of = np.zeros_like(places), np.zeros_like(places)
        np.bitwise_xor.at(differing, which, given)
        np.bitwise_or.at(any_of, which, given)
        overlap = (differing != any_of)[which]
        self.complain("race", line, active, overlap, words, "bits are changed by two invocations")
        changed[places] |= any_of
        found = self.spread(active, self.memory.words[slots])
        self.memory.words[places] ^= differing
        return found

    def atomicCompareExchangeWeak(  # noqa: N802 -- WGSL's name
        self, index: Value, compared: Value, value: Value, m: Mask, line: int
    ) -> tuple[Value, Value]:
        """Exchange in one invocation per word; in others the comparison fails, as WGSL allows."""
        active, words, slots = self.touched(index, m, line)
        self.reach(words, 1)
        everyone = self.findings.invocations.shape
        expected, given = (np.broadcast_to(each, everyone)[active] for each in (compared, value))
        found = self.memory.words[slots]
        exchanged = np.zeros(active.size, np.bool_)
        exchanged[np.unique(slots, return_index=True)[1]] = True
        exchanged &= found == expected
        assert self.memory.changed is not None
        self.memory.changed[slots[exchanged]] |= (found ^ given)[exchanged]
        self.memory.words[slots[exchanged]] = given[exchanged]
        return self.spread(active, found), self.spread(active, exchanged) != 0

    def atomicMax(self, index: Value, value: Value, m: Mask, line: int) -> None:  # noqa: N802 -- WGSL's name
        active, words, slots = self.touched(index, m, line)
        self.valued(active, words, line)
        self.reach(words, 1)
        np.maximum.at(self.memory.words, slots, value[active] if isinstance(value, np.ndarray) else value)
