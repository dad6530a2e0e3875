"""wgpu's objects and usage bits as this package uses them: wgpu ships no types of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

__all__ = [
    "COMPUTE_STAGE",
    "BindGroup",
    "BindGroupLayout",
    "Buffer",
    "BufferUsage",
    "CommandBuffer",
    "CommandEncoder",
    "ComputePass",
    "GPUAdapter",
    "GPUDevice",
    "MapPromise",
    "Pipeline",
    "Queue",
    "ShaderModule",
    "TextureUsage",
]

# Plain integers, quicker to test than wgpu's flags; WebGPU fixes their values.
COMPUTE_STAGE = 0x4  # of a binding's visibility


class BufferUsage:
    """What a buffer may be used for."""

    MAP_READ = 0x1
    COPY_SRC = 0x4
    COPY_DST = 0x8
    INDEX = 0x10
    VERTEX = 0x20
    UNIFORM = 0x40
    STORAGE = 0x80


class TextureUsage:
    """What a texture may be used for."""

    COPY_DST = 0x2
    TEXTURE_BINDING = 0x4


class Pipeline(Protocol):
    """A wgpu.GPUComputePipeline."""


class PipelineLayout(Protocol):
    """A wgpu.GPUPipelineLayout."""


class BindGroup(Protocol):
    """A wgpu.GPUBindGroup."""


class BindGroupLayout(Protocol):
    """A wgpu.GPUBindGroupLayout."""


class ShaderModule(Protocol):
    """A wgpu.GPUShaderModule."""


class CommandBuffer(Protocol):
    """A wgpu.GPUCommandBuffer."""


class MapPromise(Protocol):
    """A wgpu.GPUPromise of a buffer that is being mapped."""

    def sync_wait(self) -> None:
        """Wait for it; an error where it has failed."""


class Buffer(Protocol):
    """A wgpu.GPUBuffer."""

    destroy: Callable[[], None]  # frees its memory; what refers to it is invalid from then on

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def usage(self) -> int:
        """Bits of `BufferUsage`."""

    @property
    def map_state(self) -> str:
        """Whether the CPU has it: "unmapped", "pending" or "mapped"."""

    @property
    def label(self) -> str:
        """What its maker called it."""

    def map_async(self, mode: str, offset: int, size: int) -> MapPromise:
        """Begin to give the CPU a stretch of it."""

    def read_mapped(self, offset: int, size: int, *, copy: bool) -> memoryview:
        """The bytes of a mapped stretch."""

    def unmap(self) -> None:
        """Give it back to the GPU."""


class ComputePass(Protocol):
    """A wgpu.GPUComputePassEncoder."""

    def set_pipeline(self, pipeline: Pipeline) -> None:
        """Choose what the next dispatches run."""

    def set_bind_group(self, index: int, bind_group: BindGroup) -> None:
        """Choose what the next dispatches see."""

    def dispatch_workgroups(self, x: int, y: int, z: int) -> None:
        """Run a grid of workgroups."""

    def end(self) -> None:
        """Let the encoder record other commands."""


class CommandEncoder(Protocol):
    """A wgpu.GPUCommandEncoder."""

    def begin_compute_pass(self) -> ComputePass:
        """Record dispatches until the pass ends."""

    def copy_buffer_to_buffer(
        self, source: Buffer, source_offset: int, destination: Buffer, destination_offset: int, size: int
    ) -> None:
        """Record a copy of bytes."""

    def copy_buffer_to_texture(
        self, source: Mapping[str, Any], destination: Mapping[str, Any], copy_size: Sequence[int]
    ) -> None:
        """Record a copy of texels."""

    def clear_buffer(self, buffer: Buffer, offset: int, size: int) -> None:
        """Record zeros."""

    def finish(self) -> CommandBuffer:
        """What was recorded, to submit."""


class Queue(Protocol):
    """A wgpu.GPUQueue."""

    def submit(self, command_buffers: Sequence[CommandBuffer]) -> None:
        """Let the GPU begin."""

    def write_buffer(self, buffer: Buffer, buffer_offset: int, data: Any) -> None:
        """Write bytes before all that is submitted later."""


class GPUAdapter(Protocol):
    """A wgpu.GPUAdapter."""

    @property
    def info(self) -> Mapping[str, str]:
        """Names of device, driver and backend."""

    def request_device_sync(self) -> GPUDevice:
        """Make a device with all limits of the adapter."""


class GPUDevice(Protocol):
    """A wgpu.GPUDevice."""

    @property
    def adapter(self) -> GPUAdapter:
        """What it was requested of."""

    @property
    def limits(self) -> Mapping[str, int]:
        """What it can do at most, by WebGPU's names with hyphens."""

    @property
    def features(self) -> AbstractSet[str]:
        """What it can do beyond WebGPU's core."""

    @property
    def queue(self) -> Queue:
        """Where commands are submitted."""

    def create_buffer(self, *, size: int, usage: int) -> Buffer:
        """Make a buffer of zeros."""

    def create_buffer_with_data(self, *, data: Any, usage: int) -> Buffer:
        """Make a buffer of bytes."""

    def create_bind_group_layout(self, *, entries: Sequence[Mapping[str, Any]]) -> BindGroupLayout:
        """Describe bindings."""

    def create_bind_group(
        self, *, layout: BindGroupLayout, entries: Sequence[Mapping[str, Any]]
    ) -> BindGroup:
        """Bind buffers."""

    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[BindGroupLayout]) -> PipelineLayout:
        """Describe all bindings of a pipeline."""

    def create_shader_module(self, *, label: str, code: str) -> ShaderModule:
        """Parse WGSL."""

    def create_compute_pipeline(self, *, layout: PipelineLayout, compute: Mapping[str, Any]) -> Pipeline:
        """Compile an entry point."""

    def create_command_encoder(self) -> CommandEncoder:
        """Begin to record."""
