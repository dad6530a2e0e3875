"""Headless Chromium with WebGPU on SwiftShader, driven by the DevTools protocol over its standard streams."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

# Chromium reads commands from descriptor 3 and writes answers to 4; what it prints goes to its error stream.
ON_DESCRIPTORS = 'exec "$@" 3<&0 4>&1 0</dev/null 1>&2'
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which root lacks
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--remote-debugging-pipe",
    "--enable-unsafe-webgpu",  # also on adapters that are software
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",  # these three: canvases that WebGPU writes
    "--use-vulkan=swiftshader",
    "--use-angle=swiftshader",
    "--use-fake-device-for-media-stream",  # a webcam with a test pattern
    "--use-fake-ui-for-media-stream",  # whose use is allowed
)
TIMEOUT_S = 600


def chromium() -> str | None:
    """Path of Chromium or Chrome; None where there is neither."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, modules with the type that browsers demand, and prints nothing."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of localhost; yield its URL, which ends in a slash."""
    server = ThreadingHTTPServer(("localhost", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Browser:
    """A Chromium with one page. Raises ConnectionError once it ended itself, after some time, or crashed.

    Attributes
    ----------
    errors : list of str
        Uncaught exceptions and errors on the console of the page, up to the last answer.
    logged : list of str
        What the page gave to `console.log`.
    """

    def __init__(self, program: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        program = program or chromium()
        if program is None:
            raise FileNotFoundError("Chromium is missing: apt-get install chromium")
        self.errors: list[str] = []
        self.logged: list[str] = []
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 -- read when Chromium has ended
        command = [program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            ["sh", "-c", ON_DESCRIPTORS, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        self.watchdog = threading.Timer(timeout_s, self.process.kill)
        self.watchdog.start()
        self.rest = b""
        self.number = 0
        self.session: dict[str, Any] = {}
        self.load_events = 0
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Inspector"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()
        self.log.close()
        self.profile.cleanup()

    def extend(self, timeout_s: float) -> None:
        """End Chromium that many seconds from now, not when it was to end."""
        self.watchdog.cancel()
        self.watchdog = threading.Timer(timeout_s, self.process.kill)
        self.watchdog.start()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol; return its result, or raise RuntimeError."""
        number, answer = self.begin(method, **parameters), self.receive()
        while answer.get("id") != number:
            answer = self.receive()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def begin(self, method: str, **parameters: Any) -> int:
        """Send a command of the DevTools protocol; return the `id` of its answer."""
        assert self.process.stdin is not None
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **self.session}
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        return self.number

    def receive(self) -> dict[str, Any]:
        """Return the next answer or event; keep errors and lines of the page's console."""
        assert self.process.stdout is not None
        while b"\0" not in self.rest:
            data = os.read(self.process.stdout.fileno(), 2**20)
            if not data:
                if self.process.wait() == -signal.SIGKILL:
                    raise ConnectionError("it gave no answer in time")
                self.log.seek(0)
                raise ConnectionError(f"Chromium ended: {self.log.read().decode(errors='replace')[-2000:]}")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        event: dict[str, Any] = json.loads(message)
        if event.get("method") == "Inspector.targetCrashed":
            raise ConnectionError("the page crashed")
        self.load_events += event.get("method") == "Page.loadEventFired"
        if text := error_of(event):
            self.errors.append(text)
        if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] == "log":
            self.logged.append(text_of_call(event["params"]))
        return event

    def open(self, url: str) -> None:
        """Load a page and wait until it and what it names is loaded."""
        before = self.load_events
        if failure := self.send("Page.navigate", url=url).get("errorText"):
            raise RuntimeError(f"{url}: {failure}")
        while self.load_events == before:
            self.receive()

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript as JSON gives it; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(text_of(found["exceptionDetails"]))
        return found["result"].get("value")


def error_of(event: dict[str, Any]) -> str:
    """Describe an event that is an error of the page; empty for others."""
    method, parameters = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        return text_of(parameters["exceptionDetails"])
    if method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
        return text_of_call(parameters)
    if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
        entry, url = parameters["entry"], parameters["entry"].get("url", "")
        if not url.endswith("/favicon.ico"):  # which browsers ask for, whether or not a page has one
            return f"{entry['text']} {url}".strip()
    return ""


def text_of_call(parameters: dict[str, Any]) -> str:
    """Return what a call of the console shows."""
    return " ".join(str(each.get("value", each.get("description"))) for each in parameters["args"])


def text_of(details: dict[str, Any]) -> str:
    """Describe an exception of JavaScript."""
    return str(details.get("exception", {}).get("description", details["text"]))
