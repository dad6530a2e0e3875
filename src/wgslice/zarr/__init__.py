"""Zarr arrays read into tensors, and written from them, on any GPU. Needs the extra `zarr`.

After `enable()` what is read of a Zarr array is a tensor. Chunks are decoded by Zarr's own codecs, in host
memory; there they are encoded too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, TypeAlias

try:
    import zarr
except ModuleNotFoundError as error:
    message = "wgslice.zarr needs the package zarr, the extra `zarr` of wgslice: pip install zarr"
    raise ModuleNotFoundError(message, name=error.name) from None

from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.zarr.ndbuffer import DEVICE_KEY, NAME, NDBuffer

__all__ = ["NDBuffer", "disable", "enable"]

Configured: TypeAlias = AbstractContextManager[Any]

HOST = {"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}


def enable(device: AnyDevice = None) -> Configured:
    """Read every Zarr array into tensors from now on, or inside of a `with` statement.

    Parameters
    ----------
    device : Device or str, optional
        Where the tensors live; or a part of an adapter's name or backend, such as "vulkan".
        `default_device()` by default, which is made once something is read.

    Returns
    -------
    donfig.ConfigSet
        What `zarr.config.set` returns: a context manager that brings back what was there before. It holds
        for the whole process, as all of Zarr's configuration.

    Raises
    ------
    TypeError
        `device` is none.
    NoAdapterError
        No adapter has the name that `device` gives.

    Examples
    --------
    >>> import numpy as np, wgslice.zarr, zarr
    >>> z = zarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    >>> with wgslice.zarr.enable():
    ...     x = z[1:, ::2]
    >>> x[:, ::-1].numpy()
    array([[ 6,  4],
           [10,  8]])
    """
    with named("enable"):
        if device is not None:
            checked_device(device)
    changed: Configured = zarr.config.set({**HOST, "ndbuffer": NAME, DEVICE_KEY: device})
    return changed


def disable() -> Configured:
    """Read Zarr arrays into NumPy's from now on, or inside of a `with` statement.

    Returns
    -------
    donfig.ConfigSet
        As `enable`.
    """
    changed: Configured = zarr.config.set({**HOST, DEVICE_KEY: None})
    return changed
