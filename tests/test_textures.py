"""Textures: copies to and from them are bit for bit, change nothing else, and refuse what WebGPU refuses."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import pytest
from helpers import STORAGE, check_bytes, check_same, make_buffer, on_one_adapter, random_array, random_bytes
from numpy.typing import NDArray
from running import noted

import wgslice as wg
from wgslice.gpu.pipelines import BufferPool

COPY_SRC, COPY_DST, RENDER_ATTACHMENT = 1, 2, 16  # of textures
NORM16 = "texture-format16bit-norm"
FEATURES = {NORM16, "depth32float-stencil8"}

FORMATS: dict[str, tuple[str, int]] = {  # dtype and channels
    f"{channels}{int(dtype[1]) * 8}{kind}": (dtype, len(channels))
    for kind, dtypes in {
        **{"unorm": ["u1", "u2"], "snorm": ["i1", "i2"]},
        **{"uint": ["u1", "u2", "u4"], "sint": ["i1", "i2", "i4"], "float": ["f2", "f4"]},
    }.items()
    for dtype in dtypes
    for channels in ("r", "rg", "rgba")
} | dict.fromkeys(("rgba8unorm-srgb", "bgra8unorm", "bgra8unorm-srgb"), ("u1", 4))
SAMPLE = ["rgba8unorm", "r8sint", "rg16float", "rgba32float", "bgra8unorm-srgb"]  # of the default tier
SIZES = {"1d": [(65, 1, 1)], "2d": [(65, 5, 1), (64, 3, 2), (3, 4, 3)], "3d": [(64, 2, 3), (7, 5, 2)]}


def tiers(default: list[str], all: list[str]) -> list[Any]:
    """The formats as parameters: those of the default tier, those of CI too, and others of the deep tier."""
    marks: dict[bool, Any] = {True: pytest.mark.slow, False: pytest.mark.deep}
    return [pytest.param(each, marks=() if each in default else marks[each in all]) for each in FORMATS]


@pytest.fixture(scope="module")
def textures(device: wg.Device) -> wg.Device:
    """A device of the same adapter with all formats that it has."""
    adapter = device.wgpu_device.adapter
    return wg.Device.wrap(adapter.request_device_sync(required_features=FEATURES & set(adapter.features)))


@pytest.fixture(autouse=True)
def wgpu_says_nothing(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Its validation errors are raised or logged."""
    yield
    assert [each.message for each in caplog.get_records("call") if each.name.startswith("wgpu")] == []


def make_texture(
    device: wg.Device,
    format: str,
    size: tuple[int, ...],
    dimension: str = "2d",
    mips: int = 1,
    usage: int = 3,
) -> Any:
    if (
        re.search("16[us]norm", format)
        and "depth" not in format
        and NORM16 not in device.wgpu_device.features
    ):
        pytest.skip(f"{device} has no {format}")
    return device.wgpu_device.create_texture(
        size=size, format=format, dimension=dimension, mip_level_count=mips, usage=usage
    )


def shape_of(size: tuple[int, int, int], dimension: str, channels: int) -> tuple[int, ...]:
    width, height, depth = size
    sizes = (width,) if dimension == "1d" else (height, width) if depth == 1 else (depth, height, width)
    return sizes if channels == 1 else (*sizes, channels)


def wgpus(
    device: wg.Device, texture: Any, like: NDArray[Any], size: tuple[int, int, int], mip_level: int = 0
) -> NDArray[Any]:
    """Texels that wgpu reads from the first one on, as an array like another one."""
    source = {"texture": texture, "mip_level": mip_level, "origin": (0, 0, 0)}
    row_nbytes = like.nbytes // (size[1] * size[2])
    read = device.wgpu_device.queue.read_texture(source, {"bytes_per_row": row_nbytes}, size)
    return np.frombuffer(bytes(read), like.dtype).reshape(like.shape)


def check_read(texture: Any, expected: NDArray[Any], **region: Any) -> None:
    """A region is read alike into a tensor, into an array and into mapped memory."""
    check_same(wg.from_texture(texture, **region).numpy(), expected)
    check_same(wg.map_texture(texture, **region), expected)
    out = np.zeros_like(expected)
    assert wg.from_texture(texture, **region, out=out) is out
    check_same(out, expected)


def readable(device: wg.Device, texture: Any, z: int = 0) -> bool:
    """Whether the adapter reads texels from z on; if not, that is refused."""
    is_lost = "snorm" in texture.format or (texture.dimension == "3d" and z > 0)
    if is_lost and device.adapter.backend == "OpenGL":
        refused(ValueError, "wgpu on OpenGL reads", wg.from_texture, texture, origin=(0, 0, z))
        return False
    return True


def check_texels(
    device: wg.Device, format: str, size: tuple[int, int, int], dimension: str, seed: int = 0
) -> None:
    """All texels are written, and read alike by this package and by wgpu."""
    dtype, channels = FORMATS[format]
    texture = make_texture(device, format, size, dimension)
    array = random_array(shape_of(size, dimension, channels), dtype, seed)
    wg.copy_to_texture(wg.asarray(array, device=device), texture)
    if readable(device, texture):
        check_read(texture, array)
        check_same(wgpus(device, texture, array, size), array)


