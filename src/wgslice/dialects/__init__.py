"""Notations for a part of a tensor, each turned into the indices that it selects.

Three notations for a negative step are in use and none is guessed: each has its converter here, by its own
name. They compute with integers only and need no GPU; `x[selection]` makes the view.
"""

from __future__ import annotations

from wgslice.dialects.directml_webnn import directml_slice, directml_slice1, webnn_reverse, webnn_slice
from wgslice.dialects.numpy_index import numpy_index
from wgslice.dialects.onnx_tensorflow import onnx_slice, tensorflow_strided_slice
from wgslice.dialects.selection import Selection

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
