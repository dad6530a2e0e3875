"""Faults of shader compilers that kernels avoid: a rule over the modules for each, with where it was seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from test_modules import ENTRY_POINT, code_lines

from wgsl import link
from wgslice.plans.kernels import Kernel
from wgslice.shaders import entry_point, kernel_module, module_text

MODULES = {name: module_text(name) for name in link.modules()}
ENDING = {  # loops in loops after a return that end on OpenGL of Mesa 26.1
    "for (; place <= last; place++) {",
    "for (var i = 0u; i < elements_per_word(); i++) {",
    "for (var i = 0u; i < per_word; i++) {",
}
LOOPS = r"\b(?:for|while) \("


class Rule(NamedTuple):
    """What no module may have."""

    source: str  # the compiler, and what it does
    find: Callable[[str], list[str]]  # every place in a module that breaks the rule
    broken: str  # a text that breaks it


def code_of(module: str) -> str:
    """A module without comments."""
    return re.sub(" *//.*", "", module)


def functions(module: str) -> dict[str, str]:
    """The functions of a module by their names, without comments."""
    declared = link.declared(code_of(module))
    return {name.rstrip("("): text for name, text in declared.items() if name.endswith("(")}


def entry_text(module: str) -> str:
    """The entry point of a module."""
    (name,) = ENTRY_POINT.findall(module)
    return functions(module)[name]


def loops_in_loops_after_a_return(module: str) -> list[str]:
    """Nested loops of the entry point behind the first return that some invocations take."""
    _, found, rest = entry_text(module).partition("return;")
    if not found:
        return []
    nested, open_loops = [], list[int]()
    for line in rest.splitlines():
        indent = len(line) - len(line.lstrip())
        while open_loops and line.strip() and indent <= open_loops[-1]:
            open_loops.pop()
        if re.search(LOOPS, line):
            nested += [line.strip()] if open_loops and line.strip() not in ENDING else []
            open_loops.append(indent)
    return nested


def written_components(module: str) -> list[str]:
    """Writes to a component, at an index that varies, of a vector that is a variable of a function."""
    found = []
    for text in functions(module).values():
        vectors = re.findall(r"\bvar (\w+)(?:: vec\d<u32>| = vec\d)", text)
        for name in vectors:
            found += re.findall(rf"^ *{name}\[[^\]]*[a-z_]\w*[^\]]*\] [|&^+]?=.*", text, re.MULTILINE)
    return found


def counts_beyond_a_word(module: str) -> list[str]:
    """Masks of a constant number of bits, above 32 for wide elements, and divisors that are 0 for these."""
    if re.search(r"override element_bytes: .* // bytes per element: 1 or 2", module):
        return []
    found, text = re.findall(r"(?<!max\()4u / \w+_bytes\b", code_of(module)), entry_text(module)
    if "extractBits(0xffffffffu, 0u" in text:
        found += re.findall(r"(?<!min\()8u \* \w+_bytes\b", text)
    return found


def matches(pattern: str) -> Callable[[str], list[str]]:
    """A rule that no module matches a pattern."""
    return lambda module: re.findall(pattern, code_of(module), re.MULTILINE)


def in_entry_point(body: str) -> str:
    """A module with an entry point alone."""
    return f"@compute @workgroup_size(workgroup_size)\nfn f(own: Invocation) {{\n{body}\n}}\n"


RULES = {
    "loops in loops after a return": Rule(
        "OpenGL of Mesa 26.1 never ends them: ceedf0aa",
        loops_in_loops_after_a_return,
        in_entry_point("    if (a) { return; }\n    while (b) {\n        while (c) { d(); }\n    }"),
    ),
    "a vector's component written at an index that varies": Rule(
        "FXC cannot unroll it: error X3511 after 11 to 32 s a pipeline",
        written_components,
        "fn f(i: u32) {\n    var value = vec4(0u);\n    value[i % 4u] |= 1u;\n}\n",
    ),
    "a component of a uniform vector at an index that varies": Rule(
        "FXC takes seconds; dimensions are structs, in an array",
        matches(r"copy\.(?!dimensions\b|masks\b)\w+\[[^\]]*[a-z]\w*\]"),
        "fn f(t: u32) -> u32 { return copy.extents[t]; }",
    ),
    "two words in a vector by a doubled index": Rule(
        "FXC loses `pair` in `(2 * pair + 1) % 4`: 3b1a0a24",
        matches(r"\(2u \* \w+ \+ 1u\) % 4u"),
        "let high = held[(2u * pair + 1u) % 4u];",
    ),
    "counts of bits beyond a word": Rule(
        "Tint evaluates constants in dead branches too, and refuses extractBits(x, 0u, 64u) and % 0",
        counts_beyond_a_word,
        in_entry_point("    let mask = extractBits(0xffffffffu, 0u, 8u * element_bytes);"),
    ),
    "workgroup arrays without a named size": Rule(
        "naga 29 panics at an expression, and zeroes arrays in one invocation on Metal, D3D12 and OpenGL "
        "(wgpu issues 4592 and 10314): test_device.py evaluates the sizes that have these names",
        matches(r"var<workgroup> \w+: array<[^,]*, (?!tile_words>|tile_vectors>).*"),
        "var<workgroup> tile: array<u32, SIDE * SIDE>;",
    ),
    "what some implementation refuses": Rule(
        "naga and Tint: pointers to storage as parameters, assigned swizzles, extensions",
        matches(r"ptr<storage|^ *\w+\.[xyzwrgba]{2,4} [-+|&^*]?= |^enable "),
        "fn f() {\n    value.xy = other;\n}\n",
    ),
    "a barrier after a return": Rule(
        "WGSL refuses it where not all invocations of a workgroup return, and FXC where it cannot prove it",
        matches(r"\breturn;(?:(?!^\})[\s\S])*workgroupBarrier"),
        "fn f() {\n    if (a) {\n        return;\n    }\n    workgroupBarrier();\n}\n",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_no_module_has_what_a_compiler_gets_wrong(rule: str) -> None:
    broken = {name: found for name, text in MODULES.items() if (found := RULES[rule].find(text))}
    assert broken == {}, RULES[rule].source


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_it_forbids(rule: str) -> None:
    assert RULES[rule].find(RULES[rule].broken) != []


def test_every_function_is_seen() -> None:
    for name, text in MODULES.items():
        assert len(functions(text)) == len(re.findall(r"^fn ", text, re.MULTILINE)), name
    assert len(MODULES) >= len(Kernel)


@pytest.mark.parametrize("kernel", [k for k in Kernel if k is not Kernel.SLICE1], ids=lambda k: k.value)
def test_only_entry_points_see_the_grid(kernel: Kernel) -> None:
    """A struct of built-in values that reaches a function has a wrong grid on D3D12."""
    code = "\n".join(code_lines(kernel_module(kernel)))
    assert re.findall(r"fn (\w+)\(.*\bInvocation\b", code) == [entry_point(kernel)]
    assert re.findall(r"\bown\b(?!\.(?:group|groups|index)\b)", code) == ["own"]


COUNTED_BY_UNIFORMS = {  # loops that no driver has been seen to compile again
    Kernel.LAST_WRITER_ROWS: ["k < copy.each"],
}


@pytest.mark.parametrize("kernel", list(Kernel))
def test_no_branch_depends_on_uniforms_alone(kernel: Kernel) -> None:
    """lavapipe of Mesa 22.3 puts their values into the code, and so compiles a kernel at each dispatch."""
    text = re.sub(r"//.*", "", kernel_module(kernel))
    constants = set(re.findall(r"(?:const|override) (\w+)", text))
    counters = set(re.findall(r"for \(var (\w+) = \d+u;", text))
    branches = re.findall(r"for \([^;]*; ([^;]*);|(?:if|while) \((.*)\) \{", text)
    assert branches
    found = []
    for condition in ("".join(each) for each in branches):
        others = re.findall(r"\b[a-z]\w*", re.sub(r"copy(\.\w+)+", "", condition))
        if "copy." in condition and constants | counters >= set(others):
            found.append(condition)
    assert found == COUNTED_BY_UNIFORMS.get(kernel, [])
