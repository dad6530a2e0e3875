"""The package in a browser tab: Chromium runs it by Pyodide, on SwiftShader."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tab
from browser import Browser, served
from browser_tests import wheels
from helpers import ROOT
from pages import README, blocks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(bool(tab.missing()), reason=tab.missing() or "nothing is missing"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[tab.Tab]:
    with tab.opened() as opened:
        yield opened


def test_ten_lines_of_the_readme_give_their_results(page: tab.Tab) -> None:
    lines = blocks(README, "python")[0].text.splitlines()
    shown = [line.partition("# -> ") for line in lines if "# -> " in line]
    assert len(shown) > 4
    checked = [
        f"assert np.array_equal({line.partition('  #')[0]}, {line.partition('# -> ')[2]})"
        if "# -> " in line
        else line
        for line in lines
    ]
    assert page.run("\n".join(checked)).startswith("copy: 24 B, uint8 (4, 6)\n")
    assert page.browser.errors == []


COUNT_BUFFERS = """
import js
if not hasattr(js, "live"):
    js.eval('''
globalThis.live = { nbytes: 0, most: 0 };
const { createBuffer } = GPUDevice.prototype, { destroy } = GPUBuffer.prototype;
GPUDevice.prototype.createBuffer = function (described) {
  live.nbytes += described.size;
  live.most = Math.max(live.most, live.nbytes);
  return createBuffer.call(this, described);
};
GPUBuffer.prototype.destroy = function () {
  live.nbytes -= this.size;
  destroy.call(this);
};
''')
import numpy as np, wgslice as wg
device = wg.Device.request()
"""


@pytest.mark.parametrize("reused_mib", [0, 512])
def test_dropped_tensors_free_their_memory_at_once(page: tab.Tab, reused_mib: int) -> None:
    program = f"import os; os.environ['WGSLICE_REUSED_MIB'] = '{reused_mib}'\n{COUNT_BUFFERS}"
    program += """
x = wg.asarray(np.arange(2**20, dtype=np.uint32), device=device)
before = js.live.nbytes
for _ in range(100):
    x.copy(), x[::-1].copy()
device.synchronize()
print(js.live.most - before <= 3 * x.nbytes)
del x
device.pool.shrink()
print(js.live.nbytes < 2**20)
"""
    assert page.run(program) == "True\nTrue"


def test_a_buffer_in_use_by_recorded_commands_is_kept(page: tab.Tab) -> None:
    program = """
import numpy as np, wgslice as wg
device = wg.default_device()
x = wg.asarray(np.arange(5, dtype=np.int32))
described = wg.TensorDesc("int32", (5,))
operator = device.compile(wg.Slice(input=described, output=described, offsets=[0], sizes=[5], strides=[1]))
encoder, y = device.wgpu_device.create_command_encoder(), wg.empty(5, np.int32)
operator.record(encoder, input=wg.asarray(np.arange(5, 10, dtype=np.int32)), output=y)
device.queue.submit([encoder.finish()])
print(y.numpy())
"""
    assert page.run(program) == "[5 6 7 8 9]"


def test_errors_of_the_browser_are_raised_by_the_next_wait(page: tab.Tab) -> None:
    program = """
import numpy as np, wgslice as wg
x, device = wg.asarray(np.arange(5)), wg.default_device()
import js
from pyodide.ffi import to_js
device.wgpu_device.js.createBuffer(to_js({"size": 4, "usage": 0}, dict_converter=js.Object.fromEntries))
for wait in (x.numpy, x.numpy, device.synchronize):
    try:
        print(wait() is not None)
    except Exception as error:
        print(type(error).__name__, *error.__notes__)
"""
    error, *rest = page.run(program).splitlines()
    assert error.startswith(
        "GPUValidationError the browser or the driver refused a command; the device stays usable"
    )
    assert rest == ["True", "False"]
    assert page.browser.errors == []


def test_memory_that_runs_out_raises_in_the_call(page: tab.Tab) -> None:
    program = """
import js, numpy as np, wgslice as wg
device = wg.default_device()
js.eval("device = GPUDevice.prototype, pop = device.popErrorScope")
js.eval("device.popErrorScope = async () => new GPUOutOfMemoryError('none left')")
try:
    wg.empty(2**20, np.uint32)
