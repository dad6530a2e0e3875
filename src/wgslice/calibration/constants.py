"""The constants of a machine, and the shipped cost model scaled to them. Pure: no device is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wgslice.layout import Layout
from wgslice.plans.choose import seconds_of
from wgslice.plans.costs import Costs, Work
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits, Profile
from wgslice.plans.steps import Dispatch, Span, dispatch_of

__all__ = ["COMPARED", "CONSTANTS", "beyond_noise", "constants_of", "scaled", "shader_step", "with_constants"]

# By name: what it is in words, the factor from its SI unit to the one it is printed in, and that unit.
CONSTANTS = {
    "submission_s": ("time per submission", 1e6, "us"),
    "dispatch_s": ("time per dispatch", 1e6, "us"),
    "copy_s": ("time per buffer copy", 1e6, "us"),
    "copy_bytes_per_s": ("buffer copy bandwidth", 1e-9, "GB/s"),
    "shader_bytes_per_s": ("shader bandwidth", 1e-9, "GB/s"),
}
COMPARED = ("copy_s", "shader_bytes_per_s")  # measured on software adapters when a device is made

# Noise of a busy machine makes no such difference, another kind of machine does: lavapipe of Mesa 22.3 copies
# 1.05 GB/s by shader on two cores of an AMD EPYC (Zen 3) and 4.7 GB/s on two cores of a Zen 4.
FACTOR = 3.0

ROW_NBYTES, WORD_NBYTES = 4096, 4
TYPICAL_NBYTES = 2**20  # copied by the dispatch that says what the shader bandwidth of a cost model is


def shader_step(nbytes: int, limits: Limits) -> Dispatch:
    """Return a dispatch that copies contiguous rows of 4 KiB by the kernel `rows`; one row at least."""
    rows = max(nbytes // ROW_NBYTES, 1)
    layout, span = Layout.packed((rows, ROW_NBYTES // WORD_NBYTES)), Span(0, rows * ROW_NBYTES)
    return dispatch_of(Kernel.ROWS, layout, layout, WORD_NBYTES, (span, span), limits, "calibration")


def constants_of(profile: Profile) -> dict[str, float]:
    """Return all constants as the profile's cost model has them."""
    limits = Limits(2**27, 256, 2**16 - 1, profile)  # with which any device makes the same dispatch
    small, large = (seconds_of([shader_step(n, limits)], profile.costs) for n in (0, TYPICAL_NBYTES))
    shader_bytes_per_s = (TYPICAL_NBYTES - ROW_NBYTES) / (large - small)
    return {name: getattr(profile.costs, name, shader_bytes_per_s) for name in CONSTANTS}


def beyond_noise(profile: Profile, measured: Mapping[str, float]) -> dict[str, float]:
    """Return the constants that differ from those of the profile by more than FACTOR."""
    known = constants_of(profile)
    return {
        name: value
        for name, value in measured.items()
        if not known[name] / FACTOR <= value <= known[name] * FACTOR
    }


def scaled(profile: Profile, measured: Mapping[str, float], origin: str) -> Profile:
    """Return the profile with measured constants; the shader bandwidth scales every cost class alike."""
    known, costs = constants_of(profile), profile.costs
    ratios = {name: value / known[name] for name, value in measured.items()}
    faster = ratios.get("shader_bytes_per_s", 1.0)
    works = {
        name: Work(work.invocation_s / faster, work.bytes_per_s * faster)
        for name, work in costs.works.items()
    }
    fixed: dict[str, Any] = {name: value for name, value in measured.items() if hasattr(costs, name)}
    clear_bytes_per_s = costs.clear_bytes_per_s * ratios.get("copy_bytes_per_s", 1.0)
    changed: Costs = replace(costs, origin=origin, works=works, clear_bytes_per_s=clear_bytes_per_s, **fixed)
    return replace(profile, costs=changed)


def with_constants(profile: Profile, measured: Mapping[str, float], date: str) -> Profile:
    """Return the profile scaled to all constants, or to those of a comparison that noise cannot explain."""
    origin = profile.costs.origin
    if measured.keys() == CONSTANTS.keys():
        return scaled(profile, measured, f"{origin}, scaled to what `wgslice tune` measured on {date}")
    known, differing = constants_of(profile), beyond_noise(profile, measured)
    if not differing:
        return profile
    said = ", ".join(f"{CONSTANTS[name][0]} x {differing[name] / known[name]:.2g}" for name in differing)
    return scaled(profile, differing, f"{origin}, on this machine {said}")
