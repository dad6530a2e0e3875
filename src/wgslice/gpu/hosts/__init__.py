"""Hosts: what offers WebGPU's API to this package. Each is an object, and several exist in one process.

`webgpu` uses the public API of wgpu-py, which wgpudawn and, in a browser, `navigator` have too; `wgpu_native`
overrides single calls of it for the versions of wgpu that are known exactly.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from itertools import compress
from typing import Any

from wgslice.errors import NoAdapterError
from wgslice.gpu.hosts.webgpu import WebGPU

VARIABLE = "WGSLICE_HOST"
DAWN = "wgpudawn"  # the package


@cache
def default_host() -> WebGPU:
    """Return the host that `import wgpu` gives, in a browser the browser's."""
    if sys.platform == "emscripten":
        from wgslice.gpu.hosts import navigator

        return WebGPU("browser", navigator)
    rule = "unset, or 'public' to use no names of wgpu that are private"
    by_public_names = setting(VARIABLE, "", "|public", rule)
    import wgpu

    if wgpu.GPUDevice.__module__.startswith(DAWN):  # by its install_as_wgpu()
        return dawn_host()
    from wgslice.gpu.hosts.wgpu_native import VERSIONS, WgpuNative

    if wgpu.__version__ in VERSIONS and not by_public_names:
        return WgpuNative("wgpu", wgpu)
    host = WebGPU("wgpu", wgpu)
    if not by_public_names:
        host.accelerations += f", since {wgpu.__version__} is none of the versions {', '.join(VERSIONS)}"
    return host


@cache
def dawn_host() -> WebGPU:
    """Return Dawn; raise NoAdapterError without its package."""
    try:
        import wgpudawn
    except ModuleNotFoundError:
        raise NoAdapterError(
            "Dawn needs the package wgpudawn, the extra `dawn` of wgslice: pip install wgslice[dawn]"
        ) from None
    return WebGPU("dawn", wgpudawn)


def has_dawn() -> bool:
    """Whether Dawn's package is installed, apart from the host that `import wgpu` gives."""
    return sys.platform != "emscripten" and find_spec(DAWN) is not None and default_host().name != "dawn"


def host_named(name: str) -> WebGPU:
    """Return the host that an adapter names."""
    return dawn_host() if name == "dawn" else default_host()


def found_by(kind: str, value: Any, subject: str = "", remedy: str = "") -> tuple[WebGPU, Any]:
    """Return the host of which a value is a handle, of an interface of WebGPU's, and what stands for it.

    Raises TypeError, which begins with `subject`, for other values. Nobody has a handle of a module that is
    not loaded.
    """
    loaded = sys.platform == "emscripten" or "wgpu" in sys.modules, DAWN in sys.modules
    for host in compress((default_host, dawn_host), loaded):
        found = host().handle_in(value, kind)
        if found is not None:
            return host(), found
    name = default_host().type_name(value)
    raise TypeError(f"{subject}of type {name}: must be a wgpu.{kind}{'; ' * bool(remedy)}{remedy}")


def setting(variable: str, default: str, allowed: str, rule: str) -> str:
    """Return an environment variable, or a default; raise ValueError for what is not `allowed`, a pattern."""
    given = os.environ.get(variable, default)
    if not re.fullmatch(allowed, given, re.ASCII):
        raise ValueError(f"{variable} = {given!r}: must be {rule}")
    return given