except wg.OutOfDeviceMemory as error:
    print(error)
js.eval("device.popErrorScope = pop")
"""
    assert page.run(program).startswith("empty: the device has no memory left")


def test_a_lost_device_raises_and_is_replaced(page: tab.Tab) -> None:
    page.load()
    program = """
import numpy as np, wgslice as wg
x, device = wg.asarray(np.arange(5)), wg.default_device()
device.wgpu_device.js.destroy()
for call in (x.numpy, x.numpy, x.copy, device.synchronize):
    try:
        call()
    except wg.DeviceLostError as error:
        print(error)
print(wg.asarray(np.arange(3)).numpy(), wg.default_device() is device)
"""
    *lost, last = page.run(program).splitlines()
    assert len(lost) == 4
    assert all("the device is lost" in line for line in lost)
    assert last == "[0 1 2] False"


def test_without_suspension_calls_name_what_awaits(page: tab.Tab) -> None:
    page.load("delete WebAssembly.Suspending; delete WebAssembly.promising;")
    program = """
import numpy as np, wgslice as wg
for step in range(2):
    for call in (wg.default_device, lambda: x.numpy()):
        try:
            call()
        except RuntimeError as error:
            print("await wg.Device.request_async()" in str(error) and "await x.numpy_async()" in str(error))
        except NameError:
            pass
    device = await wg.Device.request_async()
    x = wg.asarray(np.arange(12).reshape(3, 4))
print(wg.default_device() is device, (await x[::-1, 1].numpy_async()).tolist())
try:
    wg.tune()
except RuntimeError as error:
    print(error)
"""
    *results, tune = page.run(program).splitlines()
    assert results == ["True", "True", "True [9, 5, 1]"]
    assert tune.startswith("tune: copies that are timed have to be waited for")


def test_handles_of_javascript_are_accepted(page: tab.Tab) -> None:
    page.load()
    program = """
import js, numpy as np, wgslice as wg
from js import navigator
from pyodide.ffi import to_js
described = lambda **values: to_js(values, dict_converter=js.Object.fromEntries)
adapter = await navigator.gpu.requestAdapter()
device = await adapter.requestDevice()
ours = wg.Device.wrap(device)
print(wg.Device.wrap(device) is ours)
x = wg.asarray(np.arange(6, dtype=np.int32), device=ours)
buffer = device.createBuffer(described(size=24, usage=0x8C))
view = wg.from_buffer(buffer, (2, 3), np.int32)
view[:, ::-1] = x.reshape(2, 3)
print(view.numpy().tolist(), buffer.mapState)
described_x = wg.TensorDesc("int32", (6,))
operator = ours.compile(wg.Slice(input=described_x, output=described_x, offsets=[0], sizes=[6], strides=[1]))
encoder = device.createCommandEncoder()
operator.record(encoder, input=buffer, output=x)
device.queue.submit(to_js([encoder.finish()]))
print(x.numpy().tolist())
texture = device.createTexture(described(size=[2, 1], format="rgba8unorm", usage=0x13))
pixels = wg.asarray(np.arange(8, dtype=np.uint8).reshape(1, 2, 4), device=ours)
wg.copy_to_texture(pixels[:, ::-1], texture)
print(wg.from_texture(texture).numpy().tolist())
canvas = js.OffscreenCanvas.new(2, 1)
context = canvas.getContext("webgpu")
context.configure(described(device=device, format="rgba8unorm", usage=0x13))
wg.copy_to_texture(pixels, context.getCurrentTexture())
ours.synchronize()
"""
    assert page.run(program).splitlines() == [
        "True",
        "[[2, 1, 0], [5, 4, 3]] unmapped",
        "[2, 1, 0, 5, 4, 3]",
        "[[[4, 5, 6, 7], [0, 1, 2, 3]]]",
    ]
    assert page.browser.errors == []


def test_textures_are_made_on_this_host(page: tab.Tab) -> None:
    program = """
