"""What a rule of ONNX's operators is given, and the rules that make views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, distinct_axes, integers
from wgslice.dialects.basic import numpy_shape
from wgslice.dialects.converters import onnx_slice
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.layout_rules import parts, permuted, repeated_to, reshaped, squeezed, unsqueezed
from wgslice.onnx.workspace import Nested, Value, Workspace, as_value


@dataclass(frozen=True)
class Call:
    """A node about to run."""

    workspace: Workspace
    version: int  # of the operator, the opset that introduced it
    attributes: Mapping[str, Any]
    data: Sequence[Nested[Value]]  # the inputs whose elements it moves
    parameters: Mapping[int, NDArray[Any] | None]  # the others, by their position; None for an absent one
    output_count: int

    @property
    def x(self) -> Value:
        """The first input."""
        return as_value(0, self.data[0])

    def integers(self, name: str, *, position: int, since: int) -> tuple[int, ...] | None:
        """A parameter that is an attribute before version `since`, and from then on an input."""
        if self.version < since:
            given = self.attributes.get(name)
            return None if given is None else integers(name, given)
        array = self.parameters.get(position)
        return None if array is None else integers(name, np.atleast_1d(array))

    def required(self, name: str, *, position: int, since: int) -> tuple[int, ...]:
        """A parameter that must be there."""
        value = self.integers(name, position=position, since=since)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def indices(self, position: int) -> NDArray[np.int64]:
        """A parameter that says indices."""
        given = self.parameters[position]
        if given is None or given.dtype not in (np.int32, np.int64):
            kind = "missing" if given is None else f"of dtype {given.dtype}"
            raise TypeError(f"indices are {kind}: must be int32 or int64")
        return given.astype(np.int64)


def slice_(call: Call) -> list[Value]:
    """Slice."""
    axes, steps = (
        call.integers(name, position=position, since=10) for name, position in (("axes", 3), ("steps", 4))
    )
    starts, ends = (
        call.required(name, position=position, since=10) for name, position in (("starts", 1), ("ends", 2))
    )
    selection = onnx_slice(call.x.shape, starts, ends, axes, steps)
    return [call.x.viewed(call.x.layout.select(selection.items))]


def split(call: Call) -> list[Value]:
    """Split."""
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), call.x.ndim)
    size, count = call.x.shape[axis], call.output_count
    given = call.integers("split", position=1, since=13)
    if call.version == 1 and given is None:  # had both, the input as well
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
    return [call.x.viewed(part) for part in parts(call.x.layout, axis, tuple(given))]


def identity(call: Call) -> list[Nested[Value]]:
    """Identity, also of a sequence or of nothing."""
    return [call.data[0]]


def transpose(call: Call) -> list[Value]:
    """Transpose."""
    x = call.x
    with named("permute"):
        return [x.viewed(permuted(x.layout, call.attributes.get("perm", range(x.ndim)[::-1])))]


def reshape(call: Call) -> list[Value]:
    """Reshape."""
    shape = call.required("shape", position=1, since=5)
    if call.attributes.get("allowzero", 0):
        if 0 in shape and -1 in shape:
            raise ValueError(f"shape = {shape}: must not hold both 0 and -1 where allowzero is set")
        return [as_shape(call.workspace, call.x, shape)]
    for axis, size in enumerate(shape):
        if size == 0 and axis >= call.x.ndim:
            raise ValueError(
                f"shape[{axis}] = 0: the input of rank {call.x.ndim} has no such dimension to copy"
            )
    sizes = [size or call.x.shape[axis] for axis, size in enumerate(shape)]
    return [as_shape(call.workspace, call.x, sizes)]


def as_shape(workspace: Workspace, x: Value, shape: Sequence[int]) -> Value:
    """A value over other sizes, of which one may be -1: a view where that can be, else a packed copy."""
    sizes = numpy_shape(shape, x.size)
    layout = reshaped(x.layout, sizes)
    return workspace.packed(x).viewed(Layout.packed(sizes)) if layout is None else x.viewed(layout)


def squeeze(call: Call) -> list[Value]:
    """Squeeze."""
    axes = call.integers("axes", position=1, since=13)
    x = call.x
    with named("squeeze"):
        return [x.viewed(squeezed(x.layout, None if call.version < 13 and not axes else axes))]


def unsqueeze(call: Call) -> list[Value]:
    """Unsqueeze."""
    axes = call.required("axes", position=1, since=13)
    return [call.x.viewed(unsqueezed(call.x.layout, axes))]


def flatten(call: Call) -> list[Value]:
    """Flatten."""
    axis, rank = call.attributes.get("axis", 1), call.x.ndim
    if not -rank <= axis <= rank:
        raise ValueError(f"axis = {axis}: must be {-rank} to {rank}")
    outer = axis if axis >= 0 else axis + rank
    sizes = prod(call.x.shape[:outer]), prod(call.x.shape[outer:])
    return [as_shape(call.workspace, call.x, sizes)]


def expand(call: Call) -> list[Value]:
    """Expand, which broadcasts both ways."""
    shape = checked_shape(call.required("shape", position=1, since=8))
    return [call.x.viewed(repeated_to(call.x.layout, np.broadcast_shapes(call.x.shape, shape)))]


def depth_to_space(call: Call) -> list[Value]:
    """DepthToSpace."""
    (n, c, h, w), block, columns_first = blocks(call)
    if c % block**2:
        raise ValueError(f"depth {c}: must be a multiple of blocksize * blocksize = {block**2}")
    depth = c // block**2
    split_shape = (n, depth, block, block, h, w) if columns_first else (n, block, block, depth, h, w)
    axes = (0, 1, 4, 2, 5, 3) if columns_first else (0, 3, 4, 1, 5, 2)
    return [moved(call, split_shape, axes, (n, depth, h * block, w * block))]


def space_to_depth(call: Call) -> list[Value]:
    """SpaceToDepth."""
    (n, c, h, w), block, columns_first = blocks(call)
    if h % block or w % block:
        raise ValueError(f"height {h} and width {w}: must be multiples of blocksize = {block}")
    axes = (0, 1, 3, 5, 2, 4) if columns_first else (0, 3, 5, 1, 2, 4)
    rows, columns = h // block, w // block
    return [moved(call, (n, c, rows, block, columns, block), axes, (n, c * block**2, rows, columns))]


def blocks(call: Call) -> tuple[tuple[int, ...], int, bool]:
    """Sizes, block size, and whether blocks are ordered column, row, depth."""
    block, mode = call.attributes["blocksize"], call.attributes.get("mode", b"DCR").decode()
    if call.x.ndim != 4:
        raise ValueError(f"input of rank {call.x.ndim}: must have rank 4")
    if block < 1:
        raise ValueError(f"blocksize = {block}: must be at least 1")
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"mode = {mode!r}: must be 'DCR' or 'CRD'")
    return call.x.shape, block, mode == "CRD"


def moved(call: Call, split_shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int]) -> Value:
    """The input, its dimensions split, permuted and joined again."""
    split_input = as_shape(call.workspace, call.x, split_shape)
    return as_shape(call.workspace, split_input.viewed(permuted(split_input.layout, axes)), sizes)
