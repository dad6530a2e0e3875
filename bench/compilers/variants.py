"""The kernels of slices on a GPU, as modules with constants folded in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.cases import Case
from bench.compilers.planned import planned
from wgslice.plans.steps import Dispatch, OnGrid
from wgslice.shaders import entry_point, module_of, override_constants

__all__ = ["Variant", "folded", "variants"]


@dataclass(frozen=True)
class Variant:
    """A dispatch of a slice: its module, invocations and useful bytes."""

    slices: tuple[str, ...]  # that run it; statistics are of the first
    kernel: str
    entry_point: str
    text: str  # WGSL
    invocations: int
    useful_nbytes: int  # that the dispatch writes

    def per_block(self, count: float) -> float:
        """Convert a count per invocation to 16 useful bytes."""
        return count * self.invocations / max(self.useful_nbytes / 16, 1)


def variants(cases: Sequence[Case]) -> Iterator[Variant]:
    """Yield the modules of slices, each text once per number of invocations a block."""
    found: dict[tuple[str, float], Variant] = {}
    for case in cases:
        for step in planned(case).steps:
            if isinstance(step, OnGrid):
                variant = variant_of(case.name, step)
                key = variant.text, round(variant.per_block(1), 2)
                known = found.get(key)
                names = (*known.slices, case.name) if known else (case.name,)
                found[key] = replace(known or variant, slices=tuple(dict.fromkeys(names)))
    yield from found.values()


def variant_of(name: str, step: OnGrid) -> Variant:
    """Return the variant of one dispatch."""
    invocations = step.share.invocations
    if isinstance(step, Dispatch):
        useful_nbytes = step.target.size * step.width_nbytes
    else:
        useful_nbytes = step.target_binding.nbytes
    text = folded(module_of(step), override_constants(step))
    return Variant((name,), step.kernel.value, entry_point(step.kernel), text, invocations, useful_nbytes)


def folded(text: str, constants: Mapping[str, int]) -> str:
    """Return a module with overrides replaced by constants, as a driver receives it."""

    def constant(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name not in constants:
            return f"const {name}: {kind}{rest};"  # computed of others
        value = constants[name]
        literal = ("true" if value else "false") if kind == "bool" else f"{value}"
        return f"const {name}: {kind} = {literal};"

    return re.sub(r"^override (\w+): (\w+)([^;]*);", constant, text, flags=re.MULTILINE)
