"""The standard's functions that make tensors: by uploads of arrays and numbers, or filled on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.arguments import OneOrMore, copy_choice, integer
from wgslice.array_api.data_type_functions import DEFAULTS, default_dtype
from wgslice.docstrings import MAKING, NO_DEVICE, NO_MEMORY, NO_TENSOR, Entry, documented, documented_as
from wgslice.dtypes import AnyDType
from wgslice.errors import fitted, named
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.tensors import creation
from wgslice.tensors.creation import like
from wgslice.tensors.placed import check_of_numbers
from wgslice.tensors.tensor import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

LIKE: dict[str, Entry] = {
    "x": ("Tensor", "Whose shape, dtype and device are the defaults."),
    "dtype": ("dtype_like, optional", "That of `x` by default."),
    "device": ("Device or str, optional", "That of `x` by default."),
}


@documented(
    ("Tensor", "`obj` itself, or packed in a new buffer; the upload is not waited for."),
    ("TypeError", "`obj` is text or an object, or its dtype is refused."),
    ("ValueError", "`copy` is False, and the elements have to move to a device."),
    ("ComputationRefused", "`dtype` is not that of a tensor, or those of tensors differ."),
    NO_DEVICE,
    NO_MEMORY,
    obj=("scalar, array_like or Tensor, or nested sequences", "Of 0 to 8 dimensions."),
    dtype=("dtype_like, optional", "That of `obj` by default; of Python's numbers the standard's default."),
)
@fitted()
def asarray(
    obj: Any, /, *, dtype: AnyDType = None, device: AnyDevice = None, copy: bool | None = None
) -> Tensor:
    """Upload numbers, nested sequences of them or an array; a tensor of the device is returned as it is.

    >>> xp.asarray([[1, 2]]).shape
    (1, 2)
    """
    kind = DEFAULTS.get(type(obj)) if dtype is None else dtype
    return creation.asarray(obj, device=device, dtype=kind, copy=copy)


@documented_as(creation.arange)
@fitted()
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: AnyDType = None,
    device: AnyDevice = None,
) -> Tensor:
    """Upload evenly spaced numbers, of shape `(ceil((stop - start) / step),)`, computed on the host.

    >>> xp.arange(1, 8, 3).numpy()
    array([1, 4, 7])
    """
    with named("arange"):
        kind = default_dtype(dtype, start, step, 0 if stop is None else stop)
    return creation.arange(start, stop, step, dtype=kind, device=device)


@documented(
    *MAKING,
    start=("int, float or complex", "The first number."),
    stop=("int, float or complex", "The end, which is the last number if `endpoint` is true."),
    num=("int", "How many numbers, at least 0."),
    dtype=("dtype_like, optional", "float64 by default, complex128 for complex numbers."),
    endpoint=("bool", "Whether `stop` is reached."),
)
@fitted()
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: AnyDType = None,
    device: AnyDevice = None,
    endpoint: bool = True,
) -> Tensor:
    """Upload evenly spaced numbers, of shape `(num,)`, computed on the host.

    >>> xp.linspace(0, 1, 3).numpy()
    array([0. , 0.5, 1. ])
    """
    with named("linspace"):
        for end in (start, stop):
            check_of_numbers(end)
        element, chosen = default_dtype(dtype, 0.0, start, stop), checked_device(device)
        creation.check_count(chosen, integer("num", num), element.itemsize)
        array = np.linspace(start, stop, num, endpoint=endpoint, dtype=element)
    return creation.asarray(array, device=chosen)


@documented(
    *MAKING,
    n_rows=("int", "Number of rows."),
    n_cols=("int, optional", "Number of columns; that of rows by default."),
)
@fitted()
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: AnyDType = None, device: AnyDevice = None
) -> Tensor:
    """Make a matrix of shape `(n_rows, n_cols)`, square by default: ones on the diagonal `k`, else zeros.

    >>> xp.eye(2, 3, k=1).numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    with named("eye"):
        k = integer("k", k)
    columns = n_rows if n_cols is None else n_cols
    matrix = zeros((n_rows, columns), dtype=dtype, device=device)
    row, column = max(-k, 0), max(k, 0)
    count = min(n_rows - row, columns - column)
    if count > 0:
        start = row * columns + column
        matrix.reshape(-1)[start : start + (count - 1) * (columns + 1) + 1 : columns + 1] = 1
    return matrix


