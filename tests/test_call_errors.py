"""Calls of newcomers, who know NumPy, PyTorch or CuPy: the error is the library's, and its remedy works."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

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


class Sparse:
    """A matrix of SciPy's, which NumPy takes for one object."""

    shape = (3, 3)
    dtype = np.dtype(np.int32)

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous")

    def __getitem__(self, key: Any) -> Sparse:
        return self

    def toarray(self) -> Any:
        return np.eye(3, dtype=np.int32)


SPARSE: Any = Sparse()
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
    *(
        (
            call,
            f"{name}: got an unexpected keyword argument 'out'; the signature is {signature}; "
            f"np.{numpys}(..., out=x) writes to a tensor x",
        )
        for name, signature, numpys, call in (
            ("take", "take(x, indices, axis=None)", "take", lambda x: LIBRARY.take(x, [0], out=x)),
            ("concat", "concat(arrays, axis=0)", "concatenate", lambda x: LIBRARY.concat([x], out=x)),
            ("stack", "stack(arrays, axis=0)", "stack", lambda x: LIBRARY.stack([x], out=x)),
        )
    ),
    (
        lambda x: LIBRARY.arange(x),
        "arange: start: a tensor where host numbers are needed: item() or numpy() reads it back",
    ),
    (
        lambda x: LIBRARY.arange(0, 9, x[0, 0]),
        "arange: step: a tensor where host numbers are needed: item() or numpy() reads it back",
    ),
    (
        lambda _: LIBRARY.asarray(b"\1\2"),
        "asarray: array is of type bytes: must be an array; np.frombuffer(array, dtype) makes one of its "
        "bytes",
    ),
    *(
        (
            call,
            f"{name}: array is of type Sparse: must have all its elements in memory, as array.toarray() has",
        )
        for name, call in {
            "asarray": lambda _: LIBRARY.asarray(SPARSE),
            "assignment": lambda x: x.__setitem__(..., SPARSE),
            "numpy.copyto": lambda x: np.copyto(x, SPARSE),
            "full": lambda _: LIBRARY.full((3, 3), SPARSE),
        }.items()
    ),
    (
        lambda x: x[0:2.0],
        "slice indices must be integers or None or have an __index__ method; int(index) makes an integer of "
        "2.0, and i // 2 gives one",
    ),
    (lambda x: np.flip(x, cast("Any", 1.5)), "numpy.flip: axes = 1.5: must be an integer, not float"),
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


def test_a_float_index_names_integers(x: Any) -> None:
    for key, words in (
        (1.5, "valid indices; int(index) makes an integer of 1.5, and i // 2 gives one"),
        (
            (0, np.float32(1)),
            f"valid indices; int(index) makes an integer of {np.float32(1)!r}, and i // 2 gives one",
        ),
        (np.array([1.0]), "integer (or boolean) type; indices.astype(np.int64) makes integers"),
        (unread((2,)), "has dtype float32; indices.numpy().astype(np.int64) makes integers"),
    ):
        for call in (x.__getitem__, lambda key: x.__setitem__(key, 0)):
            with pytest.raises(IndexError) as refused:
                call(key)
            assert str(refused.value).endswith(words)
    with pytest.raises(
        TypeError, match=r"indices have dtype float64: must be integers; indices.astype\(np.int64\)"
    ):
        wg.take(x, [1.0])


def test_flags_name_views_and_copies_instead_of_being_set(device: wg.Device) -> None:
    x: Any = wg.asarray(np.arange(3), device=device)
    calls: dict[str, Callable[[], Any]] = {
        "writeable": lambda: setattr(x.flags, "writeable", False),
        "anything": lambda: setattr(x.flags, "anything", False),
        "WRITEABLE": lambda: x.flags.__setitem__("WRITEABLE", False),
    }
    for name, call in calls.items():
        with pytest.raises(
            AttributeError, match=rf"flags cannot be set \({name}\): wg.broadcast_to\(x, x.shape\)"
        ):
            call()
    with pytest.raises(AttributeError, match=r"setflags'.*use instead: wg.broadcast_to\(x, x.shape\)"):
        x.setflags(write=False)
    assert x.flags.writeable
    frozen = wg.broadcast_to(x, x.shape)
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 5
    np.testing.assert_array_equal(frozen.numpy(), np.arange(3))


def test_sizes_are_refused_before_numbers_are_computed(device: wg.Device) -> None:
    beyond = device.wgpu_device.limits["max-buffer-size"] + 1
    calls: list[Callable[[], wg.Tensor]] = [
        lambda: wg.arange(10**13, device=device),
        lambda: wg.arange(1, 0, -1e-13, device=device),
        lambda: wg.arange(beyond, dtype="u1", device=device),
        lambda: wg.arange(beyond // 8 + 1, device=device),
        lambda: xp.linspace(0, 1, 10**13, device=device),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"^(arange|linspace): (shape\[0\] = \d+: must be|a buffer of \d+ by)"
        ):
            call()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("__array_interface__", "x.numpy()  # as in PIL.Image.fromarray(x.numpy())"),
        ("devices", "wg.adapters()  # and x.device"),
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
