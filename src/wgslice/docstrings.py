"""Sections of docstrings of NumPy's and the array API's functions, inserted by signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import fill
from typing import Any, TypeAlias, TypeVar

Entry: TypeAlias = tuple[str, str]  # a type, or the names of errors; and its description
Function = TypeVar("Function", bound=Callable[..., Any])

MAX_COLUMNS = 88

# Parameters that mean the same in every function that does not describe its own.
PARAMETERS: dict[str, Entry] = {
    "x": ("Tensor", "Of any rank and dtype."),
    "arrays": ("sequence of Tensor", "At least one, of one dtype and on one device."),
    "axis": ("int", "The dimension; a negative one counts from the last."),
    "choices": ("sequence of Tensor or array_like", "Of one dtype and of shapes that broadcast."),
    "copy": ("bool, optional", "True: always copy. False: never, but raise. None: copy only if needed."),
    "device": ("Device or str, optional", "A device or a part of an adapter's name, else the default one."),
    "dtype": ("dtype_like, optional", "Of elements of 1, 2, 4, 8 or 16 bytes; float64 by default."),
    "fill_value": ("scalar", "Value of every element, cast as NumPy assigns it."),
    "indices": (
        "array_like of int, or Tensor of integers",
        "Of any shape; negative ones count from the end.",
    ),
    "k": ("int", "The diagonal: 0 is the main one, positive ones are above it."),
    "mode": ('{"raise", "wrap", "clip"}', "Rule for indices out of range, as in NumPy."),
    "order": ('{"C", "F", "A", "K"}', "Order of the elements, as in NumPy."),
    "out": ("Tensor, optional", "Of the result's shape and dtype; written and returned."),
    "shape": ("int or sequence of int", "Sizes of the result, 0 to 8 of them."),
}

COPY = "Tensor", "Packed, in a new buffer. The work is one submission, not waited for."
NEW = "Tensor", "Packed, in a new buffer. Uploads and writes are submitted, not waited for."
VIEW = "Tensor", "A view of the buffer of `x`."

NO_TENSOR = "TypeError", "An argument is not the Tensor that it must be, or a number is not an integer."
NO_AXIS = "ValueError", "An axis is out of range (`numpy.exceptions.AxisError`) or repeated."
NO_MEMORY = "OutOfDeviceMemory, DeviceLostError", "The device has no memory left for the result, or is lost."
NO_INDEX = "IndexError", 'An index in an array is out of range, in the mode "raise".'
NO_INTEGER = "TypeError", "A number is not an integer, or a tensor has another dtype."
NO_ORDER = "ValueError", "The order is another one, or the buffer is destroyed or mapped."
UNREADABLE = "ValueError", "A buffer is destroyed, mapped or on another device; or the result exceeds rank 8."
MATRICES = "Tensor", "Matrices `(…, m, n)` of any dtype."

WRITTEN = "None", "The work is submitted, not waited for."

VIEWING = VIEW, NO_TENSOR, NO_AXIS
COPYING = COPY, NO_TENSOR, UNREADABLE, NO_MEMORY

NO_DTYPE = "TypeError", "The dtype does not have elements of 1, 2, 4, 8 or 16 bytes."
NO_SHAPE = "ValueError", "A size is negative, the rank is above 8, or the device has no buffer as large."
NO_DEVICE = "NoAdapterError", "No adapter matches `device`."
MAKING = NEW, NO_DTYPE, NO_SHAPE, NO_DEVICE, NO_MEMORY


def documented(returns: Entry, *raises: Entry, **parameters: Entry) -> Callable[[Function], Function]:
    """Insert the sections Parameters, Returns and Raises into a function's docstring."""

    def complete(function: Function) -> Function:
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        described = [(name, *(parameters.get(name) or PARAMETERS[name])) for name in names]
        heads = [(f"{name} : {kind}", text) for name, kind, text in described]
        errors: dict[str, list[str]] = {}
        for name, text in raises:
            errors.setdefault(name, []).append(text)
        return insert(
            function,
            *[section("Parameters", *heads)] * bool(heads),
            section("Returns", returns),
            section("Raises", *((name, " ".join(texts)) for name, texts in errors.items())),
        )

    return complete


def documented_as(other: Callable[..., Any]) -> Callable[[Function], Function]:
    """Insert the sections Parameters, Returns and Raises of another function's docstring."""
    sections = inspect.cleandoc(other.__doc__ or "").partition("Parameters\n")[2]
    return lambda function: insert(function, "Parameters\n" + sections.partition("\n\nExamples\n")[0])


def insert(function: Function, *sections: str) -> Function:
    """Insert sections into a function's docstring, and complete its example, if any."""
    if function.__doc__ is not None:  # as under -OO
        summary, prompt, example = inspect.cleandoc(function.__doc__).partition("\n\n>>> ")
        examples = f"Examples\n--------\n>>> import wgslice.array_api as xp{prompt[1:]}{example}"
        function.__doc__ = "\n\n".join([summary, *sections, *[examples] * bool(prompt)])
    return function


def section(title: str, *entries: Entry) -> str:
    """A section of a numpydoc docstring."""
    indented = (
        f"{head}\n{fill(text, MAX_COLUMNS, initial_indent='    ', subsequent_indent='    ')}"
        for head, text in entries
    )
    return "\n".join([title, "-" * len(title), *indented])
