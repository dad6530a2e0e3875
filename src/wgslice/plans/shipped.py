"""What work costs on adapters, as far as it was measured or can be said: used until it is measured there.

The files say where the figures are from. Those of a GPU are made of what a compiler says of the kernels.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from wgslice.plans.costs import Costs, Work

__all__ = ["shipped", "shipped_for"]


@cache
def shipped(name: str) -> Costs:
    """The figures of a file."""
    content = json.loads((files("wgslice.plans") / "figures" / f"{name}.json").read_text("utf-8"))
    figures = content["costs"]
    works = {work: Work(**costs) for work, costs in figures.pop("works").items()}
    return Costs(f"shipped figures of {content['about']}", **figures, works=works)


def shipped_for(name: str, backend: str, driver: str, *, software: bool) -> Costs:
    """The figures that are nearest to an adapter's.

    lavapipe's way to memory changed at some release between Mesa 22.3 and 25.0, which were measured; what is
    between them goes by the older one.
    """
    if not software:
        return shipped("gpus")
    if "swiftshader" in name.lower():
        return shipped("swiftshader")
    if backend == "OpenGL":
        return shipped("llvmpipe-opengl")
    version = re.search(r"Mesa (\d+)", driver)
    is_old = version is not None and int(version[1]) < 25
    return shipped("lavapipe-22-3" if is_old else "lavapipe-25-0")
