"""Recording into the caller's commands, and handles that must raise instead of aborting the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import wgpu
from helpers import (
    COPY_DST,
    COPY_SRC,
    STORAGE,
    check_bytes,
    check_same,
    make_buffer,
    random_bytes,
    read_buffer,
    record,
    whole_words,
)
from planning import preferring
from running import Limit, created

import wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU

CALLERS_SHADER = """
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(64) fn add_one(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&words)) { words[id.x] += 1u; }
}
@compute @workgroup_size(64) fn triple(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&words)) { words[id.x] *= 3u; }
}
"""


def dispatch(wgpu_device: Any, encoder: Any, entry_point: str, buffer: Any) -> None:
    """A dispatch of the caller's own, as a caller writes it."""
    module = wgpu_device.create_shader_module(code=CALLERS_SHADER)
    pipeline = wgpu_device.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": entry_point}
    )
    group = wgpu_device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": buffer}}]
    )
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(-(-buffer.size // 256))
    compute_pass.end()


@pytest.mark.parametrize("strides", [(1, -1), (1, 1)], ids=["kernel", "buffer copy"])
def test_an_operator_between_two_dispatches_of_the_callers(
    device: wg.Device, strides: tuple[int, int]
) -> None:
    check_between_dispatches(device, device.wgpu_device, strides)


def test_the_process_wide_device_of_wgpu_is_shared() -> None:
    wgpu_device = wgpu.utils.get_default_device()
    wrapped = wg.Device.wrap(wgpu_device)
    assert wg.Device.wrap(wgpu_device) is wrapped
    check_between_dispatches(wrapped, wgpu_device, (-1, -1))
    buffer = wgpu_device.create_buffer_with_data(data=np.arange(6, dtype=np.int32), usage=STORAGE | COPY_SRC)
    x = wg.from_buffer(buffer, (2, 3), np.int32)
    assert x.device is wrapped
    assert x[:, ::-1].numpy().tolist() == [[2, 1, 0], [5, 4, 3]]
    assert (
        bytes(wgpu_device.queue.read_buffer(wg.asarray([1, 2], device=wrapped).buffer, size=16))
        == np.array([1, 2]).tobytes()
    )


def check_between_dispatches(device: wg.Device, wgpu_device: Any, strides: tuple[int, int]) -> None:
    """One is added to the input before, and the output is tripled after, all in one encoder."""
    words = np.arange(40, dtype=np.uint32).reshape(8, 5)
    usage = STORAGE | COPY_SRC | COPY_DST
    source = wgpu_device.create_buffer_with_data(data=words, usage=usage)
    target = wgpu_device.create_buffer_with_data(data=np.full(40, 7, np.uint32), usage=usage)
    operator = device.compile(
        wg.Slice1(wg.TensorDesc("uint32", (8, 5)), wg.TensorDesc("uint32", (4, 5)), (2, 0), (4, 5), strides)
    )
    encoder = wgpu_device.create_command_encoder()
    dispatch(wgpu_device, encoder, "add_one", source)
    operator.record(encoder, input=source, output=(target, 24))
    dispatch(wgpu_device, encoder, "triple", target)
    wgpu_device.queue.submit([encoder.finish()])
    expected = np.full(40, 21, np.uint32)
    expected[6:26] = 3 * (1 + words[2:6][:: strides[0], :: strides[1]]).ravel()
    read = wgpu_device.queue.read_buffer(target)
    check_bytes(np.frombuffer(read, np.uint8), expected.view(np.uint8))


@pytest.fixture
def operator(device: wg.Device) -> wg.CompiledOperator:
    """Takes 8 uint16 (16 bytes), gives 4 (8 bytes)."""
    return device.compile(
        wg.Slice1(wg.TensorDesc("uint16", (8,)), wg.TensorDesc("uint16", (4,)), (0,), (8,), (-2,))
    )


def test_an_operator_runs_on_tensors_at_any_offset(device: wg.Device, operator: wg.CompiledOperator) -> None:
    values = np.arange(100, dtype=np.uint16)
    x, out = wg.asarray(values, device=device), wg.asarray(values, device=device)
    for start in range(9):
        assert operator(x[start : start + 8]).numpy().tolist() == [start + i for i in (7, 5, 3, 1)]
        assert operator(x[start : start + 8], out=out[start : start + 4]).shape == (4,)
        assert out.numpy()[start : start + 5].tolist() == [
            start + 7,
            start + 5,
            start + 3,
            start + 1,
            start + 4,
        ]
    record(device, operator, input=x[20:28], output=out[50:54])
    assert out.numpy()[49:55].tolist() == [49, 27, 25, 23, 21, 54]


def test_one_recording_of_many_operators(device: wg.Device, operator: wg.CompiledOperator) -> None:
    values = np.arange(1024, dtype=np.uint16)
    source, target = make_buffer(device, values.view(np.uint8)), make_buffer(device, random_bytes(1024))
    encoder = device.wgpu_device.create_command_encoder()
    for number in range(128):
        operator.record(encoder, input=(source, 16 * number), output=(target, 8 * number))
    device.wgpu_device.queue.submit([encoder.finish()])
    assert read_buffer(target).view(np.uint16).tolist() == values.reshape(-1, 8)[:, ::-2].ravel().tolist()


def test_buffers_may_be_dropped_between_recording_and_submitting(
    device: wg.Device, operator: wg.CompiledOperator
) -> None:
    target = make_buffer(device, random_bytes(8))
    record(device, operator, input=make_buffer(device, np.arange(16, dtype=np.uint8)), output=target)
    assert read_buffer(target).tolist() == [14, 15, 10, 11, 6, 7, 2, 3]


def destroyed(device: wg.Device) -> Any:
    buffer = make_buffer(device, random_bytes(64))
    buffer.destroy()
    return buffer


def mapped(device: wg.Device) -> Any:
    return device.wgpu_device.create_buffer(size=64, usage=STORAGE | COPY_SRC, mapped_at_creation=True)


def foreign(device: wg.Device) -> Any:
    return make_buffer(wg.Device.request(device.adapter), random_bytes(64))


HOSTILE: dict[str, tuple[Callable[[wg.Device], Any], type[Exception], str]] = {
    "of another device": (foreign, ValueError, "64 bytes is not on Device"),
    "without STORAGE": (
        lambda device: make_buffer(device, random_bytes(64), COPY_SRC | COPY_DST),
        ValueError,
        "lacks usage STORAGE",
    ),
    "too small": (lambda device: make_buffer(device, random_bytes(4)), ValueError, "4 bytes is too small"),
    "destroyed": (destroyed, ValueError, "has been destroyed: upload the data again, and drop references"),
    "mapped": (mapped, ValueError, "is mapped.*: unmap it first"),
    "misaligned": (
        lambda device: (make_buffer(device, random_bytes(64)), 3),
        ValueError,
        "offset = 3 bytes: must be a multiple of the item size, 2",
    ),
    "too far": (lambda device: (make_buffer(device, random_bytes(64)), 62), ValueError, "too small"),
    "before the start": (
        lambda device: (make_buffer(device, random_bytes(64)), -2),
        ValueError,
        "at least 0",
    ),
    "no buffer": (
        lambda device: np.zeros(8, np.uint16),
        TypeError,
        "of type ndarray: must be a wgpu.GPUBuffer",
    ),
    "of a wrong dtype": (
        lambda device: wg.asarray(np.zeros(8, np.int16), device=device),
        TypeError,
        "dtype int16: compiled for uint16",
    ),
    "of wrong sizes": (
        lambda device: wg.asarray(np.zeros(7, np.uint16), device=device),
        ValueError,
        r"sizes \(7,\): compiled for",
    ),
    "of wrong strides": (
        lambda device: wg.asarray(np.zeros(16, np.uint16), device=device)[::-2],
        ValueError,
        r"(sizes \(8,\): compiled for \(4,\)|strides \(-2,\): compiled for \(1,\); copy\(\) the tensor$)",
    ),
}


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("handle", HOSTILE)
def test_a_hostile_handle_raises_and_records_nothing(
    device: wg.Device, operator: wg.CompiledOperator, handle: str, side: str
) -> None:
    make, error, message = HOSTILE[handle]
    poison = random_bytes(64, 5)
    bystander = make_buffer(device, poison)
    encoder = device.wgpu_device.create_command_encoder()
    with pytest.raises(error, match=f"^Slice1: {side}: .*{message}"):
        operator.record(encoder, **{"input": bystander, "output": bystander, side: make(device)})
    device.wgpu_device.queue.submit([encoder.finish()])
    check_bytes(read_buffer(bystander), poison)


@pytest.mark.parametrize("strides", [(1,), (2,)], ids=["buffer copy", "kernel"])
@pytest.mark.parametrize("handle", ["of another device", "without STORAGE", "destroyed", "mapped"])
def test_tensors_with_destroyed_or_mapped_buffers_are_refused(
    device: wg.Device, handle: str, strides: tuple[int]
) -> None:
    x = wg.asarray(np.arange(16, dtype=np.uint32), device=device)
    _, error, message = HOSTILE[handle]
    bad = wg.Tensor(device, HOSTILE[handle][0](device), x.dtype, x.layout)
    y = wg.empty(16 // strides[0], np.uint32, device=device)
    with pytest.raises(error, match=message):
        wg.slice1(bad, [0], [16], strides, out=y)
    with pytest.raises(error, match=message):
        wg.slice1(x[: y.size], [0], [y.size], out=bad[: y.size])
    with pytest.raises(error, match=message):
        bad.numpy()
    with pytest.raises(error, match=message):
        bad[::-1].copy()
    check_bytes(x.numpy().view(np.uint8), np.arange(16, dtype=np.uint32).view(np.uint8))


def test_from_buffer_refuses_hostile_buffers(device: wg.Device) -> None:
    for handle in ("without STORAGE", "destroyed", "mapped"):
        make, error, message = HOSTILE[handle]
        with pytest.raises(error, match=f"^from_buffer: .*{message}"):
            wg.from_buffer(make(device), 8, np.uint16)
    kinds = {"bytes": b"12345678", "Tensor": wg.asarray([1], device=device), "tuple": (None, 4)}
    for kind, given in kinds.items():
        with pytest.raises(
            TypeError,
            match=rf"^from_buffer: gpu_buffer: of type {kind}: must be a wgpu\.GPUBuffer; a tensor's",
        ):
            wg.from_buffer(cast("Any", given), 8, np.uint8)


@pytest.mark.parametrize("handle", ["without STORAGE", "mapped"])
def test_unrecordable_calls_make_no_plan(device: wg.Device, handle: str) -> None:
    make, error, message = HOSTILE[handle]
    sides = wg.TensorDesc("uint32", (4,)), wg.TensorDesc("uint32", (4,))
    operator = device.compile(wg.Slice1(*sides, [0], [4]))
    with pytest.raises(error, match=f"^Slice1: input: .*{message}"):
        operator.plan_for(input=make(device), output=wg.empty(4, np.uint32, device=device))


def test_a_padded_output_must_be_given(device: wg.Device) -> None:
    """A new one would take all of the padding: 32 MB for a row of a cache."""
    cache = wg.zeros((2, 4096, 1000), np.float16, device=device)
    row = cache[:, 7:8, :]
    descriptor = wg.Slice1(
        wg.TensorDesc("f2", (2, 1, 1000)),
        wg.TensorDesc("f2", row.shape, row.strides),
        *([0, 0, 0], [2, 1, 1000], [1, 1, 1]),
    )
    operator = device.compile(descriptor)
    x = wg.asarray(np.ones((2, 1, 1000), np.float16), device=device)
    message = r"Slice1: out is missing: the output's strides .* need 8194000 bytes for 4000 bytes of elem"
    with pytest.raises(ValueError, match=message):
        operator(x)
    assert operator(x, out=row) is row
    read = cache.numpy()
    assert read[:, 7].all()
    assert np.count_nonzero(read) == 2000


@pytest.mark.parametrize(
    ("rows", "stride", "asked"),
    [(2, 2**15 - 1, False), (2, 2**15, True), (2**9, 2**8, False), (2**9, 2**8 + 1, True)],
    ids=["64 KiB", "more than 64 KiB", "half of it padding", "more than half"],
)
def test_a_new_output_holds_some_padding(device: wg.Device, rows: int, stride: int, asked: bool) -> None:
    width = 2**7 if rows > 2 else 1
    window = [0, 0], [rows, width], [1, -1]
    strides = stride, 1
    operator = device.compile(
        wg.Slice1(wg.TensorDesc("f2", (rows, width)), wg.TensorDesc("f2", (rows, width), strides), *window)
    )
    array = np.arange(rows * width).astype(np.uint16).view(np.float16).reshape(rows, width)
    x = wg.asarray(array, device=device)
    if asked:
        with pytest.raises(ValueError, match="Slice1: out is missing: the output's strides"):
            operator(x)
    else:
        made = operator(x)
        assert made.strides == operator.output.strides
        check_same(made.numpy().view(np.uint16), array[:, ::-1].copy().view(np.uint16))


def test_strides_that_were_not_described_get_a_remedy_that_helps(device: wg.Device) -> None:
    sides = wg.TensorDesc("f4", (4, 6)), wg.TensorDesc("f4", (4, 3))
    window = [0, 0], [4, 6], [1, 2]
    operator = device.compile(wg.Slice1(*sides, *window))
    x, out = wg.zeros((6, 4), np.float32, device=device), wg.zeros((4, 6), np.float32, device=device)
    with pytest.raises(
        ValueError, match=r"input: strides \(1, 4\): .*; copy\(\) the tensor, or describe its strides$"
    ):
        operator(x.T)
    with pytest.raises(
        ValueError, match=r"output: strides \(6, 2\): .*; give a tensor of strides \(3, 1\), or desc"
    ):
        operator(out, out[:, ::2])
    with pytest.raises(
        ValueError, match=r"output: strides \(6, -2\): .*; give a tensor of strides \(3, 1\)$"
    ):
        operator(out, out[:, ::-2])
    padded = device.compile(wg.Slice1(wg.TensorDesc("f4", (4, 6), (8, 1)), sides[1], *window))
    with pytest.raises(
        ValueError, match=r"input: strides \(6, 1\): .*; give a tensor of strides \(8, 1\), or desc"
    ):
        padded(out)


def test_a_compiled_operator_prints_its_descriptor(device: wg.Device) -> None:
    operator = device.compile(
        wg.Slice1(wg.TensorDesc("f4", (4, 6)), wg.TensorDesc("f4", (4, 3)), [0, 0], [4, 6], [1, 2])
    )
    assert repr(operator) == (
        f"CompiledOperator(Slice1: float32 (4, 6) -> (4, 3); {operator.plan.summary}; {device})"
    )


def test_one_buffer_on_both_sides(device: wg.Device, operator: wg.CompiledOperator) -> None:
    """Recorded and called, disjoint and overlapping: everything is read before anything is written."""
    values = np.arange(32, dtype=np.uint16)
    for first, out in ((0, 16), (4, 5), (4, 4), (9, 8)):
        expected = values.copy()
        expected[out : out + 4] = values[first : first + 8][::-2]
        buffer = make_buffer(device, values.view(np.uint8))
        record(device, operator, input=(buffer, 2 * first), output=(buffer, 2 * out))
        assert read_buffer(buffer).view(np.uint16).tolist() == expected.tolist()
        x = wg.asarray(values, device=device)
        operator(x[first : first + 8], out=x[out : out + 4])
        assert x.numpy().tolist() == expected.tolist()


def test_encoders_that_cannot_be_recorded_into(device: wg.Device, operator: wg.CompiledOperator) -> None:
    source, target = make_buffer(device, random_bytes(64)), make_buffer(device, random_bytes(64))
    other = wg.Device.request(device.adapter).wgpu_device.create_command_encoder()
    with pytest.raises(ValueError, match="Slice1: the command encoder is not on Device"):
        operator.record(other, input=source, output=target)
    with pytest.raises(
        TypeError, match=r"Slice1: encoder is of type NoneType: must be a wgpu\.GPUCommandEncoder"
    ):
        operator.record(cast("Any", None), input=source, output=target)
    check_bytes(read_buffer(target), random_bytes(64))


@pytest.mark.parametrize("step", [-1, 1], ids=["kernel", "buffer copies"])
def test_an_encoder_that_has_ended_is_refused(device: wg.Device, step: int) -> None:
    tensor, rows = wg.TensorDesc("uint32", (4, 8)), wg.TensorDesc("uint32", (4, 4))
    operator = device.compile(wg.Slice1(tensor, rows, (0, 2), (4, 4), (1, step)))
    assert ("4 buffer copies" in operator.plan.summary) == (step == 1)
    source, target = make_buffer(device, random_bytes(128)), make_buffer(device, random_bytes(64))
    finished = device.wgpu_device.create_command_encoder()
    finished.finish()
    with pytest.raises(wgpu.GPUValidationError, match="Encoding must not have ended"):
        operator.record(finished, input=source, output=target)
    check_bytes(read_buffer(target), random_bytes(64))


def test_a_binding_is_a_pair_of_buffer_and_offset(device: wg.Device, operator: wg.CompiledOperator) -> None:
    buffer = make_buffer(device, random_bytes(64))
    encoder = device.wgpu_device.create_command_encoder()
    wrong: Any
    for wrong in ((buffer,), [buffer, 0], (buffer, 0, 0), None):
        with pytest.raises(
            TypeError, match=r"^Slice1: output: of type \w+: must be a wgpu.GPUBuffer; or a Tensor"
        ):
            operator.record(encoder, input=buffer, output=wrong)


def test_calls_without_a_tensor_are_refused(device: wg.Device, operator: wg.CompiledOperator) -> None:
    with pytest.raises(
        TypeError, match=r"Slice1: x is of type ndarray: must be a Tensor; asarray\(x\) makes one"
    ):
        operator(cast("Any", np.zeros(8, np.uint16)))
    with pytest.raises(TypeError, match="Slice1: out is of type ndarray"):
        operator(wg.zeros(8, np.uint16, device=device), out=cast("Any", np.zeros(4, np.uint16)))
    with pytest.raises(
        TypeError, match=r"Device\.compile: descriptor is of type str: must be one such as Slice1"
    ):
        device.compile(cast("Any", "Slice1"))


# bound once, recorded often


def step(device: wg.Device, table: Any, rows: Any, bound: list[wg.BoundOperator]) -> None:
    """Write offsets, and record all operators in one pass."""
    device.wgpu_device.queue.write_buffer(table, 0, np.array(rows, np.int32))
    encoder = device.wgpu_device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    for operator in bound:
        operator.record(compute_pass)
    compute_pass.end()
    device.wgpu_device.queue.submit([encoder.finish()])


def test_a_step_of_caches_makes_nothing_after_the_first(device: wg.Device) -> None:
    count, heads, length, width, latest = 3, 2, 9, 128, 4
    alignment = device.limits.binding_alignment_nbytes
    table = make_buffer(device, random_bytes(alignment + 16))
    state = random_bytes(count * heads * length * width * 2).view("f2")
    expected = state.reshape(count, 1, heads, length, width).copy()
    tokens = np.arange(count * heads * width).astype("u2").view("f2").reshape(count, 1, 1, heads, 1, width)
    place, cache = wg.TensorDesc("i4", (1, 4)), wg.TensorDesc("f2", (1, heads, length, width))
    row, rows = (wg.TensorDesc("f2", (1, 1, heads, size, width)) for size in (1, latest))
    append = device.compile(wg.InsertWindows(row, cache, place))
    read = device.compile(wg.ExtractWindows(cache, rows, place, (1, heads, latest, width)))
    bound, caches, outputs = [], [], []
    for given, before in zip(tokens, expected, strict=True):
        caches.append(wg.asarray(before, device=device))
        outputs.append(wg.empty(rows.sizes, "f2", device=device))
        token = wg.asarray(given, device=device)
        bound.append(append.bind(input=token, output=caches[-1], offsets=table))
        bound.append(read.bind(input=caches[-1], output=outputs[-1], offsets=(table, alignment)))
    assert {each.plan for each in bound} == {append.plan, read.plan}
    positions = (0, 5, 7, 8, 12, -3)  # the last two are clamped
    with created() as made:
        for position in positions:
            words = np.zeros((2, alignment // 4), int)
            words[:, 2] = position, position + 1 - latest
            step(device, table, words.ravel()[: alignment // 4 + 4], bound)
            expected[:, :, :, [min(max(position, 0), length - 1)]] = tokens[:, 0]
    assert made == Counter({"wgpuDeviceCreateCommandEncoder": len(positions)})
    for cache_, output, known in zip(caches, outputs, expected, strict=True):
        check_same(cache_.numpy().view("u2"), known.view("u2"))
        check_same(output.numpy()[0].view("u2"), known[:, :, :latest].view("u2"))


def test_the_last_rows_of_a_ring_are_two_windows_of_one_record(device: wg.Device) -> None:
    heads, capacity, width, latest = 2, 5, 6, 4
    ring = wg.zeros((heads, capacity, width), "u2", device=device)
    kept = wg.empty((heads, latest, width), "u2", device=device)
    token = wg.empty((1, heads, 1, width), "u2", device=device)
    places = wg.zeros((3, 3), "i4", device=device)
    repeated = wg.TensorDesc("u2", (2, *ring.shape), (0, *ring.strides))
    described = wg.TensorDesc("u2", ring.shape), wg.TensorDesc("u2", kept.shape)
    append = device.compile(
        wg.InsertWindows(wg.TensorDesc("u2", token.shape), described[0], wg.TensorDesc("i4", (1, 3)))
    )
    read = device.compile(
        wg.InsertWindows(
            repeated, described[1], wg.TensorDesc("i4", (2, 3)), overlap="disjoint", outside="drop"
        )
    )
    bound = [
        append.bind(input=token, output=ring, offsets=places[:1]),
        read.bind(input=ring.buffer, output=kept, offsets=places[1:]),
    ]
    written = np.zeros((heads, latest, width), "u2")
    for position in range(13):
        row = np.arange(heads * width, dtype="u2").reshape(1, heads, 1, width) + 100 * (position + 1)
        token[...] = row
        written = np.concatenate([written, row[0]], axis=1)
        first = (position + 1 - latest) % capacity
        places[:, 1] = [position % capacity, -first, capacity - first]
        encoder = device.wgpu_device.create_command_encoder()
        for each in bound:
            each.record(encoder)
        device.wgpu_device.queue.submit([encoder.finish()])
        check_same(kept.numpy(), written[:, -latest:])


def test_bound_operators_with_copies_need_an_encoder(device: wg.Device) -> None:
    described = wg.TensorDesc("u4", (4,))
    copy = device.compile(wg.Slice1(described, described, [0], [4]))
    x, out = wg.asarray(np.arange(4, dtype="u4"), device=device), wg.zeros(4, "u4", device=device)
    bound = copy.bind(input=x, output=out)
    encoder = device.wgpu_device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    with pytest.raises(
        ValueError, match=r"Slice1: encoder is a compute pass, but the plan copies or clears buffers \("
    ):
        bound.record(compute_pass)
    compute_pass.end()
    bound.record(encoder)
    device.wgpu_device.queue.submit([encoder.finish()])
    check_same(out.numpy(), np.arange(4, dtype="u4"))


def test_bound_insertions_forget_the_winners_of_earlier_records(device: wg.Device) -> None:
    x = wg.zeros(16, "i4", device=device)
    windows = np.arange(1, 9, dtype="i4").reshape(4, 2)
    offsets = wg.zeros((4, 1), "i4", device=device)
    described = wg.TensorDesc("i4", windows.shape), wg.TensorDesc("i4", x.shape)
    insert = device.compile(wg.InsertWindows(*described, wg.TensorDesc("i4", offsets.shape), overlap="last"))
    bound = insert.bind(input=wg.asarray(windows, device=device), output=x, offsets=offsets)
    expected = np.zeros(16, "i4")
    for starts in ([3, 2, 1, 0], [0, 1, 2, 3], [3, 3, 1, 2], [2, 1, 3, 3]):
        offsets[...] = np.array(starts, "i4")[:, None]
        encoder = device.wgpu_device.create_command_encoder()
        bound.record(encoder)
        device.wgpu_device.queue.submit([encoder.finish()])
        for start, window in zip(starts, windows, strict=True):
            expected[start : start + 2] = window
        check_same(x.numpy(), expected)


def test_bound_operators_are_explained_but_not_made(device: wg.Device, operator: wg.CompiledOperator) -> None:
    buffers = {side: make_buffer(device, random_bytes(16)) for side in ("input", "output")}
    bound = operator.bind(**buffers)
    encoder = device.wgpu_device.create_command_encoder()
    assert wg.explain(bound.record, encoder).plans == (bound.plan,)
    with pytest.raises(wg.CaptureRefused, match=r"^Slice1: buffers are bound, which an explained call"):
        wg.explain(operator.bind, **buffers)


@pytest.mark.parametrize("side", ["input", "output"])
def test_bound_buffers_destroyed_since_are_refused(
    device: wg.Device, operator: wg.CompiledOperator, side: str
) -> None:
    buffers = {name: make_buffer(device, random_bytes(16)) for name in ("input", "output")}
    bound = operator.bind(**buffers)
    assert repr(bound) == f"BoundOperator(Slice1: {bound.plan.summary}; {device})"
    encoder = device.wgpu_device.create_command_encoder()
    bound.record(encoder)
    with pytest.raises(
        TypeError, match=r"Slice1: encoder is of type Tensor: must be a wgpu\.GPUCommandEncoder or"
    ):
        bound.record(cast("Any", wg.zeros(1, device=device)))
    device.wgpu_device.queue.submit([encoder.finish()])
    buffers[side].destroy()
    encoder = device.wgpu_device.create_command_encoder()
    with pytest.raises(ValueError, match=f"Slice1: {side}: the buffer has been destroyed"):
        bound.record(encoder)
    device.wgpu_device.queue.submit([encoder.finish()])


@pytest.mark.parametrize("spare", [(0, 0), (0, 16), (16, 0)], ids=["both", "input", "output"])
def test_buffers_that_end_inside_a_vector(device: wg.Device, limit: Limit, spare: tuple[int, int]) -> None:
    """Their last bytes are read and written all the same, by a kernel that needs no whole vector there.

    The copy is long enough for kernels of whole vectors, which the plan for padded buffers has.
    """
    limit(profile=preferring(CPU, Kernel.SHIFTED_ROWS))
    rows, columns, stop = 129, 2001, 1994
    source = random_bytes(whole_words(rows * columns) + spare[0], 1)
    target = random_bytes(whole_words(rows * stop) + spare[1], 2)
    described = wg.TensorDesc("uint8", (rows, columns)), wg.TensorDesc("uint8", (rows, stop))
    operator = device.compile(wg.Slice1(*described, (0, 7), (rows, stop)))
    bound = make_buffer(device, source), make_buffer(device, target)
    assert operator.plan_for(input=bound[0], output=bound[1]).summary != operator.plan.summary
    record(device, operator, input=bound[0], output=bound[1])
    expected = target.copy()
    view = source[: rows * columns].reshape(rows, columns)
    expected[: rows * stop].reshape(rows, stop)[...] = view[:, 7:]
    check_bytes(read_buffer(bound[1]), expected)


def test_an_operator_tells_the_bytes_of_its_temporary_buffers(device: wg.Device) -> None:
    picture, windows = wg.TensorDesc("float32", (8, 8)), wg.TensorDesc("float32", (3, 2, 2))
    offsets = wg.TensorDesc("int32", (3, 2))
    found = {
        overlap: device.compile(wg.InsertWindows(windows, picture, offsets, overlap=overlap))
        for overlap in ("disjoint", "last")
    }
    assert found["disjoint"].temporary_nbytes == 0
    assert found["last"].temporary_nbytes >= 8 * 8 * 4  # a winner index for each element
    assert "temporary" in str(found["last"].plan)
