"""One rule for each of ONNX's operators that move elements, and their table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, distinct_axes, integers, one_axis
from wgslice.dialects.converters import onnx_slice
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.layout import Layout
from wgslice.layout_rules import parts, permuted, repeated_to, squeezed, unsqueezed
from wgslice.numpy_protocol import copies
from wgslice.numpy_protocol.copies import Copies, check_joinable, extended, joined, triangle, with_border
from wgslice.onnx.workspace import Nested, as_tensor
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import as_assigned, viewed
from wgslice.tensors.tensor import Tensor, allocate

MODES = "constant", "edge", "reflect", "wrap"


@dataclass(frozen=True)
class Call:
    """A node to run, with its inputs and attributes."""

    device: Device
    version: int  # of the operator, the opset that introduced it
    attributes: Mapping[str, Any]
    data: Sequence[Nested[Tensor]]  # the inputs with elements to move
    parameters: Mapping[int, NDArray[Any] | None]  # the others by position; None if absent
    output_count: int

    @property
    def x(self) -> Tensor:
        """The first input."""
        return as_tensor(0, self.data[0])

    def axis(self, default: int = 0) -> int:
        """The attribute `axis`, normalized to non-negative."""
        return one_axis("axis", self.attributes.get("axis", default), self.x.ndim)

    def viewed(self, layout: Layout) -> list[Tensor]:
        """The output of an operator that is a view of the first input."""
        return [viewed(self.x, layout)]

    def reshaped(self, sizes: Sequence[int]) -> list[Tensor]:
        """The output of an operator that reshapes the first input."""
        return [self.x.reshape(tuple(sizes))]

    def integers(self, name: str, *, position: int, since: int) -> tuple[int, ...] | None:
        """A parameter that is an attribute before version `since`, else an input."""
        given = self.attributes.get(name) if self.version < since else self.parameters.get(position)
        return None if given is None else integers(name, np.atleast_1d(given))

    def required(self, name: str, *, position: int, since: int) -> tuple[int, ...]:
        """A parameter that must be present."""
        value = self.integers(name, position=position, since=since)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def indices(self) -> NDArray[np.int64]:
        """The second input as int64 indices."""
        given = self.parameters[1]
        if given is None or given.dtype not in (np.int32, np.int64):
            kind = "missing" if given is None else f"of dtype {given.dtype}"
            raise TypeError(f"indices are {kind}: must be int32 or int64")
        return given.astype(np.int64)


def slice_(call: Call) -> list[Tensor]:
    """Slice."""
    axes = call.integers("axes", position=3, since=10)
    steps = call.integers("steps", position=4, since=10)
    starts = call.required("starts", position=1, since=10)
    ends = call.required("ends", position=2, since=10)
    selection = onnx_slice(call.x.shape, starts, ends, axes, steps)
    return call.viewed(call.x.layout.select(selection.items))


def split(call: Call) -> list[Tensor]:
    """Split."""
    axis = call.axis()
    size, count = call.x.shape[axis], call.output_count
    given = call.integers("split", position=1, since=13)
    if call.version == 1 and given is None:  # version 1 has both an attribute and an input
        given = call.integers("split", position=1, since=1)
    if call.attributes.get("num_outputs", count) != count:
        raise ValueError(f"num_outputs = {call.attributes['num_outputs']}: the node has {count} outputs")
    if given is None:
        chunk = -(-size // count)
        if call.version < 18 and size % count:
            raise ValueError(f"size {size} of axis {axis} does not split into {count} equal parts")
        given = tuple(min(chunk, max(size - chunk * part, 0)) for part in range(count))
    if len(given) != count or sum(given) != size or min(given, default=0) < 0:
        raise ValueError(
            f"split = {given}: must be {count} sizes of at least 0, one an output, that add up to {size}"
        )
    return [viewed(call.x, part) for part in parts(call.x.layout, axis, tuple(given))]


def transpose(call: Call) -> list[Tensor]:
    """Transpose."""
    with named("permute"):
        return call.viewed(permuted(call.x.layout, call.attributes.get("perm", range(call.x.ndim)[::-1])))


def reshape(call: Call) -> list[Tensor]:
    """Reshape."""
    shape = call.required("shape", position=1, since=5)
    if call.attributes.get("allowzero", 0):
        if 0 in shape and -1 in shape:
            raise ValueError(f"shape = {shape}: must not hold both 0 and -1 where allowzero is set")
        return call.reshaped(shape)
    if 0 in shape[call.x.ndim :]:
        axis = shape.index(0, call.x.ndim)
        raise ValueError(f"shape[{axis}] = 0: the input of rank {call.x.ndim} has no such dimension to copy")
    sizes = [size or call.x.shape[axis] for axis, size in enumerate(shape)]
    return call.reshaped(sizes)


def squeeze(call: Call) -> list[Tensor]:
    """Squeeze."""
    axes = call.integers("axes", position=1, since=13)
    with named("squeeze"):
        return call.viewed(squeezed(call.x.layout, None if call.version < 13 and not axes else axes))


def flatten(call: Call) -> list[Tensor]:
    """Flatten."""
    axis, rank = call.attributes.get("axis", 1), call.x.ndim
    if not -rank <= axis <= rank:
        raise ValueError(f"axis = {axis}: must be {-rank} to {rank}")
    outer = axis if axis >= 0 else axis + rank
    return call.reshaped((prod(call.x.shape[:outer]), prod(call.x.shape[outer:])))


def expand(call: Call) -> list[Tensor]:
    """Expand, with bidirectional broadcasting."""
    shape = checked_shape(call.required("shape", position=1, since=8))
    return call.viewed(repeated_to(call.x.layout, np.broadcast_shapes(call.x.shape, shape)))


def move_blocks(call: Call, *, to_depth: bool) -> list[Tensor]:
    """SpaceToDepth, or DepthToSpace: split dimensions by the block size, permute, and join them."""
    block, mode = call.attributes["blocksize"], call.attributes.get("mode", b"DCR").decode()
    if call.x.ndim != 4:
        raise ValueError(f"input of rank {call.x.ndim}: must have rank 4")
    if block < 1:
        raise ValueError(f"blocksize = {block}: must be at least 1")
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"mode = {mode!r}: must be 'DCR' or 'CRD'")
    (n, c, h, w), columns_first = call.x.shape, mode == "CRD"
    if to_depth:
        if h % block or w % block:
            raise ValueError(f"height {h} and width {w}: must be multiples of blocksize = {block}")
        rows, columns = h // block, w // block
        split_shape: tuple[int, ...] = (n, c, rows, block, columns, block)
        axes = (0, 1, 3, 5, 2, 4) if columns_first else (0, 3, 5, 1, 2, 4)
        sizes = n, c * block**2, rows, columns
    else:
        if c % block**2:
            raise ValueError(f"depth {c}: must be a multiple of blocksize * blocksize = {block**2}")
        depth = c // block**2
        split_shape = (n, depth, block, block, h, w) if columns_first else (n, block, block, depth, h, w)
        axes = (0, 1, 4, 2, 5, 3) if columns_first else (0, 3, 4, 1, 5, 2)
        sizes = n, depth, h * block, w * block
    (split_input,) = call.reshaped(split_shape)
    return [split_input.transpose(axes).reshape(sizes)]


def concat(call: Call) -> list[Tensor]:
    """Concat."""
    axis = call.axis(default=1)
    values = [as_tensor(number, given) for number, given in enumerate(call.data)]
    for number, value in enumerate(values):
        if value.dtype != call.x.dtype:
            raise TypeError(f"input {number} has dtype {value.dtype}: must be {call.x.dtype} as input 0 has")
    check_joinable([value.shape for value in values], axis, "input {}")
    if len(values) == 1:
        return values
    with Copies(values, "input {}") as copied:
        return [joined(copied, values, [value.layout for value in values], axis)]


def pad(call: Call) -> list[Tensor]:
    """Pad, in all of its modes."""
    x, name = call.x, "paddings" if call.version == 1 else "pads"
    amounts = call.required(name, position=1, since=11)
    axes = call.integers("axes", position=3, since=18)
    chosen = distinct_axes("axes", range(x.ndim) if axes is None else axes, x.ndim)
    if len(amounts) != 2 * len(chosen):
        raise ValueError(f"{name} = {amounts}: must be {2 * len(chosen)}, a begin and an end for each axis")
    widths = [(0, 0)] * x.ndim
    for number, axis in enumerate(chosen):
        widths[axis] = amounts[number], amounts[len(chosen) + number]
    value, given = call.attributes.get("value", 0), call.parameters.get(2)
    if call.version >= 11 and given is not None:
        value = given
        if value.size != 1 or value.dtype != x.dtype:
            raise TypeError(f"constant_value is {value.size} of dtype {value.dtype}: must be one {x.dtype}")
        value = value.reshape(())
    mode = call.attributes.get("mode", b"constant").decode()
    sizes = [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]
    if min(sizes, default=0) < 0:
        axis = next(axis for axis, size in enumerate(sizes) if size < 0)
        left, had = sizes[axis], x.shape[axis]
        raise ValueError(f"pads {widths[axis]} of axis {axis} leave {left} of its {had} elements")
    if mode not in MODES:
        raise ValueError(f"mode = {mode!r}: must be 'constant', 'edge', 'reflect' or 'wrap'")
    if not any(map(any, widths)):
        return [x]
    if 0 in sizes:
        return [allocate(sizes, x.dtype, x.device)]
    cropped = x.layout.select(
        [
            range(size)[max(-before, 0) : max(size + behind, 0)]
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        ]
    )
    added = [(max(before, 0), max(behind, 0)) for before, behind in widths]
    if mode != "constant":
        with Copies([x]) as copied:
            return [extended(copied, x, cropped, added, mode)]
    begins = [min(before, size) for (before, _), size in zip(added, sizes, strict=True)]
    inner = [range(begin, begin + size) for begin, size in zip(begins, cropped.sizes, strict=True)]
    constants = np.broadcast_to(as_assigned(value, x.dtype), (x.ndim, 2))
    with Copies([x]) as copied:
        return [with_border(copied, x, cropped, sizes, inner, constants)]


def tile(call: Call) -> list[Tensor]:
    """Tile: a view where only dimensions of size 1 are repeated."""
    x = call.x
    if call.version >= 6:
        counts = call.required("repeats", position=1, since=6)
    else:  # version 1 repeats one dimension; its parameters are numbers of any type
        count, along = (int(np.asarray(call.parameters[position]).item()) for position in (1, 2))
        axis = one_axis("axis", along, x.ndim)
        counts = tuple(count if number == axis else 1 for number in range(x.ndim))
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ValueError(f"repeats = {counts}: must be {x.ndim}, one a dimension, each at least 0")
    if all(size == 1 or count == 1 for size, count in zip(x.shape, counts, strict=True)):
        return call.viewed(repeated_to(x.layout, [a * b for a, b in zip(x.shape, counts, strict=True)]))
    with Copies([x]) as copied:
        return [copies.tile(copied, x, x.layout, counts)]


def constant_of_shape(call: Call) -> list[Tensor]:
    """ConstantOfShape: a view of one element."""
    value = np.asarray(call.attributes.get("value", np.zeros(1, np.float32)))
    shape = checked_shape(call.required("input", position=0, since=9))
    element = asarray(value.reshape(()), device=call.device)
    return [viewed(element, repeated_to(element.layout, shape))]


def trilu(call: Call) -> list[Tensor]:
    """Trilu: a copy with zeros in the other triangle."""
    x = call.x
    if x.ndim < 2:
        raise ValueError(f"input of rank {x.ndim}: must have rank 2 at least, as a matrix has")
    (k,) = call.integers("k", position=1, since=14) or (0,)
    with Copies([x]) as copied:
        return [triangle(copied, x, x.layout, k, upper=bool(call.attributes.get("upper", 1)))]


def gather(call: Call) -> list[Tensor]:
    """Gather: a view where the indices are evenly spaced."""
    x, axis = call.x, call.axis()
    indices = within(call.indices(), x.shape[axis], axis)
    sizes = checked_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    steps = np.diff(indices.reshape(-1))
    if (steps != steps[:1]).any():
        return [x[(*[slice(None)] * axis, indices)]]
    step, first = (int(found.flat[0]) if found.size else 0 for found in (steps, indices))
    stride = x.strides[axis]
    among = [step * stride * each for each in Layout.packed(indices.shape).strides]
    strides = (*x.strides[:axis], *among, *x.strides[axis + 1 :])
    return call.viewed(Layout.of(sizes, strides, x.layout.offset + first * stride))


def within(indices: NDArray[np.int64], size: int, axis: int) -> NDArray[np.int64]:
    """Indices normalized to non-negative; raises if one is out of bounds."""
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise ValueError(
            f"index {int(outside[0])}: must be {-size} to {size - 1}, as axis {axis} has size {size}"
        )
    return np.where(indices < 0, indices + size, indices)


def gather_elements(call: Call) -> list[Tensor]:
    """GatherElements: one index per element."""
    x, axis = call.x, call.axis()
    indices = within(call.indices(), x.shape[axis], axis)
    if indices.ndim != x.ndim:
        raise ValueError(f"indices have rank {indices.ndim}: must have rank {x.ndim} as the input has")
    for other, (size, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if other != axis and size > most:
            raise ValueError(f"indices have size {size} in dimension {other}: must be at most {most}")
    key: list[Any] = [*np.indices(indices.shape, sparse=True)]
    key[axis] = indices
    return [x[tuple(key)]]


def reverse_sequence(call: Call) -> list[Tensor]:
    """ReverseSequence: one index per step of each sequence."""
    x = call.x
    batch_axis, time_axis = call.attributes.get("batch_axis", 1), call.attributes.get("time_axis", 0)
    if x.ndim < 2 or {batch_axis, time_axis} != {0, 1}:
        raise ValueError(
            f"batch_axis = {batch_axis} and time_axis = {time_axis} of an input of rank {x.ndim}: must be 0 "
            "and 1, or 1 and 0, of an input of rank 2 at least"
        )
    given = call.required("sequence_lens", position=1, since=10)
    batch, time = x.shape[batch_axis], x.shape[time_axis]
    if len(given) != batch or not all(0 <= length <= time for length in given):
        raise ValueError(f"sequence_lens = {given}: must be {batch}, one a sequence, each 0 to {time}")
    lengths, steps = np.array(given, np.int64)[:, None], np.arange(time)
    key = [np.arange(batch)[:, None], np.where(steps < lengths, lengths - 1 - steps, steps)]
    return [x[tuple(key if batch_axis == 0 else [each.T for each in reversed(key)])]]


def scatter_nd(call: Call) -> list[Tensor]:
    """ScatterND without a reduction; of equal indices the last is written."""
    x, updates, indices = call.x, as_tensor(2, call.data[1]), call.indices()
    if updates.dtype != x.dtype:
        raise TypeError(f"input 2 has dtype {updates.dtype}: must be {x.dtype} as input 0 has")
    if indices.ndim == 0 or not 1 <= indices.shape[-1] <= x.ndim:
        raise ValueError(
            f"indices have shape {indices.shape}: the last size must be 1 to {x.ndim}, the input's rank"
        )
    indexed = indices.shape[-1]
    expected = (*indices.shape[:-1], *x.shape[indexed:])
    if updates.shape != expected:
        raise ValueError(
            f"updates have sizes {updates.shape}: must be {expected}, as indices have shape {indices.shape} "
            f"and the input has sizes {x.shape}"
        )
    if indices.ndim == 1:  # one index
        indices, updates = indices[None], viewed(updates, unsqueezed(updates.layout, [0]))
    key = [within(indices[..., axis], x.shape[axis], axis) for axis in range(indexed)]
    result = x.copy()
    result[tuple(key)] = updates
    return [result]


class Rule(NamedTuple):
    """The function that runs an operator, and the positions of its data inputs; None if all are data."""

    run: Callable[[Call], Sequence[Nested[Tensor]]]
    data: Collection[int] | None = (0,)

    def positions(self, count: int) -> list[int]:
        """The positions of data inputs among `count` inputs."""
        return [position for position in range(count) if self.data is None or position in self.data]


RULES = {
    "Concat": Rule(concat, data=None),
    "ConstantOfShape": Rule(constant_of_shape, data=()),
    "DepthToSpace": Rule(partial(move_blocks, to_depth=False)),
    "Expand": Rule(expand),
    "Flatten": Rule(flatten),
    "Gather": Rule(gather),
    "GatherElements": Rule(gather_elements),
    "Identity": Rule(lambda call: [call.data[0]]),  # also a sequence or None
    "Pad": Rule(pad),
    "Reshape": Rule(reshape),
    "ReverseSequence": Rule(reverse_sequence),
    "ScatterND": Rule(scatter_nd, data=(0, 2)),
    "Slice": Rule(slice_),
    "SpaceToDepth": Rule(partial(move_blocks, to_depth=True)),
    "Split": Rule(split),
    "Squeeze": Rule(squeeze),
    "Tile": Rule(tile),
    "Transpose": Rule(transpose),
    "Trilu": Rule(trilu),
    "Unsqueeze": Rule(
        lambda call: call.viewed(unsqueezed(call.x.layout, call.required("axes", position=1, since=13)))
    ),
}
