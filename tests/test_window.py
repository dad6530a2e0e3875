"""Windows: the rules of the specification, each refused by name, and what a legal window reads."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np
import pytest
from helpers import all_windows, numpy_window
from hypothesis import given
from hypothesis import strategies as st
from strategies import windows

import wgslice as wg
from wgslice.dialects.window import Window

U32, I32 = 2**32 - 1, 2**31 - 1


def test_every_small_window_reads_what_its_definition_says() -> None:
    for size in range(1, 7):
        for case in all_windows(size):
            window = Window.of(*case[:3])
            window.check_inside((size,))
            window.check_filled(case.output_sizes)
            (indices,) = window.ranges(case.output_sizes)
            assert list(indices) == numpy_window(np.arange(size), case).tolist()


@given(st.integers(1, 8).flatmap(lambda rank: windows((5,) * rank)))
def test_the_most_output_sizes_are_all_the_steps_that_fit(case: Any) -> None:
    array = np.arange(5)
    most = Window.of(*case[:3]).max_output_sizes
    for offset, size, stride, count in zip(*case[:3], most, strict=True):
        assert len(array[offset : offset + size][::stride]) == count


def legal(**changed: Any) -> dict[str, Any]:
    """A legal Slice1 on float32 of sizes (4, 6), with some of it changed."""
    arguments = {
        "input": wg.TensorDesc("float32", (4, 6)),
        "output": wg.TensorDesc("float32", (2, 3)),
        "offsets": (1, 2),
        "sizes": (2, 3),
        "strides": (1, -1),
    }
    return {**arguments, **changed}


def desc(
    sizes: tuple[int, ...], strides: tuple[int, ...] | None = None, dtype: str = "float32"
) -> wg.TensorDesc:
    return wg.TensorDesc(dtype, sizes, strides)


WINDOW_RULES = [
    (legal(offsets=(1, 4)), r"offsets\[1\] \+ sizes\[1\] = 4 \+ 3 = 7: .*size 6"),
    (legal(offsets=(3, 2)), r"offsets\[0\] \+ sizes\[0\] = 3 \+ 2 = 5: .*size 4"),
    (legal(offsets=(U32, 2)), rf"offsets\[0\] \+ sizes\[0\] = {U32} \+ 2 = {U32 + 2}: "),
    (legal(offsets=(-1, 2)), r"offsets\[0\] = -1: must be an integer from"),
    (legal(offsets=(1, U32 + 1)), rf"offsets\[1\] = {U32 + 1}: must be an integer from"),
    (legal(sizes=(0, 3)), rf"sizes\[0\] = 0: must be an integer from 1 to {U32}"),
    (legal(sizes=(2, -3)), rf"sizes\[1\] = -3: must be an integer from 1 to {U32}"),
    (legal(sizes=(2, U32 + 1)), rf"sizes\[1\] = {U32 + 1}: must be an integer from"),
    (legal(strides=(0, 1)), r"strides\[0\] = 0: must not be 0"),
    (legal(strides=(1, I32 + 1)), rf"strides\[1\] = {I32 + 1}: must be an integer from {-I32 - 1} to {I32}"),
    (
        legal(strides=(1, -I32 - 2)),
        rf"strides\[1\] = {-I32 - 2}: must be an integer from {-I32 - 1} to {I32}",
    ),
    (legal(output=desc((3, 3))), r"output sizes\[0\] = 3: must be 1 to 2"),
    (legal(strides=(1, 2)), r"output sizes\[1\] = 3: must be 1 to 2"),
    (legal(output=desc((2,))), r"output sizes \(2,\) have rank 1: .*2"),
    (legal(input=desc((4, 6, 1))), r"rank 2 on an input of rank 3"),
    (legal(offsets=(1,)), r"1 offsets, 2 sizes and 2 strides"),
    (legal(offsets=(1,), strides=None), r"1 offsets, 2 sizes: there must be one of each"),
    (legal(strides=(1, 1, 1)), r"2 offsets, 2 sizes and 3 strides"),
    (legal(offsets=(), sizes=(), strides=()), r"rank 0: .*1 to 8"),
    (legal(offsets=(0,) * 9, sizes=(1,) * 9, strides=(1,) * 9), r"rank 9: .*1 to 8"),
]
TYPE_RULES = [
    (legal(offsets=(1.0, 2)), r"offsets\[0\] = 1.0: must be an integer, not float"),
    (legal(sizes=(2, "3")), r"sizes\[1\] = '3': must be an integer, not str"),
    (legal(strides=(1, None)), r"strides\[1\] = None: must be an integer"),
    (legal(offsets=3), r"offsets = 3: must be a sequence"),
    (legal(output=desc((2, 3), dtype="int32")), r"dtype int32, the input float32"),
    (legal(input="float32"), r"input is of type str: must be a TensorDesc"),
]


@pytest.mark.parametrize(("arguments", "message"), WINDOW_RULES)
def test_a_broken_window_rule_is_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.WindowError, match=f"^Slice1: .*{message}") as refusal:
        wg.Slice1(**arguments)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(("arguments", "message"), TYPE_RULES)
def test_a_wrong_type_is_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^Slice1: .*{message}"):
        wg.Slice1(**arguments)


def test_missing_arguments_are_named() -> None:
    side = desc((4, 6))
    for make, name in ((wg.Slice1, "Slice1"), (wg.Slice, "Slice"), (wg.SliceGrad, "SliceGrad")):
        with pytest.raises(TypeError, match=rf"^{name}\..*missing 2 .* arguments: 'offsets' and 'sizes'"):
            cast("Any", make)(side, side)


def test_an_output_on_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("Slice1: output sizes (2, 3) with strides (0, 1)")):
        wg.Slice1(**legal(output=desc((2, 3), (0, 1))))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("float32", (1,) * 9), ValueError, "rank 9: the rank must be 0 to 8"),
        (("float32", (4, 0)), ValueError, r"sizes\[1\] = 0: must be an integer from 1 to"),
        (("float32", (2**32,)), ValueError, r"sizes\[0\] = 4294967296"),
        (("float32", (4, 4), (4, -1)), ValueError, r"strides\[1\] = -1: must be an integer from"),
        (("float32", (4, 4), (2**32, 1)), ValueError, r"strides\[0\] = 4294967296"),
        (("float32", (4, 4), (1,)), ValueError, "1 strides for 2 sizes"),
        (("object", (4,)), TypeError, "Python objects"),
        ((None, (4,)), TypeError, "dtype None: name one"),
        (("S4", (4,)), TypeError, "strings and structured"),
        (("i4,i4", (4,)), TypeError, "strings and structured"),
        (("float32", (4.0,)), TypeError, r"sizes\[0\] = 4.0"),
        (((4,), "float32"), TypeError, "sizes 'float32': must be integers; the dtype comes before them"),
    ],
)
def test_a_tensor_desc_refuses_what_breaks_its_rules(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"TensorDesc: .*{message}"):
        wg.TensorDesc(*arguments)


@pytest.mark.parametrize(
    ("sizes", "strides", "dtype", "nbytes"),
    [
        ((4, 6), None, "float32", 96),
        ((4, 6), (8, 1), "float32", (1 + 3 * 8 + 5) * 4),
        ((3, 3), None, "uint8", 12),
        ((3, 3), (0, 1), "uint16", 8),
        ((1, 1), (999, 999), "int8", 4),
    ],
)
def test_a_tensor_desc_knows_its_least_bytes(sizes: Any, strides: Any, dtype: str, nbytes: int) -> None:
    assert wg.TensorDesc(dtype, sizes, strides).nbytes == nbytes


def test_descriptors_of_the_same_places_are_equal() -> None:
    packed = wg.TensorDesc("uint32", (2, 1, 3))
    assert packed == wg.TensorDesc(np.uint32, [2, 1, 3], (3, 999, 1))
    assert packed != wg.TensorDesc("uint32", (2, 1, 3), (4, 0, 1))
    assert packed != wg.TensorDesc("int32", (2, 1, 3))
    assert repr(packed) == "TensorDesc('uint32', (2, 1, 3), (3, 0, 1))"


def test_the_extreme_legal_values_are_legal() -> None:
    single = wg.TensorDesc("uint8", (1,))
    for stride in (I32, -I32 - 1):
        wg.Slice1(wg.TensorDesc("uint8", (U32,)), single, offsets=(0,), sizes=(U32,), strides=(stride,))
    wg.Slice1(wg.TensorDesc("uint8", (U32,)), single, offsets=(U32 - 1,), sizes=(1,), strides=(I32,))
