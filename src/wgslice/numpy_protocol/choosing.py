"""Elements chosen from several arrays, by numbers or by conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wgslice.arguments import checked_shape
from wgslice.errors import ComputationRefused
from wgslice.numpy_protocol.joining import check_dtype, stacked, tensors_of
from wgslice.numpy_protocol.taking import as_indices
from wgslice.operators.binding import output_for
from wgslice.tensors.creation import asarray, full
from wgslice.tensors.indexing import copy_where, indices_held
from wgslice.tensors.methods import packed_copy
from wgslice.tensors.placed import check_no_sequence, write
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.views import broadcast_arrays, broadcast_to


def choose(a: Any, choices: Any, out: Tensor | None = None, mode: str = "raise") -> Tensor:
    """Gather at each element from the array that a number names, as `numpy.choose`.

    Numbers in a tensor are read back in mode "wrap" only: in others one out of range names the nearest
    array, and in "raise" a negative one counts from the end.
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode = {mode!r}: must be 'raise', 'wrap' or 'clip'")
    check_no_sequence(a)
    given = a if isinstance(a, Tensor) else np.asarray(a)
    numbers: Any = as_indices(given.view(np.uint8) if given.dtype.kind == "b" else given)
    source = joined_choices(choices, numbers)
    count, rest = len(source), source.shape[1:]
    shape = checked_shape(np.broadcast_shapes(numbers.shape, rest))
    if isinstance(numbers, Tensor) and mode == "wrap":
        numbers = as_indices(numbers.numpy())
    if isinstance(numbers, Tensor):
        numbers = indices_held(source, numbers, clipped=True) if mode == "clip" else numbers
    elif mode == "raise":
        if 0 not in shape and ((numbers < 0) | (numbers >= count)).any():
            raise ValueError(f"a has an invalid entry: must be 0 to {count - 1}, since choices has {count}")
    else:
        numbers = numbers.clip(0, count - 1) if mode == "clip" else numbers % count
    source = broadcast_to(source[(slice(None), *[None] * (len(shape) - len(rest)))], (count, *shape))
    found = source[(numbers, *np.indices(shape, sparse=True))]
    if out is None:
        return packed_copy(found) if found.memory is source.memory else found
    write(output_for(found, shape, out), found)
    return out


def joined_choices(choices: Any, numbers: Any) -> Tensor:
    """Return choices along the first dimension of a tensor, on the device of one of the arguments."""
    sequence = choices if isinstance(choices, Tensor) else list(choices)
    if len(sequence) == 0:
        raise ValueError("choices is empty: name at least one array")
    if isinstance(sequence, Tensor):
        return sequence
    if any(isinstance(each, Tensor) for each in sequence):
        return stacked(broadcast_arrays(*tensors_of(sequence)))
    for each in sequence:
        check_no_sequence(each)
    return asarray(np.stack(np.broadcast_arrays(*sequence)), device=numbers.device)


def select(condlist: Iterable[Any], choicelist: Iterable[Any], default: Any = 0) -> Tensor:
    """Copy at each element from the first array whose condition is true, as `numpy.select`.

    One submission for the default, and one for each array.
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ValueError(
            f"condlist has {len(conditions)} conditions, choicelist {len(choices)} arrays: must be equally "
            "many, and at least one"
        )
    for each in (*conditions, *choices, default):
        check_no_sequence(each)
    held = [each if is_number(each) else as_tensor_or_array(each) for each in (*choices, default)]
    masks = [as_tensor_or_array(each) for each in conditions]
    for number, mask in enumerate(masks):
        if mask.dtype.kind != "b":
            raise TypeError(f"condlist[{number}] has dtype {mask.dtype}: must be bool")
    tensors = [each for each in held if isinstance(each, Tensor)]
    dtype = np.result_type(*(each.dtype if isinstance(each, Tensor) else each for each in held))
    if tensors:
        check_dtype("the common dtype", dtype, tensors[0].dtype)
    device = next(each for each in (*tensors, *masks) if isinstance(each, Tensor)).device
    shape = np.broadcast_shapes(*(np.shape(each) for each in (*masks, *held)))
    result = full(shape, held.pop(), dtype, device=device)
    for value, mask in zip(held[::-1], masks[::-1], strict=True):
        copy_where(result, value if isinstance(value, Tensor) else np.asarray(value, dtype), mask)
    return result


def where(condition: Any, x: Any = None, y: Any = None) -> Tensor:
    """Copy from `x` where a mask is true, else from `y`, as `numpy.where` does if it has both."""
    if x is None and y is None:
        raise ComputationRefused("a condition alone: computes indices; use np.where(condition.numpy())")
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    check_no_sequence(condition)
    mask = condition if isinstance(condition, Tensor) else np.asarray(condition, np.bool_)
    if mask.dtype.kind != "b":
        raise ComputationRefused(f"condition has dtype {mask.dtype}: comparing with 0 computes; must be bool")
    return select([mask], [x], y)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python's, which has no dtype of its own."""
    return type(value) in (int, float, complex)


def as_tensor_or_array(value: Any) -> Any:
    """Return a tensor as it is, and an array of anything else."""
    return value if isinstance(value, Tensor) else np.asarray(value)
