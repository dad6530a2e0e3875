"""DirectML's objects between its device and a command list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import wgslice.directml.structs as structs
from wgslice.arguments import integer
from wgslice.directml.descriptors import (
    Bindings,
    CheckedOperator,
    array_item,
    at,
    bound,
    check_kind,
    counted,
    only,
    snapshots,
)
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import BoundLayout, record
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy

if TYPE_CHECKING:
    from wgslice.gpu.protocols import CommandEncoder

__all__ = [
    "IDMLBindingTable",
    "IDMLCommandRecorder",
    "IDMLCompiledOperator",
    "IDMLDispatchable",
    "IDMLOperator",
    "IDMLOperatorInitializer",
]


class IDMLOperator:
    """An operator that is checked, and not yet compiled."""

    def __init__(self, checked: CheckedOperator) -> None:
        self.checked = checked


class IDMLDispatchable:
    """What can be recorded: a compiled operator or an initializer."""

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """What its binding table must hold; no temporary resource is ever needed."""
        raise NotImplementedError

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        raise NotImplementedError


class IDMLCompiledOperator(IDMLDispatchable):
    """An operator planned for a device.

    Attributes
    ----------
    compiled : CompiledOperator
        wgslice's own; its `plan` says what runs.
    """

    def __init__(self, device: Device, checked: CheckedOperator) -> None:
        self.checked = checked
        self.compiled = device.compile(checked.descriptor)

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors, and a persistent resource for an input that is owned by DirectML."""
        owned = self.checked.input.nbytes if self.checked.input.owned else 0
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2, PersistentResourceSize=owned)

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        owned = self.checked.input.owned
        if owned and any(binding.Type != structs.DML_BINDING_TYPE.NONE for binding in table.inputs):
            raise ValueError(
                "input: is owned by DirectML, and bound to the initializer: bind DML_BINDING_TYPE_NONE"
            )
        with named("persistent resource" if owned else "input"):
            source = bound(table.persistent if owned else only(table.inputs), self.checked.input)
        with named("output"):
            target = bound(only(table.outputs), self.checked.output)
        self.compiled.record(encoder, input=source, output=target)


class IDMLOperatorInitializer(IDMLDispatchable):
    """Gives compiled operators the inputs that are owned by DirectML; others need no initialization."""

    def __init__(self, device: Device, operators: Sequence[IDMLCompiledOperator]) -> None:
        self.device = device
        self.operators = tuple(operators)

    def Reset(
        self, operatorCount: int, operators: IDMLCompiledOperator | Sequence[IDMLCompiledOperator]
    ) -> None:
        """Initialize other operators from now on."""
        with named("Reset"):
            self.operators = tuple(counted("operators", operatorCount, operators, IDMLCompiledOperator))

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors an operator: its inputs, and its persistent resource, which is an output here."""
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2 * len(self.operators))

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        copies = []
        for number, operator in enumerate(self.operators):
            tensor = operator.checked.input
            if tensor.owned:
                with named(f"inputs of operator {number}"):
                    source = bound(array_item(at(table.inputs, number)), tensor)
                with named(f"persistent resource of operator {number}"):
                    target = bound(at(table.outputs, number), tensor)
                copies.append((source, target, tensor.nbytes))
        for source, target, _ in copies:
            for buffer in (source[0], target[0]):
                check_usable(self.device, buffer)
                check_alive(self.device, buffer)
        for *bindings, nbytes in copies:
            read, written = (
                BoundLayout(buffer, Layout.packed((nbytes,), start), itemsize=1) for buffer, start in bindings
            )
            record(self.device, encoder, plan_copy, read, written)


class IDMLBindingTable:
    """The buffers that a dispatchable is recorded with; each binding holds until another takes its place."""

    def __init__(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        self.Reset(desc)

    def Reset(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        """Forget all bindings, and serve another dispatchable.

        Raises
        ------
        TypeError, ValueError
            It has no dispatchable, or fewer descriptors than that requires.
        """
        with named("IDMLBindingTable"):
            check_kind("desc", desc, structs.DML_BINDING_TABLE_DESC)
            check_kind("Dispatchable", desc.Dispatchable, IDMLDispatchable)
            required = desc.Dispatchable.GetBindingProperties().RequiredDescriptorCount
            if integer("SizeInDescriptors", desc.SizeInDescriptors) < required:
                raise ValueError(f"SizeInDescriptors = {desc.SizeInDescriptors}: must be at least {required}")
        self.dispatchable = desc.Dispatchable
        self.inputs: list[structs.DML_BINDING_DESC] = []
        self.outputs: list[structs.DML_BINDING_DESC] = []
        self.persistent = structs.DML_BINDING_DESC()

    def BindInputs(self, bindingCount: int, bindings: Bindings) -> None:
        """Bind the input, or for an initializer an array of them for each operator."""
        with named("BindInputs"):
            self.inputs = snapshots("bindings", bindingCount, bindings)

    def BindOutputs(self, bindingCount: int, bindings: Bindings) -> None:
        """Bind the output, or for an initializer the persistent resource of each operator."""
        with named("BindOutputs"):
            self.outputs = snapshots("bindings", bindingCount, bindings)

    def BindTemporaryResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Do nothing: no operator here needs a temporary resource."""

    def BindPersistentResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Bind what the initializer has filled."""
        with named("BindPersistentResource"):
            (self.persistent,) = snapshots("binding", 1, binding or structs.DML_BINDING_DESC())


class IDMLCommandRecorder:
    """Records dispatchables into command encoders."""

    def RecordDispatch(
        self, commandList: CommandEncoder, dispatchable: IDMLDispatchable, bindings: IDMLBindingTable
    ) -> None:
        """Record, with what is bound now.

        Parameters
        ----------
        commandList : wgpu.GPUCommandEncoder
            Of the device, with no pass open; you finish and submit it.
        dispatchable : IDMLCompiledOperator or IDMLOperatorInitializer
            What the binding table was made or reset for.
        bindings : IDMLBindingTable
            Buffers of the device with usage STORAGE. Bytes of the output that belong to no element keep their
            value, which DirectML does not promise.

        Raises
        ------
        TypeError, ValueError
            A binding is missing, too small, misaligned, destroyed, mapped, or of another device. Nothing is
            recorded then.
        DeviceLostError
            The device is gone.
        """
        with named("RecordDispatch"):
            check_kind("bindings", bindings, IDMLBindingTable)
            if bindings.dispatchable is not dispatchable:
                raise ValueError("the binding table is for another dispatchable: Reset it for this one")
            dispatchable._record(commandList, bindings)
