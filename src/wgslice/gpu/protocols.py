"""Types of a host's handles, by WebGPU's names, bits of usages, and what stands for a buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary, ref

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
CommandEncoder: TypeAlias = Any
ComputePass: TypeAlias = Any
GPUDevice: TypeAlias = Any


class Buffer(Protocol):
    """A wgpu.GPUBuffer, or what stands for one."""

    size: int  # bytes
    usage: int  # bits of `BufferUsage`
    label: str

    @property
    def map_state(self) -> str: ...  # "unmapped", "pending" or "mapped"


class Place(NamedTuple):
    """A buffer, and the byte offset in it that a plan or a read-back counts from."""

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

    def create_view(self) -> Any: ...


class BytesCopy(NamedTuple):
    """A copy of bytes to the start of another buffer."""

    source: Buffer
    offset_nbytes: int
    target: Buffer
    nbytes: int


class BufferRange(NamedTuple):
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


class StandIn:
    """Stands for a buffer inside this package, with the attributes of one."""

    wgpu_device: GPUDevice
    size: int
    usage: int
    label = ""


class Lease(StandIn):
    """The memory of a buffer until the lease is dropped, which gives the buffer back.

    The user gets the host's handle itself, and owns the memory from then on as long as the handle exists:
    `give_back`, told so, frees the buffer instead of using it again.
    """

    def __init__(
        self, wgpu_device: GPUDevice, buffer: Any, give_back: Callable[[Any, bool], None] = lambda *_: None
    ) -> None:
        self.wgpu_device = wgpu_device
        self.size: int = buffer.size
        self.usage: int = buffer.usage
        self.is_given_out = False  # whether the user may keep or destroy the buffer, or use it in commands
        self.handle = handle_of(buffer)
        self._buffer = buffer
        self._give_back = give_back

    @property
    def map_state(self) -> str:
        """Whether the buffer is "unmapped", "pending" or "mapped"."""
        state: str = self.handle.map_state
        return state

    def __del__(self) -> None:
        self._give_back(self._buffer, self.is_given_out)


@dataclass(eq=False)
class Placeholder(StandIn):
    """Replaces a buffer in a captured call, without memory."""

    wgpu_device: GPUDevice
    size: int
    usage: int
    used_nbytes: int  # whole words that tensors may use
    zeroed: bool = True  # whether the call relies on zeros where it does not write
    map_state = "unmapped"


leases: WeakKeyDictionary[Any, ref[Lease]] = WeakKeyDictionary()  # by handles that were given out


def handle_of(buffer: Any) -> Any:
    """Return the host's handle of a buffer or of what stands for one."""
    if isinstance(buffer, Placeholder):
        raise ValueError(
            "the tensor comes from an explained or captured call, which did not run: it has no elements"
        )
    return buffer.handle if isinstance(buffer, Lease) else buffer


def given_out(buffer: Any) -> Any:
    """Return the host's handle of a buffer, for the user, who may keep or destroy it from now on."""
    if not isinstance(buffer, Lease):
        return buffer
    if not buffer.is_given_out:
        buffer.is_given_out = True
        leases[buffer.handle] = ref(buffer)
    return buffer.handle


def is_given_out(buffer: Buffer) -> bool:
    """Whether the user may have a buffer's handle, or commands that use it."""
    return buffer.is_given_out if isinstance(buffer, Lease) else not isinstance(buffer, Placeholder)


def known(handle: Any) -> Any:
    """Return what stands for a buffer whose handle the user gives back, or the handle of another buffer."""
    lease = leases.get(handle)
    return (lease and lease()) or handle
