"""A pytest plugin that records what each test asked of wgslice: `pytest -p suites.recording --records FILE`.

A test that asked nothing, or moved nothing on the GPU, proves nothing, whether it passes or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from inspect import isfunction
from pathlib import Path
from threading import local
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import wgslice as wg
from wgslice import array_api
from wgslice.gpu.hosts.wgpu_native import WgpuNative
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import ReadyPlan
from wgslice.numpy_protocol.flat import Flat

# Methods that a comparison calls, whatever a test is about: they read back or describe.
READING = {
    *("numpy", "numpy_async", "item", "tolist", "tobytes", "sum", "to_device"),
    *("__array__", "__array_namespace__", "__dlpack__", "__dlpack_device__", "__dask_tokenize__"),
    *("__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__len__", "__repr__"),
    *("__delattr__", "__getattr__", "__getstate__", "__init__", "__post_init__", "__setattr__"),
    *("__setstate__", "__sizeof__"),
}
# Functions that make a tensor of host data or of nothing: calls count in suites about creation only.
CREATING = {"arange", "asarray", "empty", "from_buffer", "from_dlpack", "full", "ones", "zeros"}


class Record:
    """What one test asked of wgslice."""

    def __init__(self) -> None:
        self.calls = 0  # of functions and methods with tensors, the outermost ones
        self.creations = 0
        self.moves = 0  # plans that ran on the GPU; uploads are none
        self.readbacks = 0
        self.ended_by = ""  # the last call's exception type, if it raised
        self.refused: list[str] = []  # names of calls that raised ComputationRefused
        self.absent: list[str] = []  # names of calls that raised another NotImplementedError


EXAMPLES = 50  # of each Hypothesis test that does not say how many


class Nesting(local):
    """Whether this thread is inside of a counted call."""

    inside = False


record = Record()
nesting = Nesting()


def name_of(name: str, arguments: tuple[Any, ...]) -> str:
    """Return the name of a call: of NumPy's function, where a method stands for one."""
    if name == "Tensor.__array_function__":
        return f"numpy.{arguments[1].__name__}"
    if name == "Tensor.__array_ufunc__":
        return f"numpy.{arguments[1].__name__}"
    return name


def counted(name: str, function: Callable[..., Any], counter: str | None = "calls") -> Callable[..., Any]:
    """Return a function whose outermost calls are recorded with their exceptions; None counts none."""

    @wraps(function)
    def count(*arguments: Any, **options: Any) -> Any:
        if nesting.inside:
            return function(*arguments, **options)
        nesting.inside = True
        if counter:
            setattr(record, counter, getattr(record, counter) + 1)
            record.ended_by = ""
        try:
            return function(*arguments, **options)
        except Exception as error:
            if counter:
                note(name_of(name, arguments), error)
            raise
        finally:
            nesting.inside = False

    return count


def note(name: str, error: Exception) -> None:
    """Record an exception that leaves wgslice, by its type alone."""
    record.ended_by = type(error).__name__
    if isinstance(error, wg.ComputationRefused):
        record.refused.append(name)
    elif isinstance(error, NotImplementedError):
        record.absent.append(name)


def count_calls(of: type | ModuleType, prefix: str, names: set[str]) -> None:
    """Record the calls of functions of a class or a module."""
    for name in names:
        function = getattr(of, name)
        if isfunction(function):
            counter = None if name in READING else "creations" if name in CREATING else "calls"
            setattr(of, name, counted(f"{prefix}.{name}", function, counter))


def count_everything() -> None:
    """Record calls of tensors' methods and of public functions, and what runs on the GPU."""
    methods = {name for kind in wg.Tensor.__mro__[:-1] for name in vars(kind)}
    count_calls(wg.Tensor, "Tensor", {name for name in methods if not name.startswith("_") or "__" in name})
    count_calls(Flat, "flat", {"__getitem__", "__next__", "__setitem__", "copy"})
    count_calls(wg, "wgslice", set(wg.__all__) - {"explain", "selftest", "tune"})
    count_calls(array_api, "array_api", set(array_api.__all__))
    play, mapped_bytes = Recorder.play, WgpuNative.mapped_bytes

    @wraps(play)
    def count_moves(self: Recorder, *bound: ReadyPlan) -> None:
        record.moves += sum(bool(each.commands) for each in bound)
        play(self, *bound)

    @wraps(mapped_bytes)
    def count_readbacks(host: WgpuNative, buffer: Any, nbytes: int) -> memoryview:
        record.readbacks += 1  # of a staging buffer, or of a tensor's own
        return mapped_bytes(host, buffer, nbytes)

    Recorder.play = count_moves  # type: ignore[method-assign]  # counted
    WgpuNative.mapped_bytes = count_readbacks  # type: ignore[assignment, method-assign]  # counted


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file that records are appended to, a line of JSON a test."""
    parser.addoption("--records", type=Path, required=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Begin a test's record."""
    global record
    record = Record()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Write the record of a test whose call has ended, or whose setup or teardown failed."""
    report: Any = yield
    if call.when == "call" or report.outcome != "passed":
        error = call.excinfo.value if call.excinfo else None
        line = {
            "id": item.nodeid,
            "outcome": report.outcome,
            "when": call.when,
            "error": type(error).__name__ if error else "",
            "refusal": any(isinstance(each, wg.ComputationRefused) for each in chain(error)),
            "message": str(error)[-600:] if error else "",
            **vars(record),
        }
        with item.config.getoption("--records").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, and those that it was raised from or while handling."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


settings.register_profile(
    "suites",
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
settings.load_profile("suites")
wg.asarray([1, 0])[[1, 0]].numpy()  # or the checks of a new device count as the first test's moves
count_everything()
