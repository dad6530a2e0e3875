"""Converters of slice notations to the indices that they select.

Negative steps have three notations, each with its own explicit converter. Converters compute with integers
only and need no GPU; `x[selection]` makes the view. WebNN's gather becomes an index too, its pad arguments of
`wgslice.pad`.
"""

from __future__ import annotations

from wgslice.dialects.basic import Selection, numpy_index
from wgslice.dialects.converters import (
    directml_slice,
    directml_slice1,
    onnx_slice,
    tensorflow_strided_slice,
)
from wgslice.dialects.webnn import webnn_gather, webnn_pad, webnn_reverse, webnn_slice

__all__ = [
    "Selection",
    "directml_slice",
    "directml_slice1",
    "numpy_index",
    "onnx_slice",
    "tensorflow_strided_slice",
    "webnn_gather",
    "webnn_pad",
    "webnn_reverse",
    "webnn_slice",
]
