"""ONNX Runtime's WebGPU provider, between bound values on the GPU."""

from __future__ import annotations

import os
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read at import

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bench.cases import Cut
from bench.rivals.onnx_models import cut_model, identity_model

__all__ = ["Bound", "describe"]


def describe() -> dict[str, str]:
    """Return versions; VK_DRIVER_FILES or the system chooses the adapter, which is not reported."""
    return {"onnxruntime-webgpu": ort.__version__, "provider": "WebGpuExecutionProvider"}


def session(model: bytes) -> Any:
    """A session that refuses what the provider cannot do, instead of doing it on the CPU."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("ep.webgpuexecutionprovider.validationMode", "disabled")
    return ort.InferenceSession(model, options, ["WebGpuExecutionProvider"])


class OnDevice:
    """A session whose output stays on the GPU and is written again by each run."""

    def __init__(self, model: bytes, bind_input: Any) -> None:
        self.session = session(model)
        self.binding = self.session.io_binding()
        bind_input(self.binding)
        self.binding.bind_output("y", "gpu", 0)
        self.start()
        (self.y,) = self.binding.get_outputs()
        self.binding.bind_ortvalue_output("y", self.y)

    def start(self) -> None:
        """Run, without waiting."""
        self.session.run_with_iobinding(self.binding)


def upload(array: NDArray[Any]) -> OnDevice:
    """Move an array to the GPU by an Identity, since the provider has no upload."""
    return OnDevice(identity_model(array), lambda binding: binding.bind_cpu_input("x", array))


class Bound:
    """A session of a Transpose, a Slice or both, with input and output bound."""

    def __init__(self, array: NDArray[Any], work: Any) -> None:
        self.x = upload(array)
        self.fence = upload(np.zeros(1, np.float32))
        self.slice = OnDevice(
            self.model(array, work), lambda binding: binding.bind_ortvalue_input("x", self.x.y)
        )

    def model(self, array: NDArray[Any], work: Cut) -> bytes:
        """Return the model of a cut."""
        return cut_model(array, work)

    def run(self) -> None:
        """Slice; wait by reading four bytes back through the same queue."""
        self.slice.start()
        self.fence.y.numpy()

    def result(self) -> NDArray[Any]:
        """The output."""
        result: NDArray[Any] = self.slice.y.numpy()
        return result
