"""Loading of saved programs, which checks all numbers of their files before a buffer is made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_RANK
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named, public
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.pipelines import Content, KernelCall, MemoryRange
from wgslice.gpu.protocols import Buffer, Place, Placeholder
from wgslice.gpu.recording import check_fits
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.packaged import packaged_text
from wgslice.plans.problem import rebase
from wgslice.plans.steps import BufferCopies, Clear, Memory, Places
from wgslice.programs.lowering import Step
from wgslice.programs.parameters import Parameter, extent_of
from wgslice.programs.program import Program
from wgslice.programs.saving import DOCUMENT, USAGES
from wgslice.shaders import kernels_by_module
from wgslice.tensors.tensor import Tensor
from wgslice.version import VERSION

MAX_DOCUMENT_NBYTES, MAX_MODULE_NBYTES = 2**28, 2**18
# naga (29.0.1) overflows a stack of 8 MiB at 1,000 to 3,000 nested brackets, 3,000 to 10,000 times `else` and
# 10,000 to 100,000 operators; some threads have an eighth of that. This package's kernels have 33, 4 and 300.
MAX_BRACKETS, MAX_WORDS, MAX_BLOCKS = 60, 600, 100
COMMENT = re.compile(r"//[^\n\v\f\r\x85\u2028\u2029]*|/[*].*?[*]/", re.DOTALL)
STATEMENT_END = re.compile("[;{}]")
# Keywords of the schema that errors show.
SHOWN = "type", "enum", "const", "pattern", "minimum", "maximum", "required", "minItems", "maxItems"
TYPES = {"array": list, "boolean": bool, "integer": int, "null": type(None), "object": dict, "string": str}


@cache
def schema() -> Any:
    """Return the JSON schema of `program.json`."""
    return json.loads(packaged_text("wgslice.programs", "program.schema.json"))


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

    def __init__(self, folder: Path, device: Device, *, trusted: bool) -> None:
        self.folder, self.device, self.trusted = folder, device, trusted
        if not (folder / DOCUMENT).is_file():
            raise FileNotFoundError(f"{folder / DOCUMENT}: is no file: name a folder that Program.save made")
        text = self.text(DOCUMENT, MAX_DOCUMENT_NBYTES)
        try:
            with named(DOCUMENT):
                self.document = json.loads(text)
            check(self.document, schema(), DOCUMENT)
        except RecursionError:
            raise ValueError(f"{DOCUMENT}: is nested too deeply") from None
        self.modules = [self.text(name, MAX_MODULE_NBYTES) for name in self.document["modules"]]
        for number, each in enumerate(self.document["pipelines"]):
            self.check_module(each, f"pipelines[{number}]")
        self.described = self.document["buffers"]
        self.buffers: list[Any] = []
        self.contents: dict[Buffer, NDArray[np.uint8]] = {}
        for number, each in enumerate(self.described):
            where = f"buffers[{number}]"
            size, usage = each["size"], sum(USAGES[name] for name in {*each["usage"]})
            require(size % 4 == 0 and size > 0, where, f"size {size}: must be a multiple of 4 above 0")
            most = device.largest_buffer_nbytes
            require(size <= most, where, f"size {size}: {device} allows at most {most}")
            buffer: Any = Placeholder(device.wgpu_device, size, usage, size)
            if "file" in each:
                path = self.path(each["file"])
                nbytes = path.stat().st_size
                require(nbytes == size, where, f"{path.name} has {nbytes} bytes, and not {size}")
                self.contents[buffer] = np.fromfile(path, np.uint8, size)
            self.buffers.append(buffer)

    def path(self, name: str) -> Path:
        """Return the path of a file of the folder itself."""
        path = self.folder / name
        if path.resolve().parent != self.folder.resolve() or not path.is_file():
            raise ValueError(f"{name}: is no file of {self.folder}")
        return path

    def text(self, name: str, most: int) -> str:
        """Return the text of a file of at most some bytes."""
        path = self.path(name)
        nbytes = path.stat().st_size
        require(nbytes <= most, name, f"has {nbytes} bytes: at most {most} are read")
        try:
            return path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}: {error}") from None

    def check_module(self, pipeline: Mapping[str, Any], where: str) -> None:
        """Raise ValueError unless a pipeline's module is a kernel of this package, or trusted and flat."""
        index = pipeline["module"]
        self.at("modules", index, where)
        file, module = self.document["modules"][index], self.modules[index]
        kernel = kernels_by_module(pipeline["entryPoint"]).get(module)
        if kernel is None:
            remedy = "save the program again, or, if you trust its source, load_program(folder, trusted=True)"
            what = f"is no kernel {pipeline['entryPoint']!r} of wgslice {VERSION}"
            require(self.trusted, file, f"{what}, but of another version, or changed: {remedy}")
            check_nesting(module, file)
        failed = f"the kernel {kernel and kernel.value} failed the self-test of {self.device}: save it there"
        require(kernel not in self.device.limits.disabled, where, failed)

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
            bound.append(MemoryRange(number, number, offset, size))
        module, constants = self.modules[pipeline["module"]], tuple(pipeline["constants"].items())
        call = KernelCall(module, pipeline["entryPoint"], constants, types, contents, tuple(bound), groups)
        file = self.document["modules"][pipeline["module"]]
        with (
            named(f"{where}: pipelines[{command['pipeline']}] of {file}"),
            self.device.host.refused_as_value(self.device.wgpu_device),
        ):
            self.device.pipelines.check(call)
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


