"""ndindex's tests, which compare indices by arrays: each index that they try is tried on a tensor too.

The library is the installed release, which is compiled; the tests are the checkout's, of the same release.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import ndindex.tests
import numpy as np

import wgslice as wg

MAX_RANK = 8
ndindex.tests.__path__ = [str(Path(os.environ["SUITE_CHECKOUT"]) / "ndindex" / "tests")]

from ndindex.tests import helpers  # noqa: E402 -- of the checkout

check_same = helpers.check_same


def outcome(function: Callable[[], Any]) -> Any:
    """Return an array, or the type of the exception that is raised."""
    try:
        result = function()
    except Exception as error:
        return type(error)
    return np.asarray(result)


def is_deep(array: Any, index: Any) -> bool:
    """Whether an array, its index or the result has more dimensions than tensors have."""
    parts = index if isinstance(index, tuple) else (index,)
    ranks = [np.ndim(part) for part in parts if isinstance(part, list | np.ndarray)]
    return max([array.ndim + sum(part is None for part in parts), *ranks], default=0) > MAX_RANK


@wraps(check_same)
def check_tensor_too(a: Any, idx: Any, **options: Any) -> Any:
    """Check that a tensor gives the same elements, or an exception of the same type, for both forms."""
    if isinstance(a, np.ndarray) and not is_deep(a, idx):
        expected, tensor = outcome(lambda: a[idx]), wg.asarray(a)
        if isinstance(expected, type) or expected.ndim <= MAX_RANK:
            check_outcome(expected, outcome(lambda: tensor[idx]), a, idx)
            if not isinstance(expected, type):
                raw = ndindex.ndindex(idx).raw
                check_outcome(expected, outcome(lambda: tensor[raw]), a, raw)
    return check_same(a, idx, **options)


def check_outcome(expected: Any, found: Any, array: Any, index: Any) -> None:
    """Raise unless a tensor's outcome is that of an array."""
    if isinstance(expected, type) or isinstance(found, type):
        assert expected is found, (array.shape, index, expected, found)
    else:
        assert (expected.shape, expected.dtype) == (found.shape, found.dtype), (array.shape, index)
        np.testing.assert_array_equal(found, expected)


helpers.check_same = check_tensor_too
