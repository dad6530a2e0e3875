"""WebGPU's usage bits, whose values the specification fixes: plain integers, quicker to test than flags."""

from __future__ import annotations

__all__ = ["COMPUTE_STAGE", "BufferUsage", "TextureUsage"]

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
