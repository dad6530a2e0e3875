"""The structure: who imports whom, where wgpu is imported, and how large the rooms are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import wgslice

SOURCE = Path(wgslice.__file__).parent

FLOORS = [
    ["errors", "integers", "dtypes", "dlpack", "window", "selection", "layout", "rearrange"],
    ["numpy_index", "strided_slices", "windowed_slices", "dialects", "tensor_desc"],
    ["profiles", "kernels", "steps", "window_steps", "plan", "copies", "gradients", "window_rows", "windows"],
    ["uniforms", "window_reference", "reference", "adapter"],
    ["pipelines", "staging", "device", "buffers"],
    ["transfer", "execute", "assign"],
    ["tensor", "outputs", "creation", "views", "writes", "compiled", "slices", "slice_grads", "extract"],
    [
        "workspace",
        "onnx.pads",
        "onnx.operators",
        "onnx.graph",
        "onnx.program",
        "onnx.reader",
        "onnx.prepared",
    ],
    ["directml.structs", "directml.operators", "directml.bindings", "directml.objects"],
    ["cli", "demo", "onnx", "directml", "pygfx"],
]
ORDER = [module for floor in FLOORS for module in floor]  # within a floor, earlier ones may be imported
CLIENTS = FLOORS[-1]  # import the package's public names, and nobody imports them


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
    """Every room by its name; a package's own is its `__init__`."""
    paths = {path.relative_to(SOURCE).with_suffix(""): path for path in SOURCE.rglob("*.py")}
    names = {".".join(path.parts).removesuffix("__init__").rstrip("."): paths[path] for path in paths}
    return {name: path for name, path in names.items() if name}


def test_every_module_has_a_floor() -> None:
    assert sorted(modules()) == sorted(ORDER)


def breaches(rooms: dict[str, Path]) -> list[str]:
    """Every import that does not go down."""
    found = []
    for name, path in rooms.items():
        below = ORDER[: ORDER.index(name)]
        for imported in imports(path):
            module = imported.removeprefix("wgslice.")
            whole_package = imported == "wgslice" and name not in CLIENTS
            upwards = imported.startswith("wgslice.") and (module not in below or module in CLIENTS)
            if whole_package or upwards:
                found.append(f"{name} imports {imported}")
    return found


def test_modules_import_from_below_only() -> None:
    assert breaches(modules()) == []


def test_the_check_sees_a_breach(tmp_path: Path) -> None:
    layout, plan = tmp_path / "layout.py", tmp_path / "plan.py"
    layout.write_text("def f():\n    from wgslice.device import Device\n")
    plan.write_text("import wgslice\nfrom wgslice.layout import Layout\n")
    assert breaches({"layout": layout, "plan": plan}) == [
        "layout imports wgslice.device",
        "plan imports wgslice",
    ]


def test_only_device_imports_wgpu() -> None:
    importers = [
        name for name, path in modules().items() if any(i.split(".")[0] == "wgpu" for i in imports(path))
    ]
    assert importers == ["device"]


def test_numpy_and_wgpu_are_all_it_needs_at_run_time() -> None:
    allowed = {"numpy", "wgpu", "wgslice", *sys.stdlib_module_names}
    extras = {
        "cli": {"PIL"},
        "demo": {"matplotlib"},
        "onnx": {"onnx"},
        "onnx.reader": {"onnx"},
        "onnx.prepared": {"onnx"},
        "pygfx": {"pygfx"},
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


EXTRAS = {"PIL", "dask", "google", "matplotlib", "ml_dtypes", "onnx", "onnxruntime", "pygfx", "torch"}


def test_an_import_loads_numpy_and_little_else() -> None:
    """Neither what extras need nor wgpu, which waits for the first device."""
    added = loaded_by("import wgslice") - loaded_by("import numpy") - set(sys.stdlib_module_names)
    assert added == {"wgslice"}
    used = "import numpy, wgslice as wg\nwg.dialects.onnx_slice((9,), [8], [0], steps=[-2]).window"
    used += "\nwg.TensorDesc(numpy.float32, (4, 4))\nimport wgslice.directml"
    assert not loaded_by(used) & {"wgpu", *EXTRAS}
    assert not loaded_by("import wgslice as wg\nwg.adapters()") & EXTRAS
    assert "wgpu" in loaded_by("import wgslice as wg\nwg.adapters()")


def test_the_bootstrap_needs_the_standard_library_only() -> None:
    script = Path(__file__).parents[1] / "run"
    assert {imported.split(".")[0] for imported in imports(script)} <= set(sys.stdlib_module_names)


def test_rooms_stay_small() -> None:
    for name, path in modules().items():
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 300, f"{name} has {len(text.splitlines())} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                docstring = len((ast.get_docstring(node, clean=False) or "").splitlines())
                length = (node.end_lineno or 0) - node.lineno + 1 - docstring
                assert length <= 45, f"{name}.{node.name} has {length} lines without its docstring"


def test_kernels_stay_small() -> None:
    """The struct, the division, the search for a row cannot be shared in WGSL; the struct does not count."""
    struct = re.compile(r"^struct (Copy|Windows) \{.*?^\}$", re.DOTALL | re.MULTILINE)
    for path in (Path(__file__).parents[1] / "wgsl").glob("*.wgsl"):
        assert len(struct.sub("", path.read_text("utf-8")).splitlines()) <= 275, path.name
