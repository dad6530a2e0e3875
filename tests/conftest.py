"""Which adapters the tests run on: all that WGSLICE_TEST_ADAPTERS names, `;` between them.

Unset, it is the best adapter of the machine. One that was asked for and is missing fails the run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

import wgslice as wg

settings.register_profile(
    "wgslice",
    deadline=None,  # the first dispatch of a kernel compiles it
    derandomize=bool(os.environ.get("CI")),  # CI sees the same cases each time; everybody else new ones
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("wgslice")

requested = [name.strip() for name in os.environ.get("WGSLICE_TEST_ADAPTERS", "").split(";") if name.strip()]


@pytest.fixture(scope="session", params=requested or [""], ids=requested or ["best"])
def device(request: pytest.FixtureRequest) -> wg.Device:
    return wg.Device.request(request.param)
