"""The adapters that the tests run on, and the packages that some of them need.

An adapter that WGSLICE_TEST_ADAPTERS names and that is missing fails the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import ADAPTERS, LARGE_PACKAGES, adapter_id
from hypothesis import HealthCheck, settings
from records import MEASURED

import wgslice as wg
from wgslice.kept_costs.store import folder
from wgslice.plans.costs import Costs

# What was tuned on this machine is the user's: no test reads it, in this process or in one that it starts.
os.environ["WGSLICE_PROFILE"] = "shipped"

settings.register_profile(
    "wgslice",
    deadline=None,  # the first dispatch of a kernel compiles it
    derandomize=bool(os.environ.get("CI")),  # CI sees the same cases each time; everybody else new ones
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("wgslice")


@pytest.fixture(scope="session", params=ADAPTERS, ids=adapter_id)
def device(request: pytest.FixtureRequest) -> wg.Device:
    return wg.Device.request(request.param)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, which devices look into and `tune` writes to; the folder of records in it."""
    monkeypatch.delenv("WGSLICE_PROFILE")
    for variable in ("XDG_CACHE_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("wgslice.kept_costs.store.said", set())
    assert folder().is_relative_to(tmp_path)
    return folder()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[wg.Device]:
    """The devices that were measured, in no time; what is found is MEASURED."""
    devices = []

    def measure(device: wg.Device, report: Callable[[float, str], None]) -> Costs:
        report(0, "buffer copies")
        devices.append(device)
        report(0.5, "rows 4 beside")
        report(1, "")
        return MEASURED

    monkeypatch.setattr("wgslice.tuning.tune.measure_costs", measure)
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
