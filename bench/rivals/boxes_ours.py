"""wgslice's windows of different sizes, beside windows of one size, a plain copy, and slices one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.boxes import Boxes, PutBack, indices
from bench.cases import Cut
from bench.rivals.ours import BufferCopy, Clocked, Loop, describe, device

__all__ = [
    "Assigned",
    "AssignedInOne",
    "Copied",
    "Equal",
    "EqualBack",
    "Extract",
    "Insert",
    "Padded",
    "SliceLoop",
    "SlicesInOne",
    "WholeParts",
    "describe",
]


class Extract(Clocked):
    """`extract_windows` with sizes per window, into a new buffer."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        self.boxes = boxes
        self.x = wg.asarray(array, device=device)
        self.places = boxes.places(array.shape)

    def start(self) -> None:
        """Extract."""
        self.out = wg.extract_windows(self.x, *self.places)

    def result(self) -> NDArray[Any]:
        """The output of the last run, without gaps."""
        base = self.out[0].base
        assert base is not None
        packed = base.numpy()
        starts = [window.layout.offset for window in self.out]
        parts = zip(starts, self.out, strict=True)
        return np.concatenate([packed[start : start + window.size] for start, window in parts])


class SliceLoop(Loop, Extract):
    """A slice copied for each box, into the same places."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        super().__init__(array, boxes)
        self.windows = boxes.windows(array.shape)
        self.out = wg.extract_windows(self.x, *self.places)
        assert self.out[0].base is not None
        self.packed = self.out[0].base
        self.packed[...] = 0

    def start(self) -> None:
        """Copy."""
        for out, window in zip(self.out, self.windows, strict=True):
            out[...] = self.x[window]


class SlicesInOne(SliceLoop):
    """The same, captured, and replayed in one submission."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        super().__init__(array, boxes)
        starts = [out.layout.offset for out in self.out]

        def copies(x: wg.Tensor, packed: wg.Tensor) -> None:
            for start, out, window in zip(starts, self.out, self.windows, strict=True):
                packed[start : start + out.size].reshape(out.shape)[...] = x[window]

        self.program = wg.capture(copies, x=self.x, packed=self.packed)

    def start(self) -> None:
        """Replay."""
        self.program(x=self.x, packed=self.packed)


class Equal(Clocked):
    """`extract_windows` of one size, of about as many bytes."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        self.boxes = boxes
        self.x = wg.asarray(array, device=device)
        self.offsets, self.size = boxes.equal(array.shape)

    def start(self) -> None:
        """Extract."""
        self.out = wg.extract_windows(self.x, self.offsets, self.size)

    def result(self) -> NDArray[Any]:
        """Return what the task expects, if these windows are NumPy's."""
        image = self.x.numpy()
        windows = indices(self.offsets, np.broadcast_to(self.size, self.offsets.shape))
        if self.out.numpy().tobytes() != b"".join(image[window].tobytes() for window in windows):
            raise ValueError("wrong: windows of one size differ")
        return self.boxes.of(image)


class EqualBack(Equal):
    """The same of a task that puts boxes back."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        super().__init__(task.of(array), task.boxes)
        self.task = task

    def result(self) -> NDArray[Any]:
        """Return what the task expects, if these windows are NumPy's."""
        return self.task.of(super().result())


class WholeParts(EqualBack):
    """Windows of one size that are the parts of the batch, with its padding."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        super().__init__(array, task)
        self.size = 1, *task.shape[1:]


class Copied(BufferCopy):
    """A plain buffer copy of the output."""

    def __init__(self, array: NDArray[Any], task: Any) -> None:
        output = task.of(array)
        super().__init__(output, Cut(tuple(range(output.ndim)), ()))


class Insert(Clocked):
    """`insert_windows` of a list."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        self.offsets = task.boxes.places(task.shape)[0]
        self.windows = task.boxes.windows(task.shape)
        self.packed = wg.asarray(array, device=device)
        self.listed = task.split(self.packed)
        self.out = wg.zeros(task.shape, array.dtype, device=device)

    def start(self) -> None:
        """Write."""
        wg.insert_windows(self.out, self.offsets, self.listed, overlap="last")


class Assigned(Loop, Insert):
    """An assignment for each box."""

    def start(self) -> None:
        """Write."""
        for window, box in zip(self.windows, self.listed, strict=True):
            self.out[window] = box


class AssignedInOne(Insert):
    """The same, captured, and replayed in one submission."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        super().__init__(array, task)

        def assignments(packed: wg.Tensor, out: wg.Tensor) -> None:
            for window, box in zip(self.windows, task.split(packed), strict=True):
                out[window] = box

        self.program = wg.capture(assignments, packed=self.packed, out=self.out)

    def start(self) -> None:
        """Replay."""
        self.program(packed=self.packed, out=self.out)


class Padded(Insert):
    """`pad_windows` of a list, into a new buffer."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        self.listed = [box[0] for box in task.split(wg.asarray(array, device=device))]
        self.size = task.shape[1:]

    def start(self) -> None:
        """Join."""
        self.out = wg.pad_windows(self.listed, self.size)
