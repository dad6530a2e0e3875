"""The structure: which layer imports which, where wgpu is imported, and how large files and functions are."""

from __future__ import annotations

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import wgpu
from helpers import run_python

import wgslice
from wgslice.gpu import protocols

SOURCE = Path(wgslice.__file__).parent

# From the bottom up. A module imports from its own folder and from the layers below.
LAYERS = [
    [
        *("errors", "docstrings", "dtypes", "arguments", "dask", "layout", "layout_rules", "packaged"),
        *("threads", "version", "wgsl", "whole_files"),
    ],
    ["dialects"],
    ["plans"],
    ["shaders"],
    ["gpu"],
    ["calibration"],
    ["tensors"],
    ["operators"],
    ["numpy_protocol", "programs"],
    [
        *("onnx", "directml", "einops", "pygfx", "doctor", "array_api"),
        *("streaming", "zarr"),
    ],
    ["cli", "demo"],  # use the public names of the package too
]
# What users import besides the package itself; a test states problems and plans by few modules more.
PUBLIC = {"array_api", "dask", "dialects", "directml", "einops", "errors", "onnx", "pygfx", "zarr"}
MAX_PRIVATE = 4
IMPORTERS = {"import_module", "__import__"}
LEVELS = {folder: level for level, layer in enumerate(LAYERS) for folder in layer}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a file, parsed once for all tests."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def imports(path: Path, *, calls: bool = True) -> list[str]:
    """Every module that a file imports, anywhere in it, and what it imports of one as `module.name`.

    Where `calls`, those of `import_module` count as statements do, and their argument must be a literal.
    """
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif calls and isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in IMPORTERS:
            assert isinstance(node.args[0], ast.Constant), f"{path.name}: {ast.unparse(node)}"
            found.append(str(node.args[0].value))
    return found


def modules() -> dict[str, Path]:
    """Every module by its name, such as `plans.copy`; a folder's own name is its `__init__`."""
    paths = {path.relative_to(SOURCE).with_suffix(""): path for path in SOURCE.rglob("*.py")}
    names = {".".join(path.parts).removesuffix("__init__").rstrip("."): paths[path] for path in paths}
    return {name: path for name, path in names.items() if name}


def breaches(paths: dict[str, Path]) -> list[str]:
    """Every import that goes neither down nor to a neighbour, and the first cycle."""
    found = []
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        folder = name.split(".")[0]
        own = [each.removeprefix("wgslice.") for each in imports(path) if each.split(".")[0] == "wgslice"]
        graph[name] = {each if each in paths else each.rpartition(".")[0] for each in own}
        for imported in own:
            other = imported.split(".")[0]
            below = LEVELS.get(other, 0 if folder in LAYERS[-1] else len(LAYERS)) < LEVELS[folder]
            neighbours = other == folder or {other, folder} <= set(LAYERS[0])
            if not (below or neighbours):
                found.append(f"{name} imports {imported}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"cycle: {' -> '.join(error.args[1])}")
    return found


def test_folders_import_from_below_only() -> None:
    assert breaches(modules()) == []


def test_the_check_sees_a_breach(tmp_path: Path) -> None:
    texts = {
        "layout": "def f():\n    from wgslice.gpu.device import Device\n",
        "gpu.device": 'import importlib\nimportlib.import_module("wgslice.tensors")\n',
        "plans.plan": "import wgslice\nfrom wgslice.layout import Layout\n",
        "plans.copy": "from wgslice.plans import steps\n",
        "plans.steps": 'from importlib import import_module\nimport_module("wgslice.plans.copy")\n',
        "onnx": "import wgslice.directml\n",
        "demo": "import wgslice as wg\n",
    }
    paths = {name: tmp_path / name for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name])
    *upwards, cycle = breaches(paths)
    assert upwards == [
        "layout imports gpu.device.Device",
        "gpu.device imports tensors",
        "plans.plan imports wgslice",
        "onnx imports directml",
    ]
    assert set(cycle.removeprefix("cycle: ").split(" -> ")) == {"plans.copy", "plans.steps"}


def private_modules(test: Path) -> set[str]:
    """The modules of wgslice that a test imports and no user does."""
    found = set()
    for name in imports(test, calls=False):
        package, _, module = name.partition(".")
        if package == "wgslice" and module.split(".")[0] not in {*PUBLIC, *wgslice.__all__}:
            found.add(module if module in modules() else module.rpartition(".")[0])
    return found - {""}


def test_tests_import_few_private_modules() -> None:
    tests = sorted(Path(__file__).parent.glob("test_*.py"))
    counts = {test.name: private_modules(test) - {"plans.facade"} for test in tests}
    assert {name: found for name, found in counts.items() if len(found) > MAX_PRIVATE} == {}
    assert "plans.kernels" in counts["test_kernels.py"]


