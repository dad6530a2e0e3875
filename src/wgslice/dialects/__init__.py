"""Notations for a part of a tensor, each turned into the indices that it selects.

Three notations for a negative step are in use and none is guessed: each has its converter here, by its own
name. They compute with integers only and need no GPU; `x[selection]` makes the view.
"""

from __future__ import annotations

from wgslice.dialects.basic import Selection, numpy_index
from wgslice.dialects.converters import (
    directml_slice,
    directml_slice1,
    onnx_slice,
    tensorflow_strided_slice,
    webnn_reverse,
    webnn_slice,
)

__all__ = [
    "Selection",
    "directml_slice",
    "directml_slice1",
    "numpy_index",
    "onnx_slice",
    "tensorflow_strided_slice",
    "webnn_reverse",
    "webnn_slice",
]
