"""Provenance of results: the commit, and for each case a fingerprint of its plan and its kernels' text.

Results are stale if fingerprints of the same cases differ, since other commands would run today.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import Any

import numpy as np

from bench.boxes import BOXES, PADDINGS, PUT_BACK, Boxes, PutBack
from bench.cases import CASES, COPIES, PERMUTES, Case, Cut
from bench.compilers.planned import ASKED, LIMITS, planned
from bench.contest import ROOT
from bench.graphs import GRAPHS
from bench.tasks import (
    BATCHES,
    GRADIENTS,
    INSERTIONS,
    MANY_WINDOWS,
    WINDOWS,
    Columns,
    Crops,
    Gradient,
    Inserts,
)
from wgsl import link
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, Limits, shipped_for
from wgslice.shaders import kernel_module

__all__ = ["STALE", "fingerprints", "is_stale", "provenance"]

# By the section of a results file with their measurements.
SECTIONS: dict[str, Sequence[Case]] = {
    "slices": [*CASES, *MANY_WINDOWS],
    "copies": COPIES,
    "permutes": PERMUTES,
    "windows": WINDOWS,
    "insertions": INSERTIONS,
    "gradients": GRADIENTS,
    "batches": BATCHES,
    "boxes": BOXES,
    "put_back": PUT_BACK,
    "paddings": PADDINGS,
    "graphs": GRAPHS,
    "accesses": ASKED,  # what GPU compilers say
}
# The note of a page about results whose plans or kernels have changed.
STALE = "**Stale measurements**: taken before today's plans and kernels; they are being measured again."
PACKED = ROOT / "commit.txt"  # in a folder that `python3 run gpu --pack` made
# What a run writes, and thus the one before it.
WRITTEN = ":!bench/results", ":!docs/performance.md", ":!docs/atlas.md", ":!README.md"
WORDS = ("reason",)  # fields of steps that are printed only


def provenance(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the commit and fingerprints for a results file."""
    return {"commit": commit(), "fingerprints": fingerprints(content)}


def is_stale(content: Mapping[str, Any]) -> bool:
    """Whether a results file measured other plans or kernels than today's, or records none."""
    return "fingerprints" not in content or content["fingerprints"] != fingerprints(content)


def commit() -> str | None:
    """The commit that is packed, or checked out, with a mark where files differ; None outside of both."""
    if PACKED.exists():
        return PACKED.read_text("utf-8").strip()
    try:
        found = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--", ".", *WRITTEN)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found} dirty" if changed else found


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fingerprints(content: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
    """Today's fingerprint of each case of a results file, by section and name; None for an unknown case."""
    limits = limits_of(content)
    found: dict[str, dict[str, str | None]] = {}
    for section in SECTIONS.keys() & content.keys():
        entries = content[section]
        names = entries if isinstance(entries, dict) else [each["name"] for each in entries]
        cases = {case.name: case for case in SECTIONS[section]}
        found[section] = {name: fingerprint(cases[name], limits) if name in cases else None for name in names}
    if "cliffs" in content:  # any kernel, since calls are not planned here
        found["cliffs"] = {"every row": every_kernel(limits)}
    if "streams" in content:
        found["streams"] = dict.fromkeys(content["streams"], digest(CASES, limits))
    return found


def every_kernel(limits: Limits = LIMITS) -> str:
    """A digest of all kernels, and of the plans of slices and windows."""
    return digest([*CASES, *MANY_WINDOWS], limits, Kernel)


def limits_of(content: Mapping[str, Any]) -> Limits:
    """Limits of a large GPU, with the shipped costs of the adapter that was measured."""
    contenders = content.get("contenders", {}).values()
    ours = next((each for each in contenders if each.get("kind") == "CPU"), None)
    if ours is None:
        return LIMITS
    name, _, backend = ours["adapter"].rpartition(" via ")
    costs = shipped_for(name, backend, ours["driver"], software=True)
    return replace(LIMITS, profile=replace(CPU, costs=costs))


def fingerprint(case: Case, limits: Limits) -> str:
    """A digest of a case's plan and kernels; of all slices' where a plan takes a device or several steps."""
    if isinstance(case.work, Boxes | PutBack):
        return digest(CASES, limits, [Kernel.SIZED_WINDOWS])
    return digest(
        [case] if isinstance(case.work, Cut | Columns | Crops | Gradient | Inserts) else CASES, limits
    )


def digest(cases: Sequence[Case], limits: Limits, others: Iterable[Kernel] = ()) -> str:
    """16 digits of a hash of cases' plans and kernels, and of other kernels."""
    found = sha256()
    kernels = set(others)
    for case in cases:
        steps = planned(case, limits).steps
        found.update(repr(canonical(steps)).encode())
        kernels |= {step.kernel for step in steps if hasattr(step, "kernel")}
    for kernel in sorted(kernels, key=lambda kernel: kernel.value):
        found.update(code_of(kernel_module(kernel)).encode())
    return found.hexdigest()[:16]


def code_of(module: str) -> str:
    """The declarations of a module without comments and in the order of their names, which change no time."""
    declared = link.declared(re.sub(" *//.*", "", module))
    return "".join(declared[name] for name in sorted(declared))


def canonical(value: Any) -> Any:
    """Steps as nested lists of values, without names of fields and without words."""
    if is_dataclass(value):
        kept = [getattr(value, field.name) for field in fields(value) if field.name not in WORDS]
        return [type(value).__name__, *map(canonical, kept)]
    if isinstance(value, Layout):
        return ["Layout", *map(canonical, value)]
    if isinstance(value, list | tuple):
        return [*map(canonical, value)]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, sha256(value.tobytes()).hexdigest()]
    return value.name if isinstance(value, Enum) else value
