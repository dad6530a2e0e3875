"""Nested sequences of tensors and arrays: their items, and all joined to one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wgslice.arguments import checked_shape
from wgslice.dtypes import AnyDType, DType, element_dtype, native_array
from wgslice.errors import ComputationRefused
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.gpu.recording import run_copies
from wgslice.tensors.placed import check_input, check_tensor, has_tensors
from wgslice.tensors.tensor import Tensor, allocate, from_host


def mapped(nested: Any, function: Callable[[Any], Any]) -> Any:
    """Return an item, or a tuple, list or dict of items, each by way of a function; None stays None."""
    if isinstance(nested, dict):
        return {key: mapped(value, function) for key, value in nested.items()}
    if isinstance(nested, list | tuple):
        return getattr(type(nested), "_make", type(nested))(mapped(value, function) for value in nested)
    return None if nested is None else function(nested)


def tensors_in(name: str, nested: Any) -> list[Tensor]:
    """Return the tensors in a tuple, list or dict; raise TypeError, with a name, for other items but None."""
    if isinstance(nested, Tensor):
        return [nested]
    if isinstance(nested, list | tuple | dict):
        values = nested.values() if isinstance(nested, dict) else nested
        return [x for value in values for x in tensors_in(name, value)]
    if nested is not None:
        check_tensor(name, nested)
    return []


def joined(sequence: Any, dtype: AnyDType, device: AnyDevice) -> Tensor:
    """Copy tensors, and arrays that NumPy casts to their dtype safely, into a new tensor, without waiting."""
    parts = list(parts_of(sequence))
    first = next(part for _, part in parts if isinstance(part, Tensor))
    element = first.dtype if dtype is None else element_dtype(dtype)
    chosen = first.device if device is None else checked_device(device)
    result = allocate(checked_shape(shape_of(sequence)), element, chosen, zeroed=False)
    copies = []
    for place, part in parts:
        if isinstance(part, Tensor) or not np.can_cast(part.dtype, element):
            check_not_converted(part, element)
        is_here = isinstance(part, Tensor) and part.device is chosen
        source = part if is_here else from_host(native_array(np.asarray(part, element)), chosen)
        if is_here:
            check_input(chosen, f"array[{', '.join(map(str, place))}]", source.memory)
        copies.append((source.memory, source.layout, result.memory, result[place].layout))
    if result.size:
        run_copies(chosen, result.itemsize, copies)
    return result


def parts_of(value: Any, *place: int) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield the tensors and arrays in nested sequences, each with its place in the result."""
    if has_tensors(value):
        for number, each in enumerate(value):
            yield from parts_of(each, *place, number)
    else:
        yield place, value if isinstance(value, Tensor) else np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of nested sequences; refuses parts of several shapes."""
    if not has_tensors(value):
        return np.shape(value)
    shapes = [shape_of(each) for each in value]
    if len(set(shapes)) > 1:
        raise ValueError(f"array has parts of shapes {', '.join(map(str, shapes))}: must be equal")
    return (len(shapes), *shapes[0])


def check_not_converted(x: Any, dtype: DType) -> None:
    """Refuse another dtype than that of a tensor or an array."""
    if dtype != x.dtype:
        raise ComputationRefused(
            f"dtype {dtype}: the {'tensor' if isinstance(x, Tensor) else 'array'} has {x.dtype}, and nothing "
            "is converted on the GPU: convert its numpy(), or view() it as another dtype of the same width"
        )
