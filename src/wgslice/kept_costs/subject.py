"""What figures are of: an adapter, its driver, and the processor beneath."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import sha256

from wgslice.kept_costs.processor import processor

__all__ = ["Subject"]

MOST_CHARACTERS = 80  # of a file's name, before what makes it unique


@dataclass(frozen=True)
class Subject:
    """One adapter as one driver offers it on one processor: with another of these, work costs something else.

    A software adapter is as fast as the processor, and a GPU's commands are recorded by it.
    """

    adapter: str
    backend: str
    driver: str
    processor: str
    cores: int

    @classmethod
    def here(cls, adapter: str, backend: str, driver: str) -> Subject:
        """An adapter on this machine."""
        return cls(adapter, backend, driver, processor(), os.cpu_count() or 1)

    @property
    def file_name(self) -> str:
        """A name that people recognise, and that no other subject has."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.adapter} via {self.backend}".lower()).strip("-")
        return f"{words[:MOST_CHARACTERS]}-{sha256(repr(self).encode()).hexdigest()[:12]}.json"
