"""The start of a process: what is parsed, loaded and started until the first slice is read back."""

from __future__ import annotations

import json
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import wgpu
from cffi import FFI
from helpers import run_python

import wgslice as wg
from wgslice.gpu.hosts import wgpu_native

WRITTEN = Path(wgpu_native.__file__).with_name("declarations_0_32.py")
ABOUT = f'''"""What cffi's out-of-line ABI mode makes of the header of wgpu {wgpu_native.VERSIONS[0]}.

`python tests/test_start.py` writes this module anew.
"""
'''


def declarations() -> str:
    """The module that cffi makes of the header that wgpu-py parses."""
    header = Path(*wgpu.resources.__path__, "combined_header.h").read_text("utf-8")
    parsed, module = FFI(), StringIO()
    parsed.cdef(header)
    parsed.set_source("wgpu_native", None)
    parsed.emit_python_code(module)
    text = module.getvalue().replace("# auto-generated file\n", f"{ABOUT}\n")
    return f'{text}\nSHA256 = "{sha256(header.encode()).hexdigest()}"  # of the header\n'


def test_declarations_are_those_of_the_header_of_wgpu() -> None:
    """`python tests/test_start.py` writes them anew."""
    assert (wgpu.__version__,) == wgpu_native.VERSIONS
    assert WRITTEN.read_text("utf-8") == declarations()


FIRST_SLICE = """
import numpy as np, wgslice as wg
x = np.arange(4096, dtype=np.float32).reshape(64, 64)
y = wg.slice1(wg.asarray(x), (0, 1), (64, 63), (1, -2))
assert y.numpy().tolist() == x[:, 63:0:-2].tolist()
"""
WGPU_ALONE = """
import numpy, wgpu
device = wgpu.gpu.request_adapter_sync().request_device_sync()
x = numpy.arange(5, dtype=numpy.float32)
buffer = device.create_buffer_with_data(data=x, usage=wgpu.BufferUsage.COPY_SRC)
assert bytes(device.queue.read_buffer(buffer)) == x.tobytes()
"""
DRAWING = """
import numpy, pygfx
from rendercanvas.offscreen import RenderCanvas
x = numpy.arange(4 * 8 * 4, dtype=numpy.uint8).reshape(4, 8, 4)
x[..., 3] = 255
canvas = RenderCanvas(size=(8, 4), pixel_ratio=1)
renderer = pygfx.renderers.WgpuRenderer(canvas, pixel_scale=1, ppaa="none")
camera = pygfx.OrthographicCamera(8, 4)
camera.local.position = 3.5, 1.5, 0
camera.local.scale_y = -1
image = pygfx.Image(pygfx.Geometry(grid=pygfx.Texture(x, dim=2)), pygfx.ImageBasicMaterial(clim=(0, 255)))
canvas.request_draw(lambda: renderer.render(image, camera))
assert numpy.asarray(canvas.draw()).tolist() == x.tolist()
"""
# Whether cffi parsed, what of wgslice is asked for imports, and what the module has that is not wgpu-py's.
REPORT = """
import json, sys
from cffi import FFI
from wgpu.backends.wgpu_native import _ffi, ffi
left = [str(finder) for finder in sys.meta_path if finder.__module__.startswith("wgslice.")]
given = [name for name, value in vars(_ffi).items() if "wgslice" in type(value).__module__]
print(json.dumps([isinstance(ffi, FFI), left, given, ffi is _ffi.ffi]))
"""


def parses(*programs: str, **environment: Any) -> bool:
    """Whether cffi parses the header in a process of these programs, in which nothing else is changed."""
    done = run_python("\n".join([*programs, REPORT]), **environment)
    assert done.returncode == 0, done.stderr
    parsed, left, given, is_kept = json.loads(done.stdout.splitlines()[-1])
    assert (left, given, is_kept) == ([], [], True)
    return bool(parsed)


@pytest.mark.every_adapter
def test_a_first_slice_parses_no_declarations(device: wg.Device) -> None:
    assert not parses(FIRST_SLICE, WGSLICE_ADAPTER=str(device.adapter))


def test_wgpu_runs_by_the_declarations_of_a_first_slice(device: wg.Device) -> None:
    assert not parses("import wgpu", FIRST_SLICE, WGPU_ALONE, WGSLICE_ADAPTER=str(device.adapter))


def test_wgpu_that_has_loaded_its_library_is_left_alone(device: wg.Device) -> None:
    first = "import wgslice, wgpu.backends.wgpu_native"
    assert parses(first, FIRST_SLICE, WGSLICE_ADAPTER=str(device.adapter))


@pytest.mark.pygfx
@pytest.mark.parametrize(
    "programs",
    [("import pygfx", FIRST_SLICE, DRAWING), (DRAWING, FIRST_SLICE, DRAWING)],
    ids=["after a slice", "before a slice"],
)
def test_pygfx_draws_before_and_after_a_first_slice(programs: tuple[str, ...], device: wg.Device) -> None:
    assert parses(*programs, WGSLICE_ADAPTER=str(device.adapter)) == (programs[0] == DRAWING)


OTHERS = {
    "another version of wgpu": "import wgpu; wgpu.__version__ = '0.32.1'",
    "another header": "from wgslice.gpu.hosts import declarations_0_32 as kept; kept.SHA256 = ''",
    "a cffi of another format": "import sys; sys.modules['wgslice.gpu.hosts.declarations_0_32'] = None",
}


@pytest.mark.parametrize("other", list(OTHERS))
def test_what_is_not_known_exactly_is_parsed_by_cffi(other: str) -> None:
    assert parses(OTHERS[other], "import wgslice; assert wgslice.adapters()")


def test_the_public_host_lets_cffi_parse() -> None:
    assert parses("import wgslice; assert wgslice.adapters()", WGSLICE_HOST="public")


if __name__ == "__main__":
    WRITTEN.write_text(declarations(), "utf-8")
