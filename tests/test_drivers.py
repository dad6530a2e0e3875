"""Checks for known faults of drivers: each finds its fault."""

from __future__ import annotations

import pytest
from helpers import on_one_adapter

import wgslice as wg
from wgslice.doctor.drivers import CODE, EXPECTED, check_driver

# Changes of the kernels for known faults: what a driver with the fault does.
FAULTS = {
    "workgroupUniformLoad(&shared_word)": "shared_word",
    "    workgroupBarrier();\n    let start": "    let start",
    "        workgroupBarrier();\n": "",
    "    workgroupBarrier();\n    results[place] = shared_words[own.index]": (
        "shared_words[own.index] = 0u;\n workgroupBarrier();\n results[place] = shared_words[own.index]"
    ),
    "atomicAdd(&shared_count": "atomicStore(&shared_count",
    "z < 2": "z < 1",
    "0x64006400u": "0x60006000u",
    "results[place] += words": "results[place] = words",
}


def test_each_known_fault_is_found(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [str(check) for check in check_driver(device)] == [f"{name}: correct" for name in EXPECTED]
    code = CODE
    for right, wrong in FAULTS.items():
        assert code.count(right) == 1
        code = code.replace(right, wrong)
    monkeypatch.setattr("wgslice.doctor.drivers.CODE", code)
    assert [check.name for check in check_driver(device) if "words are wrong, the first" in str(check)] == [
        *EXPECTED
    ]


@on_one_adapter
def test_a_check_that_does_not_compile_is_reported(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wgslice.doctor.drivers.CODE", CODE.replace("shared_count", "absent", 1))
    checks = [*check_driver(device)]
    assert len(checks) == len(EXPECTED)
    assert not any(check.passed for check in checks)
    assert "shared_count" in checks[0].failure
