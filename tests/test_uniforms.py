"""Inputs of a kernel from its step: the uniform block, its fields, and constants."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from checker.translate import Translator
from checker.types import Tuple, Type
from hypothesis import example, given
from hypothesis import strategies as st
from planning import USUAL, constants_of, only_dispatch, planned_copy, preferring

from bench.probes import probes
from wgslice.gpu.adapter import MIN_LIMITS
from wgslice.layout import Layout
from wgslice.plans.kernels import OF_INDICES, OF_SIZED_WINDOWS, OF_WINDOWS, Kernel
from wgslice.shaders import block_dtype, divider, kernel_module, uniform_block

Placed: TypeAlias = tuple[np.dtype[Any], int, int]  # a type, the bytes it takes, and its alignment


def placed(type_: Type) -> Placed:
    """Where WGSL's rules put a type that the checker's grammar has read."""
    if not isinstance(type_, Tuple):
        return np.dtype("u4"), 4, 4
    each, nbytes, alignment = placed(type_.parts[0])
    if type_.name == "vector":
        return np.dtype((each, (len(type_.parts),))), nbytes * 4, 16
    if type_.name == "array":
        assert nbytes % 16 == 0
        whole = np.dtype((each.base, (int(type_.length), *each.shape)))
        return whole, int(type_.length) * nbytes, 16
    fields, offset, alignment = [], 0, 4
    for name, part in zip(type_.fields, type_.parts, strict=True):
        dtype, nbytes, own = placed(part)
        offset, alignment = -(-offset // own) * own, max(alignment, own)
        fields.append((name, dtype, offset))
        offset += nbytes
    names, formats, offsets = zip(*fields, strict=True)
    size = -(-offset // alignment) * alignment
    struct = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    return struct, size, alignment


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_the_wgsl_struct_is_the_hosts_dtype(kernel: Kernel) -> None:
    name = "Windows" if kernel in OF_WINDOWS else "Copy"
    if kernel in OF_INDICES:
        name = "Indexed"
    if kernel in OF_SIZED_WINDOWS:
        name = "Sized"
    host = block_dtype(name)
    assert host.itemsize <= MIN_LIMITS["max-uniform-buffer-binding-size"]
    struct, nbytes, _ = placed(Translator(kernel_module(kernel)).types[name])
    fields, of_host = dict(struct.fields or {}), dict(host.fields or {})
    if kernel is Kernel.SLICE1:  # which sees the first of them, those of any copy, and of a dimension
        assert list(fields)[-1] == "count"
        of_host = dict(list(of_host.items())[: len(fields)])
        (own, *_), (theirs, *_) = (each.pop("dimensions") for each in (fields, of_host))
        assert own.itemsize == theirs.itemsize
        for names in (own.base.names, theirs.base.names):
            assert [*(names or ())][:3] == ["size", "source_stride", "target_stride"]
    else:
        assert nbytes == host.itemsize
    assert fields == of_host


def test_the_host_sets_every_constant() -> None:
    """Defaults are for other hosts: a constant that this one forgot would be wrong without an error."""
    steps = [step for probe in probes() for step in probe.steps(2**16, USUAL)]
    assert {step.kernel for step in steps} == set(Kernel)
    for step in steps:
        text = kernel_module(step.kernel)
        assert set(constants_of(step)) == set(
            re.findall(r"^override (\w+): \w+ = -?\w+;", text, re.MULTILINE)
        )


@given(st.integers(1, 2**31), st.integers(0, 2**31 - 1))
@example(1, 2**31 - 1)
@example(2**31, 2**31 - 1)
@example(3, 2**31 - 1)
def test_dividing_by_multiplication_is_exact(divisor: int, n: int) -> None:
    multiplier, shift = divider(divisor)
    assert multiplier < 2**32
    for value in {n, n // divisor * divisor, max(n // divisor * divisor - 1, 0)}:
        assert ((value * multiplier >> 32) + value) >> shift == value // divisor


def test_a_uniform_block_holds_the_step() -> None:
    profile = preferring(replace(USUAL.profile, least_pieces=1), Kernel.ROWS, paired=False)
    step = only_dispatch(planned_copy(profile, Layout.of((5, 7), (-8, 1), 41), Layout.of((5, 7), (9, 1), 3)))
    block = np.frombuffer(uniform_block(step), block_dtype("Copy"))[0]
    dimensions = block["dimensions"]
    assert dimensions["size"].tolist() == [5, 7, 0, 0, 0, 0, 0, 0]
    assert dimensions["source_stride"].tolist()[:2] == [2**32 - 8, 1]
    assert dimensions["target_stride"].tolist()[:2] == [9, 1]
    assert (block["rank"], block["target_offset"]) == (2, 3)
    assert step.kernel is Kernel.ROWS
    assert (block["count"], block["pieces"]) == (5, 2)
    assert constants_of(step) == {
        "workgroup_size": 64,
        "element_bytes": 4,
        "contiguous": 0,
        "each": 4,
        "paired": 0,
    }
    assert divider(2) == (block["pieces_multiplier"], block["pieces_shift"])
    assert block["source_offset"] * 4 + step.source_binding.offset_nbytes == 41 * 4


def test_a_uniform_block_holds_the_tiles() -> None:
    step = only_dispatch(
        planned_copy(preferring(USUAL.profile, Kernel.WORD_GRID), Layout.of((70, 600), (700, 3)))
    )
    block = np.frombuffer(uniform_block(step), block_dtype("Copy"))[0]
    assert (block["count"], block["pieces"], block["row_tiles"]) == (90, 5, 18)
    assert divider(5) == (block["pieces_multiplier"], block["pieces_shift"])
    assert divider(18) == (block["row_tiles_multiplier"], block["row_tiles_shift"])
    assert (block["across_shift"], block["ahead_columns"], block["ahead_rows"]) == (4, 16, 0)
    assert constants_of(step) == {"workgroup_size": 64}
