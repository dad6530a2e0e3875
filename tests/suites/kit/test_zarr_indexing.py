"""zarr-indexing's kit on tensors: its state machine, its selections chained on views, its corpus."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from zarr_indexing import messages
from zarr_indexing.reader import _decompose_basic, _lower
from zarr_indexing.testing import (
    DEFAULT_SETTINGS,
    ChainedIndexingStateMachine,
    outer_selection,
    state_machine_test,
)
from zarr_indexing.testing.strategies import (
    basic_selections,
    orthogonal_selections,
    slice_selections,
    vectorized_selections,
)

import wgslice as wg

CORPUS = Path(os.environ["SUITE_CHECKOUT"]) / "packages" / "zarr-indexing" / "tests" / "conformance"
SHAPE = (7, 5, 4)
CONFIG = settings(DEFAULT_SETTINGS, max_examples=30, derandomize=True)
MAX_EXTENT = 2**20  # of a source that a case of the corpus is tried on, in elements along a dimension


class ReadSlab:
    """Reads a slab, and selects from it on the GPU."""

    def read_into(self, source: Any, context: Any, out: Any, /) -> None:
        key, residual = _decompose_basic(context.transform)
        out[...] = np.asarray(_lower(source[key], residual))


class ReadElements:
    """Selects from the source itself: strides, reversals and gathers at once."""

    def read_into(self, source: Any, context: Any, out: Any, /) -> None:
        out[...] = np.asarray(_lower(source, context.transform))


class Uploaded(ChainedIndexingStateMachine):  # type: ignore[misc]  # untyped where mypy runs
    """The source is a packed tensor."""

    readers = (ReadSlab(), ReadElements())

    def make_source(self, data: Any) -> Any:
        return wg.asarray(data)


class Windowed(Uploaded):
    """The source is a reversed, strided and transposed window in a larger tensor."""

    def make_source(self, data: Any) -> Any:
        outer = np.full((2 * SHAPE[1], SHAPE[0] + 2, 2 * SHAPE[2]), -1, data.dtype)
        outer[::-2, 1:-1, 2:6] = data.transpose(1, 0, 2)
        return wg.asarray(outer)[::-2, 1:-1, 2:6].transpose(1, 0, 2)


class UploadedBytes(Uploaded):
    """Elements of one byte."""

    data = (np.arange(prod(SHAPE)) % 251).astype(np.uint8).reshape(SHAPE)


class Chained(RuleBasedStateMachine):
    """Selections after one another, each on the last one's result, and writes through them."""

    dtype: Any = np.int64

    @initialize()
    def start(self) -> None:
        self.array = (np.arange(prod(SHAPE)) % 251).astype(self.dtype).reshape(SHAPE)
        self.tensor = wg.asarray(self.array)
        self.selected, self.view = self.array, self.tensor
        self.steps: list[Any] = []

    def has_elements(self) -> bool:
        return hasattr(self, "selected") and self.selected.ndim > 0 and self.selected.size > 0

    def step(self, name: str, key: Any, select: Callable[[Any], Any]) -> None:
        self.steps.append((name, key))
        self.selected, self.view = np.asarray(select(self.selected)), select(self.view)

    @precondition(has_elements)
    @rule(data=st.data())
    def basic(self, data: st.DataObject) -> None:
        key = data.draw(basic_selections(self.selected.shape))
        self.step("basic", key, lambda array: array[key])

    @precondition(has_elements)
    @rule(data=st.data())
    def slices(self, data: st.DataObject) -> None:
        key = data.draw(slice_selections(self.selected.shape))
        self.step("slices", key, lambda array: array[key])

    @precondition(has_elements)
    @rule(data=st.data())
    def orthogonal(self, data: st.DataObject) -> None:
        key = data.draw(orthogonal_selections(self.selected.shape))
        self.step("orthogonal", key, lambda array: outer_selection(array, key))

    @precondition(has_elements)
    @rule(data=st.data())
    def vectorized(self, data: st.DataObject) -> None:
        key = data.draw(vectorized_selections(self.selected.shape))
        self.step("vectorized", key, lambda array: array[key])

    @precondition(has_elements)
    @rule(data=st.data())
    def transpose(self, data: st.DataObject) -> None:
        axes = data.draw(st.permutations(range(self.selected.ndim)))
        self.step("transpose", axes, lambda array: np.transpose(array, axes))

    @precondition(has_elements)
    @rule(
        data=st.data(),
        selections=st.sampled_from([basic_selections, slice_selections, vectorized_selections]),
    )
    def write(self, data: st.DataObject, selections: Any) -> None:
        key = data.draw(selections(self.selected.shape))
        shape = self.selected[key].shape
        value = (np.arange(prod(shape)) + 17 * len(self.steps)).astype(self.dtype).reshape(shape)
        self.steps.append(("write", key))
        self.selected[key] = value
        self.view[key] = wg.asarray(value) if data.draw(st.booleans()) else value

    @rule()
    def nothing(self) -> None:
        """Be possible where nothing else is."""

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "selected"):
            assert (self.view.shape, self.view.dtype) == (self.selected.shape, self.selected.dtype), (
                self.steps
            )
            np.testing.assert_array_equal(self.view.numpy(), self.selected, err_msg=str(self.steps))
            np.testing.assert_array_equal(self.tensor.numpy(), self.array, err_msg=str(self.steps))