@documented(*MAKING)
@fitted()
def empty(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of a shape to write into, float64 by default.

    >>> xp.empty((2, 3), dtype=xp.uint8).nbytes
    6
    """
    return creation.empty(shape, dtype, device=device)


@documented(*MAKING)
@fitted()
def zeros(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros of a shape, float64 by default.

    >>> xp.zeros(3).numpy()
    array([0., 0., 0.])
    """
    return creation.zeros(shape, dtype, device=device)


@documented(*MAKING)
@fitted()
def ones(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones of a shape, float64 by default.

    >>> xp.ones(2, dtype=xp.int64).numpy()
    array([1, 1])
    """
    return creation.ones(shape, dtype, device=device)


@documented_as(creation.full)
@fitted()
def full(shape: OneOrMore, fill_value: Any, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of one value.

    >>> xp.full((1, 2), 7).numpy()
    array([[7, 7]])
    """
    kind = DEFAULTS.get(type(fill_value)) if dtype is None else dtype
    return creation.full(shape, fill_value, kind, device=device)


@documented(*MAKING, NO_TENSOR, **LIKE)
@fitted()
def empty_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor to write into, of the shape, dtype and device of another.

    >>> xp.empty_like(xp.zeros((2, 3))).shape
    (2, 3)
    """
    return creation.empty(**like("empty_like: x", x, dtype, device))


@documented(*MAKING, NO_TENSOR, **LIKE)
@fitted()
def zeros_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros, of the shape, dtype and device of another.

    >>> xp.zeros_like(xp.asarray([5, 6])).numpy()
    array([0, 0])
    """
    return creation.zeros(**like("zeros_like: x", x, dtype, device))


@documented(*MAKING, NO_TENSOR, **LIKE)
@fitted()
def ones_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones, of the shape, dtype and device of another.

    >>> xp.ones_like(xp.asarray([5, 6])).numpy()
    array([1, 1])
    """
    return creation.ones(**like("ones_like: x", x, dtype, device))


@documented(
    *MAKING,
    NO_TENSOR,
    ("OverflowError", "`fill_value` is a Python integer outside the range of the dtype."),
    **LIKE,
)
@fitted()
def full_like(x: Tensor, /, fill_value: Any, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of one value, of the shape, dtype and device of another.

    >>> xp.full_like(xp.asarray([5, 6]), 3).numpy()
    array([3, 3])
    """
    return creation.full(fill_value=fill_value, **like("full_like: x", x, dtype, device))


@documented(
    ("Tensor", "`x` itself, or packed in a new buffer; the upload is not waited for."),
    ("BufferError", "`copy` is False, and the elements have to move; or the library does not give them."),
    ("TypeError", "`x` has no `__dlpack__`, or its dtype is refused."),
    NO_DEVICE,
    NO_MEMORY,
    x=("object with `__dlpack__`", "An array of another library in memory of the host, or a Tensor."),
)
@fitted()
def from_dlpack(x: Any, /, *, device: AnyDevice = None, copy: bool | None = None) -> Tensor:
    """Upload an array of another library; a tensor of the device is returned as it is, unless `copy` is True.

    >>> import numpy as np
    >>> xp.from_dlpack(np.arange(3)).numpy()
    array([0, 1, 2])
    """
    with named("from_dlpack"):
        copy = copy_choice(copy)
        if isinstance(x, Tensor) and (device is None or checked_device(device) is x.device):
            return x.copy() if copy else x
        if copy is False:
            raise BufferError("elements cannot go to a device without a copy: leave copy=False out")
    return creation.from_dlpack(x, device)
