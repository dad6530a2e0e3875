"""NumPy's protocol for its functions: a table of those that run on tensors; all others are refused by name.

A row has NumPy's name, its signature and the function to call; parameters without meaning on a GPU, such as
`subok`, are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import copy_choice, distinct_axes, integer, one_axis, order_letter
from wgslice.dask import register
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import Device
from wgslice.layout_rules import has_order, is_column_major
from wgslice.numpy_protocol import choosing, editing, flat, joining, matrices, moving, taking
from wgslice.numpy_protocol.copies import Copies
from wgslice.numpy_protocol.flat import Flat as Flat  # of `x.flat`
from wgslice.numpy_protocol.joining import tensors_of
from wgslice.numpy_protocol.putting import put_along_axis
from wgslice.numpy_protocol.taking import take_along_axis, taken
from wgslice.tensors import creation, placed, strided_views, views
from wgslice.tensors.creation import empty, like, ones, zeros
from wgslice.tensors.indexing import copy_where
from wgslice.tensors.placed import check_no_sequence, check_tensor, has_tensors
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uncomputed import INSTEAD, refused, remedy_of


def of_rank(name: str, x: Tensor, least: int) -> Tensor:
    """Return a tensor; refuses fewer than `least` dimensions."""
    check_tensor(name, x)
    if x.ndim < least:
        raise ValueError(f"{name} has shape {x.shape}: must have at least {least} dimensions")
    return x


def hstack(tup: Iterable[Any], *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Join arrays along the second dimension, or the first of arrays of one dimension."""
    tensors = [leading(1, each) for each in tensors_of(tup, dtype, casting)]
    return joining.concatenated(tensors, 0 if tensors[0].ndim == 1 else 1)


def array_split(ary: Tensor, indices_or_sections: Any, axis: Any = 0) -> list[Tensor]:
    """Split at indices, or into parts whose sizes differ by one element at most, the longer ones first."""
    check_tensor("ary", ary)
    check_no_sequence(indices_or_sections)
    if np.ndim(indices_or_sections) > 0:
        return joining.split(ary, indices_or_sections, axis)
    along = one_axis("axis", axis, ary.ndim)
    sections = integer("indices_or_sections", indices_or_sections)
    if sections < 1:
        raise ValueError(f"indices_or_sections = {sections}: must be at least 1")
    least, longer = divmod(ary.shape[along], sections)
    return joining.split(ary, [least * piece + min(piece, longer) for piece in range(1, sections)], along)


def leading(rank: int, x: Tensor) -> Tensor:
    """Return a tensor with leading dimensions of size 1 added up to a rank."""
    return x[(None,) * (rank - x.ndim)] if x.ndim < rank else x


def cube(x: Tensor) -> Tensor:
    """Return a tensor with at least three dimensions, as `numpy.atleast_3d`."""
    return x if x.ndim > 2 else x[((None, None, None), (None, ..., None), (..., None))[x.ndim]]


