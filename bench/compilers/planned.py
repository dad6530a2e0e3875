"""Plan the timed cases for a GPU, without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.cases import CASES, Case
from bench.tasks import GATHERS, GRADIENTS, INSERTIONS, WINDOWS, Columns, Crops, Gradient, Inserts
from wgslice.dialects.advanced import AdvancedSelection, any_index
from wgslice.layout import Layout
from wgslice.plans.facade import Asked, copying, gradient, indexed_copy, indexing, plan
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.profiles import GPU, Limits

__all__ = ["ASKED", "offsets_of", "planned", "source_layout", "windows_planner"]

# What wgpu gives on a large GPU.
LIMITS = Limits(binding_nbytes=2**31, binding_alignment_nbytes=64, workgroups=65535, profile=GPU)


# Every slice, gathers, windows and gradients, each by a name of its own.
ASKED: list[Case] = [
    *CASES,
    *GATHERS,
    *WINDOWS,
    *(replace(task, name=f"{task.name}, written") for task in INSERTIONS if task.key.crops.gridded),
    *(replace(task, name=f"{task.name}, gradient") for task in GRADIENTS),
]


def planned(case: Case, limits: Limits = LIMITS) -> Plan:
    """A slice, a gather, a gradient or windows, from one tensor to another."""
    work = case.work
    if isinstance(work, Gradient):
        sides = Layout.packed(case.shape), Layout.packed(work.shape)
        return plan(gradient(*sides, case.itemsize, work.taken), limits)
    if isinstance(work, Crops | Inserts):
        sides = Layout.packed(case.shape), Layout.packed(work.sizes(case.shape))
        return plan(Asked(windows_planner(case), *sides, case.itemsize), limits)
    if isinstance(work, Columns):
        matrix = Layout.packed(case.shape)
        selection = any_index(case.shape, work.key)
        assert isinstance(selection, AdvancedSelection)
        copy = indexed_copy(selection, matrix, matrix, reads=True)
        assert copy is not None
        return plan(indexing(matrix, matrix, case.itemsize, copy), limits)
    source = source_layout(case)
    return plan(copying(source, Layout.packed(source.sizes), case.itemsize), limits)


def windows_planner(case: Case) -> Planner:
    """Return the planner of windows between packed tensors."""
    work, offsets = case.work, offsets_of(case)
    read, written = (wg.TensorDesc(case.dtype, sizes) for sizes in (case.shape, work.sizes(case.shape)))
    if isinstance(work, Inserts):
        directions = work.crops.directions(len(work.shape))
        return wg.InsertWindows(read, written, offsets, directions, overlap="last").planner
    directions = work.directions(len(case.shape))
    return wg.ExtractWindows(read, written, offsets, written.sizes[1:], directions).planner


def offsets_of(case: Case) -> NDArray[np.int64]:
    """Return the offsets of windows, (windows, rank)."""
    work = case.work
    crops, shape = (work.crops, work.shape) if isinstance(work, Inserts) else (work, case.shape)
    found: NDArray[np.int64] = crops.offsets(shape)
    return found


def source_layout(case: Case) -> Layout:
    """Return the layout of the slice in the input, in elements."""
    itemsize = case.itemsize
    steps = [stride * itemsize for stride in Layout.packed(case.shape).strides]
    base = np.lib.stride_tricks.as_strided(np.empty((), case.dtype), case.shape, steps)
    view = case.work.of(base)
    place = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout.of(view.shape, [stride // itemsize for stride in view.strides], place // itemsize)
