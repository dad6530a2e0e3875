"""Hypothesis strategies for calls that move elements, of tensors and of NumPy's arrays of the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from helpers import (
    COPY_DST,
    COPY_SRC,
    DTYPES,
    GUARD,
    STORAGE,
    Bytes,
    numpy_window,
    random_bytes,
    record,
    view_of,
    whole_words,
)
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, basic_indices
from index_keys import INTEGERS, any_keys
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from onnx_graphs import graphs
from strategies import Case, cases, sizes_of
from test_directml import TYPES, binding, slice1, submitted, table_for, tensor
from test_extract_windows import numpy_windows, window_cases
from test_insert_windows import insertions, numpy_insert, some_layout
from test_onnx import model_of
from test_sized_windows import drawn_windows

import wgslice as wg
from wgslice import directml as dml
from wgslice import onnx as backend
from wgslice.layout import Layout

__all__ = ["OPERATIONS", "Argument", "Call"]

ELEMENTS = ["bool", *DTYPES.values()]
EVERYTHING = STORAGE | COPY_SRC | COPY_DST
TEXELS = {"rgba8unorm": ("uint8", 4), "rg16float": ("float16", 2), "r32uint": ("uint32", 1)}


@dataclass(frozen=True, eq=False)
class Argument:
    """An array at a layout, in elements, of a buffer of given or random bytes."""

    layout: Layout
    dtype: str
    seed: int = 0
    values: Any = None  # the elements of a packed layout; random ones if None
    usage: int = EVERYTHING

    def content(self) -> Bytes:
        """The bytes of the buffer, with some after the layout."""
        if self.values is not None:
            given = np.frombuffer(np.ascontiguousarray(self.values, self.dtype).tobytes(), np.uint8)
            return np.concatenate([given, np.zeros(-given.size % 4 + 16, np.uint8)])
        width = np.dtype(self.dtype).itemsize
        content = random_bytes((whole_words(self.layout.stop * width) + 15) // 16 * 16 + GUARD, self.seed)
        return content % np.uint8(2) if self.dtype == "bool" else content

    def array(self, content: Bytes) -> NDArray[Any]:
        """NumPy's view of the layout."""
        width = np.dtype(self.dtype).itemsize
        strides = [stride * width for stride in self.layout.strides]
        return np.ndarray(self.layout.sizes, self.dtype, content.data, self.layout.offset * width, strides)

    def tensor(self, device: wg.Device, buffer: Any) -> wg.Tensor:
        """The tensor; made by hand, since it may have a dimension more than `from_buffer` takes."""
        return wg.Tensor(device, buffer, np.dtype(self.dtype), self.layout)


@dataclass(frozen=True, eq=False)
class Call:
    """A function of arrays, of tensors and NumPy's; it returns arrays, or writes into the first one."""

    arguments: tuple[Argument, ...]
    ours: Callable[..., Any]
    numpys: Callable[..., Any]
    writes: bool = False
    text: str = ""


def same(arguments: Sequence[Argument], function: Callable[..., Any], text: str = "") -> Call:
    """A call of one function that takes tensors as well as arrays."""
    return Call(tuple(arguments), function, function, text=text)


def host(values: Any, dtype: str) -> Argument:
    """Given values, packed."""
    given = np.asarray(values)
    return Argument(Layout.packed(given.shape), dtype, values=given)


@st.composite
def array_sizes(draw: st.DrawFn, least: int = 0, smallest: int = 0) -> tuple[int, ...]:
    """Sizes of few elements; now and then none."""
    rank = draw(st.sampled_from([rank for rank in (1, 2, 3, 2, 3, 4, 5, 0) if rank >= least]))
    sizes = draw(sizes_of(rank)) if rank else ()
    if sizes and smallest == 0 and draw(st.integers(0, 30)) == 30:
        axis = draw(st.integers(0, rank - 1))
        sizes = (*sizes[:axis], 0, *sizes[axis + 1 :])
    return sizes


