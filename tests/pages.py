"""The pages, README and `docs/`, and how their programs run: statement by statement.

What a program shows after `# ->` is compared where it stands, what it prints with the block of text after it.
As a script this runs the program on its standard input, in a process of its own.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in some languages, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(*each) for each in found if not languages or each[0] in languages]


def run(program: str, names: dict[str, Any]) -> tuple[int, str]:
    """Run, and say how many values were compared, and what was printed beside them."""
    lines = program.splitlines()
    checked = 0
    printed = io.StringIO()
    with redirect_stdout(printed):
        for statement in ast.parse(program).body:
            shown = lines[(statement.end_lineno or 0) - 1].partition("# -> ")[2]
            if isinstance(statement, ast.Expr) and shown:
                compare(without_print(statement.value), shown, names)
                checked += 1
            else:
                exec(compile(ast.Module([statement], []), "page", "exec"), names)
    return checked, printed.getvalue()


def compare(expression: ast.expr, shown: str, names: dict[str, Any]) -> None:
    """A value and what the page shows of it, where `…` stands for anything."""
    result = eval(compile(ast.Expression(expression), "page", "eval"), names)
    found = str(result.tolist() if isinstance(result, np.ndarray) else result)
    pattern = ".*".join(map(re.escape, shown.split("…")))
    assert re.fullmatch(pattern, found, re.DOTALL), f"{ast.unparse(expression)} is {found}, not {shown}"


def without_print(expression: ast.expr) -> ast.expr:
    """What `print` is given; any other expression itself."""
    match expression:
        case ast.Call(func=ast.Name(id="print"), args=[value]):
            return value
    return expression


if __name__ == "__main__":
    checked, _ = run(sys.stdin.read(), {"__name__": "__main__"})
    assert checked > 0
