"""Joining tensors along a dimension or a new one, and splitting them into views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from math import prod
from typing import Any, SupportsIndex, cast

import numpy as np

from wgslice.arguments import I32_MAX, U32_MAX, OneOrMore, checked_shape, one_axis, one_or_more
from wgslice.docstrings import NO_AXIS, NO_TENSOR, documented
from wgslice.dtypes import DType
from wgslice.errors import public
from wgslice.gpu.recording import check_given
from wgslice.layout import Layout
from wgslice.layout_rules import unsqueezed
from wgslice.numpy_protocol import copies as rules
from wgslice.numpy_protocol.copies import Copies
from wgslice.operators.windows import write_windows
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import check_no_sequence, check_tensor, viewed
from wgslice.tensors.tensor import Tensor, allocate

# Views of one buffer from which on they are joined as windows: 128 of 10 rows take 0.3 to 1.1 of the time of
# a copy each, 1,500 of them 0.2 to 0.9 (lavapipe of Mesa 22.3, two cores of a Xeon).
MANY = 128


@public()
def concat(arrays: Iterable[Tensor], axis: SupportsIndex | None = 0) -> Tensor:
    """Join tensors along a dimension; the semantics are those of `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of Tensor or array_like
        At least one tensor; all of one dtype and on one device, with equal sizes but for that of `axis`.
        Arrays of NumPy are cast where that is safe, and uploaded to the device of the tensors.
    axis : int or None
        The dimension; a negative one counts from the last. With None each tensor is flattened first, in
        row-major order.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        None is a tensor, or the dtypes differ: elements are moved, not converted.
    ValueError, OutOfDeviceMemory, DeviceLostError
        `arrays` is empty, a tensor has no dimensions, sizes or devices differ, `axis` is out of range
        (`numpy.exceptions.AxisError`); or as `Tensor.copy`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6).reshape(2, 3))
    >>> wg.concat([x, x[:, ::-2]], axis=1).numpy()
    array([[0, 1, 2, 2, 0],
           [3, 4, 5, 5, 3]])
    """
    return concatenated(tensors_of(arrays), axis)


@public()
def stack(arrays: Iterable[Tensor], axis: SupportsIndex = 0) -> Tensor:
    """Join tensors along a new dimension; the semantics are those of `numpy.stack`.

    Parameters
    ----------
    arrays : sequence of Tensor or array_like
        At least one tensor; all of one shape, and otherwise as for `concat`.
    axis : int
        The new dimension, as the result counts; a negative one counts from the last.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `concat`; or shapes differ, or the result would have more than 8 dimensions.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(3))
    >>> wg.stack([x, x[::-1]], axis=1).numpy()
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """
    return stacked(tensors_of(arrays), axis)


def concatenated(
    tensors: Sequence[Tensor], axis: SupportsIndex | None = 0, out: Tensor | None = None
) -> Tensor:
    """Join tensors of one dtype; where `out` overlaps them, it is read before it is written."""
    if axis is None:
        *starts, end = accumulate((x.size for x in tensors), initial=0)
        sizes = checked_shape(end)
        with Copies(tensors, "arrays[{}]") as copies:
            result = copies.result(sizes, out)
            for x, start in zip(tensors, starts, strict=True):
                copies.copy(x, x.layout, result, Layout.packed(x.shape, result.layout.offset + start))
            return copies.delivered(result, out)
    first = tensors[0].shape
    if not first:
        raise ValueError("zero-dimensional arrays cannot be concatenated; stack joins them")
    check_one_axis(axis)
    along = one_axis("axis", axis, len(first))
    rules.check_joinable([x.shape for x in tensors], along, "arrays[{}]")
    return joined(tensors, [x.layout for x in tensors], along, out)


def stacked(tensors: Sequence[Tensor], axis: SupportsIndex = 0, out: Tensor | None = None) -> Tensor:
    """Join tensors of one dtype along a new dimension, with `out` as for `concatenated`."""
    first = tensors[0].shape
    for number, x in enumerate(tensors):
        if x.shape != first:
            raise ValueError(f"arrays[{number}] has shape {x.shape}: must be {first} as arrays[0] has")
    check_one_axis(axis)
    along = one_axis("axis", axis, len(first) + 1)
    parts = {layout: unsqueezed(layout, [along]) for layout in {x.layout for x in tensors}}
    return joined(tensors, [parts[x.layout] for x in tensors], along, out)


def joined(tensors: Sequence[Tensor], layouts: Sequence[Layout], along: int, out: Tensor | None) -> Tensor:
    """Join layouts of tensors along a dimension, in `out` or a new tensor, in one submission."""
    if out is None and len(tensors) >= MANY and len({id(x.memory) for x in tensors}) == 1:
        sizes = rules.joined_sizes(layouts, along)
        if max(sizes) <= I32_MAX and prod(sizes) <= U32_MAX:
            return joined_at_once(tensors, layouts, along, sizes)
    with Copies(tensors, "arrays[{}]") as copies:
        if out is None:
            return rules.joined(copies, tensors, layouts, along)
        result = copies.result(rules.joined_sizes(layouts, along), out)
        return copies.delivered(rules.joined(copies, tensors, layouts, along, result), out)


def joined_at_once(
    tensors: Sequence[Tensor], layouts: Sequence[Layout], along: int, sizes: tuple[int, ...]
) -> Tensor:
    """Join many layouts of one buffer as windows that are disjoint, by few dispatches."""
    first = tensors[0]
    check_given(first.device, [("arrays[0]", first.memory)])
    result = allocate(sizes, first.dtype, first.device, zeroed=False)
    offsets = np.zeros((len(layouts), len(sizes)), np.int64)
    offsets[1:, along] = np.cumsum([layout.sizes[along] for layout in layouts])[:-1]
    views = [viewed(x, layout) for x, layout in zip(tensors, layouts, strict=True)]
    write_windows(result, offsets, views, None, "disjoint", None)
    return result


def check_one_axis(axis: object) -> None:
    """Raise TypeError for a second array by position, before it is read back as axes."""
    if isinstance(axis, Tensor | np.ndarray) and axis.ndim:
        raise TypeError(
            f"axis is of type {type(axis).__name__}: must be an integer; join arrays as one sequence, [x, y]"
        )


@documented(("tuple of Tensor", "Views, one of each index."), NO_TENSOR, NO_AXIS)
@public()
def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """View each index along a dimension, without that dimension.

    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))[1].numpy()
    array([3, 4])
    """
    check_tensor("x", x)
    along = one_axis("axis", axis, x.ndim)
    others = [axis for axis in range(x.ndim) if axis != along]
    return tuple(viewed(x, x.layout.permuted([along, *others])))


@public()
def split(x: Tensor, indices_or_sections: OneOrMore, axis: SupportsIndex = 0) -> list[Tensor]:
    """Split a tensor into views along a dimension; the semantics are those of `numpy.split`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 or more.
    indices_or_sections : int or sequence of int
        Number of equal parts, or the indices where the second and later parts begin.
    axis : int
        The dimension to split; a negative one counts from the last.

    Returns
    -------
    list of Tensor
        Views.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a number is not an integer.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`), or the size is not a
        multiple of the number of parts.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> q, k, v = wg.split(wg.asarray(np.arange(12).reshape(2, 6)), 3, axis=1)
    >>> k.numpy()
    array([[2, 3],
           [8, 9]])
    >>> [part.shape for part in wg.split(q, [1], axis=0)]
    [(1, 2), (1, 2)]
    """
    check_tensor("x", x)
    along = one_axis("axis", axis, x.ndim)
    size = x.shape[along]
    check_no_sequence(indices_or_sections)
    given = one_or_more("indices_or_sections", indices_or_sections)
    if hasattr(indices_or_sections, "__index__") and np.ndim(cast("Any", indices_or_sections)) == 0:
        (sections,) = given
        if sections < 1 or size % sections:
            raise ValueError(
                f"indices_or_sections = {sections}: must divide the size {size} of axis {along}; or give "
                "the indices to split at"
            )
        bounds = [size // sections * number for number in range(sections + 1)]
    else:
        bounds = [0, *given, size]
    whole = [range(each) for each in x.shape]
    return [
        viewed(x, x.layout.select([*whole[:along], whole[along][slice(*cut)], *whole[along + 1 :]]))
        for cut in pairwise(bounds)
    ]


def tensors_of(
    arrays: Iterable[Any], dtype: Any = None, casting: Any = "same_kind", out: Any = None
) -> list[Tensor]:
    """Return tensors of one dtype; arrays are cast as NumPy joins them, and uploaded to their device."""
    sequence = list(arrays)
    if not sequence and isinstance(arrays, list | tuple):  # NumPy has consumed an iterator before it calls
        raise ValueError("arrays is empty: name at least one tensor")
    given: list[Any] = []
    for each in sequence:
        if not isinstance(each, Tensor):
            check_no_sequence(each)
            each = np.asarray(each)
        given.append(each)
    if out is not None:
        check_tensor("out", out, written=True)
        if dtype is not None:
            raise TypeError("out and dtype are both given: out has a dtype of its own")
    first = next((each for each in (*given, out) if isinstance(each, Tensor)), None)
    if first is None:
        raise TypeError(f"arrays is of type {type(arrays).__name__}: must be a sequence, with a tensor in it")
    check_dtype("dtype", dtype, first.dtype)
    np.can_cast(first.dtype, first.dtype, casting)  # raises for an unknown rule
    rules = {casting} | ({"safe"} if dtype is None and out is None else set())
    for number, each in enumerate(given):
        if each.dtype is first.dtype:
            continue
        castable = not isinstance(each, Tensor) and all(
            np.can_cast(each.dtype, first.dtype, cast("Any", rule)) for rule in rules
        )
        if not castable:
            check_dtype(f"the dtype of arrays[{number}]", each.dtype, first.dtype)
    return [
        each if isinstance(each, Tensor) else asarray(each, dtype=first.dtype, device=first.device)
        for each in given
    ]


def check_dtype(name: str, dtype: Any, tensors: DType) -> None:
    """Refuse a dtype that is not the tensors' own, unless it is None."""
    if dtype is not None and (given := np.dtype(dtype).newbyteorder("=")) != tensors:
        raise TypeError(
            f"{name} is {given}: must be {tensors} as the tensors have, since elements are moved "
            "and not converted; asarray(np.asarray(x).astype(...)) converts"
        )


