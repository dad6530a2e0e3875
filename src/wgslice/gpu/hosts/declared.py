"""Imports of wgpu-py's wgpu-native with C declarations that were parsed when this package was made.

wgpu-py lets cffi parse its header when it loads its library, which takes about half of a first slice's time;
cffi also parses each type that is named for the first time. The module of Python that cffi makes of the same
declarations loads in 10 ms. It is used only if nothing has loaded wgpu-py's library yet, and only in place of
the very text that it was made from; otherwise cffi parses that text.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

WGPU_VERSION = "0.32.0"
PARSING = "wgpu.backends.wgpu_native._ffi"  # wgpu-py's module that declares and loads wgpu-native
python_import = builtins.__import__


class ParsedDeclarations:
    """A context for imports of wgpu-native: an entry of `sys.meta_path` that finds one module, at most once.

    Does nothing if that module is there already, or if WGSLICE_HOST is `public`.
    """

    def __enter__(self) -> None:
        if PARSING not in sys.modules and os.environ.get("WGSLICE_HOST") != "public":
            sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Leave the list that Python asks for modules."""
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what Python finds otherwise, with another loader, or None for all other modules."""
        if name != PARSING:
            return None
        self.remove()
        spec = find_spec(name)
        known = getattr(sys.modules.get("wgpu"), "__version__", "") == WGPU_VERSION
        if known and spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = DeclaringLoader(name, spec.loader.path)
        return spec


class DeclaringLoader(SourceFileLoader):
    """Runs wgpu-py's module, except that `cffi.FFI` in it is Declared."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and leave in it the plain objects that it would have otherwise."""
        own = vars(module)
        own["__loader__"] = own["__spec__"].loader = SourceFileLoader(self.name, self.path)
        own["__builtins__"] = {**vars(builtins), "__import__": import_declared}
        code: Any = self.get_code(self.name)
        exec(code, own)
        own["__builtins__"] = vars(builtins)
        own["ffi"] = own["ffi"].ffi


def import_declared(name: str, *arguments: Any, **options: Any) -> Any:
    """Import as Python does, but for `cffi`, which is a namespace with Declared."""
    module = python_import(name, *arguments, **options)
    if name != "cffi":
        return module
    return SimpleNamespace(**{**vars(module), "FFI": Declared})


class Declared:
    """Stands in for a `cffi.FFI` until its declarations are known."""

    def __init__(self) -> None:
        self.ffi: Any = None

    def cdef(self, source: str) -> None:
        """Take the declarations of this package if they were made from this text; else let cffi parse it."""
        with suppress(Exception):  # such as a cffi that reads no modules of this format
            from hashlib import sha256

            from wgslice.gpu.hosts import declarations_0_32 as declarations

            if sha256(source.encode()).hexdigest() == declarations.SHA256:
                self.ffi = declarations.ffi
        if self.ffi is None:
            from cffi import FFI

            self.ffi = FFI()
            self.ffi.cdef(source)

    def set_source(self, *arguments: Any) -> None:
        """State how a module would be made of the declarations: of parsed ones there is one already."""
        if hasattr(self.ffi, "set_source"):
            self.ffi.set_source(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ffi, name)
