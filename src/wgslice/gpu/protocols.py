"""Types of what a host offers, by WebGPU's names, and bits of usages."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

# Plain integers, faster to test than wgpu's flags; WebGPU fixes their values.
COMPUTE_STAGE = 0x4  # visibility of a binding


class BufferUsage:
    """Bits of a buffer's usage."""

    MAP_READ = 0x1
    COPY_SRC = 0x4
    COPY_DST = 0x8
    INDEX = 0x10
    VERTEX = 0x20
    UNIFORM = 0x40
    STORAGE = 0x80


class TextureUsage:
    """Bits of a texture's usage."""

    COPY_SRC = 0x1
    COPY_DST = 0x2
    TEXTURE_BINDING = 0x4
    RENDER_ATTACHMENT = 0x10


# Handles of a host, by the names of wgpu-py's classes without GPU; wgpu ships no types.
BindGroup: TypeAlias = Any
BindGroupLayout: TypeAlias = Any
CommandEncoder: TypeAlias = Any
ComputePass: TypeAlias = Any
GPUDevice: TypeAlias = Any
Pipeline: TypeAlias = Any
Queue: TypeAlias = Any


class Buffer(Protocol):
    """A wgpu.GPUBuffer, or what stands for one."""

    size: int  # bytes
    usage: int  # bits of `BufferUsage`
    label: str

    @property
    def map_state(self) -> str: ...  # "unmapped", "pending" or "mapped"


class Place(NamedTuple):
    """A buffer, and the byte offset in it that a plan counts from."""

    buffer: Buffer
    base: int = 0


class Texture(Protocol):
    """A wgpu.GPUTexture."""

    size: tuple[int, int, int]  # of mip level 0: width, height, and depth or layers
    dimension: str  # "1d", "2d" or "3d"
    format: str
    mip_level_count: int
    sample_count: int
    usage: int  # bits of `TextureUsage`
    label: str


class BytesCopy(NamedTuple):
    """A copy of bytes to the start of another buffer."""

    source: Buffer
    offset_nbytes: int
    target: Buffer
    nbytes: int


class BoundRange(NamedTuple):
    """The part of a buffer at a binding number."""

    number: int
    buffer: Any
    offset_nbytes: int
    nbytes: int


class TexelRows(NamedTuple):
    """Rows of texels in a buffer: one side of a copy with a region."""

    buffer: Buffer
    offset_nbytes: int
    row_nbytes: int  # from one row to the next
    image_rows: int  # from one layer to the next


class Region(NamedTuple):
    """The texture, mip level, aspect and origin of a copy."""

    texture: Texture
    origin: tuple[int, int, int]  # x, y, and z or the first layer, in texels
    mip_level: int
    aspect: str  # as WebGPU names it