def each_of(arrays: tuple[Any, ...], view: Callable[[Tensor], Tensor], of_others: Callable[..., Any]) -> Any:
    """Return a view of each tensor and NumPy's result for others; a single one without a tuple."""
    for each in arrays:
        check_no_sequence(each)
    found = tuple(view(each) if isinstance(each, Tensor) else of_others(each) for each in arrays)
    return found[0] if len(found) == 1 else found


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write into a tensor, where a mask is true if there is one."""
    check_tensor("dst", dst, written=True)
    np.can_cast(dst.dtype, dst.dtype, cast("Any", casting))  # refuses unknown words
    value = src if isinstance(src, Tensor) else placed.as_copied(src, dst.dtype, casting)
    if where is True:
        placed.write(dst, value)
        return
    if not isinstance(where, Tensor):
        placed.check_of_numbers(where)
        mask = np.zeros(np.shape(where), np.bool_)
        np.copyto(mask, True, where=where)  # which casts as NumPy casts masks
        where = mask
    if where.dtype.kind != "b":
        raise TypeError(f"where has dtype {where.dtype}: must be bool")
    copy_where(dst, value, where)


def made_like(make: Callable[..., Tensor], order: str | None, name: str, x: Tensor, *replaced: Any) -> Tensor:
    """Make a tensor like another one, column-major in order F, and in A if the other one is."""
    options = like(name, x, *replaced)
    if not is_column_major(x.layout, order):
        return make(**options)
    return make(**{**options, "shape": options["shape"][::-1]}).T


def full_like(
    a: Tensor,
    fill_value: Any,
    dtype: Any = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """Make a tensor like another one, of a value that broadcasts to its shape."""
    made = made_like(empty, order, "a", a, dtype, device, shape)
    given = isinstance(fill_value, Tensor)
    made[...] = fill_value if given else placed.as_copied(fill_value, made.dtype, "unsafe")
    return made


PAD_OPTION = {  # NumPy's, by mode
    "constant": "constant_values",
    "linear_ramp": "end_values",
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), "stat_length"),
}


def pad(array: Tensor, pad_width: Any, mode: Any = "constant", **options: Any) -> Tensor:
    """Add a border around a tensor, in modes that do not compute."""
    check_tensor("array", array)
    if any(min(widths) < 0 for widths in moving.checked_widths(pad_width, array.ndim)):
        raise ValueError(f"pad_width = {pad_width!r}: must not be negative; wg.pad crops, as x[1:-1] does")
    unknown = options.keys() - {PAD_OPTION.get(mode)} if isinstance(mode, str) else set()
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if options.pop("reflect_type", "even") == "odd":
        raise ComputationRefused("reflect_type = 'odd': computes; must be 'even', and x.numpy() is an array")
    return moving.pad(array, pad_width, mode, **(options if mode == "constant" else {}))


def take(a: Tensor, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    """Gather elements along a dimension; mode="clip" clips negative indices to 0, also those in a tensor."""
    check_tensor("a", a)
    if mode not in ("raise", "clip", "wrap") or (mode == "wrap" and isinstance(indices, Tensor)):
        raise ValueError(f"mode = {mode!r}: must be 'raise' or 'clip', or 'wrap' for indices in an array")
    return taken(a, indices, axis, mode, out)


def uploaded_beside(arrays: Sequence[Any]) -> list[Tensor]:
    """Return tensors; arrays are uploaded in their own dtypes to the device of the first tensor."""
    for each in arrays:
        check_no_sequence(each)
    device = next(each for each in arrays if isinstance(each, Tensor)).device
    return [each if isinstance(each, Tensor) else creation.asarray(each, device=device) for each in arrays]


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Copy or, unless `copy`, view coordinates in the grid that they span, each of its own dtype."""
    found = views.grid(uploaded_beside(xi), indexing, sparse=sparse)
    if not copy:
        return tuple(found)
    with Copies(found, "xi[{}]") as copies:
        return tuple(map(copies.copied, found))


