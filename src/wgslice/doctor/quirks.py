"""What is known of drivers that matters to whoever uses them, each with its source."""

from __future__ import annotations

from typing import NamedTuple

from wgslice.gpu.adapter import Adapter

__all__ = ["QUIRKS", "Quirk", "quirks_of"]


class Quirk(NamedTuple):
    """Something about a driver."""

    what: str
    source: str


MEASURED = "measured by wgslice"
MESA = "llvmpipe of Mesa 22.3 and 25.0"
WGPU = "https://github.com/gfx-rs/wgpu"

# By words that backend, name and driver of an adapter contain, case ignored.
QUIRKS = {
    ("Vulkan", "llvmpipe", "Mesa 22."): [
        Quirk(
            "shaders move each lane's element in a loop of its own, so that copies by shaders take several "
            "times as long as with Mesa 25 or newer; long buffer copies do not",
            f"{MEASURED}: Mesa 22.3.6 and 25.0.7, 2 cores of an AMD EPYC",
        ),
        Quirk(
            "Dawn, the WebGPU of Chromium and of the npm package webgpu, refuses it; wgpu takes it",
            f"{MEASURED}: Mesa 22.3 and npm's webgpu",
        ),
    ],
    ("Vulkan", "llvmpipe", "Mesa 26."): [
        Quirk(
            "wgpu's own tests met an LLVM error while a shader was compiled, which ends the process "
            "(Windows)",
            f"{WGPU}/pull/9903",
        ),
    ],
    ("Vulkan", "SwiftShader", ""): [
        Quirk(
            "takes memory at once where other software adapters wait for the first write, and a buffer of "
            "the largest size that it states is refused",
            f"{MEASURED}: SwiftShader of Debian's chromium",
        ),
    ],
    ("OpenGL", "", ""): [
        Quirk(
            "adapters that a program enumerates a second time, beside wgslice, share a context under two "
            "locks: their devices, used in two threads, end the process",
            f"{MEASURED}: wgpu-native 29.0.1.1; also {WGPU}/issues/5349",
        ),
        Quirk(
            "a submission waits until the GPU is done, so that nothing goes on beside it",
            f"{MEASURED}: {MESA}",
        ),
    ],
    ("OpenGL", "llvmpipe", ""): [
        Quirk(
            "remainders of negative integers and divisions by zero are not what WGSL says: kernels have "
            "neither, shaders of your own may",
            f"{MEASURED}: {MESA}",
        ),
    ],
    ("OpenGL", "Adreno", ""): [Quirk("some lose the upper 16 bits of a u32", f"{WGPU}/issues/5318")],
    ("Metal", "", ""): [
        Quirk(
            "barriers of workgroup memory are reported to be compiled wrongly: `tiles` and `wide_tiles` "
            "have one",
            f"{WGPU}/issues/4500",
        ),
    ],
    ("D3D12", "Microsoft Basic Render", ""): [
        Quirk(
            "barriers of workgroup memory are reported not to hold shaders back: `tiles` and `wide_tiles` "
            "have one",
            f"{WGPU}/issues/7904",
        ),
    ],
}


def quirks_of(adapter: Adapter) -> tuple[Quirk, ...]:
    """What is known of an adapter."""
    told = adapter.backend.lower(), adapter.name.lower(), adapter.driver.lower()
    return tuple(
        quirk
        for words, quirks in QUIRKS.items()
        if all(word.lower() in text for word, text in zip(words, told, strict=True))
        for quirk in quirks
    )
