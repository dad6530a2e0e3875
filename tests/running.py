"""Plans run on a device between buffers of known bytes, by changed kernels or not, and plans that it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, TypeAlias

import pytest
from helpers import Bytes, make_buffer, random_bytes, read_buffer

import wgslice as wg
from wgslice.gpu.protocols import Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import ReadyPlan, sink
from wgslice.plans.kernels import Kernel
from wgslice.plans.steps import OnGrid
from wgslice.shaders import kernel_module, module_of

__all__ = [
    "Compile",
    "Limit",
    "counted",
    "created",
    "noted",
    "recording",
    "run_on_gpu",
    "run_side_by_side",
    "side_by_side",
]


MODULE_OF = "wgslice.gpu.pipelines.module_of"

# Types of fixtures: they set limits of the device by name, and the modules that it compiles.
Limit: TypeAlias = Callable[..., None]
Compile: TypeAlias = Callable[[Callable[[Kernel], str]], None]


def by_step(module: Callable[[Kernel], str]) -> Callable[[OnGrid], str]:
    """A function of steps, in place of `module_of`, that gives other modules for their kernels."""

    def of(step: OnGrid) -> str:
        text = module(step.kernel)
        in_pairs = module_of(step) != kernel_module(step.kernel)
        return text.replace("alias IndexUnit = u32;", "alias IndexUnit = vec2<u32>;") if in_pairs else text

    return of


@contextmanager
def recording() -> Iterator[list[wg.Plan]]:
    """Collects the plans that are recorded to run meanwhile, in their order."""
    found: list[wg.Plan] = []
    play = Recorder.play

    def note(recorder: Recorder, *bound: ReadyPlan) -> None:
        found.extend(each.plan for each in bound if sink().runs)
        play(recorder, *bound)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "play", note)
        yield found


@contextmanager
def noted(target: Any, name: str, what: Callable[..., Any] = lambda *_, **__: 1) -> Iterator[list[Any]]:
    """Collects what a function says of the arguments of each call of a method of an object."""
    found: list[Any] = []
    method = getattr(target, name)

    def note(*arguments: Any, **options: Any) -> Any:
        found.append(what(*arguments, **options))
        return method(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, note)
        yield found


def run_on_gpu(device: wg.Device, plan: wg.Plan, *sides: Bytes) -> Bytes:
    """A target after a plan has run; the sides are a source, the target, and perhaps a table of offsets."""
    return run_side_by_side(device, [(plan, *sides)])


def run_side_by_side(device: wg.Device, runs: Sequence[tuple[wg.Plan, *tuple[Bytes, ...]]]) -> Bytes:
    """Run plans on parts of one buffer a side, in one submission, which takes a third of the time.

    Gives all of the target, as `side_by_side` puts its parts.
    """
    plans = [plan for plan, *_ in runs]
    sides = [side_by_side(device, parts) for parts in zip(*(parts for _, *parts in runs), strict=True)]
    buffers = [make_buffer(device, whole) for whole, _ in sides]
    encoder = device.wgpu_device.create_command_encoder()
    recorder = Recorder(device, encoder)
    for plan, *begins in zip(plans, *(begins for _, begins in sides), strict=True):
        places = [Place(buffer, begin) for buffer, begin in zip(buffers, begins, strict=True)]
        recorder.add(plan, places)
    recorder.end()
    device.wgpu_device.queue.submit([encoder.finish()])
    return read_buffer(buffers[1])


def side_by_side(device: wg.Device, parts: Sequence[Bytes]) -> tuple[Bytes, list[int]]:
    """All parts, each from where a binding may begin, with known bytes between them; and where they begin."""
    alignment = device.limits.binding_alignment_nbytes
    begins = [0, *accumulate(-(-part.size // alignment) * alignment for part in parts[:-1])]
    whole = random_bytes(begins[-1] + parts[-1].size, len(parts))
    for begin, part in zip(begins, parts, strict=True):
        whole[begin : begin + part.size] = part
    return whole, begins


@contextmanager
def created() -> Iterator[Counter[str]]:
    """Counts the calls of wgpu's native functions that make objects of a device."""
    from wgpu.backends.wgpu_native._api import libf

    names = [name for name in vars(libf) if name.startswith("wgpuDeviceCreate")]
    with counted(libf, names) as made:
        yield made


@contextmanager
def counted(target: Any, names: Sequence[str]) -> Iterator[Counter[str]]:
    """Counts the calls of methods of an object."""
    counts: Counter[str] = Counter()

    def counting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return method(*arguments, **options)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(target, name, counting(name, getattr(target, name)))
        yield counts
