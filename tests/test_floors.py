"""The structure: who imports whom, where wgpu is imported, and how large the rooms are."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import wgslice

SOURCE = Path(wgslice.__file__).parent

# From the bottom up. A room imports from its own folder and from the floors below.
FLOORS = [
    ["errors", "dtypes", "arguments", "dask", "layout", "layout_rules", "rearrange", "version"],
    ["dialects"],
    ["plans"],
    ["kept_costs"],
    ["shaders"],
    ["gpu"],
    ["tensors"],
    ["operators"],
    ["arrays"],
    [
        *("onnx", "directml", "pygfx", "tuning", "doctor", "array_api", "numpy_functions"),
        *("streaming", "zarr"),
    ],
    ["cli", "demo"],  # use the public names of the package too
]
LEVELS = {folder: level for level, floor in enumerate(FLOORS) for folder in floor}


def imports(path: Path) -> list[str]:
    """Every module that a file imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.append(str(node.module))
    return found


def modules() -> dict[str, Path]:
    """Every room by its name, such as `plans.copy`; a folder's own name is its `__init__`."""
    paths = {path.relative_to(SOURCE).with_suffix(""): path for path in SOURCE.rglob("*.py")}
    names = {".".join(path.parts).removesuffix("__init__").rstrip("."): paths[path] for path in paths}
    return {name: path for name, path in names.items() if name}


def breaches(rooms: dict[str, Path]) -> list[str]:
    """Every import that goes neither down nor to a neighbour, and the first circle."""
    found = []
    graph: dict[str, set[str]] = {}
    for name, path in rooms.items():
        folder = name.split(".")[0]
        own = [imported for imported in imports(path) if imported.split(".")[0] == "wgslice"]
        graph[name] = {imported.removeprefix("wgslice.") for imported in own}
        for imported in own:
            other = imported.removeprefix("wgslice.").split(".")[0]
            below = LEVELS.get(other, 0 if folder in FLOORS[-1] else len(FLOORS)) < LEVELS[folder]
            neighbours = other == folder or {other, folder} <= set(FLOORS[0])
            if not (below or neighbours):
                found.append(f"{name} imports {imported}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"circle: {' -> '.join(error.args[1])}")
    return found


def test_folders_import_from_below_only() -> None:
    assert breaches(modules()) == []


def test_the_check_sees_a_breach(tmp_path: Path) -> None:
    texts = {
        "layout": "def f():\n    from wgslice.gpu.device import Device\n",
        "plans.plan": "import wgslice\nfrom wgslice.layout import Layout\n",
        "plans.copy": "from wgslice.plans.steps import Step\n",
        "plans.steps": "import wgslice.plans.copy\n",
        "onnx": "import wgslice.directml\n",
        "demo": "import wgslice as wg\n",
    }
    rooms = {name: tmp_path / name for name in texts}
    for name, path in rooms.items():
        path.write_text(texts[name])
    *upwards, circle = breaches(rooms)
    assert upwards == [
        "layout imports wgslice.gpu.device",
        "plans.plan imports wgslice",
        "onnx imports wgslice.directml",
    ]
    assert set(circle.removeprefix("circle: ").split(" -> ")) == {"plans.copy", "plans.steps"}


def test_every_folder_says_its_purpose() -> None:
    for folder in LEVELS:
        docstring = ast.get_docstring(ast.parse(modules()[folder].read_text("utf-8")))
        assert docstring, f"{folder} has no docstring"


def test_only_the_gpu_folder_imports_wgpu() -> None:
    importers = [
        name for name, path in modules().items() if any(i.split(".")[0] == "wgpu" for i in imports(path))
    ]
    assert {name.split(".")[0] for name in importers} == {"gpu"}


def test_numpy_and_wgpu_are_all_it_needs_at_run_time() -> None:
    allowed = {"numpy", "wgpu", "wgslice", *sys.stdlib_module_names}
    extras = {
        "cli.files": {"PIL"},
        "cli.progress": {"rich"},
        "cli.stores": {"zarr"},
        "dask": {"dask"},
        "demo": {"matplotlib"},
        "kept_costs.store": {"platformdirs"},
        "onnx": {"google", "onnx"},  # protobuf comes with onnx
        "onnx.reader": {"onnx"},
        "onnx.reference": {"onnx"},
        "onnx.supported": {"onnx"},
        "onnx.prepared": {"onnx"},
        "pygfx": {"pygfx"},
        "zarr": {"zarr"},
        "zarr.ndbuffer": {"zarr"},
    }
    for name, path in modules().items():
        roots = {imported.split(".")[0] for imported in imports(path)}
        assert roots <= allowed | extras.get(name, set()), name


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a new process has loaded at a program's end."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in shown.stdout.split()}


EXTRAS = {
    *(
        "PIL",
        "dask",
        "distributed",
        "google",
        "matplotlib",
        "ml_dtypes",
        "onnx",
        "onnxruntime",
        "platformdirs",
        "pygfx",
        "rich",
        "torch",
        "xarray",
        "zarr",
    ),
}


def test_an_import_loads_numpy_and_little_else() -> None:
    """Neither what extras need nor wgpu, which waits for the first device."""
    added = loaded_by("import wgslice") - loaded_by("import numpy") - set(sys.stdlib_module_names)
    assert added == {"wgslice"}
    used = "import numpy, wgslice as wg\nwg.dialects.onnx_slice((9,), [8], [0], steps=[-2]).window"
    used += "\nwg.TensorDesc(numpy.float32, (4, 4))\nimport wgslice.directml"
    assert not loaded_by(used) & {"wgpu", *EXTRAS}
    assert not loaded_by("import wgslice as wg\nwg.adapters()") & EXTRAS
    assert "wgpu" in loaded_by("import wgslice as wg\nwg.adapters()")


@pytest.mark.parametrize("name", ["onnx", "pygfx", "zarr"])
def test_a_missing_extra_is_named(name: str) -> None:
    program = f"import sys; sys.modules[{name!r}] = None; import wgslice.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: wgslice.{name} needs the package {name}, the extra `{name}` of wgslice: "
        f"pip install {name}"
    )


def test_the_bootstrap_needs_the_standard_library_only() -> None:
    script = Path(__file__).parents[1] / "run"
    assert {imported.split(".")[0] for imported in imports(script)} <= set(sys.stdlib_module_names)


def test_rooms_stay_small() -> None:
    for name, path in modules().items():
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 400, f"{name} has {len(text.splitlines())} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                docstring = len((ast.get_docstring(node, clean=False) or "").splitlines())
                length = (node.end_lineno or 0) - node.lineno + 1 - docstring
                assert length <= 60, f"{name}.{node.name} has {length} lines without its docstring"
