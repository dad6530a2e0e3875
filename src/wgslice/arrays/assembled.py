"""Copies between tensors that are submitted together, and what may take part in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import run_copies
from wgslice.layout import Layout
from wgslice.layout_rules import Stage
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, allocate, viewed

__all__ = ["alike", "assembled", "check_readable", "filled_by"]


def check_readable(device: Device, x: Tensor, name: str) -> None:
    """Refuse a tensor of another device, and one whose buffer is destroyed or mapped."""
    with named(name):
        check_usable(device, x.buffer)
        check_alive(device, x.buffer)


def alike(arrays: Iterable[Tensor]) -> list[Tensor]:
    """Tensors that one result is made of, at least one: of one dtype."""
    given = list(arrays)
    if not given:
        raise ValueError("arrays is empty: name at least one tensor")
    for number, array in enumerate(given):
        name = f"arrays[{number}]"
        check_tensor(name, array)
        check_dtype(name, array.dtype, given[0].dtype)
    return given


def check_dtype(name: str, dtype: DType, first: DType) -> None:
    """Refuse another dtype than the first tensor's, since nothing is converted."""
    if dtype != first:
        raise TypeError(
            f"{name} has dtype {dtype}: must be {first} as arrays[0] has, since elements are moved and not "
            "converted; asarray(x.numpy().astype(...)) converts"
        )


def filled_by(sizes: Sequence[int], first: Tensor, copies: Iterable[tuple[Tensor, Layout, Layout]]) -> Tensor:
    """A new packed tensor like the first of others; each copy has a tensor, what is read, what is written.

    What nothing is written to is zero. The tensors have been checked.
    """
    result = allocate(sizes, first.dtype, first.device)
    submit(first.device, [(viewed(x, read), viewed(result, written)) for x, read, written in copies])
    return result


def assembled(x: Tensor, stages: Iterable[Stage]) -> Tensor:
    """A new packed tensor, the result of the last stage; the first one reads `x`, which has been checked."""
    sides = []
    result = x
    for sizes, copies in stages:
        made = allocate(sizes, x.dtype, x.device)
        sides += [(viewed(result, read), viewed(made, written)) for read, written in copies]
        result = made
    submit(x.device, sides)
    return result


def submit(device: Device, sides: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Copy one after the other, in one submission, where there is something to write."""
    operands = [(source.operand, target.operand) for source, target in sides if target.size]
    if operands:
        run_copies(device, operands)