@st.composite
def any_argument(
    draw: st.DrawFn,
    sizes: tuple[int, ...] | st.SearchStrategy[tuple[int, ...]] | None = None,
    dtype: str | None = None,
    *,
    written: bool = False,
) -> Argument:
    """An array of any layout: in any order, with gaps, backwards, and repeated unless it is written."""
    drawn = draw(array_sizes() if sizes is None else sizes) if not isinstance(sizes, tuple) else sizes
    layout = some_layout(draw, drawn, broadcast=not written)
    return Argument(layout, dtype or draw(st.sampled_from(ELEMENTS)), draw(st.integers(0, 999)))


def axis_of(rank: int) -> st.SearchStrategy[int]:
    return st.integers(-rank, rank - 1)


# slices and gradients


def sides_of(case: Case, *, gradient: bool = False) -> tuple[Argument, Argument]:
    """The written and the read side of a slice, in buffers that allow buffer copies or not."""
    written, read = (case.input, case.output) if gradient else (case.output, case.input)
    dtype = DTYPES[case.width]
    source = Argument(read, dtype, case.seed % 999, usage=EVERYTHING if case.copyable else STORAGE)
    usage = EVERYTHING if case.copyable else STORAGE | COPY_SRC
    return Argument(written, dtype, case.seed % 999 + 1, usage=usage), source


def numpy_slice(case: Case) -> Callable[[Any, Any], None]:
    def write(out: Any, x: Any) -> None:
        out[...] = numpy_window(x, case.window)

    return write


@st.composite
def slices(draw: st.DrawFn) -> Call:
    """`slice1` into an output, of tensors or recorded into commands of the caller's."""
    case = draw(cases())
    window, output_sizes = case.window[:3], case.window.output_sizes

    def call(out: wg.Tensor, x: wg.Tensor) -> None:
        wg.slice1(x, *window, output_sizes=output_sizes, out=out)

    def compiled(out: wg.Tensor, x: wg.Tensor) -> None:
        described = [wg.TensorDesc(x.dtype, side.sizes, side.strides) for side in (case.input, case.output)]
        begins = [layout.offset * case.width for layout in (case.input, case.output)]
        operator = x.device.compile(wg.Slice1(described[0], described[1], *window))
        record(x.device, operator, input=(x.buffer, begins[0]), output=(out.buffer, begins[1]))

    ours = draw(st.sampled_from([call, compiled]))
    return Call(sides_of(case), ours, numpy_slice(case), writes=True, text=f"{ours.__name__} {case}")


@st.composite
def directml_slices(draw: st.DrawFn) -> Call:
    """DirectML's Slice1 on any layouts."""
    case = draw(cases().filter(lambda case: case.width < 16))
    descs = [tensor(TYPES[case.width][0], side.sizes, side.strides) for side in (case.input, case.output)]
    window = case.window[:3]

    def ours(out: wg.Tensor, x: wg.Tensor) -> None:
        device = dml.DMLCreateDevice(x.device)
        compiled = device.CompileOperator(device.CreateOperator(slice1(descs[0], descs[1], *window)))
        table = table_for(device, compiled)
        bound = [
            binding(side.buffer, side.offset, desc.Desc.TotalTensorSizeInBytes if desc.Desc else 0)
            for side, desc in zip((x, out), descs, strict=True)
        ]
        table.BindInputs(1, bound[0])
        table.BindOutputs(1, bound[1])
        recorder = device.CreateCommandRecorder()
        submitted(x.device, lambda encoder: recorder.RecordDispatch(encoder, compiled, table))

    return Call(sides_of(case), ours, numpy_slice(case), writes=True, text=str(case))


@st.composite
def gradients(draw: st.DrawFn) -> Call:
    """`slice_grad` into an output."""
    case = draw(cases().filter(lambda case: not case.input.overlaps))

    def ours(out: wg.Tensor, g: wg.Tensor) -> None:
        wg.slice_grad(g, *case.window[:3], output_sizes=case.input.sizes, out=out)

    def numpys(out: Any, g: Any) -> None:
        out.view(f"V{case.width}")[...] = np.zeros((), f"V{case.width}")
        numpy_window(out, case.window)[...] = g

    return Call(sides_of(case, gradient=True), ours, numpys, writes=True, text=str(case))


