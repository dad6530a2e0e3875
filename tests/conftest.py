"""The tiers of the test suite: which tests run, on which adapters, with how many examples.

- `default`: what a contributor needs after each change. The first adapter; the second one only for tests
  marked `every_adapter`. Leaves out tests marked `slow` and those that need a large package.
- `all` (CI): every test on every adapter; on the first one alone tests marked `first_adapter`.
- `deep`: every test on every adapter, also those marked `deep`, with ten times the examples.

An adapter that WGSLICE_TEST_ADAPTERS names and that is missing fails the run.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

if os.environ.get("WGSLICE_TEST_HOST") == "dawn":  # before anything imports wgpu
    import wgpudawn
    from wgpudawn.backends.dawn import _api

    wgpudawn.install_as_wgpu()
    # which tests import by the name that it has in wgpu, where Dawn would load the module once more
    sys.modules["wgpu.backends.wgpu_native._api"] = _api

from expected import host_in_test, row_of, rows_of
from helpers import ADAPTERS, FACTORS, LARGE_PACKAGES, MEASURED, adapter_id
from hypothesis import HealthCheck, settings
from running import MODULE_OF, Compile, Limit, by_step, recording

import wgslice as wg
from wgslice.calibration.store import folder
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CostClass

collect_ignore = ["suites"]  # their tests run in the environment of `run suites` only

# The user's calibration is not read: tests, and the processes that they start, share an empty cache folder.
CACHE_VARIABLES = ("XDG_CACHE_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA")
if "PYTEST_XDIST_WORKER" not in os.environ:
    compiled = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    os.environ.setdefault("MESA_SHADER_CACHE_DIR", compiled)  # Mesa's default without the variables
    os.environ.pop("WGSLICE_PROFILE", None)
    cache_folder = mkdtemp(prefix="wgslice-tests-")
    atexit.register(rmtree, cache_folder, ignore_errors=True)
    os.environ.update(dict.fromkeys(CACHE_VARIABLES, cache_folder))

EXAMPLES = {"default": 15, "all": 60, "deep": 600}  # of each property test, by tier


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=list(EXAMPLES), default="default", help="which tests run")


def pytest_configure(config: pytest.Config) -> None:
    tier = config.getoption("--tier")
    settings.register_profile(
        tier,
        max_examples=EXAMPLES[tier],
        deadline=None,  # the first dispatch of a kernel compiles it
        derandomize=bool(os.environ.get("CI")),  # CI draws the same examples each time, others new ones
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile(tier)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests of the other tiers out."""
    tier = config.getoption("--tier")
    tiers = [in_tier(item, tier) for item in items]
    config.hook.pytest_deselected(items=[item for item, held in zip(items, tiers, strict=True) if not held])
    items[:] = [item for item, held in zip(items, tiers, strict=True) if held]
    rows = rows_of(host_in_test())
    for item in items:
        row = row_of(item.nodeid, rows)
        if row is not None:
            item.add_marker(pytest.mark.xfail(reason=row.reason, run=row.runs, strict=False))


def in_tier(item: pytest.Item, tier: str) -> bool:
    """Whether a test runs in a tier, on its adapter."""
    marks = {mark.name for mark in item.iter_markers()}
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    on_another = any(isinstance(value, str) and value in ADAPTERS[1:] for value in parameters)
    if tier == "deep" or "deep" in marks:
        return tier == "deep"
    if tier == "all":
        return not (on_another and "first_adapter" in marks)
    return marks.isdisjoint({"slow", *LARGE_PACKAGES}) and ("every_adapter" in marks or not on_another)


@pytest.fixture(scope="session", params=ADAPTERS, ids=adapter_id)
def device(request: pytest.FixtureRequest) -> wg.Device:
    return wg.Device.request(request.param)


@pytest.fixture(autouse=True)
def _handles_tell_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every call named it: by public names none does, and tests have several devices in a process."""
    if host_in_test() in ("dawn", "public"):
        told = WebGPU.owner_of
        monkeypatch.setattr(
            WebGPU, "owner_of", lambda self, handle: told(self, handle) or getattr(handle, "_device", None)
        )


@pytest.fixture
def default(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> wg.Device:
    """The device as the default one of this process."""
    monkeypatch.setattr("wgslice.gpu.device.default_devices", [device])
    return device


@pytest.fixture
def named(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> wg.Device:
    """The device as the one that the environment names, to processes that the test starts too."""
    monkeypatch.setenv("WGSLICE_ADAPTER", str(device.adapter))
    return device


@pytest.fixture
def limit(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Sets limits of the device until the test ends: `limit(binding_nbytes=1024)`."""
    return lambda **changes: monkeypatch.setattr(device, "limits", replace(device.limits, **changes))


@pytest.fixture
def garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers of any content have some, as the memory of another tensor would; wgpu clears new ones."""
    called = wg.Device.pooled_buffer

    def filled(self: wg.Device, nbytes: int, size: int, *, zeroed: bool) -> Any:
        buffer = called(self, nbytes, size, zeroed=zeroed)
        if not zeroed and nbytes:
            self.write(buffer, 0, np.full(nbytes // 4 * 4, 0xA5, np.uint8))
        return buffer

    monkeypatch.setattr(wg.Device, "pooled_buffer", filled)


@pytest.fixture
def compile_modules(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Lets the device compile other modules for its kernels, each anew, until the test ends."""

    def compile(module: Callable[[Kernel], str]) -> None:
        monkeypatch.setattr(MODULE_OF, by_step(module))
        monkeypatch.setattr(device, "pipelines", device.new_pipelines())

    return compile


@pytest.fixture
def recorded() -> Iterator[list[wg.Plan]]:
    """The plans that the test records, in their order."""
    with recording() as plans:
        yield plans


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, which devices read and `tune` writes; the folder of records in it."""
    for variable in CACHE_VARIABLES:
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("wgslice.calibration.store.said", set())
    assert folder().is_relative_to(tmp_path)
    return folder()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[wg.Device]:
    """The devices that `tune` measured, in no time; what is found is MEASURED and FACTORS."""
    devices = []

    def measure(device: wg.Device, report: Callable[[float, str], None]) -> dict[str, float]:
        report(0, "large dispatch")
        devices.append(device)
        report(0.5, "one copy")
        report(1, "")
        return MEASURED

    def measure_factors(_: wg.Device, constants: object, report: Any) -> dict[CostClass, float]:
        assert constants is MEASURED
        report(0.5, "kernel rows")
        report(1, "")
        return FACTORS

    monkeypatch.setattr("wgslice.calibration.tune.measure_constants", measure)
    monkeypatch.setattr("wgslice.calibration.tune.measure_factors", measure_factors)
    return devices


def pytest_collection_finish(session: pytest.Session) -> None:
    """pygfx wants to be imported before wgpu's default device is made, by whichever test comes first."""
    if any(item.get_closest_marker("pygfx") for item in session.items) and find_spec("pygfx") is not None:
        import_module("pygfx")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is marked with a package it needs fails without it; to leave it out is `-m`'s task."""
    for marker in item.iter_markers():
        if marker.name in LARGE_PACKAGES and find_spec(marker.name) is None:
            pytest.fail(f"{marker.name} is missing: `python3 run test --all` installs it", pytrace=False)