# The words that plans consist of; the modules behind them are reached by `facade` alone.
OF_PLANS = {"choose", "facade", "kernels", "plan", "profiles", "proofs", "steps"}


def test_problems_of_plans_are_reached_by_one_facade() -> None:
    root = Path(__file__).parents[1]
    users = *root.glob("tests/**/*.py"), *root.glob("bench/**/*.py"), *(SOURCE / "doctor").glob("*.py")
    behind = {f"plans.{path.stem}" for path in (SOURCE / "plans").glob("*.py") if path.stem not in OF_PLANS}
    found = {
        f"{user.name}: {name}"
        for user in users
        for name in imports(user, calls=False)
        if any(f"{name}.".startswith(f"wgslice.{module}.") for module in behind)
    }
    assert found == set()
    assert {"plans.copy", "plans.window_problem", "plans.index_problem"} <= behind


def test_imports_of_the_bench_have_no_cycle() -> None:
    root = Path(__file__).parents[1]
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts): path for path in root.glob("bench/**/*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        imported = imports(path, calls=False)
        graph[name] = {*imported, *(each.rpartition(".")[0] for each in imported)} & paths.keys()
    assert len(graph["bench.__main__"]) > 5
    TopologicalSorter(graph).prepare()  # raises CycleError


HOST = {  # who may import what
    "wgpu": {"gpu.hosts", "gpu.hosts.wgpu_native"},
    "wgpudawn": {"gpu.hosts"},
    "pyodide": {"gpu.hosts.navigator"},
    "js": {"gpu.hosts.navigator"},
    "wgslice.gpu.hosts.wgpu_native": {"gpu.hosts"},
    "wgslice.gpu.hosts.navigator": {"gpu.hosts"},
}


def uses(path: Path, package: str) -> bool:
    """Whether a file imports a package or something in it."""
    return any(name == package or name.startswith(f"{package}.") for name in imports(path))


def test_every_folder_states_its_purpose() -> None:
    kernels = {"wgsl": SOURCE.parents[1] / "wgsl" / "__init__.py"}
    for folder in LEVELS:
        docstring = ast.get_docstring(ast.parse((modules() | kernels)[folder].read_text("utf-8")))
        assert docstring, f"{folder} has no docstring"


def test_hosts_import_their_libraries_and_one_file_chooses() -> None:
    importers = {
        package: {name for name, path in modules().items() if uses(path, package)} for package in HOST
    }
    assert importers == HOST


def test_numpy_and_wgpu_are_all_it_needs_at_run_time() -> None:
    allowed = {"numpy", "wgpu", "wgslice", *sys.stdlib_module_names}
    extras = {
        "cli.pages": {"zarr"},
        "cli.images": {"PIL", "imagecodecs"},
        "cli.tiff": {"tifffile"},
        "cli.progress": {"rich"},
        "dask": {"dask"},
        "demo": {"matplotlib"},
        "einops": {"einops"},
        "gpu.hosts": {"wgpudawn"},
        "gpu.hosts.navigator": {"js", "pyodide"},  # of the browser's Python
        "gpu.hosts.declarations_0_32": {"_cffi_backend"},  # cffi is what wgpu needs
        "calibration.store": {"platformdirs"},
        "onnx": {"google", "onnx"},  # protobuf comes with onnx
        "onnx.graph": {"onnx"},
        "onnx.prepared": {"onnx"},
        "pygfx": {"pygfx"},
        "zarr": {"zarr"},
    }
    for name, path in modules().items():
        roots = {imported.split(".")[0] for imported in imports(path)}
        assert roots <= allowed | extras.get(name, set()), name


def loaded_by(program: str) -> set[str]:
    """The top-level modules, and wgslice's folders, that a new process has loaded at a program's end."""
    done = run_python(f"{program}\nimport sys\nprint(*sys.modules)")
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    folders = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("wgslice.")}
    return {name.split(".")[0] for name in loaded} | folders


EXTRAS = {
    *(
        "PIL",
        "dask",
        "distributed",
        "einops",
        "google",
        "imagecodecs",
        "matplotlib",
        "ml_dtypes",
        "onnx",
        "onnxruntime",
        "platformdirs",
        "pygfx",
        "rich",
        "tifffile",
        "torch",
        "xarray",
        "zarr",
    ),
}


