"""Each call of wgpu that an operation makes fails once, in every way, and the operation survives it.

All operations run in the deep tier; `python tests/test_injected_faults.py` runs them too, and writes the
numbers to `docs/faults.md`.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import wgpu
from fault_operations import IN_PARTS, NOT_REPEATABLE, OPERATIONS, Tensors, host
from faults import KINDS, Fault, failing
from helpers import ADAPTERS, ROOT
from waits import LONGEST_SECONDS
from wgpu._async import GPUPromise

import wgslice as wg

RAISED: dict[str, tuple[type[BaseException], ...]] = {  # RuntimeError by wgpu-py, of mappings
    "out of memory": (wg.OutOfDeviceMemory, RuntimeError),
    "refused": (wgpu.GPUError, RuntimeError, ValueError),  # the last of what a folder names
    "interrupt": (KeyboardInterrupt,),
    "device lost": (wg.DeviceLostError,),
}
NEVER = 1_000_000_000
# Public names that are no operations, by the reason.
EXCEPTIONS = """CaptureRefused ComputationRefused DeviceLostError NoAdapterError NoKernelError
    OutOfDeviceMemory WindowError"""
DESCRIPTORS = "ExtractWindows InsertWindows Slice Slice1 SliceGrad TensorDesc"
REPORTS = "Explanation Plan SelfTest Tuning"
VIEWS = "as_strided broadcast_to flip moveaxis permute reverse split squeeze unpad_windows"
WITHOUT_CALLS = "Adapter adapters dialects tile_offsets capture explain"  # of those that may fail
BY_METHODS = "BoundOperator CompiledOperator CompiledTextureCopy Device Program Tensor"
OF_OPERATIONS = "default_device selftest tune"  # Device.request; and many in one, each of them above
NO_OPERATIONS = " ".join([EXCEPTIONS, DESCRIPTORS, REPORTS, VIEWS, WITHOUT_CALLS, BY_METHODS, OF_OPERATIONS])
PAGE = ROOT / "docs" / "faults.md"
WRITTEN = "<!-- written by `python tests/test_injected_faults.py` -->"


def buffers() -> WeakSet[wgpu.GPUBuffer]:
    """Buffers that wgpu holds, of all devices, made since the tests of this file began."""
    GPUPromise._UNRESOLVED.clear()  # promises that wgpu-py made before a mapping failed
    gc.collect()
    found = (item for item in gc.get_objects() if isinstance(item, wgpu.GPUBuffer))
    return WeakSet(buffer for buffer in found if buffer._internal is not None)


def check_error(error: BaseException) -> None:
    """An error of an operation names it and a remedy."""
    if isinstance(error, KeyboardInterrupt):
        return
    text, notes = str(error), "; ".join(getattr(error, "__notes__", []))
    if isinstance(error, wg.DeviceLostError | wg.OutOfDeviceMemory):
        assert "drop tensors" in text or "request a new one" in text
        assert not text.startswith("the device ") or "stream: " in notes
    elif isinstance(error, ValueError):
        assert re.match(r"load_program: steps\[\d\]\.dispatch: pipelines\[0\] of .*: wgpu refuses it: ", text)
    else:
        assert "raised by " in notes or "stream: " in notes, text
        assert "`wgslice doctor` tests the driver" in notes, text


def written_nbytes(error: BaseException) -> int:
    """The bytes of a target that were written before an error, as its notes say."""
    notes = "; ".join(getattr(error, "__notes__", []))
    found = re.search(r"stream: (\d+) of", notes) or re.search(r"the first (\d+) of", notes)
    return int(found[1]) if found else 0


class Survival:
    """An operation on an adapter, and what it leaves without a fault."""

    def __init__(self, adapter: wg.Adapter, name: str, *, warm: bool) -> None:
        self.adapter, self.name, self.warm = adapter, name, warm
        self.expected: Any = None
        self.left: dict[bool, int] = {}  # buffers, by whether a new device was made

    def attempt(self, kind: str, number: int) -> Fault:
        """Run the operation with a fault at a call, check what it left, and run it again."""
        others = buffers()
        device = wg.Device.request(self.adapter)
        if self.warm:
            OPERATIONS[self.name](Tensors(device))()
        tensors = Tensors(device)
        call = OPERATIONS[self.name](tensors)
        before, result = tensors.contents(), None
        with failing(kind, number, device) as fault:
            try:
                result = call()
                done = True
            except RAISED[kind] as error:
                assert fault.happened
                check_error(error)
                written = written_nbytes(error)
                done = False
        is_lost = kind == "device lost"
        if number == NEVER:
            self.expected = host(result), tensors.finished()
        if fault.is_lost:
            with pytest.raises(wg.DeviceLostError):
                tensors.x.numpy()
        elif done:
            assert (host(result), tensors.finished()) == self.expected
        else:
            self.check_contents(before, tensors.contents(), written)
        if kind != "device lost" and self.name not in NOT_REPEATABLE:
            del result
            result = call()
            assert (host(result), tensors.finished()) == self.expected
        del tensors, call, result
        if is_lost:
            del device
            device = wg.Device.request(self.adapter)
        tensors = Tensors(device)
        assert (host(OPERATIONS[self.name](tensors)()), tensors.finished()) == self.expected
        del tensors
        device.synchronize()
        left = len(buffers() - others)
        most = self.left.setdefault(is_lost, left)
        end = monotonic() + LONGEST_SECONDS
        while left > most and monotonic() < end:  # threads of wgpu's that end after a moment
            sleep(0.05)
            left = len(buffers() - others)
        assert left <= most, fault.calls
        return fault

    def check_contents(self, before: list[bytes], now: list[bytes], written: int) -> None:
        """All is as before or as after, or in parts that are, of as many bytes as the error says."""
        if self.name not in IN_PARTS:
            assert now in (before, self.expected[1])
            return
        for one, old, new in zip(now, before, self.expected[1], strict=True):
            words, *known = (np.frombuffer(content, np.uint32) for content in (one, old, new))
            assert np.all((words == known[0]) | (words == known[1]))
            written -= words.itemsize * int(np.count_nonzero(words != known[0]))
        assert written == 0


def survived(adapter: wg.Adapter, name: str, kind: str, *, warm: bool) -> list[str]:
    """Let each call fail once; return the calls."""
    operation = Survival(adapter, name, warm=warm)
    calls = operation.attempt(kind, NEVER).calls
    number = 1
    while operation.attempt(kind, number).happened:
        number += 1
    return calls


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    """Collections look at new objects alone."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warm", [False, True], ids=["first", "again"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.deep] * (number > 1)) for number, name in enumerate(OPERATIONS)],
)
def test_every_fault_is_survived(device: wg.Device, name: str, kind: str, warm: bool) -> None:
    assert len(survived(device.adapter, name, kind, warm=warm)) > 0


