"""Explanations of calls: their plans, without running or compiling them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias, overload

from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.gpu.recording import Binding, Copy, run_copy
from wgslice.gpu.sink import Explaining, ListedSubmission, placeholder, using
from wgslice.layout import Layout
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.operators.compiled_textures import TextureDescriptor
from wgslice.plans.plan import Plan, duration
from wgslice.plans.steps import prefixed
from wgslice.tensors.tensor import Tensor

MAX_PRINTED = 8
NOT_A_VIEW = (
    "the tensor is a whole buffer, not a view, as results of copies and uploads are; explain(f, *args) "
    "explains the call that made it"
)


class Upload(NamedTuple):
    """Bytes written into a buffer before any later submission runs."""

    nbytes: int
    kept: bool = False  # whether later calls with equal bytes upload nothing


class Submission(NamedTuple):
    """Plans that are submitted at once."""

    plans: Sequence[Plan]


Step: TypeAlias = Upload | Submission


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The uploads and submissions of a call, which it prints, each plan with its reasons.

    Attributes
    ----------
    call : str
        The function's name, and dtype and shape of its first argument and its result if these are tensors.
    steps : tuple
        In order: uploads, which have `nbytes`, and submissions, which have `plans`.
    """

    call: str
    steps: tuple[Step, ...]

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """Steps that are no uploads."""
        return tuple(step for step in self.steps if isinstance(step, Submission))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans of all submissions: what runs on the GPU."""
        return tuple(plan for submission in self.submissions for plan in submission.plans)

    @property
    def nbytes(self) -> int:
        """Bytes that the plans write, without staging copies."""
        return sum(plan.nbytes for plan in self.plans)

    @property
    def uploaded_nbytes(self) -> int:
        """Bytes of all uploads."""
        return sum(step.nbytes for step in self.steps if isinstance(step, Upload))

    @property
    def seconds(self) -> float:
        """Estimate of the time of all submissions, each to the end of the wait, without uploads."""
        return sum(map(seconds_of, self.submissions))

    def __repr__(self) -> str:
        plans, submissions, uploaded = len(self.plans), len(self.submissions), self.uploaded_nbytes
        parts = [f"{prefixed(uploaded)} uploaded"] if uploaded else []
        if submissions:
            parts.append(f"{counted(plans, 'plan')} in {counted(submissions, 'submission')}")
            estimate = f"estimated time {duration(self.seconds)}{' without uploads' * bool(uploaded)}"
            parts.append(f"{prefixed(self.nbytes)} copied, {estimate}")
        first_line = f"{self.call}: {'; '.join(parts) or 'nothing is submitted'}"
        return listed(first_line, self.steps, printed, "step")


def printed(step: Step) -> str:
    """A step as it is printed, in one or more lines."""
    if isinstance(step, Upload):
        return f"upload of {prefixed(step.nbytes)} from the host{', kept for later calls' * step.kept}"
    first_line = (
        f"submission of {counted(len(step.plans), 'plan')}, estimated time {duration(seconds_of(step))}"
    )
    if len(step.plans) == 1:
        return listed(first_line, step.plans, str, "plan")
    latency_s = max((plan.costs.submission_s for plan in step.plans if plan.costs is not None), default=0.0)
    first_line += f", with the latency of {duration(latency_s)} once, which each estimate below includes"
    texts = Counter(plan.printed(alone=False) for plan in sorted(step.plans, key=lambda plan: -plan.nbytes))
    return listed(first_line, [*texts.items()], repeated, "different plan")


def repeated(item: tuple[str, int]) -> str:
    """A plan's text, with the number of equal ones."""
    text, count = item
    return f"{count} equal plans, each: {text}" if count > 1 else text


def listed(first_line: str, items: Sequence[Any], text: Callable[[Any], str], noun: str) -> str:
    """A line, the first of some items, indented, and how many more there are."""
    lines = [first_line, *(indent(text(item), "  ") for item in items[:MAX_PRINTED])]
    if len(items) > MAX_PRINTED:
        lines.append(f"  and {counted(len(items) - MAX_PRINTED, f'more {noun}')}")
    return "\n".join(lines)


