"""The border around a box: what of a packed result lies outside of it, in parts that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

from wgslice.layout import Layout

__all__ = ["border_parts"]


def border_parts(sizes: Sequence[int], inner: Sequence[range]) -> list[tuple[Layout, Layout]]:
    """What lies before and behind the box in each dimension; corners belong to the last of theirs.

    That is how NumPy has it, where each side has a constant of its own.
    """
    whole = Layout.packed(sizes)
    found = []
    for axis, indices in enumerate(inner):
        before, behind = (
            whole.select([*map(range, sizes[:axis]), part, *inner[axis + 1 :]])
            for part in (range(indices.start), range(indices.stop, sizes[axis]))
        )
        found.append((before, behind))
    return found
