"""Link the modules of the kernels: `python wgsl/link.py` writes them to `wgsl/modules`.

A module is the file of its kernel, then the declarations of files in `shared` that it uses: WGSL takes any
order.
"""

from __future__ import annotations

import re
from pathlib import Path

from wgslice.plans.kernels import MASKING, OF_INDICES, OF_SIZED_WINDOWS, OF_WINDOWS, UNITS, Kernel
from wgslice.plans.steps import UNIT_GRIDS
from wgslice.shaders import entry_point, module_name

SOURCES = Path(__file__).parent
MODULES = SOURCES / "modules"

# A declaration of a file, below its comment. A function's name ends in a parenthesis, here and where it is
# called, since local variables may have the same name.
KEYWORDS = r"(?:struct|override|const|alias|var(?:<[^>]*>)?)"
DECLARATION = re.compile(
    rf"(?:^//.*\n)*^(?:@.* )?(?:fn (\w+\()|{KEYWORDS} (\w+)).*\n(?:[ )].*\n)*(?:}}\n)?", re.MULTILINE
)
USE = re.compile(r"(?<![.\w])[a-zA-Z_]\w*+(?! *:)\(?")


def shared_files(kernel: Kernel) -> tuple[str, ...]:
    """Return the shared files that a kernel may use; four of them declare different uniform blocks."""
    if kernel is Kernel.SLICE1:
        return ()  # complete in itself, as the specification
    if kernel in OF_SIZED_WINDOWS:
        return "common", "windows", "sized", "words", "blocks"
    if kernel in OF_WINDOWS:
        return "common", "windows", "insertions", "words", "blocks", "window_blocks"
    if kernel in OF_INDICES:
        return "common", "indexed", "words"
    return "common", "copy", "words", "blocks", "shifted"


def text_of(name: str) -> str:
    """Return the text of a file."""
    return (SOURCES / f"{name}.wgsl").read_text("utf-8")


def declarations(text: str) -> dict[str, str]:
    """Return the declarations of a file by their names, each with the comment above it."""
    return {found[1] or found[2]: found[0] for found in DECLARATION.finditer(text)}


def linked(kernel: Kernel, index_nbytes: int) -> str:
    """Return the module of a kernel. Indices of 8 bytes are loaded as two words at once."""
    own = text_of(entry_point(kernel))
    if kernel in UNITS:
        file, unit = UNITS[kernel]
        count = f"const units: u32 = {UNIT_GRIDS[kernel]}u;\n" if kernel in UNIT_GRIDS else ""
        own = f"// {kernel.value}: {file} in units of {unit}.\n\nalias Unit = {unit};\n{count}\n{own}"
    if index_nbytes == 8:
        own = f"alias IndexUnit = vec2<u32>;\n\n{own}"
    shared = declarations("\n".join(text_of(f"shared/{name}") for name in shared_files(kernel)))
    for name in declarations(own):
        shared.pop(name, None)
    unused, pending = set(shared), [own]
    while pending:
        names = USE.findall(re.sub("//.*", "", pending.pop()))
        found = unused & {*names, *(name.rstrip("(") for name in names)}
        unused -= found
        pending += [shared[name] for name in found]
    return "\n".join([own, *(text for name, text in shared.items() if name not in unused)])


def modules() -> dict[str, str]:
    """Return all modules by the names of their files."""
    return {
        f"{module_name(kernel, nbytes)}.wgsl": linked(kernel, nbytes)
        for kernel in Kernel
        for nbytes in ((4, 8) if kernel in OF_INDICES - MASKING else (4,))
    }


def main() -> None:
    """Write all modules, and remove those of kernels that are gone."""
    texts = modules()
    for path in MODULES.glob("*.wgsl"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (MODULES / name).write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
