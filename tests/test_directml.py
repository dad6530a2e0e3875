"""DirectML's descriptors and its order of calls, as C++ writes them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from helpers import (
    GUARD,
    check_bytes,
    make_buffer,
    random_bytes,
    read_buffer,
)
from numpy.typing import NDArray

import wgslice as wg
from wgslice import directml as dml

IMAGE = np.arange(1, 17, dtype=np.float32)


def tensor(
    data_type: dml.DML_TENSOR_DATA_TYPE,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    flags: dml.DML_TENSOR_FLAGS = dml.DML_TENSOR_FLAG_NONE,
    alignment: int = 0,
) -> dml.DML_TENSOR_DESC:
    nbytes = dml.DMLCalcBufferTensorSize(data_type, len(sizes), sizes, strides)
    desc = dml.DML_BUFFER_TENSOR_DESC(data_type, flags, len(sizes), sizes, strides, nbytes, alignment)
    return dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, desc)


def slice1(
    input: dml.DML_TENSOR_DESC, output: dml.DML_TENSOR_DESC, *window: Sequence[int]
) -> dml.DML_OPERATOR_DESC:
    desc = dml.DML_SLICE1_OPERATOR_DESC(input, output, len(window[0]), *window)
    return dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_SLICE1, desc)


def binding(buffer: Any, offset: int, nbytes: int) -> dml.DML_BINDING_DESC:
    return dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(buffer, offset, nbytes))


def table_for(device: dml.IDMLDevice, dispatchable: dml.IDMLDispatchable) -> dml.IDMLBindingTable:
    count = dispatchable.GetBindingProperties().RequiredDescriptorCount
    return device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(dispatchable, None, None, count))


def submitted(device: wg.Device, record: Callable[[Any], None]) -> None:
    encoder = device.wgpu_device.create_command_encoder()
    record(encoder)
    device.wgpu_device.queue.submit([encoder.finish()])


@pytest.mark.parametrize(
    ("strides", "expected"), [((1, 1, 2, 2), [[2, 4], [10, 12]]), ((1, 1, -2, 2), [[14, 16], [6, 8]])]
)
def test_a_program_in_directmls_order(
    device: wg.Device, strides: Sequence[int], expected: list[list[float]]
) -> None:
    """The documentation's examples of Slice1, call by call as in C++."""
    dmlDevice = dml.DMLCreateDevice(device.wgpu_device, dml.DML_CREATE_DEVICE_FLAG_NONE)

    inputSizes, outputSizes = [1, 1, 4, 4], [1, 1, 2, 2]
    inputBufferDesc = dml.DML_BUFFER_TENSOR_DESC()
    inputBufferDesc.DataType = dml.DML_TENSOR_DATA_TYPE_FLOAT32
    inputBufferDesc.Flags = dml.DML_TENSOR_FLAG_NONE
    inputBufferDesc.DimensionCount = len(inputSizes)
    inputBufferDesc.Sizes = inputSizes
    inputBufferDesc.Strides = None
    inputBufferDesc.TotalTensorSizeInBytes = dml.DMLCalcBufferTensorSize(
        inputBufferDesc.DataType, inputBufferDesc.DimensionCount, inputSizes, None
    )
    inputBufferDesc.GuaranteedBaseOffsetAlignment = 0
    inputDesc = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, inputBufferDesc)
    outputDesc = tensor(dml.DML_TENSOR_DATA_TYPE_FLOAT32, outputSizes)

    sliceDesc = dml.DML_SLICE1_OPERATOR_DESC()
    sliceDesc.InputTensor = inputDesc
    sliceDesc.OutputTensor = outputDesc
    sliceDesc.DimensionCount = 4
    sliceDesc.InputWindowOffsets = [0, 0, 0, 1]
    sliceDesc.InputWindowSizes = [1, 1, 4, 3]
    sliceDesc.InputWindowStrides = strides

    opDesc = dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_SLICE1, sliceDesc)
    dmlOperator = dmlDevice.CreateOperator(opDesc)
    dmlCompiledOperator = dmlDevice.CompileOperator(dmlOperator, dml.DML_EXECUTION_FLAG_NONE)

    dmlOperatorInitializer = dmlDevice.CreateOperatorInitializer(1, [dmlCompiledOperator])
    initializeProperties = dmlOperatorInitializer.GetBindingProperties()
    executeProperties = dmlCompiledOperator.GetBindingProperties()
    assert (initializeProperties.TemporaryResourceSize, executeProperties.TemporaryResourceSize) == (0, 0)
    assert executeProperties.PersistentResourceSize == 0

    tableDesc = dml.DML_BINDING_TABLE_DESC()
    tableDesc.Dispatchable = dmlOperatorInitializer
    tableDesc.SizeInDescriptors = max(
        initializeProperties.RequiredDescriptorCount, executeProperties.RequiredDescriptorCount
    )
    bindingTable = dmlDevice.CreateBindingTable(tableDesc)
    bindingTable.BindInputs(0, None)
    bindingTable.BindPersistentResource(None)

    commandRecorder = dmlDevice.CreateCommandRecorder()
    commandList = dmlDevice.GetParentDevice().create_command_encoder()
    commandRecorder.RecordDispatch(commandList, dmlOperatorInitializer, bindingTable)

    tableDesc.Dispatchable = dmlCompiledOperator
    bindingTable.Reset(tableDesc)
    inputBuffer = make_buffer(device, IMAGE.view(np.uint8))
    outputBuffer = make_buffer(device, random_bytes(16 + 2 * GUARD))
    inputBinding = dml.DML_BUFFER_BINDING(inputBuffer, 0, 64)
    bindingTable.BindInputs(1, dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, inputBinding))
    bindingTable.BindTemporaryResource(dml.DML_BINDING_DESC())
    outputBinding = dml.DML_BUFFER_BINDING(outputBuffer, GUARD, 16)
    bindingTable.BindOutputs(1, [dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, outputBinding)])
    commandRecorder.RecordDispatch(commandList, dmlCompiledOperator, bindingTable)
    dmlDevice.GetParentDevice().queue.submit([commandList.finish()])

    expected_bytes = random_bytes(16 + 2 * GUARD)
    expected_bytes[GUARD:-GUARD] = np.array(expected, np.float32).reshape(-1).view(np.uint8)
    check_bytes(read_buffer(outputBuffer), expected_bytes)


