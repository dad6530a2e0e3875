"""Public operations that are run under faults, each prepared on tensors of a device."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import dask.array
import numpy as np
import zarr
from helpers import ADAPTERS
from waits import transposing

import wgslice as wg
import wgslice.array_api as xp
import wgslice.zarr
from wgslice import directml as dml

numpy: Any = np  # whose stubs know nothing of tensors
HOST = np.arange(64, dtype=np.int32).reshape(8, 8)
LARGE = np.arange(1_100_000, dtype=np.int32)  # uploaded in two parts, and of a size that is reused
STREAMED = np.arange(1, 24 * 48 + 1, dtype=np.int32).reshape(24, 48)
SIDES = wg.TensorDesc("int32", (8, 8)), wg.TensorDesc("int32", (8, 4))
STEP = wg.Slice1(*SIDES, (0, 0), (8, 8), (1, -2))
MANY = np.random.default_rng(0).integers(0, [60, 50], (200, 2))  # offsets
WINDOWS = wg.ExtractWindows(
    SIDES[0], wg.TensorDesc("int32", (3, 3, 3)), wg.TensorDesc("int32", (3, 2)), (3, 3)
)
TEXEL = "r32sint"
FOLDER = TemporaryDirectory(prefix="wgslice-programs-")


def host(value: Any) -> Any:
    """A result in host memory, comparable by its representation of bytes."""
    if isinstance(value, wg.Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if isinstance(value, list | tuple):
        return [host(item) for item in value]
    return type(value)


class Tensors:
    """Tensors on a device: sources, and the target `y`, of which operations write parts."""

    def __init__(self, device: wg.Device) -> None:
        self.device = device
        self.x = wg.asarray(HOST, device=device)
        self.y = wg.asarray(HOST + 100, device=device)
        self.small = wg.asarray((HOST + 7).astype(np.int8), device=device)  # of sub-words
        self.picks = wg.asarray(np.array([5, 0, 3], np.int32), device=device)
        self.wide = wg.asarray(np.array([1, 7, 2]), device=device)  # of another dtype
        self.mask = wg.asarray(HOST % 3 == 0, device=device)
        self.corners = wg.asarray(np.array([[0, 0], [2, 3], [9, 1]], np.int32), device=device)
        self.made: list[wg.Tensor] = []  # others, for one operation
        self.encoder: Any = None  # a caller's, submitted when an operation has recorded into it
        device.synchronize()

    def contents(self) -> list[bytes]:
        """The bytes of all tensors."""
        fixed = self.x, self.y, self.small, self.picks, self.wide, self.mask, self.corners
        return [tensor.numpy().tobytes() for tensor in (*fixed, *self.made)]

    def finished(self) -> list[bytes]:
        """The bytes of all tensors after what was recorded has run."""
        self.submit()
        return self.contents()

    def submit(self) -> None:
        """Submit what was recorded."""
        if self.encoder is not None:
            self.device.wgpu_device.queue.submit([self.encoder.finish()])
            self.encoder = None

    def large(self) -> wg.Tensor:
        """A tensor of the size of LARGE."""
        self.made.append(wg.asarray(LARGE[::-1], device=self.device))
        return self.made[-1]

    def apart(self) -> wg.Tensor:
        """Every second column of a tensor."""
        columns = np.arange(20_000, dtype=np.int32).reshape(100, 200)
        self.made.append(wg.asarray(columns, device=self.device))
        return self.made[-1][:, ::2]

    def texture(self) -> Any:
        """A texture of 8 x 8 texels with an integer each."""
        texture = self.device.wgpu_device.create_texture(size=(8, 8), format=TEXEL, usage=1 | 2)
        wg.copy_to_texture(self.y, texture)
        return texture


Operation: TypeAlias = Callable[[Tensors], Callable[[], Any]]


def assigned(key: Any, value: Callable[[Tensors], Any]) -> Operation:
    return lambda t: partial(t.y.__setitem__, key, value(t))


def recorded(prepare: Callable[[Tensors], Callable[[Any], None]]) -> Operation:
    """An operation that records into encoders of the caller's, of which each call takes a new one."""

    def operation(t: Tensors) -> Callable[[], None]:
        record = prepare(t)
        encoders = [t.device.wgpu_device.create_command_encoder() for _ in range(2)]

        def call() -> None:
            encoder = encoders.pop()
            record(encoder)
            t.encoder = encoder

        return call

    return operation