import numpy as np, wgslice as wg
device = wg.Device.wrap(wg.default_device().adapter.handle.request_device_sync())
texture = device.wgpu_device.create_texture(size=(2, 1), format="rgba8unorm", usage=3)
wg.copy_to_texture(wg.asarray(np.arange(8, dtype=np.uint8).reshape(1, 2, 4), device=device), texture)
print(texture.size, wg.from_texture(texture)[:, ::-1].numpy().tolist())
mapped = wg.map_texture(texture)
others = [np.full(256, 255, np.uint8) for _ in range(1000)]
print(mapped.tolist(), mapped.flags.writeable)
"""
    assert page.run(program).splitlines() == [
        "(2, 1, 1) [[[4, 5, 6, 7], [0, 1, 2, 3]]]",
        "[[[0, 1, 2, 3], [4, 5, 6, 7]]] False",
    ]
    assert page.browser.errors == []


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (
            "device.wgpu_device.create_sampler()",
            "no 'create_sampler': JavaScript's GPUDevice is its attribute `js`",
        ),
        (
            "texture.depth_or_array_layers",
            "no 'depth_or_array_layers': JavaScript's GPUTexture is its attribute `js`",
        ),
        ("device.queue.read_texture({}, {}, (2, 1))", "`wg.from_texture(texture).numpy()` read"),
        (
            "wg.zeros(3).buffer.map_sync('READ')",
            "GPUBuffer has no 'map_sync': `wg.from_buffer(buffer, shape,",
        ),
        ("wg.from_texture(js.OffscreenCanvas.new(2, 1))", "from_texture: texture is of type OffscreenCanvas"),
        ("wg.from_texture(texture.js.createView())", "from_texture: texture is of type GPUTextureView: must"),
        (
            "wg.from_buffer(texture.js, 1, 'uint8')",
            "gpu_buffer: of type GPUTexture: must be a wgpu.GPUBuffer",
        ),
        ("wg.Device.wrap(js.navigator.gpu)", "wgpu_device is of type GPU: must be a wgpu.GPUDevice"),
        ("wg.Device.request('Vulkan')", "one that this machine has: google swiftshader via WebGPU"),
    ],
)
def test_errors_name_what_a_browser_has(page: tab.Tab, call: str, remedy: str) -> None:
    program = f"""
import js, wgslice as wg
device = wg.default_device()
texture = device.wgpu_device.create_texture(size=(2, 1), format="rgba8unorm", usage=3)
try:
    {call}
except Exception as error:
    print(error)
"""
    said = page.run(program)
    assert remedy in said
    assert "offers no WebGPU" not in said


def test_background_work_runs_without_threads(page: tab.Tab) -> None:
    program = """
import numpy as np, wgslice as wg
a, out = np.arange(60000, dtype=np.int32).reshape(200, 300), np.empty((100, 300), np.int32)
wg.stream(a, np.s_[::-2], out, limit="64 KiB")
print(np.array_equal(out, a[::-2]), wg.selftest(wg.default_device()).passed)
"""
    page.load()
    assert page.run(program) == "True True"


def test_tune_measures_on_the_tabs_clock_and_its_result_is_kept(page: tab.Tab) -> None:
    page.load()
    tuned = """
import js, json, wgslice as wg
tuning = wg.tune()
print(tuning.path, tuning.costs.copy_s > 1e-9)
js.localStorage.setItem("costs", json.dumps(tuning.as_json()))
"""
    assert page.run(tuned).endswith("\nNone True")
    page.load()
    kept = """
import js, os
with open("costs.json", "w") as file:
    file.write(js.localStorage.getItem("costs"))
os.environ["WGSLICE_PROFILE"] = "costs.json"

import wgslice as wg
print(wg.default_device().limits.profile.costs.origin)
"""
    assert "scaled to what `wgslice tune` measured" in page.run(kept)


def test_sizes_beyond_31_bits_are_planned(page: tab.Tab) -> None:
    program = """