def windows(
    x: Tensor, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """View all windows along dimensions, read-only."""
    if writeable:
        raise NotImplementedError("writeable = True: windows share elements, so that the view is read-only")
    return strided_views.sliding_window_view(x, window_shape, axis)


def of_elements(name: str) -> Callable[..., Any]:
    """Return NumPy's function of a name, which gets the elements of tensors, read back."""

    def call(*arguments: Any, **options: Any) -> Any:
        return in_numpy(name)(
            *map(elements, arguments), **{key: elements(value) for key, value in options.items()}
        )

    return call


def elements(value: Any) -> Any:
    """Return a tensor read back, and other values as they are."""
    return value.numpy() if isinstance(value, Tensor) else value


def shadow(x: Any) -> NDArray[np.bool_]:
    """Return an array of one element in a tensor's shape, for functions of NumPy's that look no further."""
    return np.broadcast_to(np.False_, x.shape)


def sharing(decide: Callable[..., bool]) -> Callable[..., bool]:
    """Return a function that asks NumPy whether tensors in one buffer share memory."""

    def share(a: Any, b: Any, /, max_work: int | None = None) -> bool:
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.memory is not b.memory:
            return False
        memory = np.empty(a.memory.size, np.uint8)  # never read: it has addresses alone
        return decide(placed_in(memory, a), placed_in(memory, b), max_work)

    return share


def placed_in(memory: NDArray[np.uint8], x: Tensor) -> NDArray[Any]:
    """Return an array of a tensor's layout in memory of the host that is as large as the tensor's buffer."""
    strides = [stride * x.itemsize for stride in x.strides]
    return np.ndarray(x.shape, f"V{x.itemsize}", memory.data, x.offset, strides)


BY_NAME: Mapping[str, Callable[..., Any]] = {
    "append": lambda arr, values, axis=None: joining.concatenated(tensors_of((arr, values)), axis),
    "array_split": array_split,
    "atleast_1d": lambda *arys: each_of(arys, lambda x: leading(1, x), np.atleast_1d),
    "atleast_2d": lambda *arys: each_of(arys, lambda x: leading(2, x), np.atleast_2d),
    "atleast_3d": lambda *arys: each_of(arys, cube, np.atleast_3d),
    "block": joining.block,
    "broadcast_arrays": lambda *args, subok=False: views.broadcast_arrays(*uploaded_beside(args)),
    "broadcast_to": lambda array, shape, subok=False: views.broadcast_to(array, shape),
    "choose": choosing.choose,
    "column_stack": lambda tup: joining.concatenated(
        [x if x.ndim > 1 else leading(2, x).T for x in tensors_of(tup)], 1
    ),
    "compress": taking.compress,
    "concatenate": lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": joining.concatenated(
        tensors_of(arrays, dtype, casting, out), axis, out
    ),
    "copy": lambda a, order="K", subok=False: of_rank("a", a, 0).copy(order),
    "copyto": copyto,
    "delete": editing.delete,
    "diag": matrices.diag,
    "diag_indices_from": lambda arr: np.diag_indices_from(shadow(arr)),
    "diagflat": matrices.diagflat,
    "diagonal": strided_views.diagonal,
    "dsplit": lambda ary, indices_or_sections: joining.split(of_rank("ary", ary, 3), indices_or_sections, 2),
    "dstack": lambda tup: joining.concatenated([cube(x) for x in tensors_of(tup)], 2),
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: (
        made_like(empty, order, "prototype", prototype, dtype, device, shape)
    ),
    "expand_dims": lambda a, axis: views.expand_dims(a, axis),
    "extract": taking.extract,
    "fft.fftshift": lambda x, axes=None: moving.half_rolled(x, axes, 1),
    "fft.ifftshift": lambda x, axes=None: moving.half_rolled(x, axes, -1),
    "fill_diagonal": flat.fill_diagonal,
    "flip": lambda m, axis=None: views.flip(m, axis),
    "fliplr": lambda m: views.flip(of_rank("m", m, 2), 1),
    "flipud": lambda m: views.flip(of_rank("m", m, 1), 0),
    "full_like": full_like,
    "hsplit": lambda ary, indices_or_sections: joining.split(
        of_rank("ary", ary, 1), indices_or_sections, min(ary.ndim - 1, 1)
    ),
    "hstack": hstack,
    "insert": editing.insert,
    "ix_": taking.ix_,
    "lib.stride_tricks.sliding_window_view": windows,
    "linalg.diagonal": lambda x, /, *, offset=0: strided_views.diagonal(x, offset, -2, -1),
    "linalg.matrix_transpose": lambda x, /: of_rank("x", x, 0).mT,
    "matrix_transpose": lambda x, /: of_rank("x", x, 0).mT,
    "may_share_memory": sharing(np.may_share_memory),
    "meshgrid": meshgrid,
    "moveaxis": lambda a, source, destination: views.moveaxis(a, source, destination),
    "ndim": lambda a: a.ndim,
    "ones_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: made_like(
        ones, order, "a", a, dtype, device, shape
    ),
    "pad": pad,
    "place": flat.place,
    "put": flat.put,
    "put_along_axis": lambda arr, indices, values, axis=-1: put_along_axis(arr, indices, values, axis),
    "putmask": flat.putmask,
    "ravel": lambda a, order="C": of_rank("a", a, 0).ravel(order),
    "repeat": lambda a, repeats, axis=None: moving.repeat(a, repeats, axis),
    "reshape": lambda a, /, shape=None, order="C", *, newshape=None, copy=None: of_rank("a", a, 0).reshape(
        newshape if shape is None else shape, order=order, copy=copy
    ),
    "resize": editing.resize,
    "roll": lambda a, shift, axis=None: moving.roll(a, shift, axis),
    "rollaxis": views.rollaxis,
    "rot90": lambda m, k=1, axes=(0, 1): views.rot90(m, k, axes),
    **{name: of_elements(name) for name in ("save", "savetxt", "savez", "savez_compressed")},
    "select": choosing.select,
    "shape": lambda a: a.shape,
    "shares_memory": sharing(np.shares_memory),
    "size": lambda a, axis=None: (
        a.size if axis is None else prod(a.shape[each] for each in distinct_axes("axis", axis, a.ndim))
    ),
    "split": lambda ary, indices_or_sections, axis=0: joining.split(ary, indices_or_sections, axis),
    "squeeze": lambda a, axis=None: views.squeeze(a, axis),
    "stack": lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": joining.stacked(
        tensors_of(arrays, dtype, casting, out), axis, out
    ),
    "swapaxes": lambda a, axis1, axis2: of_rank("a", a, 0).swapaxes(axis1, axis2),
    "take": take,
    "take_along_axis": lambda arr, indices, axis=-1: take_along_axis(arr, indices, axis),
    "tile": lambda A, reps: moving.tile(A, reps),  # noqa: N803 -- NumPy's name
    "transpose": lambda a, axes=None: of_rank("a", a, 0).transpose(axes),
    "tril": lambda m, k=0: matrices.tril(m, k=k),
    "tril_indices_from": lambda arr, k=0: np.tril_indices_from(shadow(arr), k),
    "triu": lambda m, k=0: matrices.triu(m, k=k),
    "triu_indices_from": lambda arr, k=0: np.triu_indices_from(shadow(arr), k),
    "unstack": joining.unstack,
    "vsplit": lambda ary, indices_or_sections: joining.split(of_rank("ary", ary, 2), indices_or_sections, 0),
    "vstack": lambda tup, *, dtype=None, casting="same_kind": joining.concatenated(
        [leading(2, x) for x in tensors_of(tup, dtype, casting)], 0
    ),
    "where": choosing.where,
    "zeros_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: made_like(
        zeros, order, "a", a, dtype, device, shape
    ),
}


