"""Hosts of WebGPU: each offers the same names, with the same signatures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import run_python

import wgslice
from wgslice.gpu import browser, native

# What the package imports from its host.
OFFERED = sorted(
    {
        alias.name
        for path in Path(wgslice.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "wgslice.gpu.host"
        for alias in node.names
    }
)


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    """Name, kind and default of each parameter."""
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


def test_hosts_offer_the_same_names() -> None:
    assert len(OFFERED) > 30
    assert not [name for host in (browser, native) for name in OFFERED if not hasattr(host, name)]


@pytest.mark.parametrize("name", OFFERED)
def test_hosts_offer_the_same_signatures(name: str) -> None:
    ours, theirs = getattr(browser, name), getattr(native, name)
    assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)
    assert callable(ours) == callable(theirs)
    if callable(ours):
        assert parameters(ours) == parameters(theirs)


def test_the_browsers_host_imports_without_a_browser() -> None:
    program = "import sys, wgslice.gpu.browser; print({'js', 'pyodide', 'wgpu'} & sys.modules.keys())"
    done = run_python(program)
    assert done.stdout == "set()\n", done.stderr