TYPES = {
    1: (dml.DML_TENSOR_DATA_TYPE_UINT8, dml.DML_TENSOR_DATA_TYPE_INT8),
    2: (dml.DML_TENSOR_DATA_TYPE_FLOAT16, dml.DML_TENSOR_DATA_TYPE_INT16),
    4: (dml.DML_TENSOR_DATA_TYPE_FLOAT32, dml.DML_TENSOR_DATA_TYPE_UINT32),
    8: (dml.DML_TENSOR_DATA_TYPE_FLOAT64, dml.DML_TENSOR_DATA_TYPE_INT64),
}


def run(device: wg.Device, operator: dml.DML_OPERATOR_DESC, x: NDArray[Any], output_nbytes: int) -> Any:
    """The bytes that an operator writes into a buffer of its own."""
    device_ml = dml.DMLCreateDevice(device)
    compiled = device_ml.CompileOperator(device_ml.CreateOperator(operator))
    table = table_for(device_ml, compiled)
    target = make_buffer(device, random_bytes(output_nbytes))
    table.BindInputs(1, binding(make_buffer(device, x.reshape(-1).view(np.uint8)), 0, x.nbytes))
    table.BindOutputs(1, binding(target, 0, output_nbytes))
    recorder = device_ml.CreateCommandRecorder()
    submitted(device, lambda encoder: recorder.RecordDispatch(encoder, compiled, table))
    return read_buffer(target)


