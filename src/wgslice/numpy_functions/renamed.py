"""NumPy's functions that the package has as they are, but for the names of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wgslice.arrays import axes, concat, repeating, shifting, taking, triangles
from wgslice.tensors import views

__all__ = ["RENAMED"]


def renamed(function: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """A function whose keyword parameters have NumPy's names."""

    def forward(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **{names.get(name, name): value for name, value in options.items()})

    return forward


RENAMED = {
    "expand_dims": renamed(axes.expand_dims, a="x"),
    "flip": renamed(axes.flip, m="x"),
    "moveaxis": renamed(axes.moveaxis, a="x"),
    "repeat": renamed(repeating.repeat, a="x"),
    "roll": renamed(shifting.roll, a="x"),
    "rot90": renamed(axes.rot90, m="x"),
    "split": renamed(concat.split, ary="x"),
    "squeeze": renamed(views.squeeze, a="x"),
    "swapaxes": renamed(axes.swapaxes, a="x"),
    "take_along_axis": renamed(taking.take_along_axis, arr="x"),
    "tile": renamed(repeating.tile, A="x", reps="repetitions"),
    "tril": renamed(triangles.tril, m="x"),
    "triu": renamed(triangles.triu, m="x"),
    "unstack": concat.unstack,
}
