"""The layout rules by which NumPy's functions and ONNX's operators copy tensors into a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape
from wgslice.dtypes import DType
from wgslice.gpu.protocols import Buffer, is_given_out
from wgslice.gpu.recording import LayoutCopy, check_alive, check_given, check_still_alive, run_copies
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.layout_rules import (
    Segment,
    Stage,
    border_parts,
    lower_triangle,
    padded,
    parts,
    repeated_to,
    stages,
)
from wgslice.operators.binding import output_for
from wgslice.plans.copy import fills, pattern_size
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.pixels import MAX_CHANNELS
from wgslice.tensors.placed import check_input
from wgslice.tensors.tensor import Tensor, allocate


class Copies:
    """Copies from tensors on the device of the first, submitted together at the end of the block.

    Those of elements of another width are a submission of their own.
    """

    def __init__(self, sources: Sequence[Tensor], name: str = "x") -> None:
        self.sources = sources
        self.name = name  # of a source in errors, formatted with its number
        self.device = sources[0].device
        self.makes_zeros = sink().makes_zeros
        self.collected: dict[int, list[LayoutCopy]] = {}  # by bytes of an element

    def __enter__(self) -> Copies:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            return
        checked: set[Buffer] = set()
        for number, source in enumerate(self.sources):
            if source.memory in checked:
                continue
            if not checked or source.device is not self.device or is_given_out(source.memory):
                check = check_still_alive if checked else check_alive  # which also finds a lost device
                checked.add(source.memory)
                check_given(self.device, [(self.name.format(number), source.memory)], check)
        for itemsize, copies in self.collected.items():
            run_copies(self.device, itemsize, copies)

    def empty(self, sizes: Sequence[int], dtype: DType, *, zeroed: bool = False) -> Tensor:
        """Make a packed tensor of any content; if `zeroed`, of zeros where these cost no more."""
        return allocate(sizes, dtype, self.device, zeroed=zeroed and self.makes_zeros)

    def result(self, sizes: Sequence[int], out: Tensor | None) -> Tensor:
        """Return a packed tensor for a result of the first source: `out` if it can be written directly."""
        x = self.sources[0]
        given = output_for(x, sizes, out, zeroed=False)
        if given is not out:
            return given
        check_input(self.device, "out", given.memory)
        separate = all(source.memory is not given.memory for source in self.sources)
        return given if given.is_packed and separate else self.empty(sizes, x.dtype)

    def delivered(self, result: Tensor, out: Tensor | None) -> Tensor:
        """Copy a result to `out` if that is another tensor, and return the one that has it."""
        if out is None or out is result:
            return result
        self.copy(result, result.layout, out, out.layout)
        return out

    def copied(self, x: Tensor) -> Tensor:
        """Collect a copy of a tensor to a new packed one."""
        result = self.empty(x.shape, x.dtype)
        self.copy(x, x.layout, result, result.layout)
        return result

    def constant(self, element: NDArray[Any], count: int) -> Tensor:
        """Make a tensor of `count` times one element, which is never written; equal ones share a buffer."""
        buffer = sink().constant(self.device, element, count)
        return Tensor(self.device, buffer, element.dtype, Layout.packed((count,)))

    def copy(self, source: Tensor, read: Layout, target: Tensor, written: Layout) -> None:
        """Collect a copy, unless it has no elements."""
        if written.size:
            copies = self.collected.setdefault(source.itemsize, [])
            copies.append((source.memory, read, target.memory, written))


def staged(copies: Copies, x: Tensor, plan: Iterable[Stage]) -> Tensor:
    """Copy stage by stage, each from the result of the one before."""
    for sizes, moves in plan:
        result = copies.empty(sizes, x.dtype)
        for read, written in moves:
            copies.copy(x, read, result, written)
        x = result
    return x


def check_joinable(shapes: Sequence[tuple[int, ...]], along: int, name: str) -> None:
    """Raise unless shapes are equal except along an axis; `name`, formatted with a number, names one."""
    first = shapes[0]
    for number, shape in enumerate(shapes):
        if shape == first:
            continue
        pairs = enumerate(zip(shape, first, strict=False))
        unequal = [axis for axis, (size, expected) in pairs if size != expected and axis != along]
        if unequal or len(shape) != len(first):
            where = "".join(f": dimension {axis} is {shape[axis]}, not {first[axis]}" for axis in unequal[:1])
            raise ValueError(
                f"{name.format(number)} has shape {shape}: sizes must equal those of {name.format(0)}, "
                f"{first}, except along axis {along}{where}"
            )


def joined_sizes(layouts: Sequence[Layout], axis: int) -> tuple[int, ...]:
    """Return the sizes of layouts joined along an axis."""
    sizes = list(layouts[0].sizes)
    sizes[axis] = sum([layout.sizes[axis] for layout in layouts])
    return checked_shape(sizes)


def joined(
    copies: Copies, values: Sequence[Tensor], layouts: Sequence[Layout], axis: int, into: Tensor | None = None
) -> Tensor:
    """Copy layouts of values, joined along an axis, into a packed value; other sizes are equal."""
    counts = tuple([layout.sizes[axis] for layout in layouts])
    sizes = joined_sizes(layouts, axis)
    result = copies.empty(sizes, values[0].dtype) if into is None else into
    subword = result.dtype.itemsize < WORD_NBYTES < result.nbytes
    single = max(counts) == 1 or sizes[axis] <= MAX_CHANNELS
    if subword and single and len(values) > 1 and prod(sizes[axis + 1 :]) == 1:
        others = [*range(axis), *range(axis + 1, len(sizes))]
        planes = copies.empty([sizes[axis], *map(sizes.__getitem__, others)], result.dtype)
        for value, read, written in zip(values, layouts, parts(planes.layout, 0, counts), strict=True):
            copies.copy(value, read.permuted([axis, *others]), planes, written)
        copies.copy(planes, planes.layout, result, result.layout.permuted([axis, *others]))  # interleaved
        return result
    for value, read, written in zip(values, layouts, parts(result.layout, axis, counts), strict=True):
        copies.copy(value, read, result, written)
    return result


def tile(copies: Copies, x: Tensor, layout: Layout, counts: Sequence[int]) -> Tensor:
    """Copy a layout of a value `counts[axis]` times along each dimension."""
    sizes = checked_shape([size * count for size, count in zip(layout.sizes, counts, strict=True)])
    if 0 in sizes:
        return copies.empty(sizes, x.dtype)
    repeated = [
        [Segment(range(size), range(size), count, size)]
        for size, count in zip(layout.sizes, counts, strict=True)
    ]
    return staged(copies, x, stages(layout, repeated))


def extended(
    copies: Copies, x: Tensor, layout: Layout, widths: Iterable[tuple[int, int]], mode: str
) -> Tensor:
    """Copy a layout of a value with a border of its own elements, by one of NumPy's modes."""
    segmented = [padded(mode, size, *width) for size, width in zip(layout.sizes, widths, strict=True)]
    return staged(copies, x, stages(layout, segmented))


