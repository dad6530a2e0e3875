"""Execute the steps of a plan on memories: dispatches, buffer copies and clears."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from checker.execute import WORD_NBYTES, Dispatched, words_of
from checker.findings import Finding
from checker.memory import Memory, Numbers, Paged, Tally, garbage
from numpy.typing import NDArray

from wgslice.gpu.pipelines import kernel_call
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import PATTERN_NBYTES
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, OnGrid
from wgslice.plans.steps import Memory as Kind

MAX_WORDS = 2**22  # of a memory that is held as a whole


def run_plan(
    plan: Plan,
    memories: dict[int, Memory],
    tallies: defaultdict[str, Tally],
    changed: Callable[[str], str] = str,
    groups: Callable[[OnGrid], Numbers] | None = None,
) -> list[Finding]:
    """Execute the steps of a plan on the caller's memories, with modules' text changed, and maybe in part."""
    memories = {**memories, Kind.ZEROS: Memory(np.zeros(PATTERN_NBYTES // WORD_NBYTES, np.int64))}
    for kind, nbytes in plan.scratch:
        size = -(-nbytes // 16) * 4
        fresh = kind is not Kind.WINNERS  # those are zeroed
        content = garbage if fresh else np.zeros_like
        held = Memory(content(np.arange(min(size, MAX_WORDS))), fresh=fresh)
        if held.unwritten is not None:  # sub-word kernels keep what is behind the last element
            held.unwritten[[word for word in last_words(plan, kind) if word < held.size]] = False
        memories[kind] = Paged(size, content, fresh=fresh) if size > MAX_WORDS else held
    found: list[Finding] = []
    for step in plan.steps:
        if isinstance(step, OnGrid):
            call = kernel_call(step)
            call = call._replace(module=changed(call.module))
            tally = tallies[step.kernel.value]
            tally.elements = max(tally.elements, plan.source.stop, plan.target.stop)
            found += Dispatched(step.kernel.value, call, memories, tally).run(groups and groups(step))
        elif isinstance(step, Clear):
            change(memories[step.writes], [(step.offset_nbytes, bytes(step.nbytes))])
        elif isinstance(step, BufferCopies):
            given = bytes_of(memories[step.reads]).tobytes()
            parts = [(put, given[read:][: step.nbytes]) for read, put in step.offsets.tolist()]
            change(memories[step.writes], parts)
        else:
            raise NotImplementedError(step.name)
    return found


def last_words(plan: Plan, kind: Kind) -> Iterator[int]:
    """Yield the words of a memory that the elements of a step end inside of."""
    for step in plan.steps:
        if isinstance(step, Dispatch) and step.writes is kind:
            stop = step.target_binding.offset_nbytes + step.target.stop * step.width_nbytes
            if stop % WORD_NBYTES:
                yield stop // WORD_NBYTES


def bytes_of(memory: Memory) -> NDArray[np.uint8]:
    """Return the bytes of a memory."""
    return memory.words.astype("<u4").view(np.uint8)


def change(memory: Memory, parts: Iterable[tuple[int, bytes]]) -> None:
    """Write bytes, whole words of them, to places of a memory."""
    for start, content in parts:
        words = slice(start // WORD_NBYTES, (start + len(content)) // WORD_NBYTES)
        memory.words[words] = words_of(content)
        if memory.unwritten is not None:
            memory.unwritten[words] = False
