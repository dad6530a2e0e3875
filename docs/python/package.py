"""Writes what the page with Python loads: `python docs/python/package.py FOLDER`.

These are the package, the README's lines, and where Pyodide is: at its public address, or in the folder, if
`python3 run browser` has installed it and its NumPy.
"""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / ".npm" / "node_modules" / "pyodide"
ADDRESS = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"
FILES = ("pyodide.asm.js", "pyodide.asm.wasm", "pyodide.mjs", "pyodide-lock.json", "python_stdlib.zip")


def write(folder, numpy=None):
    """Write the files; `numpy` is Pyodide's wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "wgslice.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in (
            (ROOT / "src" / "wgslice", "wgslice"),
            (ROOT / "wgsl" / "modules", "wgslice/wgsl"),
        ):
            for path in sorted(source.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, Path(name) / path.relative_to(source))
    lines = re.search(r"```python\n([\s\S]*?)```", (ROOT / "README.md").read_text("utf-8"))
    (folder / "lines.py").write_text(lines[1], "utf-8")
    if numpy is not None:
        (folder / "pyodide").mkdir(exist_ok=True)
        for path in (*(CORE / name for name in FILES), numpy):
            shutil.copy(path, folder / "pyodide")
    address = ADDRESS if numpy is None else "pyodide/"
    (folder / "where.json").write_text(json.dumps({"address": address}), "utf-8")


if __name__ == "__main__":
    found = sorted(CORE.glob("numpy-*.whl"))
    write(Path(sys.argv[1]), found[0] if found else None)
