"""InsertWindows: many windows put into one tensor at once, as a function and as a descriptor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.dtypes import check_same_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.layout import check_disjoint
from wgslice.operators.descriptor import Descriptor
from wgslice.operators.planned import PlannedOperator
from wgslice.operators.tensor_desc import TensorDesc, check_descs
from wgslice.plans.insert_windows import insert_windows_planner
from wgslice.plans.overlaps import Insertion, Overlap, insertion_of
from wgslice.tensors.inserting import insert
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.windows_arguments import inserted_on_gpu, inserted_windows, integer_dtype
from wgslice.tensors.writing import as_copied

__all__ = ["InsertWindows", "insert_windows"]


@dataclass(frozen=True, init=False, eq=False)
class InsertWindows(Descriptor):
    """Descriptor: put the windows of `input` into `output`, each at offsets and in directions of its own.

    The mirror of `ExtractWindows`, whose output is here the input, and whose input the output.

    Parameters
    ----------
    input : TensorDesc
        Windows of the sizes `(B, *sizes)`.
    output : TensorDesc
        Of the same dtype and rank 1 to 7, one less than the input's; each size at most 2^31 - 1. What no
        window has keeps its value; a call without `out` puts them into zeros.
    offsets : array_like of int, shape (B, rank), or TensorDesc
        First element of each window; what lies outside of the output is dropped. Or the descriptor of a
        packed tensor of integers that is bound when the operator runs.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        Step within the windows in elements, not 0, as in `ExtractWindows`; 1 by default.
    overlap : {"refuse", "last"}, optional
        As `insert_windows` says.

    Raises
    ------
    WindowError
        Windows overlap, or offsets are bound when it runs, and the later window is not to win; or a window
        breaks one of these rules.
    TypeError, ValueError
        The dtypes differ, or sizes do not go together, or the output's layout places two elements on the same
        bytes.

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
    insertion: Insertion

    def __init__(
        self,
        input: TensorDesc,
        output: TensorDesc,
        offsets: ArrayLike | TensorDesc,
        strides: ArrayLike | None = None,
        *,
        overlap: Overlap = "refuse",
    ) -> None:
        with named("InsertWindows"):
            check_descs(input=input, output=output)
            if isinstance(offsets, TensorDesc):
                integer_dtype(offsets.dtype)
                windows = inserted_on_gpu(offsets.sizes, offsets.dtype, input.sizes, output.sizes, strides)
            else:
                windows = inserted_windows(offsets, input.sizes, output.sizes, strides)
            check_same_dtype(input.dtype, output.dtype)
            check_disjoint(output.layout)
            insertion = insertion_of(windows, output.sizes, overlap)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "offsets", offsets if windows.offsets is None else windows.offsets)
        object.__setattr__(self, "insertion", insertion)

    def planned(self, device: Device) -> PlannedOperator:
        """What `explain` calls: plans on `device`, without a pipeline."""
        described = self.offsets if isinstance(self.offsets, TensorDesc) else None
        return PlannedOperator(
            device,
            "InsertWindows",
            self.input,
            self.output,
            self.input.layout,
            insert_windows_planner(self.insertion),
            offsets=described,
        )


def insert_windows(
    y: Tensor | ArrayLike,
    x: Tensor,
    offsets: ArrayLike | Tensor,
    strides: ArrayLike | None = None,
    *,
    overlap: Overlap = "refuse",
) -> None:
    """Put many windows into one tensor at once, each at offsets and in directions of its own.

    The mirror of `extract_windows`.

    Parameters
    ----------
    y : Tensor or array_like
        Windows of the sizes `(B, *sizes)`. A tensor has `x`'s dtype and device, and may lie in its buffer;
        it is read before anything is written. An array is cast where NumPy's rule `same_kind` allows it.
    x : Tensor
        Where to write: of rank 1 to 8, each size at most 2^31 - 1, any dtype, and any view in which no
        element repeats. What no window has keeps its value.
    offsets : array_like of int, shape (B, rank), or Tensor of integers
        First element of each window, anywhere: what lies outside of `x` is dropped.
    strides : array_like of int, shape (rank,) or (B, rank), optional
        Step within the windows in elements, not 0, so that a window of `size` reaches over
        `(size - 1) * abs(stride) + 1`. A negative one begins at the window's end: it mirrors. Windows may
        differ in its sign, not in its magnitude. 1 by default.
    overlap : {"refuse", "last"}, optional
        What to do where windows have elements of `x` in common: refuse them, or let the later window win. Of
        offsets in a tensor nothing is known before the GPU reads them, so that they need "last".

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    WindowError
        Two windows overlap inside of `x`, or nobody knows whether they do; or a stride is 0, no i32, or of
        another magnitude than the first window's. Nothing is written then.
    OverflowError
        `y` has a Python integer that `x`'s dtype does not hold.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `copyto`, of `y` and `x`, and of tensors of offsets; or the shapes do not go together.

    Notes
    -----
    Where windows overlap, or may do so, the GPU first notes for each index of `x` the last window that has
    it, in a buffer of 4 bytes an index; dimensions of which every window takes all count as one.

    After `y = extract_windows(x, offsets, sizes, strides)`, `insert_windows(y, x, offsets, strides)` leaves
    `x` as it is, unless a stride is negative and does not divide `size - 1`: then `extract_windows` begins at
    the end of the window that it was given, which `y` does not tell.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.zeros(10, np.int64)
    >>> wg.insert_windows([[1, 2, 3], [4, 5, 6]], x, offsets=[[6], [1]], strides=[[1], [-1]])
    >>> x.numpy()
    array([0, 6, 5, 4, 0, 0, 1, 2, 3, 0])
    >>> wg.insert_windows([[7, 7], [8, 8], [9, 9]], x, [[-1], [4], [5]], overlap="last")
    >>> x.numpy()
    array([7, 6, 5, 4, 8, 9, 9, 2, 3, 0])
    """
    with named("insert_windows"):
        check_tensor("x", x)
        given = y if isinstance(y, Tensor) else as_copied(y, x.dtype)
        check_same_dtype(given.dtype, x.dtype)
        check_disjoint(x.layout)
        on_gpu = None
        if isinstance(offsets, Tensor):
            integer_dtype(offsets.dtype)
            on_gpu = offsets.operand
            windows = inserted_on_gpu(offsets.shape, offsets.dtype, given.shape, x.shape, strides)
        else:
            windows = inserted_windows(offsets, given.shape, x.shape, strides)
        insert(x, given, insertion_of(windows, x.shape, overlap), on_gpu)
