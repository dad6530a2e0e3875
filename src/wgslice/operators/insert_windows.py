"""InsertWindows: write many windows into one tensor at once, as a function and as a descriptor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.errors import named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import Binding, Copy, run_copy
from wgslice.operators.binding import TensorDesc, check_descs
from wgslice.operators.compiled import CompiledOperator, Descriptor
from wgslice.operators.window_lists import checked_windows, gathered, packed_desc
from wgslice.operators.windows_arguments import (
    AnyWindows,
    Outside,
    Table,
    bound_offsets,
    cached_by_value,
    given_integers,
    given_offsets,
    inserted_windows,
    packed_windows,
    sizes_table,
    with_a_dimension,
)
from wgslice.plans.overlaps import Overlap, kept_overlap
from wgslice.plans.plan import Planner
from wgslice.plans.window_strategies import insertion_planner
from wgslice.plans.windows import Packing, SizedWindows
from wgslice.tensors.placed import as_copied, check_destination, check_of_numbers, check_tensor, uploaded
from wgslice.tensors.tensor import Tensor

Arguments = ParamSpec("Arguments")
ORDER = "the order is insert_windows(x, offsets, windows)"


@dataclass(frozen=True, init=False, eq=False)
class InsertWindows(Descriptor):
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

    input: TensorDesc
    output: TensorDesc
    offsets: TensorDesc | NDArray[np.int32]
    planner: Planner
    windows: AnyWindows

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
            planner = insertion_planner(windows, output.sizes, rule)
            known = offsets if isinstance(offsets, TensorDesc) else windows.offsets
            self._hold(input, output, offsets=known, planner=planner, windows=windows)

    @property
    def input_offsets(self) -> NDArray[np.int64] | None:
        """The first element of each window in the packed input, if windows have sizes of their own."""
        return self.windows.packing.starts if isinstance(self.windows, SizedWindows) else None

    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, without pipelines."""
        target, source = with_a_dimension(self.windows, self.output.layout, self.input.layout)
        sides = self.input, self.output, source
        return CompiledOperator(
            device,
            "InsertWindows",
            *sides,
            self.planner,
            target=target,
            planner_on_zeros=self.planner,
            offsets=self.offsets,
        )


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
    if listed is not None:
        insert_listed(x, offsets, listed, strides, overlap, outside)
        return
    given = windows if isinstance(windows, Tensor) else as_copied(windows, x.dtype)
    check_destination(x, given.dtype)
    insert_placed(x, offsets, given, given.shape, strides, overlap, outside)


def insert_listed(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    windows: list[Any],
    strides: ArrayLike | None,
    overlap: Overlap,
    outside: Outside | None,
) -> None:
    """Write windows of a list into a tensor."""
    listed = checked_windows(x, windows)
    sizes = np.array([each.shape for each in listed], np.int64).reshape(len(listed), x.ndim)
    source, packing = gathered(x.device, x.dtype, listed, sizes)
    insert_placed(x, offsets, source, sizes, strides, overlap, outside, packing)


def insert_placed(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    windows: Tensor | NDArray[Any] | Binding,
    sizes: tuple[int, ...] | Table,
    strides: ArrayLike | None,
    overlap: Overlap,
    outside: Outside | None,
    packing: Packing | None = None,
) -> None:
    """Write a batch of windows, or those at places of a buffer, into a tensor."""
    rule, directions = kept_overlap(overlap, x.itemsize), given_integers("strides", strides)
    arguments = given_offsets(offsets), sizes, x.shape, directions, outside, *(packing or ())[:2]
    boxes, planner, planning = prepared_insertion(rule, *arguments)
    source = windows.bound_layout if isinstance(windows, Tensor) else windows
    if isinstance(source, np.ndarray):
        source = uploaded(x.device, source)
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
    return windows, insertion_planner(windows, tensor_sizes, overlap)


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
