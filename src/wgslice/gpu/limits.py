"""What a device must allow for the kernels to run on it."""

from __future__ import annotations

from collections.abc import Mapping

from wgslice.errors import NoAdapterError
from wgslice.gpu.adapter import Adapter
from wgslice.plans.profiles import CPU, GPU, STAGING_NBYTES, TILE_NBYTES, WIDE_TILE_SIDES
from wgslice.shaders import copy_dtype, windows_dtype

# What kernels and staging need; WebGPU promises more of each, unless a program asked for less.
LEAST_LIMITS = {
    "max-bind-groups": 1,
    "max-bindings-per-bind-group": 6,
    "max-buffer-size": STAGING_NBYTES,
    "max-compute-invocations-per-workgroup": max(CPU.workgroup_size, GPU.workgroup_size),
    "max-compute-workgroup-size-x": max(CPU.workgroup_size, GPU.workgroup_size),
    "max-compute-workgroup-storage-size": max(
        TILE_NBYTES**2 // 4,  # of elements of 4 bytes
        *(side**2 * nbytes for nbytes, side in WIDE_TILE_SIDES.items()),
    ),
    "max-compute-workgroups-per-dimension": 1,
    "max-storage-buffer-binding-size": 1024,  # holds any element from any aligned offset
    "max-storage-buffers-per-shader-stage": 5,
    "max-uniform-buffer-binding-size": max(copy_dtype.itemsize, windows_dtype.itemsize),
    "max-uniform-buffers-per-shader-stage": 1,
}


def check_limits(adapter: Adapter, limits: Mapping[str, int]) -> None:
    """Refuse a device that the kernels cannot run on."""
    for name, least in LEAST_LIMITS.items():
        if limits[name] < least:
            raise NoAdapterError(
                f"the device on {adapter} has {name} = {limits[name]}: at least {least} are needed; "
                "ask for them in required_limits, or use another adapter"
            )
