"""What would run, without running or compiling it."""

from __future__ import annotations

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.shared_devices import checked_device
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.operators.compiled import CompiledOperator
from wgslice.operators.descriptor import Descriptor
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan
from wgslice.plans.problem import Terms, seat
from wgslice.plans.staging import planned
from wgslice.tensors.tensor import Tensor

__all__ = ["explain"]


def explain(what: Tensor | Descriptor, device: Device | str | None = None) -> Plan:
    """Tell what would run, why, and what in the layout keeps it from a faster way.

    Parameters
    ----------
    what : Tensor, Slice1, Slice, SliceGrad or ExtractWindows
        A view, of which `copy()` is explained: what `numpy()` runs as well, unless the view is packed and
        read as it lies. Or a descriptor, on bindings as `CompiledOperator.plan` has them; a write into a
        window is one with strides of its output.
    device : Device or str, optional
        Where a descriptor would be compiled; the default device if there is none given. A tensor has its own.

    Returns
    -------
    Plan
        To print; `summary` is its line, `steps` what runs, `rejected` why others are not applicable.
        Nothing is compiled, submitted or allocated on the GPU, so that what only a run finds, such as a
        destroyed buffer or a lack of memory, is not found.

    Raises
    ------
    TypeError
        `what` is neither a tensor nor a descriptor, or `device` is no device.
    ValueError
        `device` is not that of the tensor; the view has more than 2^32 - 1 elements; or the descriptor asks
        for what `Device.compile` refuses.
    NoAdapterError
        A default device is needed, and this machine has none.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.zeros((1000, 1024), np.uint8))
    >>> wg.explain(x[1:, ::-1]).summary
    'merged (999, 1024) x 1 bytes, shifted_rows'
    >>> wg.explain(x[0, ::3]).rejected
    ('buffer copy per row: elements of a row lie 3 bytes apart in the input',)
    >>> wg.explain(x[1:]).rejected
    ()
    """
    with named("explain"):
        chosen = None if device is None else checked_device(device)
    if isinstance(what, Tensor):
        if chosen not in (None, what.device):
            raise ValueError(f"explain: the tensor is on {what.device}, not on {chosen}: leave device out")
        with named("explain"):
            return plan_of_copy(what)
    if not isinstance(what, Descriptor):
        given = f"the class {what.__name__}" if isinstance(what, type) else type(what).__name__
        has_plan = "; print its plan" * isinstance(what, CompiledOperator)
        raise TypeError(f"explain takes a tensor or a descriptor such as Slice1(...), not {given}{has_plan}")
    operator = what.planned(chosen or checked_device(None))
    with named(operator.name):
        return operator.plan(operator.aligned, operator.device.limits)


def plan_of_copy(x: Tensor) -> Plan:
    """What `copy()` of a tensor runs."""
    limits, itemsize = x.device.limits, x.dtype.itemsize
    read = seat(x.layout, itemsize, x.buffer.size, limits)
    readable = bool(x.buffer.usage & BufferUsage.COPY_SRC)
    terms = Terms(limits, copy_from=readable, source_room_nbytes=read.room_nbytes)
    return planned(plan_copy, read.layout, Layout.packed(x.shape), itemsize, terms)
