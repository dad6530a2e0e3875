"""NumPy's functions that copy a tensor: padded, rolled, repeated, or a triangle of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import (
    OneOrMore,
    checked_shape,
    distinct_axes,
    flat_integers,
    one_axis,
    one_or_more,
)
from wgslice.dtypes import check_same_dtype
from wgslice.errors import ComputationRefused, named, public
from wgslice.layout import Layout
from wgslice.layout_rules import (
    MODES,
    Segment,
    Stage,
    padded,
    reshaped,
    rolled,
    stages,
    unsqueezed,
    whole,
)
from wgslice.numpy_protocol import copies as rules
from wgslice.numpy_protocol.copies import Copies
from wgslice.plans.indexed import MAX_TABLES
from wgslice.tensors.placed import (
    as_assigned,
    check_input,
    check_no_sequence,
    check_of_numbers,
    check_tensor,
    viewed,
)
from wgslice.tensors.tensor import Tensor


@public()
def pad(
    x: Tensor,
    pad_width: ArrayLike | Mapping[SupportsIndex, Any],
    mode: str = "constant",
    *,
    constant_values: ArrayLike | Tensor = 0,
    interior: OneOrMore = 0,
) -> Tensor:
    """Add a border around a tensor, and elements between its own; the semantics are those of `numpy.pad`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    pad_width : int, pair of int, sequence of pairs, or dict
        Numbers of elements added before and after each dimension: one number or one pair for all dimensions,
        a pair for each, or a dict of either by axis, where the last of one axis counts and others get no
        border. Negative ones crop, which NumPy's do not: elements and those of `interior`, before a border
        is added.
    mode : "constant", "edge", "reflect", "symmetric", "wrap" or "empty"
        Elements of the border: `constant_values`, the nearest element, the tensor reversed without or with
        its edge elements repeated, the tensor repeated, or arbitrary ones. NumPy's other modes compute.
    constant_values : scalar, pair, sequence of pairs, or Tensor
        For mode "constant", in the same forms but for the dict, cast as NumPy assigns them; or a tensor of
        rank 0 and the dtype of `x`, which is not read back.
    interior : int or sequence of int
        For modes "constant", then with one constant, and "empty": numbers of elements, at least 0, added
        between neighbours in all dimensions or each, as XLA's Pad and `jax.lax.pad` do.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    ComputationRefused
        The mode is one of NumPy's that compute.
    TypeError
        `x` is not a tensor, a number is not an integer, or a constant is a tensor of another dtype.
    ValueError, OutOfDeviceMemory, DeviceLostError
        Widths crop more than there is, or are not as many as dimensions; the mode is unknown, a dimension
        without elements has nothing to repeat, `interior` is negative or does not go with the mode; or as
        `Tensor.copy`.
    OverflowError
        A constant is a Python integer outside the range of the dtype.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(1, 4))
    >>> wg.pad(x, (1, 2)).numpy()
    array([0, 1, 2, 3, 0, 0])
    >>> wg.pad(x, 2, mode="reflect").numpy()
    array([3, 2, 1, 2, 3, 2, 1])
    >>> wg.pad(x, (-1, 2), interior=1, constant_values=9).numpy()
    array([9, 2, 9, 3, 9, 9])
    """
    check_tensor("x", x)
    if mode not in MODES and mode not in FILLED:
        known = ", ".join(map(repr, (*FILLED, *MODES)))
        if callable(mode) or mode in ("linear_ramp", "maximum", "mean", "median", "minimum"):
            raise ComputationRefused(f"mode = {mode!r} computes: must be one of {known}; or pad x.numpy()")
        raise ValueError(f"mode = {mode!r}: must be one of {known}")
    widths = checked_widths(pad_width, x.ndim)
    given = one_or_more("interior", interior)
    if len(given) not in (1, x.ndim) or min(given, default=0) < 0 or (any(given) and mode in MODES):
        raise ValueError(
            f"interior = {interior} with mode = {mode!r}: must be one number or {x.ndim}, at least 0, "
            f"and 0 but for modes {' and '.join(map(repr, FILLED))}"
        )
    between = given if len(given) == x.ndim else given * x.ndim
    spreads = [spread(*each) for each in zip(x.shape, widths, between, strict=True)]
    for axis, each in enumerate(spreads):
        if each.size < 0:
            raise ValueError(f"pad_width[{axis}] = {widths[axis]}: crops more than dimension {axis} has")
    sizes = checked_shape(each.size for each in spreads)
    source = viewed(x, x.layout.select([each.read for each in spreads]))
    if mode in MODES:
        added = [(max(before, 0), max(behind, 0)) for before, behind in widths]
        segmented = [padded(mode, size, *width) for size, width in zip(source.shape, added, strict=True)]
        return in_segments(source, segmented)
    constants = None if mode == "empty" else constants_of(x, constant_values, one=any(between))
    inner = [each.written for each in spreads]
    with Copies([x]) as copies:
        return rules.with_border(copies, source, source.layout, sizes, inner, constants)


FILLED = "constant", "empty"  # modes whose border repeats no elements


class Spread(NamedTuple):
    """A padded dimension: its size, and the indices of the elements that are kept, in both tensors."""

    size: int
    read: range
    written: range


def spread(size: int, widths: tuple[int, int], between: int) -> Spread:
    """Place `size` elements `between + 1` apart, `widths[0]` from the start, negative ones outside."""
    step, (before, behind) = between + 1, widths
    padded_size = before + max((size - 1) * step + 1, 0) + behind
    first = max(-(before // step), 0)
    stop = min(-((before - padded_size) // step), size)
    if first >= stop:
        start = max(min(before, padded_size), 0)
        return Spread(padded_size, range(0), range(start, start))
    return Spread(padded_size, range(first, stop), range(before + first * step, before + stop * step, step))


def constants_of(x: Tensor, values: Any, *, one: bool) -> Tensor | NDArray[Any]:
    """Return constants around a tensor: a tensor of rank 0, or an array `(rank, 2)`, equal if `one`."""
    if isinstance(values, Tensor) and values.ndim == 0:
        with named("constant_values"):
            check_same_dtype(values.dtype, x.dtype)
        check_input(x.device, "constant_values", values.memory)
        return values
    shape = np.shape(values)
    with named("constant_values"):
        check_of_numbers(values)
        numbers: Any = values
        if x.dtype.kind in "mM":
            numbers = np.asarray(values)  # NumPy assigns numbers to times without a unit only from arrays
        elif isinstance(values, np.ndarray):
            numbers = list(values.reshape(-1))  # so that numbers outside the dtype's range are refused
        constants = as_assigned(numbers, x.dtype).reshape(shape)
        if one and constants.size != 1:
            raise ValueError(f"shape {constants.shape}: must be one constant with interior")
        return np.broadcast_to(constants, (x.ndim, 2))


def checked_widths(pad_width: ArrayLike | Mapping[SupportsIndex, Any], rank: int) -> list[tuple[int, int]]:
    """Return a pair of widths for each dimension, from any of NumPy's forms."""
    if isinstance(pad_width, Mapping):
        widths = np.zeros((rank, 2), np.int64)
        for axis, width in pad_width.items():
            widths[distinct_axes("pad_width", axis, rank)] = checked_widths(width, 1)[0]
        return [(before, behind) for before, behind in widths.tolist()]
    with named("pad_width"):
        check_of_numbers(pad_width)
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu":
        raise TypeError(f"pad_width = {pad_width!r}: must be integers, not {given.dtype}")
    if given.shape not in ((), (1,), (2,), (1, 1), (1, 2), (rank, 1), (rank, 2)):
        raise ValueError(
            f"pad_width has shape {given.shape}: must be one number, a pair, or a pair for each of the "
            f"{rank} dimensions"
        )
    return [(before, behind) for before, behind in np.broadcast_to(given, (rank, 2)).tolist()]


