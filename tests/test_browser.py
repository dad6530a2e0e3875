"""The package in a browser tab: Chromium runs it by Pyodide, on SwiftShader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tab
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
    assert error.startswith("GPUValidationError the browser refused a command; the device stays usable")
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
"""
    assert page.run(program) == "True\nTrue\nTrue [9, 5, 1]"
