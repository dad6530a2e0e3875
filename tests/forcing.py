"""Calls run by each applicable strategy in turn, in several limits, and compared with NumPy byte by byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch
from weakref import WeakKeyDictionary

import numpy as np
from helpers import COPY_DST, COPY_SRC, Bytes, bits, make_buffer
from operations import Call
from planning import priced
from test_extract_windows import PROFILES, check_bindings

import wgslice as wg
from wgslice.gpu.protocols import Place
from wgslice.gpu.sink import RUNNING, ReadyPlan, Sink
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, ClassCost, Limits, Profile

__all__ = ["SETTINGS", "Setting", "Tally", "check_call"]

MAX_STEPS = 100  # of a plan that is run: few elements in tight limits may take 40,000
REFUSALS = IndexError, ValueError, TypeError
OF_LIMITS = "at most"  # words of each refusal of small limits


class Setting(NamedTuple):
    """Limits, launch configurations and costs that a call is planned for, instead of those of the device."""

    profile: int | None  # of PROFILES; None for that of the device
    costs: int  # number of a cost model of random costs
    alignments: int | None  # bytes of the largest binding, in alignments of a binding; None for the device's
    workgroups: int | None  # of a dimension of a grid
    buffer_nbytes: int | None  # of the largest buffer

    def limits(self, own: Limits) -> Limits:
        """The limits of a device in this setting."""
        alignment = own.binding_alignment_nbytes
        return replace(
            own,
            profile=own.profile if self.profile is None else random_costs(self.profile, self.costs),
            binding_nbytes=alignment * self.alignments if self.alignments else own.binding_nbytes,
            workgroups=self.workgroups or own.workgroups,
        )


SETTINGS = [
    Setting(None, 0, None, None, None),
    *(Setting(number % len(PROFILES), number, None, None, None) for number in range(8)),
    *(Setting(number % len(PROFILES), number, 16 + 8 * number, 2 + number % 3, None) for number in range(8)),
    Setting(0, 0, 40, 3, 2**12),
    Setting(1, 1, 16, 65535, 2**14),
]


@cache
def random_costs(number: int, seed: int) -> Profile:
    """A profile that knows the costs of every kernel: random ones, so that parts of plans differ too."""
    random = np.random.default_rng(seed)
    free = bool(seed & 1)  # whether buffer copies cost nothing
    known = priced(
        PROFILES[number],
        lambda *_: (0.0, 1e9),
        dispatch_s=float(10.0 ** random.uniform(-8, -3)),
        copy_s=0.0 if free else 1.0,
        clear_bytes_per_s=1e30 if free else 1e6,
    )
    kernels = {kernel: float(10.0 ** random.uniform(-9, -4)) for kernel in Kernel}
    every = {**CPU.costs.classes, **GPU.costs.classes, **known.costs.classes}
    classes = {kind: ClassCost(kernels[kind.kernel] * random.uniform(0.5, 2), 1e9) for kind in every}
    return replace(known, costs=replace(known.costs, classes=classes))


@dataclass
class Tally:
    """Counts of a run."""

    cases: int = 0
    executions: int = 0  # of calls, each by a strategy in a setting
    refused: int = 0  # by an exception of NumPy's type, or by small limits
    skipped: int = 0  # since a plan had too many steps
    forced: Counter[str] = field(default_factory=Counter)  # plans by strategy
    operations: Counter[str] = field(default_factory=Counter)  # executions


class TooManyStepsError(Exception):
    """A plan has more than MAX_STEPS steps."""


class Forcing:
    """Replaces each plan that is bound by the plan of its n-th applicable strategy."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.number = 0
        self.most = 1  # strategies of a plan of the call that runs
        self.used: list[str] = []
        self.plans: WeakKeyDictionary[wg.Plan, dict[int, tuple[str, wg.Plan]]] = WeakKeyDictionary()

    def bind(self, device: wg.Device, plan: wg.Plan, places: Sequence[Place]) -> ReadyPlan:
        """Bind another plan instead; called for every plan that runs."""
        if plan.choice is not None:
            self.most = max(self.most, 1 + len(plan.choice.others))
            known = self.plans.setdefault(plan, {})
            number = self.number % (1 + len(plan.choice.others))
            if number not in known:
                known[number] = forced(plan, number)
            name, plan = known[number]
            self.tally.forced[name] += 1
            self.used.append(name)
        if len(plan.steps) > MAX_STEPS:
            raise TooManyStepsError
        check_bindings(plan, device.limits)
        return BIND(RUNNING, device, plan, places)


BIND = Sink.bind


def forced(plan: wg.Plan, number: int) -> tuple[str, wg.Plan]:
    """The name of the n-th applicable strategy of a plan, and the plan by it."""
    choice = plan.choice
    assert choice is not None
    if number:
        only = choice._replace(others=choice.others[number - 1 : number])
        found = replace(plan, choice=only).choices
        if len(found) > 1:  # else its steps exceed a limit
            return found[1].name, replace(plan, steps=found[1].steps)
    return choice.name, plan


@contextmanager
def set_to(device: wg.Device, setting: Setting) -> Iterator[None]:
    """Let a device plan in a setting."""
    own, largest = device.limits, device.largest_buffer_nbytes
    device.limits = setting.limits(own)
    device.largest_buffer_nbytes = setting.buffer_nbytes or largest
    try:
        yield
    finally:
        device.limits, device.largest_buffer_nbytes = own, largest


