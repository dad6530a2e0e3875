"""Slice1, Slice, SliceGrad: as functions, and as descriptors to compile once and record many times."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from wgslice.arguments import Integers, OneOrMore, checked_shape, integers
from wgslice.dialects.window import Window
from wgslice.errors import WindowError, named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Binding, Copy, run_copy
from wgslice.layout import Layout
from wgslice.operators.binding import TensorDesc, check_descs, output_for
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.plans.copy import SliceGradPlanner, plan_copy
from wgslice.plans.profiles import MAX_PLANS
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

Box: TypeAlias = tuple[Integers, Integers, Integers | None]  # offsets, sizes, strides


@dataclass(frozen=True)
class WindowDescriptor(Descriptor):
    """Descriptor of two tensors and a window of one of them, with the sizes of the other."""

    input: TensorDesc
    output: TensorDesc
    offsets: Integers
    sizes: Integers
    strides: Integers | None = None
    window: Window = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the arguments, and make tuples of them."""
        with named(type(self).__name__):
            check_descs(input=self.input, output=self.output)
            given = integers("sizes", self.sizes)
            window = self._window((self.offsets, given, self.strides))
            box = {"offsets": window.offsets, "sizes": given, "strides": window.strides}
            self._hold(self.input, self.output, window=window, **box)

    def _window(self, box: Box) -> Window:
        """Return the window of offsets, sizes and strides, checked against the tensors."""
        window = Window.of(*box)
        window.check_inside(self.input.sizes)
        window.check_filled(self.output.sizes)
        return window

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        source = self.input.layout.select(self.window.ranges(self.output.sizes))
        return CompiledOperator(device, type(self).__name__, self.input, self.output, source, plan_copy)


@dataclass(frozen=True)
class Slice1(WindowDescriptor):
    """Descriptor of `slice1`, to compile: copy a strided window of `input` to `output`.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8. The output's sizes are the `output_sizes` of `slice1`.
    offsets, sizes, strides : sequence of int
        The window, as of `slice1`; strides are 1 by default.

    Raises
    ------
    WindowError, TypeError, ValueError
        One of `slice1`'s rules is broken.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (3, 4)), wg.TensorDesc("int64", (2, 2))
    >>> device = wg.default_device()
    >>> operator = device.compile(wg.Slice1(*sides, offsets=(1, 0), sizes=(2, 4), strides=(1, -2)))
    >>> operator(wg.asarray(np.arange(12).reshape(3, 4), device=device)).numpy()
    array([[ 7,  5],
           [11,  9]])
    >>> operator.plan.summary
    'coalesced (2, 2) x 8 B, rows'
    """


@dataclass(frozen=True)
class Slice(WindowDescriptor):
    """Descriptor of `slice`, to compile: copy `sizes` elements of `input`, `strides` apart.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8. The output's sizes are `sizes`.
    offsets, sizes, strides : sequence of int
        The elements to copy, as of `slice`; strides are 1 by default.

    Raises
    ------
    WindowError, TypeError, ValueError
        One of `slice`'s rules is broken.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (10,)), wg.TensorDesc("int64", (3,))
    >>> operator = wg.default_device().compile(wg.Slice(*sides, offsets=[1], sizes=[3], strides=[2]))
    >>> operator(wg.asarray(np.arange(10))).numpy()
    array([1, 3, 5])
    """

    def _window(self, box: Box) -> Window:
        window, sizes = Window.spanning(*box, self.input.sizes), self.output.sizes
        if sizes != window.max_output_sizes:
            raise WindowError(f"output sizes {sizes}: must be the window's sizes, {window.max_output_sizes}")
        return window


@public()
def slice1(
    x: Tensor,
    offsets: Integers,
    sizes: Integers,
    strides: Integers | None = None,
    *,
    output_sizes: Integers | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Copy a strided window out of a tensor: DirectML's Slice1, `DML_SLICE1_OPERATOR_DESC`.

    In every dimension `output[c] = x[start + strides * c]`, where `start` is `offsets` for a positive stride
    and `offsets + sizes - 1`, the end of the window, for a negative one.

    Parameters
    ----------
    x : Tensor
        Of rank 1 to 8 and any dtype; views welcome.
    offsets : sequence of int
        First element of the window in each dimension, u32; `offsets + sizes` is at most `x.shape`.
    sizes : sequence of int
        Extent of the window in elements, u32, at least 1.
    strides : sequence of int, optional
        Step within the window in elements, i32, not 0. 1 by default.
    output_sizes : sequence of int, optional
        Elements to copy in each dimension, the first ones, 1 to `1 + (sizes - 1) // abs(strides)`, which is
        the default.
    out : Tensor, optional
        Where to write, of `x`'s dtype and `output_sizes`. Bytes of its buffer between and around its elements
        keep their value. It may share the buffer of `x`, which is read before anything is written.

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
        `out` has other sizes than `output_sizes`, two elements on the same bytes, or another device; a buffer
        is destroyed or mapped; the output has more than 2^32 - 1 elements.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the output, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(10))
    >>> wg.slice1(x, offsets=[2], sizes=[6], strides=[-2]).numpy()
    array([7, 5, 3])
    """
    check_tensor("x", x)
    starts, extents = integers("offsets", offsets), integers("sizes", sizes)
    steps = None if strides is None else integers("strides", strides)
    filled = None if output_sizes is None else integers("output_sizes", output_sizes)
    remedy = "; output_sizes copies fewer, the first ones" if filled is None else ""
    return cut(x, windowed(x.layout, starts, extents, steps, filled), out, remedy)


@public("x[key] takes slices")
def slice(
    x: Tensor,
    offsets: Integers,
    sizes: Integers,
    strides: Integers | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Copy `sizes` elements, `strides` apart, out of a tensor: DirectML's `DML_SLICE_OPERATOR_DESC`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 to 8 and any dtype; views welcome.
    offsets : sequence of int
        First element to copy in each dimension, u32.
    sizes : sequence of int
        Number of elements to copy, u32, at least 1; `offsets + (sizes - 1) * strides` is less than `x.shape`.
    strides : sequence of int, optional
        Step between them in elements, u32, at least 1; 1 by default.
    out : Tensor, optional
        Where to write, of `x`'s dtype and of `sizes`, as in `slice1`.

    Returns
    -------
    Tensor
        Of the sizes `sizes`, as `slice1` returns it.

    Raises
    ------
    WindowError, TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`; the last element is outside of `x`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(10))
    >>> wg.slice(x, offsets=[2], sizes=[3], strides=[2]).numpy()
    array([2, 4, 6])
    """
    check_tensor("x", x)
    window = Window.spanning(offsets, sizes, strides, x.shape)
    return cut(x, x.layout.select(window.ranges(window.max_output_sizes)), out)


