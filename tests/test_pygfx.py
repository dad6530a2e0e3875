"""Textures and buffers for pygfx: drawings of a tensor equal those of its array.

pygfx draws on one device for the whole process, and never with OpenGL; so these run on its device, whatever
adapters the other tests run on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import random_array, random_bytes
from numpy.typing import NDArray
from pages import ROOT, blocks

import wgslice as wg
from wgslice.gpu import transfer

if find_spec("pygfx"):  # these tests are collected without it too, and deselected or failed by their mark
    import pygfx as gfx
    from rendercanvas.offscreen import RenderCanvas

    from wgslice import pygfx

pytestmark = pytest.mark.pygfx

SIZE = (64, 48)


@pytest.fixture(scope="module")
def shared() -> wg.Device:
    return pygfx.device()


def drawn(thing: Any, size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """Draw an object, one pixel per unit, with the origin at the top left."""
    canvas = RenderCanvas(size=size, pixel_ratio=1)
    renderer = gfx.renderers.WgpuRenderer(canvas, pixel_scale=1, ppaa="none")
    scene = gfx.Scene()
    scene.add(thing)
    camera = gfx.OrthographicCamera(*size)
    camera.local.position = (size[0] / 2 - 0.5, size[1] / 2 - 0.5, 0)
    camera.local.scale_y = -1
    canvas.request_draw(lambda: renderer.render(scene, camera))
    return np.asarray(canvas.draw())


def picture(texture: gfx.Texture) -> NDArray[np.uint8]:
    material = gfx.ImageBasicMaterial(clim=(0, 255), interpolation="nearest")
    return drawn(gfx.Image(gfx.Geometry(grid=texture), material))


def test_an_image_is_drawn_without_leaving_the_gpu(
    shared: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    photograph = random_bytes(60 * 200 * 4, seed=3).reshape(60, 200, 4)
    photograph[..., 3] = 255
    x = wg.asarray(photograph, device=shared)
    monkeypatch.setattr(transfer, "download", None)
    monkeypatch.setattr("wgslice.tensors.placed.download", None)  # reading back would fail
    texture = pygfx.to_texture(x[6:54, 130:2:-2])
    expected = photograph[6:54, 130:2:-2]
    assert texture.data is None
    assert np.array_equal(picture(texture), expected)
    assert np.array_equal(picture(texture), picture(gfx.Texture(np.ascontiguousarray(expected), dim=2)))
    pygfx.update(texture, x[6:54, 2:130:2])
    assert np.array_equal(picture(texture), photograph[6:54, 2:130:2])


@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_tiles_are_written_over_host_data(
    shared: wg.Device, channels: tuple[int, ...], is_drawn: bool
) -> None:
    """Before pygfx has uploaded the data, and when it is on the screen; RGB has a fourth channel there."""
    expected = random_bytes(48 * 64 * 4, seed=5)[: 48 * 64 * (3 if channels else 1)].reshape(
        48, 64, *channels
    )
    texture = gfx.Texture(expected.copy(), dim=2, usage=0x1)  # COPY_SRC, to read it back
    if is_drawn:
        picture(texture)
    tile = wg.asarray(random_bytes(20 * 30 * 3, seed=6).reshape(30, 20, 3), device=shared)[::-1, ::2]
    tile = tile if channels else tile[..., 1]
    made = pygfx.gpu_texture(texture)
    wg.copy_to_texture(tile, made, origin=(7, 9), alpha=255 if channels else None)
    expected[9:39, 7:17] = tile.numpy()
    for _ in range(2):
        assert np.array_equal(picture(texture)[..., :3], np.broadcast_to(expected.T, (3, 64, 48)).T)
    assert pygfx.gpu_texture(texture) is made
    found = wg.from_texture(made, origin=(7, 9), size=(10, 30)).numpy()
    assert np.array_equal(found[..., : channels[0]] if channels else found, tile.numpy())


@pytest.mark.parametrize("order", ["before the renderer", "before the render", "after the render"])
@pytest.mark.parametrize("kind", ["rgba8unorm", "bgra8unorm-srgb", "rgba16float", "3xu1"])
def test_frames_are_read_from_targets_in_the_allowed_orders(shared: wg.Device, order: str, kind: str) -> None:
    target = gfx.Texture(dim=2, size=SIZE, format=kind)
    scene = gfx.Scene().add(gfx.Background.from_color("#f0f"))
    if order == "before the renderer":
        pygfx.gpu_texture(target)
    renderer = gfx.WgpuRenderer(target, pixel_ratio=1, ppaa="none")
    if order == "before the render":
        pygfx.gpu_texture(target)
    renderer.render(scene, gfx.NDCCamera())
    if order == "after the render":
        with pytest.raises(
            ValueError, match=r"^gpu_texture: .*: call gpu_texture before the first render, or"
        ):
            pygfx.gpu_texture(target)
        return
    frame = wg.from_texture(pygfx.gpu_texture(target)).numpy()
    assert np.array_equal(frame != 0, np.full((*SIZE[::-1], 4), [True, False, True, True]))


def test_rendered_host_data_can_be_written_and_not_read(shared: wg.Device) -> None:
    texture = gfx.Texture(np.zeros((48, 64), np.uint8), dim=2)
    picture(texture)
    made = pygfx.gpu_texture(texture)
    wg.copy_to_texture(wg.full((48, 64), 5, np.uint8, device=shared), made)
    assert picture(texture)[..., 0].min() == 5
    with pytest.raises(
        ValueError, match=r"lacks usage COPY_SRC: .* call gpu_texture before its first render"
    ):
        wg.from_texture(made)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", ["i1", "u1", "i2", "u2", "i4", "u4", "f2", "f4"])
@pytest.mark.parametrize("has_data", [False, True])
def test_textures_of_every_format_are_made_for_copies(
    shared: wg.Device, dim: int, name: str, has_data: bool
) -> None:
    sizes = (6, 5, 4)[:dim]
    array = random_bytes(120 * np.dtype(name).itemsize, seed=dim).view(name)
    given = array[: np.prod(sizes)].reshape(sizes)
    data = given.copy() if has_data else None
    texture = gfx.Texture(data, dim=dim, size=(*sizes[::-1], 1, 1)[:3], format=name)
    made = pygfx.gpu_texture(texture)
    if not has_data:
        wg.copy_to_texture(wg.asarray(given, device=shared), made)
    assert wg.from_texture(made).numpy().tobytes() == given.tobytes()


def test_only_textures_of_pygfx_have_one_of_the_gpu(shared: wg.Device) -> None:
    with pytest.raises(TypeError, match="gpu_texture: texture is of type Tensor: must be a pygfx Texture"):
        pygfx.gpu_texture(wg.zeros(4, device=shared))


PAGE = ROOT / "docs" / "integrations" / "pygfx.md"
COUNTED = (
    *("create_buffer", "create_texture", "write_buffer", "write_texture"),
    *("map_async", "map_sync", "read_buffer", "read_texture", "read_mapped"),
)


def counted(method: Callable[..., Any], log: list[tuple[str, int]]) -> Callable[..., Any]:
    """A method of wgpu's objects that logs its name, and the bytes that it uploads."""

    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        nbytes = memoryview(arguments[2]).nbytes if method.__name__ == "write_buffer" else 0
        log.append((method.__name__, nbytes))
        return method(self, *arguments, **options)

    return counting


