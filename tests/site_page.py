"""A page of the site, built alone and open in headless Chromium."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from browser import Browser
from helpers import ROOT
from numpy.typing import NDArray
from PIL import Image

NO_WEBGPU = "Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined })"
NO_ADAPTER = "GPU.prototype.requestAdapter = async () => null"
KEEP_DEVICE = """
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = async function (...given) {
  return globalThis.device = await requestDevice.apply(this, given);
};
"""


def build(name: str, folder: Path) -> None:
    """Build the site with one page, `docs/NAME/index.md`, as `run docs` does with all pages."""
    options = f"-Q -D root_doc={name}/index -D include_patterns={name}/*"
    command = [sys.executable, "-m", "sphinx", *options.split(), "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)


class SitePage:
    """A page in a browser."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self) -> None:
        """Load the page."""
        self.browser.open(self.url)

    @contextmanager
    def opened_after(self, script: str) -> Iterator[None]:
        """Load the page after a script; without it when it is opened next."""
        added = self.browser.send("Page.addScriptToEvaluateOnNewDocument", source=script)
        self.browser.open(self.url)
        yield
        self.browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + seconds
        while not self.browser.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}; the page says {self.text('status')!r}")
            time.sleep(0.05)

    def text(self, name: str) -> str:
        """Return the text of an element."""
        return str(self.browser.evaluate(f"document.getElementById('{name}').textContent"))

    def pixels(self, canvas: str, before: str = "") -> NDArray[np.uint8]:
        """Return the pixels of a canvas, after some JavaScript."""
        url = self.browser.evaluate(f"{before}; document.getElementById('{canvas}').toDataURL()")
        with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
            return np.asarray(image.convert("RGBA"))