def test_slice_takes_sizes_of_the_output(device: wg.Device) -> None:
    x = np.arange(40, dtype=np.int16).reshape(4, 10)
    kind = dml.DML_TENSOR_DATA_TYPE_INT16
    desc = dml.DML_SLICE_OPERATOR_DESC(tensor(kind, [4, 10]), tensor(kind, [2, 3]), 2, [1, 2], [2, 3], [2, 3])
    operator = dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_SLICE, desc)
    check_bytes(run(device, operator, x, 12), np.ascontiguousarray(x[1::2, 2::3]).reshape(-1).view(np.uint8))


def test_slice_grad_puts_a_gradient_into_its_window(device: wg.Device) -> None:
    g = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    kind = dml.DML_TENSOR_DATA_TYPE_FLOAT32
    desc = dml.DML_SLICE_GRAD_OPERATOR_DESC(
        tensor(kind, [2, 3]), tensor(kind, [4, 10]), 2, [1, 2], [3, 6], [2, -2]
    )
    operator = dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_SLICE_GRAD, desc)
    expected = np.zeros((4, 10), np.float32)
    expected[1::2, 2:8][:, ::-2] = g
    check_bytes(run(device, operator, g, 160), expected.reshape(-1).view(np.uint8))


def test_an_input_owned_by_directml_is_given_once(device: wg.Device) -> None:
    """The initializer copies it into the persistent resource, at any offset; executions read it there."""
    kind = dml.DML_TENSOR_DATA_TYPE_FLOAT32
    weights = tensor(kind, [4, 4], flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML)
    other = slice1(tensor(kind, [4, 4]), tensor(kind, [4, 2]), [0, 0], [4, 4], [1, 2])
    device_ml = dml.DMLCreateDevice(device)
    owner, stranger = (
        device_ml.CompileOperator(device_ml.CreateOperator(desc))
        for desc in (slice1(weights, tensor(kind, [4, 2]), [0, 0], [4, 4], [-1, 2]), other)
    )
    assert owner.GetBindingProperties().PersistentResourceSize == 64
    initializer = device_ml.CreateOperatorInitializer(2, [stranger, owner])
    given_weights, persistent = (
        make_buffer(device, IMAGE.view(np.uint8)),
        make_buffer(device, random_bytes(128)),
    )
    table = table_for(device_ml, initializer)
    array = dml.DML_BUFFER_ARRAY_BINDING(1, [dml.DML_BUFFER_BINDING(given_weights, 0, 64)])
    nothing = dml.DML_BINDING_DESC()
    table.BindInputs(2, [nothing, dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER_ARRAY, array)])
    array.Bindings[0].Buffer = None  # the binding keeps its buffer
    table.BindOutputs(2, [nothing, binding(persistent, 36, 64)])
    recorder = device_ml.CreateCommandRecorder()
    submitted(device, lambda encoder: recorder.RecordDispatch(encoder, initializer, table))
    kept = random_bytes(128)
    kept[36:100] = IMAGE.view(np.uint8)
    check_bytes(read_buffer(persistent), kept)

    target = make_buffer(device, random_bytes(32))
    table.Reset(dml.DML_BINDING_TABLE_DESC(owner, None, None, 2))
    table.BindPersistentResource(binding(persistent, 36, 64))
    table.BindInputs(1, nothing)
    table.BindOutputs(1, binding(target, 0, 32))
    submitted(device, lambda encoder: recorder.RecordDispatch(encoder, owner, table))
    expected = np.ascontiguousarray(IMAGE.reshape(4, 4)[::-1, ::2]).reshape(-1).view(np.uint8)
    check_bytes(read_buffer(target), expected)

    table.BindInputs(1, binding(given_weights, 0, 64))
    with pytest.raises(ValueError, match="input: is owned by DirectML and bound to the initializer"):
        submitted(device, lambda encoder: recorder.RecordDispatch(encoder, owner, table))
    table.BindInputs(1, nothing)
    table.BindPersistentResource(None)
    with pytest.raises(ValueError, match=r"RecordDispatch: persistent resource: Type = <.*NONE.*>: must be"):
        submitted(device, lambda encoder: recorder.RecordDispatch(encoder, owner, table))
    initializer.Reset(1, owner)
    with pytest.raises(ValueError, match="another dispatchable: Reset it"):
        submitted(device, lambda encoder: recorder.RecordDispatch(encoder, initializer, table))
    table.Reset(dml.DML_BINDING_TABLE_DESC(initializer, None, None, 2))
    with pytest.raises(
        ValueError, match=r"inputs of operator 0: Type = .*: must be DML_BINDING_TYPE_BUFFER_ARRAY"
    ):
        submitted(device, lambda encoder: recorder.RecordDispatch(encoder, initializer, table))


