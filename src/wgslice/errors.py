"""Exceptions of this package, and the context manager that prefixes errors with an operator's name."""

from __future__ import annotations

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
            raise AxisError(axis, rank, ": ".join([self.operator, *inner])) from None
        if isinstance(error, PREFIXED):
            error.args = (f"{self.operator}: {error}",)
        elif error is not None and hasattr(error, "__notes__"):  # an error of wgpu's
            error.add_note(f"raised by {self.operator}")