@public()
def roll(x: Tensor, shift: OneOrMore, axis: OneOrMore | None = None) -> Tensor:
    """Shift elements cyclically; the semantics are those of `numpy.roll`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    shift : int or sequence of int
        Positions towards higher indices; negative ones towards lower ones.
    axis : int or sequence of int, optional
        The dimensions, one for each shift; one of either stands for all of the other, and shifts of one
        dimension add up. By default all elements are shifted in row-major order, across dimensions.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a number is not an integer.
    ValueError, OutOfDeviceMemory, DeviceLostError
        `shift` is text or nested, an axis is out of range (`numpy.exceptions.AxisError`), the
        numbers of shifts and axes differ; or as `Tensor.copy`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.roll(wg.asarray(np.arange(6).reshape(2, 3)), 1, axis=1).numpy()
    array([[2, 0, 1],
           [5, 3, 4]])
    """
    check_tensor("x", x)
    axes = () if axis is None else each_axis("axis", axis, x.ndim)
    check_no_sequence(shift)
    shifts = flat_integers("shift", shift)
    if axis is None:
        found, flat = [], reshaped(x.layout, [x.size])
        if flat is None:
            flat = Layout.packed([x.size])
            found = [Stage(flat.sizes, [(x.layout, Layout.packed(x.shape))])]
        with Copies([x]) as copies:
            shifted = rules.staged(copies, x, [*found, *stages(flat, [rolled(x.size, sum(shifts))])])
        return viewed(shifted, Layout.packed(x.shape))
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) != len(shifts):
        raise ValueError(
            f"shift has {len(shifts)} numbers, axis {len(axes)}: must be equal, or one of them 1"
        )
    totals = [0] * x.ndim
    for along, positions in zip(axes, shifts, strict=True):
        totals[along] += positions
    return in_segments(x, list(map(rolled, x.shape, totals)))