# windows


@st.composite
def extractions(draw: st.DrawFn) -> Call:
    """`extract_windows` into an output, at offsets of the host or of the device."""
    case = draw(window_cases())
    dtype = case.dtype
    sides = Argument(case.output, dtype, case.seed + 1), Argument(case.input, dtype, case.seed)
    held = (host(case.offsets, "int32"),) if draw(st.booleans()) else ()

    def ours(out: wg.Tensor, x: wg.Tensor, offsets: Any = case.offsets) -> None:
        wg.extract_windows(x, offsets, case.sizes, case.strides, fill=case.fill, out=out)

    def numpys(out: Any, x: Any, _: Any = None) -> None:
        bits = f"V{case.width}"
        fill = None if case.fill is None else np.asarray(case.fill, dtype)[None].view(bits)[0]
        copied = np.ascontiguousarray(x).view(bits).reshape(x.shape)
        out[...] = numpy_windows(copied, case.offsets, case.sizes, case.strides, fill).view(dtype)

    return Call((*sides, *held), ours, numpys, writes=True, text=str(case))


@st.composite
def windows_inserted(draw: st.DrawFn) -> Call:
    """`insert_windows`, of which later ones win, at offsets of the host or of the device."""
    case = draw(insertions())
    outside: Any = draw(st.sampled_from(["drop", "clamp"])) if case.fits else "drop"
    placed = case if outside == "drop" else case.clamped()
    sides = Argument(case.tensor, case.dtype, case.seed + 1), Argument(case.batch, case.dtype, case.seed)
    held = (host(case.offsets, "int32"),) if draw(st.booleans()) else ()

    def ours(x: wg.Tensor, windows: wg.Tensor, offsets: Any = case.offsets) -> None:
        wg.insert_windows(x, offsets, windows, case.strides, overlap="last", outside=outside)

    def numpys(x: Any, windows: Any, _: Any = None) -> None:
        numpy_insert(x, windows, placed.offsets, placed.strides)

    return Call((*sides, *held), ours, numpys, writes=True, text=f"{outside} {case}")


@st.composite
def sized_extractions(draw: st.DrawFn) -> Call:
    """`extract_windows` of different sizes into parts of a line, in which they have a distance."""
    x = draw(any_argument(array_sizes(smallest=1)))
    sizes = x.layout.sizes
    fill = draw(st.sampled_from([None, 1]))
    case = draw(drawn_windows(sizes, inside=fill is None))
    gap = draw(st.integers(0, 3))
    starts = np.cumsum([0, *(prod(shape) + gap for shape in case.shapes)]).tolist()
    out = draw(any_argument((max(starts[-1], 1),), x.dtype, written=True))
    held = (host(case.offsets, "int32"),) if case.offsets.size and draw(st.booleans()) else ()
    parts = list(zip(starts, case.shapes, strict=False))

    def ours(out: wg.Tensor, x: wg.Tensor, offsets: Any = case.offsets) -> None:
        listed = [out[start : start + prod(shape)].reshape(shape) for start, shape in parts]
        wg.extract_windows(x, offsets, case.sizes, case.strides, fill=fill, out=listed)

    def numpys(out: Any, x: Any, _: Any = None) -> None:
        for b, (start, shape) in enumerate(parts):
            found = numpy_windows(x, case.offsets[[b]], case.sizes[b], case.strides[[b]], fill)
            out[start : start + prod(shape)] = found.reshape(-1)

    return Call((out, x, *held), ours, numpys, writes=True, text=str(case))


