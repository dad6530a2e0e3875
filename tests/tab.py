"""A browser tab with Pyodide, NumPy and this checkout's package.

Pyodide's core is the package of npm that `python3 run browser` installs. Its wheel of NumPy comes from the
folder that WGSLICE_PYODIDE names, or is downloaded once from Pyodide's own address; the lock file of the core
has its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from browser import Browser, chromium, served
from helpers import ROOT

CORE = ROOT / ".npm" / "node_modules" / "pyodide"
PYSCRIPT = CORE.parent / "@pyscript" / "core" / "dist"
CORE_FILES = (
    *("pyodide.asm.js", "pyodide.asm.wasm", "pyodide.mjs", "pyodide.mjs.map"),
    *("pyodide-lock.json", "python_stdlib.zip"),
)
ADDRESS = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{name}"
VARIABLE = "WGSLICE_PYODIDE"
PACKAGES = "/lib/python3.12/site-packages"

LOAD = """
const { loadPyodide } = await import("/pyodide/pyodide.mjs");
const print = (text) => console.log(text);
globalThis.pyodide = await loadPyodide({ indexURL: "/pyodide/", stdout: print, stderr: print });
await pyodide.loadPackage("/pyodide/" + wheel, { messageCallback: () => {} });
for (const [name, folder] of Object.entries(archives)) {
  const bytes = await (await fetch("/" + name)).arrayBuffer();
  pyodide.unpackArchive(bytes, "zip", { extractDir: folder });
}
"""


class CannotRunError(Exception):
    """Why there is no tab here."""


def missing() -> str:
    """What a tab lacks here; empty if nothing."""
    if chromium() is None:
        return "Chromium is missing: apt-get install chromium"
    if not CORE.exists():
        return "Pyodide is missing: `python3 run browser` installs it"
    try:
        numpy_wheel()
    except CannotRunError as error:
        return str(error)
    return ""


def numpy_wheel() -> Path:
    """Return Pyodide's wheel of NumPy, with the hash that its lock file gives."""
    lock = json.loads((CORE / "pyodide-lock.json").read_text("utf-8"))
    name, digest = (lock["packages"]["numpy"][key] for key in ("file_name", "sha256"))
    wheel: Path = Path(os.environ.get(VARIABLE, CORE)) / name
    if not wheel.exists() and VARIABLE in os.environ:
        raise CannotRunError(f"{VARIABLE} = {os.environ[VARIABLE]!r}: the folder lacks {name}")
    if not wheel.exists():
        url = ADDRESS.format(
            version=json.loads((CORE / "package.json").read_text("utf-8"))["version"], name=name
        )
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                wheel.write_bytes(answer.read())
        except OSError as error:
            raise CannotRunError(f"{url}: {error}; {VARIABLE} may name a folder that has the file") from None
    if sha256_of(wheel) != digest:
        raise CannotRunError(f"{wheel} differs from the file that Pyodide's lock file names: remove it")
    return wheel


def pack(archive: Path, folders: Mapping[Path, str]) -> None:
    """Write an archive of folders and files, by the names that they have in it."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for folder, name in folders.items():
            if folder.is_file():
                packed.write(folder, name)
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, str(Path(name) / path.relative_to(folder)))


def offer(core: Path, wheel: Path) -> None:
    """Let Pyodide in a folder find a wheel by the name of its package, in place of the one that it names."""
    name, version, _ = wheel.name.split("-", 2)
    found = {"file_name": wheel.name, "version": version, "sha256": sha256_of(wheel)}
    lock = json.loads((core / "pyodide-lock.json").read_text("utf-8"))
    lock["packages"][name].update(found)
    (core / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    shutil.copy(wheel, core)


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_site(folder: Path) -> None:
    """Write what a page with Pyodide and this package loads into a folder."""
    core = folder / "pyodide"
    core.mkdir()
    for path in (*(CORE / name for name in CORE_FILES), numpy_wheel()):
        if path.exists():
            shutil.copy(path, core)
    pack(
        folder / "wgslice.zip",
        {ROOT / "src" / "wgslice": "wgslice", ROOT / "wgsl" / "modules": "wgslice/wgsl"},
    )
    (folder / "index.html").write_text('<!doctype html><meta charset="utf-8"><title>tab</title>', "utf-8")


class Tab:
    """A tab whose Python has NumPy and this package.

    Attributes
    ----------
    browser : Browser
        With the page.
    """

    def __init__(self, browser: Browser, url: str, archives: Mapping[str, str]) -> None:
        self.browser = browser
        self.url = url
        self.archives = {"wgslice.zip": PACKAGES, **archives}

    def load(self, before: str = "") -> None:
        """Load the page anew, and Pyodide in it after a script."""
        self.browser.open(self.url)
        values = f"const wheel = {json.dumps(numpy_wheel().name)}, archives = {json.dumps(self.archives)};"
        self.browser.evaluate(f"(async () => {{ {before} {values} {LOAD} }})()")

    def run(self, program: str) -> str:
        """Run a program of Python, which may await; return what it printed, or raise RuntimeError."""
        self.browser.logged.clear()
        try:
            self.browser.evaluate(f"pyodide.runPythonAsync({json.dumps(program)}).then(() => null)")
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.printed()}") from None
        return self.printed()

    def stream(self, program: str, silent_s: float) -> Iterator[str]:
        """Run a program of Python; yield the lines that it prints, then raise RuntimeError if it failed.

        Raises ConnectionError once it has printed nothing for `silent_s` seconds, or has ended the tab.
        """
        lines = self.browser.logged
        lines.clear()
        script = f"pyodide.runPythonAsync({json.dumps(program)}).then(() => '', String)"
        number = self.browser.begin("Runtime.evaluate", expression=script, awaitPromise=True)
        answer: dict[str, Any] = {}
        while answer.get("id") != number:
            self.browser.extend(silent_s)
            answer = self.browser.receive()
            while lines:
                yield lines.pop(0)
        if failure := answer["result"]["result"]["value"]:
            raise RuntimeError(failure)

    def printed(self) -> str:
        """Return what the program printed so far."""
        return "\n".join(self.browser.logged)


@contextmanager
def opened(
    project: Mapping[Path, str] | None = None,
    wheels: Sequence[Path] = (),
    files: Sequence[Path] = (),
    timeout_s: float = 600,
) -> Iterator[Tab]:
    """Open a tab with further wheels, files of the project below `/project`, and files that it serves."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_site(folder)
        pack(folder / "project.zip", project or {})
        for path in (*wheels, *files):
            shutil.copy(path, folder)
        archives = {"project.zip": "/project", **{wheel.name: PACKAGES for wheel in wheels}}
        with served(folder) as url, Browser(timeout_s=timeout_s) as browser:
            tab = Tab(browser, url, archives)
            tab.load()
            yield tab
