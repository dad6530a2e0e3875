"""The page of the site that slices a picture: in a browser, each operation writes NumPy's pixels.

`python tests/test_try_page.py` writes the screenshot of the page anew.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, chromium, served
from helpers import ROOT
from numpy.typing import NDArray
from PIL import Image
from site_page import KEEP_DEVICE, NO_ADAPTER, NO_WEBGPU, SitePage, build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("try"),
    pytest.mark.skipif(chromium() is None, reason="Chromium is missing: apt-get install chromium"),
]

SCREENSHOT = ROOT / "docs" / "try" / "screenshot.png"
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "window": lambda window: window,
    "window[:, ::-1]": lambda window: window[:, ::-1],
    "window[::2, ::2]": lambda window: window[::2, ::2],
    "window.transpose(1, 0, 2)": lambda window: window.transpose(1, 0, 2),
    "window[..., [2, 1, 0, 3]]": lambda window: window[..., [2, 1, 0, 3]],
}
RUN = "row.dispatchEvent(new Event('input'))"


class Page(SitePage):
    """The page and its controls."""

    def open(self) -> None:
        super().open()
        self.wait_until_timed()

    def wait_until_timed(self) -> None:
        self.wait("document.getElementById('time').textContent.includes(' ms per run on ')")

    def choose(self, operation: str) -> None:
        """Choose an operation by its label, unless it is chosen."""
        labels = "[...document.querySelectorAll('#operations label')]"
        self.browser.evaluate(f"{labels}.find((each) => each.innerText.trim() === {operation!r}).click()")
        self.wait_until_timed()

    def choose_file(self, path: Path) -> None:
        """Choose a file without the dialogue."""
        root = self.browser.send("DOM.getDocument")["root"]["nodeId"]
        found = self.browser.send("DOM.querySelector", nodeId=root, selector="#file")
        self.browser.send("DOM.setFileInputFiles", files=[str(path)], nodeId=found["nodeId"])

    def move(self, row: int, column: int) -> None:
        """Set the sliders."""
        self.browser.evaluate(f"[row.value, column.value] = [{row}, {column}]; {RUN}")

    def picture(self) -> NDArray[np.uint8]:
        return self.pixels("picture")

    def output(self) -> NDArray[np.uint8]:
        """Return the output of another run: a canvas keeps its texture until the page is drawn."""
        return self.pixels("output", RUN)

    def mouse(self, kind: str, x: float, y: float) -> None:
        place = {"x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
        self.browser.send("Input.dispatchMouseEvent", type=kind, **place)

    def press_left(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.browser.send("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", windowsVirtualKeyCode=37)


def window_of(picture: NDArray[np.uint8], row: int, column: int) -> NDArray[np.uint8]:
    """Return the window that a program reads: one that leaves the picture is clamped."""
    top, left = min(max(row, 0), 240), min(max(column, 0), 320)
    return picture[top : top + 240, left : left + 320]


@contextmanager
def opened(folder: Path) -> Iterator[Page]:
    """Build and open the page."""
    build("try", folder)
    script = ROOT / "docs" / "try" / "programs.py"
    subprocess.run([sys.executable, script, folder / "_static" / "programs"], check=True)
    with served(folder) as url, Browser() as browser:
        page = Page(browser, f"{url}try/index.html")
        page.open()
        yield page


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(tmp_path_factory.mktemp("site")) as page:
        yield page


@pytest.fixture
def page(shared: Page) -> Iterator[Page]:
    """The page, loaded anew, which reports no error."""
    shared.open()
    yield shared
    assert shared.browser.errors == []


@pytest.fixture
def photo(page: Page, tmp_path: Path) -> NDArray[np.uint8]:
    """A picture of distinct pixels that the page shows."""
    pixels = np.random.default_rng(0).integers(0, 256, (480, 640, 4), np.uint8)
    pixels[..., 3] = 255
    Image.fromarray(pixels[..., :3]).save(tmp_path / "photo.png")
    page.choose_file(tmp_path / "photo.png")
    for _ in range(100):
        if np.array_equal(page.picture(), pixels):
            break
    return pixels


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_writes_numpys_pixels(page: Page, photo: NDArray[np.uint8], operation: str) -> None:
    page.choose(operation)
    assert "extract_windows(picture, offsets, WINDOW" in page.text("python")
    assert "offsets in device memory" in page.text("plan")
    for row, column in ((0, 0), (37, 213), (240, 320), (-60, -80), (300, 400), (-1, 321)):
        page.move(row, column)
        expected = OPERATIONS[operation](window_of(photo, row, column))
        assert np.array_equal(page.output(), expected), (row, column)
        assert f"offsets ({row}, {column}, 0)" in page.text("offsets")


def test_the_window_follows_mouse_and_keys(page: Page, photo: NDArray[np.uint8]) -> None:
    page.choose("window[:, ::-1]")
    page.move(10, 20)
    box = page.browser.evaluate(
        "picture.scrollIntoView(); (({ x, y, width }) => [x, y, width])(picture.getBoundingClientRect())"
    )
    x, y, scale = box[0], box[1], 640 / box[2]
    page.mouse("mousePressed", x + 50, y + 50)
    page.mouse("mouseMoved", x + 150, y + 90)
    page.mouse("mouseReleased", x + 150, y + 90)
    page.mouse("mouseMoved", x + 200, y + 20)  # no longer dragged
    row, column = page.browser.evaluate("[row.valueAsNumber, column.valueAsNumber]")
    assert abs(row - (10 + 40 * scale)) <= 1
    assert abs(column - (20 + 100 * scale)) <= 1
    assert np.array_equal(page.output(), window_of(photo, row, column)[:, ::-1])
    page.browser.evaluate("document.getElementById('column').focus()")
    page.press_left()
    assert np.array_equal(page.output(), window_of(photo, row, column - 1)[:, ::-1])


def test_frames_of_a_webcam_are_sliced(page: Page, photo: NDArray[np.uint8]) -> None:
    page.choose("window[::2, ::2]")
    page.move(30, 60)
    page.browser.evaluate("webcam.click()")
    page.wait("webcam.ariaPressed === 'true'")
    for _ in range(100):
        if not np.array_equal(page.picture(), photo):
            break
    page.browser.evaluate("webcam.click()")
    frame = page.picture()
    assert not np.array_equal(frame, photo)
    assert len(np.unique(frame)) > 10
    assert np.array_equal(page.output(), window_of(frame, 30, 60)[::2, ::2])


def test_a_refused_webcam_leaves_the_picture(page: Page, photo: NDArray[np.uint8]) -> None:
    media = "navigator.mediaDevices.getUserMedia"
    page.browser.evaluate(f"{media} = () => Promise.reject(new Error('not allowed')); webcam.click()")
    page.wait("document.getElementById('status').textContent === 'The webcam cannot be used: not allowed'")
    assert page.browser.evaluate(f"delete {media}; webcam.ariaPressed") == "false"
    assert np.array_equal(page.picture(), photo)


def test_a_file_that_is_no_picture_is_refused(page: Page, photo: NDArray[np.uint8], tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    page.choose_file(tmp_path / "text.png")
    page.wait("document.getElementById('status').textContent !== ''")
    assert page.text("status").startswith("This browser reads no picture from text.png: ")
    assert np.array_equal(page.picture(), photo)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (NO_WEBGPU, "This page needs WebGPU, which this browser does not offer here"),
        (NO_ADAPTER, "This browser has WebGPU, but offers no GPU to this page. Reload the page."),
    ],
)
def test_without_a_gpu_the_page_shows_why_and_a_screenshot(page: Page, script: str, message: str) -> None:
    visible = "document.{}.checkVisibility()".format
    screenshot = visible("querySelector('img[src*=screenshot]')")
    with page.opened_after(script):
        page.wait(f"document.getElementById('status').textContent.startsWith({message!r})")
        assert page.browser.evaluate(visible("getElementById('try')")) is False
        assert page.browser.evaluate(screenshot) is True
    page.open()
    assert page.browser.evaluate(screenshot) is False


def test_a_lost_gpu_disables_the_page_and_says_what_to_do(page: Page) -> None:
    with page.opened_after(KEEP_DEVICE):
        page.wait_until_timed()
        page.browser.evaluate("device.destroy()")
        page.wait("document.getElementById('try').inert")
        page.browser.evaluate(RUN)  # reports nothing over the message
        assert page.text("status").startswith("The GPU was lost: ")
        assert "Reload the page. If it finds no GPU then, restart the browser" in page.text("status")
    page.open()
    assert page.browser.evaluate("document.getElementById('try').inert") is False


def test_the_screenshot_is_small() -> None:
    assert SCREENSHOT.stat().st_size < 150_000


def write_screenshot() -> None:
    """Write the page as a person sees it who flips the window."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as page:
        screen = {"width": 900, "height": 1500, "deviceScaleFactor": 1, "mobile": False}
        page.browser.send("Emulation.setDeviceMetricsOverride", **screen)
        page.choose("window[:, ::-1]")
        page.move(100, 60)
        box = "(({ x, y, width, height }) => ({ x, y, width, height, scale: 1 }))"
        clip = page.browser.evaluate(f"{box}(document.getElementById('try').getBoundingClientRect())")
        shot = page.browser.send("Page.captureScreenshot", format="png", clip=clip)
        SCREENSHOT.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    write_screenshot()
