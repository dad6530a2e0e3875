"""What is known of drivers that matters to whoever uses them, each with its source."""

from __future__ import annotations

from typing import NamedTuple

from wgslice.gpu.adapter import Adapter

__all__ = ["QUIRKS", "Quirk", "quirks_of"]


class Quirk(NamedTuple):
    """Something about adapters whose name, backend and driver contain some words, case ignored."""

    backend: str
    name: str
    driver: str
    what: str
    source: str

    def concerns(self, adapter: Adapter) -> bool:
        """Whether an adapter is such."""
        pairs = (
            (self.backend, adapter.backend),
            (self.name, adapter.name),
            (self.driver, adapter.driver),
        )
        return all(words.lower() in told.lower() for words, told in pairs)


MEASURED = "measured by wgslice"

QUIRKS = (
    Quirk(
        "Vulkan",
        "llvmpipe",
        "Mesa 22.",
        "shaders move each lane's element in a loop of its own, so that copies by shaders take several times "
        "as long as with Mesa 25 or newer; long buffer copies do not",
        f"{MEASURED}: Mesa 22.3.6 and 25.0.7, 2 cores of an AMD EPYC",
    ),
    Quirk(
        "Vulkan",
        "llvmpipe",
        "Mesa 22.",
        "Dawn, the WebGPU of Chromium and of the npm package webgpu, refuses it; wgpu takes it",
        f"{MEASURED}: Mesa 22.3 and npm's webgpu",
    ),
    Quirk(
        "Vulkan",
        "llvmpipe",
        "Mesa 26.",
        "wgpu's own tests met an LLVM error while a shader was compiled, which ends the process (Windows)",
        "https://github.com/gfx-rs/wgpu/pull/9903",
    ),
    Quirk(
        "Vulkan",
        "SwiftShader",
        "",
        "takes memory at once where other software adapters wait for the first write, and a buffer of the "
        "largest size that it states is refused",
        f"{MEASURED}: SwiftShader of Debian's chromium",
    ),
    Quirk(
        "OpenGL",
        "",
        "",
        "adapters that a program enumerates a second time, beside wgslice, share a context under two locks: "
        "their devices, used in two threads, end the process",
        f"{MEASURED}: wgpu-native 29.0.1.1; also https://github.com/gfx-rs/wgpu/issues/5349",
    ),
    Quirk(
        "OpenGL",
        "",
        "",
        "a submission waits until the GPU is done, so that nothing goes on beside it",
        f"{MEASURED}: llvmpipe of Mesa 22.3 and 25.0",
    ),
    Quirk(
        "OpenGL",
        "llvmpipe",
        "",
        "remainders of negative integers and divisions by zero are not what WGSL says: kernels have neither, "
        "shaders of your own may",
        f"{MEASURED}: llvmpipe of Mesa 22.3 and 25.0",
    ),
    Quirk(
        "OpenGL",
        "Adreno",
        "",
        "some lose the upper 16 bits of a u32",
        "https://github.com/gfx-rs/wgpu/issues/5318",
    ),
    Quirk(
        "Metal",
        "",
        "",
        "barriers of workgroup memory are reported to be compiled wrongly: `tiles` and `wide_tiles` have one",
        "https://github.com/gfx-rs/wgpu/issues/4500",
    ),
    Quirk(
        "D3D12",
        "Microsoft Basic Render",
        "",
        "barriers of workgroup memory are reported not to hold shaders back: `tiles` and "
        "`wide_tiles` have one",
        "https://github.com/gfx-rs/wgpu/issues/7904",
    ),
)


def quirks_of(adapter: Adapter) -> tuple[Quirk, ...]:
    """What is known of an adapter."""
    return tuple(quirk for quirk in QUIRKS if quirk.concerns(adapter))