def test_bindings_are_read_when_they_are_bound(device: wg.Device) -> None:
    """C++ uses one structure for one binding after the other."""
    device_ml = dml.DMLCreateDevice(device)
    kind = dml.DML_TENSOR_DATA_TYPE_FLOAT32
    operator = slice1(tensor(kind, [4, 4]), tensor(kind, [2, 4]), [0, 0], [4, 4], [-2, 1])
    compiled = device_ml.CompileOperator(device_ml.CreateOperator(operator))
    source, target = make_buffer(device, IMAGE.view(np.uint8)), make_buffer(device, random_bytes(32))
    part = dml.DML_BUFFER_BINDING(source, 0, 64)
    reused = dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, part)
    table = table_for(device_ml, compiled)
    table.BindInputs(1, reused)
    part.Buffer, part.SizeInBytes = target, 32
    table.BindOutputs(1, [reused])
    part.Buffer = None
    recorder = device_ml.CreateCommandRecorder()
    submitted(device, lambda encoder: recorder.RecordDispatch(encoder, compiled, table))
    expected = np.ascontiguousarray(IMAGE.reshape(4, 4)[::-2]).reshape(-1).view(np.uint8)
    check_bytes(read_buffer(target), expected)


def test_a_refused_initializer_records_nothing(device: wg.Device) -> None:
    device_ml = dml.DMLCreateDevice(device)
    kind = dml.DML_TENSOR_DATA_TYPE_FLOAT32
    weights = tensor(kind, [4, 4], flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML)
    operator = device_ml.CreateOperator(slice1(weights, tensor(kind, [4, 2]), [0, 0], [4, 4], [1, 2]))
    compiled = device_ml.CompileOperator(operator)
    initializer = device_ml.CreateOperatorInitializer(2, [compiled, compiled])
    alive, gone = (make_buffer(device, IMAGE.view(np.uint8)) for _ in range(2))
    persistent = [make_buffer(device, random_bytes(64)) for _ in range(2)]
    gone.destroy()
    table = table_for(device_ml, initializer)
    arrays = [dml.DML_BUFFER_ARRAY_BINDING(1, [dml.DML_BUFFER_BINDING(x, 0, 64)]) for x in (alive, gone)]
    table.BindInputs(2, [dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER_ARRAY, array) for array in arrays])
    table.BindOutputs(2, [binding(buffer, 0, 64) for buffer in persistent])
    encoder = device.wgpu_device.create_command_encoder()
    with pytest.raises(ValueError, match="the buffer has been destroyed"):
        device_ml.CreateCommandRecorder().RecordDispatch(encoder, initializer, table)
    with pytest.raises(TypeError, match="RecordDispatch: encoder is of type NoneType"):
        device_ml.CreateCommandRecorder().RecordDispatch(cast("Any", None), initializer, table)
    device.wgpu_device.queue.submit([encoder.finish()])
    check_bytes(read_buffer(persistent[0]), random_bytes(64))


