"""einops' functions on tensors: what they make of NumPy's arrays, in one submission at most."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import einops
import numpy as np
import pytest
from helpers import check_same, on_one_adapter
from hypothesis import given
from hypothesis import strategies as st
from moving import numbered, pairs

import wgslice as wg
import wgslice.einops

SHAPE = (2, 4, 6, 3)

# Patterns for tensors of SHAPE, sizes of axes, and the submissions that a packed one needs.
REARRANGED: dict[str, tuple[str, dict[str, int], int]] = {
    "identity": ("b h w c -> b h w c", {}, 0),
    "transpose": ("b h w c -> b c h w", {}, 0),
    "merge contiguous": ("b h w c -> (b h) (w c)", {}, 0),
    "merge": ("b h w c -> h (b w) c", {}, 1),
    "flatten": ("b h w c -> (c w h b)", {}, 1),
    "ellipsis": ("b ... c -> c ... b", {}, 0),
    "merge an ellipsis": ("b ... c -> (c ...) b", {}, 1),
    "split": ("b (h p) w c -> b h p w c", {"p": 2}, 0),
    "patches": ("b (h p) (w q) c -> (b h w) (p q c)", {"p": 2, "q": 3}, 1),
    "sizes of 1": ("b h w c -> 1 c () (b h) 1 w", {}, 0),
}
REPEATED: dict[str, tuple[str, dict[str, int], int]] = {
    "a new axis": ("b h w c -> b n h w c", {"n": 3}, 0),
    "each": ("b h w c -> b (h n) w c", {"n": 2}, 1),
    "the whole": ("b h w c -> b (n h) w c", {"n": 2}, 1),
    "two axes": ("b h w c -> b (h 2) (w n) c m", {"n": 3, "m": 2}, 1),
    "once": ("b h w c -> (n b) h w c", {"n": 1}, 0),
    "none": ("b h w c -> n b h w c", {"n": 0}, 0),
}


def checked(function: Any, x: Any, expected: Any, *arguments: Any, **sizes: int) -> int:
    """Check a function's results on tensors by those on arrays; return the submissions that it needs."""
    check_same(
        function(x, *arguments, **sizes).numpy(),
        np.ascontiguousarray(function(expected, *arguments, **sizes)),
    )
    return len(wg.explain(function, x, *arguments, **sizes).submissions)


@pytest.mark.parametrize("name", REARRANGED)
def test_rearranged_tensors_equal_arrays(device: wg.Device, name: str) -> None:
    pattern, sizes, submissions = REARRANGED[name]
    for dtype in ("bool", "float16", "complex128"):
        array = numbered(SHAPE, dtype)
        x = wg.asarray(array, device=device)
        assert checked(einops.rearrange, x, array, pattern, **sizes) == submissions
        assert checked(einops.reduce, x, array, pattern, "max", **sizes) == submissions  # of no axis
        assert checked(einops.rearrange, x[::-1, :, ::-1], array[::-1, :, ::-1], pattern, **sizes) <= 1


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_tensors_equal_arrays(device: wg.Device, name: str) -> None:
    pattern, sizes, submissions = REPEATED[name]
    array = numbered(SHAPE, "int16")
    assert checked(einops.repeat, wg.asarray(array, device=device), array, pattern, **sizes) == submissions


@st.composite
def grouped(draw: st.DrawFn, axes: list[str]) -> str:
    """One side of a pattern: these axes, neighbours of them merged."""
    if not axes:
        return ""
    size = draw(st.integers(1, len(axes)))
    return f"({' '.join(axes[:size])}) {draw(grouped(axes[size:]))}"


@on_one_adapter
@given(st.data())
def test_random_patterns_are_views_or_one_copy(device: wg.Device, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(ascii_lowercase), min_size=1, max_size=4, unique=True))
    x, array = data.draw(pairs(device, tuple(data.draw(st.integers(1, 4)) for _ in axes)))
    pattern = f"{' '.join(axes)} -> {data.draw(grouped(data.draw(st.permutations(axes))))}"
    assert checked(einops.rearrange, x, array, pattern) <= 1


