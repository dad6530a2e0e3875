"""Tensors that leave their process: what pickles hold, where they arrive, and the error in a forked child."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers import check_same, on_one_adapter, run_python
from hypothesis import given
from hypothesis import strategies as st
from moving import numbered, pairs

import wgslice as wg

DTYPES = ["bool", "int8", "uint16", "float16", "float32", "float64", "complex64", "complex128", "M8[ns]"]
SHAPES = [(), (0,), (3, 0, 2), (4, 6)]


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_pickles_of_every_dtype_and_protocol(default: wg.Device, dtype: Any) -> None:
    for shape in SHAPES:
        array = numbered(shape, "int16").astype(dtype)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            found = pickle.loads(pickle.dumps(wg.asarray(array, device=default), protocol))
            assert isinstance(found, wg.Tensor)
            assert found.is_packed
            assert found.device is default
            check_same(found.numpy(), array)


@given(data=st.data())
def test_a_view_is_pickled_as_its_elements(default: wg.Device, data: st.DataObject) -> None:
    view, array = data.draw(pairs(default))
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(view, 5, buffer_callback=buffers.append)
    assert len(pickled) < 400
    assert [buffer.raw().nbytes for buffer in buffers] == [array.nbytes]
    found = pickle.loads(pickled, buffers=buffers)
    assert found.buffer is not view.buffer
    check_same(found.numpy(), array.copy())


@on_one_adapter
def test_bytes_out_of_band_may_be_anywhere(default: wg.Device) -> None:
    """Read-only and at odd addresses, as frames of a message do."""
    array = numbered((5, 7), "float64")
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(wg.asarray(array, device=default).T, 5, buffer_callback=buffers.append)
    for before in range(8):
        message = bytes(before) + buffers[0].raw().tobytes()
        found = pickle.loads(pickled, buffers=[memoryview(message)[before:]])
        check_same(found.numpy(), array.T.copy())


@on_one_adapter
def test_a_pickle_is_no_view_of_what_it_was(default: wg.Device) -> None:
    x = wg.asarray(np.arange(6), device=default)
    both = pickle.loads(pickle.dumps([x, x, x[::-1]]))
    assert both[0] is both[1]
    both[0][...] = 7
    assert both[2].numpy().tolist() == [5, 4, 3, 2, 1, 0]
    assert x.numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_another_process_has_it_on_its_own_default_device(device: wg.Device, tmp_path: Path) -> None:
    array = numbered((4, 6), "float16")
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(wg.asarray(array, device=device)[:, ::-2]))
    code = """
import pickle
from pathlib import Path
x = pickle.loads(Path("x.pickle").read_bytes())
print(x.device.adapter, x.dtype, x.numpy().tolist(), sep="\\n")
"""
    done = run_python(code, cwd=tmp_path, WGSLICE_ADAPTER=device.adapter.backend)
    shown = [str(device.adapter), "float16", str(array[:, ::-2].tolist())]
    assert done.stdout.splitlines() == shown, done.stderr


@on_one_adapter
def test_objects_that_cannot_be_pickled_are_refused(device: wg.Device) -> None:
    with pytest.raises(
        TypeError, match=r"Device\(.*\) cannot be pickled, .*: name its adapter, such as device='vulkan'"
    ):
        pickle.dumps({"device": device})
    lost = wg.Device.request(device.adapter)
    x, y = wg.asarray(np.arange(6), device=lost), wg.asarray(np.arange(6), device=device)
    lost.wgpu_device.destroy()
    with pytest.raises(wg.DeviceLostError, match=r"the device is lost: request a new one and upload again"):
        pickle.dumps(x)
    y.buffer.destroy()
    with pytest.raises(ValueError, match=r"pickle: numpy: .*has been destroyed"):
        pickle.dumps(y)


FORKED = """
import atexit, multiprocessing, os, pickle, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np, wgslice as wg

array = np.arange(12).reshape(3, 4)
x = wg.asarray(array)
x[::-1].numpy()
pickled = pickle.dumps(x)

def attempt(name):
    try:
        print(name, TRIES[name](), flush=True)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"

TRIES = {
    "read": lambda: x.numpy(),
    "read a view": lambda: x[:, ::-2].numpy(),
    "copy": lambda: x.copy(),
    "write": lambda: x.__setitem__(0, 7),
    "concat": lambda: wg.concat([x, x]),
    "item": lambda: x[0, 0].item(),
    "upload": lambda: wg.asarray(array),
    "unpickle": lambda: pickle.loads(pickled),
    "pickle": lambda: pickle.dumps(x),
    "default_device": wg.default_device,
    "synchronize": lambda: x.device.synchronize(),
    "compile": lambda: x.device.compile(wg.Slice1(
        wg.TensorDesc("int64", (3, 4)), wg.TensorDesc("int64", (3, 4)), (0, 0), (3, 4))),
}
if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for name, said in zip(TRIES, pool.map(attempt, TRIES, timeout=60)):
            print(f"{name}: {said}")
    if os.fork() == 0:
        x = None
        atexit.register(print, "at exit", flush=True)
        atexit._run_exitfuncs()
        os._exit(0)
    os.wait()
    print(x[::-1].numpy()[0].tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_an_error_and_no_hang(device: wg.Device) -> None:
    """Whatever it does with its parent's GPU, its own exit handlers too.

    Mesa's, which run at last, crash or wait for threads that a child lacks: it ends without them.
    """
    done = subprocess.run(
        [sys.executable, "-u", "-c", FORKED],  # unbuffered, so that the child does not print twice
        env={**os.environ, "WGSLICE_ADAPTER": str(device.adapter)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    *lines, left, last = done.stdout.splitlines()
    refusal = "RuntimeError: a GPU cannot be used in a forked child of a process that has used one: start the"
    assert [line for line in lines if f": {refusal}" not in line] == []
    assert len(lines) == 12, done.stderr
    assert (left, last) == ("at exit", "[8, 9, 10, 11]")
    for remedy in ("spawn", "forkserver", "multiprocessing.context", "distributed.worker"):
        assert remedy in lines[0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@on_one_adapter
def test_a_fork_before_the_first_device_has_its_own(device: wg.Device) -> None:
    code = """
import os, wgslice as wg
child = os.fork()
if child:
    os.waitpid(child, 0)
print(wg.asarray([1, 2, 3])[::-1].numpy().tolist())
"""
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter))
    assert done.stdout.splitlines() == ["[3, 2, 1]"] * 2, done.stderr
