"""README and `docs/`: programs and commands run, links lead somewhere, and what people need comes first."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pages
import pytest
from helpers import LARGE_PACKAGES, on_one_adapter
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pages import DOCS, PAGES, README, ROOT, blocks
from PIL import Image
from trials import trying

import wgslice as wg
from wgslice.cli import main
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, shipped

pytestmark = pytest.mark.slow

SHOWN_BY_PYTHON = re.compile(r"^```python$|^\$ wgslice.* --help$", re.MULTILINE)
SHOWN = replace(CPU, costs=shipped("lavapipe-25-0"))  # by which pages show plans, on every adapter
WITH_PYTHON = [page for page in PAGES if SHOWN_BY_PYTHON.search(page.read_text("utf-8"))]


def marked(page: Path, program: str, parameter: Any) -> Any:
    """A parameter named by its page, with the marks of the large packages that its program imports."""
    imported = set(re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE))
    marks = [getattr(pytest.mark, name) for name in LARGE_PACKAGES if name in imported]
    return pytest.param(parameter, marks=marks, id=page.stem)


def test_the_readme_links_guides_integrations_and_commands() -> None:
    readme = README.read_text("utf-8")
    for page in DOCS:
        if page.stem not in ("index", "changelog", "contributing", "glossary", "adapters", "kernel"):
            assert f"](docs/{page.relative_to(ROOT / 'docs').as_posix()}" in readme, page.stem


def test_the_readme_is_short_and_begins_with_what_people_need() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:36])
    for needed in ("any GPU", "NumPy", "pip install", "python3 run demo", "python3 run test", "]("):
        assert needed in first, needed
    assert any(line.startswith("![") for line in lines[:36])


def test_pages_have_lines_of_a_readable_length() -> None:
    for page in PAGES:
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            assert len(line) <= 140 or line.startswith(("|", "!", "copy of", "  ")), f"{page.name}:{number}"


def test_lines_of_programs_fit_into_the_pages_of_the_site() -> None:
    """In columns of a window of 1,400 pixels."""
    programs = [(page, block.text) for page in PAGES for block in blocks(page, "python", "py", "js")]
    lines = [(page.name, line) for page, text in programs for line in text.splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 90] == []


def test_tables_have_one_row_of_headers_without_empty_cells() -> None:
    for page in PAGES:
        for table in re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.MULTILINE):
            header, *rows = table.splitlines()
            rules = [number for number, row in enumerate(rows) if not row.strip("|-: ")]
            assert rules == [0], f"{page.name}: {header}"
            assert all(cell.strip() for cell in header.strip("|").split("|")), f"{page.name}: {header}"


def test_every_kernel_is_on_the_page_about_them() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    assert [kernel.value for kernel in Kernel if f"`{kernel.value}`" not in page] == []


@contextmanager
def shown_plans(device: wg.Device, folder: Path) -> Iterator[None]:
    """Plans of `device` and its default are SHOWN's, self-tests short; files of programs are in `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("wgslice.gpu.device.default_devices", [device])
        patch.setenv("WGSLICE_PROFILE", "shipped")
        patch.setattr("wgslice.gpu.device.shipped_profile", lambda _: SHOWN)
        patch.setattr(device, "limits", replace(device.limits, profile=SHOWN))
        with trying({Kernel.SLICE1}):
            yield


@on_one_adapter
@pytest.mark.parametrize(
    "page",
    [marked(page, "".join(block.text for block in blocks(page, "python")), page) for page in WITH_PYTHON],
)
def test_a_pages_python_gives_what_the_page_shows(device: wg.Device, tmp_path: Path, page: Path) -> None:
    """`python tests/test_pages.py` writes values, printed text and pictures anew; look at the changes."""
    with shown_plans(device, tmp_path):
        assert pages.refreshed(page) == page.read_text("utf-8")
    for made, shown in pictures(page, tmp_path):
        with Image.open(made) as one, Image.open(shown) as other:
            assert np.array_equal(np.asarray(one), np.asarray(other))
        assert shown.stat().st_size < 60_000


