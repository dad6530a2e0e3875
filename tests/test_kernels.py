"""Each kernel by name, against NumPy and against its NumPy twin, on every byte of both buffers."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from helpers import (
    GUARD,
    WIDTHS,
    Bytes,
    check_bytes,
    copied,
    make_buffer,
    random_bytes,
    read_buffer,
    whole_words,
)
from hypothesis import given, settings
from strategies import Case, cases

import wgslice as wg
from wgslice.execute import record_plan
from wgslice.kernels import Kernel
from wgslice.layout import Layout
from wgslice.plan import Dispatch, Limits, Plan, grid, plan_copy
from wgslice.reference import run_plan, twins
from wgslice.uniforms import copy_dtype, uniform_block


def wgsl(kernel: Kernel) -> str:
    return files("wgslice.wgsl").joinpath(f"{kernel.value}.wgsl").read_text("utf-8")


def buffers(case: Case) -> tuple[Bytes, Bytes]:
    """A source and a poisoned target with room behind the last element."""
    source = random_bytes(whole_words(case.source.stop * case.width) + GUARD, case.seed)
    target = random_bytes(whole_words(case.output.stop * case.width) + GUARD, case.seed + 1)
    return source, target


def small_limits(alignment: int) -> Limits:
    """Limits so tight that small tensors cross them."""
    return Limits(binding_nbytes=2 * alignment, binding_alignment_nbytes=alignment, workgroups=2)


def plans(case: Case, limits: Limits) -> list[Plan]:
    """The chosen plan, the one for tight limits, and that with the kernel that is right for everything."""
    chosen = plan_copy(case.source, case.output, case.width, limits, buffer_copy=case.copyable)
    tight_limits = small_limits(limits.binding_alignment_nbytes)
    tight = plan_copy(case.source, case.output, case.width, tight_limits, buffer_copy=False)
    baseline = replace(tight, steps=tuple(with_slice1(step, tight_limits) for step in tight.steps))
    return [chosen, tight, baseline]


def with_slice1(step: Any, limits: Limits) -> Dispatch:
    assert isinstance(step, Dispatch)
    count = step.target.size
    return replace(step, kernel=Kernel.SLICE1, count=count, workgroups=grid(count, limits))


def run_on_gpu(device: wg.Device, plan: Plan, source: Bytes, target: Bytes) -> Bytes:
    buffer = make_buffer(device, target)
    encoder = device.wgpu_device.create_command_encoder()
    record_plan(device, encoder, plan, (make_buffer(device, source), 0), (buffer, 0))
    device.wgpu_device.queue.submit([encoder.finish()])
    return read_buffer(buffer)


@given(cases())
def test_twins_do_what_numpy_does(case: Case) -> None:
    source, target = buffers(case)
    expected = copied(source, case.source, target, case.output, case.width)
    for plan in plans(case, Limits(2**27, 32, 65535)):
        result = target.copy()
        run_plan(plan, source, result)
        check_bytes(result, expected)


@settings(max_examples=150)
@given(case=cases())
def test_kernels_do_what_their_twins_do(device: wg.Device, case: Case) -> None:
    source, target = buffers(case)
    for plan in plans(case, device.limits):
        expected = target.copy()
        run_plan(plan, source, expected)
        check_bytes(run_on_gpu(device, plan, source, target), expected)


CONDITIONS = {
    # for each kernel: widths, and layouts at the edges of what it is chosen for
    Kernel.SLICE1: [
        *((width, Layout.of((5, 7), (-8, 1), 40), Layout.of((5, 7), (9, 1), 3)) for width in WIDTHS),
        *((width, Layout.of((2, 3), (9, 2)), Layout.of((2, 3), (3, 2), 1)) for width in WIDTHS),
        (1, Layout.packed((9,)), Layout.of((9,), (5,), 2)),
        (2, Layout.packed((9,)), Layout.of((9,), (3,), 1)),
        (4, Layout.of((1,) * 0, ()), Layout.packed((), 3)),
        (16, Layout.of((2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36), Layout.packed((2,) * 8)),
    ],
    Kernel.ASSEMBLE: [
        *((1, Layout.of((n,), (-1,), n + 2), Layout.packed((n,), o)) for n in range(1, 10) for o in range(5)),
        *((2, Layout.of((n,), (-3,), 3 * n), Layout.packed((n,), o)) for n in range(1, 6) for o in range(3)),
        (1, Layout.packed((9,), 1), Layout.of((9,), (4,), 3)),
        (2, Layout.packed((9,), 1), Layout.of((9,), (2,), 1)),
        (1, Layout.of((3, 5, 3), (40, 4, -1), 2), Layout.of((3, 5, 3), (17, 3, 1), 7)),
        (1, Layout.of((2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36), Layout.packed((2,) * 8, 1)),
    ],
}


def force(kernel: Kernel, width: int, source: Layout, target: Layout, limits: Limits) -> Plan:
    """A plan of exactly this kernel on exactly these layouts, whatever the planner would choose."""
    made = plan_copy(source, target, width, limits, buffer_copy=False)
    if kernel is Kernel.SLICE1:
        return replace(made, steps=tuple(with_slice1(step, limits) for step in made.steps))
    assert all(isinstance(step, Dispatch) and step.kernel is kernel for step in made.steps)
    return made


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_each_kernel_at_the_edges_of_its_conditions(device: wg.Device, kernel: Kernel) -> None:
    assert CONDITIONS[kernel]
    for number, (width, source_layout, target_layout) in enumerate(CONDITIONS[kernel]):
        source = random_bytes(whole_words(source_layout.stop * width) + GUARD, number)
        target = random_bytes(whole_words(target_layout.stop * width) + GUARD, number + 1000)
        plan = force(kernel, width, source_layout, target_layout, device.limits)
        expected = copied(source, source_layout, target, target_layout, width)
        assert not np.array_equal(expected, target)
        check_bytes(run_on_gpu(device, plan, source, target), expected)


def test_enum_files_entry_points_and_twins_have_one_name() -> None:
    names = {kernel.value for kernel in Kernel}
    assert {
        path.name.removesuffix(".wgsl")
        for path in files("wgslice.wgsl").iterdir()
        if path.name.endswith(".wgsl")
    } == names
    assert {twin.__name__ for twin in twins.values()} == names
    for kernel in Kernel:
        assert kernel.name == kernel.value.upper()
        assert re.findall(r"@compute @workgroup_size\(workgroup_size\)\s+fn (\w+)", wgsl(kernel)) == [
            kernel.value
        ]
        assert twins[kernel].__name__ == kernel.value


TYPES = {"u32": (4, 4, "<u4", ()), "array<vec4<u32>, 2>": (32, 16, "<u4", (8,))}  # bytes, alignment, NumPy's


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_the_wgsl_struct_is_the_hosts_dtype(kernel: Kernel) -> None:
    found = re.search(r"struct Copy \{(.*?)\}", wgsl(kernel), re.DOTALL)
    assert found is not None
    offset, fields = 0, {}
    for name, type_ in re.findall(r"^\s+(\w+): (.+?),\s*//", found[1], re.MULTILINE):
        nbytes, alignment, dtype, shape = TYPES[type_]
        offset = -(-offset // alignment) * alignment
        fields[name] = (np.dtype((dtype, shape)), offset)
        offset += nbytes
    assert fields == dict(copy_dtype.fields or {})
    assert -(-offset // 16) * 16 == copy_dtype.itemsize


def test_a_uniform_block_holds_the_step() -> None:
    plan = plan_copy(
        Layout.of((5, 7), (-8, 1), 41), Layout.of((5, 7), (9, 1), 3), 4, Limits(2**27, 32, 65535)
    )
    (step,) = plan.steps
    assert isinstance(step, Dispatch)
    block = np.frombuffer(uniform_block(step), copy_dtype)[0]
    assert block["sizes"].tolist() == [5, 7, 0, 0, 0, 0, 0, 0]
    assert block["source_strides"].tolist()[:2] == [2**32 - 8, 1]
    assert block["target_strides"].tolist()[:2] == [9, 1]
    assert (block["rank"], block["count"], block["target_offset"]) == (2, 35, 3)
    assert block["source_offset"] * 4 + step.source_binding.offset_nbytes == 41 * 4


def test_the_oracles_see_a_wrong_answer() -> None:
    source, target = random_bytes(64, 1), random_bytes(64, 2)
    layout = Layout.packed((16,), 8)
    expected = copied(source, layout, target, layout, 1)
    for wrong in (target, np.zeros_like(target), np.where(np.arange(64) == 24, expected + 1, expected)):
        with pytest.raises(AssertionError, match="bytes differ"):
            check_bytes(np.asarray(wrong, np.uint8), expected)
    plan = plan_copy(layout, layout, 1, Limits(2**27, 32, 65535), buffer_copy=False)
    zeros = target.copy()
    run_plan(plan, np.zeros_like(source), zeros)
    with pytest.raises(AssertionError, match="bytes differ"):
        check_bytes(zeros, expected)
