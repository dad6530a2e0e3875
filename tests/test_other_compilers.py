"""What compilers of other hosts refuse: rules over the text of modules, and Tint on every pipeline."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from matrix import NODE
from test_javascript import run_node
from trials import pipelines

from bench.compilers.report import NPM
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module

# Patterns of text that a compiler refuses, with who does and where that was seen.
REFUSED = {
    r"\bvec\d(<\w+>)?\(\)": "naga's HLSL defines the zero of a vector twice: FXC, wgpu-native 29.0.1",
    r"\bfn (read|write|texture|sample)\b": "naga 29 refuses these names of functions",
    r"var<workgroup> \w+: array<[^;]*[-+*/][^;]*>;": "naga 29 panics at an unnamed override expression",
    r"\benable\b": "naga 29 has no subgroups, SwiftShader no 16-bit floats",
    r"@size\(": "OpenGL on llvmpipe places padded structs of arrays wrongly",
    r": ptr<storage": "WGSL's parameters have no such pointers, but for an extension of the language",
}


def code_of(module: str) -> str:
    """A module without comments."""
    return re.sub("//.*", "", module)


def written_components(module: str) -> list[str]:
    """Assignments to a component of a vector, in registers or workgroup memory, by an index that varies.

    FXC keeps such vectors in registers, and unrolls the loop around the assignment or refuses it (X3511).
    """
    buffers = set(re.findall(r"var<storage[^>]*> (\w+)", module))
    arrays = set(re.findall(r"\bvar(?:<\w+>)? (\w+)(?:: | = )array<", module))
    found = []
    for target in re.findall(r"^\s*([a-z_]\w*[\w.\[\]+*/% ]*?) [-+*/%&|^]?= ", module, re.MULTILINE):
        name, *rest = re.split(r"(?=[.\[])", target, maxsplit=1)
        accesses = "".join(rest)
        varying = [
            index for index in re.findall(r"\[([^\]]*)\]", accesses) if not re.fullmatch(r"\d+u?", index)
        ]
        allowed = 0 if name not in arrays else 1
        if name not in buffers and len(varying) > allowed:
            found.append(target)
    return found


def uniform_components(module: str) -> list[str]:
    """Components of uniform vectors at an index that varies.

    From Tint's HLSL, FXC compares such an index with those of all vectors of the block, and takes seconds.
    """
    vectors = "|".join(re.findall(r"^ +(\w+): vec4<u32>,", module, re.MULTILINE))
    arrays = "|".join(re.findall(r"^ +(\w+): array<vec4<u32>, \d+>,", module, re.MULTILINE))
    component = rf"\bcopy\.(?:\w+\[[^\]]*\]\.)?(?:(?:{vectors})|(?:{arrays})\[[^\]]*\])\[[^\]]*\]"
    return [found for found in re.findall(component, module) if not re.search(r"\[\d+u?\]$", found)]


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_no_module_has_what_a_compiler_refuses(kernel: Kernel) -> None:
    code = code_of(kernel_module(kernel))
    assert {
        found[0]: why for pattern, why in REFUSED.items() for found in [re.search(pattern, code)] if found
    } == {}
    assert written_components(code) == []
    assert uniform_components(code) == []


def test_the_rules_find_what_was_refused() -> None:
    assert written_components("    position.entries[t] += distance;\n    v[0u] = 1u;\n    p.x = 2u;") == [
        "position.entries[t]"
    ]
    module = "var<workgroup> tile: array<vec4<u32>, 4>;\n  tile[k] = v;\n  tile[k][i] = 1u;\n"
    assert written_components(module) == ["tile[k][i]"]
    assert written_components("var<storage, read_write> t: array<vec4<u32>>;\n  t[k][i] = 1u;\n") == []
    block = (
        "    steps: vec4<u32>, // s\n    sizes: array<vec4<u32>, 2>,\n    dimensions: array<Dimension, 8>,\n"
    )
    found = "copy.steps[t]", "copy.sizes[d / 4u][d % 4u]", "copy.dimensions[d].steps[t]"
    assert uniform_components(f"{block} {' + '.join(found)}; copy.steps[1u]; copy.sizes[d]") == [*found]
    texts = "vec4<u32>()", "fn read(", "var<workgroup> t: array<u32, 2 * n>;", "enable f16;", "@size(16)"
    assert all(any(re.search(pattern, text) for pattern in REFUSED) for text in texts)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="Node.js is missing: install Node.js 20 or newer, with npm")
def test_tint_takes_every_pipeline(tmp_path: Path) -> None:
    """With the constants that plans give them, also in branches that these never take."""
    calls = [
        {
            "name": f"{call.entry_point} {dict(call.constants)}",
            "code": call.module,
            "entryPoint": call.entry_point,
            "constants": dict(call.constants),
            "types": call.types,
        }
        for call in pipelines()
    ]
    assert len(calls) > 1000
    module = "override n: u32;\n@compute @workgroup_size(1) fn main() { if (n < 4u) { _ = 1u << (8u * n); } }"
    planted = {"name": "planted", "code": module, "entryPoint": "main", "constants": {"n": 8}, "types": []}
    (tmp_path / "calls.json").write_text(json.dumps([*calls, planted]), "utf-8")
    script = Path(__file__).with_name("tint.mjs")
    refused = json.loads(run_node(script, str(NPM), str(tmp_path / "calls.json")))
    assert refused.keys() == {"planted"}, refused
