"""ExtractWindows: many windows of one tensor at once, as a function and as a descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import Integers
from wgslice.errors import named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Copy, planned_anew, run_copy
from wgslice.operators.binding import TensorDesc, check_descs, output_for
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.operators.window_lists import by_buffer, checked_outputs, packed_desc, packed_output
from wgslice.operators.windows_arguments import (
    AnyWindows,
    bound_offsets,
    cached_by_value,
    extracted_windows,
    given_integers,
    given_offsets,
    given_sizes,
    repeated_bytes,
    with_a_dimension,
)
from wgslice.plans.plan import Planner
from wgslice.plans.window_strategies import extraction_planner
from wgslice.plans.windows import SizedWindows
from wgslice.tensors.placed import check_tensor, viewed
from wgslice.tensors.tensor import Tensor


@dataclass(frozen=True, init=False, eq=False)
class ExtractWindows(Descriptor):
    """Descriptor of `extract_windows`, to compile: copy many windows of `input` to `output`.

    Parameters
    ----------
    input : TensorDesc
        Of rank 0 to 7, since the output has a dimension more; each size at most 2^31 - 1.
    output : TensorDesc or None
        Of the same dtype and the sizes `(B, 1 + (sizes - 1) // abs(strides), ...)`. If `sizes` has a row for
        each window, of one dimension, as `None` makes it.
    offsets : array_like of int, shape (B, rank), or TensorDesc
        First element of each window, or the descriptor of a packed tensor of integers that is bound when the
        operator runs.
    sizes, strides, fill, outside : sequence of int, array_like of int, scalar, str
        As of `extract_windows`.

    Attributes
    ----------
    output_offsets : numpy.ndarray of int64, shape (B,), or None
        If `sizes` has a row for each window, the first element of each in the output: windows are packed,
        each from a multiple of 16 bytes on.

    Raises
    ------
    WindowError, TypeError, ValueError
        As `extract_windows`; or the output's layout places two elements on the same bytes.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (10,)), wg.TensorDesc("int64", (2, 3))
    >>> operator = wg.default_device().compile(wg.ExtractWindows(*sides, offsets=[[2], [7]], sizes=[3]))
    >>> operator(wg.asarray(np.arange(10))).numpy()
    array([[2, 3, 4],
           [7, 8, 9]])
    """

    input: TensorDesc
    output: TensorDesc
    offsets: TensorDesc | NDArray[np.int32]
    windows: AnyWindows
    planner: Planner

    def __init__(
        self,
        input: TensorDesc,
        output: TensorDesc | None,
        offsets: ArrayLike | TensorDesc,
        sizes: Integers | ArrayLike,
        strides: ArrayLike | None = None,
        fill: Any = None,
        *,
        outside: Literal["refuse", "clamp"] | None = None,
    ) -> None:
        with named("ExtractWindows"):
            check_descs(input=input)
            filled = None if fill is None else repeated_bytes(fill, input.dtype)
            arguments = sizes, strides, filled, outside, input.dtype.itemsize
            windows = extracted_windows(given_offsets(offsets), input.sizes, *arguments)
            if isinstance(windows, SizedWindows):
                output = packed_desc("output", output, input.dtype, windows.packing)
            else:
                check_descs(output=output)
                assert output is not None
                expected = windows.count, *windows.sizes[: input.layout.rank]
                if output.sizes != expected:
                    raise ValueError(f"output sizes {output.sizes}: must be {expected}, windows first")
            known = offsets if isinstance(offsets, TensorDesc) else windows.offsets
            self._hold(input, output, offsets=known, windows=windows, planner=extraction_planner(windows))

    @property
    def output_offsets(self) -> NDArray[np.int64] | None:
        """The first element of each window in the packed output, if windows have sizes of their own."""
        return self.windows.packing.starts if isinstance(self.windows, SizedWindows) else None

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        source, target = with_a_dimension(self.windows, self.input.layout, self.output.layout)
        sides = self.input, self.output, source
        return CompiledOperator(
            device, "ExtractWindows", *sides, self.planner, target=target, offsets=self.offsets
        )


@overload  # of an array of any shape
def extract_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: NDArray[Any],
    strides: ArrayLike | None = None,
    *,
    fill: Any = None,
    outside: Literal["refuse", "clamp"] | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
@overload
def extract_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: Integers,
    strides: ArrayLike | None = None,
    *,
    fill: Any = None,
    outside: Literal["refuse", "clamp"] | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def extract_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: Iterable[Integers],
    strides: ArrayLike | None = None,
    *,
    fill: Any = None,
    outside: Literal["refuse", "clamp"] | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> list[Tensor]: ...
@public()
def extract_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: Any,
    strides: ArrayLike | None = None,
    *,
    fill: Any = None,
    outside: Literal["refuse", "clamp"] | None = None,
    out: Any = None,
) -> Tensor | list[Tensor]:
    """Copy many windows of one tensor: `result[b]` is `slice1(x, offsets[b], sizes, strides[b])`.

    Parameters
    ----------
    x : Tensor
        Of rank 0 to 8, each size at most 2^31 - 1, and any dtype; views welcome. The result has a
        dimension more.
    offsets : array_like of int, shape (B, rank), or Tensor of integers
        Position of each window's first element in `x`; a negative one is before the start, and never
        counts from the end.
    sizes : sequence of int, or array_like of int of shape (B, rank)
        Extent of the windows in elements, or of each of them; without `fill` at most `x.shape`. Windows
        without elements may be anywhere.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        Step within the windows in elements, not 0. A negative one begins at the window's end (reversed).
        Windows may differ in its sign, not in its magnitude. 1 by default.
    fill : scalar, optional
        Value that elements outside of `x` read as, cast as NumPy assigns it to an array of `x`'s dtype.
        Windows may then be anywhere, and `outside` must not be given.
    outside : {"refuse", "clamp"}, optional
        Rule for windows that are not inside of `x`: "refuse" raises WindowError, and "clamp" moves it inside
        by the least amount, dimension by dimension, as StableHLO's dynamic_slice does. "refuse" by default
        for offsets in an array; "clamp" for offsets in a tensor, which are not read back to be refused.
    out : Tensor or list of Tensor, optional
        Where to write, of `x`'s dtype and the result's sizes, as in `slice1`; it may share the buffer of
        `x` or of `offsets`. If `sizes` has a row for each window: a tensor of one dimension, as packed as
        `result[0].base`, or one tensor for each window, of which no two share an element.

    Returns
    -------
    Tensor or list of Tensor
        Of the sizes `(B, 1 + (sizes - 1) // abs(strides), ...)`, as `slice1` returns it. If `sizes` has a
        row for each window: a packed tensor of each, all in one buffer, each from a multiple of 16 bytes on.

    Raises
    ------
    WindowError
        A window breaks one of these rules, or leaves `x`, or offsets in a tensor are to be refused.
    OverflowError
        `fill` is a Python integer that `x`'s dtype does not hold.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`, of `x`, `out` and tensors of offsets; `offsets` or `strides` have another shape; or
        `fill` and `outside` are both given.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(10))
    >>> wg.extract_windows(x, offsets=[[2], [7]], sizes=[3], strides=[[1], [-1]]).numpy()
    array([[2, 3, 4],
           [9, 8, 7]])
    >>> wg.extract_windows(x, [[-1], [8]], [3], fill=99).numpy()
    array([[99,  0,  1],
           [ 8,  9, 99]])
    >>> wg.extract_windows(x, [[-1], [8]], [3], outside="clamp").numpy()
    array([[0, 1, 2],
           [7, 8, 9]])
    >>> [window.tolist() for window in wg.extract_windows(x, [[0], [5]], sizes=[[2], [4]])]
    [[0, 1], [5, 6, 7, 8]]
    """
    check_tensor("x", x)
    filled = None if fill is None else repeated_bytes(fill, x.dtype)
    arguments = given_sizes(sizes), given_integers("strides", strides), filled, outside, x.itemsize
    windows, planner, planning = prepared_extraction(given_offsets(offsets), x.shape, *arguments)
    if isinstance(windows, SizedWindows):
        if not (out is None or isinstance(out, Tensor)):
            return extracted_to(list(out), x, offsets, windows)
        output = packed_output(x, windows.packing.size, out)
    else:
        expected = windows.count, *windows.sizes[: x.ndim]
        output = output_for(x, expected, out, behind=", windows first", zeroed=False)
    source, target = with_a_dimension(windows, x.layout, output.layout)
    read = x.bound_layout._replace(layout=source)
    written = output.bound_layout._replace(layout=target, fresh=out is None)
    run_copy(x.device, Copy(read, written, planner, bound_offsets(offsets, windows), planning))
    if not isinstance(windows, SizedWindows):
        return output
    layouts = windows.layouts if x.ndim else [layout.select([0]) for layout in windows.layouts]
    return [viewed(output, layout.shifted(output.layout.offset)) for layout in layouts]


@cached_by_value
def prepared_extraction(*arguments: Any) -> tuple[AnyWindows, Planner]:
    """Return the windows of the arguments of `extracted_windows`, and the planner of their extraction."""
    windows = extracted_windows(*arguments)
    return windows, extraction_planner(windows)


def extracted_to(
    out: list[Any], x: Tensor, offsets: ArrayLike | Tensor, windows: SizedWindows
) -> list[Tensor]:
    """Copy windows of different sizes to a tensor each."""
    outputs = checked_outputs(x.dtype, out, windows.sizes[:, : x.ndim])
    whole, on_gpu = x if x.ndim else x[None], bound_offsets(offsets, windows)
    source = whole.bound_layout
    buffers = by_buffer(outputs)
    if len(buffers) > 1:  # one submission for each, of which an earlier one could overwrite what is read
        overwritten = {id(target.buffer) for _, target, _ in buffers}
        if id(source.buffer) in overwritten:
            source = whole.copy().bound_layout
        if on_gpu is not None and isinstance(offsets, Tensor) and id(on_gpu.buffer) in overwritten:
            on_gpu = offsets.copy().bound_layout
    for numbers, target, packing in buffers:
        among = np.isin(np.arange(len(outputs)), numbers)
        extents = np.where(among[:, None], windows.extents, 0)
        places = packing if x.ndim else packing._replace(strides=np.ones_like(extents))
        some = replace(windows, extents=extents, packing=places)
        run_copy(x.device, Copy(source, target, extraction_planner(some), on_gpu, planned_anew))
    return outputs