def pictures(page: Path, folder: Path) -> list[tuple[Path, Path]]:
    """The pictures that the program of a page saves in a folder, each with the one that the page shows."""
    saved = re.findall(r'\.save\("(\S+\.png)"', "".join(block.text for block in blocks(page, "python")))
    return [(folder / name, page.parent / name) for name in saved]


def test_what_pages_show_is_compared(tmp_path: Path) -> None:
    """The runner itself sees what is wrong, and writes what is right."""
    right = "x = 3\nx + 1  # -> 4\nprint(x)  # -> 3\n'a b c'  # -> a … c\nprint(x)\n"
    assert pages.run(right, {}) == (right, 3, "3\n")
    for wrong, mended in (
        ("1 + 1  # -> 3\n", "1 + 1  # -> 2\n"),
        ("'abc'  # -> b…\n", "'abc'  # -> abc\n"),
        ("print('x')  # -> y\n", "print('x')  # -> x\n"),
    ):
        assert pages.run(wrong, {}).text == mended
    page = tmp_path / "page.md"
    page.write_text("```python\n1  # -> 2\nprint(5)\n```\n\n```text\n4\n```\n")
    assert pages.refreshed(page) == "```python\n1  # -> 1\nprint(5)\n```\n\n```text\n5\n```\n"


# Each a program of its own, in turns one before the change and one after it.
ALONE = "import fastplotlib"  # of a program without one before it, whose package no tier installs
PROGRAMS = [
    (page, program.text) for page in PAGES for program in blocks(page, "py") if ALONE not in program.text
]


def run_program(program: str, tmp_path: Path, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, pages.__file__],
        input=program,
        env={**os.environ, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", [marked(*each, each[1]) for each in PROGRAMS[::2]])
def test_programs_run_before_the_change(tmp_path: Path, program: str) -> None:
    """None of them knows our adapters."""
    assert "wgslice" not in program
    run_program(program, tmp_path)


@pytest.mark.first_adapter
@pytest.mark.parametrize("program", [marked(*each, each[1]) for each in PROGRAMS[1::2]])
def test_programs_run_after_the_change(device: wg.Device, tmp_path: Path, program: str) -> None:
    assert "wgslice" in program
    run_program(program, tmp_path, WGSLICE_ADAPTER=device.adapter.backend)


@pytest.mark.deep
def test_the_program_of_fastplotlib_runs(tmp_path: Path) -> None:
    pytest.importorskip("fastplotlib", reason="neither an extra nor a tier installs it")
    (program,) = [each.text for page in PAGES for each in blocks(page, "py") if ALONE in each.text]
    run_program(program, tmp_path, RENDERCANVAS_FORCE_OFFSCREEN="1")  # without a package for windows


def test_what_pages_change_is_all_that_changes() -> None:
    """A program before, the lines to change, the program after."""
    changes = [each.text for page in PAGES for each in blocks(page, "diff")]
    assert len(changes) == len(PROGRAMS) // 2 >= 3
    for number, diff in enumerate(changes):
        (_, changed), (_, after) = PROGRAMS[2 * number : 2 * number + 2]
        for removed, added in re.findall(r"((?:^-.*\n)*)((?:^\+.*\n)*)", diff, re.MULTILINE):
            old, new = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in (removed, added))
            assert old in changed
            changed = changed.replace(old, new, 1) if old else changed
        assert changed == after


def commands() -> list[list[str]]:
    """Commands on the pages."""
    lines = [
        line
        for page in PAGES
        for block in blocks(page, "console")
        for line in block.text.splitlines()
        if line.startswith("$ ")
    ]
    return [shlex.split(line[2:], comments=True) for line in lines]


