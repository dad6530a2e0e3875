"""Lowering of captured calls to the steps of a program: kernel calls, buffer copies and clears."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import CaptureRefused
from wgslice.gpu.device import Device, is_elsewhere
from wgslice.gpu.pipelines import KernelCall, kernel_call
from wgslice.gpu.protocols import Buffer, Place, Placeholder
from wgslice.gpu.recording import Binding, Copy, place
from wgslice.gpu.sink import ListedSubmission, ListedUpload, Listing, ReadyPlan, placeholder, with_scratch
from wgslice.layout import Layout, whole_words
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.plan import Plan
from wgslice.plans.steps import BufferCopies, Clear, Memory, TextureCopy
from wgslice.programs.lifetimes import Temporary
from wgslice.programs.parameters import Parameter, extent_of


class Step(NamedTuple):
    """A command, and places in buffers or placeholders, which it names by their indices."""

    command: KernelCall | BufferCopies | Clear
    places: Sequence[Place]

    @property
    def written(self) -> list[Buffer]:
        """The buffers that it writes."""
        command, places = self.command, self.places
        if isinstance(command, KernelCall):
            types = command.types
            return [
                places[each.memory].buffer for each in command.bindings if types[each.number] == "storage"
            ]
        return [places[command.writes].buffer]


class Lowered(NamedTuple):
    """Steps of a program, contents of its constants by their placeholders, and the plans that it lowers."""

    steps: list[Step]
    contents: dict[Buffer, NDArray[np.uint8]]
    recorded: list[ReadyPlan]


def lowered(parameters: Sequence[Parameter], returned: Collection[Buffer], listing: Listing) -> Lowered:
    """Lower a captured call, of which buffers are `returned`, to steps."""
    contents: dict[Buffer, NDArray[np.uint8]] = {}
    device, given = parameters[0].device, {parameter.buffer for parameter in parameters}
    recorded = list(replayed(device, given | {*returned}, listing, contents))
    return Lowered(lowered_plans(parameters, returned, recorded), contents, recorded)


def lowered_plans(
    parameters: Sequence[Parameter], returned: Collection[Buffer], recorded: Sequence[ReadyPlan]
) -> list[Step]:
    """Lower plans to steps; own buffers whose zeros they rely on are cleared first, as are returned ones."""
    device, given = parameters[0].device, {parameter.buffer for parameter in parameters}
    steps = [step for each in recorded for step in steps_of(device, each.plan, each.places)]
    if any(is_elsewhere(device, buffer) for step in steps for buffer, _ in step.places):
        raise ValueError("the function uses tensors of several devices: copy them with to_device first")
    written = dict.fromkeys([*(buffer for step in steps for buffer in step.written), *returned])
    cleared = [
        (buffer, buffer.used_nbytes if buffer in returned else buffer.size)
        for buffer in written
        if isinstance(buffer, Placeholder) and buffer not in given and buffer.zeroed
    ]
    return [Step(Clear(0, n, Memory.INPUT), [Place(buffer)]) for buffer, n in cleared if n] + steps


def steps_of(device: Device, plan: Plan, places: Sequence[Place]) -> Iterator[Step]:
    """Yield the steps of a plan, with placeholders for its scratch buffers."""
    zeroed = (Memory.ZEROS, Memory.WINNERS)
    places = with_scratch(
        plan, places, lambda memory, nbytes: placeholder(device, nbytes, zeroed=memory in zeroed)
    )
    for step in plan.steps:
        if isinstance(step, TextureCopy):
            raise CaptureRefused("textures are copied, which no program does: copy before or after it")
        yield Step(step if isinstance(step, Clear | BufferCopies) else kernel_call(step), places)


def lifetimes(
    steps: Sequence[Step],
    own: Iterable[Buffer],
    contents: Mapping[Buffer, NDArray[np.uint8]],
) -> dict[Buffer, Temporary]:
    """Return the memories of a program's own placeholders within a replay.

    Those with contents last from one replay to the next, and are alone, as is what a step reads before any
    has written it, which relies on zeros.
    """
    found = {each: Temporary(each.size, alone=True, content=contents.get(each)) for each in own}
    for number, step in enumerate(steps):
        for buffer in {each.buffer for each in step.places} & found.keys():
            if found[buffer].last < 0:
                found[buffer].alone = buffer in contents or buffer not in step.written
            found[buffer].extend(number)
    return found


def isolated(parameters: Sequence[Parameter], steps: Sequence[Step]) -> list[Step]:
    """Return steps that run on copies of tensors, from the first to the last byte of their elements.

    Whatever `steps` do to bytes of a parameter's buffer before or after these, they do to their own buffer. A
    parameter whose placeholder ends with the elements needs no copy: WebGPU bounds accesses to bindings.
    """
    device = parameters[0].device
    own: dict[Buffer, Buffer] = {}
    before: list[Step] = []
    after: list[Step] = []
    used = {place.buffer for step in steps for place in step.places}
    written = {buffer for step in steps for buffer in step.written}
    for parameter in parameters:
        buffer, extent = parameter.buffer, extent_of(parameter.tensor)
        if buffer not in used or extent == range(buffer.size):
            continue
        own[buffer] = placeholder(device, buffer.size)
        layout = Layout.of((len(extent),), (1,), extent.start)
        given, copied = (Binding(each, layout, 1) for each in (buffer, own[buffer]))
        before += steps_of(device, *place(device.limits, Copy(given, copied)))
        if buffer in written:
            after += steps_of(device, *place(device.limits, Copy(copied, given)))
    moved = [
        Step(command, [Place(own.get(buffer, buffer), base) for buffer, base in places])
        for command, places in steps
    ]
    return [*before, *moved, *after]


def replayed(
    device: Device, visible: set[Buffer], listing: Listing, contents: dict[Buffer, NDArray[np.uint8]]
) -> Iterator[ReadyPlan]:
    """Yield the copies of each replay; uploads that never change become `contents` of constants.

    Callers may write `visible` buffers between two replays.
    """
    changing = used = visible
    for step in listing.steps:
        if isinstance(step, ListedUpload):
            changing = changing | ({step.place.buffer} & used)
        else:
            changing = changing | {each.places[Memory.OUTPUT].buffer for each in step.recorded}
            used = used | {place.buffer for each in step.recorded for place in each.places}
    for step in listing.steps:
        if isinstance(step, ListedSubmission):
            yield from step.recorded
            continue
        (buffer, base), data = step.place, step.data
        if isinstance(buffer, Placeholder) and buffer not in changing:
            content = contents.setdefault(buffer, np.zeros(buffer.size, np.uint8))
            content[base : base + data.size] = data
            continue
        content = np.zeros(whole_words(data.size), np.uint8)
        content[: data.size] = data
        words, constant = (content.size // WORD_NBYTES,), placeholder(device, content.size)
        contents[constant] = content
        source = Binding(constant, Layout.packed(words), WORD_NBYTES)
        target = Binding(buffer, Layout.of(words, (1,), base // WORD_NBYTES), WORD_NBYTES)
        yield ReadyPlan(*place(device.limits, Copy(source, target)))