def each_axis(name: str, axes: OneOrMore, rank: int) -> tuple[int, ...]:
    """Return axes as 0 to rank - 1, which may repeat."""
    return tuple(one_axis(name, axis, rank) for axis in one_or_more(name, axes))


# Elements up to which one gather replaces a copy for each combination of segments. Two dimensions padded by
# their edges, nine copies, on lavapipe, Mesa 22.3, two cores of an AMD EPYC, ms by a gather and by copies:
# float32 32 x 32 0.14 and 0.61, 128 x 128 0.25 and 0.59, 256 x 256 0.70 and 0.78, 512 x 512 2.2 and 1.0;
# uint8 256 x 256 1.1 and 0.76.
MAX_GATHERED = 2**15
FEW_PIECES = 3


def half_rolled(x: Tensor, axes: Any, sign: int) -> Tensor:
    """Shift dimensions, or all, by half their sizes, as `numpy.fft.fftshift`, or back."""
    check_tensor("x", x)
    along = tuple(range(x.ndim)) if axes is None else each_axis("axes", axes, x.ndim)
    return roll(x, [sign * (x.shape[axis] // 2) for axis in along], along)


def in_segments(x: Tensor, segmented: Sequence[Sequence[Segment]]) -> Tensor:
    """Copy the segments of each dimension to a packed tensor, few elements by one gather."""
    changed = [axis for axis, size in enumerate(x.shape) if segmented[axis] != whole(size)]
    pieces = prod(map(len, segmented))
    if pieces > FEW_PIECES and changed[-1] - changed[0] < MAX_TABLES:
        first = changed[0]
        indices = [indices_of(tuple(segments)) for segments in segmented[first : changed[-1] + 1]]
        others = prod(x.shape[:first]) * prod(x.shape[changed[-1] + 1 :])
        if 0 < others * prod(map(len, indices)) <= MAX_GATHERED:
            return x[(*[slice(None)] * first, *np.ix_(*indices))]
    with Copies([x]) as copies:
        return rules.staged(copies, x, stages(x.layout, segmented))


@lru_cache(maxsize=256)
def indices_of(segments: Sequence[Segment]) -> NDArray[np.int64]:
    """Return the source index of each position of a dimension."""
    found = np.empty(sum(len(segment.target) * segment.repeats for segment in segments), np.int64)
    for target, gathered, repeats, period in segments:
        starts = target.start + period * np.arange(repeats)
        found[starts[:, None] + np.arange(len(target))] = np.asarray(gathered)
    found.flags.writeable = False
    return found


@public()
def tile(x: Tensor, repetitions: OneOrMore) -> Tensor:
    """Repeat a tensor along its dimensions; the semantics are those of `numpy.tile`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    repetitions : int or sequence of int
        Copies along each dimension, aligned at the last; at least 0, unless the dimension is empty. Missing
        numbers are 1; further ones add dimensions.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `roll`; or a number is negative, or the result would have more than 8 dimensions.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.tile(wg.asarray([[1, 2]]), (2, 2)).numpy()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    check_tensor("x", x)
    check_no_sequence(repetitions)
    counts = one_or_more("repetitions", repetitions)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    layout = unsqueezed(x.layout, range(rank - x.ndim))
    if any(size * count < 0 for size, count in zip(layout.sizes, counts, strict=True)):
        raise ValueError(f"repetitions = {counts}: must not be negative")
    with Copies([x]) as copies:
        return rules.tile(copies, x, layout, counts)


@public()
def repeat(x: Tensor, repeats: OneOrMore, axis: SupportsIndex | None = None) -> Tensor:
    """Repeat each element; the semantics are those of `numpy.repeat`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    repeats : int or sequence of int
        Number of copies of each element along `axis`, or one number for all; at least 0, unless there are no
        elements along it. Bools are 0 and 1.
    axis : int, optional
        The dimension that grows; a negative one counts from the last. By default the tensor is
        flattened in row-major order.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is one submission, not waited for; a view whose elements are
        repeated differently in row-major order, and that cannot be flattened, is copied first.

    Raises
    ------
    TypeError
        `x` is not a tensor, a number is not an integer, or `repeats` is a tensor, since the size of the
        result would depend on its elements: read it back.
    ValueError, OutOfDeviceMemory, DeviceLostError
        A number is negative or text, numbers are nested, there are neither one nor as many as elements along
        `axis`, `axis` is out of range (`numpy.exceptions.AxisError`); or as `Tensor.copy`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.repeat(wg.asarray([[1, 2], [3, 4]]), 2, axis=1).numpy()
    array([[1, 1, 2, 2],
           [3, 3, 4, 4]])
    """
    check_tensor("x", x)
    if isinstance(repeats, Tensor):
        raise TypeError(
            "repeats is a Tensor: the size of the result depends on its elements, so read it back first: "
            "repeats.numpy()"
        )
    check_no_sequence(repeats)
    counts = flat_integers("repeats", repeats)
    if axis is not None and x.ndim == 0:
        x = x[None]  # one element in one dimension, as in NumPy
    along = None if axis is None else one_axis("axis", axis, x.ndim)
    size = x.size if along is None else x.shape[along]
    if len(counts) not in (1, size):
        raise ValueError(f"repeats has {len(counts)} numbers: must be one, or {size}, one for each element")
    if size and min(counts) < 0:
        raise ValueError(f"repeats = {counts}: must not be negative")
    if len(counts) != 1:
        indices = np.repeat(np.arange(size), counts)
        return x.reshape(-1)[indices] if along is None else x[(*[slice(None)] * along, indices)]
    (count,) = counts
    after = x.ndim if along is None else along + 1
    sizes = (*x.shape[:after], count, *x.shape[after:])
    shape = [*x.shape[:along], size * count, *x.shape[after:]] if along is not None else [size * count]
    with Copies([x]) as copies:
        result = copies.empty(checked_shape(shape), x.dtype)
        if size and count:  # one copy, with a broadcast dimension after the one that grows
            strides = (*x.strides[:after], 0, *x.strides[after:])
            copies.copy(x, Layout.of(sizes, strides, x.layout.offset), result, Layout.packed(sizes))
        return result
