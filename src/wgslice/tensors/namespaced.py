"""Protocols by which others get from a tensor to functions of it, and to another device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.tensors.placed import Placed

__all__ = ["Namespaced"]


class Namespaced(Placed):
    """Names what lies on higher floors, which is loaded when it is called."""

    __slots__ = ()

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The functions of the standard, `wgslice.array_api`; a ValueError for an unknown version of it."""
        namespace = import_module("wgslice.array_api")
        with named("__array_namespace__"):
            if api_version not in (None, *namespace.VERSIONS):
                known = ", ".join(namespace.VERSIONS)
                raise ValueError(f"api_version = {api_version!r}: must be one of {known}")
        return namespace

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Collection[type],
        arguments: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Any:
        return import_module("wgslice.numpy_protocol.table").call_function(
            self.device, function, types, arguments, options
        )

    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Self:
        """Move to another device, or one of that name, through host memory, which waits; on its own itself.

        Raises
        ------
        TypeError
            `device` is none.
        ValueError
            A stream is named: a device has one queue.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left, or one of both is gone.
        """
        with named("to_device"):
            if stream is not None:
                raise ValueError(f"stream = {stream!r}: must be None, since a device has one queue")
            if device is None:
                raise TypeError("device is None: name one")
            moved: Self = import_module("wgslice.tensors.uploading").asarray(self, device=device)
            return moved
