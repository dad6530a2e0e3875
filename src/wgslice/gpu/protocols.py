"""Protocols and usage bits for the parts of wgpu that this package uses, since wgpu ships no types."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NewType, Protocol

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


# Opaque handles; the protocols below list only the members that are used, by WebGPU's names.
BindGroup = NewType("BindGroup", object)
BindGroupLayout = NewType("BindGroupLayout", object)
Pipeline = NewType("Pipeline", object)


class MapPromise(Protocol):
    """A wgpu.GPUPromise of a buffer that is being mapped."""

    def sync_wait(self) -> None: ...
    def then(
        self,
        callback: Callable[[None], Any],
        error_callback: Callable[[Exception], Any],
        title: str | None,
    ) -> Any: ...
    def __await__(self) -> Generator[Any, None, None]: ...


class Buffer(Protocol):
    """A wgpu.GPUBuffer."""

    destroy: Callable[[], None]  # frees its memory and invalidates its bind groups

    @property
    def size(self) -> int: ...  # bytes
    @property
    def usage(self) -> int: ...  # bits of `BufferUsage`
    @property
    def map_state(self) -> str: ...  # "unmapped", "pending" or "mapped"
    @property
    def label(self) -> str: ...
    def map_async(self, mode: str, offset: int, size: int) -> MapPromise: ...
    def read_mapped(self, offset: int, size: int, *, copy: bool) -> memoryview: ...
    def unmap(self) -> None: ...


class Texture(Protocol):
    """A wgpu.GPUTexture."""

    @property
    def size(self) -> tuple[int, int, int]: ...  # of mip level 0: width, height, and depth or layers
    @property
    def dimension(self) -> str: ...  # "1d", "2d" or "3d"
    @property
    def format(self) -> str: ...
    @property
    def mip_level_count(self) -> int: ...
    @property
    def sample_count(self) -> int: ...
    @property
    def usage(self) -> int: ...  # bits of `TextureUsage`
    @property
    def label(self) -> str: ...
    def create_view(self) -> object: ...


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


class GPUAdapter(Protocol):
    """A wgpu.GPUAdapter."""

    @property
    def info(self) -> Mapping[str, str]: ...  # names of device, driver and backend
    def request_device_sync(self) -> GPUDevice: ...  # with all limits of the adapter


class GPUDevice(Protocol):
    """A wgpu.GPUDevice."""

    @property
    def adapter(self) -> GPUAdapter: ...
    @property
    def limits(self) -> Mapping[str, int]: ...  # by WebGPU's names with hyphens
    @property
    def features(self) -> AbstractSet[str]: ...
    @property
    def queue(self) -> Queue: ...
    def create_buffer(self, *, size: int, usage: int) -> Buffer: ...
    def create_buffer_with_data(self, *, data: Any, usage: int) -> Buffer: ...
    def create_bind_group_layout(self, *, entries: Sequence[Mapping[str, Any]]) -> BindGroupLayout: ...
    def create_bind_group(
        self, *, layout: BindGroupLayout, entries: Sequence[Mapping[str, Any]]
    ) -> BindGroup: ...
    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[BindGroupLayout]) -> object: ...
    def create_shader_module(self, *, label: str, code: str) -> object: ...
    def create_compute_pipeline(self, *, layout: object, compute: Mapping[str, Any]) -> Pipeline: ...
    def create_command_encoder(self) -> CommandEncoder: ...
