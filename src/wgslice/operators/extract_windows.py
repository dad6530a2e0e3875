"""ExtractWindows: many windows of one tensor at once, as a function and as a descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import Integers
from wgslice.errors import named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import BoundCopy, run_copy
from wgslice.layout_rules import unsqueezed
from wgslice.operators.binding import TensorDesc, check_descs, output_for
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.operators.sized_windows import are_per_window, extract_sized, packed_desc, sized_extraction
from wgslice.operators.windows_arguments import (
    OnGpu,
    cached_by_value,
    extracted_windows,
    repeated_bytes,
    with_a_dimension,
)
from wgslice.plans.plan import Planner
from wgslice.plans.sized import SizedWindows
from wgslice.plans.sized_strategies import extract_sized_planner
from wgslice.plans.window_strategies import extract_windows_planner
from wgslice.plans.windows import Windows
from wgslice.tensors.placed import check_tensor
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
    windows: Windows | SizedWindows
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
            table = OnGpu(offsets.sizes, offsets.dtype) if isinstance(offsets, TensorDesc) else offsets
            arguments: tuple[Any, ...] = table, input.sizes, sizes, strides, filled, outside
            windows: Windows | SizedWindows
            if are_per_window(sizes):
                windows = sized_extraction(*(*arguments, input.dtype.itemsize))
                planner = extract_sized_planner(windows)
                output = packed_desc("output", output, input.dtype, windows.sizes)
            else:
                check_descs(output=output)
                assert output is not None
                windows = extracted_windows(*arguments)
                planner = extract_windows_planner(windows)
                expected = windows.count, *windows.sizes[: input.layout.rank]
                if output.sizes != expected:
                    raise ValueError(f"output sizes {output.sizes}: must be {expected}, windows first")
            known = offsets if isinstance(offsets, TensorDesc) else windows.offsets
            self._hold(input, output, offsets=known, windows=windows, planner=planner)

    @property
    def output_offsets(self) -> NDArray[np.int64] | None:
        """The first element of each window in the packed output, if windows have sizes of their own."""
        return self.windows.starts if isinstance(self.windows, SizedWindows) else None

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        source, target = self.input.layout, self.output.layout
        if not isinstance(self.windows, SizedWindows):
            source, target = with_a_dimension(source, target)
        elif not source.rank:
            source = unsqueezed(source, [0])
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
    table = OnGpu(offsets.shape, offsets.dtype) if isinstance(offsets, Tensor) else offsets
    if are_per_window(sizes):
        return extract_sized(x, offsets, sizes, strides, filled, outside, out)
    windows, planner, planning = prepared_extraction(table, x.shape, sizes, strides, filled, outside)
    on_gpu = offsets.bound_layout if isinstance(offsets, Tensor) and windows.offsets is None else None
    expected = windows.count, *windows.sizes[: x.ndim]
    output = output_for(x, expected, out, behind=", windows first", zeroed=False)
    source, target = (x, output) if x.ndim else (x[None], output[:, None])
    written = target.bound_layout._replace(fresh=out is None)
    run_copy(x.device, BoundCopy(source.bound_layout, written, planner, on_gpu, planning))
    return output


@cached_by_value
def prepared_extraction(*arguments: Any) -> tuple[Windows, Planner]:
    """Return the windows of the arguments of `extracted_windows`, and the planner of their extraction."""
    windows = extracted_windows(*arguments)
    return windows, extract_windows_planner(windows)
