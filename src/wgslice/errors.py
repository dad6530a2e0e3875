"""The exceptions that Python lacks, and the one place where a refusal gets its operator's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numpy.exceptions import AxisError

__all__ = ["DeviceLostError", "NoAdapterError", "OutOfDeviceMemory", "WindowError", "named"]


class WindowError(ValueError):
    """A window breaks a rule: outside its tensor, empty, without a step, or of the wrong rank."""


class NoAdapterError(RuntimeError):
    """No adapter fits the request. The message says what to install on this system."""


class DeviceLostError(RuntimeError):
    """The device is gone: reset, unplugged or destroyed. Its tensors cannot be read any more."""


class OutOfDeviceMemory(MemoryError):  # noqa: N818 -- named like MemoryError
    """The device has no memory left for a buffer. Dropping tensors frees theirs at once."""


@contextmanager
def named(operator: str) -> Iterator[None]:
    """Put the operator's name in front of every refusal raised inside. Used at the public border, once."""
    try:
        yield
    except AxisError as error:  # prints its attributes, not its arguments
        axis, rank = error.args
        raise AxisError(axis, rank, operator) from None
    except (ValueError, TypeError) as error:
        error.args = (f"{operator}: {error}",)
        raise