def check_nesting(module: str, file: str) -> None:
    """Raise ValueError for WGSL that is nested so deeply that it may overflow a compiler's stack.

    Expressions and types nest in one statement, blocks by `else`, which compilers bound nowhere else, and
    calls by functions.
    """
    text = COMMENT.sub(" ", module)
    for what, pattern, most, parts in (
        ("brackets in one statement", r"[(\[<]", MAX_BRACKETS, STATEMENT_END.split(text)),
        ("words in one statement", r"\w+|[^\s\w]", MAX_WORDS, STATEMENT_END.split(text)),
        ("words `else`", r"\belse\b", MAX_BLOCKS, [text]),
        ("functions", r"\bfn\b", MAX_BLOCKS, [text]),
    ):
        found = max(len(re.findall(pattern, part)) for part in parts)
        require(found <= most, file, f"has {found} {what}: at most {most} are compiled")


def dtype_of(name: str, where: str) -> DType:
    """Return the dtype of a name."""
    try:
        return element_dtype(name)
    except TypeError as error:
        raise ValueError(f"{where}: dtype {name!r}: {error}; import ml_dtypes for its dtypes") from None


@public()
def load_program(
    folder: str | os.PathLike[str], device: AnyDevice = None, *, trusted: bool = False
) -> Program:
    """Load a program that `Program.save` or `CompiledOperator.save` wrote.

    Parameters
    ----------
    folder : path
        Folder with `program.json` and its files.
    device : Device or str, optional
        Where it runs, or part of an adapter's name; the default device otherwise.
    trusted : bool, optional
        Whether to compile WGSL that is no kernel of this version of the package, and to run on the tensors
        themselves. Otherwise a tensor whose elements do not fill its binding is copied to a buffer of the
        program's own first, and back if it is written, so that no byte before its first element or after its
        last one is read or written, whatever the folder says.

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
        a file lies outside of the folder or has another size; a module is no kernel of this version of the
        package, or, if trusted, is refused by wgpu or nested too deeply. No buffer of the program is made
        then.
    CaptureRefused
        The call is explained or captured.

    Notes
    -----
    WebGPU implementations bound what modules access, but not their time.

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
    sink().check_runs("a program is loaded")
    loader = Loader(Path(folder), checked_device(device), trusted=trusted)
    document = loader.document
    parameters = [loader.parameter(number, each) for number, each in enumerate(document["inputs"])]
    names, given = {each.name for each in parameters}, {each.buffer for each in parameters}
    require(len(names) == len(given) == len(parameters), "inputs", "two share a name or a buffer")
    for index, each in enumerate(loader.described):
        is_given = loader.buffers[index] in given
        require(is_given == (each["role"] == "input"), f"buffers[{index}]", "must be one of the inputs")
    steps = [loader.step(number, step) for number, step in enumerate(document["steps"])]
    outputs = [loader.tensor(each, f"outputs[{i}]") for i, each in enumerate(document["outputs"])]
    allowed = {} if trusted else {each.buffer: extent_of(each.tensor) for each in parameters}
    for number, output in enumerate(outputs):
        extent = extent_of(output)
        within = allowed.get(output.memory, extent)
        inside = not extent or (extent[0] in within and extent[-1] in within)
        require(inside, f"outputs[{number}]", "reaches outside of the elements of its input")
    # Version 0.3.0 saved no step for zeros that are returned as they are.
    written = {buffer for step in steps for buffer in step.written}.union(given, loader.contents)
    zeros = [each for each in dict.fromkeys(output.memory for output in outputs) if each not in written]
    steps = [*(Step(Clear(0, each.size, Memory.INPUT), [Place(each)]) for each in zeros), *steps]
    result = loader.result(document["result"], outputs)
    return Program(document["name"], parameters, result, steps, loader.contents, trusted=trusted)
