"""The page of the site that tests a GPU, in headless Chromium on SwiftShader: results, failures, pictures.

`python tests/test_gpu_page.py FOLDER` runs the whole page, and keeps its file and two screenshots there.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import Browser, chromium, served
from helpers import ROOT, on_one_adapter
from jsonschema import Draft202012Validator
from site_page import KEEP_DEVICE, NO_ADAPTER, NO_WEBGPU, SitePage, build

import wgslice as wg
from bench.gpu_programs import MAX_NBYTES, SIDES, write_programs
from wgslice.plans.kernels import Kernel

pytestmark = [
    pytest.mark.first_adapter,  # the browser chooses its own
    pytest.mark.slow,
    pytest.mark.xdist_group("gpu page"),
    pytest.mark.skipif(chromium() is None, reason="Chromium is missing: apt-get install chromium"),
]

SCHEMA = json.loads((ROOT / "bench" / "gpu.schema.json").read_text("utf-8"))
PROGRAMS = Path("_static", "gpu", "programs")
WIDTHS = {"phone": 390, "desktop": 1280}
RUN_S = 1200  # on a machine that others use; 2 minutes on an idle one
FAST_BUT_SMALL = """
const { createBuffer } = GPUDevice.prototype;
GPUDevice.prototype.createBuffer = function (given) {
  return createBuffer.call(this, given.size > 2 ** 23 ? { ...given, size: 2 ** 40 } : given);
};
"""
HIDDEN = "Object.defineProperty(Document.prototype, 'hidden', { get: () => true })"


class Page(SitePage):
    """The page and its run."""

    def open(self) -> None:
        super().open()
        self.wait("!document.getElementById('gpu').hidden")

    def start(self) -> None:
        self.wait("!document.getElementById('gpu').hidden")
        self.browser.evaluate("document.getElementById('start').click()")

    def finish(self) -> dict[str, Any]:
        """Wait for the end of a run, and return its report, which follows the schema."""
        self.wait("document.getElementById('start').textContent === 'Test again'", RUN_S)
        report: dict[str, Any] = self.browser.evaluate("gpuPage.report")
        Draft202012Validator(SCHEMA).validate(report)
        return report

    def run(self) -> dict[str, Any]:
        self.start()
        return self.finish()

    def screenshot(self, path: Path, width: int) -> None:
        """Write the page as it is at a width, and check that nothing is wider."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.send("Emulation.setDeviceMetricsOverride", **screen)
        assert self.browser.evaluate("document.documentElement.scrollWidth") <= width
        shot = self.browser.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def opened(folder: Path, programs: Path) -> Iterator[Page]:
    """Build and open the page."""
    build("gpu", folder)
    shutil.copytree(programs, folder / PROGRAMS)
    with served(folder) as url, Browser(timeout_s=2 * RUN_S) as browser:
        page = Page(browser, f"{url}gpu/index.html")
        page.open()
        yield page


