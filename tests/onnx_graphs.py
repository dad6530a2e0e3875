"""ONNX models as tests write them, and Hypothesis strategies for graphs of operators that move elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

MAX_ELEMENTS = 3000


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    """A model in ONNX's own notation."""
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]>\ng {text}')


def node(operator: str, count: int = 1, outputs: int = 1, **attributes: Any) -> onnx.NodeProto:
    """A node whose inputs are `i0`, `i1` and so on, and whose outputs `o0`, `o1`."""
    names = [f"i{number}" for number in range(count)]
    return helper.make_node(operator, names, [f"o{number}" for number in range(outputs)], **attributes)


@dataclass
class Growing:
    """A graph that grows node by node, with the sizes of its values."""

    draw: st.DrawFn
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def constant(self, values: Any) -> str:
        """A parameter: now and then one that the graph itself computes, of constants or of shapes."""
        name = f"c{len(self.constants)}"
        array = np.asarray(values, np.int64)
        kind = self.draw(st.integers(0, 9))
        if kind == 0:
            self.nodes.append(helper.make_node("Identity", [name], [f"computed_{name}"]))
        elif kind == 1:
            x = self.draw(st.sampled_from(sorted(self.sizes)))
            array = array - prod(self.sizes[x])
            self.nodes.append(helper.make_node("Size", [x], [f"size_{name}"]))
            self.nodes.append(helper.make_node("Add", [f"size_{name}", name], [f"computed_{name}"]))
        self.constants[name] = array
        return f"computed_{name}" if kind < 2 else name

    def add(self, operator: str, inputs: list[str], *sizes: tuple[int, ...], **attributes: Any) -> None:
        outputs = [f"v{len(self.sizes) + number}" for number in range(len(sizes))]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        self.sizes.update(zip(outputs, sizes, strict=True))

    def grow(self) -> None:
        """One more node on a value that is there, of an operator that fits it."""
        x = self.draw(st.sampled_from(sorted(self.sizes)))
        sizes = self.sizes[x]
        fitting = [self.identity, self.reshape, self.transpose, self.squeeze, self.flatten]
        if sizes and prod(sizes) <= MAX_ELEMENTS:
            fitting += [self.slice, self.split, self.concat, self.pad, self.gather, self.tile]
        if len(sizes) < 6:
            fitting += [self.unsqueeze, self.expand]
        if len(sizes) >= 2 and self.opset >= 14:
            fitting += [self.trilu, self.reverse_sequence]
        if len(sizes) == 4 and 0 not in sizes:
            fitting += [self.space_to_depth, self.depth_to_space]
        self.draw(st.sampled_from(fitting))(x, sizes)

    def axis(self, rank: int) -> int:
        return self.draw(st.integers(-rank, rank - 1))

    def identity(self, x: str, sizes: tuple[int, ...]) -> None:
        self.add("Identity", [x], sizes)

    def slice(self, x: str, sizes: tuple[int, ...]) -> None:
        axis = self.axis(len(sizes))
        start, end = (
            self.draw(st.integers(-9, 9)),
            self.draw(st.sampled_from([-(2**63), -3, 0, 2, 5, 2**63 - 1])),
        )
        step = self.draw(st.sampled_from([1, 2, -1, -2, 3]))
        result = list(sizes)
        result[axis] = len(range(*slice(start, end, step).indices(sizes[axis])))
        parameters = [self.constant([value]) for value in (start, end, axis, step)]
        self.add("Slice", [x, *parameters], tuple(result))

    def split(self, x: str, sizes: tuple[int, ...]) -> None:
        axis = self.axis(len(sizes))
        first = self.draw(st.integers(0, sizes[axis]))
        parts = []
        for size in (first, sizes[axis] - first):
            part = list(sizes)
            part[axis] = size
            parts.append(tuple(part))
        self.add("Split", [x, self.constant([part[axis] for part in parts])], *parts, axis=axis)

    def concat(self, x: str, sizes: tuple[int, ...]) -> None:
        axis = self.axis(len(sizes)) % len(sizes)
        fitting = [
            name
            for name, other in sorted(self.sizes.items())
            if len(other) == len(sizes)
            and other[:axis] + other[axis + 1 :] == sizes[:axis] + sizes[axis + 1 :]
        ]
        others = self.draw(st.lists(st.sampled_from(fitting), max_size=2))
        total = sizes[axis] + sum(self.sizes[name][axis] for name in others)
        self.add("Concat", [x, *others], (*sizes[:axis], total, *sizes[axis + 1 :]), axis=axis)

    def pad(self, x: str, sizes: tuple[int, ...]) -> None:
        axis = self.axis(len(sizes)) % len(sizes)
        before, behind = self.draw(st.integers(0, 3)), self.draw(st.integers(0, 3))
        pads = [0] * (2 * len(sizes))
        pads[axis], pads[len(sizes) + axis] = before, behind
        mode = self.draw(st.sampled_from(["constant", "edge", "reflect"])) if 0 not in sizes else "constant"
        result = (*sizes[:axis], sizes[axis] + before + behind, *sizes[axis + 1 :])
        self.add("Pad", [x, self.constant(pads)], result, mode=mode)

    def reshape(self, x: str, sizes: tuple[int, ...]) -> None:
        count = prod(sizes)
        divisors = [size for size in range(1, 9) if count and count % size == 0] or [0]
        first = self.draw(st.sampled_from(divisors))
        shape = (first, count // first) if first else (0, 3)
        shown = [shape[0], -1] if first and self.draw(st.booleans()) else list(shape)
        self.add("Reshape", [x, self.constant(shown)], shape, **({"allowzero": 1} if 0 in shape else {}))

    def transpose(self, x: str, sizes: tuple[int, ...]) -> None:
        order = self.draw(st.permutations(range(len(sizes))))
        if order:
            self.add("Transpose", [x], tuple(sizes[axis] for axis in order), perm=order)

    def squeeze(self, x: str, sizes: tuple[int, ...]) -> None:
        ones = [axis for axis, size in enumerate(sizes) if size == 1]
        if self.draw(st.booleans()) or not ones:
            self.add("Squeeze", [x], tuple(size for size in sizes if size != 1))
        else:
            dropped = self.draw(st.sampled_from(ones))
            rest = tuple(size for axis, size in enumerate(sizes) if axis != dropped)
            self.add("Squeeze", [x, self.constant([dropped])], rest)

    def unsqueeze(self, x: str, sizes: tuple[int, ...]) -> None:
        axis = self.draw(st.integers(0, len(sizes)))
        self.add("Unsqueeze", [x, self.constant([axis])], (*sizes[:axis], 1, *sizes[axis:]))

    def flatten(self, x: str, sizes: tuple[int, ...]) -> None:
        if not sizes or 0 in sizes:
            return
        axis = self.draw(st.integers(1, len(sizes)))
        self.add("Flatten", [x], (prod(sizes[:axis]), prod(sizes[axis:])), axis=axis)

    def expand(self, x: str, sizes: tuple[int, ...]) -> None:
        repeat = self.draw(st.integers(1, 3))
        if prod(sizes) * repeat <= MAX_ELEMENTS:
            self.add("Expand", [x, self.constant([repeat, *(1 for _ in sizes)])], (repeat, *sizes))

    def gather(self, x: str, sizes: tuple[int, ...]) -> None:
        axis, shape = self.axis(len(sizes)), self.draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
        if len(sizes) + len(shape) > 6 or sizes[axis] == 0:
            return
        index = st.integers(-sizes[axis], sizes[axis] - 1)
        indices = self.draw(st.lists(index, min_size=prod(shape), max_size=prod(shape)))
        result = (*sizes[: axis % len(sizes)], *shape, *sizes[axis % len(sizes) + 1 :])
        self.add("Gather", [x, self.constant(np.reshape(indices, shape))], result, axis=axis)

    def tile(self, x: str, sizes: tuple[int, ...]) -> None:
        counts = [self.draw(st.integers(0, 3)) for _ in sizes]
        result = tuple(size * count for size, count in zip(sizes, counts, strict=True))
        if prod(result) <= MAX_ELEMENTS:
            self.add("Tile", [x, self.constant(counts)], result)

    def trilu(self, x: str, sizes: tuple[int, ...]) -> None:
        k, upper = self.draw(st.integers(-4, 4)), self.draw(st.integers(0, 1))
        self.add("Trilu", [x, self.constant(k)], sizes, upper=upper)

    def reverse_sequence(self, x: str, sizes: tuple[int, ...]) -> None:
        time, batch = sizes[:2]
        if time:
            lengths = self.draw(st.lists(st.integers(1, time), min_size=batch, max_size=batch))
            self.add("ReverseSequence", [x, self.constant(lengths)], sizes)

    def space_to_depth(self, x: str, sizes: tuple[int, ...]) -> None:
        n, c, h, w = sizes
        block = 2 if h % 2 == 0 and w % 2 == 0 else 1
        self.add("SpaceToDepth", [x], (n, c * block**2, h // block, w // block), blocksize=block)

    def depth_to_space(self, x: str, sizes: tuple[int, ...]) -> None:
        n, c, h, w = sizes
        block = 2 if c % 4 == 0 else 1
        mode = self.draw(st.sampled_from(["DCR", "CRD"]))
        self.add("DepthToSpace", [x], (n, c // block**2, h * block, w * block), blocksize=block, mode=mode)


@st.composite
def graphs(draw: st.DrawFn) -> Growing:
    """A graph of up to 25 nodes; its inputs are `x` and `y`."""
    growing = Growing(draw, draw(st.sampled_from([14, 18, 21])))
    growing.sizes["x"] = draw(st.sampled_from([(2, 4, 6, 4), (3, 5), (1, 7, 1), (6,), (2, 3, 4), (), (0, 3)]))
    growing.sizes["y"] = draw(st.sampled_from([growing.sizes["x"], (4, 4)]))
    for _ in range(draw(st.integers(1, 25))):
        growing.grow()
    return growing
