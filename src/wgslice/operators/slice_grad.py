"""SliceGrad: the gradient of Slice1, as a function, and as a descriptor to compile once and record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from wgslice.arguments import checked_shape
from wgslice.dialects.window import Window, Windowed
from wgslice.dtypes import check_same_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.execute import run
from wgslice.layout import check_disjoint
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.outputs import output_for
from wgslice.operators.tensor_desc import TensorDesc, check_descs
from wgslice.plans.plan import Planner
from wgslice.plans.slice_grad import GradientPlanner
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["SliceGrad", "slice_grad"]


@dataclass(frozen=True, init=False)
class SliceGrad(Windowed):
    """Descriptor of DirectML's SliceGrad: put `input` into a window of `output`, and zeros everywhere else.

    The adjoint of Slice1 with the same window, whose output is here the input, and whose input the output.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8. The input's sizes are at least 1 and at most
        `1 + (sizes - 1) // abs(strides)`; smaller ones fill the first elements of the window.
    offsets : sequence of int
        First element of the window in the output, u32; `offsets + sizes` is at most the output's size.
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
    Semantics: `DML_SLICE_GRAD_OPERATOR_DESC`.
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
        with named("SliceGrad"):
            check_descs(input=input, output=output)
            window = Window.of(offsets, sizes, strides)
            window.check_inside(output.sizes, "output")
            check_same_dtype(input.dtype, output.dtype)
            window.check_filled(input.sizes, "input")
            check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "window", window)

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        planner = GradientPlanner(self.input.dtype.itemsize, self.window.ranges(self.input.sizes))
        return CompiledOperator(device, "SliceGrad", self.input, self.output, self.input.layout, planner)


def slice_grad(
    g: Tensor,
    offsets: Iterable[SupportsIndex],
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
    *,
    output_sizes: SupportsIndex | Iterable[SupportsIndex],
    out: Tensor | None = None,
) -> Tensor:
    """Put a tensor into a window, and zeros everywhere else: DirectML's SliceGrad, the gradient of `slice1`.

    Parameters
    ----------
    g : Tensor
        Gradient of `slice1`'s output, of its sizes: in each dimension at least 1 and at most
        `1 + (sizes - 1) // abs(strides)`; smaller ones fill the first elements of the window.
    offsets : sequence of int
        First element of the window in each dimension, u32; `offsets + sizes` is at most `output_sizes`.
    sizes : sequence of int
        Extent of the window in elements, u32, at least 1.
    strides : sequence of int, optional
        Step within the window in elements, i32, not 0. A negative one begins at the end of the window. 1 by
        default.
    output_sizes : sequence of int
        Sizes of the result: those of `slice1`'s input.
    out : Tensor, optional
        Where to write, of `g`'s dtype and `output_sizes`. Bytes of its buffer between and around its elements
        keep their value. It may lie in the buffer of `g`, which is read before anything is written.

    Returns
    -------
    Tensor
        `out`, or a packed tensor in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    WindowError
        The window breaks one of these rules.
    TypeError
        `g` or `out` is no tensor, the dtypes differ, or a number is no integer.
    ValueError
        `out` has other sizes, two elements on the same bytes, or another device; a buffer is destroyed or
        mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the output, or is gone.

    Notes
    -----
    Semantics: `DML_SLICE_GRAD_OPERATOR_DESC`. `sum(slice1(x) * g) == sum(x * slice_grad(g))` for every x.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> g = wg.asarray(np.array([7, 5, 3]))
    >>> wg.slice_grad(g, offsets=[2], sizes=[6], strides=[-2], output_sizes=[10]).numpy()
    array([0, 0, 0, 3, 0, 5, 0, 7, 0, 0])
    """
    with named("slice_grad"):
        check_tensor("g", g)
        window = Window.of(offsets, sizes, strides)
        extents = checked_shape(output_sizes)
        window.check_inside(extents, "output")
        window.check_filled(g.shape, "g")
        planner: Planner = GradientPlanner(g.dtype.itemsize, window.ranges(g.shape))
        planner = planner.on_zeros if out is None else planner
        out = output_for(g, extents, out, f"output_sizes, {extents}")
        run(g.device, planner, g.operand, out.operand)
        return out
