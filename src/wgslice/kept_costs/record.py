"""A measurement as a file holds it, written and strictly read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import product
from math import isfinite
from reprlib import repr as shortened
from typing import Any, TypeVar

from wgslice.kept_costs.subject import Subject
from wgslice.layout import Layout
from wgslice.plans.costs import Costs, Work, windows_work, work_name
from wgslice.plans.kernels import WORD_NBYTES, Kernel
from wgslice.version import VERSION

__all__ = ["Record", "RecordError", "figures_of", "origin_of", "read_record"]

FORMAT = "wgslice costs 1"
WIDTHS_NBYTES = (1, 2, 4, 8, 16)
SOURCES = [Layout.of((2,), (stride,)) for stride in (1, 2, 4, 64)]  # beside each other, near and far

Kind = TypeVar("Kind")


class RecordError(ValueError):
    """Why a file is not used."""


@dataclass(frozen=True)
class Record:
    """What was measured, of what and when."""

    subject: Subject
    costs: Costs
    date: datetime
    seconds: float  # that it took

    def as_json(self) -> dict[str, Any]:
        """What `read_record` takes back as text; units are in the names."""
        subject = self.subject
        return {
            "format": FORMAT,
            "wgslice": VERSION,
            "date": self.date.isoformat(timespec="seconds"),
            "measured_in_s": self.seconds,
            "adapter": {"name": subject.adapter, "backend": subject.backend, "driver": subject.driver},
            "processor": {"name": subject.processor, "cores": subject.cores},
            "costs": figures_of(self.costs),
        }


def origin_of(date: datetime) -> str:
    """Where figures are from that were measured on this machine."""
    return f"figures tuned here on {date:%Y-%m-%d}"


def figures_of(costs: Costs) -> dict[str, Any]:
    """Costs as JSON takes them, without their origin."""
    works = {name: figures(work) for name, work in costs.works.items()}
    return {**{name: getattr(costs, name) for name in fixed_names()}, "works": works}


def figures(work: Work) -> dict[str, float]:
    """A class of work as JSON takes it."""
    return {field.name: getattr(work, field.name) for field in fields(Work)}


def fixed_names() -> list[str]:
    """The figures that are not of a class of work."""
    return [field.name for field in fields(Costs) if field.type == "float"]


def read_record(text: bytes) -> Record:
    """The record that a file's bytes are; a RecordError says what is wrong with them."""
    try:
        content = json.loads(text, parse_int=float)  # which may be too large, but never too long
    except RecursionError:
        raise RecordError("it is no JSON of this kind: too many brackets") from None
    except ValueError as error:
        raise RecordError(f"it is no JSON: {error}" if text.strip() else "it is empty") from None
    if not isinstance(content, dict):
        raise RecordError("it holds no JSON object")
    check_equal("format", field_of(content, "format", str), FORMAT)
    check_equal("wgslice", field_of(content, "wgslice", str), VERSION)
    date = date_of(content)
    adapter, processor = (field_of(content, name, dict) for name in ("adapter", "processor"))
    subject = Subject(
        adapter=field_of(adapter, "name", str, "adapter."),
        backend=field_of(adapter, "backend", str, "adapter."),
        driver=field_of(adapter, "driver", str, "adapter."),
        processor=field_of(processor, "name", str, "processor."),
        cores=int(figure_of(processor, "cores", "processor.")),
    )
    seconds = figure_of(content, "measured_in_s")
    return Record(subject, costs_of(field_of(content, "costs", dict), date), date, seconds)


def costs_of(content: Mapping[str, Any], date: datetime) -> Costs:
    """The figures; each must be there, and be one that work can cost."""
    fixed = {name: figure_of(content, name, "costs.") for name in fixed_names()}
    works = {}
    for name in field_of(content, "works", dict, "costs."):
        if not is_work(name):
            raise RecordError(f"costs.works has {shortened(name)}, which no kernel does")
        work = field_of(content["works"], name, dict, "costs.works.")
        figure = {field.name: figure_of(work, field.name, f"costs.works.{name}.") for field in fields(Work)}
        works[name] = Work(**figure)
    for name in sorted(fallbacks() - works.keys()):
        kernel, _ = name.split()
        raise RecordError(f"costs.works lacks {name!r}: {kernel} takes what no other kernel does")
    return Costs(origin_of(date), **fixed, works=works, is_tuned=True)


def is_work(name: str) -> bool:
    """Whether a kernel does such work, by its first words: the kernel and its elements' bytes."""
    kernel, width, *_ = [*name.split(), "", ""]
    return kernel in {each.value for each in Kernel} and width in map(str, WIDTHS_NBYTES)


def fallbacks() -> set[str]:
    """The classes of work of the kernels that take what no other does."""
    ways = product(SOURCES, WIDTHS_NBYTES)
    copies = {work_name(Kernel.SLICE1, source, width, paired=False) for source, width in ways}
    windows = product((Kernel.EXTRACT_WINDOWS, Kernel.INSERT_WINDOWS), WIDTHS_NBYTES)
    claims = windows_work(Kernel.CLAIM_WINDOWS, WORD_NBYTES)
    return copies | {claims} | {windows_work(kernel, width) for kernel, width in windows}


def date_of(content: Mapping[str, Any]) -> datetime:
    """The day and time of the measurement."""
    date = field_of(content, "date", str)
    try:
        return datetime.fromisoformat(date)
    except ValueError:
        raise RecordError(f"date = {shortened(date)} is no date") from None


def figure_of(content: Mapping[str, Any], name: str, within: str = "") -> float:
    """A number that is possible: seconds may be none, bytes a second may not."""
    figure = field_of(content, name, float, within)
    is_rate = name.endswith("bytes_per_s")
    if not isfinite(figure) or figure < 0 or (is_rate and figure == 0):
        raise RecordError(f"{within}{name} = {figure} is {'no rate' if is_rate else 'no such number'}")
    return figure


def field_of(content: Mapping[str, Any], name: str, kind: type[Kind], within: str = "") -> Kind:
    """A field that must be there, and be of a kind."""
    if name not in content:
        raise RecordError(f"it lacks {within}{name}")
    value = content[name]
    if not isinstance(value, kind):
        kinds = {dict: "object", float: "number", str: "string"}
        raise RecordError(f"{within}{name} = {shortened(value)} is no {kinds[kind]}")
    return value


def check_equal(name: str, found: object, wanted: object) -> None:
    """Refuse a file that is not for this wgslice."""
    if found != wanted:
        raise RecordError(f"it is from another version: its {name} is {shortened(found)}, not {wanted!r}")
