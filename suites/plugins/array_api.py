"""The standard's tests, with a namespace that moves elements by wgslice and computes by NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(
    str(Path(__file__).parents[2] / "tests")
)  # `reading_back`, which ARRAY_API_TESTS_MODULE names
