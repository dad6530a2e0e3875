"""ExtractWindows and InsertWindows: many windows of one tensor at once, as functions and as descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, ParamSpec, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import Integers, integers
from wgslice.dtypes import DType
from wgslice.errors import named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Copy, planned_anew, run_copy
from wgslice.operators.binding import TensorDesc, check_descs, output_for
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.operators.windows_arguments import (
    AnyWindows,
    Outside,
    Table,
    are_per_window,
    bound_offsets,
    by_buffer,
    cached_by_value,
    checked_windows,
    extracted_windows,
    gathered,
    given_offsets,
    inserted_windows,
    integer_array,
    packed_windows,
    repeated_bytes,
    sizes_table,
    with_a_dimension,
)
from wgslice.plans.overlaps import Overlap, kept_overlap
from wgslice.plans.plan import Planner
from wgslice.plans.window_strategies import windows_planner
from wgslice.plans.windows import Packing, SizedWindows
from wgslice.tensors.placed import (
    as_copied,
    check_destination,
    check_of_numbers,
    check_tensor,
    uploaded,
    viewed,
)
from wgslice.tensors.tensor import Tensor, allocate

Arguments = ParamSpec("Arguments")
ORDER = "the order is insert_windows(x, offsets, windows)"


@dataclass(frozen=True, init=False, eq=False)
class WindowsDescriptor(Descriptor):
    """Checked windows of a tensor to extract or to insert, and the planner of their copy."""

    input: TensorDesc
    output: TensorDesc
    offsets: TensorDesc | NDArray[np.int32]
    windows: AnyWindows
    planner: Planner

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        order, on_zeros, sides = 1, None, (self.input, self.output)
        if isinstance(self, InsertWindows):  # whose output is the tensor
            order, on_zeros = -1, self.planner
        tensor, batch = (side.layout for side in sides[::order])
        source, target = with_a_dimension(self.windows, tensor, batch)[::order]
        known: dict[str, Any] = {"target": target, "planner_on_zeros": on_zeros, "offsets": self.offsets}
        return CompiledOperator(device, type(self).__name__, *sides, source, self.planner, **known)


@dataclass(frozen=True, init=False, eq=False)
class ExtractWindows(WindowsDescriptor):
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
            self._hold(input, output, offsets=known, windows=windows, planner=windows_planner(windows))

    @property
    def output_offsets(self) -> NDArray[np.int64] | None:
        """The first element of each window in the packed output, if windows have sizes of their own."""
        return self.windows.packing.starts if isinstance(self.windows, SizedWindows) else None


@dataclass(frozen=True, init=False, eq=False)
class InsertWindows(WindowsDescriptor):
    """Descriptor of `insert_windows`, to compile: write the windows of `input` into `output`.

    Parameters
    ----------
    input : TensorDesc or None
        Windows of the sizes `(B, *sizes)`. If `sizes` are given, of one dimension, as `None` makes it.
    output : TensorDesc
        Of the same dtype and rank 0 to 7, one less than the input's; each size at most 2^31 - 1. Elements
        that no window writes keep their value; a call without `out` starts from zeros.
    offsets, strides : array_like of int or TensorDesc, array_like of int
        As of `ExtractWindows`; strides are 1 by default.
    sizes : array_like of int, shape (B, rank), optional
        Sizes of each window, which are packed in the input as `extract_windows` packs them.
    overlap, outside : str, optional
        As of `insert_windows`.

    Attributes
    ----------
    input_offsets : numpy.ndarray of int64, shape (B,), or None
        If `sizes` are given, the first element of each window in the input.

    Raises
    ------
    WindowError, TypeError, ValueError
        As `insert_windows`; or the output's layout places two elements on the same bytes.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> sides = wg.TensorDesc("int64", (2, 3)), wg.TensorDesc("int64", (8,))
    >>> operator = wg.default_device().compile(wg.InsertWindows(*sides, offsets=[[4], [0]]))
    >>> operator(wg.asarray([[1, 2, 3], [7, 8, 9]])).numpy()
    array([7, 8, 9, 0, 1, 2, 3, 0])
    """

    def __init__(
        self,
        input: TensorDesc | None,
        output: TensorDesc,
        offsets: ArrayLike | TensorDesc,
        strides: ArrayLike | None = None,
        *,
        sizes: ArrayLike | None = None,
        overlap: Overlap = "refuse",
        outside: Outside | None = None,
    ) -> None:
        with named("InsertWindows"):
            check_descs(output=output)
            rule = kept_overlap(overlap, output.dtype.itemsize)
            table, packing, kept = given_offsets(offsets), None, None
            if sizes is not None:
                kept = sizes_table(sizes, table.shape)
                packing = packed_windows(kept, output.dtype.itemsize)
                input = packed_desc("input", input, output.dtype, packing)
            check_descs(input=input)
            assert input is not None
            given = input.sizes if kept is None else kept
            windows = inserted_windows(table, given, output.sizes, strides, outside, packing)
            planner = windows_planner(windows, output.sizes, rule)
            known = offsets if isinstance(offsets, TensorDesc) else windows.offsets
            self._hold(input, output, offsets=known, planner=planner, windows=windows)

    @property
    def input_offsets(self) -> NDArray[np.int64] | None:
        """The first element of each window in the packed input, if windows have sizes of their own."""
        return self.windows.packing.starts if isinstance(self.windows, SizedWindows) else None


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
    each = integer_array("sizes", sizes) if are_per_window(sizes) else integers("sizes", sizes)
    directions = None if strides is None else integer_array("strides", strides)
    arguments = each, directions, filled, outside, x.itemsize
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
    return windows, windows_planner(windows)


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
        run_copy(x.device, Copy(source, target, windows_planner(some), on_gpu, planned_anew))
    return outputs


def packed_desc(name: str, desc: TensorDesc | None, dtype: DType, packing: Packing) -> TensorDesc:
    """Return the descriptor of packed windows, or the one that is given, checked."""
    if desc is None:
        return TensorDesc(dtype, (packing.size,))
    check_descs(**{name: desc})
    if desc.sizes != (packing.size,):
        raise ValueError(f"{name} sizes {desc.sizes}: must be ({packing.size},), packed windows")
    return desc


def packed_output(x: Tensor, size: int, out: Tensor | None) -> Tensor:
    """Return `out`, checked for packed windows of `x`, or a new tensor."""
    if out is None:
        return allocate((size,), x.dtype, x.device, zeroed=False)
    check_tensor("out", out, written=True)
    check_destination(out, x.dtype, "out")
    if out.shape != (size,) or not out.is_packed:
        raise ValueError(
            f"out has sizes {out.shape} and strides {out.strides}: must be ({size},), packed, or a list with "
            "a tensor for each window"
        )
    return out


def checked_outputs(dtype: DType, out: list[Any], sizes: Table) -> list[Tensor]:
    """Return the tensors of a list `out`, one for each window."""
    if len(out) != len(sizes):
        raise ValueError(f"out has {len(out)} tensors: must be {len(sizes)}, one for each window")
    for number, (tensor, expected) in enumerate(zip(out, map(tuple, sizes.tolist()), strict=True)):
        name = f"out[{number}]"
        check_tensor(name, tensor, written=True)
        check_destination(tensor, dtype, name)
        if tensor.shape != expected:
            raise ValueError(f"{name} has sizes {tensor.shape}: must be {expected}")
    return out


def hinting(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Make a function refuse `offsets` by name after two arguments: their order would be another one."""

    @wraps(function)
    def hint(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        if len(arguments) > 1 and "offsets" in options:
            raise TypeError(
                f"insert_windows: {len(arguments)} arguments in order, and offsets by name: {ORDER}"
            )
        function(*arguments, **options)

    return hint


@hinting
@public()
def insert_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    windows: Tensor | ArrayLike | Sequence[Tensor | ArrayLike],
    strides: ArrayLike | None = None,
    *,
    overlap: Overlap = "refuse",
    outside: Outside | None = None,
) -> None:
    """Write many windows into one tensor, the target, which comes first as in `numpy.put`.

    Parameters
    ----------
    x : Tensor
        Target: of rank 0 to 8, each size at most 2^31 - 1, any dtype, and any view in which no element
        repeats. Elements that no window writes keep their value.
    offsets : array_like of int, shape (B, rank), or Tensor of integers
        As of `extract_windows`.
    windows : Tensor, array_like, or list of these
        Windows of the sizes `(B, *sizes)`, or a list of B windows of any sizes. A tensor has `x`'s dtype and
        device, and may share its buffer; it is read before anything is written. An array is cast where
        NumPy's rule `same_kind` allows it.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        As of `extract_windows`, so that a window of `size` reaches over `(size - 1) * abs(stride) + 1`.
    overlap : {"refuse", "last", "disjoint"}, optional
        Rule for windows that overlap in `x`: "refuse" raises WindowError, and with "last" the window with
        the greater index wins. "disjoint" promises that no windows overlap, which saves the last-writer
        pass for elements of up to 4 bytes; if some do, either value stays, element by element, and no other
        byte changes.
        Several windows at offsets in a tensor, which are not read back, need "last" or "disjoint".
    outside : {"refuse", "clamp", "drop"}, optional
        As of `extract_windows`, so that a read and a write by the same offsets meet the same elements; "drop"
        writes the elements inside of `x` alone.

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    WindowError
        Windows overlap or leave `x`, and that is refused; a window is larger than `x`, unless elements
        outside are dropped; or a stride is 0, no i32, or of another magnitude. Nothing is written then.
    OverflowError
        `windows` has a Python integer that `x`'s dtype does not hold.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `copyto`, of `windows` and `x`, and of tensors of offsets; or the shapes do not match.

    Notes
    -----
    Tensors of a list that are in one buffer are read where they are; others are copied into one first.

    If windows may overlap, a last-writer pass first writes winner indices to a buffer, 4 bytes for each index
    of `x`, or for 16 bytes of long rows; all dimensions that every window covers count as one index.

    After `windows = extract_windows(x, offsets, sizes, strides)`, `insert_windows(x, offsets, windows,
    strides)` leaves `x` as it is, also where both clamp, if the magnitude of each stride divides `size - 1`.
    If it does not, the window of `extract_windows` is larger than the extent of its elements: a reversed one
    begins at that window's end, and a clamped one is moved further.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.zeros(10, np.int64)
    >>> wg.insert_windows(x, [[6], [1]], [[1, 2, 3], [4, 5, 6]], strides=[[1], [-1]])
    >>> x.numpy()
    array([0, 6, 5, 4, 0, 0, 1, 2, 3, 0])
    >>> wg.insert_windows(x, [[-1], [4], [5]], [[7, 7], [8, 8], [9, 9]], overlap="last", outside="drop")
    >>> x.numpy()
    array([7, 6, 5, 4, 8, 9, 9, 2, 3, 0])
    """
    listed = listed_windows(windows)
    if listed is None:
        check_order(x, offsets, windows)
    check_tensor("x", x)
    given: Any = listed
    if listed is None:
        given = windows if isinstance(windows, Tensor) else as_copied(windows, x.dtype)
        check_destination(x, given.dtype)
    write_windows(x, offsets, given, strides, overlap, outside)


