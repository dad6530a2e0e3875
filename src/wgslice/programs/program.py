"""Programs: what a function submits, captured once and replayed on other tensors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from threading import RLock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import fitted, named
from wgslice.gpu.pipelines import Command, KernelCall, PreparedDispatch, ReadyCommand, ReadyDispatch
from wgslice.gpu.protocols import Buffer, CommandEncoder, Place, Placeholder
from wgslice.gpu.recording import (
    Copy,
    Recorder,
    check_bound,
    checked_encoder,
    keep_for_caller,
    plan_and_bind,
)
from wgslice.gpu.sink import Capturing, ReadyPlan, sink, using
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.explain import Explanation, Submission
from wgslice.plans.copy import planned_without
from wgslice.plans.plan import Plan
from wgslice.programs.lifetimes import Temporary, assign_buffers, needed_nbytes
from wgslice.programs.lowering import Step, isolated, lifetimes, lowered, lowered_plans
from wgslice.programs.outputs import (
    MAX_FREE,
    Commands,
    Outputs,
    Result,
    Target,
    bindable,
    check_targets,
    targets_of,
)
from wgslice.programs.parameters import Parameter, Slot
from wgslice.programs.saving import files_of, save
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.sequences import mapped, tensors_in
from wgslice.tensors.tensor import Tensor

OTHERS = "a tensor of the function besides its parameters"


Used: TypeAlias = Sequence[tuple[str, Buffer]]  # buffers that callers may hold, with what they are


class Replay(NamedTuple):
    """A call of a program."""

    commands: Sequence[ReadyCommand]
    used: Used
    results: Sequence[Tensor]  # in the order of the function's result


class Program:
    """What a function submits, captured once to be replayed on other tensors.

    Printed, it lists its plans and estimates.

    Attributes
    ----------
    name : str
        Of the function; errors begin with it.
    device : Device
        Where it runs.
    input_names : tuple of str
        Parameters, which each replay gives.
    plans : tuple of Plan
        Of all copies, in order. They change only if the self-test disables or enables kernels of the device.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        result: Any,
        steps: Sequence[Step],
        contents: Mapping[Buffer, NDArray[np.uint8]],
        recorded: Sequence[ReadyPlan] = (),
        *,
        trusted: bool = True,
    ) -> None:
        self.name = name
        self.device = parameters[0].device
        self._named = named(name)
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._result = result
        self._contents = contents  # of buffers of its own, when these are made
        self._recorded = recorded
        self._trusted = trusted  # whether the steps access bytes of the tensors alone
        self._disabled = self.device.limits.disabled  # kernels, when the steps were made
        self._own: dict[Buffer, Temporary] = {}  # the program's own memories, by their placeholders
        self._lock = RLock()  # held while any of these changes
        self._set_steps(steps)

    def _set_steps(self, steps: Sequence[Step]) -> None:
        """Set the steps, and drop what was made of others."""
        self._steps = steps  # as they are saved
        run = steps if self._trusted else isolated([*self._parameters.values()], steps)
        self._run = run
        self._written = {buffer for step in run for buffer in step.written}
        results = tensors_in("the result", self._result)
        found = dict.fromkeys(place.buffer for step in run for place in step.places)
        found |= dict.fromkeys(each.memory for each in results)
        self._closed_over = [(OTHERS, each) for each in found if not isinstance(each, Placeholder)]
        given = {each.buffer for each in self._parameters.values()}
        own = [each for each in found if isinstance(each, Placeholder) and each not in given]
        made = [each for each in results if each.memory in own and each.memory not in self._contents]
        self._made = dict.fromkeys(each.memory for each in made)
        # Whether tensors of a caller can be bound in place of all that the function makes.
        self._replaceable = len(made) == len(self._made) and all(map(self._fills, made))
        before = self._own
        self._own = lifetimes(run, [each for each in own if each not in self._made], self._contents)
        for each in before.keys() & self._own.keys() & self._contents.keys():
            self._own[each].buffer = before[each].buffer
        # Buffers that callers may hold besides those that they give: `_make` adds returned ones of its own.
        self._others = self._closed_over
        self._commands: list[Command] = []  # of the steps, made when buffers are first bound
        buffers: Any = self._made
        fits = MAX_FREE * sum(each.size for each in buffers) <= self.device.pool.max_nbytes
        self._free: deque[Outputs] = deque(maxlen=MAX_FREE if fits else 1)
        self._no_outputs = Outputs(self.device, {}, self._free)  # of calls that make no buffers

    def _fills(self, x: Tensor) -> bool:
        """Whether steps can write no byte of a result's buffer besides its elements."""
        buffer: Any = x.memory
        nbytes = buffer.used_nbytes if self._trusted else buffer.size
        return x.is_packed and x.offset == 0 and x.nbytes == nbytes

    def _follow_selftest(self) -> None:
        """Plan again if kernels were disabled or enabled since."""
        with self._lock:
            before, self._disabled = self._disabled, self.device.limits.disabled
            if self._disabled != before and self._recorded:
                self._recorded = [
                    each._replace(plan=planned_without(each.plan, self._disabled)) for each in self._recorded
                ]
                parameters = [*self._parameters.values()]
                self._set_steps(lowered_plans(parameters, memories(self._result), self._recorded))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans of all copies, in order; none of a loaded program."""
        with self._named:
            self._follow_selftest()
        return tuple(each.plan for each in self._recorded)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self._parameters)

    @fitted("name the tensors, as in program(x=x)")
    def __call__(self, /, **bindings: Any) -> Any:
        """Run on tensors or buffers.

        Parameters
        ----------
        **bindings : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            For each parameter a tensor of the captured dtype, shape and strides, or a buffer and the byte
            offset of its element at index 0. Each must start as many bytes after a multiple of the device's
            binding alignment as the captured one, which whole tensors and their first rows do.

        out : Tensor, or a tuple, list or dict of them, optional
            Where the function has no parameter of this name: tensors to write in place of those that it
            makes, in the structure of its result, of the same dtypes, shapes and strides, and in buffers that
            no parameter has. None stands for what the function does not make, and for what is to be made.

        Returns
        -------
        Tensor, or a tuple, list or dict of them, or None
            As the function returned. What the function makes is in `out`, or in buffers that no other call
            writes as long as one of its tensors or a view of one is left. The work is submitted, not waited
            for.

        Raises
        ------
        TypeError, ValueError
            A parameter is missing or unknown; a binding is not as captured, destroyed, mapped, or read-only
            where it is written; it shares a buffer with another one, or with a tensor that the function uses
            besides its parameters, and one of both is written; such a tensor is destroyed; `out` is not as
            above. Nothing runs then.
        CaptureRefused
            The call is explained or captured itself.
        OutOfDeviceMemory, DeviceLostError
            There is no memory for the program's own buffers, or the device is lost.
        """
        with self._named:
            replay = self._begin(bindings)
            recorder = Recorder(self.device)
            recorder.record(replay.commands)
            recorder.submit()
            return self._returned(replay)

    @fitted("name the tensors, as in program.record(encoder, x=x)")
    def record(self, encoder: CommandEncoder, **bindings: Any) -> Any:
        """Record into a command encoder, which the caller finishes and submits.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        **bindings : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            As for a call, with `out`.

        Returns
        -------
        Tensor, or a tuple, list or dict of them, or None
            As a call returns; written when the commands run. Since these may run at any time, no other call
            writes the same buffers; `out` names some that several recordings write.

        Raises
        ------
        TypeError, ValueError, CaptureRefused, OutOfDeviceMemory, DeviceLostError
            As a call. Nothing is recorded then.
        """
        with self._named:
            recorder = Recorder(self.device, checked_encoder(self.device, encoder))
            replay = self._begin(bindings, recorded=True)
            keep_for_caller(self.device, (buffer for _, buffer in replay.used))
            recorder.record(replay.commands)
            recorder.end()
            return self._returned(replay)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save for any WebGPU host: WGSL, buffers and steps, which `load_program` and `program.mjs` run.

        Parameters
        ----------
        folder : path
            New folder, or one with a program, which is replaced when the new one is complete. It gets
            `program.json`, as `program.schema.json` describes it, and files of WGSL and bytes.

        Raises
        ------
        ValueError
            A tensor that the function uses besides its parameters is destroyed or has no usage COPY_SRC.
        TypeError
            A dict of the result has keys that are no strings.
        FileExistsError
            There is a file or folder of that name without a program.
        CaptureRefused
            The call is explained or captured itself.
        OSError, DeviceLostError
            The folder cannot be written, or the device is lost.

        Notes
        -----
        The same program saves the same bytes. Tensors that the function uses besides its parameters are read
        back: constants, or, if the function writes them, buffers that begin with these bytes and persist
        from run to run.
        """
        with self._named:
            sink().check_runs("a program is saved")
            self._follow_selftest()
            check_bound(self.device, self._closed_over)
            result = tensors_in("the result", self._result), described(self._result, count())
            parameters = [*self._parameters.values()]
            save(folder, partial(files_of, self.name, parameters, result, self._steps, self._contents))

    def __repr__(self) -> str:
        parameters = ", ".join(map(str, self._parameters.values()))
        returned = [f"{each.dtype} {each.shape}" for each in tensors_in("the result", self._result)]
        call = f"{self.name}({parameters}) -> {', '.join(returned) or None}"
        plans = self.plans
        if not plans:
            return f"{call}: {len(self._steps)} steps"
        return str(Explanation(call, (Submission(plans),)))

    def _make(self) -> None:
        """Make the pipelines of the steps and the program's own buffers, unless that is done."""
        if len(self._commands) < len(self._run):
            with self.device.calls:
                self._commands = [
                    self.device.pipelines.bound(command) if isinstance(command, KernelCall) else command
                    for command, _ in self._run
                ]

        def make(memories: Sequence[Temporary]) -> Buffer:
            buffer = sink().create_buffer(self.device, needed_nbytes(memories))
            for each in memories:
                if each.content is not None:
                    sink().upload(self.device, buffer, each.content)
            return buffer

        assign_buffers(self._own.values(), make)
        returned = memories(self._result) & self._own.keys()
        owned: Any = [self._own[each].buffer for each in returned]
        self._others = [*self._closed_over, *((OTHERS, each) for each in owned)]

    def _begin(self, bindings: dict[str, Any], *, recorded: bool = False) -> Replay:
        """Check bindings, and return a call on their buffers."""
        sink().check_runs("a program is replayed")
        out = bindings.pop("out", None) if "out" not in self._parameters else None
        if bindings.keys() != self._parameters.keys():
            names = ", ".join(bindings) or "nothing"
            raise TypeError(f"given {names}: the parameters are {', '.join(self._parameters)}")
        slots = [each.slot(bindings[each.name]) for each in self._parameters.values()]
        with self._lock:
            if self._disabled != self.device.limits.disabled:
                self._follow_selftest()
            used = names_of(slots) + self._others
            if out is not None:
                targets = targets_of(self.device, self._result, out, self._made)
                used += [(each.parameter.name, each.tensor.memory) for each in targets]
                check_bound(self.device, used)
                return self._into_targets(slots, targets, used, recorded=recorded)
            check_bound(self.device, used)
            return self._on_outputs(slots, used, recorded=recorded)

    def _on_outputs(self, slots: Sequence[Slot], used: Used, *, recorded: bool) -> Replay:
        """Return a call that writes what the function makes into a set of outputs."""
        outputs = self._take_outputs() if self._made else self._no_outputs
        commands = outputs.find(slots) or self._bind(outputs, slots)
        return self._replay(commands, slots, used, outputs.leases(recorded=recorded), {})

    def _into_targets(
        self, slots: Sequence[Slot], targets: Sequence[Target], used: Used, *, recorded: bool
    ) -> Replay:
        """Return a call that writes what the function makes into tensors of a caller.

        They are bound in place of all that it makes if they can be, else copies write them at the end.
        """
        bound = [*slots, *(each.slot for each in targets)]
        direct = self._replaceable and len(targets) == len(self._made)
        commands = self._no_outputs.find(bound) if direct else None
        if commands is None:
            check_targets(targets, [*names_of(slots), *self._others])
            if direct and bindable(targets):
                commands = self._bind(self._no_outputs, bound)
        if commands is not None:
            return self._replay(commands, bound, used, {}, {each.number: each.tensor for each in targets})
        replay = self._on_outputs(slots, used, recorded=recorded)
        copies, results = [*replay.commands], [*replay.results]
        for number, parameter, tensor in targets:
            with named(parameter.name):
                copy = Copy(results[number].bound_layout, tensor.bound_layout)
                copies += plan_and_bind(self.device, copy).commands
            results[number] = tensor
        return Replay(copies, used, results)

    def _replay(
        self,
        commands: Commands,
        slots: Sequence[Slot],
        used: Used,
        leases: Mapping[Buffer, Buffer],
        written: Mapping[int, Tensor],
    ) -> Replay:
        """Return a call on what is given and leases of outputs; results that are `written` are given too."""
        buffers = dict(leases)
        for parameter, _, buffer in slots:
            buffers[parameter.buffer] = buffer
        listed = commands.listed
        if commands.has_copies:
            listed = [
                each
                if isinstance(each, ReadyDispatch)
                else (each[0], [Place(buffers.get(buffer, buffer), base) for buffer, base in each[1]])
                for each in listed
            ]
        results = [
            written[number]
            if number in written
            else Tensor(self.device, buffers.get(buffer, buffer), dtype, layout, writeable)
            for number, (buffer, dtype, layout, writeable) in enumerate(commands.results)
        ]
        return Replay(listed, used, results)

    def _take_outputs(self) -> Outputs:
        """Return a set of outputs of which no tensor is left, or a new one."""
        if self._free:
            return self._free.pop()
        made: Any = self._made
        create = partial(sink().reused_buffer, self.device)
        return Outputs(
            self.device, {each: create(each.used_nbytes, zeroed=each.zeroed) for each in made}, self._free
        )

    def _own_places(self) -> dict[Buffer, Place]:
        """Return the program's own buffers, as far as they are made, by their placeholders."""
        return {each: Place(own.buffer) for each, own in self._own.items() if own.buffer is not None}

    def _bind(self, outputs: Outputs, slots: Sequence[Slot]) -> Commands:
        """Check what is given for parameters, and make the bind groups of all plans."""
        given: dict[Buffer, Place] = {}
        others = self._own_places() | {buffer: Place(buffer) for _, buffer in self._closed_over}
        for parameter, each, buffer in slots:
            with named(parameter.name):
                found = parameter.place_of(each, buffer, written=parameter.buffer in self._written)
                for other, (used, _) in (given | others).items():
                    if used is buffer and self._written & {other, parameter.buffer}:
                        what = "another parameter" if other in given else OTHERS
                        raise ValueError(f"{what} has the same buffer, and one of both is written: copy() it")
                given[parameter.buffer] = found
        self._make()
        own = self._own_places()
        bound = own | given | {each: Place(buffer) for each, buffer in outputs.buffers.items()}
        # No reference to what is given: its placeholder stays.
        unbound = own | {each: Place(each, place.base) for each, place in given.items()}
        listed: list[ReadyCommand] = []
        for command, step in zip(self._commands, self._run, strict=True):
            places = bound if isinstance(command, PreparedDispatch) else unbound
            listed += self.device.pipelines.bind_all([command], [moved(each, places) for each in step.places])
        results = []
        for x in tensors_in("the result", self._result):
            buffer, base = moved(Place(x.memory), unbound)
            results.append(Result(buffer, x.dtype, x.layout.shifted(base // x.itemsize), x.writeable))
        has_copies = not all(isinstance(command, PreparedDispatch) for command in self._commands)
        commands = Commands(listed, has_copies, results)
        outputs.keep(slots, commands)
        return commands

    def _returned(self, replay: Replay) -> Any:
        """Return the function's result, of the tensors of a replay."""
        results = iter(replay.results)
        return mapped(self._result, lambda _: next(results))


def names_of(slots: Iterable[Slot]) -> list[tuple[str, Buffer]]:
    """Return the buffers that are given for parameters, with their names."""
    return [(parameter.name, buffer) for parameter, _, buffer in slots]


def memories(result: Any) -> set[Buffer]:
    """Return the buffers of the tensors of a result."""
    return {each.memory for each in tensors_in("the result", result)}


def moved(at: Place, places: Mapping[Buffer, Place]) -> Place:
    """Return a place in a placeholder's buffer instead; a buffer that is none stays."""
    buffer, base = places.get(at.buffer, Place(at.buffer))
    return Place(buffer, base + at.base)


def described(result: Any, numbers: Iterator[int]) -> Any:
    """Return a result as it is saved, with the number of each tensor in its place."""
    if isinstance(result, dict):
        if not all(isinstance(key, str) for key in result):
            raise TypeError(f"the result has keys {list(result)}: must be strings to be saved")
        return {"dict": {key: described(value, numbers) for key, value in result.items()}}
    if isinstance(result, list | tuple):
        kind = "list" if isinstance(result, list) else "tuple"
        return {kind: [described(value, numbers) for value in result]}
    return None if result is None else next(numbers)


@fitted("name the tensors, as in capture(f, x=x)")
def capture(function: Callable[..., Any], /, **tensors: Tensor) -> Program:
    """Capture what a function submits, instead of running it, to replay it on other tensors.

    Parameters
    ----------
    function : callable
        Called once, with a stand-in for each tensor. It may make views, copy, write into its arguments,
        gather and scatter, run compiled operators and ONNX models, and use other tensors, which stay those
        of this call. It returns a tensor, a tuple, list or dict of tensors, or None.
    **tensors : Tensor
        Its arguments by name, at least one: the parameters of the program. Their dtypes, layouts and
        alignments are captured, not their elements.

    Returns
    -------
    Program
        Called or recorded with tensors for these names, it plans nothing, and makes no GPU object from the
        second time on with the same buffers.

    Raises
    ------
    CaptureRefused
        The function reads elements back, as `numpy()` does and indexing by a mask in a tensor, copies
        textures, or is already explained or captured.
    TypeError, ValueError
        An argument or a result is no tensor; arguments share a buffer, or are on several devices.
    Exception
        What the function raises.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(12).reshape(3, 4))
    >>> flipped = wg.capture(lambda x: x[:, ::-1].copy(), x=x)
    >>> flipped(x=wg.asarray(np.arange(12, 24).reshape(3, 4))).numpy()[0]
    array([15, 14, 13, 12])
    """
    with named("capture"):
        sink().check_runs("a function is captured")
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"function is of type {type(function).__name__}: must be callable")
        if not tensors:
            raise TypeError("no tensors: give the function's arguments by name, such as capture(f, x=x)")
        for name, x in tensors.items():
            check_tensor(name, x)
        given = list(tensors.values())
        if any(x.device is not given[0].device for x in given):
            raise ValueError("the tensors are on several devices: copy them with asarray(x, device=...)")
        if len({id(x.memory) for x in given}) < len(given):
            raise ValueError(
                "two tensors share a buffer: capture it as one, and make the views in the function"
            )
        parameters = [Parameter.like(name, x) for name, x in tensors.items()]
    name = str(getattr(function, "__name__", getattr(function, "name", type(function).__name__)))
    return captured_program(name, parameters, function)


def captured_program(name: str, parameters: Sequence[Parameter], function: Callable[..., Any]) -> Program:
    """Return the program of what a function submits for parameters."""
    listing = Capturing()
    with using(listing):
        result = function(**{each.name: each.tensor for each in parameters})
    with named("capture"):
        if any(x.device is not parameters[0].device for x in tensors_in("the result", result)):
            raise ValueError("the result has tensors of another device: copy them with to_device")
        return Program(name, parameters, result, *lowered(parameters, memories(result), listing))


def operator_program(operator: CompiledOperator) -> Program:
    """Return the program of a compiled operator, with parameters named as its bindings."""
    sides = {"input": operator.input, "output": operator.output, "offsets": operator.offsets}
    parameters = [
        Parameter.described(operator.device, side, desc) for side, desc in sides.items() if desc is not None
    ]

    def run(input: Tensor, output: Tensor, offsets: Tensor | None = None) -> None:
        operator(input, output, offsets=offsets)

    return captured_program(operator.name, parameters, run)
