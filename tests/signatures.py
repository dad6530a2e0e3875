"""Signatures of everything public, kept in `signatures.txt`, which may only grow.

`python tests/signatures.py` keeps those that are new, and refuses to lose any.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("signatures.txt")
MODULES = [
    "wgslice",
    *(f"wgslice.{name}" for name in ("array_api", "dialects", "directml", "einops", "onnx", "zarr")),
]


def signature_of(function: Any) -> str:
    """The parameters without annotations; nothing of what is not called."""
    if isinstance(function, EnumMeta):  # whose signature is another one in each version of Python
        return "(value)"
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def is_documented(value: Any) -> bool:
    """Whether a docstring has sections, as those have that people call."""
    return re.search(r"^-{4,}$", inspect.getdoc(value) or "", re.MULTILINE) is not None


def members(name: str, value: type) -> Iterator[tuple[str, Any]]:
    """A class, if it says its parameters, its methods, and its attributes, which are None."""
    docstring = inspect.getdoc(value) or ""
    of_directml = value.__module__.startswith("wgslice.directml")  # with the names of Microsoft's page
    yield name, value if of_directml or "\nParameters\n" in docstring else None
    for member in sorted(dir(value)):
        found = getattr(value, member)
        is_own = any(member in vars(each) for each in value.__mro__ if each.__module__.startswith("wgslice"))
        if not is_own or (member.startswith("_") and member != "__call__"):
            continue
        if callable(found) and (of_directml or is_documented(found)):
            yield f"{name}.{member}", found
        elif of_directml or isinstance(found, property):
            yield f"{name}.{member}", None
    attributes = docstring.partition("\nAttributes\n")[2]
    for names in re.findall(r"^(\w+(?:, \w+)*) :", attributes, re.MULTILINE):
        yield from ((f"{name}.{each}", None) for each in names.split(", "))


def public() -> dict[str, Any]:
    """What people call, by name; None for attributes and constants."""
    found: dict[str, Any] = {}
    for module in MODULES:
        loaded = import_module(module)
        for name in sorted(getattr(loaded, "__all__", ())):
            value = getattr(loaded, name)
            if inspect.isclass(value):
                found.update(members(f"{module}.{name}", value))
            elif not inspect.ismodule(value):
                found[f"{module}.{name}"] = value if callable(value) else None
    return found


def kept() -> dict[str, str]:
    """What the file has."""
    lines = [line for line in KEPT.read_text("utf-8").splitlines() if not line.startswith("#")]
    parts = [line.partition("(") for line in lines]
    return {name: bracket + rest for name, bracket, rest in parts}


def parameters(signature: str) -> tuple[list[str], list[str]]:
    """The parameters that may be given by position, and those by name only, each with its default."""
    found, depth = [""], 0
    for character in signature[1:-1]:
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    names = [each.strip() for each in found if each.strip()]
    while names and names[0] in ("self", "/"):  # which no call gives
        del names[0]
    stars = [number for number, each in enumerate(names) if each.startswith("*") and each[:2] != "**"]
    first = stars[0] if stars else len(names)
    return names[:first], names[first:]


def lost(before: str, now: str) -> bool:
    """Whether a call that fits the signature before may not fit it now."""
    (by_position, by_name), (places, names) = parameters(before), parameters(now)
    added = [each for each in [*places[len(by_position) :], *names] if each not in by_name]
    optional = all("=" in each or each.startswith("*") or each == "/" for each in added)
    return places[: len(by_position)] != by_position or not {*by_name} <= {*places, *names} or not optional


if __name__ == "__main__":
    import wgslice

    header = (
        f"# Everything public of wgslice {wgslice.__version__}: later versions keep it, and may have more."
    )
    KEPT.write_text(
        "\n".join([header, *(name + signature_of(each) for name, each in public().items())]) + "\n", "utf-8"
    )
