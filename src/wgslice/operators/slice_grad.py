"""SliceGrad: the gradient of Slice1, as a function, and as a descriptor to compile once and record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from wgslice.arguments import checked_shape
from wgslice.dialects.window import Window
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.recording import run
from wgslice.operators.binding import PlannedOperator, output_for
from wgslice.operators.descriptor import WindowDescriptor
from wgslice.operators.tensor_desc import TensorDesc, check_descs
from wgslice.plans.copy import SliceGradPlanner
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["SliceGrad", "slice_grad"]


@dataclass(frozen=True, init=False)
class SliceGrad(WindowDescriptor):
    """Descriptor of DirectML's SliceGrad: put `input` into a window of `output`, and zeros everywhere else.

    The adjoint of Slice1 with the same window, whose output is here the input, and whose input the output.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8. The input has the sizes of an output of `Slice1`; where they are
        smaller than the window allows, it fills the window's first elements.
    offsets, sizes : sequence of int
        The window in the output, in elements, u32, each size at least 1, as in `Slice1`.
    strides : sequence of int, optional
        Step within it in elements, i32, not 0, as in `Slice1`; 1 by default.

    Raises
    ------
    WindowError, TypeError, ValueError
        As `Slice1`: the window leaves the output, or does not hold the input; the dtypes differ; the output's
        layout places two elements on the same bytes.

    Notes
    -----
    Semantics: `DML_SLICE_GRAD_OPERATOR_DESC`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (3,)), wg.TensorDesc("int64", (7,))
    >>> operator = wg.default_device().compile(wg.SliceGrad(*sides, offsets=[0], sizes=[6], strides=[-2]))
    >>> operator(wg.asarray([1, 2, 3])).numpy()
    array([0, 3, 0, 2, 0, 1, 0])
    """

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
            self._hold(input, output, window, filled="input")

    def planned(self, device: Device) -> PlannedOperator:
        """What `explain` calls: plans on `device`, without a pipeline."""
        taken = self.window.ranges(self.input.sizes)
        return PlannedOperator(
            device,
            "SliceGrad",
            self.input,
            self.output,
            self.input.layout,
            SliceGradPlanner(taken, zeroed=False),
            planner_on_zeros=SliceGradPlanner(taken, zeroed=True),
        )


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
        Gradient of `slice1`'s output, of its sizes: rank 1 to 8, any dtype, views welcome. Where it is
        smaller than the window allows, it fills the window's first elements.
    offsets, sizes : sequence of int
        The window in the result, in elements, u32, each size at least 1, as in `slice1`; `offsets + sizes` is
        at most `output_sizes`.
    strides : sequence of int, optional
        Step within it in elements, i32, not 0, as in `slice1`; 1 by default.
    output_sizes : sequence of int
        Sizes of the result: those of `slice1`'s input.
    out : Tensor, optional
        Where to write, of `g`'s dtype and `output_sizes`, as in `slice1`; it may lie in the buffer of `g`.

    Returns
    -------
    Tensor
        `out`, or a packed tensor in a buffer of its own; submitted and not waited for, as in `slice1`.

    Raises
    ------
    WindowError
        The window leaves `output_sizes`, is none by `slice1`'s rules, or does not hold `g`.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`, of `g` and `out`; `out` has other sizes than `output_sizes`.

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
        planner = SliceGradPlanner(window.ranges(g.shape), zeroed=out is None)
        target = output_for(g, extents, out, before="output_sizes, ")
        run(g.device, planner, g.bound_layout, target.bound_layout._replace(fresh=out is None))
        return target
