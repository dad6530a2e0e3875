"""Calls of newcomers, who know NumPy, PyTorch or CuPy: the error is the library's, and its remedy works."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import on_one_adapter, unread

import wgslice as wg
import wgslice.array_api as xp

FUNCTIONS = [each for name in wg.__all__ if inspect.isfunction(each := getattr(wg, name))]
STANDARD = [each for name in xp.__all__ if inspect.isfunction(each := getattr(xp, name))]
METHODS = [
    method for name, method in inspect.getmembers(wg.Tensor, inspect.isfunction) if not name.startswith("_")
]
LIBRARY: Any = wg  # for calls that type checkers refuse


@pytest.fixture
def x() -> Any:
    return unread((3, 4), np.int32)


def has(function: Callable[..., Any], kind: Any) -> bool:
    return any(each.kind is kind for each in inspect.signature(function).parameters.values())


@pytest.mark.parametrize(
    "function", [*FUNCTIONS, *STANDARD, *METHODS], ids=lambda each: f"{each.__module__}.{each.__qualname__}"
)
def test_a_call_that_does_not_fit_shows_the_signature(function: Any) -> None:
    name = function.__name__
    shows = re.escape(f"; the signature is {name}(")
    if not has(function, inspect.Parameter.VAR_POSITIONAL):
        with pytest.raises(TypeError, match=f"^{name}: too many positional arguments{shows}"):
            function(*range(20))
    if not has(function, inspect.Parameter.VAR_KEYWORD):
        with pytest.raises(TypeError, match=f"^{name}: .* argument.*{shows}"):
            function(unheard_of=0)


CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda x: LIBRARY.asarray(x, np.float64),
        "asarray: too many positional arguments; the signature is asarray(array, *, dtype=None, device=None, "
        "copy=None); give dtype, device, copy by name",
    ),
    (
        lambda x: LIBRARY.capture(np.flip, x),
        "capture: too many positional arguments; the signature is capture(function, /, **tensors); name the "
        "tensors, as in capture(f, x=x)",
    ),
    (
        lambda x: LIBRARY.array_api.concat(x, x),
        "concat: too many positional arguments; the signature is concat(arrays, /, *, axis=0); join arrays "
        "as one sequence, concat([x, y])",
    ),
    (
        lambda _: LIBRARY.default_device("vulkan"),
        "default_device: too many positional arguments; the signature is default_device(); other functions "
        "take device=name, and Device.request(name) makes one",
    ),
    (
        lambda _: LIBRARY.Tensor([1, 2]),
        "Tensor: missing a required argument: 'memory'; the signature is Tensor(device, memory, dtype, "
        "layout, writeable=True, base=None); asarray(array) makes a tensor",
    ),
    (
        lambda _: LIBRARY.Device(),
        "Device: missing a required argument: 'wgpu_device'; the signature is Device(wgpu_device); "
        "Device.request(name) makes a device",
    ),
    (
        lambda x: LIBRARY.slice(x, np.s_[::2]),
        "slice: missing a required argument: 'sizes'; the signature is slice(x, offsets, sizes, "
        "strides=None, *, out=None); x[key] takes slices",
    ),
    (
        lambda x: LIBRARY.flip(x, dim=0),
        "flip: got an unexpected keyword argument 'dim'; the signature is flip(x, axis=None); write axis= "
        "for dim=",
    ),
    (
        lambda x: LIBRARY.array_api.stack([x], dim=0),
        "stack: got an unexpected keyword argument 'dim'; the signature is stack(arrays, /, *, axis=0); "
        "write axis= for dim=",
    ),
    (
        lambda x: LIBRARY.permute(x, dims=(1, 0)),
        "permute: got an unexpected keyword argument 'dims'; the signature is permute(x, *order, axes=None); "
        "write axes= for dims=",
    ),
    (
        lambda x: x.take([0], dim=0),
        "take: got an unexpected keyword argument 'dim'; the signature is take(indices, axis=None, out=None, "
        "mode='raise'); write axis= for dim=",
    ),
    *(
        (call, f"{name}: axis is of type Tensor: must be an integer; join arrays as one sequence, [x, y]")
        for name, call in {
            "concat": lambda x: wg.concat(x, x),
            "stack": lambda x: wg.stack(x, x),
            "numpy.concatenate": lambda x: np.concatenate(x, x),
            "numpy.stack": lambda x: np.stack(x, x),
        }.items()
    ),
    (
        lambda x: LIBRARY.explain(x, np.s_[::2]),
        "explain: slice(None, None, 2): a view or a descriptor takes only device=; index first, as in "
        "explain(x[key]), or name the function first, as in explain(f, x, axis=1)",
    ),
    *(
        (
            call,
            f"{name} is of type ndarray: must be a Tensor; give NumPy x.numpy() to write x to an array",
        )
        for name, call in {
            "numpy.copyto: dst": lambda x: np.copyto(np.zeros(x.shape, x.dtype), x),
            "copyto: dst": lambda x: LIBRARY.copyto(np.zeros(x.shape, x.dtype), x),
            "put: x": lambda x: LIBRARY.put(np.zeros(3), [0], x),
            "numpy.put: a": lambda x: np.put(np.zeros(3), [0], x),
            "numpy.concatenate: out": lambda x: np.concatenate([x, x], out=np.zeros((6, 4), x.dtype)),
        }.items()
    ),
    *(
        (
            lambda x, call=call, path=path: call(path),
            f"{name} is a path, {path!r}: must be an array; open it first, as with "
            'np.load(path, mmap_mode="r") or zarr.open_array(path, mode="r")',
        )
        for path in ("volume.npy", Path("volume.npy"))
        for name, call in {
            "stream: source": lambda path: wg.stream(path, 0),
            "asarray: array": wg.asarray,
        }.items()
    ),
    *(
        (
            call,
            f"{name}: Cannot interpret '4' as a data type: a shape is one tuple, and x.reshape takes sizes",
        )
        for name, call in {
            "zeros": lambda _: LIBRARY.zeros(3, 4),
            "ones": lambda _: LIBRARY.ones(3, 4),
            "view": lambda x: x.view(4),
        }.items()
    ),
    (
        lambda x: x.view(4, 3),
        "view: too many positional arguments; the signature is view(dtype); x.reshape(shape) changes the "
        "shape",
    ),
]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[words.partition(":")[0] for _, words in CALLS])
def test_a_mistaken_call_names_the_right_one(x: Any, number: int) -> None:
    call, words = CALLS[number]
    with pytest.raises(TypeError) as refused:
        call(x)
    assert str(refused.value) == words


@on_one_adapter
def test_remedies_of_mistaken_calls_work(device: wg.Device) -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    x = wg.asarray(array, dtype=np.int32, device=device)
    written = np.zeros_like(array)
    np.copyto(written, x.numpy())
    np.testing.assert_array_equal(written, array)
    program: Any = wg.capture(lambda x: x[::2].copy(), x=x)
    np.testing.assert_array_equal(program(x=x).numpy(), array[::2])
    words = re.escape("the signature is Program(**bindings); name the tensors, as in program(x=x)")
    with pytest.raises(TypeError, match=f"^Program: too many positional arguments; {words}$"):
        program(x)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("to", "x.to_device(device)  # or x.numpy(), in host memory"),
        ("cpu", "x.numpy()"),
        ("get", "x.numpy()"),
        ("permute", "wg.permute(x, *order)"),
        ("unsqueeze", "np.expand_dims(x, axis)"),
    ],
)
def test_methods_of_other_libraries_name_a_replacement(x: Any, name: str, remedy: str) -> None:
    words = f"'Tensor' object has no attribute '{name}': not available for tensors; use instead: {remedy}"
    with pytest.raises(AttributeError, match=f"^{re.escape(words)}$"):
        getattr(x, name)


@pytest.mark.parametrize("function", [wg.asarray, wg.capture], ids=lambda each: each.__name__)
def test_functions_are_pickled_by_name(function: Any) -> None:
    """As Dask sends them to other processes."""
    assert pickle.loads(pickle.dumps(function)) is function


@on_one_adapter
def test_a_call_that_does_not_fit_inside_is_raised_as_it_is(device: wg.Device) -> None:
    x = wg.zeros((3, 4), device=device)
    with pytest.raises(TypeError, match=r"<lambda>\(\) got an unexpected keyword argument 'x'$"):
        wg.capture(lambda y: y, x=x)