def test_every_public_function_is_an_operation() -> None:
    named = {word for name in OPERATIONS for word in re.split("[ ,]+", name)}
    assert {*wg.__all__} - named == {*NO_OPERATIONS.split()}


def test_the_page_has_the_operations() -> None:
    text = PAGE.read_text("utf-8").partition(WRITTEN)[2]
    assert re.findall(r"^\| (?!operation|---|all)([^|]+) \|", text, re.MULTILINE) == [*OPERATIONS]


def table(adapter: wg.Adapter) -> str:
    """The calls of each operation, when it is new to the device, and the faults that it survived."""
    rows, total = [], np.zeros(2, int)
    for name in OPERATIONS:
        counts = [len(survived(adapter, name, kind, warm=False)) for kind in KINDS]
        total += counts[0], sum(counts)
        rows.append(f"| {name} | {counts[0]} | {sum(counts)} |")
        print(rows[-1], flush=True)
    return "\n".join(
        [
            f"On {adapter.driver or adapter.name} with wgpu {wgpu.__version__}, every check passes:",
            "",
            "| operation | calls of wgpu | faults |",
            "|---|---|---|",
            *rows,
            f"| all {len(rows)} | {total[0]:,} | {total[1]:,} |",
        ]
    )


if __name__ == "__main__":
    head, mark, _ = PAGE.read_text("utf-8").partition(WRITTEN)
    gc.collect()
    gc.freeze()
    PAGE.write_text(f"{head}{mark}\n\n{table(wg.Device.request(ADAPTERS[0] or None).adapter)}\n", "utf-8")
