"""Saved programs: a JSON file that `program.schema.json` describes, and files of WGSL and bytes beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.device import TENSOR_USAGES, Device, describe_buffer
from wgslice.gpu.pipelines import WORKGROUP_SIZE, KernelCall
from wgslice.gpu.protocols import Buffer, BufferUsage, Place, Placeholder
from wgslice.gpu.transfer import download
from wgslice.plans.steps import BufferCopies
from wgslice.programs.lowering import Step
from wgslice.programs.parameters import Parameter
from wgslice.tensors.tensor import Tensor
from wgslice.whole_files import written_whole

FORMAT, VERSION = "wgslice program", 1
DOCUMENT = "program.json"
USAGES = {
    "copy-src": BufferUsage.COPY_SRC,
    "copy-dst": BufferUsage.COPY_DST,
    "uniform": BufferUsage.UNIFORM,
    "storage": BufferUsage.STORAGE,
}
MAX_ALIGNMENT_NBYTES = 256  # that a WebGPU device may need of the offset of a binding


class Saver:
    """Collects modules, pipelines and buffers of a program in the order of their first use."""

    def __init__(self, device: Device, contents: Mapping[Buffer, NDArray[np.uint8]]) -> None:
        self.device = device
        self.contents = contents
        self.files: dict[str, bytes] = {}
        self.modules: dict[str, str] = {}  # file names by their text
        self.pipelines: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.buffers: list[dict[str, Any]] = []
        self.indices: dict[Any, int] = {}  # of buffers, by buffer or by usage and bytes
        self.written: set[Buffer] = set()

    def buffer(self, buffer: Buffer) -> int:
        """Return the index of a buffer of the program; a real one is read back."""
        if buffer in self.indices:
            return self.indices[buffer]
        content = self.contents.get(buffer)
        if not isinstance(buffer, Placeholder):
            content = self.read(buffer)
        size, role = buffer.size // 4 * 4, "constant"
        if buffer in self.written:
            role = "scratch" if content is None else "own"
        index = self.indices[buffer] = self.add(role, size, TENSOR_USAGES)
        if content is not None:
            self.attach(index, content.tobytes())
        return index

    def constant(self, values: Any, type_: str) -> int:
        """Return the index of a constant buffer, shared by equal contents."""
        data = np.ascontiguousarray(values).tobytes() if isinstance(values, np.ndarray) else bytes(values)
        data += bytes(-len(data) % 4)
        usage = BufferUsage.UNIFORM if type_ == "uniform" else BufferUsage.STORAGE
        if (usage, data) not in self.indices:
            index = self.indices[usage, data] = self.add("constant", len(data), usage | BufferUsage.COPY_DST)
            self.attach(index, data)
        return self.indices[usage, data]

    def add(self, role: str, size: int, usage: int) -> int:
        """Add a buffer, and return its index."""
        usages = [name for name, bit in USAGES.items() if usage & bit]
        self.buffers.append({"role": role, "size": size, "usage": usages})
        return len(self.buffers) - 1

    def attach(self, index: int, data: bytes) -> None:
        """Set the bytes of a buffer, with zeros after them."""
        name = self.buffers[index]["file"] = f"{index}.bin"
        self.files[name] = data.ljust(self.buffers[index]["size"], bytes(1))

    def read(self, buffer: Buffer) -> NDArray[np.uint8]:
        """Read a real buffer back."""
        if not buffer.usage & BufferUsage.COPY_SRC:
            raise ValueError(
                f"{describe_buffer(buffer)}, which the function uses besides its parameters, lacks usage "
                "COPY_SRC, and cannot be read back: create it with that usage"
            )
        data = np.empty(buffer.size // 4 * 4, np.uint8)
        download(self.device, Place(buffer), data)
        return data

    def pipeline(self, call: KernelCall) -> int:
        """Return the index of a pipeline."""
        if call.module not in self.modules:
            name = self.modules[call.module] = f"{len(self.modules)}-{call.entry_point}.wgsl"
            self.files[name] = call.module.encode()
        key = call.module, call.entry_point, call.constants, call.types
        if key not in self.pipelines:
            self.pipelines[key] = {
                "module": list(self.modules).index(call.module),
                "entryPoint": call.entry_point,
                "constants": dict(call.constants),
                "bindings": list(call.types),
            }
        return list(self.pipelines).index(key)

    def step(self, step: Step) -> dict[str, Any]:
        """Return a step's description."""
        command, places = step
        if isinstance(command, KernelCall):
            bindings = {
                number: [self.constant(content.values, command.types[number]), 0, nbytes_of(content.values)]
                for number, content in command.contents.items()
            }
            for number, memory, offset_nbytes, nbytes in command.bindings:
                buffer, base = places[memory]
                bindings[number] = [self.buffer(buffer), base + offset_nbytes, nbytes]
            ordered = [bindings[number] for number in sorted(bindings)]
            pipeline, workgroups = self.pipeline(command), list(command.workgroups)
            return {"dispatch": {"pipeline": pipeline, "bindings": ordered, "workgroups": workgroups}}
        target, target_base = places[command.writes]
        if not isinstance(command, BufferCopies):
            place = {"buffer": self.buffer(target), "offset": target_base + command.offset_nbytes}
            return {"clear": {**place, "size": command.nbytes}}
        source, source_base = places[command.reads]
        return {
            "copy": {
                "source": self.buffer(source),
                "target": self.buffer(target),
                "size": command.nbytes,
                "offsets": np.add(command.offsets, [source_base, target_base]).tolist(),
            }
        }

    def tensor(self, x: Tensor) -> dict[str, Any]:
        """Return a tensor's description."""
        return {
            "buffer": self.buffer(x.memory),
            "dtype": x.dtype.name,
            "itemsize": x.itemsize,
            "shape": list(x.shape),
            "strides": list(x.strides),
            "offset": x.layout.offset * x.itemsize,
        }

    def limits(self, steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Return the limits that a device needs, by WebGPU's names."""
        dispatches = [step["dispatch"] for step in steps if "dispatch" in step]
        bound = [binding for each in dispatches for binding in each["bindings"]]
        sizes = [each["constants"].get(WORKGROUP_SIZE, 64) for each in self.pipelines.values()]
        groups = [number for each in dispatches for number in each["workgroups"]]
        alignments = [alignment(offset) for _, offset, _ in bound]
        return {
            "maxBufferSize": max(each["size"] for each in self.buffers),
            "maxStorageBufferBindingSize": max([nbytes for _, _, nbytes in bound], default=0),
            "maxComputeWorkgroupsPerDimension": max(groups, default=0),
            "maxComputeInvocationsPerWorkgroup": max(sizes, default=0),
            "minStorageBufferOffsetAlignment": min(alignments, default=MAX_ALIGNMENT_NBYTES),
        }


def alignment(offset_nbytes: int) -> int:
    """Return the largest power of 2 up to 256 that divides an offset."""
    return min(offset_nbytes & -offset_nbytes or MAX_ALIGNMENT_NBYTES, MAX_ALIGNMENT_NBYTES)


def nbytes_of(values: Any) -> int:
    """Return the bytes of a content, in whole words."""
    nbytes = values.nbytes if isinstance(values, np.ndarray) else len(values)
    return -(-nbytes // 4) * 4


def save(folder: str | os.PathLike[str], make_files: Callable[[], Mapping[str, bytes]]) -> None:
    """Write files of a program into a folder, which replaces an earlier one when it is complete."""
    target = Path(folder).absolute()
    is_empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_empty and not (target / DOCUMENT).is_file():
        raise FileExistsError(f"{target}: exists, and holds no program: name a new folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    files = make_files()
    with written_whole(target) as part:
        part.mkdir()
        for file, data in files.items():
            (part / file).write_bytes(data)


def files_of(
    name: str,
    parameters: Sequence[Parameter],
    result: tuple[Sequence[Tensor], Any],
    steps: Sequence[Step],
    contents: Mapping[Buffer, NDArray[np.uint8]],
) -> dict[str, bytes]:
    """Return the files of a program by their names, the document last."""
    saver = Saver(parameters[0].device, contents)
    saver.written = {buffer for step in steps for buffer in step.written}
    for each in parameters:
        saver.indices[each.buffer] = saver.add("input", each.buffer.size, each.buffer.usage)
    described = [saver.step(step) for step in steps]
    inputs = [
        {
            "name": each.name,
            **saver.tensor(each.tensor),
            "alignment": each.limits.binding_alignment_nbytes,
            "written": each.buffer in saver.written,
        }
        for each in parameters
    ]
    outputs = [saver.tensor(x) for x in result[0]]
    for output in outputs:
        buffer = saver.buffers[output["buffer"]]
        buffer["role"] = "own" if buffer["role"] == "scratch" else buffer["role"]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "limits": saver.limits(described),
        "modules": list(saver.modules.values()),
        "pipelines": list(saver.pipelines.values()),
        "buffers": saver.buffers,
        "steps": described,
        "inputs": inputs,
        "outputs": outputs,
        "result": result[1],
    }
    return {**saver.files, DOCUMENT: text_of(document).encode()}


def text_of(document: Mapping[str, Any]) -> str:
    """Return JSON with one item per line, so that differences are readable."""
    lines = []
    for key, value in document.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in value) + "\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
