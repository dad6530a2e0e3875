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

import wgslice as wg
import wgslice.array_api as xp
from wgslice import dialects, directml, onnx, zarr

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
SIGNATURES = {
    wg.asarray: "(array, *, dtype=None, device=None, copy=None)",
    wg.empty: "(shape, dtype=<class 'numpy.float64'>, *, device=None)",
    wg.zeros: "(shape, dtype=<class 'numpy.float64'>, *, device=None)",
    wg.ones: "(shape, dtype=<class 'numpy.float64'>, *, device=None)",
    wg.full: "(shape, fill_value, dtype=None, *, device=None)",
    wg.arange: "(start, stop=None, step=1, *, dtype=None, device=None)",
    wg.as_strided: "(x, shape, strides, *, offset=0)",
    wg.from_buffer: "(gpu_buffer, shape, dtype, *, offset=0, strides=None, device=None)",
    wg.from_dlpack: "(x, device=None)",
    wg.from_texture: (
        "(texture, *, origin=(0, 0, 0), size=None, mip_level=0, aspect='all', device=None, out=None)"
    ),
    wg.map_texture: "(texture, *, origin=(0, 0, 0), size=None, mip_level=0, aspect='all', device=None)",
    wg.copy_to_texture: "(x, texture, *, origin=(0, 0, 0), mip_level=0, alpha=None)",
    wg.FromTexture: "(format, output, *, origin=(0, 0, 0), mip_level=0, aspect='all')",
    wg.ToTexture: "(input, format, *, origin=(0, 0, 0), mip_level=0, alpha=None)",
    wg.slice1: "(x, offsets, sizes, strides=None, *, output_sizes=None, out=None)",
    wg.slice: "(x, offsets, sizes, strides=None, *, out=None)",
    wg.slice_grad: "(g, offsets, sizes, strides=None, *, output_sizes, out=None)",
    wg.SliceGrad: "(input, output, offsets, sizes, strides=None)",
    wg.extract_windows: "(x, offsets, sizes, strides=None, *, fill=None, outside=None, out=None)",
    wg.ExtractWindows: "(input, output, offsets, sizes, strides=None, fill=None, *, outside=None)",
    wg.insert_windows: "(x, offsets, windows, strides=None, *, overlap='refuse', outside=None)",
    wg.InsertWindows: "(input, output, offsets, strides=None, *, sizes=None, overlap='refuse', outside=None)",
    wg.pad_windows: "(windows, size=None, *, fill=0)",
    wg.unpad_windows: "(x, sizes)",
    wg.reverse: "(x, axes=None, *, axis=None)",
    wg.permute: "(x, *order, axes=None)",
    wg.concat: "(arrays, axis=0)",
    wg.stack: "(arrays, axis=0)",
    wg.split: "(x, indices_or_sections, axis=0)",
    wg.roll: "(x, shift, axis=None)",
    wg.pad: "(x, pad_width, mode='constant', *, constant_values=0, interior=0)",
    wg.take: "(x, indices, axis=None)",
    wg.tile: "(x, repetitions)",
    wg.repeat: "(x, repeats, axis=None)",
    wg.flip: "(x, axis=None)",
    wg.moveaxis: "(x, source, destination)",
    wg.stream: "(source, key, out=None, *, limit='256 MiB', progress=None, dtype=None, device=None)",
    wg.tile_offsets: "(shape, tile, overlap=0)",
    wg.broadcast_to: "(x, shape)",
    wg.reshape: "(x, shape)",
    wg.squeeze: "(x, axis=None)",
    wg.copyto: "(dst, src)",
    wg.Slice: "(input, output, offsets, sizes, strides=None)",
    wg.adapters: "()",
    wg.explain: "(what, /, *args, **kwargs)",
    wg.default_device: "()",
    wg.selftest: "(device=None, *, progress=None)",
    wg.Slice1: "(input, output, offsets, sizes, strides=None)",
    wg.tune: "(device=None, *, progress=None)",
    wg.TensorDesc: "(dtype, sizes, strides=None)",
    wg.Device.request: "(adapter=None, *, timestamps=False)",
    wg.Device.request_async: "(adapter=None)",
    wg.Device.wrap: "(wgpu_device)",
    wg.Device.compile: "(self, descriptor)",
    wg.Device.synchronize: "(self)",
    wg.dialects.numpy_index: "(input_sizes, key)",
    wg.dialects.onnx_slice: "(input_sizes, starts, ends, axes=None, steps=None)",
    wg.dialects.tensorflow_strided_slice: (
        "(input_sizes, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, "
        "new_axis_mask=0, shrink_axis_mask=0)"
    ),
    wg.dialects.webnn_slice: "(input_sizes, starts, sizes, strides=None)",
    wg.dialects.webnn_reverse: "(input_sizes, axes=None)",
    wg.dialects.webnn_pad: "(input_sizes, beginning_padding, ending_padding, mode='constant', value=0)",
    wg.dialects.webnn_gather: "(input_sizes, indices, axis=0)",
    wg.dialects.directml_slice1: "(input_sizes, offsets, sizes, strides=None, output_sizes=None)",
    wg.dialects.directml_slice: "(input_sizes, offsets, sizes, strides=None)",
    onnx.prepare: "(model, device='CPU', **kwargs)",
    onnx.run_model: "(model, inputs, device='CPU', **kwargs)",
    onnx.run_node: "(node, inputs, device='CPU', outputs_info=None, **kwargs)",
    onnx.supports_device: "(device)",
    onnx.is_compatible: "(model, device='CPU', **kwargs)",
    onnx.PreparedModel.run: "(self, inputs, **kwargs)",
    onnx.PreparedModel.run_on_device: "(self, inputs)",
    directml.slice: ("(input, input_window_offsets, input_window_sizes, input_window_strides)"),
    directml.DMLCalcBufferTensorSize: "(dataType, dimensionCount, sizes, strides=None)",
    directml.DMLCreateDevice: "(device, flags=<DML_CREATE_DEVICE_FLAGS.NONE: 0>)",
    directml.IDMLCommandRecorder.RecordDispatch: "(self, commandList, dispatchable, bindings)",
    zarr.enable: "(device=None)",
    zarr.disable: "()",
    wg.CompiledOperator.__call__: "(self, x, out=None, *, offsets=None)",
    wg.CompiledTextureCopy.__call__: "(self, input, output=None)",
    wg.CompiledTextureCopy.record: "(self, encoder, *, input, output)",
    wg.CompiledOperator.record: "(self, encoder, *, input, output, offsets=None)",
    wg.CompiledOperator.bind: "(self, *, input, output, offsets=None)",
    wg.CompiledOperator.save: "(self, folder)",
    wg.Program.save: "(self, folder)",
    wg.load_program: "(folder, device=None, *, trusted=False)",
    wg.BoundOperator.record: "(self, encoder)",
}
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


def bare(signature: inspect.Signature) -> str:
    """A signature without its annotations."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def test_the_public_names_are_these() -> None:
    assert wg.__all__ == sorted(NAMES)
    for name in NAMES:
        assert getattr(wg, name).__name__.removeprefix("wgslice.") == name


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_signatures(function: Any) -> None:
    assert bare(inspect.signature(function)) == SIGNATURES[function]


@pytest.mark.pygfx
@pytest.mark.parametrize("name", PYGFX_SIGNATURES)
def test_signatures_for_pygfx(name: str) -> None:
    function = resolve_name(f"wgslice.pygfx:{name}")
    assert bare(inspect.signature(function)) == PYGFX_SIGNATURES[name]
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


@pytest.mark.parametrize("documented", SIGNATURES, ids=lambda function: function.__qualname__)
def test_docstrings_name_the_parameters_that_exist(documented: Any) -> None:
    check_docstring(documented)


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
