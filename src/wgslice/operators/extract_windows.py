"""ExtractWindows: many windows of one tensor at once, as a function and as a descriptor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import I32_MAX, I32_MIN, MAX_RANK, integers
from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import WindowError, named
from wgslice.gpu.device import Device
from wgslice.gpu.recording import run
from wgslice.layout import check_disjoint
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.outputs import output_for
from wgslice.operators.tensor_desc import TensorDesc, check_descs
from wgslice.plans.aside import plan_anew
from wgslice.plans.extract_windows import extract_windows_planner
from wgslice.plans.window_steps import Windows
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.writing import as_assigned

__all__ = ["ExtractWindows", "extract_windows"]


@dataclass(frozen=True, init=False, eq=False)
class ExtractWindows:
    """Descriptor: copy many windows of `input`, each at offsets and in directions of its own, to `output`.

    `output[b]` is what Slice1 gives for `offsets[b]`, `sizes`, `strides[b]`.

    Parameters
    ----------
    input : TensorDesc
        Of rank 1 to 7, since the output has a dimension more; each size at most 2^31 - 1.
    output : TensorDesc
        Of the same dtype and the sizes `(B, 1 + (sizes - 1) // abs(strides), ...)`.
    offsets : array_like of int, shape (B, rank), or TensorDesc
        First element of each window, so that the window lies inside the input; with `fill` anywhere. Or the
        descriptor of a packed tensor of integers that is bound when the operator runs; what lies outside is
        then as `extract_windows` says.
    sizes : sequence of int
        Extent of the windows in elements, at least 1.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        Step within the windows in elements, not 0; a negative one begins at the window's end. Windows may
        differ in its sign, not in its magnitude. 1 by default.
    fill : scalar, optional
        What lies outside of the input, cast as NumPy assigns it. Nothing may by default.

    Raises
    ------
    WindowError
        A window breaks one of these rules.
    TypeError, ValueError
        The dtypes or sizes differ, or the output's layout places two elements on the same bytes.
    """

    input: TensorDesc
    output: TensorDesc
    offsets: TensorDesc | NDArray[np.int32]
    windows: Windows

    def __init__(
        self,
        input: TensorDesc,
        output: TensorDesc,
        offsets: ArrayLike | TensorDesc,
        sizes: Iterable[SupportsIndex],
        strides: ArrayLike | None = None,
        fill: Any = None,
    ) -> None:
        with named("ExtractWindows"):
            check_descs(input=input, output=output)
            filled = None if fill is None else repeated_bytes(fill, input.dtype)
            if isinstance(offsets, TensorDesc):
                integer_dtype(offsets.dtype)
                windows = windows_on_gpu(offsets.sizes, offsets.dtype, input.sizes, sizes, strides, filled)
            else:
                windows = windows_of(offsets, input.sizes, sizes, strides, filled)
            check_same_dtype(input.dtype, output.dtype)
            expected = windows.count, *windows.sizes
            if output.sizes != expected:
                raise ValueError(f"output sizes {output.sizes}: must be {expected}, windows first")
            check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "offsets", offsets if windows.offsets is None else windows.offsets)
        object.__setattr__(self, "windows", windows)

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        described = self.offsets if isinstance(self.offsets, TensorDesc) else None
        return CompiledOperator(
            device,
            "ExtractWindows",
            self.input,
            self.output,
            self.input.layout,
            extract_windows_planner(self.windows),
            offsets=described,
        )


def extract_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: Iterable[SupportsIndex],
    strides: ArrayLike | None = None,
    *,
    fill: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Copy many windows of one tensor at once, each at offsets and in directions of its own.

    Parameters
    ----------
    x : Tensor
        Of rank 1 to 8, each size at most 2^31 - 1, and any dtype; views welcome.
    offsets : array_like of int, shape (B, rank), or Tensor of integers
        First element of each window. Of an array each window must lie inside of `x`, unless there is a
        `fill`. Of a tensor nothing is known before the GPU reads it: without `fill`, an offset from which the
        window would leave `x` is taken as the nearest from which it does not.
    sizes : sequence of int
        Extent of the windows in elements, at least 1; without `fill` at most `x.shape`.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        Step within the windows in elements, not 0. A negative one begins at the window's end: it mirrors.
        Windows may differ in its sign, not in its magnitude. 1 by default.
    fill : scalar, optional
        What the outside of `x` reads as, cast as NumPy assigns it to an array of `x`'s dtype.
    out : Tensor, optional
        Where to write, of `x`'s dtype and the result's sizes, as in `slice1`; it may lie in the buffer of `x`
        or of `offsets`.

    Returns
    -------
    Tensor
        Of the sizes `(B, 1 + (sizes - 1) // abs(strides), ...)`: `out`, or packed in a buffer of its own. The
        work is submitted, not waited for.

    Raises
    ------
    WindowError
        A window breaks one of these rules, or leaves `x`.
    OverflowError
        `fill` is a Python integer that `x`'s dtype does not hold.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`, of `x`, `out` and tensors of offsets; or `offsets` or `strides` have another shape.

    Notes
    -----
    Semantics: `result[b]` is `slice1(x, offsets[b], sizes, strides[b])`.

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
    """
    with named("extract_windows"):
        check_tensor("x", x)
        filled = None if fill is None else repeated_bytes(fill, x.dtype)
        on_gpu = None
        if isinstance(offsets, Tensor):
            integer_dtype(offsets.dtype)
            on_gpu = offsets.operand
            windows = windows_on_gpu(offsets.shape, offsets.dtype, x.shape, sizes, strides, filled)
        else:
            windows = windows_of(offsets, x.shape, sizes, strides, filled)
        expected = windows.count, *windows.sizes
        output = output_for(x, expected, out, f"{expected}, windows first")
        target = output.operand._replace(fresh=out is None)
        planner = extract_windows_planner(windows)
        run(x.device, planner, x.operand, target, on_gpu, planning=plan_anew)
        return output


