"""Checks for known faults of drivers: one small kernel for each, which any adapter must run as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.trials import SEED, difference
from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import READ, KernelCall, MemoryRange
from wgslice.gpu.protocols import Place, handle_of
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import download
from wgslice.packaged import packaged_text

Words = NDArray[np.uint32]

CODE = packaged_text("wgslice.doctor", "drivers.wgsl")
GROUPS, SIZE = 32, 256  # workgroups, and invocations in each
SUBMISSIONS, WRITES = 8, 16  # of `interleaved_writes`: each submission follows that many writes


class DriverCheck(NamedTuple):
    """The result of one kernel."""

    name: str
    failure: str  # the first wrong word, or the error; empty if all are right

    @property
    def passed(self) -> bool:
        """Whether the kernel wrote the same words as NumPy."""
        return not self.failure

    def __str__(self) -> str:
        return f"{self.name}: {f'WRONG; {self.failure}' if self.failure else 'correct'}"


def corners(cell: NDArray[np.intp]) -> Any:
    """Count the corners around cells that are in a cube of 3 x 3 x 3: per dimension 1, in the middle 2."""
    inner = [cell // step % 3 == 1 for step in (9, 3, 1)]
    return np.prod([1 + each for each in inner], axis=0)


INDICES = np.arange(SIZE)

# What each kernel writes, of words (GROUPS, SIZE) and the first GROUPS of them as a column.
EXPECTED: dict[str, Callable[[Words, Words], Any]] = {
    "uniform_load": lambda _, firsts: np.where(firsts % 2, 0, firsts),
    "allocation": lambda _, firsts: np.where(firsts % SIZE > INDICES, firsts + INDICES, 0),
    "reduction": lambda words, _: words.sum(axis=1, keepdims=True),
    "zeroing": lambda words, _: words[:, ::-1],
    "workgroup_atomics": lambda words, _: words.sum(axis=1, keepdims=True),
    "nested_loops": lambda *_: corners(INDICES) * 1000 + 222,
    "broadcast_halves": lambda _, firsts: (firsts % 1024 + 1024) * INDICES + (firsts >> 16) % 1024 + 1024,
    "interleaved_writes": lambda words, _: words * sum(range(1, SUBMISSIONS + 1)),
}


def check_driver(device: Device) -> Iterator[DriverCheck]:
    """Run each kernel on a device; yield what it found."""
    words = np.random.default_rng(SEED).integers(0, 2**32, (GROUPS, SIZE), np.uint32)
    firsts = words.reshape(-1)[:GROUPS, None]
    for name, expected in EXPECTED.items():
        with np.errstate(over="ignore"):
            wanted = np.broadcast_to(np.asarray(expected(words, firsts)).astype(np.uint32), words.shape)
        try:
            yield DriverCheck(name, difference(run(device, name, words), wanted, "words"))
        except device.host.refusals as error:
            yield DriverCheck(name, " ".join(str(error).split()))


def run(device: Device, name: str, words: Words) -> Words:
    """Run a kernel once, or after each of several bursts of writes, and read its results."""
    buffers = inputs, results, counters = [sink().create_buffer(device, words.nbytes) for _ in range(3)]
    bindings = tuple(MemoryRange(number, number, 0, words.nbytes) for number in range(3))
    call = KernelCall(CODE, name, (), (READ, "storage", "storage"), {}, bindings, (GROUPS, 1, 1))
    pipelines = device.pipelines
    dispatch = pipelines.bind(pipelines.bound(call), [*map(Place, buffers)])
    device.queue.write_buffer(handle_of(counters), 0, words)
    for number in range(1, 1 + (SUBMISSIONS if name == "interleaved_writes" else 1)):
        for part in np.split(np.arange(GROUPS), WRITES):
            device.queue.write_buffer(
                handle_of(inputs), int(part[0]) * SIZE * 4, words[part] * np.uint32(number)
            )
        recorder = Recorder(device)
        recorder.record([dispatch])
        recorder.submit()
    found = np.empty_like(words)
    download(device, Place(results), found.reshape(-1).view(np.uint8))
    return found
