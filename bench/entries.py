"""The contenders: wgslice, its baselines, NumPy, and the rivals whose environments are installed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from bench.contest import ROOT, Entry

__all__ = ["ALLOCATING", "COPY", "GIVEN", "OURS", "RIVALS", "entries", "entry_of"]

OURS, BASELINE, COPY = "wgslice", "slice1.wgsl", "buffer copy"
ALLOCATING, GIVEN = "NumPy", "NumPy, array given"

CONTENDERS = {  # name, module, class; without an environment of its own it runs in ours
    OURS: ("", "ours", "Wgslice"),
    BASELINE: ("", "ours", "Slice1Kernel"),
    COPY: ("", "ours", "BufferCopy"),
    ALLOCATING: ("", "numpy_", "Allocating"),
    GIVEN: ("", "numpy_", "Given"),
    "ONNX Runtime": ("onnxruntime", "onnxruntime_cpu", "Bound"),
    "PyTorch": ("torch", "torch_", "Cpu"),
    "tinygrad WebGPU": ("tinygrad", "tinygrad_webgpu", "Replayed"),
    "ONNX Runtime WebGPU": ("onnxruntime-webgpu", "onnxruntime_webgpu", "Bound"),
    "PyTorch CUDA": ("torch", "torch_", "Cuda"),
    "CuPy": ("cupy", "cupy_cuda", "Given"),
}
NEEDS_CUDA = ("PyTorch CUDA", "CuPy")
HAS_CUDA = shutil.which("nvidia-smi") is not None

POSSIBLE = {name: place for name, place in CONTENDERS.items() if HAS_CUDA or name not in NEEDS_CUDA}
RIVALS = list(dict.fromkeys(environment for environment, _, _ in POSSIBLE.values() if environment))


def entries(rivals: list[str]) -> list[Entry]:
    """Return the contenders, with the rivals that are asked for and installed."""
    found = []
    for name, place in POSSIBLE.items():
        entry = entry_of(name, *place)
        if not entry.environment or (entry.environment in rivals and entry.python.exists()):
            found.append(entry)
    return found


def entry_of(name: str, environment: str, module: str, contender: str) -> Entry:
    """A contender by its name, its environment, and where its code is."""
    python = interpreter(environment) if environment else Path(sys.executable)
    return Entry(name, f"bench.rivals.{module}", contender, python, environment)


def interpreter(environment: str) -> Path:
    """The Python of a rival's environment."""
    return ROOT / ".rivals" / environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
