"""One plan is the whole truth: what is printed is recorded, and a second recording makes nothing anew."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers import (
    COPY_DST,
    COPY_SRC,
    STORAGE,
    check_bytes,
    in_threads,
    make_buffer,
    random_bytes,
    read_buffer,
    record,
)
from planning import buffer_copies_of, favouring, preferring
from running import Limit, counted, created, noted

import wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, MAX_PLANS, MAX_STAGING_NBYTES, Profile


def crop(sizes: tuple[int, int] = (9, 30), dtype: str = "u2", step: int = -1, column: int = 0) -> wg.Slice1:
    """All but the first row, and columns `step` apart from `column` on."""
    extents = sizes[0] - 1, sizes[1] - column
    window = (1, column), extents, (1, step)
    kept = extents[0], 1 + (extents[1] - 1) // abs(step)
    return wg.Slice1(wg.TensorDesc(dtype, sizes), wg.TensorDesc(dtype, kept), *window)


# the plan


def test_the_plan_that_is_printed_is_the_one_that_is_recorded(
    device: wg.Device, recorded: list[wg.Plan]
) -> None:
    alignment = device.limits.binding_alignment_nbytes
    operator = device.compile(crop())
    source, target = (make_buffer(device, random_bytes(8 * alignment + 1024, seed)) for seed in (1, 2))
    for offset in (0, alignment, 4 * alignment):
        assert operator.plan_for(input=(source, offset), output=target) is operator.plan
        record(device, operator, input=(source, offset), output=(target, alignment))
    assert recorded == [operator.plan] * 3
    x = wg.asarray(np.zeros((9, 30), np.uint16), device=device)
    operator(x, out=wg.empty((8, 30), np.uint16, device=device))
    operator(x)
    assert recorded == [operator.plan] * 5


def test_bindings_of_another_kind_get_a_plan_of_their_own_once(
    device: wg.Device, recorded: list[wg.Plan]
) -> None:
    operator = device.compile(crop())
    content = random_bytes(2048, 1)
    source, target = make_buffer(device, content), make_buffer(device, random_bytes(2048, 2))
    kernel_only = make_buffer(device, content, STORAGE)
    plans = set()
    for bindings in (
        {"input": (source, 2), "output": target},
        {"input": source, "output": (target, 6)},
        {"input": (kernel_only, 0), "output": target},
        {"input": source, "output": (source, 1024)},
    ):
        plan = operator.plan_for(**bindings)
        record(device, operator, **bindings)
        assert recorded[-1] is plan is operator.plan_for(**bindings)
        assert plan is not operator.plan
        plans.add(plan)
    assert len(plans) == 4


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_no_binding_is_planned_for_that_record_would_refuse(device: wg.Device, dtype: str) -> None:
    operator = device.compile(crop(dtype=dtype))
    buffer, small = make_buffer(device, random_bytes(2048)), make_buffer(device, random_bytes(64))
    with pytest.raises(ValueError, match="Slice1: output: the buffer of 64 bytes is too small"):
        operator.plan_for(input=buffer, output=small)
    with pytest.raises(TypeError, match=r"Slice1: input: of type NoneType: must be a wgpu\.GPUBuffer"):
        operator.plan_for(input=None, output=small)  # type: ignore[arg-type]  # what a caller may do


def test_a_staging_copy_is_a_step_with_its_reason(device: wg.Device) -> None:
    operator = device.compile(crop())
    buffer = make_buffer(device, random_bytes(2048))
    plan = operator.plan_for(input=buffer, output=(buffer, 64))
    first, *others = map(str, plan.steps)
    assert "to the staging copy" in first
    assert first.endswith("input and output share one buffer")
    assert all("from the staging copy" in other for other in others)
    assert [nbytes for _, nbytes in plan.scratch] == [8 * 30 * 2]


def test_packing_offsets_is_a_step_with_its_reason(device: wg.Device) -> None:
    descriptor = wg.ExtractWindows(
        wg.TensorDesc("u1", (9, 90)), wg.TensorDesc("u1", (2, 3, 70)), wg.TensorDesc("i4", (2, 2)), (3, 70)
    )
    operator = device.compile(descriptor)
    assert len(operator.plan.steps) == 1
    x, out, table = (make_buffer(device, random_bytes(1024, seed)) for seed in range(3))
    assert operator.plan_for(input=x, output=out, offsets=table) is operator.plan
    for offsets, output in (((table, 4), out), ((out, 512), out)):
        pack, extract = operator.plan_for(input=x, output=output, offsets=offsets).steps
        assert " from the offsets to the packed offsets, without a kernel: " in str(pack)
        assert str(pack).endswith("kernels bind packed offsets")
        assert "window_rows" in str(extract)


# a second recording


def operators(device: wg.Device) -> dict[str, tuple[wg.CompiledOperator, dict[str, Any], int]]:
    """Operators, what they are bound to, and the dispatches that they take."""
    x, y, table = (make_buffer(device, random_bytes(4096, seed)) for seed in range(3))
    images, patches = wg.TensorDesc("u1", (9, 90)), wg.TensorDesc("u1", (2, 3, 70))
    known = wg.ExtractWindows(images, patches, [[0, 1], [2, 3]], (3, 70), [[1, 1], [1, -1]])
    bound = wg.ExtractWindows(images, patches, wg.TensorDesc("i4", (2, 2)), (3, 70))
    gradient = wg.SliceGrad(
        wg.TensorDesc("f4", (5, 7)), wg.TensorDesc("f4", (10, 7)), (0, 0), (10, 7), (2, 1)
    )
    bound_both = {"input": x, "output": y}
    return {
        "a kernel": (device.compile(crop()), bound_both, 1),
        "buffer copies": (device.compile(crop(dtype="f4", step=1)), bound_both, 0),
        "other alignments": (device.compile(crop()), {"input": (x, 2), "output": (y, 4)}, 1),
        "windows": (device.compile(known), bound_both, 1),
        "windows at offsets on the GPU": (device.compile(bound), {**bound_both, "offsets": table}, 1),
        "a gradient": (device.compile(gradient), bound_both, -1),
    }


@pytest.mark.parametrize(
    "name",
    [
        "a kernel",
        "buffer copies",
        "other alignments",
        "windows",
        "windows at offsets on the GPU",
        "a gradient",
    ],
)
def test_a_second_recording_makes_nothing_but_bind_groups(device: wg.Device, name: str) -> None:
    operator, bindings, dispatches = operators(device)[name]
    record(device, operator, **bindings)
    plan = operator.plan_for(**bindings)
    encoder = device.wgpu_device.create_command_encoder()
    plans = operator._planning.cache_info().misses
    with created() as made:
        operator.record(encoder, **bindings)
    assert operator._planning.cache_info().misses == plans
    kernels = sum("workgroups" in str(step) for step in plan.steps)
    assert dispatches in (kernels, -1)
    assert made == Counter({"wgpuDeviceCreateBindGroup": kernels})
    device.wgpu_device.queue.submit([encoder.finish()])


def test_a_copied_buffer_that_was_destroyed_since_is_refused(device: wg.Device) -> None:
    """wgpu would abort the process when it is submitted."""
    operator = device.compile(crop(dtype="f4", step=1))
    assert len(buffer_copies_of(operator.plan)) == len(operator.plan.steps)
    for side in ("input", "output"):
        buffers = {
            "input": make_buffer(device, random_bytes(2048)),
            "output": make_buffer(device, random_bytes(2048)),
        }
        record(device, operator, **buffers)
        record(device, operator, **buffers)
        buffers[side].destroy()
        encoder = device.wgpu_device.create_command_encoder()
        for _ in range(2):
            with pytest.raises(ValueError, match=f"Slice1: {side}: the buffer has been destroyed"):
                operator.record(encoder, **buffers)
        device.wgpu_device.queue.submit([encoder.finish()])


def test_a_callers_own_destroy_still_runs(device: wg.Device) -> None:
    operator = device.compile(crop(dtype="f4", step=1))
    buffers = {side: make_buffer(device, random_bytes(2048)) for side in ("input", "output")}
    ran = []

    def destroy() -> None:
        ran.append("theirs")
        type(buffers["input"]).destroy(buffers["input"])

    buffers["input"].destroy = destroy
    record(device, operator, **buffers)
    for _ in range(2):
        buffers["input"].destroy()
    assert ran == ["theirs", "theirs"]
    encoder = device.wgpu_device.create_command_encoder()
    with pytest.raises(ValueError, match="Slice1: input: the buffer has been destroyed"):
        operator.record(encoder, **buffers)


def test_dispatches_that_follow_each_other_share_a_pass(device: wg.Device, limit: Limit) -> None:
    profile = preferring(device.limits.profile, Kernel.SHIFTED_ROWS, Kernel.WIDE_ROWS)
    limit(profile=profile)
    operator = device.compile(crop(dtype="u1"))
    buffer = make_buffer(device, random_bytes(2048))
    bindings: dict[str, Any] = {"input": (buffer, 1), "output": (buffer, 3)}
    assert len(operator.plan_for(**bindings).steps) == 3  # a staging copy, blocks of rows, heads and tails
    assert not operator.plan_for(**bindings).unbound
    encoder = device.wgpu_device.create_command_encoder()
    with counted(encoder, ["begin_compute_pass"]) as passes:
        operator.record(encoder, **bindings)
    assert passes == Counter({"begin_compute_pass": 1})


# unpadded buffers


def check_tight(device: wg.Device, operator: wg.CompiledOperator, source: Any, expected: Any) -> wg.Plan:
    """A recording into a buffer of exactly the output's bytes, out of one of exactly the input's."""
    poison = random_bytes(expected.nbytes, 9)
    buffers = {"input": make_buffer(device, source), "output": make_buffer(device, poison)}
    record(device, operator, **buffers)
    check_bytes(read_buffer(buffers["output"]), expected.reshape(-1).view(np.uint8))
    return operator.plan_for(**buffers)


UNPADDED = [
    *(("u4", (204, 204), 1), ("u4", (203, 204), -1), ("u2", (203, 402), 2)),
    *(("u1", (405, 302), -1), ("u2", (302, 203), 1)),
]


@pytest.mark.parametrize(
    ("profile", "kernel", "dtype", "sizes", "step"),
    [
        *((CPU, Kernel.SHIFTED_ROWS, *case) for case in UNPADDED),
        *((GPU, Kernel.SHIFTED_GRID, *case) for case in (*UNPADDED, ("u4", (203, 402), 2))),
    ],
)
def test_a_copy_of_unpadded_buffers_is_numpys_in_blocks(
    device: wg.Device,
    limit: Limit,
    profile: Profile,
    kernel: Kernel,
    dtype: str,
    sizes: tuple[int, int],
    step: int,
) -> None:
    limit(profile=preferring(profile, kernel))
    source = random_bytes(sizes[0] * sizes[1] * np.dtype(dtype).itemsize).view(dtype).reshape(sizes)
    expected = np.ascontiguousarray(source[1:, 1:][:, ::step])
    operator = device.compile(crop(sizes, dtype, step, column=1))
    plan = check_tight(device, operator, source.reshape(-1).view(np.uint8), expected)
    assert expected.nbytes % 16
    assert expected.nbytes % 4 == 0
    assert plan.steps[0].name == kernel.value == operator.plan.steps[0].name
    assert len(plan.steps) > len(operator.plan.steps)


def test_windows_of_unpadded_buffers_leave_the_last_to_words(device: wg.Device, limit: Limit) -> None:
    profile = favouring(device.limits.profile, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS)
    limit(profile=profile)
    source = random_bytes(40 * 96).reshape(40, 96)
    offsets = [[0, 3], [9, 1], [4, 11], [37, 26]] * 57
    expected = np.stack([source[row : row + 3, column : column + 67] for row, column in offsets])
    described = wg.TensorDesc("u1", (40, 96)), wg.TensorDesc("u1", (228, 3, 67))
    operator = device.compile(wg.ExtractWindows(*described, offsets, (3, 67)))
    plan = check_tight(device, operator, source.reshape(-1), expected)
    rows, elements = plan.steps
    assert str(rows).startswith("kernel window_rows on 227 windows")
    assert str(elements).startswith("kernel window_words on 1 window ")


def test_a_gradient_of_unpadded_buffers_is_numpys(device: wg.Device) -> None:
    for sizes, window in (((301, 203), ((1, 0), (300, 203))), ((301, 203), ((0, 0), (299, 203)))):
        g = random_bytes(window[1][0] * 203 * 4).view("f4").reshape(window[1])
        expected = np.zeros(sizes, "f4")
        expected[window[0][0] : window[0][0] + window[1][0]] = g[:, ::-1]
        described = wg.TensorDesc("f4", window[1]), wg.TensorDesc("f4", sizes)
        operator = device.compile(wg.SliceGrad(*described, *window, (1, -1)))
        check_tight(device, operator, g.reshape(-1).view(np.uint8), expected)


# manners of a device


def test_asking_for_a_device_and_waiting_make_no_buffer(
    named: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WGSLICE_PROFILE", "shipped")  # nothing is compared, which takes buffers
    monkeypatch.setattr("wgslice.gpu.device.default_devices", [])
    with monkeypatch.context() as patch:
        import wgpu.backends.wgpu_native as native

        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("a buffer was made")

        patch.setattr(native.GPUDevice, "create_buffer", refuse)
        made = wg.default_device()
        assert wg.default_device() is made
        made.synchronize()
    assert wg.asarray([1, 2, 3], device=made)[::-1].numpy().tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    "key", [np.s_[:, ::-1], np.s_[1:-1, 2:9], np.s_[3]], ids=["kernel", "buffer copies", "packed"]
)
def test_reading_a_view_is_one_submission(device: wg.Device, key: Any) -> None:
    from wgpu.backends.wgpu_native._api import libf  # not there in a browser

    array = np.arange(300, dtype=np.float32).reshape(20, 15)
    view = wg.asarray(array, device=device)[key]
    with counted(libf, ["wgpuQueueSubmit"]) as submitted:
        read = view.numpy()
    assert np.array_equal(read, array[key])
    assert submitted == Counter({"wgpuQueueSubmit": 1})


def test_buffers_made_a_moment_ago_are_not_probed(device: wg.Device) -> None:
    x = wg.asarray(np.arange(64, dtype=np.float32), device=device)
    probe = device.pipelines.probe_layout
    with noted(type(device.host), "make_bind_group", lambda *given: given[2] is probe) as are_probes:
        copied = x[8:24].copy()
        assert sum(are_probes) == 1  # of x, which its owner may have destroyed
        wg.slice1(x, [0], [16], out=copied)
        assert sum(are_probes) == 3
        device.compile(crop(dtype="f4", step=1))(wg.zeros((9, 30), np.float32, device=device))
        assert sum(are_probes) == 4
    assert copied.numpy().tolist() == list(range(16))


# caches


def test_a_full_cache_of_plans_gives_up_one_entry(device: wg.Device) -> None:
    x = wg.zeros((2, MAX_PLANS + 12), np.uint8, device=device)
    views = [x[:, :size] for size in range(1, MAX_PLANS + 12)]
    plans = [wg.explain(view) for view in views]
    assert all(
        wg.explain(view).steps is plan.steps for view, plan in zip(views[-9:], plans[-9:], strict=True)
    )
    assert wg.explain(views[0]).steps is not plans[0].steps


def test_equal_gradients_share_a_plan(device: wg.Device, recorded: list[wg.Plan]) -> None:
    g = wg.zeros(5, np.float32, device=device)
    for start in (2, 2, 3):
        wg.slice_grad(g, [start], [5], output_sizes=[9])
    assert recorded[0] is recorded[1]
    assert recorded[0] is not recorded[2]


def tiny_device(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> wg.Device:
    """A device whose caches hold two entries."""
    for name in ("MAX_PIPELINES", "MAX_UNIFORM_BUFFERS"):
        monkeypatch.setattr(f"wgslice.gpu.pipelines.{name}", 2)
    monkeypatch.setattr("wgslice.operators.compiled.MAX_PLACES", 2)
    return wg.Device.request(device.adapter)


KEYS: list[Any] = [
    np.s_[1:, ::-2],
    np.s_[:, 1::3],
    np.s_[::-1, :7],
    np.s_[2:5, ::2],
    np.s_[..., 3],
    np.s_[1:, 1:],
]


def test_full_caches_of_a_device_give_up_one_entry(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = tiny_device(device, monkeypatch)
    arrays = [random_bytes(700).view(dtype).reshape(7, -1) for dtype in ("u1", "u2", "u4")]
    for array in arrays:
        for key in KEYS:
            assert np.array_equal(wg.asarray(array, device=tiny)[key].numpy(), array[key])
    for cache in (tiny.pipelines.pipeline, tiny.pipelines.uniform_buffer):
        assert cache.cache_info().currsize == 2
        assert cache.cache_info().misses > 4
    operator = tiny.compile(crop((7, 100), "u1"))
    x = make_buffer(tiny, random_bytes(1024))
    expected = random_bytes(1024)
    for offset in (0, 1, 2, 3, 5, 0, 1):
        target = make_buffer(tiny, random_bytes(608, 3))
        record(tiny, operator, input=(x, offset), output=target)
        window = expected[offset:][:700].reshape(7, 100)[1:, ::-1]
        check_bytes(read_buffer(target)[:600], np.ascontiguousarray(window).ravel())
    assert operator.plan_for(input=x, output=target) is operator.plan
    assert operator._planning.cache_info().currsize == 2


def test_pipelines_of_living_plans_are_not_compiled_again(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many others a full cache has seen since."""
    tiny = tiny_device(device, monkeypatch)
    operator = tiny.compile(crop((7, 100), "u1"))
    array = random_bytes(700).reshape(7, 100)
    for key in KEYS:
        assert np.array_equal(wg.asarray(array, device=tiny)[key].numpy(), array[key])
    with counted(tiny.wgpu_device, ["create_compute_pipeline"]) as made:
        again = tiny.compile(crop((7, 100), "u1"))
        assert not made
        assert np.array_equal(again(wg.asarray(array, device=tiny)).numpy(), array[1:, ::-1])
    assert again.plan.steps == operator.plan.steps