def counted(count: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{count} {noun}{'s' * (count != 1)}"


def seconds_of(submission: Submission) -> float:
    """Estimate of the time of plans that share the cost of one submission."""
    costs = [(plan.seconds, plan.costs.submission_s) for plan in submission.plans if plan.costs is not None]
    return sum((seconds or 0) - own for seconds, own in costs) + max((own for _, own in costs), default=0.0)


@overload
def explain(what: Tensor | Descriptor, /, device: AnyDevice = None) -> Plan: ...


@overload
def explain(what: TextureDescriptor, /, device: AnyDevice = None) -> Explanation: ...


@overload
def explain(what: Callable[..., object], /, *args: Any, **kwargs: Any) -> Explanation: ...


def explain(what: Any, /, *args: Any, **kwargs: Any) -> Plan | Explanation:
    """Explain what a call would run, and why not something faster, without running it.

    Parameters
    ----------
    what : callable, Tensor, or a descriptor such as Slice1
        A function, whose call ``what(*args, **kwargs)`` is explained: `wgslice.stack`, `numpy.concatenate`,
        `operator.getitem`, `operator.setitem`, a method, a compiled operator. Or a view, whose `copy()` is
        explained: what `numpy()` runs as well, unless the view is packed and read without a copy. Or a
        descriptor, on bindings as `CompiledOperator.plan` has them; a write into a window is one with strides
        of its output.
    args : object
        Of the function. With a view or a descriptor only `device`, a Device or a part of an adapter's name:
        where a descriptor would be compiled; the default device by default. A tensor has its own.
    **kwargs : object
        Of the function, or `device`.

    Returns
    -------
    Explanation
        Of a call: to print; `steps` has the uploads and submissions, `plans` what the GPU runs. The function
        is called, and what this thread would upload, record or submit is listed instead, so that no tensor is
        written; whatever else the function does, it does. Also of `FromTexture` and `ToTexture`.
    Plan
        Of a view or a descriptor: to print; `summary` is its line, `steps` what runs, `rejected` why others
        are not applicable.

        Nothing is compiled, submitted or allocated on the GPU, so that what only a run finds, such as a
        destroyed buffer or a lack of memory, is not found.

    Raises
    ------
    CaptureRefused
        The call reads elements back, as `numpy()` does, reading by a mask in a tensor, and indices with
        WGSLICE_CHECK_INDICES=1; or it is `stream`, `selftest` or `tune`, or of `wgslice.pygfx`.
    TypeError
        `what` is neither a function nor a tensor nor a descriptor, or `device` is no device.
    ValueError
        `device` is not that of the tensor; the view has more than 2^32 - 1 elements, or its buffer is
        mapped; or the descriptor asks for what `Device.compile` refuses.
    NoAdapterError
        A default device is needed, and this machine has none.
    Exception
        What the function raises.

    Examples
    --------
    >>> import operator
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.zeros((1000, 1024), np.uint8))
    >>> wg.explain(x[1:, ::-1]).summary
    'coalesced (999, 1024) x 1 B, shifted_rows'
    >>> wg.explain(x[0, ::2]).rejected
    ('buffer copy per row: 1-byte elements of the input are 2 bytes apart',)
    >>> [plan.summary for plan in wg.explain(wg.concat, [x, x]).plans]
    ['coalesced (64000,) x 16 B, buffer copy', 'coalesced (64000,) x 16 B, buffer copy']
    >>> written = wg.explain(operator.setitem, x, np.s_[3:5], np.ones((2, 1024), np.uint8))
    >>> written.call, written.uploaded_nbytes, len(written.plans)  # straight into the tensor
    ('setitem of uint8 (1000, 1024)', 2048, 0)
    """
    if isinstance(what, Tensor):
        return explained_view(what, device_among(*args, **kwargs))
    if isinstance(what, Descriptor | TextureDescriptor):
        return explained_descriptor(what, device_among(*args, **kwargs))
    is_call = callable(what) and not isinstance(what, type)
    if not is_call or (isinstance(what, CompiledOperator) and not (args or kwargs)):
        given = f"the class {what.__name__}" if isinstance(what, type) else type(what).__name__
        has_plan = "; print its plan, or give its arguments too" * isinstance(what, CompiledOperator)
        raise TypeError(
            "explain takes a tensor or a descriptor such as Slice1(...), or a function and its arguments, "
            f"not {given}{has_plan}"
        )
    result, steps = captured(what, *args, **kwargs)
    call = str(getattr(what, "__name__", getattr(what, "name", type(what).__name__)))
    if args and isinstance(args[0], Tensor):
        call += f" of {described(args[0])}"
    if isinstance(result, Tensor):
        call += f" -> {described(result)}"
    return Explanation(call, steps)


def described(x: Tensor) -> str:
    """The dtype and shape of a tensor."""
    return f"{x.dtype} {x.shape}"


def captured(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, tuple[Step, ...]]:
    """A call's result, without elements, and what it would submit."""
    listing = Explaining()
    with using(listing):
        result = call(*args, **kwargs)
    steps = (  # without buffers and bytes
        Submission(tuple(each.plan for each in step.recorded))
        if isinstance(step, ListedSubmission)
        else Upload(step.data.size, step.kept)
        for step in listing.steps
    )
    return result, tuple(steps)


def device_among(*more: Any, device: AnyDevice = None, **others: object) -> AnyDevice:
    """Return the device, the only argument that a view or a descriptor has."""
    if more and isinstance(more[0], AnyDevice):
        device, more = more[0], more[1:]
    if more or others:
        given, *_ = *(f"{name} = {value!r}" for name, value in others.items()), *map(repr, more)
        raise TypeError(
            f"explain: {given}: a view or a descriptor takes only device=; index first, as in "
            "explain(x[key]), or name the function first, as in explain(f, x, axis=1)"
        )
    return device


def explained_view(x: Tensor, device: AnyDevice) -> Plan:
    """The plan of a tensor's copy, with a note where it is no view."""
    with named("explain"):
        if device is not None and checked_device(device) is not x.device:
            raise ValueError(f"the tensor is on {x.device}, not on {device}: leave device out")
        buffer = placeholder(x.device, x.nbytes)
        target = Binding(buffer, Layout.packed(x.shape), x.itemsize, fresh=True)
        _, steps = captured(run_copy, x.device, Copy(x.bound_layout, target))
    (plan,) = Explanation("copy", steps).plans
    is_whole = x.is_packed and x.offset == 0 and x.memory.size == buffer.size
    return replace(plan, tensors=described(x), note=NOT_A_VIEW * is_whole)


def explained_descriptor(descriptor: Descriptor | TextureDescriptor, device: AnyDevice) -> Plan | Explanation:
    """The plan of a compiled descriptor, or what a copy between a tensor and a texture would submit."""
    with named("explain"):
        chosen = checked_device(device)
    if isinstance(descriptor, Descriptor):
        return descriptor.planned(chosen).plan
    with named(descriptor.name):
        plans = descriptor.plans(chosen, partial(placeholder, chosen))
    return Explanation(descriptor.name, (Submission(tuple(plans)),))
