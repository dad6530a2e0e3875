"""The page of the site that runs Python: in a browser, it gives what the README says, and slices a picture.

`python tests/test_python_page.py` writes the screenshot of the page anew.
"""

from __future__ import annotations

import base64
import runpy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tab
from browser import Browser, served
from helpers import ROOT
from site_page import SitePage, build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(bool(tab.missing()), reason=tab.missing() or "nothing is missing"),
]

SCREENSHOT = ROOT / "docs" / "python" / "screenshot.png"


class Page(SitePage):
    """The page, before and after Python is loaded."""

    def open(self) -> None:
        super().open()
        self.wait("!document.getElementById('python').hidden")

    def click(self, name: str) -> None:
        """Click a button, and wait until its action is done."""
        self.wait(f"!document.getElementById('{name}').disabled")
        self.browser.evaluate(f"document.getElementById('{name}').click()")
        self.wait(f"!document.getElementById('{name}').disabled")

    def write(self, name: str, text: str) -> None:
        self.browser.evaluate(f"document.getElementById('{name}').value = {text!r}")


@contextmanager
def opened(folder: Path) -> Iterator[Page]:
    """Build and open the page."""
    build("python", folder)
    package = runpy.run_path(str(ROOT / "docs" / "python" / "package.py"))
    package["write"](folder / "_static" / "python", tab.numpy_wheel())
    with served(folder) as url, Browser() as browser:
        page = Page(browser, f"{url}python/index.html")
        page.open()
        yield page


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(tmp_path_factory.mktemp("site")) as page:
        yield page


@pytest.fixture
def page(shared: Page) -> Iterator[Page]:
    """The page, which reports no error on the console."""
    yield shared
    assert shared.browser.errors == []


def test_a_click_loads_python_and_runs_the_readmes_lines(page: Page) -> None:
    assert page.text("run") == "Load 17 MB and run"
    page.click("run")
    assert page.text("status").startswith("Python is ready on ")
    assert page.text("printed").startswith("[[11  9  7]\n [17 15 13]]\n[99  1 99  3 99  5]\n")
    assert "copy: 24 B, uint8 (4, 6)" in page.text("printed")
    assert page.text("plans").count("strategy") >= 5
    assert page.text("run") == "Run"


def test_an_edited_program_runs_and_shows_its_values(page: Page) -> None:
    page.write("editor", "a = np.arange(6)\nwg.asarray(a)[::-2].numpy()\n")
    page.click("run")
    assert page.text("printed") == "[5 3 1]"
    assert page.text("plans").count("strategy") == 1


def test_an_error_is_shown_with_its_line(page: Page) -> None:
    page.write("editor", "x = wg.zeros(3)\nx[5]\n")
    page.click("run")
    assert page.text("printed").startswith("line 2: IndexError: ")
    assert page.browser.evaluate("document.getElementById('printed').classList.contains('error')")


def test_a_line_slices_the_picture(page: Page) -> None:
    for line in ("picture[:, ::-1]", "picture[10:50, ::2]"):
        page.write("line", line)
        page.click("slice")
        assert page.text("status") == ""
        expected = eval(line, {"picture": page.pixels("picture")})
        assert np.array_equal(page.pixels("sliced"), expected)
    page.write("line", "picture[0]")
    page.click("slice")
    assert "must be uint8 of (rows, columns, 4)" in page.text("status")


def write_screenshot() -> None:
    """Write the page as a person sees it who ran both."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as page:
        screen = {"width": 1000, "height": 1700, "deviceScaleFactor": 1, "mobile": False}
        page.browser.send("Emulation.setDeviceMetricsOverride", **screen)
        page.click("slice")
        page.click("run")
        box = "(({ x, y, width, height }) => ({ x, y, width, height, scale: 1 }))"
        clip = page.browser.evaluate(f"{box}(document.getElementById('python').getBoundingClientRect())")
        shot = page.browser.send("Page.captureScreenshot", format="png", clip=clip)
        SCREENSHOT.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    write_screenshot()
