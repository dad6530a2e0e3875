"""ONNX Runtime's WebGPU provider on graphs."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bench.rivals.onnx_models import parsed_model
from bench.rivals.onnxruntime_webgpu import Bound, describe

__all__ = ["OnDevice", "describe"]


class OnDevice(Bound):
    """From a bound value to a bound value."""

    def model(self, array: NDArray[Any], key: Any) -> bytes:
        """The graph."""
        serialized: bytes = parsed_model(array, key).SerializeToString()
        return serialized
