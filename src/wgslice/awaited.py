"""Other packages awaited: what is to be done once a program imports one of their modules, and not before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["once_imported"]


def once_imported(name: str, follow: Callable[[], None]) -> None:
    """Call `follow` after a module is imported, which nobody does for its sake; at once where it is."""
    if name in sys.modules:
        follow()
    else:
        sys.meta_path.insert(0, Awaiting(name, follow))


class Awaiting(MetaPathFinder):
    """Finds one module where it is, and has something follow when it is executed."""

    def __init__(self, name: str, follow: Callable[[], None]) -> None:
        self.name = name
        self.follow = follow

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the awaited module is, or None for all others."""
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader, execute = spec.loader, spec.loader.exec_module

            def execute_and_follow(module: ModuleType) -> None:
                execute(module)
                self.follow()

            vars(loader)["exec_module"] = execute_and_follow  # of this object, made for this module
        return spec
