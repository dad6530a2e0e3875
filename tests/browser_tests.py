"""Run the project's own tests in headless Chromium, by Pyodide: `python3 run browser`.

By default one test of each file, in two minutes; with `--all` the default tier, whose counts are kept in
`bench/results/browser.json`; with arguments of pytest what they choose. `left_out.toml` names the tests that
fail in a tab, and why; with `--all`, a row whose tests all pass is an error.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import tab
from helpers import ROOT

from bench.provenance import commit
from bench.report import RESULTS, write_json

WHEELS = ROOT / ".tab"
# Pure wheels of PyPI: what the tests need, for the Python of Pyodide; newer hypothesis is compiled.
PACKAGES = [
    *("pytest==9.1.1", "pluggy==1.7.0", "iniconfig==2.3.1", "packaging==26.3", "pygments==2.21.0"),
    *("hypothesis==6.155.7", "sortedcontainers==2.4.0", "attrs==26.1.0", "einops==0.8.2", "lark==1.3.1"),
    *("array-api-strict==2.6.1", "platformdirs==4.14.7", "typing_extensions==4.16.0", "micropip==0.7.2"),
]
PYTHON = ["--python-version=3.12", "--implementation=py", "--abi=none", "--platform=any"]
PROJECT = ["tests", "bench", "wgsl", "src", "docs", ".ci", "pyproject.toml", "run", "README.md", "LICENSE"]
ENDED = "in the tab: "

PROGRAM = """
import json, os, sys
os.chdir("/project")
os.environ["WGSLICE_TEST_ADAPTERS"] = "WebGPU"
sys.path[:0] = ["/project/tests", "/project"]
import in_tab
result = in_tab.main({arguments!r}, first_of_each_file={short}, whole={whole})
print({ended!r} + json.dumps(result))
"""


def wheels() -> list[Path]:
    """Return the wheels of PyPI that the tab gets; download those that are missing."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(WHEELS), "--no-deps"]
    WHEELS.mkdir(exist_ok=True)
    missing = [each for each in PACKAGES if not list(WHEELS.glob(f"{wheel_name(each)}-*.whl"))]
    if missing:
        print(f"browser: downloading {' '.join(missing)}", flush=True)
        done = subprocess.run([*pip, "--only-binary=:all:", *PYTHON, *missing], check=False)
        if done.returncode:
            raise tab.CannotRunError("pip could not download the wheels; its message is above")
    return [next(WHEELS.glob(f"{wheel_name(each)}-*.whl")) for each in PACKAGES]


def wheel_name(requirement: str) -> str:
    """Return how the file of a pinned package begins."""
    return requirement.replace("==", "@").replace("-", "_").replace("@", "-")


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(prog="run browser", description="Run the tests in a browser tab.")
    parser.add_argument("--all", action="store_true", help="the default tier; its counts are kept")
    parser.add_argument("--minutes", type=float, default=60, help="after which the browser ends; default 60")
    given, arguments = parser.parse_known_args()
    if reason := tab.missing():
        print(f"browser: not run: {reason}")
        return 0
    try:
        packages = wheels()
    except tab.CannotRunError as error:
        print(f"browser: not run: {error}")
        return 0
    short = not given.all and not arguments
    chosen = ["-v", "--tb=short", *arguments] if arguments else ["-v", "--tb=short", "tests"]
    program = PROGRAM.format(arguments=chosen, short=short, whole=given.all, ended=ENDED)
    project = {ROOT / name: name for name in PROJECT}
    result = None
    with tab.opened(project, packages, given.minutes * 60) as page:
        for line in page.stream(program):
            if line.startswith(ENDED):
                result = json.loads(line.removeprefix(ENDED))
            else:
                print(line, flush=True)
        browser = page.browser.evaluate("navigator.userAgent.match(/Chrome.[0-9.]+/)[0]")
    assert result is not None
    print(f"browser: {result['tests']}")
    if given.all:
        version = json.loads((tab.CORE / "package.json").read_text("utf-8"))["version"]
        kept = {"commit": commit(), "pyodide": version, "browser": browser, **result}
        write_json(kept, RESULTS / "browser.json")
    return int(result["status"])


if __name__ == "__main__":
    sys.exit(main())