def test_pydirectmls_slice(device: wg.Device) -> None:
    x = wg.asarray(np.arange(10), device=device)
    y = dml.slice(input=x, input_window_offsets=[2], input_window_sizes=[6], input_window_strides=[-2])
    assert y.numpy().tolist() == [7, 5, 3]
    with pytest.raises(wg.WindowError, match=r"offsets\[0\] \+ sizes\[0\] = 2 \+ 9 = 11"):
        dml.slice(x, [2], [9], [1])


def test_enumerators_have_directmls_values() -> None:
    """As DirectML.h 1.15 numbers them."""
    values = {
        "DML_TENSOR_DATA_TYPE_": "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 "
        "FLOAT64 UINT64 INT64",
        "DML_TENSOR_TYPE_": "INVALID BUFFER",
        "DML_TENSOR_FLAG_": "NONE OWNED_BY_DML",
        "DML_BINDING_TYPE_": "NONE BUFFER BUFFER_ARRAY",
        "DML_CREATE_DEVICE_FLAG_": "NONE DEBUG",
    }
    for prefix, names in values.items():
        assert [getattr(dml, prefix + name) for name in names.split()] == list(range(len(names.split())))
    assert (dml.DML_OPERATOR_SLICE, dml.DML_OPERATOR_SLICE1, dml.DML_OPERATOR_SLICE_GRAD) == (60, 111, 135)
    assert dml.DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION == 1
    assert dml.DML_EXECUTION_FLAG_DISABLE_META_COMMANDS == 2
    assert dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE == 4


@pytest.mark.parametrize(
    ("arguments", "nbytes"),
    [
        ((dml.DML_TENSOR_DATA_TYPE_FLOAT32, 4, [1, 1, 4, 4]), 64),
        ((dml.DML_TENSOR_DATA_TYPE_UINT8, 2, [3, 3]), 12),
        ((dml.DML_TENSOR_DATA_TYPE_FLOAT16, 2, [2, 3], [8, 1]), 24),
        ((dml.DML_TENSOR_DATA_TYPE_INT64, 2, [2, 3], [0, 0]), 8),
    ],
)
def test_the_size_of_a_tensor(arguments: tuple[Any, ...], nbytes: int) -> None:
    assert dml.DMLCalcBufferTensorSize(*arguments) == nbytes


FLOAT = dml.DML_TENSOR_DATA_TYPE_FLOAT32


def described(change: Callable[[Any, Any], None]) -> dml.DML_OPERATOR_DESC:
    """A good Slice1 after `change(operator, input buffer)`."""
    input = tensor(FLOAT, [4, 4])
    operator = slice1(input, tensor(FLOAT, [2, 4]), [0, 0], [4, 4], [2, 1])
    change(operator, input.Desc)
    return operator


PLACES: dict[str, Callable[[Any, Any], Any]] = {  # of an operator and its input's buffer
    "operator": lambda operator, _: operator,
    "slice": lambda operator, _: operator.Desc,
    "tensor": lambda operator, _: operator.Desc.InputTensor,
    "output": lambda operator, _: operator.Desc.OutputTensor.Desc,
    "buffer": lambda _, buffer: buffer,
}


