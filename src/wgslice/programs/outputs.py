"""Outputs of programs: buffers of what a function makes and returns, and tensors named in their place."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast
from weakref import ref

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import ReadyCommand
from wgslice.gpu.protocols import Buffer, Lease, given_out
from wgslice.layout import Layout
from wgslice.programs.parameters import Parameter, Slot, extent_of
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.sequences import tensors_in
from wgslice.tensors.tensor import Tensor

MAX_BINDINGS = 8  # given buffers whose bind groups a set of outputs keeps
MAX_FREE = 4  # sets of outputs that a program keeps while no tensor of them is left
# Sets of which tensors are left. Referenced here, a set is no part of a cycle of references that one of these
# is in: the garbage collector would release its buffers and bind groups before it is free again.
IN_USE: set[Outputs] = set()


class Result(NamedTuple):
    """A tensor that a function returns; in a given buffer, or one of a set, it has the placeholder's."""

    buffer: Buffer
    dtype: DType
    layout: Layout
    writeable: bool


class Commands(NamedTuple):
    """Commands and results of a program with buffers; both name given buffers by their placeholders."""

    listed: Sequence[ReadyCommand]
    has_copies: bool  # whether some are no dispatches
    results: Sequence[Result]


class Outputs:
    """A set of buffers for what a function makes and returns, free again when no tensor of them is left.

    No lock is taken where tensors or given buffers are dropped, which the garbage collector may do in any
    thread: single operations on lists, dicts, sets and deques are atomic.
    """

    def __init__(self, device: Device, buffers: Mapping[Buffer, Buffer], free: deque[Outputs]) -> None:
        self.device = device
        self.buffers = buffers  # by their placeholders
        self._free = ref(free)  # where it waits for another call
        self._is_retired = False  # no call writes it again
        # An item for each lease, of which the first is True: one `pop` drops a lease and tells the last.
        self._held: list[bool] = []
        self._bound: OrderedDict[Hashable, tuple[Commands, Sequence[ref[Any]]]] = OrderedDict()

    def leases(self, *, recorded: bool) -> dict[Buffer, Buffer]:
        """Return new leases of the buffers, by their placeholders; the last that is dropped frees the set.

        A set that is `recorded` into commands of a caller is not used again: these may run at any time.
        """
        if not self.buffers:
            return {}
        IN_USE.add(self)
        self._held = [True] + [False] * (len(self.buffers) - 1)
        wgpu_device, drop = self.device.wgpu_device, self._drop
        made: Any = {stand_in: Lease(wgpu_device, each, drop) for stand_in, each in self.buffers.items()}
        if recorded:
            for lease in made.values():
                given_out(lease)
        return cast("dict[Buffer, Buffer]", made)

    def _drop(self, buffer: Buffer, is_given_out: bool) -> None:
        """Free the set with its last lease, unless the user may have commands that use a buffer."""
        if is_given_out:
            given_out(buffer)
            self._is_retired = True
        if self._held.pop():
            IN_USE.discard(self)  # before another thread can use it again
            free = self._free()
            if free is not None and not self._is_retired:
                free.append(self)

    def find(self, slots: Sequence[Slot]) -> Commands | None:
        """Return what is kept for given buffers."""
        found = self._bound.get(key_of(slots))
        return found and found[0]

    def keep(self, slots: Sequence[Slot], commands: Commands) -> None:
        """Keep commands for given buffers until one of these is dropped."""
        outputs, key = ref(self), key_of(slots)

        def drop(_: object) -> None:
            kept = outputs()
            if kept is not None:
                kept._bound.pop(key, None)

        self._bound[key] = commands, [ref(buffer, drop) for _, _, buffer in slots]
        if len(self._bound) > MAX_BINDINGS:
            self._bound.popitem(last=False)


def key_of(slots: Sequence[Slot]) -> Hashable:
    """Return what given buffers are compared by, without references to them."""
    return tuple([(given, id(buffer)) for _, given, buffer in slots])


class Target(NamedTuple):
    """A tensor of a caller's, in place of one that a function makes."""

    number: int  # among the tensors of the result
    parameter: Parameter  # the one that the function makes
    tensor: Tensor

    @property
    def slot(self) -> Slot:
        """The tensor as what is given for the parameter."""
        return self.parameter.slot(self.tensor)


def named_tensors(name: str, result: Any, out: Any) -> Iterator[tuple[str, Tensor, Any]]:
    """Yield the tensors of a result, each with its name in `out` and what `out` has in its place, or None."""
    if isinstance(result, Tensor):
        yield name, result, out
    elif out is None:
        yield from ((name, x, None) for x in tensors_in(name, result))
    elif result is None:
        raise TypeError(f"{name} is of type {type(out).__name__}: must be None, as the function returns")
    else:
        keyed = isinstance(result, dict)
        keys = list(result) if keyed else list(range(len(result)))
        alike = isinstance(out, dict) and out.keys() == result.keys()
        if not alike and (keyed or not isinstance(out, list | tuple) or len(out) != len(keys)):
            what = f"a dict with the keys {keys}" if keyed else f"a list or tuple of {len(keys)}"
            raise TypeError(
                f"{name} is of type {type(out).__name__}: must be {what}, as the function returns"
            )
        for key in keys:
            yield from named_tensors(f"{name}[{key!r}]", result[key], out[key])


def targets_of(device: Device, result: Any, out: Any, made: Collection[Buffer]) -> list[Target]:
    """Return a target for each tensor of a result that `out` names."""
    targets = []
    for number, (name, x, tensor) in enumerate(named_tensors("out", result, out)):
        if tensor is None:
            continue
        if x.memory not in made:
            raise TypeError(f"{name} is given: must be None, since the function returns what it is given")
        check_tensor(name, tensor, written=True)
        targets.append(Target(number, Parameter(device, name, x, device.limits), tensor))
    return targets


def check_targets(targets: Sequence[Target], others: Sequence[tuple[str, Buffer]]) -> None:
    """Raise unless each target can be written, and shares bytes with no other and no buffer with `others`."""
    for number, (_, parameter, tensor) in enumerate(targets):
        with named(parameter.name):
            parameter.checked_layout(*parameter.slot(tensor)[1:], written=True)
            for name, buffer in others:
                if buffer is tensor.memory:
                    raise ValueError(f"shares its buffer with {name}: give another tensor, such as a copy()")
            mine = extent_of(tensor)
            for earlier in targets[:number]:
                its = extent_of(earlier.tensor) if earlier.tensor.memory is tensor.memory else range(0)
                if max(mine.start, its.start) < min(mine.stop, its.stop):
                    raise ValueError(f"shares bytes with {earlier.parameter.name}: give another tensor")


def bindable(targets: Sequence[Target]) -> bool:
    """Whether targets can be bound in place of what the function makes."""
    buffers = {each.tensor.memory for each in targets}
    misfits = (each.parameter.base_of(each.tensor.memory, each.tensor.layout)[1] for each in targets)
    return len(buffers) == len(targets) and not any(misfits)
