"""What descriptors of one window have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wgslice.dialects.window import Window, Windowed
from wgslice.dtypes import check_same_dtype
from wgslice.layout import check_disjoint
from wgslice.operators.descriptor import Descriptor
from wgslice.operators.tensor_desc import TensorDesc

__all__ = ["WindowDescriptor"]


@dataclass(frozen=True, init=False)
class WindowDescriptor(Descriptor, Windowed):
    """Two tensors, and a window of the one that the other fills."""

    input: TensorDesc
    output: TensorDesc
    window: Window

    def _hold(
        self, input: TensorDesc, output: TensorDesc, window: Window, *, filled: Literal["input", "output"]
    ) -> None:
        """Take over what is checked but for what two tensors must have in common."""
        check_same_dtype(input.dtype, output.dtype)
        window.check_filled((input if filled == "input" else output).sizes, filled)
        check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "window", window)
