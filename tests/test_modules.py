"""The text of the kernels: every module complete, nothing in it said twice, and as the host has it."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from changed_modules import check_clamped, clamp, clamped_module, storage_arrays, uses
from helpers import run_python
from reference.indexed import index_kernels
from reference.plans import copy_kernels
from reference.sized import sized_kernels
from reference.windows import window_kernels
from test_kernels import CONDITIONS

from wgsl import link
from wgslice.plans.facade import MAX_PIXEL_BLOCKS, PIXEL_BLOCKS
from wgslice.plans.kernels import INSERTING, LAST_WRITERS, OF_INDICES, OF_WINDOWS, SCATTERING, Kernel
from wgslice.plans.steps import GRIDS
from wgslice.shaders import about, block_dtype, entry_point, kernel_module, module_text


def texts(folder: Path) -> dict[str, str]:
    """The kernels' files in a folder by their names."""
    return {path.stem: path.read_text("utf-8") for path in folder.glob("*.wgsl")}


ENTRY_POINT = re.compile(r"@compute @workgroup_size\(workgroup_size\)\s+fn (\w+)")
KERNELS, SHARED = texts(link.SOURCES), texts(link.SOURCES / "shared")
TEXTS = {**KERNELS, **SHARED}


def declared(text: str) -> list[str]:
    """The functions and structs of a file, and what stands in a module by a name."""
    return re.findall(
        r"^(?:@group\(\d\) @binding\(\d\) )?(?:fn|struct|override|const|var(?:<[^>]*>)?) (\w+)",
        re.sub(r"@compute.*\n", "", text),
        re.MULTILINE,
    )


def test_enum_files_entry_points_and_references_have_one_name() -> None:
    names = {kernel.value for kernel in Kernel}
    assert set(KERNELS) == {entry_point(kernel) for kernel in Kernel}
    assert not any("@compute" in text for text in SHARED.values())
    assert not set(KERNELS) & set(SHARED)
    implementations = {**copy_kernels, **window_kernels, **index_kernels, **sized_kernels}
    assert {function.__name__ for function in implementations.values()} == names
    assert {*CONDITIONS, *window_kernels, *index_kernels, *sized_kernels} == set(Kernel)
    for kernel in Kernel:
        assert kernel.name == kernel.value.upper()
        assert entry_point(kernel) == link.VARIANTS.get(kernel.value, (kernel.value,))[0]
        assert ENTRY_POINT.findall(TEXTS[entry_point(kernel)]) == [entry_point(kernel)]
        assert ENTRY_POINT.findall(kernel_module(kernel)) == [entry_point(kernel)]
        assert implementations[kernel].__name__ == kernel.value


def test_modules_are_what_the_linker_writes(tmp_path: Path) -> None:
    """In a wheel they were linked when it was built, in a checkout each is at its first use."""
    link.write(tmp_path)
    written, known = texts(tmp_path), json.loads((tmp_path / "modules.json").read_text("utf-8"))
    assert set(written) == set(known["modules"]) == set(link.modules())
    for name, text in written.items():
        assert module_text(name) == text
        assert about(name) == known["modules"][name]
    for name, struct in known["structs"].items():
        dtype = block_dtype(name)
        assert dtype.fields is not None
        offsets = [(field, dtype.fields[field][1]) for field in dtype.names or ()]
        assert offsets == [(field, offset) for field, offset, *_ in struct["fields"]]
        assert dtype.itemsize == struct["nbytes"]


