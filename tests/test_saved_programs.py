"""Saved programs: written as files, loaded again and run, they give the bytes of NumPy."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu
from jsonschema import Draft202012Validator
from test_programs import FUNCTIONS, check_replay, made

import wgslice as wg
from wgslice.cli import main

SCHEMA = json.loads((files("wgslice.programs") / "program.schema.json").read_text("utf-8"))


def flipped(device: wg.Device, folder: Path) -> wg.Program:
    """A program that reverses rows of a parameter beside constants of its function, saved."""
    table = wg.asarray(np.arange(40, dtype=np.int32).reshape(4, 10), device=device)
    x = wg.zeros((4, 10), np.int32, device=device)
    program = wg.capture(lambda x: (x[:, ::-1].copy(), table[1:, ::2].copy(), x[[3, 1]]), x=x)
    program.save(folder)
    return program


def document_of(folder: Path) -> Any:
    return json.loads((folder / "program.json").read_text("utf-8"))


@pytest.mark.every_adapter
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_loaded_program_gives_what_the_function_gives(
    device: wg.Device, tmp_path: Path, function: Callable[..., Any]
) -> None:
    x, y = (wg.asarray(each, device=device) for each in made(0))
    wg.capture(function, x=x, y=y).save(tmp_path / "saved")
    document = document_of(tmp_path / "saved")
    Draft202012Validator(SCHEMA).validate(document)
    program = wg.load_program(tmp_path / "saved", device)
    assert program.input_names == ("x", "y")
    for seed in (1, 2):
        check_replay(device, program, function, seed)


def test_the_same_program_saves_the_same_bytes(device: wg.Device, tmp_path: Path) -> None:
    for name in ("one", "other", "other"):  # a second save replaces the first
        flipped(device, tmp_path / name)
    one, other = (sorted((tmp_path / name).iterdir()) for name in ("one", "other"))
    assert [each.name for each in one] == [each.name for each in other]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(one, other, strict=True))
    roles = {each["role"] for each in document_of(tmp_path / "one")["buffers"]}
    assert roles == {"input", "constant", "own"}


OPERATORS: dict[str, Callable[[], tuple[Any, Callable[..., Any]]]] = {
    "Slice1": lambda: (
        wg.Slice1(desc(6, 8), desc(3, 4), offsets=(1, 0), sizes=(5, 8), strides=(-2, 2)),
        lambda x, y, at: np.copyto(y, x[5:0:-2, ::2]),
    ),
    "Slice": lambda: (
        wg.Slice(desc(6, 8), desc(2, 4), offsets=(1, 0), sizes=(2, 4), strides=(3, 2)),
        lambda x, y, at: np.copyto(y, x[1::3, ::2]),
    ),
    "SliceGrad": lambda: (
        wg.SliceGrad(desc(3, 4), desc(6, 8), offsets=(1, 0), sizes=(5, 8), strides=(-2, 2)),
        into_zeros,
    ),
    "ExtractWindows": lambda: (
        wg.ExtractWindows(desc(9, 8), desc(2, 3, 8), wg.TensorDesc("int32", (2, 2)), (3, 8)),
        lambda x, y, at: np.copyto(y, [x[row : row + 3] for row, _ in at]),
    ),
    "InsertWindows": lambda: (
        wg.InsertWindows(desc(2, 3, 8), desc(9, 8), wg.TensorDesc("int32", (2, 2)), overlap="last"),
        inserted,
    ),
}


def desc(*sizes: int) -> wg.TensorDesc:
    return wg.TensorDesc("uint16", sizes)


def into_zeros(x: Any, y: Any, at: Any) -> None:
    y[...] = 0
    y[5:0:-2, ::2] = x


def inserted(x: Any, y: Any, at: Any) -> None:
    for window, (row, _) in zip(x, at, strict=True):
        y[row : row + 3] = window


@pytest.mark.every_adapter
@pytest.mark.parametrize("name", OPERATORS)
def test_a_saved_operator_gives_what_numpy_gives(device: wg.Device, tmp_path: Path, name: str) -> None:
    descriptor, numpys = OPERATORS[name]()
    operator = device.compile(descriptor)
    operator.save(tmp_path / name)
    document = document_of(tmp_path / name)
    Draft202012Validator(SCHEMA).validate(document)
    assert document["name"] == name
    program = wg.load_program(tmp_path / name, device)
    rng = np.random.default_rng(3)
    x, y = (rng.integers(1, 60000, side.sizes, np.uint16) for side in (operator.input, operator.output))
    at = np.array([[4, 0], [3, 0]], np.int32)
    given = {"input": x, "output": y} | ({"offsets": at} if operator.offsets else {})
    tensors = {side: wg.asarray(array, device=device) for side, array in given.items()}
    assert program(**tensors) is None
    numpys(x, y, at)
    assert np.array_equal(tensors["output"].numpy(), y)
    assert np.array_equal(tensors["input"].numpy(), x)


def test_windows_of_rank_8_are_saved_with_a_dimension_more(device: wg.Device, tmp_path: Path) -> None:
    array = np.arange(2 * 3, dtype=np.int32).reshape(1, 1, 1, 2, 1, 1, 1, 3)
    x = wg.asarray(array, device=device)
    offsets = [[0] * 8, [0] * 7 + [1]]
    wg.capture(lambda x: wg.extract_windows(x, offsets, (*array.shape[:7], 2)), x=x).save(tmp_path / "some")
    found = wg.load_program(tmp_path / "some", device)(x=x)
    assert np.array_equal(found.numpy(), [array[..., :2], array[..., 1:]])


def test_tensors_that_a_function_writes_begin_as_saved(device: wg.Device, tmp_path: Path) -> None:
    state = wg.asarray(np.array([1, 2, 3, 4], np.float32), device=device)
    x = wg.zeros(1, np.float32, device=device)

    def step(x: wg.Tensor) -> wg.Tensor:
        state[1:] = state[:3].copy()
        state[:1] = x
        return state.copy()

    wg.capture(step, x=x).save(tmp_path / "step")
    state[...] = 0
    program = wg.load_program(tmp_path / "step", device)
    assert program(x=x).numpy().tolist() == [0, 1, 2, 3]
    assert program(x=x).numpy().tolist() == [0, 0, 1, 2]
    assert state.numpy().tolist() == [0, 0, 0, 0]
    program.save(tmp_path / "again")
    assert document_of(tmp_path / "again") == document_of(tmp_path / "step")


def test_a_wrong_byte_of_a_constant_changes_the_result(device: wg.Device, tmp_path: Path) -> None:
    flipped(device, tmp_path / "saved")
    buffers = document_of(tmp_path / "saved")["buffers"]
    name = next(each["file"] for each in buffers if each["size"] == 160 and each["role"] == "constant")
    data = bytearray((tmp_path / "saved" / name).read_bytes())
    data[40] ^= 1  # row 1, column 0
    (tmp_path / "saved" / name).write_bytes(data)
    x = wg.zeros((4, 10), np.int32, device=device)
    _, table, _ = wg.load_program(tmp_path / "saved", device)(x=x)
    assert table.numpy()[0].tolist() == [11, 12, 14, 16, 18]


REFUSED: dict[str, Callable[[Any], Any]] = {
    r"program\.json\.version: 2 is not as the format demands": lambda d: d.update(version=2),
    r"program\.json\.format: ": lambda d: d.update(format="other"),
    r"program\.json: 'more' is unknown": lambda d: d.update(more=1),
    r"program\.json: .* is not as the format demands": lambda d: d.pop("steps"),
    r"program\.json\.buffers\[0\]\.size: true is not": lambda d: d["buffers"][0].update(size=True),
    r"program\.json\.modules\[0\]: \"\.\./x\.wgsl\" is not": lambda d: d["modules"].__setitem__(
        0, "../x.wgsl"
    ),
    r"0-none\.wgsl: is no file of": lambda d: d["modules"].__setitem__(0, "0-none.wgsl"),
    r"buffers\[0\]: size 3: must be a multiple of 4": lambda d: d["buffers"][0].update(size=3),
    r"buffers\[0\]: size 4503599627370496: .* allows at most": lambda d: d["buffers"][0].update(size=2**52),
    r"buffers\[1\]: 1\.bin has \d+ bytes, and not 4": lambda d: d["buffers"][1].update(size=4),
    r"inputs\[0\]: buffers\[0\] has the role own": lambda d: d["buffers"][0].update(role="own"),
    r"buffers\[1\]: must be one of the inputs": lambda d: d["buffers"][1].update(role="input"),
    r"inputs\[0\]: alignment 3: must be a power of 2": lambda d: d["inputs"][0].update(alignment=3),
    r"inputs\[0\]: dtype 'float33': ": lambda d: d["inputs"][0].update(dtype="float33"),
    r"inputs\[0\]: the buffer of 160 bytes is too small": lambda d: d["inputs"][0].update(shape=[5, 10]),
    r"inputs\[0\]: shape \[4\]: strides are": lambda d: d["inputs"][0].update(shape=[4]),
    r"steps\[0\]\.dispatch: pipelines\[9\]: there are": lambda d: dispatch(d).update(pipeline=9),
    r"pipelines\[0\]: modules\[7\]: there are": lambda d: d["pipelines"][0].update(module=7),
    r"bindings\[1\]: bytes 0 to 164 of": lambda d: dispatch(d)["bindings"][1].__setitem__(2, 164),
    r"bindings\[1\]: offset 4: .* needs multiples of": lambda d: dispatch(d)["bindings"].__setitem__(
        1, [dispatch(d)["bindings"][1][0], 4, 4]
    ),
    r"bindings\[2\]: .* are written, and the buffer is constant": lambda d: d["buffers"][
        dispatch(d)["bindings"][2][0]
    ].update(role="constant"),
    r"bindings\[2\]: .* lacks usage storage": lambda d: d["buffers"][dispatch(d)["bindings"][2][0]].update(
        usage=["copy-src"]
    ),
    r"workgroups \(70000, 1, 1\): at most 65535": lambda d: dispatch(d).update(workgroups=[70000, 1, 1]),
    r"bindings\[2\]: a buffer is written, and bound twice": lambda d: dispatch(d)["bindings"].__setitem__(
        2, dispatch(d)["bindings"][1]
    ),
    r"\d bindings: \d are needed": lambda d: dispatch(d)["bindings"].pop(),
    r"a uniform block must be a constant with a file": lambda d: d["buffers"][
        dispatch(d)["bindings"][0][0]
    ].pop("file"),
    r"result: outputs\[3\]: there are 3": lambda d: d.update(result=3),
    r"steps\[0\]\.clear: .* whole words": lambda d: d["steps"].insert(
        0, {"clear": {"buffer": 0, "offset": 2, "size": 4}}
    ),
    r"steps\[0\]\.clear: 'more' is unknown": lambda d: d["steps"].insert(
        0, {"clear": {"buffer": 0, "offset": 0, "size": 4, "more": 0}}
    ),
    r"source and target are buffers\[0\]: must be two": lambda d: d["steps"].insert(
        0, {"copy": {"source": 0, "target": 0, "size": 4, "offsets": [[0, 8]]}}
    ),
    r"steps\[0\]: .* is not as the format demands": lambda d: d["steps"].insert(0, {}),
    r"pipelines\[0\]\.constants\.more: 4294967296 is not": lambda d: constants(d).update(more=2**32),
    r"pipelines\[0\] of 0-\w+\.wgsl: wgpu refuses it: .*'more' not found": lambda d: constants(d).update(
        more=1
    ),
    r"wgpu refuses it: .*doesn't fit": lambda d: constants(d).update(workgroup_size=-1),
    r"wgpu refuses it: .*workgroup_size.*positive": lambda d: constants(d).update(workgroup_size=0),
    r"pipelines\[0\] of 0-\w+\.wgsl: workgroup_size 65536: .* allows": lambda d: constants(d).update(
        workgroup_size=2**16
    ),
    r"steps\[\d\]\.dispatch: .*binding index 0 is bound with size 16": lambda d: dispatch(d)["bindings"][
        0
    ].__setitem__(2, 16),
    r"0-\w+\.wgsl: is no kernel 'main' of wgslice .* another version, .*trusted": lambda d: d["pipelines"][
        0
    ].update(entryPoint="main"),
    r"outputs\[0\]: reaches outside of the elements of its input": lambda d: (
        d["inputs"][0].update(shape=[3, 10]),
        d["outputs"][0].update(buffer=0),
    ),
}


def constants(document: Any) -> Any:
    """The constants of the first pipeline."""
    return document["pipelines"][0]["constants"]


def dispatch(document: Any) -> Any:
    """The first dispatch."""
    return next(step["dispatch"] for step in document["steps"] if "dispatch" in step)


@pytest.mark.parametrize("says", REFUSED)
def test_malformed_documents_are_refused(device: wg.Device, tmp_path: Path, says: str) -> None:
    flipped(device, tmp_path / "saved")
    document = document_of(tmp_path / "saved")
    REFUSED[says](document)
    (tmp_path / "saved" / "program.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match=f"^load_program: .*{says}"):
        wg.load_program(tmp_path / "saved", device)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("program.json", b"{", r"program\.json: Expecting"),
        ("program.json", b"1" * 5000, r"program\.json: "),
        ("program.json", b"\xff", r"program\.json: .*can't decode"),
        (".wgsl", b"\xff", r"0-\w+\.wgsl: .*can't decode"),
        (".wgsl", b"", r"0-\w+\.wgsl: is no kernel"),
    ],
)
def test_malformed_files_are_refused_by_name(
    device: wg.Device, tmp_path: Path, file: str, content: bytes, says: str
) -> None:
    flipped(device, tmp_path / "saved")
    next(path for path in sorted((tmp_path / "saved").iterdir()) if path.name.endswith(file)).write_bytes(
        content
    )
    with pytest.raises(ValueError, match=f"^load_program: {says}"):
        wg.load_program(tmp_path / "saved", device)


@pytest.mark.parametrize("suffix", [".bin", ".wgsl", "program.json"])
def test_huge_files_are_refused_before_they_are_read(device: wg.Device, tmp_path: Path, suffix: str) -> None:
    flipped(device, tmp_path / "saved")
    path = next(path for path in (tmp_path / "saved").iterdir() if path.name.endswith(suffix))
    os.truncate(path, 2**36)  # of which no block is on the disk
    with pytest.raises(ValueError, match=f"^load_program: .*{re.escape(path.name)}:? has {2**36} bytes"):
        wg.load_program(tmp_path / "saved", device)


MODULE = "@compute @workgroup_size(1) fn main() { %s }"
NESTED = {
    "brackets": MODULE % ("let x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";"),
    "not": MODULE % ("let x = " + "!" * 100_000 + "true;"),
    "sum": MODULE % ("let x = 1" + "+1" * 50_000 + ";"),
    "types": MODULE % ("var x: " + "array<" * 20_000 + "u32" + ", 1>" * 20_000 + ";"),
    "else": MODULE % ("if true {}" + " else if true {}" * 10_000),
    "hidden by a comment": MODULE % ("// \r let x = " + "(" * 100_000 + "1" + ")" * 100_000 + "; //\n"),
    "calls": "fn f0() {}" + "".join(f"fn f{i}() {{ f{i - 1}(); }}" for i in range(1, 5000)),
    "long": MODULE % "" + " " * 2**18,
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("name", NESTED)
def test_nested_modules_do_not_reach_the_compiler(
    device: wg.Device, tmp_path: Path, name: str, trusted: bool
) -> None:
    flipped(device, tmp_path / "saved")
    document = document_of(tmp_path / "saved")
    (tmp_path / "saved" / document["modules"][0]).write_text(NESTED[name], "utf-8", newline="")
    with pytest.raises(
        ValueError, match=r"^load_program: 0-\w+\.wgsl: (is no kernel|has \d+ \w+.*: at most)"
    ):
        wg.load_program(tmp_path / "saved", device, trusted=trusted)


def test_other_wgsl_runs_only_if_it_is_trusted(device: wg.Device, tmp_path: Path) -> None:
    flipped(device, tmp_path / "saved")
    for name in document_of(tmp_path / "saved")["modules"]:
        path = tmp_path / "saved" / name
        path.write_text("// of another version\n" + path.read_text("utf-8"), "utf-8", newline="")
    with pytest.raises(
        ValueError, match=r"of another version, or changed: save .* again, or, .*trusted=True"
    ):
        wg.load_program(tmp_path / "saved", device)
    x = wg.asarray(np.arange(40, dtype=np.int32).reshape(4, 10), device=device)
    reversed_rows, *_ = wg.load_program(tmp_path / "saved", device, trusted=True)(x=x)
    assert np.array_equal(reversed_rows.numpy(), x.numpy()[:, ::-1])
    path.write_text("fn main() {", "utf-8")
    with pytest.raises(ValueError, match=r"^load_program: steps\[\d\].*\.wgsl: wgpu refuses it: "):
        wg.load_program(tmp_path / "saved", device, trusted=True)


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("first", [0, 3])
def test_bytes_outside_of_the_elements_are_not_accessed(
    device: wg.Device, tmp_path: Path, first: int, dtype: str
) -> None:
    """A folder names 5 elements of 64 that its steps copy: of a tensor only these 5 are read and written."""
    given = slice(first, first + 5)
    names = np.arange(1, 101, dtype=dtype)
    x, y = (wg.asarray(names, device=device)[:64] for _ in range(2))

    def function(x: wg.Tensor, y: wg.Tensor) -> None:
        y[...] = x[::-1]

    wg.capture(function, x=x, y=y).save(tmp_path / "saved")
    document = document_of(tmp_path / "saved")
    for parameter in document["inputs"]:
        parameter |= {"shape": [5], "offset": first * np.dtype(dtype).itemsize}
    (tmp_path / "saved" / "program.json").write_text(json.dumps(document), "utf-8")
    results = []
    for trusted in (False, True):
        source, target = (wg.asarray(names + change, device=device) for change in (0, 100))
        program = wg.load_program(tmp_path / "saved", device, trusted=trusted)
        program(x=source[given], y=target[given])
        assert np.array_equal(source.numpy(), names)
        results.append(target.numpy())
    expected = names + 100
    expected[given] = 0  # the source's elements that these would be are not given
    assert np.array_equal(results[0], expected)
    assert np.array_equal(results[1], [*names[63::-1], *names[64:] + 100])


@pytest.mark.every_adapter
def test_loading_keeps_no_commands(device: wg.Device, tmp_path: Path) -> None:
    """wgpu-native keeps what is finished and not submitted: GBs for a program of 10,000 dispatches."""
    flipped(device, tmp_path / "saved")
    kept = []
    for _ in range(3):
        wg.load_program(tmp_path / "saved", device)
        kept.append(wgpu.diagnostics.wgpu_native_counts.get_dict()["CommandBuffer"]["count"])
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.parametrize("depth", [600, 100_000])
def test_deep_nesting_is_refused(device: wg.Device, tmp_path: Path, depth: int) -> None:
    """By the check of the schema, and by Python's decoder of JSON before it."""
    flipped(device, tmp_path / "saved")
    path = tmp_path / "saved" / "program.json"
    nested = '{"tuple": [' * depth + "0" + "]}" * depth
    path.write_text(re.sub('"result": .*', f'"result": {nested}', path.read_text("utf-8")), "utf-8")
    with pytest.raises(ValueError, match=r"^load_program: program\.json: is nested too deeply"):
        wg.load_program(tmp_path / "saved", device)