def in_numpy(name: str) -> Any:
    """Return the function of NumPy with a dotted name; None in releases that lack it."""
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), cast("Any", np))


FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    theirs: ours for name, ours in BY_NAME.items() if (theirs := in_numpy(name)) is not None
}


def asarray(
    like: Device,
    a: Any,
    dtype: Any = None,
    order: str | None = "K",
    *,
    device: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """Upload an array; return a tensor of the device as it is."""
    letter, copy = "K" if order is None else order_letter(order), copy_choice(copy)
    chosen = like if device is None else device
    if isinstance(a, Tensor):
        made = creation.asarray(a, device=chosen, dtype=dtype, copy=None if copy else copy)
        if (letter in "KA" or has_order(made.layout, letter)) and not (copy and made is a):
            return made
        creation.check_may_copy(copy, f"to order {order}")
        return made.copy(letter)
    if letter != "F":
        return creation.asarray(a, device=chosen, dtype=dtype, copy=copy)
    if has_tensors(a):
        return creation.asarray(a, device=chosen, dtype=dtype, copy=copy).copy(letter)
    return creation.asarray(np.transpose(a), device=chosen, dtype=dtype, copy=copy).T


def array(
    like: Device,
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Tensor:
    """Upload an array, or copy a tensor; adds leading dimensions up to `ndmin`."""
    wanted = copy if isinstance(object, Tensor) or not copy else None  # an upload is a copy
    return leading(ndmin, asarray(like, object, dtype, order, copy=wanted))


def ascontiguousarray(like: Device, a: Any, dtype: Any = None) -> Tensor:
    """Upload, or copy a tensor that is not packed; of at least one dimension."""
    return leading(1, asarray(like, a, dtype, "C"))


# Functions with a parameter `like=`; they get the device of its tensor first.
LIKE: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.array: array,
    np.asanyarray: asarray,
    np.asarray: asarray,
    np.ascontiguousarray: ascontiguousarray,
}


def pointer(name: str) -> str | None:
    """Return the remedy for a name of NumPy that wgslice lacks; None for other names."""
    if name.startswith("_") or not (name in vars(np) or name in INSTEAD):
        return None
    found: Any = vars(np).get(name)
    if name not in INSTEAD and found in FUNCTIONS:
        return f"np.{name} takes tensors"
    computes = isinstance(found, np.ufunc) or hasattr(found, "_implementation")
    return remedy_of(name) if name in INSTEAD or computes else f"NumPy has np.{name}"


def call_function(
    device: Device,
    function: Callable[..., Any],
    types: Collection[type],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Run `Tensor.__array_function__`, which NumPy calls for each of its functions that gets a tensor."""
    if not all(issubclass(each, Tensor | np.ndarray) for each in types):
        # Another library's array is asked next, or again where it is Dask's and did not know tensors yet.
        return function(*arguments, **options) if register(Tensor) else NotImplemented
    name = f"{function.__module__}.{function.__name__}"
    if function in LIKE:
        with named(name):
            return LIKE[function](device, *arguments, **options)
    if function not in FUNCTIONS:
        refused(name)
    with named(name):
        return FUNCTIONS[function](*arguments, **options)
