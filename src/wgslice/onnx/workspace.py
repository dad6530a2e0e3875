"""Tensors of a running graph: copies are listed, then share buffers and run in one submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, Place
from wgslice.gpu.recording import Recorder, check_given
from wgslice.gpu.sink import RUNNING, ListedStep, ListedUpload, Listing, ReadyPlan, Sink, using
from wgslice.layout import Layout
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.profiles import SMALL_NBYTES
from wgslice.programs.lifetimes import Temporary, assign_buffers, needed_nbytes
from wgslice.tensors.placed import fill
from wgslice.tensors.sequences import tensors_in
from wgslice.tensors.tensor import Tensor

T = TypeVar("T")
Nested: TypeAlias = "T | list[Nested[T]] | None"  # one, a sequence, or an absent optional


@dataclass(frozen=True)
class MemoryUse:
    """Device memory used by a run.

    Attributes
    ----------
    peak_nbytes : int
        Bytes of the buffers for inputs, intermediates and outputs, without constants and the caller's
        tensors.
    buffers : int
        The number of those buffers.
    tensors_nbytes, tensors : int
        Bytes and number of the tensors in them, which is the memory needed without reuse.
    submissions : int
        The number of submissions; more than one if a computed parameter had to be read back.
    """

    peak_nbytes: int
    buffers: int
    tensors_nbytes: int
    tensors: int
    submissions: int

    def __str__(self) -> str:
        return (
            f"{self.peak_nbytes:,} bytes in {self.buffers} buffers, for {self.tensors} tensors of "
            f"{self.tensors_nbytes:,} bytes; submissions: {self.submissions}"
        )


@dataclass(eq=False)
class Slot(Temporary):
    """Memory of a tensor in a submission; its buffer is assigned when that is made. Uploads are at -1."""

    label: str = ""


def as_tensor(position: int, given: Nested[Tensor]) -> Tensor:
    """A node's input; raises if it is not a tensor."""
    if not isinstance(given, Tensor):
        raise TypeError(f"input {position} is of type {type(given).__name__}: must be a tensor")
    return given


