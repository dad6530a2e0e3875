"""Calls that are explained: the plans that they run, and nothing that is run."""

from __future__ import annotations

import gc
import operator
import re
import weakref
from collections.abc import Callable
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import check_same
from onnx_graphs import parsed
from running import recording
from wgpu.backends.wgpu_native._api import libf

import wgslice as wg
import wgslice.array_api as xp
import wgslice.onnx as backend

X = np.arange(24 * 40, dtype=np.uint8).reshape(24, 40)
KEY = np.s_[1:, ::-3]
ROWS = np.array([3, -1, 7, 3])
MASK = X[:, 0] % 3 == 0
CROP = wg.Slice1(wg.TensorDesc("u1", X.shape), wg.TensorDesc("u1", (20, 8)), (4, 3), (20, 36), (1, -5))


class Call(NamedTuple):
    """A function and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> Any:
        return self.function(*self.arguments, **self.options)

    def explained(self) -> wg.Explanation:
        return wg.explain(self.function, *self.arguments, **self.options)


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Call:
    return Call(function, arguments, options)


def on(x: wg.Tensor, array: Any) -> wg.Tensor:
    """An array on the device of a tensor."""
    return wg.asarray(np.asarray(array), device=x.device)


def padding_model(x: wg.Tensor) -> Any:
    """A model that pads by a border, which its runs keep on the device, and transposes."""
    model = parsed("""(uint8[24, 40] x) => (uint8[42, 25] y) <int64[4] pads = {0, 1, 1, 1}, uint8 value = {9}>
        { padded = Pad(x, pads, value) y = Transpose(padded) }""")
    return backend.prepare(model, x.device)


# What a call submits, by what it is; each from a tensor of X.
CALLS: dict[str, Callable[[wg.Tensor], Call]] = {
    "a view": lambda x: call(operator.getitem, x, KEY),
    "a copy": lambda x: call(x[KEY].copy),
    "a reshape that copies": lambda x: call(x.T.reshape, -1),
    "a number": lambda x: call(operator.setitem, x, KEY, 7),
    "an array": lambda x: call(operator.setitem, x, KEY, X[KEY]),
    "an array, straight": lambda x: call(operator.setitem, x, np.s_[3:5], X[:2]),
    "a tensor": lambda x: call(operator.setitem, x, np.s_[::2], on(x, X)[1::2, ::-1]),
    "itself": lambda x: call(operator.setitem, x, ..., x[::-1]),
    "copyto": lambda x: call(wg.copyto, x[1:], x[:-1]),
    "uploads": lambda x: call(wg.asarray, X[:3, :5].copy(), device=x.device),
    "zeros": lambda x: call(wg.zeros, (3, 4), device=x.device),
    "full": lambda x: call(wg.full, (3, 4), 7, np.uint16, device=x.device),
    "stack": lambda x: call(wg.stack, [x[:12], x[12:], x[::2]], axis=-1),
    "concat": lambda x: call(wg.concat, [x, x[:, ::-1]], axis=1),
    "pad": lambda x: call(wg.pad, x, 2, constant_values=3),
    "pad by edges": lambda x: call(wg.pad, x, ((1, 2), (0, 3)), mode="edge"),
    "repeat": lambda x: call(wg.repeat, x, 3, axis=1),
    "roll": lambda x: call(wg.roll, x, (5, -3), (0, 1)),
    "tile": lambda x: call(wg.tile, x, (2, 3)),
    "tril": lambda x: call(xp.tril, x, k=-1),
    "array_api": lambda x: call(xp.concat, [x, x], axis=None),
    "NumPy": lambda x: call(np.concatenate, [x, x[:3]]),
    "NumPy along an axis": lambda x: call(np.take_along_axis, x, on(x, X[:4] % 24).view("i1"), 0),
    "take": lambda x: call(wg.take, x, ROWS, axis=0),
    "take on the device": lambda x: call(wg.take, x, on(x, ROWS), axis=1),
    "an index": lambda x: call(operator.getitem, x, (ROWS, slice(None, None, 2))),
    "an index on the device": lambda x: call(operator.getitem, x, on(x, ROWS)),
    "indices of two dtypes": lambda x: call(operator.getitem, x, (on(x, ROWS), on(x, ROWS.astype("i2")))),
    "a mask": lambda x: call(operator.getitem, x, MASK),
    "writing at an index": lambda x: call(operator.setitem, x, ROWS, X[:4]),
    "writing at indices on the device": lambda x: call(operator.setitem, x, on(x, ROWS), on(x, X[:4])),
    "writing at a mask": lambda x: call(operator.setitem, x, MASK, 0),
    "writing at a mask on the device": lambda x: call(operator.setitem, x, on(x, MASK), 0),
    "windows": lambda x: call(wg.extract_windows, x, [[0, 3], [9, 20]], (5, 7), fill=1),
    "windows by the device": lambda x: call(
        wg.extract_windows, x, on(x, np.array([[0, 3], [9, 20]])), (5, 8)
    ),
    "inserting": lambda x: call(
        wg.insert_windows, x, [[0, 3], [9, 20]], on(x, X[:10].reshape(2, 5, 40)[..., :7])
    ),
    "inserting, overlaps": lambda x: call(
        wg.insert_windows,
        x,
        [[0, 3], [2, 4]],
        on(x, X[:10].reshape(2, 5, 40)),
        overlap="last",
        outside="drop",
    ),
    "slice1": lambda x: call(wg.slice1, x, (1, 2), (20, 30), (-2, 3)),
    "slice_grad": lambda x: call(wg.slice_grad, x, (1, 2), (24, 79), (1, 2), output_sizes=(30, 90)),
    "a compiled operator": lambda x: call(x.device.compile(CROP), x),
    "a compiled operator's out": lambda x: call(
        x.device.compile(CROP), x, out=wg.zeros((20, 8), "u1", device=x.device)
    ),
    "ONNX": lambda x: call(padding_model(x).run_on_device, [x]),
    "ONNX again": lambda x: call(ran_before(padding_model(x), x).run_on_device, [x]),
    "several": lambda x: call(lambda: wg.roll(wg.stack([x[::2], x[1::2]]), 3)[ROWS % 2].copy()),
}


def ran_before(model: Any, x: wg.Tensor) -> Any:
    """A model after a run."""
    model.run([x[::-1]])
    return model


class Reached(NamedTuple):
    """Counts of calls that reach a device."""

    plans: list[str]
    uploaded_words: int
    submissions: int


def reached(device: wg.Device, action: Callable[[], Any]) -> Reached:
    """Counts calls that reach a device while a block runs."""
    words: list[int] = []
    submitted: list[int] = []
    write, submit, constant = device.queue.write_buffer, libf.wgpuQueueSubmit, device.pipelines.constant

    def noting_write(buffer: Any, offset: int, data: Any) -> None:
        words.append(-(-memoryview(data).nbytes // 4))
        write(buffer, offset, data)

    def noting_constant(values: bytes, count: int) -> Any:
        words.append(-(-len(values) * count // 4))  # also where an earlier call uploaded it
        return constant(values, count)

    def noting_submit(queue: Any, count: int, commands: Any) -> None:
        submitted.append(count)
        submit(queue, count, commands)

    with recording() as plans, pytest.MonkeyPatch.context() as patch:
        patch.setattr(device.queue, "write_buffer", noting_write)
        patch.setattr(device.pipelines, "constant", noting_constant)
        patch.setattr(libf, "wgpuQueueSubmit", noting_submit)
        action()
    return Reached([*map(str, plans)], sum(words), sum(submitted))


WGPU = ("create_buffer", "create_buffer_with_data", "create_command_encoder", "create_compute_pipeline")


def explained(device: wg.Device, asked: Call) -> wg.Explanation:
    """The explanation of a call, which must not reach the device."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in (
            (device.wgpu_device, WGPU),
            (device.queue, ("write_buffer",)),
            (libf, ("wgpuQueueSubmit",)),
        ):
            for name in names:
                patch.setattr(owner, name, lambda *_, **__: pytest.fail("reached the device"))
        return asked.explained()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_explained_by_what_it_submits(device: wg.Device, name: str) -> None:
    x = wg.asarray(X, device=device)
    asked = CALLS[name](x)
    explanation = explained(device, asked)
    check_same(x.numpy(), X)
    again = explained(device, asked)
    ran = reached(device, asked.run)
    uploads = [step.nbytes for step in explanation.steps if not hasattr(step, "plans")]
    words = sum(-(-nbytes // 4) for nbytes in uploads)
    assert Reached([*map(str, explanation.plans)], words, len(explanation.submissions)) == ran
    assert str(again) == str(explanation)
    assert explanation.uploaded_nbytes == sum(uploads)
    assert explanation.nbytes == sum(plan.nbytes for plan in explanation.plans)
    assert bool(explanation.steps) == (name not in ("a view", "zeros"))


def test_printed_sizes_of_indexed_rows_are_in_access_units(device: wg.Device) -> None:
    x, rows = wg.zeros((64, 256), np.float32, device=device), wg.zeros((3, 256), np.float32, device=device)
    sizes = "sizes (3, 64)  input strides (64, 1)  output strides (64, 1)  element width 16 B"
    for keys in ([5, 1, 7], on(x, [5, 1, 7])):
        for asked in (call(wg.take, x, keys, axis=0), call(operator.setitem, x, keys, rows)):
            (plan,) = asked.explained().plans
            assert sizes in str(plan)
            assert str(plan).startswith("copy: 3.07 kB, 4-byte items, shape (3, 256)\n")


def test_printed_windows_have_the_sizes_of_each_side(device: wg.Device) -> None:
    x, windows = wg.zeros((64, 50), np.float32, device=device), wg.zeros((2, 5, 7), "f4", device=device)
    (plan,) = wg.explain(wg.insert_windows, x, [[0, 3], [9, 20]], windows).plans
    assert str(plan).startswith("copy: 280 B, 4-byte items, shape (2, 5, 7)\n")
    sides = "input sizes (2, 5, 7) strides (35, 7, 1)  output sizes (64, 50) strides (50, 1)"
    assert sides in str(plan)


def test_printed_masks_count_elements_of_the_index(device: wg.Device) -> None:
    x, mask = wg.asarray(X, device=device), np.arange(X.size).reshape(X.shape) % 7 % 3 == 0
    (plan,) = wg.explain(operator.setitem, x, mask, X[mask]).plans
    assert str(plan).startswith(f"copy: {mask.sum()} B, 1-byte items, shape ({mask.sum()},)\n")
    assert f"by {mask.sum()} indices uploaded with the submission ({4 * mask.sum() / 1000:.3g} kB)" in str(
        plan
    )
    assert "considered  none: only scatter_subword is applicable" in str(plan)


N = 1024
ORDER = np.random.default_rng(7).permutation(N)
PLACES = np.stack([ORDER[:64] % 900, np.zeros(64, np.int64)], 1)
FIRST = "the indexed dimension is stored first, with contiguous rows"
CHANGES: dict[str, Callable[[wg.Tensor, wg.Tensor], tuple[Call, Call]]] = {
    "the indices are in an array of the host": lambda x, order: (
        call(operator.getitem, x, order),
        call(operator.getitem, x, ORDER),
    ),
    FIRST: lambda x, _: (
        call(operator.getitem, x, np.s_[:, ORDER]),
        call(operator.getitem, x, ORDER),
    ),
    f"{FIRST}, and the indices are in an array of the host": lambda x, order: (
        call(operator.getitem, x, (slice(None), order)),
        call(operator.getitem, x, ORDER),
    ),
    f"{FIRST} ": lambda x, order: (
        call(operator.getitem, x.T, order),
        call(operator.getitem, x, order),
    ),
    "the value is not broadcast along rows": lambda x, _: (
        call(operator.setitem, x, ORDER, 1.0),
        call(operator.setitem, x, ORDER, wg.zeros(x.shape, x.dtype, device=x.device)),
    ),
    'no index repeats, as put(..., overlap="disjoint") promises': lambda x, order: (
        call(wg.put, x[:, :8], order, x[:, 8:16], overlap="last"),
        call(wg.put, x[:, :8], order, x[:, 8:16], overlap="disjoint"),
    ),
    "windows have stride 1 along rows": lambda x, _: (
        call(wg.extract_windows, x, PLACES, (64, 300), (1, 3)),
        call(wg.extract_windows, x, PLACES, (64, 100)),
    ),
    'windows are disjoint, as overlap="disjoint" promises': lambda x, order: (
        call(wg.insert_windows, x, wg.asarray(PLACES, device=x.device), x[:64, None, :40], overlap="last"),
        call(
            wg.insert_windows, x, wg.asarray(PLACES, device=x.device), x[:64, None, :40], overlap="disjoint"
        ),
    ),
    "rows and their offsets are multiples of 16 bytes": lambda x, _: (
        call(wg.extract_windows, x, PLACES, (64, 1001)),
        call(wg.extract_windows, x, PLACES, (64, 1004)),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_has_the_strategy_and_time_of_the_changed_call(device: wg.Device, change: str) -> None:
    x, order = wg.zeros((N, N), np.float32, device=device), wg.asarray(ORDER, device=device)
    slow, fast = (asked.explained() for asked in CHANGES[change](x, order))
    (plan,) = fast.submissions[-1].plans
    assert plan.choice is not None
    (estimate,) = re.findall(r"  estimate    (.+?) \(", str(plan))
    line = f"\n      faster if   {change.strip()}: {plan.choice.name}, {estimate}\n"
    assert line in f"{slow}\n"
    assert fast.seconds < slow.seconds
    assert change.strip() not in str(fast)


def test_plans_that_are_kept_are_the_objects_that_run(device: wg.Device, recorded: list[wg.Plan]) -> None:
    x = wg.asarray(X, device=device)
    operator_, asked = device.compile(CROP), call(wg.pad, x, 2, mode="wrap")
    explanations = wg.explain(operator_, x), asked.explained()
    operator_(x)
    asked.run()
    assert [*explanations[0].plans, *explanations[1].plans] == recorded
    assert explanations[0].plans == (operator_.plan,)


def test_results_and_later_runs_are_right_after_an_explanation(device: wg.Device) -> None:
    """Nothing is kept of a call that was explained: no buffer without memory, no constant, no memory use."""
    x = wg.asarray(X, device=device)
    model = padding_model(x)
    expected = np.pad(X, ((0, 1), (1, 1)), constant_values=9).T
    for _ in range(2):
        before = model.memory
        wg.explain(model.run_on_device, [x])
        assert model.memory is before
        (y,) = model.run_on_device([x])
        check_same(y.numpy(), expected)
    wg.explain(operator.setitem, x, KEY, 7)
    check_same(x.numpy(), X)
    x[KEY] = 7
    wanted = X.copy()
    wanted[KEY] = 7
    check_same(x.numpy(), wanted)


def test_explaining_a_large_result_allocates_no_memory(device: wg.Device) -> None:
    x = wg.broadcast_to(wg.asarray(np.uint8(1), device=device), (2**15, 2**15))
    explanation = explained(device, call(wg.concat, [x[:, ::2], x[:, 1::2]]))
    assert explanation.nbytes == 2**30
    assert explanation.call == f"concat -> uint8 {(2**16, 2**14)}"


def test_a_result_that_no_buffer_holds_is_refused_as_by_the_call(device: wg.Device) -> None:
    x = wg.broadcast_to(wg.asarray(np.uint8(1), device=device), (2**16, 2**15))
    asked = call(wg.tile, x, (2, 2**4))
    said = []
    for ask in (asked.run, asked.explained):
        with pytest.raises(ValueError, match=r"a buffer of .* bytes: ") as refused:
            ask()
        said.append(str(refused.value))
    assert said[0] == said[1]


READING: dict[str, Callable[[wg.Tensor], Call]] = {
    "numpy": lambda x: call(x[KEY].numpy),
    "numpy of a result": lambda x: call(lambda: wg.roll(x, 1).numpy()),
    "item": lambda x: call(x[0, 0].item),
    "asarray": lambda x: call(np.asarray, x),
    "a mask on the device": lambda x: call(operator.getitem, x, on(x, MASK)),
    "writing rows at a mask on the device": lambda x: call(operator.setitem, x, on(x, MASK), X[MASK]),
    "ONNX": lambda x: call(padding_model(x).run, [x]),
    "stream": lambda x: call(wg.stream, X, KEY, wg.zeros((23, 14), np.uint8, device=x.device)),
    "stream into an array": lambda x: call(wg.stream, X, KEY, device=x.device),
    "tune": lambda x: call(wg.tune, x.device),
    "selftest": lambda x: call(wg.selftest, x.device),
}


@pytest.mark.parametrize("name", READING)
def test_calls_that_need_a_run_are_refused_by_name(device: wg.Device, name: str) -> None:
    x = wg.asarray(X, device=device)
    with pytest.raises(
        wg.CaptureRefused, match=r", which an explained call cannot do, since it does not run"
    ):
        READING[name](x).explained()
    check_same(x[1:].copy().numpy(), X[1:])  # the next calls run


def test_a_mask_on_the_device_is_refused_with_the_remedy(device: wg.Device) -> None:
    x, mask = wg.asarray(X, device=device), wg.asarray(MASK, device=device)
    with pytest.raises(wg.CaptureRefused) as refused:
        wg.explain(operator.getitem, x, mask)
    assert str(refused.value) == (
        "indexing: numpy: 24 bytes are read back, which an explained call cannot do, since it does not run: "
        "explain the calls before and after it, with NumPy arrays in place of its results, such as "
        "x[np.asarray(mask)] for x[mask], or x[::2] instead of x[::2].numpy()"
    )
    assert wg.explain(operator.getitem, x, np.asarray(mask)).plans


def test_errors_of_the_call_are_its_own_and_the_next_calls_run(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    for asked, error in (
        (call(operator.getitem, x, 24), IndexError),
        (call(wg.stack, [x, x[1:]]), ValueError),
        (call(lambda: (x.copy(), 1 // 0)), ZeroDivisionError),
    ):
        with pytest.raises(error) as ran:
            asked.run()
        with pytest.raises(error) as explaining:
            asked.explained()
        assert str(ran.value) == str(explaining.value)
        check_same(x[::2].copy().numpy(), X[::2])


def test_a_tensor_of_an_explained_call_has_no_elements(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    kept: list[wg.Tensor] = []
    wg.explain(lambda: kept.append(x[::2].copy()))
    (y,) = kept
    uses: list[Callable[[], Any]] = [
        y.numpy,
        y[:, ::2].copy,
        call(operator.setitem, y, ..., X[::2]).run,
        call(operator.setitem, x, np.s_[::2], y).run,
        call(wg.concat, [x, y]).run,
        call(device.compile(CROP).record, device.new_encoder(), input=x, output=y.buffer).run,
        call(wg.from_buffer, y.buffer, (20, 8), "u1").run,
    ]
    for use in uses:
        with pytest.raises(
            ValueError, match="the tensor comes from an explained or captured call, which did not run"
        ):
            use()
    check_same(x.numpy(), X)


def test_an_explained_readback_changes_no_device(device: wg.Device) -> None:
    new = wg.Device.request(device.adapter)
    empty, out = wg.empty((0, 3), np.int32, device=new), wg.full((3, 4), 9, np.int32, device=new)
    with pytest.raises(wg.CaptureRefused, match="0 bytes are read back, which an explained call cannot do"):
        wg.explain(empty.numpy_async)
    wg.slice_grad(wg.ones((1, 2), np.int32, device=new), [1, 0], [1, 4], [1, 2], output_sizes=(3, 4), out=out)
    assert out.numpy().tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    assert empty.numpy_async().sync_wait().shape == empty.numpy().shape == (0, 3)


def test_other_threads_run_and_are_not_listed(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    results: list[Any] = []

    def in_another_thread() -> None:
        results.append(x[KEY].copy().numpy())

    def both() -> None:
        thread = Thread(target=in_another_thread)
        thread.start()
        thread.join()
        wg.roll(x, 1, axis=0)

    explanation = wg.explain(both)
    check_same(results[0], X[KEY])
    assert [str(plan) for plan in explanation.plans] == [
        str(plan) for plan in wg.explain(wg.roll, x, 1, axis=0).plans
    ]


def test_an_explanation_inside_of_one_is_not_listed(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    inner: list[wg.Explanation] = []

    def both() -> None:
        inner.append(wg.explain(wg.tile, x, (2, 2)))
        x.T.copy()

    outer = wg.explain(both)
    assert [plan.steps for plan in outer.plans] == [wg.explain(x.T).steps]
    assert inner[0].plans


def test_nothing_is_kept_of_the_arguments(device: wg.Device) -> None:
    x, rows = wg.asarray(X, device=device), wg.asarray(ROWS, device=device)
    explanations = [
        wg.explain(operator.getitem, x, rows),
        wg.explain(wg.extract_windows, x, rows[:2].reshape(1, 2).view("i8"), (3, 3)),
        wg.explain(wg.stack, [x, x]),
    ]
    references = [weakref.ref(each.buffer) for each in (x, rows)]
    del x, rows
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert all(str(each) for each in explanations)


def test_an_explained_call_makes_devices_as_any_other(device: wg.Device) -> None:
    made: list[wg.Device] = []
    wg.explain(lambda: made.append(wg.Device.request(device.adapter)))
    assert str(made[0].limits.profile.costs.classes) == str(
        wg.Device.request(device.adapter).limits.profile.costs.classes
    )
    check_same(wg.asarray(X, device=made[0])[KEY].numpy(), X[KEY])


def test_explained_recordings_are_listed_and_not_recorded(device: wg.Device) -> None:
    x, out = wg.asarray(X, device=device), wg.zeros((20, 8), np.uint8, device=device)
    compiled = device.compile(CROP)
    encoder = device.wgpu_device.create_command_encoder()
    explanation = wg.explain(compiled.record, encoder, input=x, output=out)
    assert explanation.plans == (compiled.plan,)
    device.wgpu_device.queue.submit([encoder.finish()])
    assert not out.numpy().any()


def test_a_destroyed_buffer_is_refused_after_it_was_explained(device: wg.Device) -> None:
    """Explaining does not check a buffer, so the recording that follows checks it."""
    sides = wg.TensorDesc("f4", (16,)), wg.TensorDesc("f4", (8,))
    compiled = device.compile(wg.Slice(*sides, [8], [8]))
    assert "buffer copy" in compiled.plan.summary
    source, target = (device.wgpu_device.create_buffer(size=64, usage=0x8C) for _ in range(2))
    source.destroy()
    encoder = device.wgpu_device.create_command_encoder()
    assert wg.explain(compiled.record, encoder, input=source, output=target).plans == (compiled.plan,)
    with pytest.raises(ValueError, match="Slice: input: the buffer has been destroyed"):
        compiled.record(encoder, input=source, output=target)


def test_explain_of_a_whole_buffer_notes_it_is_no_view(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    note = "  note        the tensor is a whole buffer, not a view, as results of copies and uploads are"
    for result in (x, x[ROWS], wg.stack([x, x]), x[1:].copy(), x[1:].copy().reshape(-1)):
        assert note in str(wg.explain(result))
    for view in (x[1:], x[:-1], x.T, x[:, ::2], wg.stack([x, x])[0]):
        assert note not in str(wg.explain(view))


def test_the_total_counts_each_submission_once(device: wg.Device) -> None:
    x = wg.asarray(X, device=device)
    one, two = wg.explain(wg.concat, [x, x]), wg.explain(lambda: (x.T.copy(), x[::-1].copy()))
    assert [len(each.submissions) for each in (one, two)] == [1, 2]
    submission_s = device.limits.profile.costs.submission_s
    for each, saved_s in ((one, submission_s), (two, 0.0)):
        alone = sum(plan.seconds or 0 for plan in each.plans)
        assert each.seconds == pytest.approx(alone - saved_s)


def test_made_buffers_and_indices_are_printed(device: wg.Device) -> None:
    x, order = wg.zeros((16, 32, 24), np.float32, device=device), np.array([3, 1, 4, 0, 5])
    shifted = wg.explain(operator.setitem, x, np.s_[1:], x[:-1])
    assert "\n      temporary   46.1 kB for the staging copy\n" in str(shifted)
    scattered = wg.explain(operator.setitem, x, on(x, [*order] * 8), wg.concat([x] * 3)[:40])
    assert "\n      temporary   64 B for the winner indices\n" in str(scattered)
    assert "one index per element, 6 for each given one" in str(
        wg.explain(operator.getitem, x, np.s_[:, [*order] * 4])  # too many to be slices
    )
    several = wg.explain(operator.getitem, x, (on(x, order), on(x, order)))
    assert str(several).count("\n    copy of indices: 40 B, 8-byte items, shape (5,)\n") == 2
