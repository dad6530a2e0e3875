"""wgslice: tensor slicing on any GPU. DirectML's Slice1 as WGSL compute kernels."""

from wgslice import dialects
from wgslice.adapter import Adapter
from wgslice.compiled import CompiledOperator
from wgslice.creation import asarray, empty, from_buffer, from_dlpack, zeros
from wgslice.device import Device, adapters, default_device
from wgslice.errors import DeviceLostError, NoAdapterError, OutOfDeviceMemory, WindowError
from wgslice.extract import ExtractWindows, extract_windows
from wgslice.slice_grads import SliceGrad, slice_grad
from wgslice.slices import Slice, Slice1, slice, slice1
from wgslice.tensor import Tensor
from wgslice.tensor_desc import TensorDesc
from wgslice.views import broadcast_to, permute, reshape, reverse, squeeze
from wgslice.writes import copyto

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "CompiledOperator",
    "Device",
    "DeviceLostError",
    "ExtractWindows",
    "NoAdapterError",
    "OutOfDeviceMemory",
    "Slice",
    "Slice1",
    "SliceGrad",
    "Tensor",
    "TensorDesc",
    "WindowError",
    "adapters",
    "asarray",
    "broadcast_to",
    "copyto",
    "default_device",
    "dialects",
    "empty",
    "extract_windows",
    "from_buffer",
    "from_dlpack",
    "permute",
    "reshape",
    "reverse",
    "slice",
    "slice1",
    "slice_grad",
    "squeeze",
    "zeros",
]
