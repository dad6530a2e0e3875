"""The window of DirectML's Slice1 and its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wgslice.arguments import I32_MAX, I32_MIN, MAX_RANK, U32_MAX, Integers, check_within, integers
from wgslice.errors import WindowError


@dataclass(frozen=True)
class Window:
    """A box of elements with a signed step in each dimension; a negative one starts at the end of the box."""

    offsets: tuple[int, ...]  # first element of the box, u32
    sizes: tuple[int, ...]  # extent of the box in elements, u32, at least 1
    strides: tuple[int, ...]  # step within the box in elements, i32, not 0

    @classmethod
    def of(cls, offsets: Integers, sizes: Integers, strides: Integers | None = None) -> Window:
        """Make a window, with strides of 1 by default; raise if it is valid for no tensor."""
        starts, extents, steps = numbers(offsets, sizes, strides)
        check_within("offsets", starts, 0, U32_MAX, WindowError)
        check_within("sizes", extents, 1, U32_MAX, WindowError)
        check_within("strides", steps, I32_MIN, I32_MAX, WindowError)
        if 0 in steps:
            raise WindowError(f"strides[{steps.index(0)}] = 0: must not be 0")
        return cls(starts, extents, steps)

    @classmethod
    def spanning(
        cls, offsets: Integers, sizes: Integers, strides: Integers | None, input_sizes: Sequence[int]
    ) -> Window:
        """The window of DirectML's Slice, whose sizes count elements; raise if it is outside of the input."""
        starts, counts, steps = numbers(offsets, sizes, strides)
        check_rank_of_tensor(len(starts), input_sizes, "input")
        check_within("offsets", starts, 0, U32_MAX, WindowError)
        check_within("sizes", counts, 1, U32_MAX, WindowError)
        check_within("strides", steps, 1, U32_MAX, WindowError)
        window = zip(starts, counts, steps, input_sizes, strict=True)
        for axis, (offset, count, step, extent) in enumerate(window):
            last = offset + (count - 1) * step
            if last >= extent:
                raise WindowError(
                    f"offsets[{axis}] + (sizes[{axis}] - 1) * strides[{axis}] = {offset} + {count - 1} * "
                    f"{step} = {last}: must be less than the input's size {extent} in dimension {axis}"
                )
        extents = ((count - 1) * step + 1 for count, step in zip(counts, steps, strict=True))
        return cls(starts, tuple(extents), steps)

    @property
    def max_output_sizes(self) -> tuple[int, ...]:
        """The maximum output sizes: `1 + (size - 1) // abs(stride)` elements per dimension."""
        return tuple(
            1 + (size - 1) // abs(stride) for size, stride in zip(self.sizes, self.strides, strict=True)
        )

    def check_inside(self, tensor_sizes: Sequence[int], tensor: str = "input") -> None:
        """Raise if the window extends outside of a tensor of these sizes; `tensor` names it in errors."""
        check_rank_of_tensor(len(self.offsets), tensor_sizes, tensor)
        box = zip(self.offsets, self.sizes, tensor_sizes, strict=True)
        for axis, (offset, size, extent) in enumerate(box):
            if offset + size > extent:
                raise WindowError(
                    f"offsets[{axis}] + sizes[{axis}] = {offset} + {size} = {offset + size}: "
                    f"must be at most the {tensor}'s size {extent} in dimension {axis}"
                )

    def check_filled(self, sizes: Sequence[int], tensor: str = "output") -> None:
        """Raise if a tensor of these sizes cannot hold the window's elements; `tensor` names it in errors."""
        max_sizes = self.max_output_sizes
        if len(sizes) != len(max_sizes):
            raise WindowError(
                f"{tensor} sizes {tuple(sizes)} have rank {len(sizes)}: "
                f"must have the window's rank, {len(max_sizes)}"
            )
        for axis, (size, most) in enumerate(zip(sizes, max_sizes, strict=True)):
            if not 1 <= size <= most:
                raise WindowError(
                    f"{tensor} sizes[{axis}] = {size}: must be 1 to {most}, as sizes[{axis}] = "
                    f"{self.sizes[axis]} and strides[{axis}] = {self.strides[axis]}"
                )

    def ranges(self, output_sizes: Sequence[int]) -> tuple[range, ...]:
        """The input indices that each dimension of the output reads, in the output's order."""
        box = zip(self.offsets, self.sizes, self.strides, strict=True)
        starts = [offset if stride > 0 else offset + size - 1 for offset, size, stride in box]
        counted = zip(starts, self.strides, output_sizes, strict=True)
        return tuple(range(start, start + count * stride, stride) for start, stride, count in counted)


def check_rank_of_tensor(rank: int, sizes: Sequence[int], tensor: str) -> None:
    """Raise if a tensor does not have the window's rank."""
    if len(sizes) != rank:
        raise WindowError(
            f"a window of rank {rank} on an {tensor} of rank {len(sizes)}, sizes {tuple(sizes)}: the ranks "
            "must be equal"
        )


def numbers(
    offsets: Integers, sizes: Integers, strides: Integers | None
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A window's lists as integers, strides 1 by default; raise if the rank is not valid for Slice1."""
    starts, extents = integers("offsets", offsets), integers("sizes", sizes)
    steps = (1,) * len(starts) if strides is None else integers("strides", strides)
    if not len(starts) == len(extents) == len(steps):
        and_strides = "" if strides is None else f" and {len(steps)} strides"
        raise WindowError(
            f"{len(starts)} offsets, {len(extents)} sizes{and_strides}: "
            "there must be one of each for every dimension"
        )
    if not 1 <= len(starts) <= MAX_RANK:
        raise WindowError(f"a window of rank {len(starts)}: the rank must be 1 to {MAX_RANK}")
    return starts, extents, steps