@on_one_adapter  # the default one
def test_the_pages_own_commands_run(
    device: wg.Device,
    kept: Path,
    measured: list[wg.Device],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    photo = np.arange(300 * 401 * 3, dtype=np.uint32).astype(np.uint8).reshape(300, 401, 3)
    Image.fromarray(photo).save("photo.png")
    np.save("volume.npy", np.zeros((64, 64, 64), np.uint16))
    own = [command[1:] for command in commands() if command[0] == "wgslice" and command[-1] != "--help"]
    assert len(own) >= 5
    with trying({Kernel.SLICE1}):
        for command in own:
            assert main(command) == 0


OWN_OPTIONS = {
    "bench": ["-m", "bench"],
    "gpu": ["-m", "bench.gpu"],
    "mutants": ["tests/mutate.py"],
    "check": ["tests/check.py"],
    "fuzz": ["tests/fuzz.py"],
    "differential": ["tests/differential.py"],
    "matrix": ["tests/matrix.py"],
    "browser": ["tests/browser_tests.py"],
    "soak": ["tests/soak.py"],
    "suites": ["-m", "suites"],
}  # verbs that pass options on


def test_every_other_command_is_one_that_is_tested() -> None:
    """The verbs of `run`, each with an option that it knows, and what installs."""
    helped: dict[str, str] = {}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }  # as `run` sets it
    for verb in (
        "demo",
        "test",
        "suites",
        "lint",
        "bench",
        "gpu",
        "docs",
        "wheel",
        "mutants",
        "check",
        "fuzz",
        "differential",
        "matrix",
        "browser",
        "soak",
        "lock",
    ):
        module = OWN_OPTIONS.get(verb, ["run", verb])
        shown = subprocess.run(
            [sys.executable, *module, "--help"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        helped[verb] = shown.stdout
    named = set()
    for command in (command for command in commands() if command[0] != "wgslice"):
        if command[:2] == ["python3", "run"]:
            verb, *options = command[2:]
            named.add(verb)
            for option in options:
                pytests = verb == "test" and option in ("-k", "-n")
                known = pytests or not option.startswith("-") or option in helped[verb]
                assert known, command
        else:
            assert command[0] in ("pip", "sudo", "git", "cd", "export"), command
    assert named == set(helped)


def test_shown_dependencies_name_this_version_and_its_extras() -> None:
    page = ROOT / "docs" / "installing.md"
    tables = [tomllib.loads(block.text) for block in blocks(page, "toml")]
    shown = [text for table in tables for text in table.get("project", {}).get("dependencies", [])]
    shown += [line for block in blocks(page, "text") for line in block.text.splitlines() if line[0] != "-"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for text in shown:
        requirement = Requirement(text)
        assert requirement.name == "wgslice"
        assert requirement.extras <= extras.keys()
        assert not requirement.specifier or requirement.specifier == SpecifierSet(f"=={wg.__version__}")
    assert len(shown) >= 4
    sources = [table["tool"]["uv"]["sources"] for table in tables if "tool" in table]
    assert [sorted(source["wgslice"]) for source in sources] == [
        ["editable", "path"],
        ["git", "rev"],
        ["path"],
    ]
    named = re.findall(r"wgslice-([\d.]+)-py3-none-any\.whl", page.read_text("utf-8"))
    assert set(named) == {wg.__version__}


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            if target.startswith("https://"):
                continue
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), f"{page.name}: {target}"
            if anchor:
                assert anchor in anchors(found), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub makes anchors of them."""
    without_blocks = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", without_blocks, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_blocks_are_in_languages_that_are_checked() -> None:
    """No test would check others; `cpp` is DirectML's, `js` a browser's, `yaml` linted, `toml` parsed."""
    known = {"python", "py", "text", "console", "diff", "cpp", "js", "yaml", "toml"}
    for page in PAGES:
        for block in blocks(page):
            directive = block.language.startswith("{")  # of the site, which warns of what is wrong
            assert directive or block.language in known, f"{page.name}: {block.text[:40]}"


def write_pages() -> None:
    """Write into the pages what their programs show now, on the default adapter."""
    device = wg.Device.request()
    for page in WITH_PYTHON:
        with TemporaryDirectory() as folder, shown_plans(device, Path(folder)):
            page.write_text(pages.refreshed(page), "utf-8")
            for made, shown in pictures(page, Path(folder)):
                copyfile(made, shown)


if __name__ == "__main__":
    if find_spec("pygfx") is not None:  # wants to be imported before wgpu's default device is made
        import_module("pygfx")
    write_pages()