class Workspace(Listing):
    """Lists what the nodes of a graph do, then assigns buffers, and sends all on in one submission.

    Tensors with disjoint lifetimes share a buffer.
    """

    makes_zeros = False  # since buffers are reused

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.memory: MemoryUse | None = None  # of the last run
        self.owned: list[Buffer] = []  # buffers of the last run, for the next one
        self.begin()

    def begin(self, receiver: Sink = RUNNING) -> None:
        """Start a run without held tensors; the receiver gets what is submitted."""
        self.receiver = receiver
        self.label = ""  # of the node that is being listed, for errors of the submission
        self.uploads: list[ListedUpload] = []
        self.copies: list[tuple[str, ReadyPlan]] = []  # with their labels
        self.others: dict[Buffer, str] = {}  # buffers of no slot, with the label of their first use
        self.slots: dict[Buffer, Slot] = {}  # by placeholder
        self.held: Counter[Buffer] = Counter()
        self.submissions = 0

    def end(self) -> None:
        """Keep the buffers of this run for the next one, and note its memory use."""
        slots = self.slots.values()
        buffers = dict.fromkeys(slot.buffer for slot in slots if slot.buffer is not None)
        given = {slot.buffer for slot in slots if slot.alone}
        self.owned = [buffer for buffer in buffers if buffer not in given]
        self.memory = MemoryUse(
            peak_nbytes=sum(buffer.size for buffer in buffers),
            buffers=len(buffers),
            tensors_nbytes=sum(slot.nbytes for slot in slots),
            tensors=len(slots),
            submissions=self.submissions,
        )

    def create_buffer(self, device: Device, nbytes: int, *, zeroed: bool = True) -> Buffer:
        """Make a placeholder, which gets a buffer at the submission."""
        made = super().create_buffer(device, nbytes, zeroed=False)
        self.slots[made] = Slot(nbytes, label=self.label)
        if zeroed:
            words = Layout.packed((made.size // WORD_NBYTES,))
            fill(Tensor(device, made, np.dtype(np.uint32), words), np.zeros(1, np.uint32))
        return made

    def constant(self, device: Device, values: NDArray[Any], count: int = 1) -> Buffer:
        """Return the receiver's buffer, which no copy writes."""
        return self.receiver.constant(device, values, count)

    def add(self, step: ListedStep) -> None:
        """List a step, and note which memories it uses."""
        if isinstance(step, ListedUpload):
            slot = self.slots[step.place.buffer]
            assert slot.last < 0, "an upload would overtake copies"
            slot.first = -1
            self.uploads.append(step)
            return
        for bound in step.recorded:
            for buffer, _ in bound.places:
                if buffer in self.slots:
                    self.slots[buffer].extend(len(self.copies))
                else:
                    self.others.setdefault(buffer, self.label)
            self.copies.append((self.label, bound))

    def submit_all(self) -> None:
        """Assign buffers, then upload, record and submit what is listed."""
        uploads, copies, others = self.uploads, self.copies, self.others
        self.uploads, self.copies, self.others = [], [], {}
        with using(self.receiver):
            # submitting a destroyed or mapped one would abort
            check_given(self.device, ((label, buffer) for buffer, label in others.items()))
            self._assign_buffers(len(copies))
            for (buffer, base), data, _ in uploads:
                with named(self.slots[buffer].label):
                    self.receiver.upload(self.device, self.real(buffer), data, base)
            if copies:
                self._record(copies)

    def _record(self, copies: Sequence[tuple[str, ReadyPlan]]) -> None:
        """Record copies between assigned buffers, and submit them."""
        with named(copies[0][0]):
            recorder = Recorder(self.device)
        for label, (plan, places, _) in copies:
            with named(label):
                recorder.add(plan, [Place(self.real(buffer), base) for buffer, base in places])
        with named(copies[-1][0]):
            recorder.submit()
        self.submissions += 1

    def _assign_buffers(self, count: int) -> None:
        """Assign each slot without a buffer one of the last run or a new one; alone slots get new ones."""
        for placeholder, slot in self.slots.items():
            if slot.buffer is None:
                slot.first = min(slot.first, count)
                slot.last = count if self.held[placeholder] else slot.last
        assigned = [(made, slot) for made, slot in self.slots.items() if slot.buffer and not slot.alone]
        kept = {*self.owned, *(slot.buffer for _, slot in assigned if slot.buffer)}
        busy = {slot.buffer for made, slot in assigned if self.held[made] or slot.last >= 0}
        free = [buffer for buffer in kept if buffer not in busy]

        def make(slots: Sequence[Slot]) -> Buffer:
            nbytes = needed_nbytes(slots)
            most = 0 if slots[0].alone else max(2 * nbytes, SMALL_NBYTES)
            fitting = [buffer for buffer in free if nbytes <= buffer.size <= most]
            if fitting:
                found = min(fitting, key=lambda buffer: buffer.size)
                free.remove(found)
                return found
            with named(slots[0].label):
                return self.receiver.create_buffer(self.device, nbytes, zeroed=False)

        assign_buffers(self.slots.values(), make)
        for slot in self.slots.values():
            slot.last = -1  # of the next submission

    def real(self, buffer: Buffer) -> Buffer:
        """The buffer of a placeholder; any other buffer is its own."""
        slot = self.slots.get(buffer)
        return buffer if slot is None or slot.buffer is None else slot.buffer

    def tensor(self, x: Tensor) -> Tensor:
        """A submitted tensor in its buffer."""
        return Tensor(self.device, self.real(x.memory), x.dtype, x.layout)

    def read(self, x: Tensor) -> NDArray[Any]:
        """Submit what is listed, and read a tensor back."""
        self.submit_all()
        with using(self.receiver):
            return self.tensor(x).numpy()

    def hold(self, nested: Nested[Tensor]) -> None:
        """Keep the memory of tensors."""
        self.held.update(x.memory for x in tensors_in("a value", nested))

    def drop(self, nested: Nested[Tensor]) -> None:
        """Release the memory of held tensors, unless another held tensor shares it."""
        self.held.subtract(x.memory for x in tensors_in("a value", nested))

    def export(self, x: Tensor) -> Tensor:
        """A held tensor for the caller to keep: packed, in a buffer that is never reused."""
        slot = self.slots.get(x.memory)
        own = slot is not None and slot.buffer is None and not slot.alone and x.nbytes == slot.nbytes
        kept = x if own and x.is_packed else x.copy()
        self.slots[kept.memory].alone = True  # from now on the caller's
        return kept