class ChainedBytes(Chained):
    """Elements of one byte."""

    dtype = np.uint8


class ChainedHalves(Chained):
    """Elements of two bytes."""

    dtype = np.float16


TestUploaded = state_machine_test(Uploaded, config=CONFIG)
TestWindowed = state_machine_test(Windowed, config=CONFIG)
TestUploadedBytes = state_machine_test(UploadedBytes, config=CONFIG)
TestChained = state_machine_test(Chained, config=CONFIG)
TestChainedBytes = state_machine_test(ChainedBytes, config=CONFIG)
TestChainedHalves = state_machine_test(ChainedHalves, config=CONFIG)


def cases() -> Iterator[Any]:
    """Yield the cases of the corpus that have a normalized form."""
    for path in sorted(CORPUS.glob("*.json")):
        for case in json.loads(path.read_text("utf-8")):
            if "normalized" in case:
                yield pytest.param(case, id=f"{path.stem}-{case['name']}")


def coordinates(form: Any, low: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Return, for each dimension of the source, the coordinate that each element of the result has."""
    found = []
    for output in form["output"]:
        if "index_array" in output:
            array = output.get("offset", 0) + output.get("stride", 1) * np.asarray(
                output["index_array"], np.int64
            )
        elif "input_dimension" in output:
            axis = output["input_dimension"]
            steps = np.arange(low[axis], low[axis] + sizes[axis])
            array = output["offset"] + output["stride"] * steps.reshape(
                [-1 if each == axis else 1 for each in range(len(sizes))]
            )
        else:
            array = np.asarray(output["offset"])
        found.append(np.broadcast_to(array, sizes))
    return found


@pytest.mark.parametrize("case", cases())
def test_corpus(case: Any) -> None:
    """A normalized selection names the source's element for each one of the result."""
    form = case["normalized"]
    assert messages.normalize_ndsel(case["input"]) == form
    bounds = (form["input_inclusive_min"], form["input_exclusive_max"])
    low, high = ([each[0] if isinstance(each, list) else each for each in values] for values in bounds)
    numbers = [*low, *high, *(output["offset"] for output in form["output"])]
    if any(isinstance(each, str) or abs(each) > MAX_EXTENT for each in numbers):
        pytest.skip("unbounded, or larger than memory")
    sizes = tuple(stop - start for start, stop in zip(low, high, strict=True))
    if any(
        "index_array" in output and np.ndim(output["index_array"]) != len(sizes) for output in form["output"]
    ):
        pytest.skip("an index array of no elements")
    places = coordinates(form, low, sizes)
    origins = [int(each.min(initial=0)) for each in places]
    shape = [int(each.max(initial=0)) - origin + 1 for each, origin in zip(places, origins, strict=True)]
    source = np.random.default_rng(0).permutation(prod(shape)).astype(np.int32).reshape(shape)
    tensor = wg.asarray(source)
    key = tuple(each - origin for each, origin in zip(places, origins, strict=True))
    expected = source[key] if key else np.broadcast_to(source, sizes)
    found = tensor[key] if key else wg.broadcast_to(tensor, sizes)
    np.testing.assert_array_equal(found.numpy(), expected)
    given = case["input"]
    if (
        given["kind"] == "slice"
        and expected.size
        and all(isinstance(each, int) for each in (*given["start"], *given["stop"]))
    ):
        steps = given.get("step") or [1] * len(given["start"])
        python = tuple(
            slice(start - origin, stop - origin if stop >= origin else None, step)
            for start, stop, step, origin in zip(given["start"], given["stop"], steps, origins, strict=True)
        )
        np.testing.assert_array_equal(tensor[python].numpy(), source[python])
        np.testing.assert_array_equal(tensor[python].numpy(), expected)
