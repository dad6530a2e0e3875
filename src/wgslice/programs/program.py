"""Programs: what a function submits, captured once and replayed on other tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from threading import RLock
from typing import Any, NamedTuple
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import fitted, named
from wgslice.gpu.handles import check_bound, checked_encoder
from wgslice.gpu.host import translated_errors
from wgslice.gpu.pipelines import BoundCommand, Command, KernelCall
from wgslice.gpu.placeholder import Placeholder
from wgslice.gpu.protocols import Buffer, CommandEncoder, Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import BoundPlan, Capturing, sink, using
from wgslice.operators.binding import Binding
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.explain import Explanation, Submission
from wgslice.plans.copy import planned_without
from wgslice.plans.plan import Plan
from wgslice.programs.lifetimes import Temporary, assign_buffers, needed_nbytes
from wgslice.programs.lowering import Step, isolated, lifetimes, lowered, lowered_plans
from wgslice.programs.parameters import Given, Parameter
from wgslice.programs.saving import files_of, save
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.sequences import mapped, tensors_in
from wgslice.tensors.tensor import Tensor

MAX_BINDINGS = 8  # sets of buffers whose bind groups a program keeps
OTHERS, RESULT = "a tensor of the function besides its parameters", "a result of an earlier call"


class BoundProgram(NamedTuple):
    """A program with its buffers: recording it makes no GPU object."""

    used: Sequence[tuple[str, Buffer]]  # buffers that callers may hold, with what they are
    commands: Sequence[BoundCommand]
    places: Mapping[Buffer, Place]  # of placeholders


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
        recorded: Sequence[BoundPlan] = (),
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
        found = dict.fromkeys(place.buffer for step in run for place in step.places)
        returned = {each.memory for each in tensors_in("the result", self._result)}
        found |= dict.fromkeys(returned)
        lasting = self._contents.keys() | returned
        self._closed_over = [(OTHERS, each) for each in found if not isinstance(each, Placeholder)]
        given = {each.buffer for each in self._parameters.values()}
        own = [each for each in found if isinstance(each, Placeholder) and each not in given]
        made, self._own = self._own, lifetimes(run, own, self._contents, returned)
        for each in made.keys() & self._own.keys() & lasting:
            self._own[each].buffer = made[each].buffer
        self._commands: list[Command] = []  # of the steps, made when buffers are first bound
        program = proxy(self)  # no reference cycle, which would keep buffers until garbage is collected
        self._bound = lru_cache(maxsize=MAX_BINDINGS)(lambda *given: program._bind(*given))

    def _follow_selftest(self) -> None:
        """Plan again if kernels were disabled or enabled since."""
        with self._lock:
            disabled = self.device.limits.disabled
            if disabled != self._disabled and self._recorded:
                self._recorded = [
                    each._replace(plan=planned_without(each.plan, disabled)) for each in self._recorded
                ]
                self._set_steps(lowered_plans([*self._parameters.values()], self._recorded))
                self._disabled = disabled

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
    def __call__(self, **bindings: Binding) -> Any:
        """Run on tensors or buffers.

        Parameters
        ----------
        **bindings : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            For each parameter a tensor of the captured dtype, shape and strides, or a buffer and the byte
            offset of its element at index 0. Each must start as many bytes after a multiple of the device's
            binding alignment as the captured one, which whole tensors and their first rows do.

        Returns
        -------
        Tensor, or a tuple, list or dict of them, or None
            As the function returned. Tensors that the function made are the program's own: the next replay
            writes them again, so `copy()` what is to be kept. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError
            A parameter is missing or unknown; a binding is not as captured, destroyed, mapped, or read-only
            where it is written; it shares a buffer with another one, with a result of an earlier replay, or
            with a tensor that the function uses besides its parameters, and one of both is written; such a
            result or tensor is destroyed. Nothing runs then.
        CaptureRefused
            The call is explained or captured itself.
        OutOfDeviceMemory, DeviceLostError
            There is no memory for the program's own buffers, or the device is lost.
        """
        with self._named:
            bound = self._checked(bindings)
            recorder = Recorder(self.device)
            recorder.record(bound.commands)
            recorder.submit()
            return self._returned(bound)

    @fitted("name the tensors, as in program.record(encoder, x=x)")
    def record(self, encoder: CommandEncoder, **bindings: Binding) -> Any:
        """Record into a command encoder, which the caller finishes and submits.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        **bindings : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            As for a call.

        Returns
        -------
        Tensor, or a tuple, list or dict of them, or None
            As a call returns; written when the commands run.

        Raises
        ------
        TypeError, ValueError, CaptureRefused, OutOfDeviceMemory, DeviceLostError
            As a call. Nothing is recorded then.
        """
        with self._named:
            recorder = Recorder(self.device, checked_encoder(self.device, encoder))
            bound = self._checked(bindings)
            sink().keep(self.device, (buffer for _, buffer in bound.used))
            recorder.record(bound.commands)
            recorder.end()
            return self._returned(bound)

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
            with translated_errors:
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

    def _own_places(self) -> dict[Buffer, Place]:
        """Return the program's own buffers, as far as they are made, by their placeholders."""
        return {each: Place(own.buffer) for each, own in self._own.items() if own.buffer is not None}

    def _checked(self, bindings: Mapping[str, Binding]) -> BoundProgram:
        """Check bindings, and return the program with their buffers."""
        sink().check_runs("a program is replayed")
        if bindings.keys() != self._parameters.keys():
            given = ", ".join(bindings) or "nothing"
            raise TypeError(f"given {given}: the parameters are {', '.join(self._parameters)}")
        with self._lock:
            self._follow_selftest()
            bound: BoundProgram = self._bound(*(Given.of(name, bindings[name]) for name in self._parameters))
        check_bound(self.device, bound.used)
        return bound

    def _bind(self, *given: Given) -> BoundProgram:
        """Check bindings, and make the bind groups of all plans."""
        places: dict[Buffer, Place] = {}
        names = dict.fromkeys(self._own, RESULT) | {buffer: name for name, buffer in self._closed_over}
        others = self._own_places() | {buffer: Place(buffer) for _, buffer in self._closed_over}
        for parameter, each in zip(self._parameters.values(), given, strict=True):
            with named(parameter.name):
                found = parameter.place_of(each, written=parameter.buffer in self._written)
                for other, (buffer, _) in (places | others).items():
                    if buffer is found.buffer and self._written & {other, parameter.buffer}:
                        what = names.get(other, "another parameter")
                        raise ValueError(f"{what} has the same buffer, and one of both is written: copy() it")
                places[parameter.buffer] = found
        self._make()
        used = [(name, places[parameter.buffer].buffer) for name, parameter in self._parameters.items()]
        used += self._closed_over
        places |= self._own_places()
        returned = {each.memory for each in tensors_in("the result", self._result)} & self._own.keys()
        used += [(RESULT, places[memory].buffer) for memory in returned]
        check_bound(self.device, used)
        bound: list[BoundCommand] = []
        for command, step in zip(self._commands, self._run, strict=True):
            at = [moved(each, places) for each in step.places]
            bound += self.device.pipelines.bind_all([command], at)
        return BoundProgram(used, bound, places)

    def _returned(self, bound: BoundProgram) -> Any:
        """Return the function's result, of the buffers of a replay."""

        def real(x: Tensor) -> Tensor:
            buffer, base = moved(Place(x.memory), bound.places)
            return Tensor(self.device, buffer, x.dtype, x.layout.shifted(base // x.itemsize), x.writeable)

        return mapped(self._result, real)


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
        return Program(name, parameters, result, *lowered(parameters, listing))


def operator_program(operator: CompiledOperator) -> Program:
    """Return the program of a compiled operator, with parameters named as its bindings."""
    sides = {"input": operator.input, "output": operator.output, "offsets": operator.offsets}
    parameters = [
        Parameter.described(operator.device, side, desc) for side, desc in sides.items() if desc is not None
    ]

    def run(input: Tensor, output: Tensor, offsets: Tensor | None = None) -> None:
        operator(input, output, offsets=offsets)

    return captured_program(operator.name, parameters, run)