@pytest.mark.every_adapter
@pytest.mark.parametrize("dimension", SIZES)
@pytest.mark.parametrize("format", tiers(SAMPLE, [*FORMATS]))
def test_texels_return_from_a_texture_bit_for_bit(textures: wg.Device, format: str, dimension: str) -> None:
    for size in SIZES[dimension]:
        check_texels(textures, format, size, dimension)


@pytest.mark.every_adapter
@pytest.mark.parametrize("format", tiers(["rgba8unorm"], ["r8unorm", "rg16uint", "rgba32float"]))
def test_rows_of_every_width_around_multiples_of_256_bytes(textures: wg.Device, format: str) -> None:
    for width in (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257):
        check_texels(textures, format, (width, 3, 1), "2d", width)


@pytest.mark.parametrize("format", tiers([], ["r8unorm", "rgba8unorm"]))
def test_rows_of_every_width(textures: wg.Device, format: str) -> None:
    """One below the other in two layers of one texture, whose other texels stay 0."""
    dtype, channels = FORMATS[format]
    size = 130, 260, 2
    texture, expected = make_texture(textures, format, size), np.zeros(shape_of(size, "2d", channels), dtype)
    content, read = random_array((130, 768 * channels), dtype), np.zeros((130, 768 * channels), dtype)
    x, y = (wg.asarray(each, device=textures) for each in (content, read))
    if not readable(textures, texture):
        return
    for width in range(1, 131):
        region, shape = (width, 2, 2), shape_of((width, 2, 2), "2d", channels)
        place, start = np.s_[width - 1, : prod(shape)], (0, 2 * width - 2, 0)
        wg.copy_to_texture(x[place].reshape(shape), texture, origin=start)
        wg.from_texture(texture, origin=start, size=region, out=y[place].reshape(shape))
        read[place] = content[place]
        expected[:, 2 * width - 2 : 2 * width, :width] = content[place].reshape(shape)
    check_same(y.numpy(), read)
    check_same(wgpus(textures, texture, expected, size), expected)


REGIONS: list[tuple[str, tuple[int, int, int], tuple[int, int, int], tuple[int, int, int], int]] = [
    ("2d", (70, 9, 4), (3, 2, 1), (64, 4, 2), 0),
    ("2d", (70, 9, 4), (1, 0, 3), (33, 1, 1), 1),
    ("2d", (70, 9, 1), (69, 8, 0), (1, 1, 1), 0),
    ("2d", (70, 9, 2), (0, 1, 0), (17, 1, 2), 2),
    ("3d", (66, 8, 6), (1, 1, 2), (65, 7, 4), 0),
    ("3d", (66, 8, 6), (0, 1, 1), (33, 3, 2), 1),
    ("1d", (70, 1, 1), (5, 0, 0), (60, 1, 1), 0),
]


@pytest.mark.every_adapter
@pytest.mark.parametrize(("dimension", "extent", "origin", "size", "mip_level"), REGIONS)
@pytest.mark.parametrize("format", tiers(["rgba8unorm", "r8sint"], SAMPLE))
def test_a_region_is_written_and_read_and_the_rest_is_kept(
    textures: wg.Device,
    format: str,
    dimension: str,
    extent: tuple[int, int, int],
    origin: tuple[int, int, int],
    size: tuple[int, int, int],
    mip_level: int,
) -> None:
    dtype, channels = FORMATS[format]
    texture = make_texture(textures, format, extent, dimension, mips=1 if dimension == "1d" else 3)
    shifts = [mip_level, mip_level, mip_level * (dimension == "3d")]
    width, height, depth = (max(side >> shift, 1) for side, shift in zip(extent, shifts, strict=True))
    level = random_array(shape_of((width, height, depth), dimension, channels), dtype, 1)
    wg.copy_to_texture(wg.asarray(level, device=textures), texture, mip_level=mip_level)
    array = random_array(shape_of(size, dimension, channels), dtype, 2)
    wg.copy_to_texture(wg.asarray(array, device=textures), texture, origin=origin, mip_level=mip_level)
    if readable(textures, texture, origin[2]):
        check_read(texture, array, origin=origin, size=size, mip_level=mip_level)
    (x, y, z), (w, h, d) = origin, size
    level.reshape(depth, height, width, channels)[z : z + d, y : y + h, x : x + w] = array.reshape(
        d, h, w, channels
    )
    if readable(textures, texture):
        check_read(texture, level, mip_level=mip_level)
        check_same(wgpus(textures, texture, level, (width, height, depth), mip_level), level)
        others = {*range(texture.mip_level_count)} - {mip_level}
        assert not any(wg.from_texture(texture, mip_level=other).numpy().any() for other in others)


def test_a_region_reaches_to_the_end_of_its_level_by_default(device: wg.Device) -> None:
    texture = make_texture(device, "r8uint", (8, 6, 3), mips=2)
    array = random_array((3, 3, 4), "u1")
    wg.copy_to_texture(wg.asarray(array, device=device), texture, mip_level=1)
    check_read(texture, array[1:, 2:, 1:], origin=(1, 2, 1), mip_level=1)
    check_read(texture, array[0, :1, 1:3], origin=[1], size=[2], mip_level=1)
    assert wg.from_texture(texture, origin=(8, 6, 3)).shape == (0, 0, 0)
    assert wg.from_texture(texture, size=(2, 2, 0)).shape == (0, 2, 2)
    wg.copy_to_texture(wg.empty((0, 4), np.uint8, device=device), texture, origin=(0, 6))


VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x[::-1, ::-1],
    lambda x: x[1::2, 3:],
    lambda x: x[..., ::-1],
    lambda x: x.transpose(1, 0, 2)[:, 1:],
    lambda x: x[:1, :64][:, ::-2],
]


@pytest.mark.every_adapter
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
def test_views_of_any_strides_are_copied_and_written(
    device: wg.Device, dtype: str, view: Callable[[Any], Any]
) -> None:
    array = random_array((6, 70, 4), dtype)
    x, expected = wg.asarray(array, device=device), view(array)
    format = f"rgba{8 * x.itemsize}uint"
    texture = make_texture(device, format, (*expected.shape[1::-1], 1))
    wg.copy_to_texture(view(x), texture)
    check_read(texture, np.ascontiguousarray(expected))
    other = random_array((6, 70, 4), dtype, 5)
    target = wg.asarray(other, device=device)
    assert wg.from_texture(texture, out=view(target)).shape == expected.shape
    view(other)[...] = expected
    check_same(target.numpy(), other)


@pytest.mark.every_adapter
@pytest.mark.parametrize("offset", [0, 4, 8, 256])
@pytest.mark.parametrize("usage", [STORAGE, STORAGE | 0x4, STORAGE | 0x8, STORAGE | 0xC])
def test_bound_buffers_keep_bytes_outside_the_layout(device: wg.Device, usage: int, offset: int) -> None:
    """Rows 512 bytes apart, as a texture is copied to and from, and rows that are not."""
    texture = make_texture(device, "rgba8uint", (5, 3, 1))
    array = random_array((3, 5, 4), "u1")
    wg.copy_to_texture(wg.asarray(array, device=device), texture)
    for row in (512, 508, 20):
        content = random_bytes(2048, seed=3)
        buffer = make_buffer(device, content, usage)
        x = wg.from_buffer(buffer, (3, 5, 4), np.uint8, offset=offset, strides=(row, 4, 1))
        wg.from_texture(texture, out=x)
        expected = content.copy()
        expected_view = np.ndarray((3, 5, 4), np.uint8, expected.data, offset, (row, 4, 1))
        expected_view[...] = array
        check_bytes(wg.from_buffer(buffer, 2048, np.uint8).numpy(), expected)
        wg.copy_to_texture(x[::-1], texture)
        check_read(texture, array[::-1])
        wg.copy_to_texture(x, texture)


def test_rows_in_texture_copy_layout_need_no_staging_buffer(device: wg.Device) -> None:
    texture = make_texture(device, "rgba8unorm", (64, 4, 1))
    (plan,) = wg.explain(wg.from_texture, texture).plans
    assert plan.summary.endswith("texture-to-buffer copy")
    x = wg.empty((8, 64, 4), np.uint8, device=device)
    (plan,) = wg.explain(wg.copy_to_texture, x[::2], texture).plans
    assert [str(step) for step in plan.steps] == [
        "buffer-to-texture copy, 64 x 4 x 1 texels: buffer rows are 512 bytes apart"
    ]
    padded, moved = wg.explain(wg.from_texture, texture, size=(63, 4)).plans
    assert "texture-to-buffer copy" in padded.summary
    assert "texture-to-buffer copy" not in moved.summary
    assert moved.nbytes == 63 * 4 * 4
    assert len(wg.explain(wg.copy_to_texture, x[:4, ::-1], texture).submissions) == 1


@pytest.mark.every_adapter
def test_the_last_row_of_a_buffer_needs_no_padding(device: wg.Device) -> None:
    texture, array = make_texture(device, "rgba8uint", (5, 3, 1)), random_array((3, 5, 4), "u1")
    content = random_bytes(2 * 256 + 20, seed=1)
    buffer = make_buffer(device, content)
    assert buffer.size == content.size
    x = wg.from_buffer(buffer, array.shape, np.uint8, strides=(256, 4, 1))
    wg.copy_to_texture(wg.asarray(array, device=device), texture)
    assert len(wg.explain(wg.from_texture, texture, out=x).plans) == 1  # no staging buffer
    wg.from_texture(texture, out=x)
    np.ndarray(array.shape, np.uint8, content.data, 0, (256, 4, 1))[...] = array
    check_bytes(wg.from_buffer(buffer, content.size, np.uint8).numpy(), content)
    x[...] = array[::-1]
    wg.copy_to_texture(x, texture)
    check_read(texture, array[::-1])


