"""Parse statistics that drivers print as text: assembly, and PanVK's line on stderr."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["listing_statistics", "panvk_statistics"]

# Loads and stores of AMD; Intel; NVIDIA; Adreno; Mali. Uniforms' too: Mali's look like those of storage.
MEMORY = re.compile(
    r"\b(?:(?:s_buffer_load|buffer_load|buffer_store|global_load|global_store|ds_read|ds_write|ds_load|ds_store"
    r"|scratch_load|scratch_store)\w*|(?:ugm|slm) MsgDesc: \( ?(?:load|store)|(?:ld|st)\.[\w.]*b\d+"
    r"|(?:ldib|stib|ldg|stg|ldl|stl|ldlw|stlw|ldp|stp|ldc|isam)\b|(?:LD_BUFFER|LOAD|STORE)[A-Z_0-9]*\.i\d+)"
)


def listing_statistics(listing: str) -> dict[str, int]:
    """Count the memory instructions of an assembly; for NVIDIA also its delays."""
    found = {"Memory Instructions": len(MEMORY.findall(listing))}
    delays = [int(cycles) for cycles in re.findall(r"// delay=(\d+)", listing)]
    return {**found, "Delays": sum(delays)} if delays else found


def panvk_statistics(lines: Sequence[str]) -> dict[str, float]:
    """Parse PanVK's statistics, a line on stderr; empty for other drivers."""
    for line in lines:
        if line.startswith("SHADER-DB: "):
            values = {what: float(value) for value, what in re.findall(r"([\d.]+) (\w+)", line)}
            return {
                "Instruction Count": values["inst"],
                "Cycle Count": values["cycles"],
                "Threads": values["threads"],
                "Spill Count": float(re.findall(r"(\d+):\d+ spills", line)[0]),
            }
    return {}
