"""ONNX Runtime's CPU provider, between bound arrays."""

from __future__ import annotations

import os
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read at import

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bench.cases import Cut
from bench.rivals.onnx_models import cut_model, kept

__all__ = ["Bound", "describe"]


def describe() -> dict[str, str]:
    """Versions."""
    return {"onnxruntime": ort.__version__, "provider": "CPUExecutionProvider"}


def session(model: bytes) -> Any:
    """A session on all cores."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = os.cpu_count() or 1
    return ort.InferenceSession(model, options, ["CPUExecutionProvider"])


class Bound:
    """A session of a Transpose, a Slice or both, with input and output bound."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.session = session(cut_model(array, cut))
        self.out = np.empty(kept(cut).of(array).shape, array.dtype)
        self.bound = [ort.OrtValue.ortvalue_from_numpy(side) for side in (array, self.out)]  # no copies
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input("x", self.bound[0])
        self.binding.bind_ortvalue_output("y", self.bound[1])

    def run(self) -> None:
        """Slice."""
        self.session.run_with_iobinding(self.binding)

    def result(self) -> NDArray[Any]:
        """The output."""
        return self.out
