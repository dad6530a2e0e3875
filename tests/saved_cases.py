"""Saved programs with their inputs and NumPy's results: trials of the self-test, and drawn operations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from operations import OPERATIONS, Call

import wgslice as wg
from bench.compilers.variants import folded
from bench.gpu_programs import Captured
from wgslice.doctor.copies import copy_trials
from wgslice.doctor.indexing import index_trials
from wgslice.doctor.selftest import MAX_PIPELINES_IN_SOFTWARE, by_kernel
from wgslice.doctor.trials import Trial, with_few_pipelines
from wgslice.doctor.windows import window_trials
from wgslice.errors import CaptureRefused
from wgslice.plans.profiles import Limits
from wgslice.programs.program import Program

TRIALS_PER_PIPELINE = 8
CALLS_PER_OPERATION = 30
UNFIT = "slice1", "directml", "texture", "program"  # of a layout in a buffer, or never in a program
SIDES = "source", "target", "table"
PLANTED = "planted-data", "planted-module"


class Case(NamedTuple):
    """A program, the bytes of its inputs, and those of inputs and outputs after a run, by name or index."""

    name: str
    program: Program
    given: Mapping[str, NDArray[Any]]
    wanted: Mapping[Any, NDArray[Any]]

    def save(self, folder: Path) -> None:
        """Write the program, its inputs as `NAME.in`, and its results as `NAME.want` or `INDEX.want`."""
        self.program.save(folder / self.name)
        for name, array in self.given.items():
            (folder / self.name / f"{name}.in").write_bytes(array.tobytes())
        for which, array in self.wanted.items():
            (folder / self.name / f"{which}.want").write_bytes(array.tobytes())


def cases(device: wg.Device) -> Iterator[Case]:
    """Yield all cases, planned for any WebGPU device: the same ones at each call."""
    device.update_limits(lambda _: Limits())
    yield from trial_cases(device)
    yield from drawn_cases(device)


def trial_cases(device: wg.Device) -> Iterator[Case]:
    """Yield some trials of each pipeline that a self-test on a software adapter compiles."""
    for trials_of in (window_trials, copy_trials, index_trials):
        for kernel, trials in by_kernel(trials_of(Limits()), Limits()).items():
            seen: Counter[Any] = Counter()
            for trial in with_few_pipelines(trials, MAX_PIPELINES_IN_SOFTWARE):
                if seen[trial.constants] < TRIALS_PER_PIPELINE:
                    yield trial_case(device, f"{kernel.value}-{seen.total()}", trial)
                seen[trial.constants] += 1


def trial_case(device: wg.Device, name: str, trial: Trial) -> Case:
    """Return the program of a trial on bytes of its own."""
    generator = np.random.default_rng(trial.source_nbytes)
    sides = [
        generator.integers(0, 256, size, np.uint8) for size in (trial.source_nbytes, trial.target_nbytes)
    ]
    given = dict(zip(SIDES, [*sides, *([] if trial.table is None else [trial.table])], strict=False))
    program = Captured.of(device, trial.plan, {side: array.size for side, array in given.items()}).program(
        name
    )
    return Case(name, program, given, given | {"target": trial.expected(sides[0], sides[1].copy())})


def drawn_cases(device: wg.Device) -> Iterator[Case]:
    """Yield random calls of each operation, on packed tensors, but for those that a capture refuses."""
    for name in [each for each in OPERATIONS if each not in UNFIT]:
        for number, call in enumerate(drawn(OPERATIONS[name])):
            if found := drawn_case(device, f"{name}-call-{number}", call):
                yield found


def drawn(operation: st.SearchStrategy[Call]) -> list[Call]:
    """Draw calls of an operation: the same ones at each call."""
    calls: list[Call] = []

    @seed(1)
    @settings(
        max_examples=CALLS_PER_OPERATION,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation)
    def draw(call: Call) -> None:
        calls.append(call)

    draw()
    return calls


def drawn_case(device: wg.Device, name: str, call: Call) -> Case | None:
    """Return the captured program of a call; None if it is refused, by the capture or by both libraries."""
    before = {
        f"x{number}": np.copy(argument.array(argument.content()), order="C")
        for number, argument in enumerate(call.arguments)
    }
    after = {key: array.copy() for key, array in before.items()}
    try:
        tensors = {key: wg.asarray(array, device=device) for key, array in before.items()}
        program = wg.capture(lambda **held: call.ours(*held.values()), **tensors)
        returned = call.numpys(*after.values())
    except (CaptureRefused, IndexError, ValueError, TypeError):
        return None
    results: Any = [] if call.writes or returned is None else returned
    outputs = results if isinstance(results, list | tuple) else [results]
    return Case(name, program, before, after | dict(enumerate(map(np.asarray, outputs))))


def save_cases(folder: Path, chosen: Iterable[Case]) -> list[str]:
    """Save cases, and their names in `cases.json`; return the names."""
    names = []
    for case in chosen:
        case.save(folder)
        names.append(case.name)
    (folder / "cases.json").write_text(json.dumps(names), "utf-8")
    return names


def save_modules(folder: Path, names: Sequence[str], target: Path) -> list[Path]:
    """Write each module of saved cases with its constants, as `ENTRY_POINT-NUMBER.wgsl`, each text once."""
    texts: dict[str, str] = {}
    for name in names:
        document = json.loads((folder / name / "program.json").read_text("utf-8"))
        for each in document["pipelines"]:
            text = (folder / name / document["modules"][each["module"]]).read_text("utf-8")
            texts.setdefault(folded(text, each["constants"]), each["entryPoint"])
    target.mkdir()
    paths = [target / f"{entry_point}-{number}.wgsl" for number, entry_point in enumerate(texts.values())]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, "utf-8")
    return paths


def planted(device: wg.Device, folder: Path) -> None:
    """Save two programs with a wrong bit each: one in a constant's bytes, one in a module's text."""
    x, table = np.arange(64, dtype=np.int32), np.arange(100, 164, dtype=np.int32)
    constant = wg.asarray(table, device=device)
    parameter = wg.asarray(x, device=device)
    for name in PLANTED:
        program = wg.capture(lambda x: (x[::-1].copy(), constant[::-2].copy()), x=parameter)
        Case(name, program, {"x": x}, {"x": x, 0: x[::-1], 1: table[::-2]}).save(folder)
    document = json.loads((folder / PLANTED[0] / "program.json").read_text("utf-8"))
    (data,) = [
        each["file"] for each in document["buffers"] if each["size"] == table.nbytes and "file" in each
    ]
    flip_bit(folder / PLANTED[0] / data, 4)
    module = folder / PLANTED[1] / document["modules"][0]
    flip_bit(module, module.read_bytes().index(b"@compute"))  # which begins with A then


def flip_bit(path: Path, position: int) -> None:
    """Flip the lowest bit of a byte of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
