"""What kernels run with: their bindings, pipelines and uniform blocks, made once for a device."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from wgslice.plans.kernels import Kernel
from wgslice.plans.steps import Dispatch, Span
from wgslice.plans.window_steps import WindowDispatch, Windows
from wgslice.shaders.modules import kernel_module
from wgslice.shaders.uniforms import override_constants, uniform_block, window_block, window_constants

__all__ = ["Pipelines"]

# Values of the WebGPU specification, which wgpu.BufferUsage and wgpu.ShaderStage repeat.
UNIFORM, STORAGE = 0x40, 0x80
COMPUTE_STAGE = 0x4

# So many are kept, then all are made anew: compiled kernels, uniform buffers, steps with what they run with.
MOST_PIPELINES = 512
MOST_UNIFORM_BUFFERS = 1024
MOST_PREPARED = 4096


class Pipelines:
    """Pipelines by kernel and constants, uniform blocks by value, and the bind groups that bring buffers in.

    It works on a wgpu.GPUDevice, whose objects are Any here: `device` alone imports wgpu.
    """

    def __init__(self, wgpu_device: Any) -> None:
        self.wgpu_device = wgpu_device
        self.layout = self._layout("uniform", "read-only-storage", "storage")
        self.windows_layout = self._layout(
            "uniform", "read-only-storage", "storage", "read-only-storage", "read-only-storage"
        )
        self.probe_layout = self._layout("read-only-storage")
        self.modules: dict[Kernel, Any] = {}
        self.pipelines: dict[tuple[Kernel, tuple[tuple[str, int], ...]], Any] = {}
        self.uniform_buffers: dict[bytes, Any] = {}
        self.tables: WeakKeyDictionary[WindowDispatch | Windows, Any] = WeakKeyDictionary()
        self.prepared_windows: WeakKeyDictionary[WindowDispatch, tuple[Any, Any]] = WeakKeyDictionary()
        self.prepared: dict[int, tuple[Dispatch, Any, Any]] = {}  # by id of the step, which it keeps

    def prepare(self, step: Dispatch | WindowDispatch) -> tuple[Any, Any]:
        """The pipeline and the uniform buffer of a step, made the first time."""
        if isinstance(step, WindowDispatch):
            return self._prepare_windows(step)
        found = self.prepared.get(id(step))
        if found is None:
            if len(self.prepared) >= MOST_PREPARED:
                self.prepared.clear()
            pipeline = self._pipeline(step.kernel, override_constants(step), self.layout)
            found = step, pipeline, self._uniform_buffer(uniform_block(step))
            self.prepared[id(step)] = found
        return found[1:]

    def _prepare_windows(self, step: WindowDispatch) -> tuple[Any, Any]:
        """Likewise; kept as long as the step, whose windows may be many."""
        found = self.prepared_windows.get(step)
        if found is None:
            pipeline = self._pipeline(step.kernel, window_constants(step), self.windows_layout)
            found = pipeline, self._uniform_buffer(window_block(step))
            self.prepared_windows[step] = found
        return found

    def bind_group(self, uniform_buffer: Any, source: tuple[Any, Span], target: tuple[Any, Span]) -> Any:
        """Bind what every kernel has."""
        entries = [
            {"binding": 0, "resource": uniform_buffer},
            entry(1, *source),
            entry(2, *target),
        ]
        return self.wgpu_device.create_bind_group(layout=self.layout, entries=entries)

    def bind_windows(
        self,
        step: WindowDispatch,
        uniform_buffer: Any,
        source: tuple[Any, Span],
        target: tuple[Any, Span],
        offsets: tuple[Any, Span] | None,
    ) -> Any:
        """Bind what a kernel of windows has: the tables too, which live as long as what they are of."""
        windows, picks = step.windows, step.picks
        if offsets is None:
            assert windows.offsets is not None
            offsets = self._table(windows, windows.offsets)
        chosen = offsets
        if picks is not None:
            chosen = self._table(step, np.stack([picks, windows.flips[picks]], axis=1))
        sides = (source, target, chosen, offsets)
        entries = [
            {"binding": 0, "resource": uniform_buffer},
            *(entry(number, *side) for number, side in enumerate(sides, 1)),
        ]
        return self.wgpu_device.create_bind_group(layout=self.windows_layout, entries=entries)

    def _table(self, owner: WindowDispatch | Windows, values: np.ndarray[Any, Any]) -> tuple[Any, Span]:
        buffer = self.tables.get(owner)
        if buffer is None:
            data = np.ascontiguousarray(values)
            buffer = self.wgpu_device.create_buffer_with_data(data=data, usage=STORAGE)
            self.tables[owner] = buffer
        return buffer, Span(0, buffer.size)

    def probe(self, buffer: Any) -> None:
        """Bind a buffer to nothing: what is wrong with it raises here, and would abort in a submission."""
        entries = [entry(0, buffer, Span(0, 4))]
        self.wgpu_device.create_bind_group(layout=self.probe_layout, entries=entries)

    def _layout(self, *types: str) -> Any:
        return self.wgpu_device.create_bind_group_layout(
            entries=[
                {"binding": number, "visibility": COMPUTE_STAGE, "buffer": {"type": type_}}
                for number, type_ in enumerate(types)
            ]
        )

    def _pipeline(self, kernel: Kernel, constants: dict[str, int], layout: Any) -> Any:
        """Compile a kernel with the constants that it needs, the first time."""
        key = kernel, tuple(constants.items())
        if key not in self.pipelines:
            device = self.wgpu_device
            if len(self.pipelines) >= MOST_PIPELINES:
                self.pipelines.clear()
            self.pipelines[key] = device.create_compute_pipeline(
                layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={
                    "module": self._module(kernel),
                    "entry_point": kernel.value,
                    "constants": constants,
                },
            )
        return self.pipelines[key]

    def _module(self, kernel: Kernel) -> Any:
        """Parse a kernel, the first time: its pipelines differ in their constants only."""
        if kernel not in self.modules:
            code = kernel_module(kernel)
            self.modules[kernel] = self.wgpu_device.create_shader_module(label=kernel.value, code=code)
        return self.modules[kernel]

    def _uniform_buffer(self, uniform: bytes) -> Any:
        """Hold a block for good in a buffer, so that any number of recordings can share it."""
        buffer = self.uniform_buffers.get(uniform)
        if buffer is None:
            if len(self.uniform_buffers) >= MOST_UNIFORM_BUFFERS:
                self.uniform_buffers.clear()
            buffer = self.wgpu_device.create_buffer_with_data(data=uniform, usage=UNIFORM)
            self.uniform_buffers[uniform] = buffer
        return buffer


def entry(number: int, buffer: Any, span: Span) -> dict[str, Any]:
    """One entry of a bind group."""
    resource = {"buffer": buffer, "offset": span.offset_nbytes, "size": span.nbytes}
    return {"binding": number, "resource": resource}
