"""Loading of saved programs, which checks all numbers of their files before a buffer is made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_RANK
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.capture import Place
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.handles import check_fits
from wgslice.gpu.native import Placeholder
from wgslice.gpu.pipelines import Binding, Content, KernelCall
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.plans.problem import rebase
from wgslice.plans.steps import BufferCopies, Clear, Memory, Places
from wgslice.programs.lowering import Step
from wgslice.programs.parameters import Parameter
from wgslice.programs.program import Program
from wgslice.programs.saving import DOCUMENT, USAGES
from wgslice.tensors.tensor import Tensor

# Keywords of the schema that errors show.
SHOWN = "type", "enum", "const", "pattern", "minimum", "maximum", "required", "minItems", "maxItems"
TYPES = {"array": list, "boolean": bool, "integer": int, "null": type(None), "object": dict, "string": str}


@cache
def schema() -> Any:
    """Return the JSON schema of `program.json`."""
    return json.loads((files("wgslice.programs") / "program.schema.json").read_text("utf-8"))


def breaks(value: Any, rule: Any) -> bool:
    """Whether a value without its items breaks a rule of the schema, which uses these keywords only."""
    kinds = rule.get("type", list(TYPES))
    if type(value) not in [TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]:
        return True
    allowed = rule.get("enum", [rule["const"]] if "const" in rule else [value])
    if not any(value == one and type(value) is type(one) for one in allowed):
        return True
    if isinstance(value, str):
        return re.search(rule.get("pattern", ""), value) is None
    if isinstance(value, list | dict):
        kind = "Items" if isinstance(value, list) else "Properties"
        size = len(value)
        if not rule.get(f"min{kind}", size) <= size <= rule.get(f"max{kind}", size):
            return True
        return any(name not in value for name in rule.get("required", ()))
    return value is not None and not rule.get("minimum", value) <= value <= rule.get("maximum", value)


def check(value: Any, rule: Any, where: str) -> None:
    """Raise ValueError where a value, or a value in it, breaks a rule of the schema."""
    if "$ref" in rule:
        rule = rule | schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if breaks(value, rule):
        wanted = {key: rule[key] for key in rule if key in SHOWN}
        raise ValueError(f"{where}: {json.dumps(value)[:80]} is not as the format demands: {wanted}")
    if isinstance(value, list):
        for position, item in enumerate(value):
            check(item, rule.get("items", {}), f"{where}[{position}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            found = rule.get("properties", {}).get(name, rule.get("additionalProperties", {}))
            if found is False:
                raise ValueError(f"{where}: {name!r} is unknown")
            check(item, found, f"{where}.{name}")


def require(holds: bool, where: str, what: str) -> None:
    """Raise ValueError unless a condition of a part of the document holds."""
    if not holds:
        raise ValueError(f"{where}: {what}")


class Loader:
    """The document of a folder, and the placeholders of its buffers."""

    def __init__(self, folder: Path, device: Device) -> None:
        self.folder, self.device = folder, device
        path = folder / DOCUMENT
        if not path.is_file():
            raise FileNotFoundError(f"{path}: is no file: name a folder that Program.save made")
        try:
            self.document = json.loads(path.read_text("utf-8"))
            check(self.document, schema(), DOCUMENT)
        except RecursionError:
            raise ValueError(f"{DOCUMENT}: is nested too deeply") from None
        self.modules = [self.read(name).decode() for name in self.document["modules"]]
        self.described = self.document["buffers"]
        self.buffers: list[Any] = []
        self.contents: dict[Buffer, NDArray[np.uint8]] = {}
        for number, each in enumerate(self.described):
            where = f"buffers[{number}]"
            size, usage = each["size"], sum(USAGES[name] for name in {*each["usage"]})
            require(size % 4 == 0 and size > 0, where, f"size {size}: must be a multiple of 4 above 0")
            most = device.largest_buffer_nbytes
            require(size <= most, where, f"size {size}: {device} allows at most {most}")
            buffer: Any = Placeholder(device.wgpu_device, size, usage)
            if "file" in each:
                data = np.frombuffer(self.read(each["file"]), np.uint8)
                require(data.size == size, where, f"{each['file']} has {data.size} bytes, and not {size}")
                self.contents[buffer] = data
            self.buffers.append(buffer)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file of the folder itself."""
        path = self.folder / name
        if path.resolve().parent != self.folder.resolve() or not path.is_file():
            raise ValueError(f"{name}: is no file of {self.folder}")
        return path.read_bytes()

    def at(self, name: str, index: int, where: str) -> Any:
        """Return the item of a list that an index refers to."""
        found = self.buffers if name == "buffers" else self.document[name]
        require(index < len(found), where, f"{name}[{index}]: there are {len(found)}")
        return found[index]

    def part(self, index: int, offset: int, size: int, use: str, where: str) -> Buffer:
        """Return a buffer, a part of which a step uses as a binding of a type or as a side of a copy."""
        buffer: Buffer = self.at("buffers", index, where)
        inside = offset % 4 == size % 4 == 0 and size > 0 and offset + size <= buffer.size
        what = f"bytes {offset} to {offset + size} of buffers[{index}]"
        require(inside, where, f"{what}: must be whole words of its {buffer.size} bytes")
        needed = use.removeprefix("read-only-")
        require(needed in self.described[index]["usage"], where, f"{what}: the buffer lacks usage {needed}")
        is_constant = self.described[index]["role"] == "constant"
        written = use in ("storage", "copy-dst")
        require(not (written and is_constant), where, f"{what}: are written, and the buffer is constant")
        return buffer

    def step(self, number: int, step: Mapping[str, Any]) -> Step:
        """Return a checked step."""
        ((kind, command),) = step.items()
        where = f"steps[{number}].{kind}"
        if kind == "dispatch":
            return self.dispatch(command, where)
        if kind == "clear":
            index, offset, size = command["buffer"], command["offset"], command["size"]
            cleared = self.part(index, offset, size, "copy-dst", where)
            return Step(Clear(offset, size, Memory.INPUT), [Place(cleared)])
        one, other, size = command["source"], command["target"], command["size"]
        require(one != other, where, f"source and target are buffers[{one}]: must be two")
        for source, target in command["offsets"]:
            self.part(one, source, size, "copy-src", where)
            self.part(other, target, size, "copy-dst", where)
        starts = np.array(command["offsets"], np.int64).reshape(-1, 2)
        copies = BufferCopies(Places(starts[:, 0]), Places(starts[:, 1]), size)
        return Step(copies, [Place(self.at("buffers", index, where)) for index in (one, other)])

    def dispatch(self, command: Mapping[str, Any], where: str) -> Step:
        """Return a checked dispatch, whose bindings name their places by binding number."""
        limits, groups = self.device.limits, tuple(command["workgroups"])
        pipeline = self.at("pipelines", command["pipeline"], where)
        self.at("modules", pipeline["module"], f"pipelines[{command['pipeline']}]")
        types, bindings = tuple(pipeline["bindings"]), command["bindings"]
        require(len(types) == len(bindings), where, f"{len(bindings)} bindings: {len(types)} are needed")
        require(max(groups) <= limits.workgroups, where, f"workgroups {groups}: at most {limits.workgroups}")
        contents, bound, places = {}, [], []
        for number, (type_, (index, offset, size)) in enumerate(zip(types, bindings, strict=True)):
            here = f"{where}.bindings[{number}]"
            buffer = self.part(index, offset, size, type_, here)
            places.append(Place(buffer))
            if type_ == "uniform":
                data = self.contents.get(buffer)
                if data is None or self.described[index]["role"] != "constant":
                    raise ValueError(f"{here}: a uniform block must be a constant with a file")
                contents[number] = Content(data[offset : offset + size].tobytes())
                continue
            alignment = limits.binding_alignment_nbytes
            aligned = offset % alignment == 0
            require(aligned, here, f"offset {offset}: {self.device} needs multiples of {alignment}")
            require(size <= limits.binding_nbytes, here, f"{size} bytes: at most {limits.binding_nbytes}")
            uses = [each for each, _, _ in bindings].count(index)
            require(type_ != "storage" or uses == 1, here, "a buffer is written, and bound twice")
            bound.append(Binding(number, number, offset, size))
        module, constants = self.modules[pipeline["module"]], tuple(pipeline["constants"].items())
        call = KernelCall(module, pipeline["entryPoint"], constants, types, contents, tuple(bound), groups)
        return Step(call, places)

    def tensor(self, each: Mapping[str, Any], where: str) -> Tensor:
        """Return a checked tensor on a placeholder."""
        buffer, dtype = self.at("buffers", each["buffer"], where), dtype_of(each["dtype"], where)
        shape, strides, start = each["shape"], each["strides"], each["offset"]
        require(
            dtype.itemsize == each["itemsize"], where, f"itemsize {each['itemsize']}: {dtype} has another"
        )
        rank = len(shape)  # of windows, one more than of their tensor
        require(rank == len(strides) <= MAX_RANK + 1, where, f"shape {shape}: strides are {strides}")
        require(start % dtype.itemsize == 0, where, f"offset {start}: must be a multiple of {dtype.itemsize}")
        layout = Layout.of(shape, strides, start // dtype.itemsize)
        with named(where):
            check_fits(buffer, layout, dtype)
        return Tensor(self.device, buffer, dtype, layout)

    def parameter(self, number: int, each: Mapping[str, Any]) -> Parameter:
        """Return a checked parameter."""
        where, limits, needed = f"inputs[{number}]", self.device.limits, each["alignment"]
        tensor = self.tensor(each, where)
        role = self.described[each["buffer"]]["role"]
        require(role == "input", where, f"buffers[{each['buffer']}] has the role {role}: must be input")
        require(needed.bit_count() == 1, where, f"alignment {needed}: must be a power of 2")
        limits = replace(limits, binding_alignment_nbytes=max(limits.binding_alignment_nbytes, needed))
        base = rebase(tensor.layout, tensor.itemsize, limits).base
        require(base == 0, where, f"offset {each['offset']}: the elements begin {base} bytes too late")
        return Parameter(self.device, each["name"], tensor, limits)

    def result(self, described: Any, outputs: list[Tensor]) -> Any:
        """Return the result of a run, of the tensors of the outputs."""
        if described is None:
            return None
        if isinstance(described, int):
            self.at("outputs", described, "result")
            return outputs[described]
        ((kind, items),) = described.items()
        if kind == "dict":
            return {name: self.result(item, outputs) for name, item in items.items()}
        return (tuple if kind == "tuple" else list)(self.result(item, outputs) for item in items)


def dtype_of(name: str, where: str) -> DType:
    """Return the dtype of a name."""
    try:
        return element_dtype(name)
    except TypeError as error:
        raise ValueError(f"{where}: dtype {name!r}: {error}; import ml_dtypes for its dtypes") from None


def load_program(folder: str | os.PathLike[str], device: AnyDevice = None) -> Program:
    """Load a program that `Program.save` or `CompiledOperator.save` wrote.

    Parameters
    ----------
    folder : path
        Folder with `program.json` and its files.
    device : Device or str, optional
        Where it runs, or part of an adapter's name; the default device otherwise.

    Returns
    -------
    Program
        Called as the saved one. It has no `plans`, since only their steps are saved.

    Raises
    ------
    FileNotFoundError
        The folder holds no `program.json`.
    ValueError
        The file does not follow its schema; an index, an offset, a size or a limit of the device is exceeded;
        a file lies outside of the folder or has another size. No buffer is made then.

    Notes
    -----
    Modules are code that the GPU runs. WebGPU implementations bound their accesses, but not their time.

    Examples
    --------
    >>> import tempfile, numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(4))
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     wg.capture(lambda x: x[::-1].copy(), x=x).save(f"{parent}/reversed")
    ...     program = wg.load_program(f"{parent}/reversed", x.device)
    >>> program(x=x).numpy()
    array([3, 2, 1, 0])
    """
    with named("load_program"):
        loader = Loader(Path(folder), checked_device(device))
        document = loader.document
        parameters = [loader.parameter(number, each) for number, each in enumerate(document["inputs"])]
        names, given = {each.name for each in parameters}, {each.buffer for each in parameters}
        require(len(names) == len(given) == len(parameters), "inputs", "two share a name or a buffer")
        for index, each in enumerate(loader.described):
            is_given = loader.buffers[index] in given
            require(is_given == (each["role"] == "input"), f"buffers[{index}]", "must be one of the inputs")
        steps = [loader.step(number, step) for number, step in enumerate(document["steps"])]
        outputs = [loader.tensor(each, f"outputs[{i}]") for i, each in enumerate(document["outputs"])]
        result = loader.result(document["result"], outputs)
        return Program(document["name"], parameters, result, steps, loader.contents)
