"""Captured calls give what direct calls give, and explained ones leave no trace on a device."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
from fault_operations import HOST, OPERATIONS, Tensors, host
from hypothesis import given
from hypothesis import strategies as st
from running import created

import wgslice as wg
from wgslice.gpu.protocols import Placeholder, is_given_out
from wgslice.gpu.sink import Listing, Sink

FIXED = ("x", "y", "small", "picks", "wide", "mask", "corners")  # tensors of `Tensors`
MAKE_DEVICES = {"Device.request", "to_device"}  # which an explained call may
IN_THREADS = {"Zarr, read", "Zarr, read in chunks", "Zarr, write"}  # of Zarr's, whose calls are not captured
# Operations that read back, copy textures, bind, or are programs themselves.
REFUSED = {
    "numpy of a view",
    *("numpy", "numpy of 4 MB", "numpy_async", "item", "tolist", "np.asarray", "np.from_dlpack", "pickle"),
    "timed",
    *("to_device", "np.place", "index by a mask", "np.compress", "np.extract", "np.choose, out", "ONNX, run"),
    *("copy_to_texture and from_texture", "calls of ToTexture and FromTexture", "map_texture"),
    *("bind", "call of a program", "record of a program", "load_program", "save of a program"),
    *("stream", "stream into a tensor", "Zarr, write", "Dask, compute"),
}
ASKED_FOR = {"from_buffer": ["x"], "DirectML, CompileOperator and RecordDispatch": ["x", "y"]}  # buffers
NO_TENSORS = {"empty"}  # results
CAPTURED = [name for name in OPERATIONS if name not in REFUSED | NO_TENSORS | MAKE_DEVICES | IN_THREADS]


def state_of(device: wg.Device) -> dict[str, Any]:
    """What a device holds: its attributes, its pools and caches; while referenced, no plan is collected."""
    caches = vars(device.pipelines)
    return {
        "attributes": {name: id(value) for name, value in vars(device).items()},
        "sizes": {
            name: cache.cache_info().currsize
            for name, cache in caches.items()
            if hasattr(cache, "cache_info")
        },
        "kept": [set(device.pipelines.tables), set(device.pipelines.commands)],
        "pools": [
            (pool.nbytes, list(map(id, pool.buffers)), len(pool.in_use))
            for pool in (device.pool, device.staging)
        ],
    }


@pytest.fixture
def earlier_garbage_stays() -> Iterator[None]:
    """Buffers of cycles of earlier tests do not return to the pool meanwhile."""
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def placeholders(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeakSet[Placeholder]]:
    """The placeholders that are made and still referred to."""
    found: WeakSet[Placeholder] = WeakSet()
    make = Placeholder.__init__

    def remember(self: Placeholder, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        found.add(self)

    with monkeypatch.context() as patch:
        patch.setattr(Placeholder, "__init__", remember)
        yield found


@pytest.mark.usefixtures("earlier_garbage_stays")
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in MAKE_DEVICES | IN_THREADS])
def test_an_explained_call_leaves_no_trace(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tensors = Tensors(device)
    call = OPERATIONS[name](tensors)
    contents, before = tensors.contents(), state_of(device)
    with placeholders(monkeypatch) as kept, created() as made:
        with suppress(wg.CaptureRefused):
            wg.explain(call)
        assert made.keys() <= {"wgpuDeviceCreateBindGroupLayout"}  # of a check for a lost device
    if kept:
        gc.collect()  # a model's run is a cycle
    assert list(kept) == []
    assert state_of(device) == before
    exposed = [each for each in FIXED if is_given_out(getattr(tensors, each).memory)]
    assert exposed == ASKED_FOR.get(name, [])
    assert tensors.finished() == contents


@dataclass(frozen=True)
class Sequence:
    """Operations on tensors, one after the other, between which the array that they upload changes."""

    names: list[str]
    parameters: list[str]

    def run(self, tensors: Tensors) -> list[wg.Tensor]:
        """The tensors that the operations return."""
        before, results = HOST.copy(), []
        try:
            for name in self.names:
                results.append(OPERATIONS[name](tensors)())
                tensors.submit()
                HOST[...] = HOST[::-1] + 1
        finally:
            HOST[...] = before
            tensors.made.clear()
        flat = [
            each for result in results for each in (result if isinstance(result, (list, tuple)) else [result])
        ]
        return [each for each in flat if isinstance(each, wg.Tensor)]

    def captured(self, tensors: Tensors) -> tuple[wg.Program, dict[str, wg.Tensor]]:
        """The program of the operations, and its parameters."""
        given = {name: getattr(tensors, name) for name in self.parameters}

        def function(**stand_ins: wg.Tensor) -> list[wg.Tensor]:
            vars(tensors).update(stand_ins)
            try:
                return self.run(tensors)
            finally:
                vars(tensors).update(given)

        return wg.capture(function, **given), given


@st.composite
def sequences(draw: st.DrawFn) -> Sequence:
    """Any operations that can be captured, on tensors of which some are parameters."""
    names = draw(st.lists(st.sampled_from(CAPTURED), min_size=1, max_size=6))
    return Sequence(names, draw(st.lists(st.sampled_from(FIXED), min_size=1, max_size=7, unique=True)))


def called(sequence: Sequence, device: wg.Device) -> tuple[Any, Any]:
    """The results of a program that is called, and all tensors."""
    tensors = Tensors(device)
    untouched = tensors.contents()
    program, given = sequence.captured(tensors)
    assert tensors.contents() == untouched  # nothing ran
    results = program(**given)
    return results, {name: getattr(tensors, name) for name in FIXED}


def recorded(sequence: Sequence, device: wg.Device) -> tuple[Any, Any]:
    """The results and parameters of commands that run after all else was dropped, and its memory reused."""
    tensors = Tensors(device)
    program, given = sequence.captured(tensors)
    encoder = device.wgpu_device.create_command_encoder()
    results = program.record(encoder, **given)
    sizes = {getattr(tensors, name).memory.size for name in FIXED}
    del program, tensors
    others = [wg.asarray(np.full(size, 77, np.uint8), device=device) for size in sizes for _ in range(6)]
    device.queue.submit([encoder.finish()])
    assert all((other.numpy() == 77).all() for other in others)
    return results, given


def saved(sequence: Sequence, device: wg.Device) -> tuple[Any, Any]:
    """The results and parameters of a program that was saved and loaded."""
    program, given = sequence.captured(Tensors(device))
    with TemporaryDirectory() as folder:
        program.save(folder)
        return wg.load_program(folder, device)(**given), given


def called_in_threads(sequence: Sequence, device: wg.Device) -> tuple[Any, Any]:
    """The results and parameters of one of three programs that run at once."""
    captured = [sequence.captured(Tensors(device)) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda each: each[0](**each[1]), captured))
    assert host(results[1]) == host(results[2]) == host(results[0])
    return results[0], captured[0][1]


def called_after_destroy(sequence: Sequence, device: wg.Device) -> tuple[Any, Any]:
    """The results of a program, after another one was called with destroyed results."""
    program, given = sequence.captured(Tensors(device))
    for result in program(**given):
        result.buffer.destroy()
    with suppress(ValueError):
        program(**given)
    return called(sequence, device)


def test_a_listed_call_inherits_nothing_that_runs() -> None:
    public = {name for name in vars(Sink) if not name.startswith("_")}
    assert public >= {"create_buffer", "upload", "bind", "check_runs"}
    assert public - {"makes_zeros"} <= vars(Listing).keys()


@pytest.mark.parametrize("way", [called, recorded, saved, called_in_threads, called_after_destroy])
@given(sequence=sequences(), keeps=st.booleans())
def test_captured_equals_direct(
    device: wg.Device, way: Callable[[Sequence, wg.Device], tuple[Any, Any]], sequence: Sequence, keeps: bool
) -> None:
    """Results, and tensors that are written, have the bytes of direct calls, also where memory is reused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgslice.gpu.device.MIN_REUSED_NBYTES", 0)
        if not keeps:  # what is uploaded
            patch.setattr("wgslice.tensors.placed.MAX_CONSTANT_NBYTES", 0)
        direct = Tensors(device)
        expected = host(sequence.run(direct))
        results, tensors = way(sequence, device)
        assert host(results) == expected
        for name, tensor in tensors.items():
            assert host(tensor) == host(getattr(direct, name)), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_read_nothing_that_was_not_written(
    device: wg.Device, request: pytest.FixtureRequest, name: str
) -> None:
    outcomes = []
    for fill in (False, True):
        if fill:
            request.getfixturevalue("garbage")
        tensors = Tensors(device)
        outcomes.append((host(OPERATIONS[name](tensors)()), tensors.finished()))
    assert outcomes[0] == outcomes[1]
