"""Graphs of operators that move elements, in ONNX and in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.tasks import Task

__all__ = ["GRAPHS", "Focus", "Rounds"]


@dataclass(frozen=True)
class Rounds:
    """An image flipped, padded, its blocks moved to depth, transposed, moved back: 5 operators per round."""

    count: int

    def text(self, kind: str, shape: tuple[int, ...]) -> str:
        """The model in ONNX's text format."""
        body = "".join(
            f"""
            flipped{turn} = Slice({f"x{turn}" if turn else "x"}, last, end, columns, step)
            padded{turn} = Pad<mode = "reflect">(flipped{turn}, pads)
            depth{turn} = SpaceToDepth<blocksize = 2>(padded{turn})
            turned{turn} = Transpose<perm = [0, 1, 3, 2]>(depth{turn})
            {f"x{turn + 1}" if turn + 1 < self.count else "y"} =
                DepthToSpace<blocksize = 2, mode = "CRD">(turned{turn})
            """
            for turn in range(self.count)
        )
        sizes = ", ".join(map(str, shape))
        return f"""
        <ir_version: 9, opset_import: ["": 18]>
        rounds ({kind}[{sizes}] x) => ({kind}[n, c, h, w] y)
        <int64[1] last = {{-1}}, int64[1] end = {{{-(2**31)}}}, int64[1] columns = {{3}},
         int64[1] step = {{-1}}, int64[8] pads = {{0, 0, 2, 2, 0, 0, 2, 2}}>
        {{ {body} }}
        """

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        for _ in range(self.count):
            padded = np.pad(array[..., ::-1], [(0, 0), (0, 0), (2, 2), (2, 2)], "reflect")
            n, c, h, w = padded.shape
            depth = padded.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4)
            turned = depth.reshape(n, 4 * c, h // 2, w // 2).transpose(0, 1, 3, 2)
            moved = turned.reshape(n, c, 2, 2, w // 2, h // 2).transpose(0, 1, 4, 2, 5, 3)
            array = moved.reshape(n, c, w, h)
        return array

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output of square images."""
        return (*shape[:2], *(size + 4 * self.count for size in shape[2:]))


@dataclass(frozen=True)
class Focus:
    """YOLO's focus: four slices of every second row and column, joined along the channels."""

    def text(self, kind: str, shape: tuple[int, ...]) -> str:
        """The model in ONNX's text format."""
        corners = [(row, column) for column in (0, 1) for row in (0, 1)]
        starts = "".join(f"int64[2] s{row}{column} = {{{row}, {column}}}, " for row, column in corners)
        slices = "".join(
            f"p{row}{column} = Slice(x, s{row}{column}, ends, axes, steps)\n" for row, column in corners
        )
        sizes = ", ".join(map(str, shape))
        return f"""
        <ir_version: 9, opset_import: ["": 18]>
        focus ({kind}[{sizes}] x) => ({kind}[n, c, h, w] y)
        <{starts} int64[2] ends = {{{2**31 - 1}, {2**31 - 1}}}, int64[2] axes = {{2, 3}},
         int64[2] steps = {{2, 2}}>
        {{ {slices} y = Concat<axis = 1>(p00, p10, p01, p11) }}
        """

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        return np.concatenate([array[..., row::2, column::2] for column in (0, 1) for row in (0, 1)], axis=1)

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of what must come out."""
        return shape[0], 4 * shape[1], shape[2] // 2, shape[3] // 2


GRAPHS = [
    Task("20 operators, f32 3 x 256 x 256", "float32", (1, 3, 256, 256), Rounds(4)),
    Task("20 operators, f32 3 x 2048 x 2048", "float32", (1, 3, 2048, 2048), Rounds(4)),
    Task("focus, f32 16 x 3 x 640 x 640", "float32", (16, 3, 640, 640), Focus()),
]
