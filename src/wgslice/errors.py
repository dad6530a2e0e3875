"""Exceptions of this package, prefixes of their texts, and errors of WebGPU and of calls that do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from numpy.exceptions import AxisError


class WindowError(ValueError):
    """A window breaks a rule: outside its tensor, empty, without a step, or of the wrong rank."""


class ComputationRefused(NotImplementedError):  # noqa: N818 -- says what happened
    """An operation would compute: tensors are moved, and the message says what computes with their elements.

    Not a TypeError: libraries take that of a comparison for "not equal".
    """


class CaptureRefused(RuntimeError):  # noqa: N818 -- says what happened
    """A call cannot be explained without running it, such as one that reads elements back."""


class NoAdapterError(RuntimeError):
    """No adapter fits the request. The message says what to install on this system."""


class DeviceLostError(RuntimeError):
    """The device is gone: reset, unplugged or destroyed. Its tensors cannot be read any more."""


class NoKernelError(RuntimeError):
    """Every kernel that could do the copy failed the self-test of the device. Use another adapter."""


class OutOfDeviceMemory(MemoryError):  # noqa: N818 -- named like MemoryError
    """The device has no memory left for a buffer. Dropping tensors frees theirs at once."""


PREFIXED = (
    *(ValueError, TypeError, OverflowError, BufferError, NotImplementedError),
    *(CaptureRefused, DeviceLostError, NoKernelError, OutOfDeviceMemory),
)


class named:  # noqa: N801 -- reads as a function where it is used; a class costs half as much as a generator
    """Prefix every error raised inside with the operator's name; used once, in public functions."""

    def __init__(self, operator: str) -> None:
        self.operator = operator

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, AxisError):  # prints its attributes, not its arguments
            axis, rank, *inner = error.args
            raise AxisError(axis, rank, self.prefixed(*inner)) from None
        if isinstance(error, PREFIXED):
            error.args = (self.prefixed(str(error)),)
        elif error is not None and hasattr(error, "__notes__"):  # an error of wgpu's
            error.add_note(f"raised by {self.operator}")

    def prefixed(self, text: str = "") -> str:
        """Return a text that begins with the operator's name, also if it began so without a module."""
        own = self.operator.rpartition(".")[2]
        rest = "" if text == own else text.removeprefix(f"{own}: ")
        return ": ".join(filter(None, [self.operator, rest]))


LOST = "the device is lost: request a new one and upload again"


class ErrorTexts(NamedTuple):
    """What the texts of a host's errors have, by kind of error."""

    host: str  # its name in sentences
    memory: str = "Not enough memory left"
    lost: str = "device is lost"  # in lower case
    destroyed: str = "has been destroyed"


class TranslatedErrors:
    """Context manager that raises Python or package errors for a host's errors of known kinds.

    Other errors of the host keep their type and get a note with the remedy. Without state, so that threads
    share it.
    """

    def __init__(self, refusals: type[Exception], texts: ErrorTexts) -> None:
        self.refusals = refusals  # the class of the host's errors
        self.texts = texts
        self.note = (
            f"{texts.host} or the driver refused a command; the device stays usable; `wgslice doctor` tests "
            "the driver"
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or not isinstance(error, self.refusals):
            return
        # Frames of the host refer to the error: with them, buffers would live until garbage is collected.
        error.__traceback__ = None
        text = str(error)
        if isinstance(error, MemoryError) or self.texts.memory in text:
            raise OutOfDeviceMemory(
                "the device has no memory left for this buffer: drop tensors that are no longer needed"
            ) from error
        if self.texts.lost in text.lower():
            raise DeviceLostError(LOST) from error
        if self.texts.destroyed in text:
            raise ValueError(
                "the buffer has been destroyed: upload the data again, and drop "
                "references instead of calling destroy()"
            ) from error
        if not hasattr(error, "__notes__"):
            error.add_note(self.note)


P = ParamSpec("P")
R = TypeVar("R")

WITH_OUT = {"concat": "concatenate", "stack": "stack", "take": "take"}  # with NumPy's names
PYTORCH_WORDS = {"dim": ("axis",), "dims": ("axis", "axes")}  # with what they are called here


def fitted(remedy: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of public functions: arguments that do not fit raise an error with the signature."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if getattr(error.__traceback__, "tb_next", None) is None:  # the function has not begun
                    check_fit(function, args, kwargs, remedy)
                raise

        return call

    return decorate


def public(remedy: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of public functions as `fitted`, by which errors also begin with their names."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        operator = named(function.__name__)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                with operator:
                    return function(*args, **kwargs)
            except TypeError as error:
                if getattr(error.__traceback__, "tb_next", None) is None:  # the function has not begun
                    check_fit(function, args, kwargs, remedy)
                raise

        return call

    return decorate


def check_fit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], remedy: str
) -> None:
    """Raise TypeError with the signature, and a remedy if there is one, unless the arguments fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        given = signature.parameters
        by_name = [each.name for each in given.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
        words = [(word, name) for word in kwargs for name in PYTORCH_WORDS.get(word, ()) if name in given]
        if words:
            remedy = f"write {words[0][1]}= for {words[0][0]}="
        elif "out" in kwargs.keys() - given.keys() and function.__name__ in WITH_OUT:
            remedy = f"np.{WITH_OUT[function.__name__]}(..., out=x) writes to a tensor x"
        elif by_name and str(error).startswith("too many"):
            remedy = remedy or f"give {', '.join(by_name)} by name"
        shown = [each.replace(annotation=each.empty) for name, each in given.items() if name != "self"]
        special = function.__name__ in ("__call__", "__init__")  # of the first argument
        called = type(args[0]).__name__ if special else function.__name__
        signed = f"{called}{signature.replace(parameters=shown, return_annotation=signature.empty)}"
        advice = f"; {remedy}" * bool(remedy)
        raise TypeError(f"{called}: {error}; the signature is {signed}{advice}") from None