def repeated_bytes(fill: Any, dtype: DType) -> bytes:
    """A scalar as 16 bytes of elements."""
    if np.ndim(fill) != 0:
        raise TypeError(f"fill has shape {np.shape(fill)}: must be a scalar")
    return np.full(16 // dtype.itemsize, as_assigned(fill, dtype)).tobytes()


def integer_dtype(dtype: DType) -> None:
    """Refuse offsets that are no integers."""
    if dtype.kind not in "iu" or dtype.itemsize > 8:
        raise TypeError(f"offsets have dtype {dtype}: must be integers")


def windows_of(
    offsets: ArrayLike,
    input_sizes: tuple[int, ...],
    sizes: Iterable[SupportsIndex],
    strides: ArrayLike | None,
    fill: bytes | None,
) -> Windows:
    """Windows whose offsets are known, each of them checked."""
    places = integer_array("offsets", offsets)
    extents, steps, flips = checked_window(places.shape, input_sizes, sizes, strides, fill is not None)
    lowest = np.zeros(len(extents), np.int64)
    highest = np.asarray(input_sizes, np.int64) - np.asarray(extents)
    leaving = (places < lowest) | (places > highest)
    if fill is None and leaving.any():
        window, axis = (int(index) for index in np.argwhere(leaving)[0])
        offset, extent = int(places[window, axis]), extents[axis]
        raise WindowError(
            f"offsets[{window}][{axis}] = {offset}: a window of size {extent} from there leaves the input's "
            f"size {input_sizes[axis]} in dimension {axis}; move it, or name a fill"
        )
    if not leaving.any():
        fill = None
    known = np.clip(places, I32_MIN, I32_MAX).astype(np.int32)
    return Windows(extents, steps, flips, known, 4, True, fill)


def windows_on_gpu(
    shape: tuple[int, ...],
    dtype: DType,
    input_sizes: tuple[int, ...],
    sizes: Iterable[SupportsIndex],
    strides: ArrayLike | None,
    fill: bytes | None,
) -> Windows:
    """Windows whose offsets the GPU has."""
    extents, steps, flips = checked_window(shape, input_sizes, sizes, strides, fill is not None)
    return Windows(extents, steps, flips, None, dtype.itemsize, dtype.kind == "i", fill)


def integer_array(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Integers in an array; unsigned ones that need 64 bits as the nearest that do not."""
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list says nothing of its dtype
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} have dtype {array.dtype}: must be integers")
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(np.iinfo(np.int64).max))
    return array.astype(np.int64)


def checked_window(
    shape: tuple[int, ...],
    input_sizes: tuple[int, ...],
    sizes: Iterable[SupportsIndex],
    strides: ArrayLike | None,
    filled: bool,
) -> tuple[tuple[int, ...], tuple[int, ...], NDArray[np.uint32]]:
    """Extents, magnitudes of the steps, and directions of windows whose offsets have a shape."""
    rank = len(input_sizes)
    if not 1 <= rank <= MAX_RANK:
        raise WindowError(f"windows of an input of rank {rank}: the rank must be 1 to {MAX_RANK}")
    if len(shape) != 2 or shape[1] != rank:
        raise ValueError(f"offsets have shape {shape}: must be (windows, {rank}), one for each dimension")
    extents = integers("sizes", sizes)
    if len(extents) != rank:
        raise WindowError(f"{len(extents)} sizes for an input of rank {rank}: there must be one a dimension")
    for axis, (extent, size) in enumerate(zip(extents, input_sizes, strict=True)):
        most = I32_MAX if filled else size
        if not 1 <= extent <= most:
            what = f"an i32 of at least 1, 1 to {most}" if filled else f"1 to the input's size, {most}"
            raise WindowError(f"sizes[{axis}] = {extent}: must be {what}")
        if size > I32_MAX:
            raise ValueError(f"the input's size {size} in dimension {axis}: must be at most {I32_MAX}")
    return extents, *checked_strides(strides, shape)


def checked_strides(
    strides: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], NDArray[np.uint32]]:
    """Magnitudes, the same for all windows, and directions."""
    count, rank = shape
    given = np.ones(rank, np.int64) if strides is None else integer_array("strides", strides)
    if given.shape not in ((rank,), (count, rank)):
        raise ValueError(f"strides have shape {given.shape}: must be ({rank},) or ({count}, {rank})")
    rows = given.reshape(-1, rank)
    if len(rows) == 0:  # no windows, and none that says how they go
        rows = np.ones((1, rank), np.int64)
    magnitudes = np.abs(rows)
    for wrong, rule in (
        (rows == 0, "must not be 0"),
        ((rows < I32_MIN) | (rows > I32_MAX), f"must be an i32, {I32_MIN} to {I32_MAX}"),
        (magnitudes != magnitudes[0], "must have the magnitude of the first window's"),
    ):
        if wrong.any():
            window, axis = (int(index) for index in np.argwhere(wrong)[0])
            place = f"[{window}][{axis}]" if given.ndim == 2 else f"[{axis}]"
            raise WindowError(f"strides{place} = {int(rows[window, axis])}: {rule}")
    bits = ((rows < 0) << np.arange(rank)).sum(axis=1).astype(np.uint32)
    steps = tuple(int(step) for step in magnitudes[0])
    return steps, np.ascontiguousarray(np.broadcast_to(bits, count))
