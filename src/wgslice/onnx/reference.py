"""ONNX's reference implementation of one operator, for values that are known on the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

__all__ = ["Reference"]


class Reference:
    """A node, as ONNX's reference implementation runs it."""

    def __init__(self, node: onnx.NodeProto, opset: int) -> None:
        self.node = node
        self.opset = opset

    @cached_property
    def evaluator(self) -> Any:
        """The implementation; made for the first run, since most nodes never need it."""
        from onnx.reference import ReferenceEvaluator  # loads every operator there is

        inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(filter(None, self.node.input))]
        outputs = [onnx.ValueInfoProto(name=name) for name in filter(None, self.node.output)]
        graph = helper.make_graph([self.node], "node", inputs, outputs)
        return ReferenceEvaluator(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        )

    def run(self, inputs: Sequence[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """The outputs by their names; whatever the implementation cannot do is a ValueError."""
        given = {name: array for name, array in zip(self.node.input, inputs, strict=True) if name}
        names = [name for name in self.node.output if name]
        try:
            with np.errstate(divide="raise", over="ignore", invalid="ignore"):  # no size is 1 // 0
                found = self.evaluator.run(names, given)
        except MemoryError:
            raise
        except Exception as error:  # each operator has its own
            sizes = ", ".join("nothing" if array is None else str(array.shape) for array in inputs)
            raise ValueError(f"on the host, with inputs of shapes {sizes}: {error}") from error
        return {name: np.asarray(array) for name, array in zip(names, found, strict=True)}
