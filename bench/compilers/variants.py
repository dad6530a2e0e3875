"""The kernels that slices take on a GPU, as whole modules with their constants folded in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from bench.cases import Case
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import GPU, Limits
from wgslice.plans.steps import Dispatch
from wgslice.plans.terms import Terms
from wgslice.shaders.modules import kernel_module
from wgslice.shaders.uniforms import override_constants

__all__ = ["Variant", "folded", "planned", "source_layout", "variants"]

# What wgpu gives on a large GPU.
LIMITS = Limits(binding_nbytes=2**31, binding_alignment_nbytes=64, workgroups=65535, profile=GPU)


@dataclass(frozen=True)
class Variant:
    """A dispatch of a slice: what is compiled, and how much of it runs for how many bytes."""

    slices: tuple[str, ...]  # that take it, the figures being the first one's
    kernel: str
    text: str  # WGSL
    invocations: int
    useful_nbytes: int  # that the dispatch writes

    def per_block(self, figure: float) -> float:
        """A figure of an invocation for 16 useful bytes."""
        return figure * self.invocations / max(self.useful_nbytes / 16, 1)


def source_layout(case: Case) -> Layout:
    """Where the slice's elements lie in the input, counted in elements."""
    itemsize = case.itemsize
    steps = [stride * itemsize for stride in Layout.packed(case.shape).strides]
    base = np.lib.stride_tricks.as_strided(np.empty((), case.dtype), case.shape, steps)
    view = case.work.of(base)
    place = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout.of(view.shape, [stride // itemsize for stride in view.strides], place // itemsize)


def planned(case: Case) -> Plan:
    """A slice as it is planned for a GPU, from one tensor to another."""
    source = source_layout(case)
    itemsize = case.itemsize
    return plan_copy(source, Layout.packed(source.sizes), itemsize, Terms(LIMITS))


def variants(cases: Sequence[Case]) -> Iterator[Variant]:
    """What the slices compile on a GPU, each text once for each number of invocations a block."""
    found: dict[tuple[str, float], Variant] = {}
    for case in cases:
        for step in planned(case).steps:
            if isinstance(step, Dispatch):
                variant = variant_of(case.name, step)
                key = variant.text, round(variant.per_block(1), 2)
                known = found.get(key)
                names = (*known.slices, case.name) if known else (case.name,)
                found[key] = replace(known or variant, slices=tuple(dict.fromkeys(names)))
    yield from found.values()


def variant_of(name: str, step: Dispatch) -> Variant:
    """One dispatch."""
    text = folded(kernel_module(step.kernel), override_constants(step))
    invocations = prod(step.share.workgroups) * step.share.workgroup_size
    return Variant((name,), step.kernel.value, text, invocations, step.target.size * step.width_nbytes)


def folded(text: str, constants: Mapping[str, int]) -> str:
    """A module whose overrides are constants: what a driver gets to see."""

    def constant(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name not in constants:
            return f"const {name}: {kind}{rest};"  # computed of others
        value = constants[name]
        literal = ("true" if value else "false") if kind == "bool" else f"{value}"
        return f"const {name}: {kind} = {literal};"

    return re.sub(r"^override (\w+): (\w+)([^;]*);", constant, text, flags=re.MULTILINE)