def test_a_list_of_tensors_is_stacked_first(device: wg.Device) -> None:
    arrays = [numbered((4, 3), "uint8", first) for first in (1, 20, 40)]
    tensors = [wg.asarray(array, device=device) for array in arrays]
    for pattern, submissions in (("n a b -> b n a", 1), ("n a b -> (n a) b", 1), ("n a b -> (a n) b", 2)):
        assert checked(einops.rearrange, tensors, arrays, pattern) == submissions


def test_packed_tensors_are_unpacked_as_views(device: wg.Device) -> None:
    arrays = [
        numbered(shape, "int16", first) for first, shape in enumerate([(2, 5, 3), (2, 3), (2, 4, 2, 3)])
    ]
    tensors = [wg.asarray(array, device=device) for array in arrays]
    packed, shapes = einops.pack(tensors, "b * c")
    expected, _ = einops.pack(arrays, "b * c")
    check_same(packed.numpy(), expected)
    assert shapes == [(5,), (), (4, 2)]
    assert len(wg.explain(einops.pack, tensors, "b * c").submissions) == 1
    assert wg.explain(einops.unpack, packed, shapes, "b * c").submissions == ()
    for found, array in zip(einops.unpack(packed, shapes, "b * c"), arrays, strict=True):
        check_same(found.numpy(), array)
        assert np.may_share_memory(found, packed)


@on_one_adapter
def test_views_are_written_unless_they_repeat_elements(device: wg.Device) -> None:
    x = wg.zeros((2, 3), "int16", device=device)
    einops.rearrange(x, "a b -> b a")[0] = 7
    assert x.numpy().tolist() == [[7, 0, 0], [7, 0, 0]]
    with pytest.raises(ValueError, match="read-only"):
        einops.repeat(x, "a b -> n a b", n=2)[0] = 1
    einops.repeat(x, "a b -> (n a) b", n=2)[0] = 1


@on_one_adapter
def test_what_computes_is_refused(device: wg.Device) -> None:
    x = wg.ones(SHAPE, "float32", device=device)
    for reduction in ("min", "max", "sum", "mean", "prod", "any", "all"):
        with pytest.raises(
            wg.ComputationRefused, match=rf"reduce of 2 of 4 dimensions by '{reduction}': .*x\.numpy"
        ):
            einops.reduce(x, "b h w c -> b c", reduction)
    with pytest.raises(wg.ComputationRefused, match=r"numpy\.max"):
        einops.reduce(x, "b h w c -> b c", np.max)
    with pytest.raises(wg.ComputationRefused, match=r"einops\.einsum .* 'abcd->ad': .*x\.numpy"):
        einops.einsum(x, "b h w c -> b c")
    with pytest.raises(NotImplementedError, match="mean"):
        einops.reduce(x.view("int32"), "b h w c -> b c", "mean")


@on_one_adapter
def test_errors_name_pattern_or_rank(device: wg.Device) -> None:
    x = wg.zeros(SHAPE, device=device)
    with pytest.raises(einops.EinopsError, match=r"\(2, 4, 6, 3\)"):
        einops.rearrange(x, "b (h p) w c -> b h p w c", p=3)
    with pytest.raises(ValueError, match="has rank 9: the rank must be 0 to 8"):
        einops.rearrange(x, "b (h p q) (w r s t) c -> b h p q w r s t c", p=1, q=2, r=1, s=3, t=1)


@on_one_adapter
def test_shapes_are_parsed_and_elements_read_back(device: wg.Device) -> None:
    array = numbered(SHAPE, "int16")
    x = wg.asarray(array, device=device)
    assert einops.parse_shape(x, "b _ w c") == {"b": 2, "w": 6, "c": 3}
    check_same(einops.asnumpy(x), array)


@on_one_adapter
def test_operations_of_einops_own_tests(default: wg.Device) -> None:
    """What einops' tests, and patterns of other backends, call besides."""
    backend = wgslice.einops.Backend()
    array = numbered((2, 1, 3), "int16")
    x = backend.from_numpy(array)
    check_same(backend.tile(x, (1, 2, 2)).numpy(), np.tile(array, (1, 2, 2)))
    check_same(backend.add_axis(x, 2).numpy(), np.expand_dims(array, 2))
    check_same(backend.arange(2, 5).numpy(), np.arange(2, 5))
    assert [backend.is_float_type(each) for each in (x, x.view("float16"))] == [False, True]
