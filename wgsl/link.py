"""Link the modules of the kernels: `python wgsl/link.py FOLDER` writes all of them, and `modules.json`.

A module is the file of its kernel, then the declarations of files in `shared` that it uses: WGSL takes any
order. `wgsl/build.py` links them for a wheel; in a checkout they are linked when they are first asked for, so
that an edited source is what runs. This needs Python alone.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

SOURCES = Path(__file__).parent

# Shared files in the order in which a module has their declarations. No two of them declare one name; where a
# kernel's file declares a name of theirs, the module has that.
SHARED = (
    *("common", "copy", "windows", "insertions", "sized", "indexed"),
    *("words", "blocks", "shifted", "window_blocks"),
)

# Kernels that share a file: WGSL's type of what an invocation copies at a time, and how many of these.
VARIANTS = {
    "word_grid": ("unit_grid", "u32", 8),
    "wide_grid": ("unit_grid", "vec4<u32>", 4),
    "rows": ("rows", "u32", 0),
    "wide_rows": ("rows", "vec4<u32>", 0),
    "gather": ("gather", "u32", 0),
    "pair_gather": ("gather", "vec2<u32>", 0),
    "wide_gather": ("gather", "vec4<u32>", 0),
}
WIDE_INDICES = "_64"  # ends the names of modules that load the two words of an index at once
READER = "find_in_table("  # what modules of which there are two read indices by

# A declaration of a file, below its comment. A function's name ends in a parenthesis, here and where it is
# called, since local variables may have the same name.
KEYWORDS = r"(?:struct|override|const|alias|var(?:<[^>]*>)?)"
DECLARATION = re.compile(
    rf"(?:^//.*\n)*^(?:@.* )?(?:fn (\w+\()|{KEYWORDS} (\w+)).*\n(?:[ )].*\n)*(?:}}\n)?", re.MULTILINE
)
USE = re.compile(r"(?<![.\w])[a-zA-Z_]\w*+(?! *:)\(?")
LOCAL = re.compile(r"(?:\b(?:let|var) |\(|, )(\w+)(?=:)|\b(?:let|var) (\w+)")
CONSTANT = re.compile(r"^override (\w+): \w+ = -?\w+;", re.MULTILINE)
UNIFORM = re.compile(r"var<uniform> \w+: (\w+);")
ARRAY = re.compile(r"array<(.*), (\d+)>")

Declarations: TypeAlias = dict[str, str]  # texts, each with the comment above it, by their names


@cache
def text_of(name: str) -> str:
    """Return the text of a file."""
    return (SOURCES / f"{name}.wgsl").read_text("utf-8")


@cache
def declarations(name: str) -> Declarations:
    """Return the declarations of a file."""
    return declared(text_of(name))


def declared(text: str) -> Declarations:
    """Return the declarations of a text."""
    return {found[1] or found[2]: found[0] for found in DECLARATION.finditer(text)}


def kernel_text(kernel: str) -> str:
    """Return the text of a kernel's file, after what the kernel declares for itself."""
    if kernel not in VARIANTS:
        return text_of(kernel)
    file, unit, count = VARIANTS[kernel]
    constant = f"const units: u32 = {count}u;\n" if count else ""
    return f"// {kernel}: {file} in units of {unit}.\n\nalias Unit = {unit};\n{constant}\n{text_of(file)}"


def reached(text: str, shared: Declarations) -> set[str]:
    """Return the names of the declarations that a text uses, itself or by another one."""
    unused, pending = set(shared), [text]
    while pending:
        text = re.sub("//.*", "", pending.pop())
        local = {first or second for first, second in LOCAL.findall(text)}
        names = set(USE.findall(text)) - local
        found = unused & {*names, *(name.rstrip("(") for name in names)}
        unused -= found
        pending += [shared[name] for name in found]
    return set(shared) - unused


@cache
def linked(module: str) -> str:
    """Return a module. Indices of 8 bytes are loaded as two words at once."""
    own = kernel_text(module.removesuffix(WIDE_INDICES))
    if module.endswith(WIDE_INDICES):
        own = f"alias IndexUnit = vec2<u32>;\n\n{own}"
    shared: Declarations = {}
    for file in SHARED:
        shared |= declarations(f"shared/{file}")
    for name in declared(own):
        shared.pop(name, None)
    used = reached(own, shared)
    return "\n".join([own, *(text for name, text in shared.items() if name in used)])


def kernels() -> list[str]:
    """Return the names of the kernels' files."""
    return sorted(path.stem for path in SOURCES.glob("*.wgsl"))


def modules() -> dict[str, str]:
    """Return all modules by their names."""
    several = {file for file, *_ in VARIANTS.values()}
    names = {*kernels(), *VARIANTS} - (several - set(VARIANTS))
    found = {kernel: linked(kernel) for kernel in sorted(names)}
    reading = [f"{kernel}{WIDE_INDICES}" for kernel, text in found.items() if READER in text]
    return found | {module: linked(module) for module in reading}


def about(module: str) -> dict[str, Any]:
    """Return the entry point of a module, and the names of the constants of its pipelines."""
    kernel = module.removesuffix(WIDE_INDICES)
    entry, *_ = VARIANTS.get(kernel, (kernel,))
    return {"entry": entry, "constants": CONSTANT.findall(linked(module))}


@cache
def structs() -> dict[str, Any]:
    """Return the uniform blocks and their parts: bytes, and (name, offset, type, shape) of each field."""
    found: dict[str, Any] = {}
    blocks = {*UNIFORM.findall("".join(map(text_of, kernels())))}
    for file in SHARED:
        given = declarations(f"shared/{file}")
        for struct in sorted(blocks & given.keys()):
            describe(struct, given, found)
    return found


def describe(struct: str, given: Declarations, found: dict[str, Any]) -> None:
    """Add a struct of u32, vec4<u32>, arrays of these, and structs that it holds.

    WGSL aligns vectors, and structs and elements of arrays in uniform blocks, to 16 bytes.
    """
    fields, place, alignment = [], 0, 4
    for line in given[struct].partition("{\n")[2].partition("}")[0].splitlines():
        name, type_ = line.partition("//")[0].strip(" ,").split(": ")
        shape = []
        if array := ARRAY.fullmatch(type_):
            type_, shape = array[1], [int(array[2])]
        if type_ == "vec4<u32>":
            type_, shape = "u32", [*shape, 4]
        if type_ != "u32":
            describe(type_, given, found)
        own = 4 if type_ == "u32" and not shape else 16
        place = -(-place // own) * own
        fields.append([name, place, type_, shape])
        alignment = max(alignment, own)
        place += prod(shape) * (4 if type_ == "u32" else found[type_]["nbytes"])
    found[struct] = {"nbytes": -(-place // alignment) * alignment, "fields": fields}


def write(folder: Path) -> None:
    """Write all modules, and what is known of them, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in modules().items():
        (folder / f"{name}.wgsl").write_text(text, "utf-8", newline="\n")
    data = {"structs": structs(), "modules": {name: about(name) for name in modules()}}
    (folder / "modules.json").write_text(json.dumps(data) + "\n", "utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