def write_windows(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    windows: Tensor | NDArray[Any] | list[Any],
    strides: ArrayLike | None,
    overlap: Overlap,
    outside: Outside | None,
) -> None:
    """Write a batch of windows, or windows of a list, into a tensor."""
    rule = kept_overlap(overlap, x.itemsize)
    directions = None if strides is None else integer_array("strides", strides)
    places: Sequence[Table] = ()
    if isinstance(windows, list):
        listed = checked_windows(x, windows)
        sizes = np.array([each.shape for each in listed], np.int64).reshape(len(listed), x.ndim)
        source, packing = gathered(x.device, x.dtype, listed, sizes)
        places = packing[:2]
    given = windows.shape if not isinstance(windows, list) else sizes
    arguments = given_offsets(offsets), given, x.shape, directions, outside, *places
    boxes, planner, planning = prepared_insertion(rule, *arguments)
    if not isinstance(windows, list):
        source = windows.bound_layout if isinstance(windows, Tensor) else uploaded(x.device, windows)
    target, batch = with_a_dimension(boxes, x.layout, source.layout)
    sides = source._replace(layout=batch), x.bound_layout._replace(layout=target)
    run_copy(x.device, Copy(*sides, planner, bound_offsets(offsets, boxes), planning))


@cached_by_value
def prepared_insertion(
    overlap: str,
    offsets: Any,
    sizes: tuple[int, ...] | Table,
    tensor_sizes: tuple[int, ...],
    strides: Any,
    outside: Outside | None,
    *places: Table,
) -> tuple[AnyWindows, Planner]:
    """Return windows, at `places` in a buffer if they have sizes of their own, and their planner."""
    packing = Packing(places[0], places[1], 0) if places else None
    windows = inserted_windows(offsets, sizes, tensor_sizes, strides, outside, packing)
    return windows, windows_planner(windows, tensor_sizes, overlap)


def listed_windows(windows: Any) -> list[Any] | None:
    """Return windows in a list of tensors, or of arrays of different shapes; None if they are a batch."""
    if not isinstance(windows, list | tuple):
        return None
    if not windows or any(isinstance(each, Tensor) for each in windows):
        return list(windows)
    if all(np.ndim(each) == 0 for each in windows) or len({np.shape(each) for each in windows}) < 2:
        return None
    return [np.asarray(each) for each in windows]


def check_order(x: object, offsets: object, windows: object) -> None:
    """Refuse arguments in the order (windows, x, offsets), recognised by their shapes."""
    if not isinstance(offsets, Tensor):
        return
    batch, table = map(shape_of, (x, windows))
    if len(batch) == offsets.ndim + 1 and table == (batch[0], offsets.ndim):
        raise ValueError(
            f"x has sizes {batch}, offsets {offsets.shape}, windows {table}: these are windows, a tensor and "
            f"their offsets; {ORDER}"
        )


def shape_of(value: object) -> tuple[int, ...]:
    """The shape of a tensor or an array_like."""
    if isinstance(value, Tensor):
        return value.shape
    check_of_numbers(value)
    return np.shape(cast("Any", value))
