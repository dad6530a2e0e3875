"""Tensors of one submission share buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import check_same
from hypothesis import given
from hypothesis import strategies as st

import wgslice as wg
from wgslice.layout import Layout
from wgslice.layout_rules import flipped, permuted
from wgslice.onnx.workspace import (
    Nested,
    Slot,
    Value,
    Workspace,
    as_value,
    each,
    group_by_lifetime,
    values_of,
)

lifetimes = st.lists(
    st.tuples(st.integers(1, 99), st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=20
)


@given(lifetimes)
def test_no_group_is_superfluous_or_used_twice_at_once(
    drawn: list[tuple[int, int, int]],
) -> None:
    slots = [Slot(nbytes, first=first, last=first + length) for nbytes, first, length in drawn]
    groups = group_by_lifetime(slots)
    assert sorted(map(id, slots)) == sorted(id(slot) for group in groups for slot in group)
    for group in groups:
        for a in group:
            for b in group:
                assert a is b or a.last < b.first or b.last < a.first
    most = max(sum(slot.first <= step <= slot.last for slot in slots) for step in range(20))
    assert len(groups) == most


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([10, 20, 30, 40, 50], 90),  # each needs its neighbours only: the two largest
        ([50, 40, 30, 20, 10], 90),
        ([10, 10, 10, 10], 20),
        ([100, 1, 100, 1, 100], 101),
    ],
)
def test_a_chain_needs_two_buffers(sizes: list[int], expected: int) -> None:
    slots = [Slot(nbytes, first=step, last=step + 1) for step, nbytes in enumerate(sizes)]
    groups = group_by_lifetime(slots)
    assert len(groups) == 2
    assert sum(max(slot.nbytes for slot in group) for group in groups) == expected


def test_a_chain_of_copies_ends_with_the_same_elements(device: wg.Device) -> None:
    workspace = Workspace(device)
    array = np.arange(600, dtype=np.uint16).reshape(20, 30)
    for _ in range(2):
        workspace.begin()
        x = workspace.upload(array)
        for _ in range(7):
            x = workspace.packed(x.viewed(flipped(permuted(x.layout, (1, 0)), 0)))
        workspace.hold(x)
        expected = array
        for _ in range(7):
            expected = expected.T[::-1]
        assert np.array_equal(workspace.read(x), expected)
        workspace.end()
        memory = workspace.memory
        assert memory is not None
        assert (memory.buffers, memory.tensors, memory.submissions) == (2, 8, 1)
        assert memory.peak_nbytes == 2 * 1200
    assert len(workspace.owned) == 2


def test_an_upload_waits_for_none_and_overwrites_none(device: wg.Device) -> None:
    """It reaches its buffer before any recorded copy runs, so it shares none with what is used earlier."""
    workspace = Workspace(device)
    first = workspace.packed(workspace.upload(np.arange(8)))
    second = workspace.packed(first.viewed(flipped(first.layout)))
    late = workspace.upload(np.arange(8) + 100)
    third = workspace.packed(late)
    workspace.hold([second, third])
    assert workspace.read(second).tolist() == list(range(7, -1, -1))
    assert workspace.read(third).tolist() == list(range(100, 108))
    assert workspace.submissions == 1


def test_what_is_held_over_a_submission_keeps_its_buffer(device: wg.Device) -> None:
    workspace = Workspace(device)
    kept = workspace.packed(workspace.upload(np.arange(8)))
    gone = workspace.packed(workspace.upload(np.arange(8) + 50))
    workspace.hold([kept, gone])
    workspace.submit()
    workspace.drop(gone)
    others = [workspace.packed(workspace.upload(np.full(8, number))) for number in range(3)]
    workspace.hold([*others])
    workspace.submit()
    assert workspace.read(kept).tolist() == list(range(8))
    assert id(gone.buffer) in {id(other.buffer) for other in others}


def test_an_exported_value_keeps_its_buffer(device: wg.Device) -> None:
    workspace = Workspace(device)
    x = workspace.packed(workspace.upload(np.arange(8)))
    workspace.hold(x)
    exported = workspace.export(x)
    workspace.submit()
    tensor = workspace.tensor(exported)
    workspace.end()
    assert id(tensor.buffer) not in {id(buffer) for buffer in workspace.owned}
    workspace.begin()
    other = workspace.packed(workspace.upload(np.zeros(8, np.int64)))
    workspace.hold(other)
    workspace.read(other)
    assert tensor.numpy().tolist() == list(range(8))


def test_a_value_gets_its_buffer_with_the_submission(device: wg.Device) -> None:
    workspace = Workspace(device)
    value = workspace.upload(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert not isinstance(value, wg.Tensor)
    assert (value.shape, value.ndim, value.size, value.nbytes) == ((2, 3), 2, 6, 12)
    assert value.is_packed
    view = value.viewed(permuted(value.layout, (1, 0)))
    assert (view.shape, view.strides, view.is_packed) == ((3, 2), (1, 3), False)
    assert view.memory is value.memory
    assert isinstance(value.memory, Slot)
    assert value.memory.buffer is None
    workspace.hold(value)
    workspace.submit()
    assert view.buffer is value.buffer is not None
    check_same(workspace.tensor(view).numpy(), np.arange(6, dtype=np.int16).reshape(2, 3).T.copy())


def test_a_callers_tensor_is_a_value_in_its_own_buffer(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12), device=device)[::-3]
    value = Value.of(x)
    assert (value.buffer, value.dtype, value.layout) == (x.buffer, x.dtype, x.layout)
    workspace = Workspace(device)
    copied = workspace.packed(value)
    workspace.hold(copied)
    assert workspace.read(copied).tolist() == [11, 8, 5, 2]
    assert x.numpy().tolist() == [11, 8, 5, 2]


def test_a_copy_between_other_sizes_fails(device: wg.Device) -> None:
    workspace = Workspace(device)
    source, target = workspace.empty((2, 3), np.dtype(np.int8)), workspace.empty((2, 4), np.dtype(np.int8))
    with pytest.raises(AssertionError):
        workspace.copy(source, source.layout, target, target.layout)


def test_what_a_name_stands_for_is_mapped_and_walked() -> None:
    """A value, a sequence of such, or nothing; only a value is a tensor."""
    a, b = (Value(Slot(4), np.dtype(np.int32), Layout.packed((size,))) for size in (1, 2))
    nested: Nested[Value] = [a, [b, None], []]
    assert [value.size for value in values_of(nested)] == [1, 2]
    assert list(values_of(None)) == []

    def size_of(value: Value) -> int:
        return value.size

    assert each(size_of)(nested) == [1, [2, None], []]
    assert each(size_of)(None) is None
    assert as_value(0, a) is a
    for given_value, kind in ((None, "NoneType"), (nested, "list")):
        with pytest.raises(TypeError, match=f"input 3 is of type {kind}: must be a tensor"):
            as_value(3, given_value)


def test_kernels_of_a_chain_share_a_pass(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads what the one before has written."""
    workspace = Workspace(device)
    array = np.arange(600, dtype=np.uint16).reshape(20, 30)
    x = workspace.upload(array)
    for _ in range(5):
        x = workspace.packed(x.viewed(permuted(x.layout, (1, 0))))
    workspace.hold(x)
    encoder = device.new_encoder()
    passes = []

    def begin() -> Any:
        passes.append(type(encoder).begin_compute_pass(encoder))
        return passes[-1]

    with monkeypatch.context() as patch:
        patch.setattr(encoder, "begin_compute_pass", begin)
        patch.setattr(device, "new_encoder", lambda: encoder)
        workspace.submit()
    assert len(passes) == 1
    assert np.array_equal(workspace.read(x), array.T)