@st.composite
def sized_insertions(draw: st.DrawFn) -> Call:
    """`insert_windows` of different sizes out of a line, of which later ones win."""
    x = draw(any_argument(array_sizes(smallest=1), written=True))
    case = draw(drawn_windows(x.layout.sizes))
    gap = draw(st.integers(0, 3))
    starts = np.cumsum([0, *(prod(shape) + gap for shape in case.shapes)]).tolist()
    line = draw(any_argument((max(starts[-1], 1),), x.dtype))
    held = (host(case.offsets, "int32"),) if case.offsets.size and draw(st.booleans()) else ()
    parts = list(zip(starts, case.shapes, strict=False))

    def ours(x: wg.Tensor, line: wg.Tensor, offsets: Any = case.offsets) -> None:
        listed = [line[start : start + prod(shape)].reshape(shape) for start, shape in parts]
        if listed:
            wg.insert_windows(x, offsets, listed, case.strides, overlap="last")

    def numpys(x: Any, line: Any, _: Any = None) -> None:
        for b, (start, shape) in enumerate(parts):
            window = line[start : start + prod(shape)].reshape(1, *shape)
            if window.size:
                numpy_insert(x, window, case.offsets[[b]], case.strides[[b]])

    return Call((x, line, *held), ours, numpys, writes=True, text=str(case))


@st.composite
def paddings(draw: st.DrawFn) -> Call:
    """`pad_windows` of tensors of different sizes."""
    rank, dtype = draw(st.integers(0, 3)), draw(st.sampled_from(ELEMENTS))
    shapes = draw(st.lists(st.tuples(*[st.integers(0, 9)] * rank), min_size=1, max_size=5))
    listed = [draw(any_argument(shape, dtype)) for shape in shapes]
    more, fill = draw(st.integers(0, 2)), draw(st.sampled_from([0, 1]))
    size = tuple(max(sizes) + more for sizes in zip(*shapes, strict=True))

    def numpys(*given: Any) -> Any:
        result = np.full((len(given), *size), fill, dtype)
        for part, array in zip(result[:, None] if not rank else result, given, strict=True):
            part[tuple(map(slice, array.shape))] = array
        return result

    def ours(*given: wg.Tensor) -> wg.Tensor:
        return wg.pad_windows(given, size, fill=fill)

    return Call(tuple(listed), ours, numpys, text=f"{size}, {fill}")


# indices and masks


