"""Slice1: as a function, and as a descriptor to compile once and record many times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from wgslice.compiled import CompiledOperator
from wgslice.device import Device
from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.execute import Operand, run_copy
from wgslice.integers import integers
from wgslice.layout import Layout
from wgslice.tensor import Tensor, allocate, check_tensor
from wgslice.tensor_desc import TensorDesc
from wgslice.window import Window

__all__ = ["Slice1", "slice1"]


@dataclass(frozen=True, init=False)
class Slice1:
    """Descriptor of DirectML's Slice1: copy a strided window of `input` to `output`.

    In every dimension `output[c] = input[start + strides * c]`, where `start` is `offsets` for a positive
    stride and `offsets + sizes - 1`, the end of the window, for a negative one.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8. The output's sizes are at least 1 and at most
        `1 + (sizes - 1) // abs(strides)`; smaller ones take the first elements.
    offsets : sequence of int
        First element of the window, u32; `offsets + sizes` is at most the input's size.
    sizes : sequence of int
        Extent of the window in elements, u32, at least 1.
    strides : sequence of int, optional
        Step within the window in elements, i32, not 0; 1 by default.

    Raises
    ------
    WindowError
        The window breaks one of these rules.
    TypeError, ValueError
        The dtypes differ, or the output's layout places two elements on the same bytes.

    Notes
    -----
    Semantics: `DML_SLICE1_OPERATOR_DESC`; its formula for the most elements uses the stride's magnitude.
    """

    input: TensorDesc
    output: TensorDesc
    window: Window

    def __init__(
        self,
        input: TensorDesc,
        output: TensorDesc,
        offsets: Iterable[SupportsIndex],
        sizes: Iterable[SupportsIndex],
        strides: Iterable[SupportsIndex] | None = None,
    ) -> None:
        with named("Slice1"):
            for side, desc in (("input", input), ("output", output)):
                if not isinstance(desc, TensorDesc):
                    raise TypeError(f"{side} is of type {type(desc).__name__}: must be a TensorDesc")
            window = Window.of(offsets, sizes, strides)
            window.check_inside(input.sizes)
            check_same_dtype(input.dtype, output.dtype)
            window.check_output(output.sizes)
            check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "window", window)

    @property
    def offsets(self) -> tuple[int, ...]:
        """First element of the window."""
        return self.window.offsets

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extent of the window in elements."""
        return self.window.sizes

    @property
    def strides(self) -> tuple[int, ...]:
        """Step within the window in elements."""
        return self.window.strides

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        source = self.input.layout.select(self.window.ranges(self.output.sizes))
        return CompiledOperator(device, "Slice1", self.input, self.output, source)


def check_same_dtype(input: DType, output: DType) -> None:
    """Refuse conversions."""
    if input != output:
        raise TypeError(
            f"output has dtype {output}, the input {input}: a slice moves bits, so they must be equal"
        )


def check_disjoint(layout: Layout) -> None:
    """Refuse an output that places two elements on the same bytes."""
    if layout.overlaps:
        raise ValueError(
            f"output sizes {layout.sizes} with strides {layout.strides}: two elements lie on the same bytes; "
            "an output must give each its own"
        )


def slice1(
    x: Tensor,
    offsets: Iterable[SupportsIndex],
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
    *,
    output_sizes: Iterable[SupportsIndex] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Copy a strided window out of a tensor: DirectML's Slice1.

    Parameters
    ----------
    x : Tensor
        Of rank 1 to 8 and any dtype; views welcome.
    offsets : sequence of int
        First element of the window in each dimension, u32; `offsets + sizes` is at most `x.shape`.
    sizes : sequence of int
        Extent of the window in elements, u32, at least 1.
    strides : sequence of int, optional
        Step within the window in elements, i32, not 0. A negative one begins at the end of the window. 1 by
        default.
    output_sizes : sequence of int, optional
        Elements to take in each dimension, the first ones, 1 to `1 + (sizes - 1) // abs(strides)`. That
        most by default, or the sizes of `out`.
    out : Tensor, optional
        Where to write, of `x`'s dtype, in another buffer. Bytes of its buffer between and around its
        elements keep their value.

    Returns
    -------
    Tensor
        `out`, or a packed tensor in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    WindowError
        The window breaks one of these rules, or `output_sizes` do.
    TypeError
        `x` or `out` is no tensor, the dtypes differ, or a number is no integer.
    ValueError
        `out` has other sizes than `output_sizes`, two elements on the same bytes, another device, or shares
        its buffer with `x`; a buffer is destroyed or mapped; the output has more than 2^32 - 1 elements.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the output, or is gone.

    Notes
    -----
    Semantics: `DML_SLICE1_OPERATOR_DESC`; its formula for the most elements uses the stride's magnitude.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(10))
    >>> wg.slice1(x, offsets=[2], sizes=[6], strides=[-2]).numpy()
    array([7, 5, 3])
    """
    with named("slice1"):
        check_tensor("x", x)
        window = Window.of(offsets, sizes, strides)
        window.check_inside(x.shape)
        if out is not None:
            check_tensor("out", out)
            check_same_dtype(x.dtype, out.dtype)
            check_disjoint(out.layout)
        if output_sizes is not None:
            taken = integers("output_sizes", output_sizes)
        else:
            taken = window.most_output_sizes if out is None else out.shape
        window.check_output(taken)
        if out is None:
            out = allocate(taken, x.dtype, x.device)
        elif out.shape != taken:
            raise ValueError(f"out has sizes {out.shape}: must be output_sizes, {taken}")
        source = Operand(x.buffer, x.layout.select(window.ranges(taken)))
        run_copy(x.device, x.dtype.itemsize, source, out.operand)
    return out
