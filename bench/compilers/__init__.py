"""Statistics of real GPU compilers about the kernels, on a machine without a GPU."""

import sys
from pathlib import Path

# Accesses are counted by the reference implementations of kernels, which are in `tests/reference/`.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
