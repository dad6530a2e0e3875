"""NumPy's index notation, written out for rivals that have another."""

from __future__ import annotations

from typing import Any

__all__ = ["written_out"]


def written_out(key: Any, rank: int) -> tuple[int | slice, ...]:
    """The same index as a tuple, with slices in the place of an ellipsis."""
    key = key if isinstance(key, tuple) else (key,)
    if Ellipsis in key:
        place = key.index(Ellipsis)
        key = (*key[:place], *[slice(None)] * (rank - len(key) + 1), *key[place + 1 :])
    return tuple(key)
