"""ONNX's own backend tests of the operators that move elements: all of them, none skipped."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any

import onnx
import pytest

import wgslice as wg
from wgslice import onnx as backend

CATEGORIES = {
    "node": "OnnxBackendNodeModelTest",
    "simple": "OnnxBackendSimpleModelTest",
    "pytorch-converted": "OnnxBackendPyTorchConvertedModelTest",
    "pytorch-operator": "OnnxBackendPyTorchOperatorModelTest",
}

# Cases of pooling, of which none moves only: at import, 4 of 5 seconds go into what they expect.
POOLING = [f"onnx.backend.test.case.node.{name}" for name in ("averagepool", "lppool", "maxpool")]
sys.modules.update((name, ModuleType(name)) for name in POOLING)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the cases of other operators overflow and divide by zero on purpose
    from onnx.backend.test import BackendTest
    from onnx.backend.test.loader import load_model_tests

    suite: Any = BackendTest(backend.Backend, __name__).test_cases
    cases = [case for kind in CATEGORIES for case in load_model_tests(kind=kind)]

MOVING = {
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "Identity", "Pad"),
    *("Reshape", "ReverseSequence", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile"),
    *("Transpose", "Trilu", "Unsqueeze"),
}
KNOWN = {"Constant", "ConstantOfShape", "Range", "Shape", "Size"}  # on the host
ARITHMETIC = {"Add", "Div", "Max", "Mul", "Sub"}  # of shapes, in expanded functions


def model_of(case: Any) -> onnx.ModelProto:
    return case.model if case.model is not None else onnx.load(f"{case.model_dir}/model.onnx")


def reduces(case: Any) -> bool:
    attributes = [attribute for node in model_of(case).graph.node for attribute in node.attribute]
    return any(attribute.name == "reduction" for attribute in attributes)


def moves_only(case: Any) -> bool:
    operators = {node.op_type for node in model_of(case).graph.node}
    known = KNOWN | ARITHMETIC if "Shape" in operators else KNOWN
    return operators <= MOVING | known and not reduces(case)


names = [(case.kind, f"{case.name}_cpu") for case in cases if moves_only(case)]


def test_the_suite_has_cases_of_every_operator() -> None:
    """No filter hides them: ONNX 1.23 has 91 of nodes and 16 of models."""
    nodes = [node.op_type for case in cases if moves_only(case) for node in model_of(case).graph.node]
    assert set(nodes) >= MOVING | KNOWN | ARITHMETIC
    assert sum(kind == "node" for kind, _ in names) >= 91
    assert len(names) >= 107


def test_what_reduces_is_refused() -> None:
    """The only cases of these operators that are not run: they compute."""
    refused = [case for case in cases if case.name.startswith("test_scatternd_") and reduces(case)]
    assert len(refused) == 6
    for case in refused:
        with pytest.raises(backend.UnsupportedOperatorError, match="operator ScatterND with reduction = '"):
            backend.prepare(model_of(case))


@pytest.mark.parametrize(("kind", "name"), names, ids=[name for _, name in names])
def test_onnxs_own(monkeypatch: pytest.MonkeyPatch, device: wg.Device, kind: str, name: str) -> None:
    monkeypatch.setattr("wgslice.gpu.device.default_device", lambda: device)
    getattr(suite[CATEGORIES[kind]](name), name)()