def test_few_staging_buffers_are_kept(device: wg.Device) -> None:
    fresh = wg.Device.request(device.adapter)
    x = wg.asarray(np.arange(9 * 2**20, dtype=np.uint8), device=fresh)
    pending = [x[number:].numpy_async() for number in range(20)]
    for promise in pending:
        promise.sync_wait()
    assert MAX_STAGING_NBYTES * 0.9 < fresh.staging.nbytes <= MAX_STAGING_NBYTES
    assert fresh.staging.nbytes == sum(buffer.size for buffer in fresh.staging.buffers)


def test_threads_compile_and_slice_together(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one device whose caches are full at once, so that entries come and go while others use them."""
    tiny = tiny_device(device, monkeypatch)
    array = random_bytes(9 * 30 * 2).view("u2").reshape(9, 30)
    failures: list[object] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        try:
            x = wg.asarray(array, device=tiny)
            for turn in range(12):
                step = (-1, 2, 3, -2)[(number + turn) % 4]
                operator = tiny.compile(crop(step=step))
                expected = array[1:, ::step]
                assert operator.output.sizes == expected.shape
                assert np.array_equal(operator(x).numpy(), expected)
                assert np.array_equal(x[1:, ::step].numpy(), expected)
                places = wg.extract_windows(x, [[turn % 3, number]], (3, 20)).numpy()
                assert np.array_equal(places[0], array[turn % 3 : turn % 3 + 3, number : number + 20])
        except Exception as error:  # a thread's own is lost
            failures.append(error)

    in_threads(work)
    assert failures == []


def test_usages_of_a_buffer_decide_between_copies_and_kernels(device: wg.Device) -> None:
    operator = device.compile(crop(dtype="f4", step=1))
    content = random_bytes(2048)
    usages = STORAGE | COPY_SRC | COPY_DST, STORAGE | COPY_SRC, STORAGE | COPY_DST, STORAGE
    for read_usage in usages:
        for write_usage in usages:
            source, target = (
                make_buffer(device, content, read_usage),
                make_buffer(device, content, write_usage),
            )
            plan = operator.plan_for(input=source, output=target)
            copies = bool(read_usage & COPY_SRC and write_usage & COPY_DST)
            assert bool(buffer_copies_of(plan)) == copies
            record(device, operator, input=source, output=target)
            expected = content.view("f4")[30 : 9 * 30].view(np.uint8)
            check_bytes(read_buffer(target)[: expected.size], expected)
