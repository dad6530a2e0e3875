"""Types of what a host offers, by WebGPU's names, usage bits, and marks on buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, NewType, Protocol

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


# Opaque handles; the protocols below list only the members that are used, by WebGPU's names.
BindGroup = NewType("BindGroup", object)
BindGroupLayout = NewType("BindGroupLayout", object)
Pipeline = NewType("Pipeline", object)


class Buffer(Protocol):
    """A wgpu.GPUBuffer."""

    destroy: Callable[[], None]  # frees its memory and invalidates its bind groups
    size: int  # bytes
    usage: int  # bits of `BufferUsage`
    map_state: str  # "unmapped", "pending" or "mapped"
    label: str


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


class ComputePass(Protocol):
    """A wgpu.GPUComputePassEncoder."""

    def set_pipeline(self, pipeline: Pipeline) -> None: ...
    def set_bind_group(self, index: int, bind_group: BindGroup) -> None: ...
    def dispatch_workgroups(self, x: int, y: int, z: int) -> None: ...
    def end(self) -> None: ...


class CommandEncoder(Protocol):
    """A wgpu.GPUCommandEncoder."""

    def begin_compute_pass(self) -> ComputePass: ...
    def copy_buffer_to_buffer(
        self, source: Buffer, source_offset: int, destination: Buffer, destination_offset: int, size: int
    ) -> None: ...
    def clear_buffer(self, buffer: Buffer, offset: int, size: int) -> None: ...
    def finish(self) -> object: ...


class Queue(Protocol):
    """A wgpu.GPUQueue."""

    def submit(self, command_buffers: Sequence[object]) -> None: ...
    def write_buffer(self, buffer: Buffer, buffer_offset: int, data: Any) -> None: ...


class BytesCopy(NamedTuple):
    """A copy of bytes to the start of another buffer."""

    source: Buffer
    offset_nbytes: int
    target: Buffer
    nbytes: int


class GPUDevice(Protocol):
    """A wgpu.GPUDevice."""

    adapter: Any  # the wgpu.GPUAdapter
    features: Collection[str]  # by WebGPU's names
    limits: Mapping[str, int]  # by WebGPU's names with hyphens
    queue: Queue

    def create_buffer(self, *, size: int, usage: int) -> Buffer: ...
    def create_buffer_with_data(self, *, data: Any, usage: int) -> Buffer: ...
    def create_bind_group_layout(self, *, entries: Sequence[Mapping[str, Any]]) -> BindGroupLayout: ...
    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[BindGroupLayout]) -> object: ...
    def create_compute_pipeline(self, *, layout: object, compute: Mapping[str, Any]) -> Pipeline: ...
    def create_command_encoder(self) -> CommandEncoder: ...


class BoundRange(NamedTuple):
    """The part of a buffer at a binding number."""

    number: int
    buffer: Any
    offset_nbytes: int
    nbytes: int


class Region(NamedTuple):
    """The texture, mip level, aspect and origin of a copy."""

    texture: Texture
    origin: tuple[int, int, int]  # x, y, and z or the first layer, in texels
    mip_level: int
    aspect: str  # as WebGPU names it