def into_y(t: Tensors) -> dict[str, Any]:
    return {"input": t.x, "output": t.y[:4].reshape(8, 4)}


def dispatched(t: Tensors) -> Callable[[Any], None]:
    """DirectML's Slice1, recorded."""
    dml_device = dml.DMLCreateDevice(t.device.wgpu_device, dml.DML_CREATE_DEVICE_FLAG_NONE)

    def side(sizes: list[int]) -> Any:
        nbytes = dml.DMLCalcBufferTensorSize(dml.DML_TENSOR_DATA_TYPE_INT32, len(sizes), sizes, None)
        kind, flags = dml.DML_TENSOR_DATA_TYPE_INT32, dml.DML_TENSOR_FLAG_NONE
        desc = dml.DML_BUFFER_TENSOR_DESC(kind, flags, len(sizes), sizes, None, nbytes, 0)
        return dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, desc)

    window = dml.DML_SLICE1_OPERATOR_DESC(side([8, 8]), side([8, 4]), 2, [0, 0], [8, 8], [1, 2])
    operator = dml_device.CreateOperator(dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_SLICE1, window))
    recorder = dml_device.CreateCommandRecorder()

    def binding(buffer: Any, nbytes: int) -> Any:
        return dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(buffer, 0, nbytes))

    def record(encoder: Any) -> None:
        compiled = dml_device.CompileOperator(operator, dml.DML_EXECUTION_FLAG_NONE)
        count = compiled.GetBindingProperties().RequiredDescriptorCount
        table = dml_device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(compiled, None, None, count))
        table.BindInputs(1, [binding(t.x.buffer, 256)])
        table.BindOutputs(1, [binding(t.y.buffer, 128)])
        recorder.RecordDispatch(encoder, compiled, table)

    return record


def transposed(x: wg.Tensor, out: wg.Tensor) -> wg.Tensor:
    """A function to capture, of three submissions, an upload and a result."""
    out[1:] = x.T[1:].copy()
    out[0, ::2] = [1, 2, 3, 4]
    return x[::-1].copy()


def read_by_zarr(t: Tensors) -> Callable[[], Any]:
    stored = zarr.create_array({}, data=HOST, chunks=(3, 5))

    def read() -> Any:
        with wgslice.zarr.enable(t.device):
            return stored[1:, ::2]

    return read


def written_by_zarr(t: Tensors) -> Callable[[], Any]:
    stored = zarr.create_array({}, shape=(8, 8), dtype=np.int32, chunks=(3, 5))

    def write() -> Any:
        with wgslice.zarr.enable(t.device):
            stored[::2] = t.x[:, ::2].T
        return stored[:]

    return write


def in_chunks(operation: Operation) -> Operation:
    """An operation of Zarr's on tensors of a size that is not transferred at once."""

    def prepare(t: Tensors) -> Callable[[], Any]:
        call = operation(t)

        def transfer() -> Any:
            in_order = zarr.config.set({"async.concurrency": 1})  # and so by the same commands each time
            with in_order, patch.object(wgslice.zarr, "WHOLE_NBYTES", 0):
                return call()

        return transfer

    return prepare


def computed_by_dask(t: Tensors) -> Callable[[], Any]:
    chunked = dask.array.from_array(t.x, chunks=(4, 8), asarray=False)
    return lambda: chunked[::-1, ::3].compute(scheduler="synchronous")


def streamed(t: Tensors) -> Callable[[], Any]:
    return partial(wg.stream, STREAMED, np.s_[::-1, ::3], limit="32 KiB", device=t.device)


def streamed_to_a_tensor(t: Tensors) -> Callable[[], Any]:
    t.made.append(wg.zeros((24, 16), np.int32, device=t.device))
    return partial(wg.stream, STREAMED, np.s_[::-1, ::3], t.made[-1], limit="32 KiB")


@cache
def program_folder() -> Path:
    """A folder with a saved program."""
    folder = Path(FOLDER.name) / "loaded"
    x, y = (wg.asarray(HOST, device=ADAPTERS[0] or None) for _ in range(2))
    wg.capture(transposed, x=x, out=y).save(folder)
    return folder


def loaded(t: Tensors) -> Callable[[], Any]:
    program_folder()
    return lambda: wg.load_program(program_folder(), t.device)(x=t.x, out=t.y)


