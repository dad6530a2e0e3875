"""Run a program of the README statement by statement; what is shown after `# ->` is compared where it stands.

As a script it runs the program on its standard input, in a process of its own.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

import numpy as np


def run(program: str, names: dict[str, Any]) -> int:
    """Run, and say how many values were compared."""
    lines = program.splitlines()
    checked = 0
    for statement in ast.parse(program).body:
        shown = lines[(statement.end_lineno or 0) - 1].partition("# -> ")[2]
        if isinstance(statement, ast.Expr) and shown:
            expression = ast.Expression(printed(statement.value))
            result = eval(compile(expression, "README.md", "eval"), names)
            found = result.tolist() if isinstance(result, np.ndarray) else result
            assert str(found) == shown, f"{ast.unparse(statement)} is {found}, not {shown}"
            checked += 1
        else:
            exec(compile(ast.Module([statement], []), "README.md", "exec"), names)
    return checked


def printed(expression: ast.expr) -> ast.expr:
    """What `print` is given; any other expression itself."""
    match expression:
        case ast.Call(func=ast.Name(id="print"), args=[value]):
            return value
    return expression


if __name__ == "__main__":
    assert run(sys.stdin.read(), {"__name__": "__main__"}) > 0