@lru_cache(maxsize=MAX_PLANS)
def windowed(
    layout: Layout,
    offsets: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...] | None,
    output_sizes: tuple[int, ...] | None,
) -> Layout:
    """Return the layout of a window in a layout, after checking the window."""
    window = Window.of(offsets, sizes, strides)
    window.check_inside(layout.sizes)
    filled = window.max_output_sizes if output_sizes is None else output_sizes
    window.check_filled(filled)
    return layout.select(window.ranges(filled))


def cut(x: Tensor, part: Layout, out: Tensor | None, remedy: str = "") -> Tensor:
    """Copy a part of `x` to `out` or to a new tensor; `remedy` ends the error for an `out` of other sizes."""
    target = output_for(x, part.sizes, out, behind=remedy, zeroed=False)
    source = Binding(x.memory, part, x.dtype.itemsize)
    run_copy(x.device, Copy(source, target.bound_layout._replace(fresh=out is None)))
    return target


@dataclass(frozen=True)
class SliceGrad(WindowDescriptor):
    """Descriptor of `slice_grad`, to compile: `input` in a window of `output`, else zeros.

    Parameters
    ----------
    input, output : TensorDesc
        Of one dtype and one rank, 1 to 8: the gradients of `Slice1`'s output and of its input.
    offsets, sizes, strides : sequence of int
        The window in the output, as of `slice_grad`; strides are 1 by default.

    Raises
    ------
    WindowError, TypeError, ValueError
        One of `slice_grad`'s rules is broken.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (3,)), wg.TensorDesc("int64", (7,))
    >>> operator = wg.default_device().compile(wg.SliceGrad(*sides, offsets=[0], sizes=[6], strides=[-2]))
    >>> operator(wg.asarray([1, 2, 3])).numpy()
    array([0, 3, 0, 2, 0, 1, 0])
    """

    def _window(self, box: Box) -> Window:
        window = Window.of(*box)
        window.check_inside(self.output.sizes, "output")
        window.check_filled(self.input.sizes, "input")
        return window

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        sides = self.input, self.output, self.input.layout
        kept, zeroed = (
            SliceGradPlanner(self.window.ranges(self.input.sizes), zeroed=zeroed) for zeroed in (False, True)
        )
        return CompiledOperator(device, "SliceGrad", *sides, kept, planner_on_zeros=zeroed)


@public()
def slice_grad(
    g: Tensor,
    offsets: Integers,
    sizes: Integers,
    strides: Integers | None = None,
    *,
    output_sizes: OneOrMore,
    out: Tensor | None = None,
) -> Tensor:
    """Write a tensor into a window of zeros, the gradient of `slice1`: `DML_SLICE_GRAD_OPERATOR_DESC`.

    Parameters
    ----------
    g : Tensor
        Gradient of `slice1`'s output, of its sizes: rank 1 to 8, any dtype, views welcome. Where it is
        smaller than the window allows, it fills the window's first elements.
    offsets, sizes, strides : sequence of int
        The window in the result, as in `slice1`; strides are 1 by default.
    output_sizes : sequence of int
        Sizes of the result: those of `slice1`'s input.
    out : Tensor, optional
        Where to write, of `g`'s dtype and `output_sizes`, as in `slice1`; it may share the buffer of `g`.

    Returns
    -------
    Tensor
        As `slice1` returns it.

    Raises
    ------
    WindowError, TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`, of `g`; the window exceeds `output_sizes`, or does not hold `g`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> g = wg.asarray(np.array([7, 5, 3]))
    >>> wg.slice_grad(g, offsets=[2], sizes=[6], strides=[-2], output_sizes=[10]).numpy()
    array([0, 0, 0, 3, 0, 5, 0, 7, 0, 0])
    """
    check_tensor("g", g)
    window = Window.of(offsets, sizes, strides)
    extents = checked_shape(output_sizes)
    window.check_inside(extents, "output")
    window.check_filled(g.shape, "g")
    planner = SliceGradPlanner(window.ranges(g.shape), zeroed=out is None)
    target = output_for(g, extents, out, before="output_sizes, ")
    written = target.bound_layout._replace(fresh=out is None)
    run_copy(g.device, Copy(g.bound_layout, written, planner))
    return target