import wgslice as wg
x = wg.broadcast_to(wg.zeros(1, "uint8"), (2**32 - 1,))
print(x[::-1].shape, x[2**31:].shape, x[::2**30].numpy())
"""
    assert page.run(program) == "(4294967295,) (2147483647,) [0 0 0 0]"


def test_a_program_that_never_returns_ends_the_tab() -> None:
    with tab.opened() as lost:
        lines = lost.stream("print('begun')\nwhile True: pass", silent_s=2)
        assert next(lines) == "begun"
        with pytest.raises(ConnectionError, match="no answer in time"):
            next(lines)


IN_WORKER = """new Promise((resolve, reject) => {
  const source = SOURCE.replaceAll("SITE", location.origin);
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
})"""
IN_NEW_PYTHON = """
import { loadPyodide } from "SITE/pyodide/pyodide.mjs";
const pyodide = await loadPyodide({ indexURL: "SITE/pyodide/" });
const unpack = async (name) => {
  const bytes = await (await fetch("SITE/" + name)).arrayBuffer();
  pyodide.unpackArchive(bytes, "zip", { extractDir: "/lib/python3.12/site-packages" });
};
PREPARE
const run = pyodide.runPythonAsync("import wgslice as wg; str(wg.arange(4)[::-1].numpy().tolist())");
postMessage(await run.catch(String));
"""


def first_slice(browser: Browser, prepare: str) -> str:
    """Run JavaScript, then a slice in a worker's Python; return the list that it gives, or the error."""
    source = json.dumps(IN_NEW_PYTHON.replace("PREPARE", prepare))
    return str(browser.evaluate(IN_WORKER.replace("SOURCE", source)))


def test_a_worker_has_the_package_too(page: tab.Tab) -> None:
    numpy = 'await pyodide.loadPackage("numpy", { messageCallback: () => {} });'
    assert first_slice(page.browser, f'{numpy} await unpack("wgslice.zip");') == "[3, 2, 1, 0]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Pyodide, micropip and the package's wheel."""
    folder: Path = tmp_path_factory.mktemp("site")
    copy = tmp_path_factory.mktemp("project")
    for name in ("src", "wgsl"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(copy)]
    subprocess.run(build, check=True, capture_output=True)
    tab.make_site(folder)
    for each in wheels():
        if each.name.startswith(("micropip-", "packaging-")):
            tab.offer(folder / "pyodide", each)
    return folder


def example(package: str) -> str:
    """Return the page's example that loads a package of JavaScript, with addresses of the site."""
    text = (ROOT / "docs" / "python" / "index.md").read_text("utf-8")
    examples = re.findall(r"```{code-block} html\n(.*?)\n```\n", text, re.DOTALL)
    (found,) = [each for each in examples if package in each]
    return re.sub(r"https://cdn[^\"]*/", f"/{package}/", found)


def shown(site: Path, example: str) -> list[str]:
    """Return the words that a page of the site with an example shows."""
    (wheel,) = site.glob("*.whl")
    with served(site) as url, Browser() as browser:
        example = example.replace("https://HOST/wgslice-VERSION-py3-none-any.whl", f"{url}{wheel.name}")
        (site / "example.html").write_text(f'<!doctype html><meta charset="utf-8">\n{example}', "utf-8")
        browser.open(f"{url}example.html")
        while not (text := browser.evaluate("document.body.innerText.trim()")) and not browser.errors:
            time.sleep(0.2)
        assert browser.errors == []
    return str(text).split()


RESULT = ["[[11", "9", "7]", "[17", "15", "13]]"]


def test_micropip_installs_the_wheel_as_the_page_says(site: Path) -> None:
    assert shown(site, example("pyodide")) == RESULT


def test_micropip_installs_the_wheel_in_a_worker(site: Path) -> None:
    (wheel,) = site.glob("*.whl")
    program = f"import micropip; await micropip.install('SITE/{wheel.name}')"
    prepare = f'await pyodide.loadPackage("micropip"); await pyodide.runPythonAsync(`{program}`);'
    with served(site) as url, Browser() as browser:
        browser.open(url)
        assert first_slice(browser, prepare) == "[3, 2, 1, 0]"


@pytest.mark.skipif(
    not tab.PYSCRIPT.exists(), reason="PyScript is missing: `python3 run browser` installs it"
)
def test_pyscript_installs_the_wheel_as_the_page_says(site: Path) -> None:
    shutil.copytree(tab.PYSCRIPT, site / "pyscript", ignore=shutil.ignore_patterns("*.map"))
    local = '{"interpreter": "/pyodide/pyodide.mjs", "packages"'
    assert shown(site, example("pyscript").replace('{"packages"', local)) == RESULT