def saved(t: Tensors) -> Callable[[], Any]:
    """A program with a constant, which is read back."""
    program = wg.capture(lambda x: wg.copyto(x, t.y[::-1]), x=t.x)

    def save() -> Any:
        folder = Path(FOLDER.name) / "saved"
        program.save(folder)
        return [np.frombuffer(path.read_bytes(), np.uint8) for path in sorted(folder.iterdir())]

    return save


def compiled_textures(t: Tensors) -> Callable[[], Any]:
    texture = t.texture()
    into = t.device.compile(wg.ToTexture(wg.TensorDesc("int32", (8, 8)), TEXEL))
    back = t.device.compile(wg.FromTexture(TEXEL, wg.TensorDesc("int32", (8, 8))))

    def copy_both() -> Any:
        into(t.x, texture)
        return back(texture)

    return copy_both


def to_texture(t: Tensors) -> Callable[[], Any]:
    texture = t.texture()

    def write() -> Any:
        wg.copy_to_texture(t.x.T, texture)
        return wg.from_texture(texture)

    return write


def timed_copy(t: Tensors) -> wg.Tensor:
    with wg.timed(t.device):
        return t.x[::-1].copy()


OPERATIONS: dict[str, Operation] = {
    # In the default tier
    "assign to an overlap": lambda t: partial(t.y.__setitem__, np.s_[1:], t.y[:-1]),
    "numpy of a view": lambda t: t.x[::-1, ::3].numpy,
    # Devices
    "Device.request": lambda t: lambda: wg.Device.request(t.device.adapter) and None,
    "synchronize": lambda t: t.device.synchronize,
    "timed": lambda t: partial(timed_copy, t),
    # Creation
    "asarray": lambda t: partial(wg.asarray, HOST[::2, ::-1], device=t.device),
    "asarray of 4 MB": lambda t: partial(wg.asarray, LARGE, device=t.device),
    "arange": lambda t: partial(wg.arange, 7, dtype="int16", device=t.device),
    "from_dlpack": lambda t: partial(wg.from_dlpack, HOST, t.device),
    "from_buffer": lambda t: partial(wg.from_buffer, t.x.buffer, (3, 8), np.int32),
    "full": lambda t: partial(wg.full, (3, 5), 7, np.int16, device=t.device),
    "zeros": lambda t: partial(wg.zeros, 9, np.int8, device=t.device),
    "zeros of 4 MB": lambda t: partial(wg.zeros, LARGE.size, np.int32, device=t.device),
    "ones": lambda t: partial(wg.ones, (3, 5), np.int16, device=t.device),
    "empty": lambda t: lambda: wg.empty(9, device=t.device).shape,
    "array_api.eye": lambda t: partial(xp.eye, 5, k=1, dtype=xp.int32, device=t.device),
    "np.meshgrid": lambda t: partial(np.meshgrid, t.picks, t.picks),
    # Readback
    "numpy": lambda t: t.x.numpy,
    "numpy of 4 MB": lambda t: t.large()[::-1].numpy,
    "numpy_async": lambda t: lambda: t.x.T.numpy_async().sync_wait(),
    "item": lambda t: partial(t.x.item, 1, 2),
    "tolist": lambda t: t.x.T.tolist,
    "np.asarray": lambda t: partial(np.asarray, t.x.T),
    "np.from_dlpack": lambda t: partial(np.from_dlpack, t.x[2:]),
    "pickle": lambda t: partial(pickle.dumps, t.small.T),
    "to_device": lambda t: partial(t.x.T.to_device, wg.Device.request(t.device.adapter)),
    # Copies
    "copy": lambda t: t.x.copy,
    "copy of a permuted view": lambda t: t.x.T.copy,
    "copy of sub-words": lambda t: t.small[1:, ::-2].copy,
    "copy.deepcopy": lambda t: partial(copy.deepcopy, t.x[1]),
    "flatten": lambda t: t.x[:, 1:].flatten,
    "reshape": lambda t: partial(xp.reshape, t.x.T, (4, 16), copy=True),
    "copyto": lambda t: partial(wg.copyto, t.y[:, ::2], t.x[:, :4]),
    "np.copyto, where": lambda t: partial(numpy.copyto, t.y, t.x, where=t.mask),
    "flat, read": lambda t: partial(t.x.T.flat.__getitem__, np.s_[1::3]),
    "np.diagflat": lambda t: partial(np.diagflat, t.picks, 1),
    # Assignment
    "assign a scalar": assigned(np.s_[1:7:2, 1:6], lambda t: 3),
    "assign a scalar to all": assigned(np.s_[:], lambda t: 3),
    "assign a scalar to sub-words": lambda t: partial(t.small.__setitem__, np.s_[:, 1:], 3),
    "assign an array": assigned(np.s_[:], lambda t: HOST),
    "assign 4 MB": lambda t: partial(t.large().__setitem__, np.s_[:], LARGE),
    "assign an array to a view": assigned(np.s_[::-2], lambda t: HOST[:4]),
    "assign a tensor": assigned(np.s_[2:, ::2], lambda t: t.x[:6, :4]),
    "assign by a mask": lambda t: partial(t.y.__setitem__, t.mask, 5),
    "assign by indices": assigned(([1, 4, 1], slice(None, None, 2)), lambda t: t.x[:3, :4]),
    "assign by tensors of two dtypes": lambda t: partial(t.y.__setitem__, (t.picks, t.wide), t.x[0, :3]),
    "put": lambda t: partial(wg.put, t.y, t.picks, HOST[:3], axis=0),
    "put, refuse": lambda t: partial(wg.put, t.y, [5, 0, 3], t.x[:, :3], axis=1, overlap="refuse"),
    "put, disjoint": lambda t: partial(wg.put, t.y, t.picks, HOST[:3], overlap="disjoint"),
    "np.put": lambda t: partial(numpy.put, t.y, t.wide, t.x[0, :3]),
    "np.put_along_axis": lambda t: partial(numpy.put_along_axis, t.y, HOST[:, :1] % 8, t.x[:, 1:2], 1),
    "np.place": lambda t: partial(numpy.place, t.y, t.mask, t.x[0]),
    "np.putmask": lambda t: partial(numpy.putmask, t.y, t.mask, t.x[0]),
    "np.fill_diagonal": lambda t: partial(numpy.fill_diagonal, t.y, 7),
    "flat, write": lambda t: partial(t.y.T.flat.__setitem__, np.s_[1::3], [7, 8, 9]),
    "fill": lambda t: partial(t.y[1:].fill, t.x[1, 1]),
    # Indexing
    "index by tensors of two dtypes": lambda t: partial(t.x.__getitem__, (t.picks, t.wide)),
    "index by a tensor beside an array": lambda t: partial(t.x.__getitem__, (t.picks, HOST[0, :3] % 8)),
    "index by a mask": lambda t: partial(t.x.__getitem__, t.mask),
    "index by arrays": lambda t: partial(t.x.__getitem__, ([1, 4, 1], [0, 2, 0])),
    "take": lambda t: partial(wg.take, t.x, t.picks, 0),
    "array_api.take_along_axis": lambda t: partial(xp.take_along_axis, t.x, t.x[:1], axis=0),
    "np.take, out": lambda t: partial(np.take, t.x, t.picks, 0, out=t.y[:3]),
    "np.compress": lambda t: partial(np.compress, t.mask[0], t.x, 1),
    "np.extract": lambda t: partial(np.extract, t.mask, t.x),
    "np.choose, out": lambda t: partial(numpy.choose, t.picks, [t.x[0, :3], t.y[0, :3]], t.y[1, :3], "wrap"),
    # Operators
    "slice1": lambda t: partial(wg.slice1, t.x, [0, 1], [8, 6], [1, -2]),
    "slice1, out": lambda t: partial(wg.slice1, t.x, [0, 1], [8, 6], [1, -2], out=t.y[:, :3]),
    "slice": lambda t: partial(wg.slice, t.x, [1, 2], [3, 4]),
    "slice_grad": lambda t: partial(wg.slice_grad, t.x, [1, 0], [8, 8], output_sizes=[9, 12]),
    "slice_grad, out": lambda t: partial(
        wg.slice_grad, t.x[:4, :4], [1, 0], [7, 8], [2, 2], output_sizes=[8, 8], out=t.y
    ),
    "extract_windows": lambda t: partial(wg.extract_windows, t.x, [[0, 0], [3, 4]], (3, 3)),
    "extract_windows by a tensor": lambda t: partial(wg.extract_windows, t.x, t.corners, (3, 3)),
    "extract_windows of different sizes": lambda t: partial(
        wg.extract_windows, t.x, [[0, 0], [3, 4]], [[3, 3], [2, 4]]
    ),
    "insert_windows of a list": lambda t: partial(
        wg.insert_windows, t.y, [[0, 0], [4, 1]], [t.x[:2, :3], t.x[2:4, :5]]
    ),
    "pad_windows": lambda t: partial(wg.pad_windows, [t.x[:2, :3], t.x[2:5, :4]]),
    "insert_windows": lambda t: partial(
        wg.insert_windows, t.y, [[0, 0], [4, 1]], HOST[:6, :3].reshape(2, 3, 3)
    ),
    "insert_windows, the last wins": lambda t: partial(
        wg.insert_windows, t.y, [[0, 0], [1, 1]], HOST[:6, :3].reshape(2, 3, 3), overlap="last"
    ),
    "insert_windows by a tensor": lambda t: partial(
        wg.insert_windows, t.y, t.corners, t.x[:, :6].reshape(3, 4, 4), overlap="last"
    ),
    "extract_windows of a packed copy": lambda t: partial(wg.extract_windows, t.apart(), MANY, (32, 40)),
    # Compiled operators
    "compile": lambda t: lambda: t.device.compile(STEP) and None,
    "compile windows": lambda t: lambda: t.device.compile(WINDOWS) and None,
    "call of a compiled operator": lambda t: partial(t.device.compile(STEP), t.x),
    "call of compiled windows": lambda t: partial(t.device.compile(WINDOWS), t.x, offsets=t.corners),
    "record": recorded(lambda t: partial(t.device.compile(STEP).record, **into_y(t))),
    "bind": recorded(lambda t: lambda encoder: t.device.compile(STEP).bind(**into_y(t)).record(encoder)),
    "call of a program": lambda t: partial(wg.capture(transposed, x=t.x, out=t.y), x=t.x, out=t.y),
    "record of a program": recorded(
        lambda t: partial(wg.capture(transposed, x=t.x, out=t.y).record, x=t.x, out=t.y)
    ),
    "load_program": loaded,
    "save of a program": saved,
    # Joining and moving
    "concat": lambda t: partial(wg.concat, [t.x, t.y[::-1]], 1),
    "stack": lambda t: partial(wg.stack, [t.small, t.small[::-1]], 2),
    "pad": lambda t: partial(wg.pad, t.x, 2, constant_values=9),
    "pad, reflect": lambda t: partial(wg.pad, t.x, ((1, 2), (3, 0)), mode="reflect"),
    "tile": lambda t: partial(wg.tile, t.x, (2, 1)),
    "repeat": lambda t: partial(wg.repeat, t.x, 3, 0),
    "roll": lambda t: partial(wg.roll, t.x, 3, 1),
    "array_api.tril": lambda t: partial(xp.tril, t.x),
    "array_api.where": lambda t: partial(xp.where, t.mask, t.x, t.y),
    "np.concatenate, out": lambda t: partial(np.concatenate, [t.x[:4], t.x[5:, ::-1]], out=t.y[:7]),
    "pad by an element": lambda t: partial(wg.pad, t.x, 1, constant_values=t.y[0, 0]),
    "np.select": lambda t: partial(numpy.select, [t.mask, t.mask[::-1]], [t.x, t.y], 7),
    "np.insert at many indices": lambda t: partial(numpy.insert, t.x, np.arange(0, 64, 2), HOST[:4].ravel()),
    # Textures
    "copy_to_texture and from_texture": to_texture,
    "calls of ToTexture and FromTexture": compiled_textures,
    "map_texture": lambda t: partial(wg.map_texture, t.texture()),
    # Other interfaces
    "ONNX, run": lambda t: partial(transposing(t.device, (8, 8)).run, [HOST]),
    "ONNX, run_on_device": lambda t: partial(transposing(t.device, (8, 8)).run_on_device, [t.x]),
    "DirectML, CompileOperator and RecordDispatch": recorded(dispatched),
    "Zarr, read": read_by_zarr,
    "Zarr, read in chunks": in_chunks(read_by_zarr),
    "Zarr, write": written_by_zarr,
    "Dask, compute": computed_by_dask,
    "stream": streamed,
    "stream into a tensor": streamed_to_a_tensor,
}
# A call again would move elements once more.
NOT_REPEATABLE = {"assign to an overlap"}
# Done in parts: a fault may leave some, which the error says.
IN_PARTS = {"assign 4 MB", "stream into a tensor"}
