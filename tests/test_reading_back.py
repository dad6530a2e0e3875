"""The namespace that suites of the standard are given: what moves is ours, what computes is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import reading_back
from helpers import check_same

import wgslice as wg
from wgslice import array_api
from wgslice.array_api import REFUSED

xp: Any = reading_back


def made(device: wg.Device) -> Any:
    return xp.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device)


def test_it_has_all_names() -> None:
    for name in (*array_api.__all__, *REFUSED):
        assert hasattr(xp, name)


def test_what_moves_is_ours(device: wg.Device) -> None:
    x = made(device)
    for view in (xp.flip(x), xp.permute_dims(x, (1, 0)), x[:, 1], x.T, *xp.unstack(x)):
        assert type(view) is reading_back.Array
        assert view.tensor.buffer is x.tensor.buffer
    x[0, xp.asarray([-1], device=device)] = 99
    check_same(xp.concat([x, x]).tensor.numpy(), np.array([[0, 1, 99], [3, 4, 5]] * 2, np.int16))


def test_what_computes_is_numpys(device: wg.Device) -> None:
    x = made(device)
    numbers = x.tensor.numpy()
    check_same((x + x).tensor.numpy(), numbers + numbers)
    check_same((2 - x).tensor.numpy(), 2 - numbers)
    check_same((x == x).tensor.numpy(), np.ones((2, 3), bool))
    check_same(xp.astype(x, xp.float32).tensor.numpy(), numbers.astype(np.float32))
    check_same(
        xp.concat([x, xp.astype(x, xp.float64)]).tensor.numpy(), np.tile(numbers, (2, 1)).astype(float)
    )
    assert int(xp.sum(x)) == 15
    assert bool(xp.all(x >= 0))