@pytest.mark.parametrize(
    ("place", "name", "value", "kind", "words"),
    [
        ("operator", "Type", 17, ValueError, "Type = 17: must be one of DML_OPERATOR_SLICE, DML_OPERATOR_SL"),
        ("operator", "Type", 60, TypeError, "DML_SLICE1_OPERATOR_DESC: must be DML_SLICE_OPERATOR_DESC"),
        ("operator", "Desc", None, TypeError, "Desc is of type NoneType: must be DML_SLICE1_OPERATOR_DESC"),
        ("slice", "DimensionCount", 3, ValueError, "InputWindowOffsets has 2 entries: must have Dim.* 3"),
        ("slice", "InputWindowStrides", None, TypeError, "InputWindowStrides = None: must be a sequence"),
        ("slice", "InputWindowStrides", [2, 0], wg.WindowError, r"Slice1: strides\[1\] = 0: must not be 0"),
        ("slice", "InputWindowSizes", [4, 5], wg.WindowError, r"offsets\[1\] \+ sizes\[1\] = 0 \+ 5 = 5"),
        (
            "slice",
            "InputTensor",
            None,
            TypeError,
            "InputTensor: tensor is of type NoneType: must be DML_TENSOR_DESC",
        ),
        ("tensor", "Type", 0, ValueError, "InputTensor: Type = 0: must be DML_TENSOR_TYPE_BUFFER"),
        ("tensor", "Desc", None, TypeError, "InputTensor: Desc is of type NoneType"),
        ("buffer", "DimensionCount", 3, ValueError, "DimensionCount = 3: must be the operator's 2"),
        ("buffer", "DataType", 0, ValueError, "DataType = 0: must be .* one of FLOAT32, FLOAT16"),
        ("buffer", "DataType", 12, ValueError, "DataType = 12: must be"),
        ("buffer", "DataType", 6, TypeError, "output has dtype float32, the input int32"),
        ("buffer", "Sizes", [4], ValueError, "Sizes has 1 entries: must have DimensionCount, 2"),
        ("buffer", "Sizes", [4, 0], ValueError, r"TensorDesc: sizes\[1\] = 0: must be an integer from 1 to"),
        ("buffer", "Strides", [4], ValueError, "Strides has 1 entries"),
        ("buffer", "Flags", 2, ValueError, "2"),
        ("output", "Flags", 1, ValueError, "OutputTensor: Flags = DML_TENSOR_FLAG_OWNED_BY_DML: must be"),
        ("output", "Strides", [1, 1], ValueError, "two elements share bytes"),
        (
            "buffer",
            "TotalTensorSizeInBytes",
            60,
            ValueError,
            "= 60: must be a multiple of 4, and at least 64",
        ),
        ("buffer", "TotalTensorSizeInBytes", 66, ValueError, "= 66: must be a multiple of 4"),
        ("buffer", "GuaranteedBaseOffsetAlignment", 24, ValueError, "= 24: must be 0 or a power of two"),
    ],
)
def test_descriptors_that_break_a_rule_are_refused(
    device: wg.Device, place: str, name: str, value: Any, kind: type[Exception], words: str
) -> None:
    operator = described(lambda operator, buffer: setattr(PLACES[place](operator, buffer), name, value))
    with pytest.raises(kind, match=f"^CreateOperator: .*{words}"):
        dml.DMLCreateDevice(device).CreateOperator(operator)


def test_bindings_that_break_a_promise_are_refused(device: wg.Device) -> None:
    """At both sides of each boundary; a refused one records nothing."""
    device_ml = dml.DMLCreateDevice(device)
    input = tensor(FLOAT, [4, 4], alignment=64)
    assert input.Desc is not None
    input.Desc.TotalTensorSizeInBytes = 96
    operator = slice1(input, tensor(FLOAT, [2, 4]), [0, 0], [4, 4], [2, 1])
    compiled = device_ml.CompileOperator(device_ml.CreateOperator(operator))
    recorder = device_ml.CreateCommandRecorder()
    source = make_buffer(device, random_bytes(160))
    poison = random_bytes(32, seed=9)
    for offset, nbytes, words in (
        (64, 96, None),
        (0, 160, None),
        (32, 96, r"input: Offset = 32: must be at least 0 and a multiple of 64"),
        (-64, 96, r"input: Offset = -64: must be at least 0"),
        (64, 92, r"input: SizeInBytes = 92: must be at least TotalTensorSizeInBytes, 96"),
        (64, 100, r"input: Offset \+ SizeInBytes = 164: must be at most the buffer's size, 160"),
    ):
        target = make_buffer(device, poison)
        table = table_for(device_ml, compiled)
        table.BindInputs(1, binding(source, offset, nbytes))
        table.BindOutputs(1, binding(target, 0, 32))
        if words is None:
            submitted(device, partial(recorder.RecordDispatch, dispatchable=compiled, bindings=table))
            taken = read_buffer(source)[offset : offset + 64].reshape(4, 16)[::2].reshape(-1)
            check_bytes(read_buffer(target), taken)
            continue
        encoder = device.wgpu_device.create_command_encoder()
        with pytest.raises(ValueError, match=f"^RecordDispatch: {words}"):
            recorder.RecordDispatch(encoder, compiled, table)
        device.wgpu_device.queue.submit([encoder.finish()])
        check_bytes(read_buffer(target), poison)


