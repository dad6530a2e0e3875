"""The pages, README and `docs/`, and how their programs run: statement by statement.

What a program shows after `# ->` is compared where it stands, what it prints with the block of text after it.
As a script this runs the program on its standard input, in a process of its own.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "bench" / "results"
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "reference" not in page.parts]
PAGES = [README, *DOCS, *sorted(RESULTS.glob("*.md"))]
FENCED = re.compile(r"^```(\w*|\{.*\}.*)\n([\s\S]*?)^```$", re.MULTILINE)
HELP = re.compile(r"\$ wgslice(.* --help)\n")  # a block of this command alone shows what it prints
SHOWN = "# -> "
LONGEST = 110  # characters of a value that is written into a page


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


class Outcome(NamedTuple):
    """A program that ran: its text with the values of this run, their number, and what it printed."""

    text: str
    checked: int
    printed: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in some languages, in order."""
    found = FENCED.findall(page.read_text("utf-8"))
    return [Block(*each) for each in found if not languages or each[0] in languages]


def refreshed(page: Path) -> str:
    """Run the Python of a page as one program, and its `--help`; the page with what they show now."""
    names: dict[str, Any] = {}
    checked, printed = 0, ""

    def refresh(found: re.Match[str]) -> str:
        nonlocal checked, printed
        language, text = found.groups()
        if language == "python":
            assert not printed, f"{page.name} does not show what is printed: {printed}"
            done = run(text, names)
            checked, printed = checked + done.checked, done.printed
            return f"```python\n{done.text}```"
        if language == "console" and (command := HELP.fullmatch(text)):
            checked, printed = checked + 1, help_of(command[1].split())
        if language == "text" and printed:
            text, printed = text if squeezed(text) == squeezed(printed) else printed, ""
            return f"```text\n{text}```"
        return found[0]

    text = FENCED.sub(refresh, page.read_text("utf-8"))
    assert not printed, f"{page.name} does not show what is printed: {printed}"
    assert checked >= 1, f"{page.name} shows no value"
    return text


def help_of(words: list[str]) -> str:
    """The help that a command prints, 100 characters wide."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "wgslice.cli", *words]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def squeezed(text: str) -> str:
    """Printed text without what differs between versions of argparse: columns, repeated metavariables."""
    return re.sub(r"(?<=\S) {2,}", " ", re.sub(r"(-\w) [A-Z]+, (--)", r"\1, \2", text))


def run(program: str, names: dict[str, Any]) -> Outcome:
    """Run a program; a value that is not what is shown after it replaces that."""
    lines = program.splitlines()
    checked = 0
    printed = io.StringIO()
    with redirect_stdout(printed):
        for statement in ast.parse(program).body:
            last = (statement.end_lineno or 0) - 1
            before, _, shown = lines[last].partition(SHOWN)
            if isinstance(statement, ast.Expr) and shown:
                value = value_of(without_print(statement.value), names)
                if not fits(value, shown):
                    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
                    lines[last] = f"{before}{SHOWN}{shown}"
                checked += 1
            else:
                exec(compile(ast.Module([statement], []), "page", "exec"), names)
    return Outcome("".join(f"{line}\n" for line in lines), checked, printed.getvalue())


def value_of(expression: ast.expr, names: dict[str, Any]) -> str:
    """The value of an expression as a page shows it."""
    result = eval(compile(ast.Expression(expression), "page", "eval"), names)
    return str(result.tolist() if isinstance(result, np.ndarray) else result)


def fits(value: str, shown: str) -> bool:
    """Whether a value is what a page shows, where `…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), value, re.DOTALL) is not None


def without_print(expression: ast.expr) -> ast.expr:
    """The argument of `print`; any other expression itself."""
    match expression:
        case ast.Call(func=ast.Name(id="print"), args=[value]):
            return value
    return expression


if __name__ == "__main__":
    program = sys.stdin.read()
    done = run(program, {"__name__": "__main__"})
    assert done.checked > 0
    assert done.text.splitlines() == program.splitlines(), f"the values are now:\n{done.text}"