def test_an_import_loads_numpy_and_little_else() -> None:
    """Neither what extras need nor wgpu, which waits for the first device."""
    added = loaded_by("import wgslice") - loaded_by("import numpy") - set(sys.stdlib_module_names)
    assert {name for name in added if "." not in name} == {"wgslice"}
    slow = {"hashlib", "tempfile", "zipfile"}  # milliseconds each
    assert not slow & (loaded_by("import wgslice") - loaded_by("import numpy"))
    lazy = {f"wgslice.{name}" for name in ("calibration", "doctor", "streaming")}
    assert not added & lazy
    assert lazy <= loaded_by("import wgslice as wg\nwg.tune, wg.selftest, wg.stream")
    used = "import numpy, wgslice as wg\nwg.dialects.onnx_slice((9,), [8], [0], steps=[-2]).window"
    used += "\nwg.TensorDesc(numpy.float32, (4, 4))\nimport wgslice.directml"
    assert not loaded_by(used) & {"wgpu", *EXTRAS}
    listed = loaded_by("import wgslice as wg\nwg.adapters()")
    assert not listed & EXTRAS
    assert "wgpu" in listed


WALK = """
import sys, numpy, wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module
modules = [kernel_module(kernel) for kernel in Kernel]  # linked, as in a wheel
x, files = wg.asarray(numpy.arange(60, dtype=sys.argv[1]).reshape(5, 12)), set()
sys.settrace(lambda frame, event, argument: files.add(frame.f_code.co_filename))
found = x[1:3, ::-2].numpy()
sys.settrace(None)
assert (found == numpy.arange(60, dtype=sys.argv[1]).reshape(5, 12)[1:3, ::-2]).all()
print(*(file for file in files if file.startswith(wg.__path__[0])), sep="\\n")
"""


@pytest.mark.parametrize(("dtype", "most"), [("float32", 24), ("uint8", 25)])
def test_the_first_slice_that_is_read_passes_through_few_files(dtype: str, most: int) -> None:
    """Of bytes, the one more decides whether they are pixels."""
    shown = run_python(WALK, dtype)
    assert 10 < len(shown.stdout.splitlines()) <= most, shown.stdout + shown.stderr


@pytest.mark.parametrize("name", ["einops", "onnx", "pygfx", "zarr"])
def test_a_missing_extra_is_named(name: str) -> None:
    done = run_python(f"import sys; sys.modules[{name!r}] = None; import wgslice.{name}")
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: wgslice.{name} needs the package {name}, the extra `{name}` of wgslice: "
        f"pip install {name}"
    )


def test_the_bootstrap_needs_the_standard_library_only() -> None:
    script = Path(__file__).parents[1] / "run"
    assert {imported.split(".")[0] for imported in imports(script)} <= set(sys.stdlib_module_names)


def test_files_and_functions_stay_small() -> None:
    for name, path in modules().items():
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 600, f"{name} has {len(text.splitlines())} lines"
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef):
                docstring = len((ast.get_docstring(node, clean=False) or "").splitlines())
                length = (node.end_lineno or 0) - node.lineno + 1 - docstring
                assert length <= 60, f"{name}.{node.name} has {length} lines without its docstring"


# Private interfaces of other packages: the one file that uses them, the version that it was written for, and
# what it uses. Where a version is another one, read that file again.
PRIVATE = {
    "wgpu": ("gpu.hosts.wgpu_native", ("0.32.",), "wgpu.backends.wgpu_native._api:libf"),
    "zarr": ("zarr", ("3.1.", "3.4."), "zarr.core.buffer.core:NDBuffer"),
    "einops": ("einops", ("0.8.",), "einops._backends:AbstractBackend"),
    "pygfx": ("pygfx", ("0.17.",), "pygfx.renderers.wgpu.engine.update:ensure_wgpu_object"),
}


@pytest.mark.parametrize(
    "package", ["wgpu", "zarr", "einops", pytest.param("pygfx", marks=pytest.mark.pygfx)]
)
def test_private_interfaces_are_of_the_version_they_were_read_in(package: str) -> None:
    user, known, used = PRIVATE[package]
    assert version(package).startswith(known)
    module, name = used.split(":")
    assert hasattr(import_module(module), name)
    private = (f"{package}.core", f"{package}.backends", f"{package}.renderers", f"{package}._")
    users = [name for name, path in modules().items() if any(i.startswith(private) for i in imports(path))]
    assert users == [user]


def test_private_attributes_of_wgpu_are_used_in_one_file() -> None:
    names = {  # of wgpu's objects
        *("_internal", "_device", "_create_adapter", "_call_soon_threadsafe", "_thread_event"),
        *("_wgpu_set_input", "_wgpu_set_error", "_map_state", "_poll", "_poller", "_release"),
    }
    users = set()
    for name, path in modules().items():
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and node.attr in names and name.startswith("gpu"):
                users.add(name)
    assert users == {"gpu.hosts.wgpu_native"}


@pytest.mark.parametrize("ours", [protocols.BufferUsage, protocols.TextureUsage])
def test_usages_are_wgpus(ours: type) -> None:
    theirs = getattr(wgpu, ours.__name__)
    names = [name for name in vars(ours) if name.isupper()]
    assert names
    for name in names:
        assert getattr(ours, name) == getattr(theirs, name)
    assert protocols.COMPUTE_STAGE == wgpu.ShaderStage.COMPUTE