def test_the_loader_and_jsonschema_refuse_the_same(device: wg.Device, tmp_path: Path) -> None:
    """Each value of a document in turn is replaced by others."""
    flipped(device, tmp_path / "saved")
    text = (tmp_path / "saved" / "program.json").read_text("utf-8")
    validator = Draft202012Validator(SCHEMA)
    for change in range(0, 400, 9):
        document = json.loads(text)
        places = [*places_in(document)]
        parent, key = places[change * 7 % len(places)]
        parent[key] = [None, True, -1, 1.5, "x", [], {}, {"a": 1}][change % 8]
        (tmp_path / "saved" / "program.json").write_text(json.dumps(document), "utf-8")
        assert validator.is_valid(document) is not refused_by_schema(tmp_path / "saved", device)


def refused_by_schema(folder: Path, device: wg.Device) -> bool:
    try:
        wg.load_program(folder, device)
    except ValueError as error:
        return str(error).startswith("load_program: program.json")
    return False


def places_in(value: Any) -> Any:
    """Every value inside of another, by its parent and key."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(each, dict | list):
            yield from places_in(each)


@pytest.mark.parametrize("adapter", [[], ["--adapter", ""]], ids=["any", "named"])
def test_an_exported_slice_gives_what_numpy_gives(
    device: wg.Device, tmp_path: Path, capsys: pytest.CaptureFixture[str], adapter: list[str]
) -> None:
    key = "1::2, ..., ::-3, None"
    assert main(["export", "6,8,31", "uint8", key, "-o", str(tmp_path / "cut"), *adapter]) == 0
    assert capsys.readouterr().out.startswith("slice(input: uint8 (6, 8, 31), output: uint8 (3, 8, 11, 1))")
    alignment = document_of(tmp_path / "cut")["inputs"][0]["alignment"]
    assert alignment == (device.limits.binding_alignment_nbytes if adapter else 256)
    array = np.random.default_rng(0).integers(0, 256, (6, 8, 31), np.uint8)
    output = wg.zeros((3, 8, 11, 1), np.uint8, device=device)
    wg.load_program(tmp_path / "cut", device)(input=wg.asarray(array, device=device), output=output)
    assert np.array_equal(output.numpy(), array[1::2, ..., ::-3, None])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["6,x", "uint8", ":"], "SHAPE '6,x': must be integers, such as 480,640,4"),
        (["6", "float33", ":"], "float33"),
        (["6", "uint8", "9"], "index 9 is out of bounds for axis 0 with size 6"),
    ],
)
def test_wrong_exports_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], says: str
) -> None:
    assert main(["export", *given, "-o", str(tmp_path / "cut")]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "cut").exists()


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_links_out_of_the_folder_are_refused(device: wg.Device, tmp_path: Path) -> None:
    flipped(device, tmp_path / "saved")
    name = document_of(tmp_path / "saved")["modules"][0]
    (tmp_path / "saved" / name).rename(tmp_path / name)
    (tmp_path / "saved" / name).symlink_to(tmp_path / name)
    with pytest.raises(ValueError, match=re.escape(f"{name}: is no file of")):
        wg.load_program(tmp_path / "saved", device)


def test_folders_without_a_program_are_refused(device: wg.Device, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("kept")
    x = wg.zeros(4, np.float32, device=device)
    program = wg.capture(lambda x: x[::-1].copy(), x=x)
    with pytest.raises(FileExistsError, match="exists, and holds no program: name a new folder"):
        program.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "kept"
    with pytest.raises(FileNotFoundError, match=r"program\.json: is no file"):
        wg.load_program(tmp_path, device)
    with pytest.raises(TypeError, match=r"^<lambda>: the result has keys \[1\]: must be strings to be saved"):
        wg.capture(lambda x: {1: x}, x=x).save(tmp_path / "saved")
