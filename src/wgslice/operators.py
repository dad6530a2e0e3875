"""Slice1: as a function, and as a descriptor to compile once and record many times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from numpy.typing import DTypeLike

from wgslice.device import Device, device_of
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.execute import Operand, record_copy, run_copy
from wgslice.integers import MAX_RANK, U32_MAX, check_within, integers
from wgslice.layout import Layout
from wgslice.plan import Plan, plan_copy
from wgslice.tensor import Tensor, check_fits, check_tensor, checked_offset, empty_unnamed
from wgslice.window import Window

if TYPE_CHECKING:
    from wgslice.device import Buffer, CommandEncoder

    Binding: TypeAlias = Tensor | Buffer | tuple[Buffer, SupportsIndex]

__all__ = ["CompiledOperator", "Slice1", "TensorDesc", "slice1"]


@dataclass(frozen=True, init=False)
class TensorDesc:
    """How a tensor lies in what is bound for it, as DirectML's buffer tensor descriptor says it.

    Parameters
    ----------
    dtype : dtype_like
        Of elements of 1, 2, 4, 8 or 16 bytes.
    sizes : sequence of int
        1 to 8 extents, u32, each at least 1.
    strides : sequence of int, optional
        Steps in elements, u32: larger than packed is padding, 0 repeats (inputs only). Packed row-major by
        default. Directions belong to the window.

    Raises
    ------
    TypeError, ValueError
        A rule above is broken.
    """

    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None

    def __init__(
        self,
        dtype: DTypeLike,
        sizes: Iterable[SupportsIndex],
        strides: Iterable[SupportsIndex] | None = None,
    ) -> None:
        with named("TensorDesc"):
            extents = integers("sizes", sizes)
            steps = None if strides is None else integers("strides", strides)
            if not 1 <= len(extents) <= MAX_RANK:
                raise ValueError(f"sizes {extents} have rank {len(extents)}: the rank must be 1 to {MAX_RANK}")
            check_within("sizes", extents, 1, U32_MAX, "a u32 of at least 1")
            if steps is not None:
                if len(steps) != len(extents):
                    raise ValueError(f"{len(steps)} strides for {len(extents)} sizes: one of each is needed")
                check_within("strides", steps, 0, U32_MAX, "a u32")
            object.__setattr__(self, "dtype", element_dtype(dtype))
            object.__setattr__(self, "sizes", extents)
            object.__setattr__(self, "strides", steps)

    @property
    def layout(self) -> Layout:
        """Where the elements lie from the start of the binding."""
        return Layout.packed(self.sizes) if self.strides is None else Layout.of(self.sizes, self.strides)

    @property
    def nbytes(self) -> int:
        """Least bytes of a binding: to the end of the last element, rounded up to 4."""
        return -(-self.layout.stop * self.dtype.itemsize // 4) * 4


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
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

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
            object.__setattr__(self, "offsets", window.offsets)
            object.__setattr__(self, "sizes", window.sizes)
            object.__setattr__(self, "strides", window.strides)

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        ranges = Window(self.offsets, self.sizes, self.strides).ranges(self.output.sizes)
        return CompiledOperator(device, "Slice1", self.input, self.output, self.input.layout.select(ranges))


class CompiledOperator:
    """An operator planned for a device: call it, or record it into commands of your own.

    Attributes
    ----------
    device : Device
        Where it runs.
    plan : Plan
        What runs, and why, for bindings whose byte offsets are multiples of the device's binding alignment.
        Other offsets get a plan of their own from the same planner.
    """

    def __init__(
        self, device: Device, name: str, input: TensorDesc, output: TensorDesc, source: Layout
    ) -> None:
        self.device = device
        self.name = name
        self.input = input
        self.output = output
        self.source = source  # what is read of the input, index by index of the output
        self.plan: Plan = plan_copy(source, output.layout, input.dtype.itemsize, device.limits)

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Run on a tensor.

        Parameters
        ----------
        x : Tensor
            Of the described dtype, sizes and strides, at any offset.
        out : Tensor, optional
            As described too, in another buffer than `x`. A new one by default.

        Returns
        -------
        Tensor
            `out`. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError
            A tensor is not as described, not on this device, or both share a buffer.
        """
        with named(self.name):
            check_tensor("x", x)
            source = self._bound("input", self.input, x)
            if out is None:
                nbytes = self.output.nbytes
                buffer = self.device.create_buffer(nbytes)
                out = Tensor(self.device, buffer, self.output.dtype, self.output.layout)
            check_tensor("out", out)
            target = self._bound("output", self.output, out)
            run_copy(self.device, self.input.dtype.itemsize, self._window(source), target)
        return out

    def record(self, encoder: CommandEncoder, *, input: Binding, output: Binding) -> None:
        """Record into a command encoder of the caller's, who finishes and submits it.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        input, output : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            A tensor as described, or a buffer with usage STORAGE and the byte offset, a multiple of the
            item size, at which the described tensor starts in it.

        Raises
        ------
        TypeError, ValueError
            A binding is too small, misaligned, destroyed, mapped, of another device or without STORAGE; a
            tensor is not as described; both share a buffer. Nothing is recorded then.
        """
        with named(self.name):
            source = self._bound("input", self.input, input)
            target = self._bound("output", self.output, output)
            record_copy(self.device, encoder, self.input.dtype.itemsize, self._window(source), target)

    def _window(self, source: Operand) -> Operand:
        """The part of a bound input that is read."""
        return Operand(source.buffer, self.source.shifted(source.layout.offset))

    def _bound(self, side: str, desc: TensorDesc, binding: Binding) -> Operand:
        """A binding as an operand, refused where it is not what the descriptor says."""
        if isinstance(binding, Tensor):
            check_described(side, desc, binding)
            return binding.operand
        buffer, offset = binding if isinstance(binding, tuple) else (binding, 0)
        device_of(buffer)  # refuses what is no buffer
        layout = desc.layout.shifted(checked_offset(offset, desc.dtype.itemsize))
        check_fits(buffer, layout, desc.dtype)
        return Operand(buffer, layout)