@pytest.fixture(scope="module")
def every(device: wg.Device, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the page."""
    folder = tmp_path_factory.mktemp("all") / "programs"
    write_programs(folder, wg.Device.request(device.adapter))
    return folder


def index_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "programs.json").read_text("utf-8"))
    return found


def write_index(folder: Path, index: Mapping[str, Any]) -> None:
    (folder / "programs.json").write_text(json.dumps(index), "utf-8")


@pytest.fixture(scope="module")
def shared(every: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Path]]:
    """The page with some programs of each kind, and the folder of these."""
    few, site = tmp_path_factory.mktemp("few") / "programs", tmp_path_factory.mktemp("site")
    shutil.copytree(every, few)
    index = index_of(few)
    index["issues"] = "https://example.org/issues/new"
    index["budget_s"] = 1e6  # on a machine that others use
    index["trials"], index["races"] = index["trials"][::40], index["races"][::30]
    for size in index["sizes"].values():
        by_group = {each["group"]: each for each in size["speeds"]}
        size["speeds"], size["choices"] = [*by_group.values()], size["choices"][-3:-1]
    write_index(few, index)
    with opened(site, few) as page:
        yield page, site / PROGRAMS


@pytest.fixture
def page(shared: tuple[Page, Path]) -> Iterator[Page]:
    """The page, which reports no error on the console."""
    shared[0].open()
    yield shared[0]
    assert shared[0].browser.errors == []


@on_one_adapter
def test_every_kernel_is_tested_within_5_mb(device: wg.Device, every: Path) -> None:
    index = index_of(every)
    assert {entry["group"] for entry in index["trials"]} == {kernel.value for kernel in Kernel}
    assert sum(path.stat().st_size for path in every.iterdir()) <= MAX_NBYTES
    for name, size in index["sizes"].items():
        assert size["side"] == SIDES[name]
        assert {"buffer copy", "kernel copy", "slices", "permutes", "windows", "gathers", "masks"} == {
            entry["group"] for entry in size["speeds"]
        }
        assert len(size["choices"]) >= 20
        assert all(choice["shipped"]["chosen"] in choice["ways"] for choice in size["choices"])
    assert device.adapter.name  # the fixture's


def test_a_run_reports_right_bytes_and_times(page: Page, tmp_path: Path) -> None:
    report = page.run()
    assert report["failures"] == []
    assert not [line for line in (*report["kernels"], *report["races"]) if line["wrong"]]
    assert len(report["kernels"]) >= 5
    assert len(report["races"]) >= 2
    assert report["adapter"]["software"]
    assert report["timings_valid"]
    assert {each["group"] for each in report["speeds"]} >= {"buffer copy", "kernel copy", "masks"}
    assert report["speeds"][0]["share"] == 1
    assert len(report["choices"]) == 2
    assert report["seconds"].keys() == {"right", "fast", "chosen"}
    assert "kernels write NumPy's bytes on this GPU" in page.text("verdict")
    assert "GB/s by buffer copy" in page.text("line")
    assert page.browser.evaluate("document.getElementById('found').dataset.red") == "false"
    check_issue(page.browser.evaluate("gpuPage.issue"), page.text("line"))
    for name, width in WIDTHS.items():
        folder = Path(os.environ.get("WGSLICE_SCREENSHOTS", tmp_path))
        page.screenshot(folder / f"gpu-page-{name}.png", width)
        assert (folder / f"gpu-page-{name}.png").stat().st_size > 20_000


def check_issue(address: str, line: str) -> None:
    """Check that the address of a new issue has the line and the file."""
    asked = parse_qs(urlsplit(address).query)
    assert address.startswith("https://example.org/issues/new?")
    assert len(address) < 8000  # what GitHub accepts
    assert asked["title"][0].startswith("GPU: google swiftshader, Chromium ")
    body = asked["body"][0]
    assert body.startswith(line)
    content = json.loads(gzip.decompress(base64.b64decode(body.split("```")[1])))
    Draft202012Validator(SCHEMA).validate(content)


def test_bars_and_buttons_have_names(page: Page) -> None:
    unnamed = (
        "[...document.querySelectorAll('#gpu button')].filter((each) => !each.textContent.trim()).length"
    )
    assert page.browser.evaluate(unnamed) == 0
    assert page.browser.evaluate("document.querySelector('label[for=bar]') !== null")
    page.browser.evaluate("document.getElementById('start').focus()")
    assert page.browser.evaluate("document.activeElement.id") == "start"


@pytest.mark.parametrize("planted", ["module", "digest"])
def test_a_planted_wrong_bit_turns_the_page_red(shared: tuple[Page, Path], planted: str) -> None:
    page, folder = shared
    index, content = index_of(folder), (folder / "programs.bin").read_bytes()
    wrong = {**index_of(folder), "races": [], "budget_s": 0}
    entry = wrong["trials"][0]
    if planted == "module":  # a letter of it, so that it does not compile
        offset, _ = entry["files"][entry["program"]["modules"][0]]
        at = content.index(b"@compute", offset)
        (folder / "programs.bin").write_bytes(content[:at] + b"A" + content[at + 1 :])
    else:
        entry["digest"] = "0" * 16
    write_index(folder, wrong)
    page.browser.errors.clear()
    try:
        page.open()
        report = page.run()
    finally:
        write_index(folder, index)
        (folder / "programs.bin").write_bytes(content)
    found = {line["kernel"]: line for line in report["kernels"] if line["wrong"]}
    assert entry["group"] in found
    assert entry["name"] in found[entry["group"]]["failure"]
    assert ("wrong bytes, the same in each run" in found[entry["group"]]["failure"]) == (planted == "digest")
    assert page.browser.evaluate("document.getElementById('found').dataset.red") == "true"
    assert entry["name"] in page.text("failures")
    assert "on this GPU, listed below" in page.text("verdict")
    page.browser.errors.clear()


def test_a_lost_device_ends_the_run_with_what_was_found(page: Page) -> None:
    with page.opened_after(KEEP_DEVICE):
        page.start()
        page.wait("gpuPage.report?.kernels.length >= 2")
        page.browser.evaluate("device.destroy()")
        report = page.finish()
    assert len(report["kernels"]) >= 2
    assert any("the device was lost" in each["failure"] for each in report["failures"])
    assert report["speeds"] == []
    assert "No speed was measured" in page.text("verdict")


def test_a_gpu_without_memory_copies_less(shared: tuple[Page, Path]) -> None:
    """A GPU that seems fast enough for large copies refuses their buffers."""
    page, folder = shared
    index = index_of(folder)
    write_index(folder, {**index, "large_run_s": 1e9, "races": []})
    try:
        with page.opened_after(FAST_BUT_SMALL):
            report = page.run()
    finally:
        write_index(folder, index)
    assert report["side"] == SIDES["small"]
    assert any("no memory for copies of 64 MiB" in note for note in report["notes"])
    assert report["speeds"]
    page.browser.errors.clear()  # Chromium warns of the refused buffers


def test_a_page_in_the_background_says_that_times_are_invalid(page: Page) -> None:
    with page.opened_after(HIDDEN):
        report = page.run()
    assert report["timings_valid"] is False
    assert "times are invalid" in page.text("notes")
    assert "times are invalid" in page.text("line")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (NO_WEBGPU, "This browser does not offer WebGPU to this page."),
        (NO_ADAPTER, "This browser has WebGPU, but offers no GPU to this page."),
    ],
)
def test_without_a_gpu_the_page_says_what_to_do(page: Page, script: str, message: str) -> None:
    with page.opened_after(script):
        page.start()
        page.wait("!document.getElementById('status').hidden")
        assert page.text("status").startswith(message)
        assert page.browser.evaluate("document.getElementById('found').hidden")


def keep(folder: Path) -> None:
    """Run the whole page, and keep its file and its screenshots."""
    with tempfile.TemporaryDirectory() as parent:
        programs = Path(parent) / "programs"
        write_programs(programs, wg.Device.request())
        with opened(Path(parent) / "site", programs) as page:
            began = time.monotonic()
            report = page.run()
            print(f"{time.monotonic() - began:.0f} s; errors: {page.browser.errors}; {page.text('line')}")
            name = page.browser.evaluate("gpuPage.file")
            for width_name, width in WIDTHS.items():
                page.screenshot(folder / f"gpu-page-{width_name}.png", width)
    (folder / name).write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