@pytest.mark.every_adapter
@pytest.mark.parametrize("view", [np.s_[:, :2], np.s_[::2, 1:], np.s_[:, 1:2], np.s_[::-1, :2]])
def test_layers_and_rows_may_have_gaps(device: wg.Device, view: Any) -> None:
    array, other = random_array((4, 4, 64, 4), "u1"), random_array((4, 4, 64, 4), "u1", 1)
    layers, height = array[view].shape[:2]
    texture = make_texture(device, "rgba8uint", (64, height, layers))
    wg.copy_to_texture(wg.asarray(array, device=device)[view], texture)
    check_read(texture, np.ascontiguousarray(array[view]))
    target = wg.asarray(other, device=device)
    wg.from_texture(texture, out=target[view])
    other[view] = array[view]
    check_same(target.numpy(), other)


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("format", "alpha"),
    [("rgba8unorm", 255), ("bgra8unorm", 7), ("rgba16float", 1.5), ("rgba32float", -2), ("rgba16sint", -3)],
)
def test_three_channels_get_a_fourth(device: wg.Device, format: str, alpha: float) -> None:
    dtype, _ = FORMATS[format]
    for size in ((65, 5, 1), (64, 3, 2), (1, 1, 1)):
        texture = make_texture(device, format, size)
        array = random_array(shape_of(size, "2d", 3), dtype)
        for view in (np.s_[:], np.s_[..., ::-1, :], np.s_[..., ::-1]):
            wg.copy_to_texture(wg.asarray(array, device=device)[view], texture, alpha=alpha)
            expected = np.full(shape_of(size, "2d", 4), alpha, dtype)
            expected[..., :3] = array[view]
            check_read(texture, expected)


def test_a_fourth_sub_word_channel_is_of_the_same_dispatch(device: wg.Device) -> None:
    texture = make_texture(device, "rgba8unorm", (65, 5, 1))
    explanation = wg.explain(wg.copy_to_texture, x_of(device, (5, 65, 3)), texture, alpha=1)
    assert [len(plan.steps) for plan in explanation.plans] == [1, 1]
    assert len(explanation.submissions) == 1
    assert explanation.uploaded_nbytes == 0


DEPTH_AND_STENCIL = [  # format, aspect, dtype, whether it can be written
    ("depth16unorm", "all", "u2", True),
    ("depth16unorm", "depth-only", "u2", True),
    ("stencil8", "all", "u1", True),
    ("depth24plus-stencil8", "stencil-only", "u1", True),
    ("depth32float-stencil8", "stencil-only", "u1", True),
    ("depth32float", "all", "f4", False),
    ("depth32float-stencil8", "depth-only", "f4", False),
]


@pytest.mark.every_adapter
@pytest.mark.parametrize(("format", "aspect", "dtype", "writable"), DEPTH_AND_STENCIL)
def test_depth_and_stencil_are_copied_by_aspect(
    textures: wg.Device, format: str, aspect: Any, dtype: str, writable: bool
) -> None:
    texture = make_texture(textures, format, (37, 5, 2), usage=3 | RENDER_ATTACHMENT)
    array = random_array((5, 37), dtype)
    if textures.adapter.backend == "OpenGL":
        said = "wgpu on OpenGL copies no depth or stencil; use an adapter of another backend"
        refused(ValueError, said, wg.from_texture, texture, aspect=aspect)
        if writable:
            refused(ValueError, said, wg.copy_to_texture, wg.asarray(array, device=textures), texture)
        return
    said = "WebGPU copies depth and stencil whole"
    refused(ValueError, said, wg.from_texture, texture, aspect=aspect, size=(2, 4))
    if writable:
        wg.copy_to_texture(wg.asarray(array, device=textures), texture, origin=(0, 0, 1))
    else:
        array = np.full((5, 37), 0.625, np.float32)
        clear_depth(textures, texture, layer=1, value=0.625)
    check_read(texture, array, origin=(0, 0, 1), aspect=aspect)
    check_read(texture, np.stack([np.zeros_like(array), array]), aspect=aspect)


def clear_depth(device: wg.Device, texture: Any, layer: int, value: float) -> None:
    """Draw nothing into a layer of a depth texture but its clear value."""
    view = texture.create_view(dimension="2d", base_array_layer=layer, array_layer_count=1)
    attachment = {
        "view": view,
        **{"depth_clear_value": value, "depth_load_op": "clear", "depth_store_op": "store"},
    }
    if "stencil" in texture.format:
        attachment |= {"stencil_clear_value": 0, "stencil_load_op": "clear", "stencil_store_op": "store"}
    encoder = device.wgpu_device.create_command_encoder()
    encoder.begin_render_pass(color_attachments=[], depth_stencil_attachment=attachment).end()
    device.wgpu_device.queue.submit([encoder.finish()])


@pytest.mark.every_adapter
def test_copies_run_in_the_order_of_the_calls(device: wg.Device) -> None:
    texture = make_texture(device, "r32uint", (50, 20, 1))
    x = wg.zeros((20, 50), np.uint32, device=device)
    for number in range(5):
        x[...] = number
        wg.copy_to_texture(x[:, :number], texture, origin=(10 * number, 0))
        x[...] = 99
    read = wg.from_texture(texture)
    wg.copy_to_texture(x, texture)
    expected = np.zeros((20, 50), np.uint32)
    for number in range(5):
        expected[:, 10 * number : 11 * number] = number
    check_same(read.numpy(), expected)


