"""The public interface: its names, its docstrings, its types."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib.resources import files
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
from signatures import kept, lost, public, signature_of

import wgslice as wg
import wgslice.array_api as xp
from wgslice import dialects, zarr

NAMES = [
    *(
        "Adapter",
        "BoundOperator",
        "CompiledOperator",
        "CompiledTextureCopy",
        "Device",
        "Explanation",
        "ExtractWindows",
        "FromTexture",
        "InsertWindows",
        "Plan",
        "Program",
        "SelfTest",
        "Slice",
        "Slice1",
        "SliceGrad",
        "Tensor",
        "TensorDesc",
        "ToTexture",
        "Tuning",
    ),
    *("CaptureRefused", "ComputationRefused", "DeviceLostError", "NoAdapterError", "NoKernelError"),
    "OutOfDeviceMemory",
    "WindowError",
    *(
        "adapters",
        "arange",
        "as_strided",
        "asarray",
        "capture",
        "default_device",
        "dialects",
        "empty",
        "explain",
        "from_buffer",
        "from_dlpack",
        "from_texture",
        "full",
        "load_program",
        "map_texture",
        "ones",
        "selftest",
        "timed",
        "tune",
        "zeros",
    ),
    *(
        "broadcast_to",
        "concat",
        "copy_to_texture",
        "copyto",
        "extract_windows",
        "flip",
        "insert_windows",
        "moveaxis",
        "pad",
        "pad_windows",
        "unpad_windows",
        "permute",
        "put",
        "repeat",
        "reshape",
        "reverse",
        "roll",
        "slice",
        "slice1",
        "slice_grad",
        "split",
        "squeeze",
        "stack",
        "stream",
        "take",
        "tile",
        "tile_offsets",
    ),
]
PYGFX_SIGNATURES = {  # by name: their module imports pygfx
    "device": "()",
    "to_texture": "(x, *, dim=2, colorspace='srgb')",
    "to_buffer": "(x)",
    "gpu_texture": "(texture)",
    "update": "(resource, x)",
}
ATTRIBUTES = [
    "flags",
    "base",
    "flat",
    "take",
    "repeat",
    "put",
    "fill",
    "diagonal",
    "shape",
    "dtype",
    "ndim",
    "size",
    "itemsize",
    "nbytes",
    "device",
    "buffer",
    "is_packed",
    "copy",
    "numpy",
    "item",
    "tolist",
    "astype",
    "T",
    "mT",
    "transpose",
    "swapaxes",
    "reshape",
    "ravel",
    "flatten",
    "squeeze",
    "view",
]


def test_the_public_names_are_these() -> None:
    assert wg.__all__ == sorted(NAMES)
    for name in NAMES:
        assert getattr(wg, name).__name__.removeprefix("wgslice.") == name


DESCRIBED = [
    name
    for name, each in public().items()
    if "\nParameters\n" in (inspect.getdoc(each) or "")
    and name != "wgslice.Program.__call__"  # names `out` too
]


def test_signatures_are_those_that_are_kept() -> None:
    """`python tests/signatures.py` keeps new ones, and refuses to lose any."""
    assert {name: signature_of(each) for name, each in public().items()} == kept()


@pytest.mark.parametrize(
    ("before", "now", "shrinks"),
    [
        ("(x, axis=0)", "(x, axis=0, *, out=None)", False),
        ("(x, *, out=None)", "(x, *, device=None, out=None)", False),
        ("(x, *order, axes=None)", "(x, *order, axes=None, out=None)", False),
        ("(x, shape=(0, 0))", "(x, shape=(0, 0), order='C')", False),
        ("(x, axis=0)", "(x, axis)", True),
        ("(x, axis=0)", "(x, axis=None)", True),
        ("(x, axis=0)", "(x, *, axis=0)", True),
        ("(x, axis=0)", "(axis=0)", True),
        ("(x, *, out=None)", "(x)", True),
        ("(x)", "(x, out)", True),
        ("(x)", "(x, *, out)", True),
        ("(x, shape=(0, 0))", "(x, shape=(0, 1))", True),
    ],
)
def test_a_signature_shrinks_where_a_call_no_longer_fits(before: str, now: str, shrinks: bool) -> None:
    assert lost(before, now) == shrinks


@pytest.mark.pygfx
@pytest.mark.parametrize("name", PYGFX_SIGNATURES)
def test_signatures_for_pygfx(name: str) -> None:
    function = resolve_name(f"wgslice.pygfx:{name}")
    assert signature_of(function) == PYGFX_SIGNATURES[name]
    check_docstring(function)


def test_a_tensor_has_its_attributes() -> None:
    for name in ATTRIBUTES:
        assert hasattr(wg.Tensor, name)


def test_errors_are_pythons_own_kinds() -> None:
    assert issubclass(wg.WindowError, ValueError)
    assert issubclass(wg.OutOfDeviceMemory, MemoryError)
    assert issubclass(wg.NoAdapterError, RuntimeError)
    assert issubclass(wg.NoKernelError, RuntimeError)
    assert issubclass(wg.DeviceLostError, RuntimeError)
    assert issubclass(wg.CaptureRefused, RuntimeError)
    assert issubclass(wg.ComputationRefused, NotImplementedError)
    assert not issubclass(wg.ComputationRefused, TypeError)


@pytest.mark.parametrize("name", DESCRIBED)
def test_docstrings_name_the_parameters_that_exist(name: str) -> None:
    check_docstring(public()[name])


def check_docstring(documented: Any) -> None:
    """It names each parameter, in order."""
    docstring = inspect.getdoc(documented) or ""
    signature = inspect.signature(documented).parameters.values()
    stars = inspect.Parameter.VAR_KEYWORD
    parameters = ["**" * (each.kind is stars) + each.name for each in signature if each.name != "self"]
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", docstring, re.DOTALL | re.MULTILINE)
    named = re.findall(r"^(\*\*\w+|\w[\w, ]*(?= : ))", section[1], re.MULTILINE) if section else []
    assert [name for names in named for name in names.split(", ")] == parameters


ALONE = {"tune"}  # its output differs from machine to machine
MAIN = [
    name
    for name in NAMES
    if (inspect.isfunction(getattr(wg, name)) or hasattr(getattr(wg, name), "compile")) and name not in ALONE
]


STANDARD = [
    function for function in (getattr(xp, name) for name in xp.__all__) if inspect.isfunction(function)
]
CONVERTERS = [
    each for each in (getattr(dialects, name) for name in dialects.__all__) if inspect.isfunction(each)
]
FUNCTIONS = [function for function in (getattr(wg, name) for name in NAMES) if inspect.isfunction(function)]


@pytest.mark.parametrize(
    "function",
    [*FUNCTIONS, *STANDARD, *CONVERTERS],
    ids=lambda each: f"{each.__module__}.{each.__qualname__}",
)
def test_docstrings_of_functions_are_complete(function: Any) -> None:
    summary, _, body = (inspect.getdoc(function) or "").partition("\n\n")
    assert summary.endswith(".")
    assert "\n" not in summary
    assert not summary.startswith(("What ", "Tell ", "As "))
    headings = re.findall(r"^(\w+)\n-+$", body, re.MULTILINE)
    expected = ["Parameters"] * bool(inspect.signature(function).parameters) + ["Returns", "Raises"]
    expected += ["Examples"] * (function.__name__ not in ALONE)
    assert [each for each in headings if each != "Notes"] == expected
    check_docstring(function)


METHODS = [method for name, method in inspect.getmembers(wg.Tensor, inspect.isfunction) if name[0] != "_"]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_docstrings_of_methods_are_complete(method: Any) -> None:
    docstring = inspect.getdoc(method) or ""
    assert docstring.partition("\n")[0].endswith(".")
    headings = re.findall(r"^(\w+)\n-+$", docstring, re.MULTILINE)
    expected = ["Parameters"] * (len(inspect.signature(method).parameters) > 1) + ["Returns", "Raises"]
    assert [each for each in headings if each not in ("Notes", "Examples")] == expected
    check_docstring(method)


@pytest.mark.first_adapter
@pytest.mark.parametrize(
    "documented",
    [
        *(getattr(wg, name) for name in MAIN),
        *STANDARD,
        *CONVERTERS,
        wg.Tensor,
        wg.Tensor.transpose,
        wg.Tensor.view,
        wg.TensorDesc,
        zarr.enable,
    ],
    ids=lambda each: f"{each.__module__}.{each.__qualname__}",
)
def test_docstring_examples_run(device: wg.Device, monkeypatch: pytest.MonkeyPatch, documented: Any) -> None:
    for module in ("wgslice.gpu.device", "wgslice"):
        monkeypatch.setattr(f"{module}.default_device", lambda: device)
    if documented is wg.selftest:  # which tests of its own run, and takes most of their time
        monkeypatch.setattr("wgslice.doctor.selftest.by_kernel", lambda *_: {})
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, documented.__name__, globs={})
    results = doctest.DocTestRunner().run(example)
    assert results.attempted >= 2
    assert results.failed == 0


def test_the_package_is_typed() -> None:
    assert files("wgslice").joinpath("py.typed").is_file()


def test_versions_agree() -> None:
    from importlib.metadata import version

    assert version("wgslice") == wg.__version__
    assert np.dtype(np.uint8).itemsize == 1


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("transpose", "x.transpose(axes)"),
        ("append", "np.append takes tensors"),
        ("expand_dims", "np.expand_dims takes tensors"),
        ("float32", "NumPy has np.float32"),
        *(
            (name, "nothing is computed on them: compute with x.numpy()")
            for name in ("sum", "add", "sort", "matmul")
        ),
    ],
)
def test_absent_numpy_names_point_to_a_replacement(name: str, what: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'wgslice' has no attribute '{name}': .*") as absent:
        getattr(wg, name)
    assert what in str(absent.value)


def test_other_absent_names_are_plain_errors() -> None:
    for name in ("nothing", "__nothing__", "_NoValue"):
        with pytest.raises(AttributeError, match=f"^module 'wgslice' has no attribute '{name}'$"):
            getattr(wg, name)


def test_tab_shows_public_names_only() -> None:
    assert [name for name in dir(wg) if not name.startswith("_")] == sorted(wg.__all__)
    assert {name for name in dir(wg) if name.startswith("_")} == {"__all__", "__doc__", "__version__"}
