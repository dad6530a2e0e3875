"""What is timed as it is planned for a GPU, without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.cases import CASES, Case
from bench.tasks import GRADIENTS, INSERTIONS, WINDOWS, Crops, Gradient, Inserts
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.extract_windows import plan_extract_windows
from wgslice.plans.insert_windows import plan_insert_windows
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import GPU, Limits
from wgslice.plans.slice_grad import plan_slice_grad
from wgslice.plans.terms import Terms

__all__ = ["ASKED", "offsets_of", "planned", "source_layout"]

# What wgpu gives on a large GPU.
LIMITS = Limits(binding_nbytes=2**31, binding_alignment_nbytes=64, workgroups=65535, profile=GPU)


# Every slice, windows and gradients, each by a name of its own.
ASKED: list[Case] = [
    *CASES,
    *WINDOWS,
    *(replace(task, name=f"{task.name}, written") for task in INSERTIONS if task.key.crops.gridded),
    *(replace(task, name=f"{task.name}, gradient") for task in GRADIENTS),
]


def planned(case: Case) -> Plan:
    """A slice, a gradient or windows, from one tensor to another."""
    terms, work = Terms(LIMITS), case.work
    if isinstance(work, Gradient):
        sides = Layout.packed(case.shape), Layout.packed(work.shape)
        return plan_slice_grad(work.taken, False, *sides, case.itemsize, terms)
    if isinstance(work, Inserts):
        batch, tensor = (wg.TensorDesc(case.dtype, sizes) for sizes in (case.shape, work.shape))
        directions = work.crops.directions(len(work.shape))
        insertion = wg.InsertWindows(batch, tensor, offsets_of(case), directions, overlap="last").insertion
        return plan_insert_windows(insertion, batch.layout, tensor.layout, case.itemsize, terms)
    if isinstance(work, Crops):
        input, output = (wg.TensorDesc(case.dtype, sizes) for sizes in (case.shape, work.sizes(case.shape)))
        directions = work.directions(len(case.shape))
        windows = wg.ExtractWindows(input, output, offsets_of(case), output.sizes[1:], directions).windows
        return plan_extract_windows(windows, input.layout, output.layout, case.itemsize, terms)
    source = source_layout(case)
    return plan_copy(source, Layout.packed(source.sizes), case.itemsize, terms)


def offsets_of(case: Case) -> NDArray[np.int64]:
    """Of windows, (windows, rank)."""
    work = case.work
    crops, shape = (work.crops, work.shape) if isinstance(work, Inserts) else (work, case.shape)
    found: NDArray[np.int64] = crops.offsets(shape)
    return found


def source_layout(case: Case) -> Layout:
    """Where the slice's elements lie in the input, counted in elements."""
    itemsize = case.itemsize
    steps = [stride * itemsize for stride in Layout.packed(case.shape).strides]
    base = np.lib.stride_tricks.as_strided(np.empty((), case.dtype), case.shape, steps)
    view = case.work.of(base)
    place = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout.of(view.shape, [stride // itemsize for stride in view.strides], place // itemsize)