class Outcome(NamedTuple):
    """The results of an execution, still on the device, and how it ran."""

    results: list[wg.Tensor]
    written: Any  # buffer of the first argument
    how: str


def check_call(device: wg.Device, call: Call, settings: Sequence[Setting], tally: Tally, name: str) -> None:
    """Run a call by each strategy in each setting, and compare all of its results with NumPy's at once."""
    contents = [argument.content() for argument in call.arguments]
    after = [content.copy() for content in contents]
    arrays = [argument.array(content) for argument, content in zip(call.arguments, after, strict=True)]
    expected: Any = None
    refusal: type[Exception] | None = None
    try:
        expected = call.numpys(*arrays)
    except REFUSALS as error:
        refusal = type(error)
    tally.cases += 1
    read = slice(1, None) if call.writes else slice(None)
    buffers = [
        make_buffer(device, content, argument.usage | COPY_SRC)
        for argument, content in zip(call.arguments, contents, strict=True)
    ]
    forcing, outcomes = Forcing(tally), list[Outcome]()
    with patch.object(Sink, "bind", forcing.bind):
        for setting in settings:
            with set_to(device, setting):
                if max(map(len, contents)) > MAX_STEPS * device.limits.binding_nbytes:
                    tally.skipped += 1  # to plan it would take minutes
                    continue
                outcomes += execute(device, call, forcing, setting, contents, buffers, refusal)
    tally.executions += len(outcomes)
    tally.operations[name] += len(outcomes)
    wanted = [] if expected is None else expected if isinstance(expected, list) else [expected]
    compare(
        device, call, outcomes, [np.asarray(each) for each in wanted], after[0], buffers[read], contents[read]
    )


def execute(
    device: wg.Device,
    call: Call,
    forcing: Forcing,
    setting: Setting,
    contents: Sequence[Bytes],
    buffers: Sequence[Any],
    refusal: type[Exception] | None,
) -> Iterator[Outcome]:
    """Run a call by each strategy in one setting."""
    forcing.number, forcing.most = 0, 1
    while forcing.number < forcing.most:
        forcing.used = []
        bound = list(buffers)
        if call.writes:
            bound[0] = make_buffer(device, contents[0], call.arguments[0].usage)
        sides = zip(call.arguments, bound, strict=True)
        tensors = [argument.tensor(device, buffer) for argument, buffer in sides]
        try:
            found = call.ours(*tensors)
            results = [] if found is None else list(found) if isinstance(found, list | tuple) else [found]
            results = [
                each if each.is_packed and each.offset == 0 and each.buffer not in bound else each.copy()
                for each in results
            ]
        except TooManyStepsError:
            forcing.tally.skipped += 1
            return
        except REFUSALS as error:
            small = setting.alignments is not None and OF_LIMITS in str(error)
            if not small and (refusal is None or not isinstance(error, refusal)):
                raise
            forcing.tally.refused += 1
            return
        how = f"{setting}, strategy {forcing.number}: {forcing.used}"
        assert refusal is None, f"NumPy raises {refusal}, and this does not: {call.text}; {how}"
        yield Outcome(results, bound[0], how)
        forcing.number += 1


def compare(
    device: wg.Device,
    call: Call,
    outcomes: Sequence[Outcome],
    expected: Sequence[Any],
    written: Bytes,
    buffers: Sequence[Any],
    contents: Sequence[Bytes],
) -> None:
    """Compare results, written buffers and inputs with NumPy's, all read back at once."""
    parts: list[tuple[Any, int, bytes, str]] = []  # buffer, bytes, content and origin
    for outcome in outcomes:
        assert len(outcome.results) == len(expected), outcome.how
        for tensor, array in zip(outcome.results, expected, strict=True):
            same = tensor.shape, tensor.dtype
            assert same == (array.shape, array.dtype), f"{call.text}: {same}; {outcome.how}"
            if array.nbytes:
                parts.append((tensor.buffer, array.nbytes, bits(array), outcome.how))
        if call.writes:
            parts.append((outcome.written, written.size, written.tobytes(), outcome.how))
    pairs = zip(buffers, contents, strict=True)
    parts += [(buffer, content.size, content.tobytes(), "an input") for buffer, content in pairs]
    for (_, nbytes, wanted, how), found in zip(parts, read_together(device, parts), strict=True):
        if found[:nbytes] != wanted:
            different = np.flatnonzero(
                np.frombuffer(found, np.uint8)[:nbytes] != np.frombuffer(wanted, np.uint8)
            )
            raise AssertionError(
                f"{different.size} of {nbytes} bytes differ from NumPy's, first {different[0]}: "
                f"{call.text}; {how}"
            )


def read_together(device: wg.Device, parts: Sequence[tuple[Any, int, bytes, str]]) -> Iterator[bytes]:
    """The first bytes of several buffers, by one readback."""
    sizes = [-(-nbytes // 4) * 4 for _, nbytes, *_ in parts]
    whole = device.wgpu_device.create_buffer(size=max(sum(sizes), 4), usage=COPY_SRC | COPY_DST)
    encoder, begin = device.wgpu_device.create_command_encoder(), 0
    for (buffer, *_), size in zip(parts, sizes, strict=True):
        encoder.copy_buffer_to_buffer(buffer, 0, whole, begin, size)
        begin += size
    device.wgpu_device.queue.submit([encoder.finish()])
    content, begin = bytes(device.wgpu_device.queue.read_buffer(whole)), 0
    for size in sizes:
        yield content[begin : begin + size]
        begin += size
