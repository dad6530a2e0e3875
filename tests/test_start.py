"""The start of a process: what is parsed, loaded and started until the first slice is read back."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import run_python

import wgslice as wg
from wgslice.gpu.cffi_types import C_TYPES, parse_types

# A first slice; prints the strings that cffi parsed after the header, and those of C_TYPES that it parses to
# another type one by one.
FIRST_SLICE = """
import json
import numpy as np
from cffi import FFI
from cffi.cparser import Parser
from wgpu.backends.wgpu_native import ffi
parse, parsed = Parser.parse_type, []
def parse_type(parser, text):
    parsed.append(text)
    return parse(parser, text)
Parser.parse_type = parse_type
import wgslice as wg
from wgslice.gpu.cffi_types import C_TYPES
x = np.arange(4096, dtype=np.float32).reshape(64, 64)
y = wg.asarray(x)
assert y[:, ::-2].numpy().tolist() == wg.slice1(y, (0, 1), (64, 63), (1, -2)).numpy().tolist()
strings = [*parsed]
kept = {text: ffi._parsed_types.pop(text) for text in C_TYPES}
others = [text for text in C_TYPES if kept[text] != (ffi._typeof(text, True), text.startswith("void("))]
print(json.dumps([strings, others]))
"""


@pytest.mark.every_adapter
def test_a_first_slice_parses_the_types_of_c_at_once(device: wg.Device) -> None:
    done = run_python(FIRST_SLICE, WGSLICE_ADAPTER=str(device.adapter))
    assert done.returncode == 0, done.stderr
    strings, others = json.loads(done.stdout)
    assert [string[:8] for string in strings] == ["void(*)("]
    assert not others


class OtherTypes:
    """What keeps types of C by their strings in another way than cffi 2.1."""

    args: tuple[Any, ...] = ("a type",) * len(C_TYPES)

    def __init__(self, **kept: Any) -> None:
        self.__dict__.update(kept)

    def typeof(self, text: str) -> Any:
        if hasattr(self, "_parsed_types"):
            self._parsed_types[text] = self  # without whether it is a function's
        return self


@pytest.mark.parametrize("ffi", [OtherTypes(), OtherTypes(_parsed_types={}), SimpleNamespace(typeof=int)])
def test_types_that_are_kept_in_another_way_are_left_to_cffi(ffi: Any) -> None:
    parse_types(ffi)
    assert len(getattr(ffi, "_parsed_types", {})) <= 1
