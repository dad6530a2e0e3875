"""Tensors of one submission share buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import check_same
from hypothesis import given
from hypothesis import strategies as st

import wgslice as wg
from wgslice.gpu.sink import using
from wgslice.onnx.workspace import Nested, Workspace, as_tensor
from wgslice.programs.lifetimes import Temporary, group_by_lifetime
from wgslice.tensors.sequences import mapped, tensors_in

lifetimes = st.lists(
    st.tuples(st.integers(1, 99), st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=20
)


@given(lifetimes)
def test_no_group_is_superfluous_or_used_twice_at_once(
    drawn: list[tuple[int, int, int]],
) -> None:
    slots = [Temporary(nbytes, first=first, last=first + length) for nbytes, first, length in drawn]
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
    slots = [Temporary(nbytes, first=step, last=step + 1) for step, nbytes in enumerate(sizes)]
    groups = group_by_lifetime(slots)
    assert len(groups) == 2
    assert sum(max(slot.nbytes for slot in group) for group in groups) == expected


def test_a_chain_of_copies_ends_with_the_same_elements(device: wg.Device) -> None:
    workspace = Workspace(device)
    array = np.arange(600, dtype=np.uint16).reshape(20, 30)
    for _ in range(2):
        workspace.begin()
        with using(workspace):
            x = wg.asarray(array, device=device)
            for _ in range(7):
                x = x.T[::-1].copy()
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
    """It reaches its buffer before any listed copy runs, so it shares none with what is used earlier."""
    workspace = Workspace(device)
    with using(workspace):
        first = wg.asarray(np.arange(8), device=device).copy()
        second = first[::-1].copy()
        late = wg.asarray(np.arange(8) + 100, device=device)
        third = late.copy()
    workspace.hold([second, third])
    assert workspace.read(second).tolist() == list(range(7, -1, -1))
    assert workspace.read(third).tolist() == list(range(100, 108))
    assert workspace.submissions == 1


def test_what_is_held_over_a_submission_keeps_its_buffer(device: wg.Device) -> None:
    workspace = Workspace(device)
    with using(workspace):
        kept, gone = (wg.asarray(np.arange(8) + more, device=device).copy() for more in (0, 50))
    workspace.hold([kept, gone])
    workspace.submit_all()
    workspace.drop(gone)
    with using(workspace):
        others = [wg.asarray(np.full(8, number), device=device).copy() for number in range(3)]
    workspace.hold([*others])
    workspace.submit_all()
    assert workspace.read(kept).tolist() == list(range(8))
    assert workspace.real(gone.memory) in {workspace.real(other.memory) for other in others}


def test_an_exported_tensor_keeps_its_buffer(device: wg.Device) -> None:
    workspace = Workspace(device)
    with using(workspace):
        x = wg.asarray(np.arange(8), device=device).copy()
        workspace.hold(x)
        exported = workspace.export(x)
    workspace.submit_all()
    tensor = workspace.tensor(exported)
    workspace.end()
    assert tensor.buffer not in workspace.owned
    workspace.begin()
    with using(workspace):
        other = wg.asarray(np.zeros(8, np.int64), device=device).copy()
    workspace.hold(other)
    workspace.read(other)
    assert tensor.numpy().tolist() == list(range(8))


def test_new_tensors_are_zeros_in_buffers_that_held_others(device: wg.Device) -> None:
    workspace = Workspace(device)
    for _ in range(2):
        workspace.begin()
        with using(workspace):
            used = wg.asarray(np.full(50, 7, np.uint8), device=device)[::-1].copy()[::2].copy()
            zeros = wg.zeros(50, np.uint8, device=device)
            zeros[3:5] = used[:2]
        workspace.hold(zeros)
        assert workspace.read(zeros).tolist() == [0, 0, 0, 7, 7, *[0] * 45]
        workspace.end()


def test_a_tensor_gets_its_buffer_with_the_submission(device: wg.Device) -> None:
    workspace = Workspace(device)
    with using(workspace):
        x = wg.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device)
    assert workspace.real(x.memory) is x.memory
    workspace.hold(x)
    workspace.submit_all()
    assert workspace.real(x.memory) is not x.memory
    check_same(workspace.tensor(x.T).numpy(), np.arange(6, dtype=np.int16).reshape(2, 3).T.copy())


def test_a_callers_tensor_is_read_from_its_own_buffer(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12), device=device)[::-3]
    workspace = Workspace(device)
    with using(workspace):
        copied = x.copy()
    workspace.hold(copied)
    assert workspace.read(copied).tolist() == [11, 8, 5, 2]
    assert x.numpy().tolist() == [11, 8, 5, 2]


def test_what_a_name_stands_for_is_mapped_and_walked(device: wg.Device) -> None:
    """A tensor, a sequence of such, or nothing."""
    a, b = (wg.zeros(size, device=device) for size in (1, 2))
    nested: Nested[wg.Tensor] = [a, [b, None], []]
    assert [x.size for x in tensors_in("x", nested)] == [1, 2]
    assert tensors_in("x", None) == []

    def size_of(x: wg.Tensor) -> int:
        return x.size

    assert mapped(nested, size_of) == [1, [2, None], []]
    assert mapped(None, size_of) is None
    assert as_tensor(0, a) is a
    for given_value, kind in ((None, "NoneType"), (nested, "list")):
        with pytest.raises(TypeError, match=f"input 3 is of type {kind}: must be a tensor"):
            as_tensor(3, given_value)


def test_kernels_of_a_chain_share_a_pass(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads what the one before has written."""
    workspace = Workspace(device)
    array = np.arange(600, dtype=np.uint16).reshape(20, 30)
    with using(workspace):
        x = wg.asarray(array, device=device)
        for _ in range(5):
            x = x.T.copy()
    workspace.hold(x)
    encoder = device.new_encoder()
    passes = []

    def begin() -> Any:
        passes.append(type(encoder).begin_compute_pass(encoder))
        return passes[-1]

    with monkeypatch.context() as patch:
        patch.setattr(encoder, "begin_compute_pass", begin)
        patch.setattr(device, "new_encoder", lambda: encoder)
        workspace.submit_all()
    assert len(passes) == 1
    assert np.array_equal(workspace.read(x), array.T)
