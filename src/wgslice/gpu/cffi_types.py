"""Types of C that wgpu-py and `native` name, parsed together."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

# Those that are named until the first slice is read back. cffi parses each string that it first meets behind
# one typedef for every type of wgpu's, in 12 ms; all of these in one string take 16.
C_TYPES = (
    *("char []", "intptr_t", "uint32_t []", "uint8_t *", "uint8_t []", "uintptr_t", "void *"),
    *(
        "WGPUAdapter[]",
        "WGPUAdapterInfo *",
        "WGPUBindGroupDescriptor *",
        "WGPUBindGroupEntry[]",
        "WGPUBindGroupLayout[]",
    ),
    *("WGPUBindGroupLayoutDescriptor *", "WGPUBindGroupLayoutEntry *", "WGPUBindGroupLayoutEntry[]"),
    *("WGPUBufferBindingLayout *", "WGPUBufferDescriptor *", "WGPUChainedStruct *", "WGPUChainedStruct * "),
    *("WGPUCommandEncoderDescriptor *", "WGPUComputePassDescriptor *", "WGPUComputePipelineDescriptor *"),
    *("WGPUComputeState *", "WGPUConstantEntry *", "WGPUConstantEntry[]", "WGPUDeviceDescriptor *"),
    *("WGPUDeviceExtras *", "WGPUDeviceLostCallbackInfo *", "WGPUFeatureName[]", "WGPUInstanceDescriptor *"),
    *("WGPUInstanceEnumerateAdapterOptions *", "WGPULimits *", "WGPUNativeLimits *"),
    *("WGPUPipelineLayoutDescriptor *", "WGPUQueueDescriptor *", "WGPURequestDeviceCallbackInfo *"),
    *("WGPUShaderModuleDescriptor *", "WGPUShaderSourceWGSL *", "WGPUUncapturedErrorCallbackInfo *"),
    "void(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)",
    "void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
)


def parse_types(ffi: Any) -> None:
    """Parse C_TYPES as the parameters of one function, and put them where cffi keeps types by their strings.

    Does nothing where cffi keeps them in another way: it then parses each string when it first meets it.
    """
    with suppress(Exception):
        # arrays among parameters would become pointers
        together = f"void(*)({', '.join(C_TYPES)})".replace("[]", "(*)[]")
        kinds, kept = ffi.typeof(together), ffi._parsed_types
        if kept[together] == (kinds, False):
            for text, kind in zip(C_TYPES, kinds.args, strict=True):
                is_function = text.startswith("void(")
                kept[text] = kind.item if text.endswith("[]") else kind, is_function