@pytest.mark.every_adapter
@pytest.mark.parametrize("view", [*VIEWS, lambda x: x.transpose(1, 0, 2)])
def test_arrays_of_any_strides_are_filled_and_the_rest_is_kept(
    device: wg.Device, view: Callable[[Any], Any]
) -> None:
    out, expected = random_array((6, 70, 4), "u2"), random_array((6, 70, 4), "u2")
    content = random_array(view(out).shape, "u2", 5)
    texture = make_texture(device, "rgba16uint", (*content.shape[1::-1], 1))
    wg.copy_to_texture(wg.asarray(content, device=device), texture)
    wg.from_texture(texture, out=view(out))
    view(expected)[...] = content
    check_same(out, expected)


@pytest.mark.parametrize("size", [(1100, 600, 1), (200, 300, 11)])
def test_arrays_of_more_than_a_staging_buffer_are_filled(device: wg.Device, size: Any) -> None:
    texture = make_texture(device, "rgba32float", size)
    content = random_array(shape_of(size, "2d", 4), "u4").view("f4")
    wg.copy_to_texture(wg.asarray(content, device=device), texture)
    check_same(wg.from_texture(texture, out=np.zeros_like(content)), content)


def test_reads_into_arrays_reuse_one_staging_buffer(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    texture = make_texture(device, "rgba8unorm", (65, 5, 1))
    out = np.zeros((5, 65, 4), np.uint8)
    wg.from_texture(texture, out=out)
    for name in ("create_buffer", "create_buffer_with_data", "create_compute_pipeline"):
        monkeypatch.setattr(type(device.wgpu_device), name, None)  # a call would fail
    wg.from_texture(texture, out=out)


# Mapped arrays


@pytest.mark.parametrize("writes", [False, True])
def test_a_staging_buffer_is_kept_until_its_commands_are_submitted(device: wg.Device, writes: bool) -> None:
    """Another thread may be given its memory as soon as it is dropped."""
    texture = made_texture(device, np.zeros((600, 500, 4), np.uint8))
    tensor = wg.zeros((600, 500, 4), np.uint8, device=device)
    order: list[str] = []
    submits = noted(wg.Device, "submit", lambda *_: order.append("submit"))
    with submits, noted(BufferPool, "give", lambda *_: order.append("give")):
        if writes:
            wg.copy_to_texture(tensor, texture)
        else:
            wg.from_texture(texture, out=tensor)
    assert order == ["submit", "give"]


def made_texture(device: wg.Device, content: NDArray[Any]) -> Any:
    """A texture of rgba8uint with a content."""
    texture = make_texture(device, "rgba8uint", (content.shape[1], content.shape[0], 1))
    wg.copy_to_texture(wg.asarray(content, device=device), texture)
    return texture


def test_a_mapped_array_is_a_read_only_view_of_padded_rows(device: wg.Device) -> None:
    content = random_array((5, 65, 4), "u1")
    array = wg.map_texture(made_texture(device, content))
    assert array.strides == (512, 4, 1)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
        array.flags.writeable = True
    empty = wg.map_texture(made_texture(device, content), size=(0, 5))
    check_same(empty, content[:, :0])
    assert not empty.flags.writeable


@pytest.mark.every_adapter
def test_mapped_arrays_and_their_views_keep_their_elements(device: wg.Device) -> None:
    contents = [random_array((5, 65, 4), "u1", seed) for seed in range(4)]
    views = [wg.map_texture(made_texture(device, content))[::-1, 1:].T for content in contents]
    for content, view in zip(contents, views, strict=True):
        other = made_texture(device, contents[0])
        check_same(wg.map_texture(other), contents[0])
        check_same(wg.from_texture(other, out=np.zeros_like(content)), contents[0])
        check_same(np.array(view), np.array(content[::-1, 1:].T))


def test_a_dropped_mapped_array_returns_its_staging_buffer(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = random_array((5, 65, 4), "u1")
    texture = made_texture(device, content)
    view = wg.map_texture(texture)[1:]
    address = view.ctypes.data
    for name in ("create_buffer", "create_buffer_with_data"):
        monkeypatch.setattr(type(device.wgpu_device), name, None)  # a call would fail
    for _ in range(3):
        del view
        view = wg.map_texture(texture)[1:]
        check_same(view, content[1:])
        assert view.ctypes.data == address or sys.platform == "emscripten"  # where arrays are copies


def test_threads_map_textures_at_the_same_time(device: wg.Device) -> None:
    contents = [random_array((40, 70, 4), "u1", seed) for seed in range(3)]
    textures = [made_texture(device, content) for content in contents]

    def mapped(number: int) -> bool:
        held = [wg.map_texture(textures[number % 3]) for _ in range(2)]
        return all(np.array_equal(array, contents[number % 3]) for array in held)

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(mapped, range(30)))


def test_a_device_is_not_destroyed_under_mapped_arrays(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    content = random_array((5, 65, 4), "u1")
    texture = made_texture(lost, content)
    view = wg.map_texture(texture)[1:]
    refused(BufferError, "destroy: arrays are on 1 mapped buffer(s) of the device", lost.wgpu_device.destroy)
    check_same(view, content[1:])
    check_same(wg.map_texture(texture), content)
    del view
    lost.wgpu_device.destroy()
    refused(wg.DeviceLostError, "map_texture: the device is lost", wg.map_texture, texture)


def test_an_array_of_a_device_that_was_lost_is_dropped_silently(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    array = wg.map_texture(made_texture(lost, random_array((5, 65, 4), "u1")))
    type(lost.wgpu_device).destroy(lost.wgpu_device)  # as if the driver had lost it
    del array
    lost.wgpu_device.destroy()


@on_one_adapter
def test_what_cannot_be_mapped_is_refused(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    texture = made_texture(device, random_array((5, 65, 4), "u1"))
    refused(wg.CaptureRefused, "map_texture: 1300 bytes are read back", wg.explain, wg.map_texture, texture)
    refused(ValueError, "map_texture: mip_level = 1: the texture", wg.map_texture, texture, mip_level=1)
    monkeypatch.setattr(device, "largest_buffer_nbytes", 1000)
    refused(ValueError, "map_texture: rows padded to 256 bytes have 2308: ", wg.map_texture, texture)
    texture.destroy()
    refused(ValueError, "map_texture: the texture of rgba8uint, 65 x 5 x 1 has been", wg.map_texture, texture)


# Operators


@pytest.mark.every_adapter
@pytest.mark.parametrize("width", [64, 63])
def test_operators_record_into_a_callers_encoder(device: wg.Device, width: int) -> None:
    texture = make_texture(device, "rgba8unorm", (130, 9, 1))
    desc = wg.TensorDesc("uint8", (4, width, 4))
    write = device.compile(wg.ToTexture(desc, "rgba8unorm", origin=(1, 0)))
    read = device.compile(wg.FromTexture("rgba8unorm", desc, origin=(1, 0)))
    tiles = random_array((2, 4, width, 4), "u1")
    x, y = wg.asarray(tiles, device=device), wg.zeros((3, 4, width, 4), np.uint8, device=device)
    encoder = device.wgpu_device.create_command_encoder()
    write.record(encoder, input=x[0], output=texture)
    write.record(encoder, input=(x.buffer, x[1].offset), output=(texture, (66, 5)))
    read.record(encoder, input=(texture, (66, 5)), output=y[0])
    read.record(encoder, input=texture, output=(y.buffer, y[2].offset))
    device.wgpu_device.queue.submit([encoder.finish()])
    check_same(y.numpy(), np.stack([tiles[1], np.zeros_like(tiles[0]), tiles[0]]))
    check_same(read((texture, (66, 5))).numpy(), tiles[1])
    assert write(x[1], texture) is texture
    check_same(read(texture, y[1]).numpy(), tiles[1])


def test_an_operator_makes_no_objects_after_its_first_run(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    texture = make_texture(device, "rgba8unorm", (65, 5, 1))
    write = device.compile(wg.ToTexture(wg.TensorDesc("uint8", (5, 65, 3)), "rgba8unorm", alpha=200))
    array = random_array((5, 65, 3), "u1")
    x = wg.asarray(array, device=device)
    write(x, texture)
    for name in ("create_buffer", "create_buffer_with_data", "create_compute_pipeline"):
        monkeypatch.setattr(type(device.wgpu_device), name, None)  # a call would fail
    write(x, texture)
    monkeypatch.undo()
    assert len(write.plans) == 2
    expected = np.full((5, 65, 4), 200, np.uint8)
    expected[..., :3] = array
    check_same(wg.from_texture(texture).numpy(), expected)


def test_descriptors_are_explained_as_they_run(device: wg.Device) -> None:
    for descriptor in (
        wg.FromTexture("rgba8unorm", wg.TensorDesc("uint8", (5, 65, 4))),
        wg.ToTexture(wg.TensorDesc("uint8", (5, 65, 3)), "rgba8unorm", alpha=255),
        wg.FromTexture("r32float", wg.TensorDesc("float32", (2, 5, 64))),
    ):
        explained = wg.explain(descriptor, device=device)
        compiled = device.compile(descriptor)
        assert list(map(str, explained.plans)) == list(map(str, compiled.plans))
        assert str(explained).startswith(f"{compiled.name}: ")
    assert len(explained.plans) == 1


# Refusals


def refused(
    kind: type[Exception], said: str, call: Callable[..., Any], *arguments: Any, **options: Any
) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        call(*arguments, **options)


@on_one_adapter
def test_a_texture_that_cannot_be_copied_is_refused(textures: wg.Device) -> None:
    def make(format: str = "rgba8unorm", size: tuple[int, ...] = (4, 4, 1), **options: Any) -> Any:
        given = {"size": size, "format": format, "usage": 3, **options}
        return textures.wgpu_device.create_texture(**given)

    x = wg.zeros((4, 4, 4), np.uint8, device=textures)
    depth = wg.zeros((4, 4), np.float32, device=textures)
    read, write = wg.from_texture, wg.copy_to_texture
    refused(
        ValueError,
        "from_texture: the texture of rgba8unorm, 4 x 4 x 1 lacks usage COPY_SRC",
        read,
        make(usage=2),
    )
    refused(ValueError, "copy_to_texture: the texture 'a' of", write, x, make(usage=1, label="a"))
    sampled = make(sample_count=4, usage=3 | RENDER_ATTACHMENT)
    refused(ValueError, "has 4 samples per texel: resolve it into another texture", read, sampled)
    refused(ValueError, "has 4 samples per texel", write, x, sampled)
    for format in ("rgb9e5ufloat", "rgb10a2unorm", "rg11b10ufloat"):
        refused(ValueError, f"from_texture: format '{format}': must be r, rg or rgba", read, make(format))
        refused(ValueError, f"copy_to_texture: format '{format}': must be", write, x, make(format))
    refused(ValueError, "format depth24plus: WebGPU does not copy from its depth", read, make("depth24plus"))
    refused(
        ValueError,
        "format depth32float: WebGPU does not copy into its depth",
        write,
        depth,
        make("depth32float"),
    )
    both = make("depth32float-stencil8")
    refused(ValueError, 'aspect = \'all\': must be "depth-only" or "stencil-only"', read, both)
    refused(ValueError, 'must be "all" for the format rgba8unorm', read, make(), aspect="depth-only")
    gone = make()
    gone.destroy()
    refused(ValueError, "from_texture: the texture of rgba8unorm, 4 x 4 x 1 has been destroyed", read, gone)
    refused(ValueError, "copy_to_texture: the texture of rgba8unorm, 4 x 4 x 1 has been", write, x, gone)
    refused(TypeError, "from_texture: texture is of type Tensor: must be a wgpu.GPUTexture", read, x)
    refused(
        TypeError, "copy_to_texture: x is of type ndarray: must be a Tensor", write, np.zeros((4, 4)), gone
    )


@on_one_adapter
def test_a_region_or_tensor_that_does_not_fit_is_refused(device: wg.Device) -> None:
    texture = make_texture(device, "rgba8unorm", (8, 4, 2), mips=2)
    content = random_array((2, 4, 8, 4), "u1")
    wg.copy_to_texture(wg.asarray(content, device=device), texture)
    x = wg.zeros((2, 2, 4), np.uint8, device=device)
    read, write = wg.from_texture, wg.copy_to_texture
    said = (
        "origin (7, 0, 0) and size (2, 2, 1) reach x = 9: mip level 0 of the texture of rgba8unorm, 8 x 4 x 2"
    )
    refused(ValueError, f"copy_to_texture: {said} has 8 x 4 x 2 texels", write, x, texture, origin=(7, 0))
    refused(ValueError, "reach y = 3: mip level 1", write, x, texture, origin=(0, 1), mip_level=1)
    refused(ValueError, "reach z = 3: mip level 0", read, texture, origin=(0, 0, 2), size=(1, 1, 1))
    refused(ValueError, "from_texture: mip_level = 2: the texture", read, texture, mip_level=2)
    refused(ValueError, "mip_level = -1", read, texture, mip_level=-1)
    refused(TypeError, "mip_level = 0.5: must be an integer", read, texture, mip_level=0.5)
    refused(ValueError, "origin = (-1, 0, 0): must be up to three integers", read, texture, origin=(-1, 0, 0))
    refused(ValueError, "size = (1, 1, 1, 1): must be up to three", read, texture, size=(1, 1, 1, 1))
    refused(TypeError, "size[0] = 1.5: must be an integer", read, texture, size=(1.5,))
    refused(
        TypeError, "x has dtype int8: texels of the format rgba8unorm are uint8", write, x.view("i1"), texture
    )
    refused(
        TypeError, "out has dtype float32", read, texture, out=wg.zeros((2, 4, 8, 4), "f4", device=device)
    )
    refused(ValueError, "out has sizes (2, 2, 4): must be (2, 4, 8, 4)", read, texture, out=x)
    refused(TypeError, "out is of type list: must be a Tensor", read, texture, out=[content])
    refused(TypeError, "out has dtype >u2", read, texture, out=content.astype(">u2"))
    refused(ValueError, "out has sizes (4, 8, 4): must be (2, 4, 8, 4)", read, texture, out=content[0])
    frozen = np.zeros_like(content)
    frozen.flags.writeable = False
    refused(ValueError, "from_texture: out is read-only", read, texture, out=frozen)
    refused(wg.CaptureRefused, "256 bytes are read back", wg.explain, read, texture, out=content)
    row = wg.zeros((4, 8, 4), np.uint8, device=device)[:1]
    refused(ValueError, "read-only", read, texture, origin=(0, 0, 1), out=wg.broadcast_to(row, (4, 8, 4)))
    sizes = "must be (height, width, 4) for the format rgba8unorm, or with depth or layers in front"
    for shape in ((2, 4), (2, 2, 1), (2, 2, 5), (1, 1, 2, 2, 4), (4,)):
        refused(ValueError, f"x has sizes {shape}: {sizes}", write, x_of(device, shape), texture)
    grey = device.wgpu_device.create_texture(size=(4, 2), format="r8unorm", usage=1 | 2)
    words = "move or shrink the region, or if x is (height, width, 1), copy x.squeeze(-1)"
    refused(ValueError, words, write, x_of(device, (2, 4, 1)), grey)
    words = "layers in front; x.squeeze(-1) views a tensor x without its last dimension"
    refused(ValueError, words, write, x_of(device, (3, 2, 4, 1)), grey)
    column = wg.asarray(random_array((2, 4, 1), np.uint8), device=device)
    write(column.squeeze(-1), grey)
    check_same(wg.from_texture(grey).numpy(), column.numpy()[..., 0])
    rgb = wg.zeros((2, 2, 3), np.uint8, device=device)
    refused(ValueError, "x has 3 channels, the format rgba8unorm has 4: alpha= gives", write, rgb, texture)
    refused(ValueError, "alpha = 255: must be left out", write, x, texture, alpha=255)
    refused(OverflowError, "copy_to_texture: alpha: ", write, rgb, texture, alpha=256)
    refused(TypeError, "alpha has shape (2,): must be a scalar", write, rgb, texture, alpha=(1, 2))
    buffer = make_buffer(device, random_bytes(64))
    mine = wg.from_buffer(buffer, (2, 2, 4), np.uint8)
    buffer.destroy()
    refused(ValueError, "input: the buffer has been destroyed", write, mine, texture)
    refused(ValueError, "output: the buffer has been destroyed", read, texture, size=(2, 2), out=mine)
    check_same(read(texture).numpy(), content)  # no refused call has written


def x_of(device: wg.Device, shape: tuple[int, ...]) -> wg.Tensor:
    return wg.zeros(shape, np.uint8, device=device)


@on_one_adapter
def test_a_texture_and_a_tensor_of_two_devices_are_refused(device: wg.Device) -> None:
    other = wg.Device.wrap(device.wgpu_device.adapter.request_device_sync())
    texture = make_texture(device, "r8uint", (4, 4, 1))
    x = wg.zeros((4, 4), np.uint8, device=other)
    refused(
        ValueError,
        "copy_to_texture: the texture of r8uint, 4 x 4 x 1 is not on",
        *(wg.copy_to_texture, x, texture),
    )
    refused(
        ValueError, "from_texture: output: the buffer of 16 bytes is not on", wg.from_texture, texture, out=x
    )
    desc = wg.TensorDesc("uint8", (4, 4))
    compiled = other.compile(wg.FromTexture("r8uint", desc))
    refused(ValueError, "FromTexture: input: the texture of r8uint, 4 x 4 x 1 is not on", compiled, texture)


@on_one_adapter
def test_operators_refuse_tensors_unlike_their_description(device: wg.Device) -> None:
    texture = make_texture(device, "rgba8unorm", (8, 4, 1))
    desc = wg.TensorDesc("uint8", (4, 8, 4))
    refused(
        TypeError,
        "FromTexture: output is of type tuple: must be a TensorDesc",
        wg.FromTexture,
        "r8uint",
        (4, 8),
    )
    refused(ValueError, "FromTexture: format 'r8float': must be", wg.FromTexture, "r8float", desc)
    refused(
        TypeError,
        "ToTexture: input has dtype uint8: texels of the format r8sint",
        wg.ToTexture,
        desc,
        "r8sint",
    )
    refused(ValueError, "ToTexture: input has sizes (4, 8, 4): must be", wg.ToTexture, desc, "rg8uint")
    repeated = wg.TensorDesc("uint8", (4, 8, 4), strides=(0, 4, 1))
    refused(ValueError, "FromTexture: output sizes (4, 8, 4)", wg.FromTexture, "rgba8unorm", repeated)
    compiled = device.compile(wg.FromTexture("rgba8unorm", desc))
    y = wg.zeros((4, 8, 4), np.uint8, device=device)
    encoder = device.wgpu_device.create_command_encoder()
    record = compiled.record
    other = make_texture(device, "rgba8uint", (8, 4, 1))
    refused(
        ValueError, "input: format rgba8uint: compiled for rgba8unorm", record, encoder, input=other, output=y
    )
    refused(ValueError, "reach x = 9", record, encoder, input=(texture, (1, 0)), output=y)
    refused(TypeError, "input: texture is of type Tensor", record, encoder, input=y, output=y)
    refused(ValueError, "output: sizes (2, 8, 4): compiled for", record, encoder, input=texture, output=y[:2])
    refused(TypeError, "encoder is of type object", record, object(), input=texture, output=y)
    line = make_texture(device, "rgba8unorm", (8, 1, 1), "1d")
    refused(ValueError, "must be (width, 4)", record, encoder, input=line, output=y)
    device.wgpu_device.queue.submit([encoder.finish()])
    check_same(y.numpy(), np.zeros((4, 8, 4), np.uint8))


@on_one_adapter
def test_a_lost_device_is_named(device: wg.Device) -> None:
    lost = wg.Device.wrap(device.wgpu_device.adapter.request_device_sync())
    texture = make_texture(lost, "r8uint", (300, 4, 1))
    x = wg.zeros((4, 300), np.uint8, device=lost)
    lost.wgpu_device.destroy()
    for call in (lambda: wg.from_texture(texture), lambda: wg.copy_to_texture(x, texture)):
        with pytest.raises(wg.DeviceLostError):
            call()


@pytest.mark.every_adapter
def test_opengl_refuses_to_read_what_may_be_a_cube_map(device: wg.Device) -> None:
    for layers in (6, 12):
        texture, array = make_texture(device, "r8uint", (4, 4, layers)), random_array((layers, 4, 4), "u1")
        wg.copy_to_texture(wg.asarray(array, device=device), texture)
        if device.adapter.backend == "OpenGL":
            said = "OpenGL cannot read layers of a texture that may be a cube map; use an adapter of another"
            refused(ValueError, said, wg.from_texture, texture)
        else:
            check_read(texture, array)