def block(arrays: Any) -> Tensor:
    """Join nested lists of arrays, the innermost along the last dimension, as `numpy.block`."""
    depth = depth_of(arrays)
    tensors = tensors_of(leaves(arrays))
    rank = max(depth, *(x.ndim for x in tensors))
    shape, starts = arranged(arrays, rank, rank - depth, iter(tensors))
    sizes = checked_shape(shape)
    with Copies(tensors, "arrays[{}]") as copies:
        result = copies.empty(sizes, tensors[0].dtype)
        for x, start in zip(tensors, starts, strict=True):
            layout = unsqueezed(x.layout, range(rank - x.ndim))
            box = [range(first, first + size) for first, size in zip(start, layout.sizes, strict=True)]
            copies.copy(x, layout, result, result.layout.select(box))
        return result


def leaves(arrays: Any) -> Iterator[Any]:
    """Return the arrays in nested lists, in order."""
    return chain.from_iterable(map(leaves, arrays)) if isinstance(arrays, list) else iter([arrays])


def depth_of(arrays: Any) -> int:
    """Return how many lists are nested around each array; refuses tuples, empty lists and unequal depths."""
    if isinstance(arrays, tuple):
        raise TypeError("arrays has a tuple: only lists arrange blocks")
    if not isinstance(arrays, list):
        return 0
    depths = {depth_of(each) for each in arrays}
    if len(depths) != 1:
        known = f"has lists of depths {sorted(depths)}: must be of one" if depths else "has an empty list"
        raise ValueError(f"arrays {known}")
    return 1 + depths.pop()


def arranged(
    arrays: Any, rank: int, axis: int, tensors: Iterator[Tensor]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the sizes of nested lists joined from `axis` on, and where each of their tensors begins."""
    if not isinstance(arrays, list):
        shape = next(tensors).shape
        return (1,) * (rank - len(shape)) + shape, [(0,) * rank]
    found = [arranged(each, rank, axis + 1, tensors) for each in arrays]
    rules.check_joinable([shape for shape, _ in found], axis, "arrays[{}]")
    starts = list(accumulate((shape[axis] for shape, _ in found), initial=0))
    moved = [
        (*start[:axis], start[axis] + first, *start[axis + 1 :])
        for first, (_, inner) in zip(starts, found, strict=False)
        for start in inner
    ]
    shape = found[0][0]
    return (*shape[:axis], starts[-1], *shape[axis + 1 :]), moved
