"""wgslice: tensor slicing on any GPU. DirectML's Slice1 as WGSL compute kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wgslice import dialects
from wgslice.errors import (
    CaptureRefused,
    ComputationRefused,
    DeviceLostError,
    NoAdapterError,
    NoKernelError,
    OutOfDeviceMemory,
    WindowError,
)
from wgslice.gpu.adapter import Adapter, adapters
from wgslice.gpu.device import Device, calibrations, default_device
from wgslice.numpy_protocol.joining import concat, split, stack
from wgslice.numpy_protocol.moving import pad, repeat, roll, tile
from wgslice.numpy_protocol.putting import put
from wgslice.numpy_protocol.taking import take
from wgslice.operators.binding import TensorDesc
from wgslice.operators.compiled import BoundOperator, CompiledOperator
from wgslice.operators.compiled_textures import CompiledTextureCopy, FromTexture, ToTexture
from wgslice.operators.explain import Explanation, explain
from wgslice.operators.padding import pad_windows, unpad_windows
from wgslice.operators.slice1 import Slice, Slice1, SliceGrad, slice, slice1, slice_grad
from wgslice.operators.textures import copy_to_texture, from_texture, map_texture
from wgslice.operators.windows import ExtractWindows, InsertWindows, extract_windows, insert_windows
from wgslice.operators.windows_arguments import tile_offsets
from wgslice.plans.plan import Plan
from wgslice.tensors.creation import arange, asarray, empty, from_buffer, from_dlpack, full, ones, zeros
from wgslice.tensors.placed import copyto, upper_modules
from wgslice.tensors.strided_views import as_strided
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.views import broadcast_to, flip, moveaxis, permute, reshape, reverse, squeeze
from wgslice.version import VERSION

__version__ = VERSION

upper_modules.update(  # what tensors lead to by protocols, loaded when it is asked for
    array_api=lambda: import_module("wgslice.array_api"),
    numpy_functions=lambda: import_module("wgslice.numpy_protocol.table"),
    programs=lambda: import_module("wgslice.programs.program"),
)

# Public names whose modules are loaded when they are first used.
LAZY = {
    "Program": "wgslice.programs.program",
    "SelfTest": "wgslice.doctor.selftest",
    "Tuning": "wgslice.calibration.tune",
    "capture": "wgslice.programs.program",
    "load_program": "wgslice.programs.loading",
    "selftest": "wgslice.doctor.selftest",
    "stream": "wgslice.streaming.stream",
    "timed": "wgslice.gpu.timing",
    "tune": "wgslice.calibration.tune",
}

if TYPE_CHECKING:
    from wgslice.calibration.tune import Tuning, tune
    from wgslice.doctor.selftest import SelfTest, selftest
    from wgslice.gpu.timing import timed
    from wgslice.programs.loading import load_program
    from wgslice.programs.program import Program, capture
    from wgslice.streaming.stream import stream
else:  # which would take any name for an attribute

    def __getattr__(name: str) -> Any:
        if name in LAZY:
            value = globals()[name] = getattr(import_module(LAZY[name]), name)
            return value
        from wgslice.numpy_protocol.table import pointer  # loads what an import can do without

        known = pointer(name)
        said = f"module 'wgslice' has no attribute {name!r}{f': {known}' if known else ''}"
        raise AttributeError(said, name=name)


calibrations.append(lambda device: import_module("wgslice.calibration.tune").calibrate(device))


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__version__"]  # not the modules that happen to be loaded


__all__ = [
    "Adapter",
    "BoundOperator",
    "CaptureRefused",
    "CompiledOperator",
    "CompiledTextureCopy",
    "ComputationRefused",
    "Device",
    "DeviceLostError",
    "Explanation",
    "ExtractWindows",
    "FromTexture",
    "InsertWindows",
    "NoAdapterError",
    "NoKernelError",
    "OutOfDeviceMemory",
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
    "WindowError",
    "adapters",
    "arange",
    "as_strided",
    "asarray",
    "broadcast_to",
    "capture",
    "concat",
    "copy_to_texture",
    "copyto",
    "default_device",
    "dialects",
    "empty",
    "explain",
    "extract_windows",
    "flip",
    "from_buffer",
    "from_dlpack",
    "from_texture",
    "full",
    "insert_windows",
    "load_program",
    "map_texture",
    "moveaxis",
    "ones",
    "pad",
    "pad_windows",
    "permute",
    "put",
    "repeat",
    "reshape",
    "reverse",
    "roll",
    "selftest",
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
    "timed",
    "tune",
    "unpad_windows",
    "zeros",
]