def with_border(
    copies: Copies,
    x: Tensor,
    layout: Layout,
    sizes: Sequence[int],
    inner: Sequence[range],
    constants: NDArray[Any] | Tensor | None,
) -> Tensor:
    """Copy a layout of a value into a box of a result, with constants around it.

    Constants are `(rank, 2)` elements on the host, or one of a value, or None to leave the border as it is;
    where the box has steps, they are equal, and fill the gaps too.
    """
    known = constants if isinstance(constants, np.ndarray) else np.empty(0, x.dtype)
    result = copies.empty(sizes, x.dtype, zeroed=any(not any(constant.tobytes()) for constant in known.flat))
    gaps = any(indices.step > 1 for indices in inner)
    borders = [(result.layout,)] if gaps else border_parts(sizes, inner)
    if isinstance(constants, np.ndarray):
        filling: dict[bytes, list[Layout]] = {}  # parts of the border by the bits of their constant
        for outer, sides in zip(borders, constants, strict=False):
            for border, constant in zip(outer, sides, strict=False):
                filling.setdefault(constant.tobytes(), []).append(border)
        for bits, same in filling.items():
            fill(copies, result, same, np.frombuffer(bits, x.dtype))
    elif constants is not None:
        for border in chain.from_iterable(borders):
            copies.copy(constants, repeated_to(constants.layout, border.sizes), result, border)
    copies.copy(x, layout, result, result.layout.select(inner))
    return result


def triangle(copies: Copies, x: Tensor, layout: Layout, k: int, *, upper: bool) -> Tensor:
    """Copy the upper or lower triangle of matrices up to the diagonal `k`, with zeros in the other."""
    result = copies.empty(layout.sizes, x.dtype, zeroed=True)
    fill(copies, result, [result.layout], np.zeros(1, x.dtype))
    for read, written in triangle_copies(layout, result.layout, k, upper=upper):
        copies.copy(x, read, result, written)
    return result


@lru_cache(maxsize=64)
def triangle_copies(
    source: Layout, target: Layout, k: int, *, upper: bool
) -> tuple[tuple[Layout, Layout], ...]:
    """Return the copies of a triangle between two layouts; cached, since they cost more than to record."""
    if upper:  # the upper triangle is the transpose's lower
        order = [*range(source.rank - 2), source.rank - 1, source.rank - 2]
        source, target, k = source.permuted(order), target.permuted(order), -k
    return tuple(
        (block.of(source), block.of(target))
        for block in lower_triangle(source.sizes[-2], source.sizes[-1], k)
    )


def fill(copies: Copies, result: Tensor, unwritten: Iterable[Layout], element: NDArray[Any]) -> None:
    """Write one element to the parts of a result that no copy writes."""
    if copies.makes_zeros and not any(element.tobytes()):
        return
    filled = [copy for part in unwritten if part.size for copy in fills(part, result.dtype.itemsize)]
    if filled:
        pattern = copies.constant(element, pattern_size(filled))
        for read, written in filled:
            copies.copy(pattern, read, result, written)