def test_shared_files_are_listed_and_declare_each_name_once() -> None:
    assert set(link.SHARED) == set(SHARED)
    counts = Counter(name for file in SHARED for name in link.declarations(f"shared/{file}"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_an_edited_source_is_what_runs(tmp_path: Path) -> None:
    """A checkout has no linked module: each process links the sources that it finds."""
    assert not list(link.SOURCES.rglob("modules.json"))
    copy = tmp_path / "wgsl"
    shutil.copytree(link.SOURCES, copy)
    edited = copy / "shared" / "words.wgsl"
    edited.write_text(edited.read_text("utf-8").replace("fn write_subword(", "// edited\nfn write_subword("))
    code = "import link; print(link.linked('scatter_subword').count('// edited'))"
    assert run_python(code, cwd=copy).stdout == "1\n"


def test_every_shared_declaration_has_several_users() -> None:
    used = {entry_point(kernel): set(declared(kernel_module(kernel))) for kernel in Kernel}
    counts = Counter(name for names in used.values() for name in names)
    single = {name for text in SHARED.values() for name in declared(text) if counts[name] < 2}
    assert not single, f"{single} belong into the file of the one kernel that has them"


def test_no_function_and_no_struct_is_written_twice() -> None:
    """Apart from the specification, which is complete in itself."""
    pattern = re.compile(r"^(?:fn|struct) (\w+)", re.MULTILINE)
    counts = Counter(
        name for file, text in TEXTS.items() if file != "slice1" for name in pattern.findall(text)
    )
    assert len(counts) >= 30
    assert [name for name, count in counts.items() if count > 1] == []


def code_lines(text: str) -> list[str]:
    """Lines that are not blank, without comments and lone brackets."""
    lines = (re.sub(r"\s*//.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if re.search(r"\w", line)]


def test_no_six_lines_stand_in_two_files() -> None:
    struct = re.search(r"^struct Copy \{.*?^\}", TEXTS["slice1"], re.DOTALL | re.MULTILINE)
    assert struct is not None
    seen: dict[tuple[str, ...], str] = {}
    for name, text in TEXTS.items():
        lines = code_lines(text.replace(struct[0], "") if name == "slice1" else text)
        for run in {tuple(lines[start : start + 6]) for start in range(len(lines) - 5)}:
            assert seen.setdefault(run, name) == name, f"{name} and {seen[run]}: {run}"
    assert len(seen) > 300


def bindings_of(kernel: Kernel) -> str:
    """The uniform block, source and target, tables, winner indices; a last-writer pass reads no source."""
    source = "" if kernel in LAST_WRITERS or kernel is Kernel.LAST_WRITER_INDICES else "1"
    if kernel in OF_INDICES:
        return f"0{source}23" + "4" * (kernel in SCATTERING)
    return f"0{source}2" + "34" * (kernel in OF_WINDOWS) + "5" * (kernel in INSERTING)


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_a_module_declares_everything_once(kernel: Kernel) -> None:
    module = kernel_module(kernel)
    names = declared(module)
    assert entry_point(kernel) in re.findall(r"^fn (\w+)", module, re.MULTILINE)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    bindings = re.findall(r"@binding\((\d)\)", module)
    assert sorted(bindings) == list(bindings_of(kernel))


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_everything_that_a_module_declares_is_used(kernel: Kernel) -> None:
    code = "\n".join(code_lines(kernel_module(kernel)))
    for name in set(declared(code)) - {entry_point(kernel)}:
        assert len(re.findall(rf"\b{name}\b", code)) > 1, name


def test_every_field_and_override_has_its_unit() -> None:
    fields = 0
    for name, text in TEXTS.items():
        for body in re.findall(r"^struct \w+ \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
            for line in body.splitlines():
                assert re.fullmatch(r"    \S.*,\s+// \S.*", line), f"{name}: {line}"
                fields += 1
        for line in re.findall(r"^override .*", text, re.MULTILINE):
            assert re.fullmatch(r"override \w+: \w+ = (-?\w+; +// \S.*|.* .*;)", line), f"{name}: {line}"
    assert fields >= 80


def test_files_begin_with_their_names_and_kernels_mappings() -> None:
    for name, text in TEXTS.items():
        assert text.startswith(f"// {name}: "), name
        comment = text[: text.index("\n\n")]
        assert (" -> " in comment) or name not in KERNELS, name


def test_files_stay_small() -> None:
    for name, text in TEXTS.items():
        assert len(text.splitlines()) <= 240, name  # of which a uniform block takes up to 50


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_every_index_is_clamped(kernel: Kernel) -> None:
    """So that what runs on clamped modules proves something."""
    original, clamped = kernel_module(kernel), clamped_module(kernel)
    arrays = storage_arrays(original)
    assert len(arrays) == len(bindings_of(kernel)) - 1
    for name in arrays:
        indices = len(re.findall(rf"\b{name}\[", re.sub(r"//.*", "", original)))
        assert indices >= 1
        assert clamped.count(f"arrayLength(&{name}) - 1u)]") == indices == len(uses(clamped, name))
    with pytest.raises(AssertionError, match="is not clamped"):
        check_clamped(original)


WORDS = """
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("target_words[0] = 1u;", "source_words is never indexed"),
        (
            "target_words[0] = source_words[1]; let all = &source_words;",
            "source_words is used without an index",
        ),
        ("target_words[source_words[1] = 2u;", "never closed"),
    ],
)
def test_what_cannot_be_clamped_is_refused(body: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        clamp(f"{WORDS}\nfn f() {{ {body} }}")


def test_nested_indices_are_clamped() -> None:
    text = clamp(f"{WORDS}\nfn f() {{ target_words[source_words[a[1] + 2u]] = source_words[3]; }}")
    assert text.count("min(") == 3
    assert "target_words[min(source_words[min(a[1] + 2u, arrayLength(&source_words) - 1u)], arrayL" in text


def test_the_kernel_of_pixels_has_room_for_what_a_group_reads() -> None:
    assert f"window: array<u32, {4 * MAX_PIXEL_BLOCKS}>;" in kernel_module(Kernel.PIXELS)
    assert kernel_module(Kernel.PIXELS).count("    write_group_block(group, ") == max(PIXEL_BLOCKS.values())


@pytest.mark.parametrize("kernel", GRIDS, ids=lambda kernel: kernel.value)
def test_kernel_on_a_grid_has_the_units_of_its_plan(kernel: Kernel) -> None:
    assert f"const units: u32 = {GRIDS[kernel]}u;" in kernel_module(kernel)