@st.composite
def keys(draw: st.DrawFn, sizes: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A key as a function of the indexed side: its arrays may be tensors where that is a tensor."""
    key = draw(any_keys(sizes))
    on_gpu = draw(st.booleans())

    def key_for(x: Any) -> tuple[Any, ...]:
        if not (on_gpu and isinstance(x, wg.Tensor)):
            return key
        return tuple(
            wg.asarray(each, device=x.device) if isinstance(each, np.ndarray) else each for each in key
        )

    return key_for


def selected_sizes(sizes: tuple[int, ...], key: Any) -> tuple[int, ...]:
    """The sizes that an index selects; none if NumPy refuses it."""
    try:
        shape: tuple[int, ...] = np.empty(sizes, "u1")[key].shape
    except IndexError:
        return ()
    return shape


@st.composite
def gathers(draw: st.DrawFn) -> Call:
    """Any index, read."""
    x = draw(any_argument(array_sizes(1)))
    key_for = draw(keys(x.layout.sizes))
    assume(len(selected_sizes(x.layout.sizes, key_for(None))) <= 8)
    return same([x], lambda x: x[key_for(x)], f"[{key_for(None)}]")


@st.composite
def scatters(draw: st.DrawFn) -> Call:
    """Any index, written: with one element or with an array."""
    x = draw(any_argument(array_sizes(1), written=True))
    key_for = draw(keys(x.layout.sizes))
    sizes = selected_sizes(x.layout.sizes, key_for(None))
    assume(len(sizes) <= 8)
    kept = tuple(size if draw(st.integers(0, 3)) else 1 for size in sizes)
    value = draw(any_argument(kept, x.dtype))

    def write(x: Any, value: Any) -> None:
        x[key_for(x)] = value

    return Call((x, value), write, write, writes=True, text=f"[{key_for(None)}] = {kept}")


@st.composite
def masked(draw: st.DrawFn) -> Call:
    """One element or an array of the same sizes, where a mask of the device is true."""
    x = draw(any_argument(array_sizes(1), written=True))
    mask = draw(any_argument(x.layout.sizes, "bool"))
    value = draw(any_argument((), x.dtype))

    def write(x: Any, mask: Any, value: Any) -> None:
        x[mask] = value

    return Call((x, mask, value), write, write, writes=True)


@st.composite
def index_values(draw: st.DrawFn, size: int, sizes: tuple[int, ...]) -> NDArray[Any]:
    dtype = draw(st.sampled_from([*INTEGERS, "int64", "int32"]))
    held = np.iinfo(dtype)  # an index of a narrow dtype reaches a part of a long dimension
    return draw(arrays(dtype, sizes, elements=st.integers(max(-size, held.min), min(size - 1, held.max))))


@st.composite
def puts(draw: st.DrawFn) -> Call:
    """`wg.put`: slices along a dimension, of which later ones win."""
    x = draw(any_argument(array_sizes(1, 1), written=True))
    sizes = x.layout.sizes
    axis = draw(axis_of(len(sizes)))
    indices = draw(index_values(sizes[axis], draw(st.sampled_from([(1,), (5,), (2, 3), (40,)]))))
    key: Any = (*[slice(None)] * (axis % len(sizes)), indices)
    taken = np.empty(sizes, "u1")[key].shape
    assume(prod(taken) <= 3000 and len(taken) <= 8)
    values = draw(any_argument(taken, x.dtype))
    held = (host(indices, indices.dtype.name),) if draw(st.booleans()) else ()

    def ours(x: wg.Tensor, values: wg.Tensor, at: Any = indices) -> None:
        wg.put(x, at, values, axis)

    def numpys(x: Any, values: Any, _: Any = None) -> None:
        x[key] = values

    return Call((x, values, *held), ours, numpys, writes=True, text=f"{indices.tolist()} along {axis}")


@st.composite
def takes(draw: st.DrawFn) -> Call:
    """`take` and `take_along_axis`, at indices of the host or of the device."""
    x = draw(any_argument(array_sizes(1, 1)))
    sizes = list(x.layout.sizes)
    axis = draw(axis_of(len(sizes)))
    along = draw(st.booleans())
    shape = draw(st.sampled_from([(), (1,), (5,), (2, 3)]))
    if along:
        own = sizes[axis]
        sizes[axis] = draw(st.integers(1, 9))
        indices = np.random.default_rng(draw(st.integers(0, 99))).integers(-own, own, sizes)
    else:
        indices = draw(index_values(sizes[axis], shape))
    function: Any = np.take_along_axis if along else np.take
    held = (host(indices, indices.dtype.name),) if draw(st.booleans()) else ()
    return same([x, *held], lambda x, at=indices: function(x, at, axis), f"{function.__name__} {axis}")


# assignments


@st.composite
def assignments(draw: st.DrawFn) -> Call:
    """A basic index, written with an array of the host, a tensor or an element."""
    x = draw(any_argument(written=True))
    key = draw(basic_indices(x.layout.sizes, allow_newaxis=True, max_dims=6))
    sizes = view_of(np.empty(x.layout.sizes, "u1"), key).shape
    kept = tuple(size if draw(st.integers(0, 3)) else 1 for size in sizes)
    value = draw(any_argument(kept[draw(st.integers(0, len(kept))) :] if 1 in kept[:1] else kept, x.dtype))
    as_host = draw(st.integers(0, 3)) == 0
    content = value.array(value.content())

    def ours(x: Any, value: Any) -> None:
        x[key] = content if as_host else value

    def numpys(x: Any, value: Any) -> None:
        view_of(x, key)[...] = value

    return Call((x, value), ours, numpys, writes=True, text=f"[{key}] = {kept}")


@st.composite
def moves_inside(draw: st.DrawFn) -> Call:
    """A window of an array assigned to another window of it, which may overlap it."""
    x = draw(any_argument(array_sizes(1, 1), written=True))
    read: list[slice] = []
    written: list[slice] = []
    for size in x.layout.sizes:
        count = draw(st.integers(1, size))
        for key in (read, written):
            begin = draw(st.integers(0, size - count))
            part = slice(begin, begin + count)
            if draw(st.integers(0, 3)) == 0:
                part = slice(begin + count - 1, begin - 1 if begin else None, -1)
            key.append(part)

    def write(x: Any) -> None:
        x[tuple(written)] = x[tuple(read)].copy() if isinstance(x, np.ndarray) else x[tuple(read)]

    return Call((x,), write, write, writes=True, text=f"[{written}] = [{read}]")


# functions that move elements


@st.composite
def views(draw: st.DrawFn) -> Call:
    """Several views of views, copied."""
    x = draw(any_argument())
    steps: list[tuple[str, Any]] = []
    sizes = x.layout.sizes
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["index", "permute", "flip", "broadcast"]))
        if kind == "index":
            step: Any = draw(basic_indices(sizes, allow_newaxis=True, max_dims=max(len(sizes), 6)))
        elif kind == "permute":
            step = tuple(draw(st.permutations(range(len(sizes)))))
        elif kind == "flip":
            step = tuple(axis for axis in range(len(sizes)) if draw(st.booleans()))
        else:
            most = 3 if prod(sizes) <= 500 and len(sizes) < 6 else 1
            step = (draw(st.integers(1, most)),) * (most > 1) + sizes
        steps.append((kind, step))
        sizes = applied(np.empty(sizes, "u1"), steps[-1:]).shape
    return same([x], lambda x: applied(x, steps), str(steps))


def applied(x: Any, steps: Sequence[tuple[str, Any]]) -> Any:
    """The views of an array, or of a tensor, one after the other."""
    functions: dict[str, Any] = {"permute": np.transpose, "flip": np.flip, "broadcast": np.broadcast_to}
    for kind, step in steps:
        x = view_of(x, step) if kind == "index" else functions[kind](x, step)
    return x


@st.composite
def joins(draw: st.DrawFn) -> Call:
    """`concatenate` and `stack`."""
    sizes = draw(array_sizes(1))
    count, stacked = draw(st.integers(1, 4)), draw(st.booleans())
    dtype = draw(st.sampled_from(ELEMENTS))
    axis = draw(axis_of(len(sizes) + stacked))
    given = []
    for _ in range(count):
        own = list(sizes)
        if not stacked:
            own[axis] = draw(st.integers(0, 9))
        given.append(draw(any_argument(tuple(own), dtype)))
    function: Any = np.stack if stacked else np.concatenate
    return same(given, lambda *arrays: function(arrays, axis=axis), f"{function.__name__} along {axis}")


@st.composite
def pads(draw: st.DrawFn) -> Call:
    """`pad` in each mode."""
    mode: Any = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    x = draw(any_argument(array_sizes(1, 0 if mode == "constant" else 1).filter(few)))
    most = draw(st.sampled_from([1, 4, 11])) if x.layout.rank <= 2 else 2
    width = st.integers(0, most)
    widths = [(draw(width), draw(width)) for _ in x.layout.sizes]
    return same([x], lambda x: np.pad(x, widths, mode), f"{mode} {widths}")


def few(sizes: tuple[int, ...]) -> bool:
    return prod(sizes) <= 400


@st.composite
def rolls(draw: st.DrawFn) -> Call:
    """`roll` along any dimensions."""
    x = draw(any_argument())
    axes = draw(st.lists(axis_of(x.layout.rank), max_size=3)) if x.layout.rank else []
    shifts = [draw(st.integers(-20, 20)) for _ in axes]
    if not axes or draw(st.integers(0, 3)) == 0:
        shift = draw(st.integers(-20, 20))
        return same([x], lambda x: np.roll(x, shift), str(shift))
    return same([x], lambda x: np.roll(x, shifts, axes), f"{shifts} along {axes}")


@st.composite
def repeats(draw: st.DrawFn) -> Call:
    """`tile` and `repeat`."""
    x = draw(any_argument(array_sizes(1).filter(few)))
    rank = x.layout.rank
    if draw(st.booleans()):
        counts = [draw(st.integers(0, 3)) if rank <= 2 else draw(st.integers(1, 2)) for _ in range(rank)]
        return same([x], lambda x: np.tile(x, counts), f"tile {counts}")
    axis = draw(axis_of(rank))
    count: Any = draw(st.integers(0, 4))
    if draw(st.booleans()):
        count = [draw(st.integers(0, 3)) for _ in range(x.layout.sizes[axis])]
    return same([x], lambda x: np.repeat(x, count, axis), f"repeat {count} along {axis}")


@st.composite
def triangles(draw: st.DrawFn) -> Call:
    """`tril` and `triu`."""
    x = draw(any_argument(array_sizes(2)))
    k = draw(st.integers(-12, 12))
    function: Any = draw(st.sampled_from([np.tril, np.triu]))
    return same([x], lambda x: function(x, k), f"{function.__name__} {k}")


# ONNX, textures and captured programs


@st.composite
def graphs_of_operators(draw: st.DrawFn) -> Call:
    """Graphs of ONNX operators, against its reference implementation."""
    graph = draw(graphs())
    made = [name for node in graph.nodes for name in node.output if name in graph.sizes]
    read = {name for node in graph.nodes for name in node.input}
    outputs = {name: len(graph.sizes[name]) for name in made if name not in read}
    assume(outputs)
    inputs: Any = {name: (6, graph.sizes[name]) for name in "xy"}
    model = model_of(graph.nodes, inputs, outputs, graph.constants, graph.opset)
    given = [Argument(Layout.packed(graph.sizes[name]), "int32", seed) for seed, name in enumerate("xy")]
    prepared: dict[wg.Device, Any] = {}

    def ours(x: wg.Tensor, y: wg.Tensor) -> Any:
        device = x.device
        if device not in prepared:
            prepared[device] = backend.prepare(model, device)
        return prepared[device].run_on_device({"x": x, "y": y})

    def numpys(x: Any, y: Any) -> Any:
        found: Any = ReferenceEvaluator(model).run(None, {"x": x, "y": y})
        return [np.asarray(each, np.int32) for each in found]

    return Call(tuple(given), ours, numpys, text=onnx.printer.to_text(model))


@st.composite
def textures(draw: st.DrawFn) -> Call:
    """Texels written into a texture and read back."""
    format, (dtype, channels) = draw(st.sampled_from(sorted(TEXELS.items())))
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 70))
    x = draw(any_argument((height, width, channels) if channels > 1 else (height, width), dtype))

    def ours(x: wg.Tensor) -> wg.Tensor:
        texture = x.device.wgpu_device.create_texture(size=(width, height, 1), format=format, usage=3)
        wg.copy_to_texture(x, texture)
        return wg.from_texture(texture)

    return Call((x,), ours, lambda x: x.copy(), text=format)


@st.composite
def programs(draw: st.DrawFn) -> Call:
    """A call of another operation, captured, perhaps saved and loaded, and replayed on its own tensors."""
    one_of = (
        *(extractions, windows_inserted, assignments, moves_inside, views, joins, pads, rolls, repeats),
        *(sized_extractions, sized_insertions, paddings),
    )
    call = draw(st.one_of([each() for each in one_of]))

    saved = draw(st.booleans())

    def ours(*tensors: wg.Tensor) -> Any:
        given: Any = {f"x{number}": tensor for number, tensor in enumerate(tensors)}
        program = wg.capture(lambda **held: call.ours(*held.values()), **given)
        if saved:
            with TemporaryDirectory() as folder:
                program.save(folder)
                program = wg.load_program(folder, tensors[0].device)
        return program(**given)

    return replace(call, ours=ours, text=f"{call.text}{' saved' * saved}")


OPERATIONS: dict[str, st.SearchStrategy[Call]] = {
    "slice1": slices(),
    "directml": directml_slices(),
    "slice_grad": gradients(),
    "extract_windows": extractions(),
    "insert_windows": windows_inserted(),
    "extract_sized": sized_extractions(),
    "insert_sized": sized_insertions(),
    "pad_windows": paddings(),
    "gather": gathers(),
    "scatter": scatters(),
    "mask": masked(),
    "put": puts(),
    "take": takes(),
    "assign": assignments(),
    "overlap": moves_inside(),
    "views": views(),
    "join": joins(),
    "pad": pads(),
    "roll": rolls(),
    "repeat": repeats(),
    "triangle": triangles(),
    "onnx": graphs_of_operators(),
    "texture": textures(),
    "program": programs(),
}