def test_counts_and_objects_are_checked(device: wg.Device) -> None:
    device_ml = dml.DMLCreateDevice(device)
    operator = device_ml.CreateOperator(described(lambda *_: None))
    with pytest.raises(
        ValueError, match="flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE: RecordDispatch reads"
    ):
        device_ml.CompileOperator(operator, dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)
    compiled = device_ml.CompileOperator(operator, dml.DML_EXECUTION_FLAG_DISABLE_META_COMMANDS)
    recorder = device_ml.CreateCommandRecorder()
    untyped, untyped_recorder = cast("Any", device_ml), cast("Any", recorder)
    assert compiled.compiled.plan.summary
    with pytest.raises(ValueError, match="CreateOperatorInitializer: 1 operators: the count says 2"):
        device_ml.CreateOperatorInitializer(2, [compiled])
    with pytest.raises(
        TypeError, match=r"operators\[0\] is of type IDMLOperator: must be IDMLCompiledOperator"
    ):
        untyped.CreateOperatorInitializer(1, [operator])
    with pytest.raises(ValueError, match="SizeInDescriptors = 1: must be at least 2"):
        device_ml.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(compiled, None, None, 1))
    with pytest.raises(TypeError, match="Dispatchable is of type NoneType: must be IDMLDispatchable"):
        device_ml.CreateBindingTable(dml.DML_BINDING_TABLE_DESC())
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: untyped.CompileOperator(described(lambda *_: None)), "op is of type DML_OPERATOR_DESC"),
        (lambda: untyped.CreateBindingTable(None), "desc is of type NoneType"),
        (lambda: untyped_recorder.RecordDispatch(None, compiled, None), "bindings is of type NoneType"),
    ]
    for refused, words in refusals:
        with pytest.raises(TypeError, match=words):
            refused()
    table = table_for(device_ml, compiled)
    untyped_table, untyped_desc = cast("Any", table), cast("Any", dml.DML_BUFFER_TENSOR_DESC())
    with pytest.raises(ValueError, match="BindInputs: 0 bindings: the count says 1"):
        table.BindInputs(1, None)
    with pytest.raises(
        TypeError, match=r"bindings\[0\] is of type DML_BUFFER_BINDING: must be DML_BINDING_DESC"
    ):
        untyped_table.BindInputs(1, dml.DML_BUFFER_BINDING())
    with pytest.raises(AttributeError):
        untyped_desc.Size = [4]
    source = make_buffer(device, random_bytes(64))
    table.BindInputs(2, [binding(source, 0, 64)] * 2)
    recorder = device_ml.CreateCommandRecorder()
    for words in (
        "input: 2 are bound: must be 1",
        "output: Type = .*NONE",
        "input: Buffer is of type NoneType",
    ):
        encoder = device.wgpu_device.create_command_encoder()
        with pytest.raises((ValueError, TypeError), match=f"RecordDispatch: {words}"):
            recorder.RecordDispatch(encoder, compiled, table)
        table.BindInputs(1, binding(None if words.startswith("output") else source, 0, 64))
    with pytest.raises(TypeError, match=r"Device.wrap: wgpu_device is of type str: must be a wgpu.GPUDevice"):
        dml.DMLCreateDevice(cast("Any", "GPU 0"))
