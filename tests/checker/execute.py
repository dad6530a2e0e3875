"""Execute a dispatch: every invocation, or those of chosen workgroups."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from checker.findings import Finding, Findings
from checker.memory import Buffer, Memory, Numbers, Tally, garbage
from checker.translate import Module, Variable, translated
from checker.types import Tuple, Type
from checker.values import Arithmetic, EndlessLoopError, Mask
from numpy.typing import NDArray

from wgslice.gpu.pipelines import KernelCall
from wgslice.plans.proofs import Checks

BATCH = 2**16  # invocations that are executed at once
WORD_NBYTES = 4


def words_of(data: NDArray[Any] | bytes) -> Numbers:
    """Return bytes as words, padded by zeros."""
    raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
    return np.frombuffer(raw + bytes(-len(raw) % WORD_NBYTES), "<u4").astype(np.int64)


def uniform(type_: Type, words: list[int], at: int = 0) -> Any:
    """Return the value at a word, by WGSL's layout of uniform blocks of words, vec4 and structs."""
    if not isinstance(type_, Tuple):
        return words[at]
    if type_.length:
        stride = words_in(type_.parts[0])  # of vectors, or of structs that are padded to whole ones
        return tuple(uniform(type_.parts[0], words, at + n * stride) for n in range(int(type_.length)))
    found = []
    for part in type_.parts:
        count = words_in(part)
        at = -(-at // 4) * 4 if count > 1 else at
        found.append(uniform(part, words, at))
        at += count
    return tuple(found)


def words_in(type_: Type) -> int:
    """Return the words of a type."""
    if not isinstance(type_, Tuple):
        return 1
    count = int(type_.length) if type_.length else 1
    return count * sum(map(words_in, type_.parts))


class Dispatched:
    """One dispatch of a kernel on memories."""

    def __init__(self, name: str, call: KernelCall, memories: Mapping[int, Memory], tally: Tally) -> None:
        self.call, self.tally = call, tally
        self.module: Module = translated(call.module, call.entry_point)
        self.findings = Findings(name, self.module.lines)
        self.names: dict[str, Any] = Arithmetic(self.findings).names() | {"m0": None, "barrier": self.barrier}
        given = dict(call.constants)
        for constant, default in self.module.defaults.items():
            value = eval(default, self.names)  # an expression that the translator wrote
            if constant in given:
                value = bool(given[constant]) if isinstance(value, bool) else given[constant]
            self.names[f"_{constant}"] = value
        exec(self.module.code, self.names)
        self.repeats = any(not name or self.names[f"_{name}"] for name, _ in self.module.repeats)
        self.size: int = self.names["_workgroup_size"]  # invocations per workgroup
        self.own: list[Buffer] = []  # workgroup memory
        self.bound = {binding.number: binding for binding in call.bindings}
        for variable in self.module.variables:
            self.names[f"_{variable.name}"] = self.variable(variable, memories)

    def variable(self, variable: Variable, memories: Mapping[int, Memory]) -> Any:
        """Return the value of a variable of the module."""
        unit = words_in(variable.element)
        if variable.space == "private":
            assert isinstance(variable.type, Tuple)
            return (0,) * int(variable.type.length)
        if variable.space == "workgroup":
            assert isinstance(variable.type, Tuple)
            size = eval(variable.type.length, self.names) * unit
            memory = Memory(np.zeros(0, np.int64))
            buffer = Buffer(variable.name, memory, self.findings, self.tally, size, unit, True)
            self.own.append(buffer)
            return buffer
        assert variable.binding is not None
        if variable.space == "uniform":
            words = words_of(self.call.contents[variable.binding].values)
            assert words_in(variable.type) <= words.size
            return uniform(variable.type, words.tolist())
        written = self.call.types[variable.binding] == "storage"
        if variable.binding in self.bound:
            binding = self.bound[variable.binding]
            memory = memories[binding.memory]
            first, size = binding.offset_nbytes // WORD_NBYTES, binding.nbytes // WORD_NBYTES
            assert first + size <= memory.size, f"binding {variable.binding} is larger than its buffer"
        else:
            memory = Memory(words_of(self.call.contents[variable.binding].values))
            first, size = 0, memory.size
        if written:
            memory.begin()
        common = variable.name, memory, self.findings, self.tally
        proven = self.call.checks is Checks.NONE
        return Buffer(*common, size, unit, written, self.repeats, first, proven=proven)

    def barrier(self, mask: Mask, line: int) -> None:
        """Check that all invocations of a workgroup meet, and forget their accesses of workgroup memory."""
        assert mask is not None
        groups = mask.reshape(-1, self.size)
        missing = np.repeat(groups.any(1) & ~groups.all(1), self.size)
        self.findings.note("barrier", line, None, missing, "not all invocations meet")
        for buffer in self.own:
            buffer.memory.begin()

    def run(self, groups: Numbers | None = None) -> list[Finding]:
        """Execute all workgroups, or some by their row-major numbers; return what is found."""
        x, y, _ = self.call.workgroups
        chosen = np.arange(prod(self.call.workgroups)) if groups is None else groups
        step = max(BATCH // self.size, 1)
        for start in range(0, chosen.size, step):
            self.batch(np.repeat(chosen[start : start + step], self.size), x, y)
        self.tally.dispatches += 1
        return [*self.findings.found.values()]

    def batch(self, group: Numbers, x: int, y: int) -> None:
        """Execute some workgroups, given the workgroup of each invocation."""
        index = np.tile(np.arange(self.size), group.size // self.size)
        self.findings.invocations = group * self.size + index
        self.tally.invocations += group.size
        for buffer in self.own:
            own = np.repeat(np.arange(group.size // self.size), self.size)
            buffer.bases = own * buffer.size
            words = np.arange(buffer.size * (group.size // self.size))
            buffer.memory = Memory(garbage(words), fresh=True)
        values = {
            "workgroup_id": (group % x, group // x % y, group // x // y),
            "num_workgroups": (x, y, self.call.workgroups[2]),
            "local_invocation_index": index,
        }
        arguments = [
            tuple(values[name] for name in given) if isinstance(given, tuple) else values[given]
            for given in self.module.inputs
        ]
        everyone = np.ones(group.size, np.bool_)
        self.names["everyone"] = everyone  # the mask of private variables
        with suppress(EndlessLoopError):
            self.names[self.module.entry](everyone, *arguments)