def resident_nbytes() -> int:
    """Memory of this process; 0 where the system does not say it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text() if status.exists() else "")
    return int(found[1]) * 1024 if found else 0


def test_frames_through_a_volume_upload_only_new_chunks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The page's program: 30 frames, equal to NumPy's."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    drawing, moving, _ = (block.text for block in blocks(PAGE, "python"))
    exec(drawing, names)
    cache, array, side, show = (names[name] for name in ("cache", "array", "SIDE", "show"))
    log: list[tuple[str, int]] = []
    places: list[tuple[int, int, int]] = []

    def showing(plane: int, top: int, left: int) -> None:
        places.append((plane, top, left))
        log.append(("show", 0))
        show(plane, top, left)

    names["show"] = showing
    wgpu_device = cache.device.wgpu_device
    with monkeypatch.context() as patch:
        for kind in map(type, (wgpu_device, wgpu_device.queue, cache.buffer)):
            for name in COUNTED:
                if hasattr(kind, name):
                    patch.setattr(kind, name, counted(getattr(kind, name), log))
        exec(moving, names)
    starts = [number for number, (name, _) in enumerate(log) if name == "show"]
    calls = [log[start:stop] for start, stop in zip(starts, [*starts[1:], len(log)], strict=True)]
    assert len(calls) == 30
    assert {name for frame in calls[1:] for name, _ in frame} == {
        "show",
        "write_buffer",
    }  # nothing made, read

    height, width, _ = names["frames"].shape[1:]
    there: set[tuple[int, int, int]] = set()
    for frame, (plane, top, left), drawn_frame in zip(calls, places, names["frames"], strict=True):
        rows = range(top // side, (top + height - 1) // side + 1)
        columns = range(left // side, (left + width - 1) // side + 1)
        visible = {(plane // side, row, column) for row in rows for column in columns}
        assert sum(nbytes for _, nbytes in frame if nbytes > 999) == len(visible - there) * side**3
        there |= visible
        upright = np.rot90(array[:, plane])[top : top + height, left : left + width]
        assert np.array_equal(drawn_frame.numpy()[..., :3], np.stack([upright] * 3, axis=2))
    assert len(there) * side**3 > cache.nbytes


@pytest.mark.slow
def test_290_frames_through_a_volume_keep_memory_flat(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The page's program moves to and fro, and makes no buffer, texture or pipeline."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[0].text, names)
    frame = wg.empty((names["HEIGHT"], names["WIDTH"], 4), np.uint8, device=names["device"])

    def move(steps: range) -> None:
        for step in steps:
            place = abs(step % 58 - 29)
            names["show"](2 + 3 * place, 2 * place, 2 * place)
            wg.from_texture(names["frame"], out=frame)

    move(range(58))  # pygfx, the driver and Python have their memory once every place has been drawn
    log: list[tuple[str, int]] = []
    kind = type(names["device"].wgpu_device)
    for name in ("create_buffer", "create_buffer_with_data", "create_texture", "create_compute_pipeline"):
        monkeypatch.setattr(kind, name, counted(getattr(kind, name), log))
    grown_nbytes = []
    for first in range(58, 348, 58):  # to and fro; other threads of the process grow it in some of them
        before_nbytes = resident_nbytes()
        move(range(first, first + 58))
        grown_nbytes.append(resident_nbytes() - before_nbytes)
    assert log == []
    assert min(grown_nbytes) < 58 * 3500  # a page of memory per frame is more, in each of them


def test_rgb_gets_an_opaque_channel(shared: wg.Device) -> None:
    photograph = random_bytes(48 * 64 * 3, seed=4).reshape(48, 64, 3)
    texture = pygfx.to_texture(wg.asarray(photograph, device=shared)[:, :, ::-1])
    assert texture.format == "4xu1"
    shown = picture(texture)
    assert np.array_equal(shown[..., :3], photograph[:, :, ::-1])
    assert shown[..., 3].min() == 255


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "f2", "f4"])
@pytest.mark.parametrize(
    ("dim", "shape"),
    [(1, (70,)), (1, (5, 4)), (2, (5, 7)), (2, (3, 66, 2)), (2, (3, 5, 3)), (3, (4, 3, 9, 1))],
)
def test_every_format_holds_the_tensors_bits(
    shared: wg.Device, dtype: str, dim: int, shape: tuple[int, ...]
) -> None:
    element = np.dtype(dtype)
    array = random_array(shape, element, dim)
    texture = pygfx.to_texture(wg.asarray(array, device=shared)[::-1], dim=dim)
    expected = array[::-1]
    if shape[dim:] == (3,):
        full = 1 if element.kind == "f" else np.iinfo(element).max
        expected = np.concatenate([expected, np.full((*shape[:2], 1), full, element)], axis=2)
    assert texture.size == (1, *shape[:dim])[: dim + 1][:0:-1] + (1,) * (3 - dim)
    found = wg.from_texture(pygfx.gpu_texture(texture)).numpy().tobytes()
    assert found == np.ascontiguousarray(expected).tobytes()


def test_points_are_drawn_at_a_buffers_positions(shared: wg.Device) -> None:
    positions = np.zeros((40, 3), np.float32)
    positions[:, 0] = np.arange(40) + 10
    positions[:, 1] = np.arange(40) % 17 * 2 + 5
    colors = np.random.default_rng(2).random((40, 4)).astype(np.float32)
    colors[:, 3] = 1
    material = gfx.PointsMaterial(size=2, aa=False, color_mode="vertex")
    kept = slice(None, None, -3)

    def theirs(places: NDArray[np.float32]) -> NDArray[np.uint8]:
        arrays = {"positions": places[kept], "colors": colors[kept]}
        geometry = gfx.Geometry(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        return drawn(gfx.Points(geometry, material))

    x, c = wg.asarray(positions, device=shared)[kept], wg.asarray(colors, device=shared)[kept]
    ours = gfx.Points(gfx.Geometry(positions=pygfx.to_buffer(x), colors=pygfx.to_buffer(c)), material)
    assert len(np.unique(theirs(positions).reshape(-1, 4), axis=0)) > 10
    assert np.array_equal(drawn(ours), theirs(positions))
    moved = positions + np.array([0, 3, 0], np.float32)
    pygfx.update(ours.geometry.positions, wg.asarray(moved, device=shared)[kept])
    assert np.array_equal(drawn(ours), theirs(moved))
    assert not np.array_equal(theirs(moved), theirs(positions))


@pytest.mark.parametrize(
    ("shape", "dtype", "dim", "kind", "words"),
    [
        (
            (4,),
            "u1",
            2,
            ValueError,
            r"x has sizes \(4,\): must be \(height, width\), or \(height, width, 1 to 4\)",
        ),
        ((4, 4, 5), "u1", 2, ValueError, r"x has sizes \(4, 4, 5\): must be"),
        ((4, 0), "u1", 2, ValueError, r"x has sizes \(4, 0\): must be"),
        ((4, 4), "u1", 4, ValueError, "dim = 4: must be 1, 2 or 3"),
        ((1, 2**20), "u1", 2, ValueError, r"x has sizes \(1, 1048576\): a texture's are at most \d+ on"),
        ((4, 4), "f8", 2, TypeError, "dtype float64: pygfx has integers of 8, 16 and 32 bits"),
        ((4, 4), "?", 2, TypeError, "dtype bool: pygfx has"),
    ],
)
def test_invalid_textures_are_refused(
    shared: wg.Device, shape: tuple[int, ...], dtype: str, dim: int, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=f"^to_texture: {words}"):
        pygfx.to_texture(wg.zeros(shape, dtype, device=shared), dim=dim)


def test_invalid_buffers_are_refused(shared: wg.Device) -> None:
    for x, words in (
        (
            wg.zeros((2, 5), "f4", device=shared),
            r"x has sizes \(2, 5\): must be \(items\), or \(items, 1 to 4\)",
        ),
        (wg.zeros(0, "f4", device=shared), r"x has sizes \(0,\): must be"),
        (wg.zeros((3, 1), "u1", device=shared), "x has 3 bytes: must have a multiple of 4"),
    ):
        with pytest.raises(ValueError, match=f"^to_buffer: {words}"):
            pygfx.to_buffer(x)
    array: Any = np.zeros(4)
    with pytest.raises(
        TypeError,
        match=r"to_buffer: x is of type ndarray: must be a Tensor, asarray\(x, device=wgslice.pygfx.device",
    ):
        pygfx.to_buffer(array)


def test_updates_must_fit(shared: wg.Device) -> None:
    texture = pygfx.to_texture(wg.zeros((4, 6), "u1", device=shared))
    with pytest.raises(
        ValueError, match=r"update: x has width, height and depth \(5, 4, 1\) and format u1: the tex"
    ):
        pygfx.update(texture, wg.zeros((4, 5), "u1", device=shared))
    with pytest.raises(ValueError, match=r"\(6, 4, 1\) and format f2: the texture has \(6, 4, 1\) and u1"):
        pygfx.update(texture, wg.zeros((4, 6), "f2", device=shared))
    buffer = pygfx.to_buffer(wg.zeros((4, 3), "f4", device=shared))
    with pytest.raises(ValueError, match=r"update: x has 3 items of 3xf4: the buffer has 4 of 3xf4"):
        pygfx.update(buffer, wg.zeros((3, 3), "f4", device=shared))
    with pytest.raises(ValueError, match="update: x has 4 items of 3xi4: the buffer has 4 of 3xf4"):
        pygfx.update(buffer, wg.zeros((4, 3), "i4", device=shared))


def test_other_resources_are_not_updated(shared: wg.Device) -> None:
    x = wg.zeros((4, 6), "u1", device=shared)
    with pytest.raises(ValueError, match="update: resource is not from to_texture or to_buffer"):
        pygfx.update(gfx.Texture(np.zeros((4, 6), np.uint8), dim=2), x)
    with pytest.raises(ValueError, match="update: resource is not from to_texture or to_buffer"):
        pygfx.update(gfx.Buffer(np.zeros((4, 6), np.uint8)), x)
    with pytest.raises(
        TypeError, match="update: resource is of type NoneType: must be a pygfx Texture or Buffer"
    ):
        pygfx.update(None, x)


def test_calls_are_not_explained(shared: wg.Device) -> None:
    x = wg.asarray(np.zeros((4, 4), np.uint8), device=shared)
    for function in (pygfx.to_texture, pygfx.to_buffer):
        with pytest.raises(
            wg.CaptureRefused, match=r"^to_.*: memory of pygfx is written, which an explained call cannot"
        ):
            wg.explain(function, x)


def test_tensors_of_another_device_are_refused(device: wg.Device, shared: wg.Device) -> None:
    x = wg.zeros((4, 4), "u1", device=wg.Device.request(device.adapter))
    assert pygfx.device() is shared
    with pytest.raises(ValueError, match="to_texture: x is on another device than pygfx"):
        pygfx.to_texture(x)