def check_described(side: str, desc: TensorDesc, tensor: Tensor) -> None:
    """Refuse a tensor that is not what the operator was compiled for."""
    if tensor.dtype != desc.dtype:
        raise TypeError(f"{side} has dtype {tensor.dtype}: compiled for {desc.dtype}")
    if tensor.shape != desc.sizes:
        raise ValueError(f"{side} has sizes {tensor.shape}: compiled for {desc.sizes}")
    if tensor.strides != desc.layout.strides:
        raise ValueError(
            f"{side} has strides {tensor.strides}: compiled for {desc.layout.strides}; describe these in the "
            "TensorDesc, or copy() the tensor"
        )


def check_same_dtype(input: DType, output: DType) -> None:
    """Refuse conversions."""
    if input != output:
        raise TypeError(f"output has dtype {output}, the input {input}: a slice moves bits, so they must be equal")


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
        its buffer with `x`.

    Notes
    -----
    Semantics: `DML_SLICE1_OPERATOR_DESC`; its formula for the most elements uses the stride's magnitude.

    Examples
    --------
    >>> x = asarray(numpy.arange(10))
    >>> slice1(x, offsets=[2], sizes=[6], strides=[-2]).numpy()
    array([7, 5, 3])
    """
    with named("slice1"):
        check_tensor("x", x)
        window = Window.of(offsets, sizes, strides)
        window.check_inside(x.shape)
        if output_sizes is not None:
            taken = integers("output_sizes", output_sizes)
        else:
            taken = window.most_output_sizes if out is None else getattr(out, "shape", ())
        if out is not None:
            check_tensor("out", out)
            check_same_dtype(x.dtype, out.dtype)
            if out.shape != taken:
                raise ValueError(f"out has sizes {out.shape}: must be output_sizes, {taken}")
            check_disjoint(out.layout)
        window.check_output(taken)
        if out is None:
            out = empty_unnamed(taken, x.dtype, x.device)
        source = Operand(x.buffer, x.layout.select(window.ranges(taken)))
        run_copy(x.device, x.dtype.itemsize, source, out.operand)
    return out
