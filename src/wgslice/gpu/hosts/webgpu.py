"""A host by wgpu-py's public API: wgpu of any version from 0.32 on, wgpudawn, or `navigator` in a browser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any
from weakref import WeakSet

from wgslice.errors import LOST, DeviceLostError, ErrorTexts, TranslatedErrors
from wgslice.gpu.protocols import (
    Buffer,
    BufferRange,
    BufferUsage,
    BytesCopy,
    GPUDevice,
    Place,
    Region,
    StandIn,
    TexelRows,
    handle_of,
    known,
)
from wgslice.plans.proofs import Checks
from wgslice.plans.steps import BufferCopies

IsLost = Callable[[], bool]

SAFE = "implicit-device-synchronization"  # Dawn's feature: calls from several threads
SCOPES = "validation", "out-of-memory", "internal"  # kinds of errors that a browser reports later
READ = 1  # WebGPU's mode of a mapping
BACKENDS = "Vulkan", "Metal", "D3D12", "OpenGL"  # in the order of wgpu's adapters

# What the texts of errors have, where their classes do not tell.
TEXTS = {
    "wgpu": ErrorTexts("wgpu"),
    "dawn": ErrorTexts("Dawn", memory="Out of memory", lost="is lost", destroyed="destroyed"),
    "browser": ErrorTexts("the browser"),
}


class WebGPU:
    """What offers WebGPU to this package: devices, buffers, encoders, waits, mappings, errors by kind.

    Attributes
    ----------
    name : str
        "wgpu", "dawn" or "browser".
    errors : TranslatedErrors
        The context manager that raises Python's errors for the host's.
    """

    accelerations = "its public API alone"  # which calls are used, in reports
    omits_checks = False  # whether modules may be made without run-time checks
    maps_in_place = False  # whether arrays may be on mapped memory, and buffers of tensors be mapped

    def __init__(self, name: str, api: Any) -> None:
        self.name = name
        self.api = api
        self.backends = ("WebGPU",) if name == "browser" else BACKENDS  # a browser does not tell its own
        self.copies_single_aspects = name != "wgpu"  # which wgpu-py ignores
        self.refusals: type[Exception] = api.GPUError
        self.errors = TranslatedErrors(self.refusals, TEXTS[name])
        self.lost: WeakSet[Any] = WeakSet()  # devices that were found to be

    # Adapters and devices

    @cached_property
    def best_handle(self) -> Any:
        """The best adapter, or None where enumerating finds it as fast: on wgpu that starts every backend."""
        if self.name != "wgpu":
            return None
        with suppress(RuntimeError):  # this machine has none
            return self.api.gpu.request_adapter_sync(power_preference="high-performance")

    @cached_property
    def _handles(self) -> list[Any]:
        """All adapters, enumerated once, with the best as it was found before."""
        found = [*self.api.gpu.enumerate_adapters_sync()]
        best = vars(self).get("best_handle")
        same = [number for number, each in enumerate(found) if best and each.info == best.info]
        for number in same[:1]:
            found[number] = best
        return found

    def found_handles(self, backend: str) -> list[Any]:
        """Return the adapters of a backend."""
        return [handle for handle in self._handles if handle.info["backend_type"] == backend]

    async def enumerate_async(self) -> None:
        """Enumerate all adapters, if calls cannot wait for that."""
        if not self.can_wait() and "_handles" not in vars(self):
            # another task may have found them
            vars(self).setdefault("_handles", [*await self.api.gpu.enumerate_adapters_async()])

    def request_device(self, adapter: Any, features: Collection[str] = (), *, waits: bool = True) -> Any:
        """Make a device with all limits and some features of its adapter; an awaitable unless it `waits`."""
        fresh = self._fresh(adapter)
        request = fresh.request_device_sync if waits else fresh.request_device_async
        return request(**self._wanted(adapter, features))

    def _wanted(self, adapter: Any, features: Collection[str]) -> dict[str, Any]:
        wanted = [*features, *{SAFE} & {*adapter.features}]
        return {"required_features": wanted, "required_limits": {**adapter.limits}}

    def _fresh(self, adapter: Any) -> Any:
        """Return an adapter that can make a device: by WebGPU's rules, as on Dawn, each makes one."""
        if self.name != "dawn":
            return adapter
        found = self.api.gpu.enumerate_adapters_sync()
        return next(each for each in found if {**each.info} == {**adapter.info})

    def is_safe(self, wgpu_device: Any) -> bool:
        """Whether several threads may call a device at once."""
        return self.name != "dawn" or SAFE in wgpu_device.features

    def versions(self) -> dict[str, str]:
        """Return the versions of what implements WebGPU."""
        versions: dict[str, str] = self.api.versions() if self.name == "browser" else {}
        return versions or {self.api.__name__: str(self.api.__version__)}

    def can_wait(self) -> bool:
        """Whether calls can wait for the GPU."""
        return self.name != "browser" or bool(self.api.can_wait())

    # Callers' values

    def handle_in(self, value: Any, *kinds: str) -> Any:
        """Return the handle of given kinds that a value is, for a buffer what stands for it, or None."""
        if self.name == "browser":
            value = self.api.wrapped(value)
        if not isinstance(value, tuple(getattr(self.api, kind) for kind in kinds)):
            return value if isinstance(value, StandIn) and "GPUBuffer" in kinds else None
        return known(value) if "GPUBuffer" in kinds else value

    def type_name(self, value: object) -> str:
        """Return the name of a value's type for errors."""
        if self.name == "browser":
            return str(self.api.type_name(value))
        kind = type(value)
        package = kind.__module__.partition(".")[0]
        return f"{package}.{kind.__name__}" if kind.__name__.startswith("GPU") else kind.__name__

    def owner_of(self, handle: Any) -> GPUDevice | None:
        """Return the device of a buffer, encoder or texture, or None: handles do not tell it publicly."""
        if isinstance(handle, StandIn):
            return handle.wgpu_device
        return handle.device if self.name == "browser" else None

    def has(self, handle: Any) -> bool:
        """Whether a handle is one of this host's."""
        package = self.api.GPUDevice.__module__.partition(".")[0]
        return isinstance(handle, StandIn) or type(handle).__module__.partition(".")[0] == package

    # Commands

    def create_module(
        self,
        wgpu_device: Any,
        label: str,
        code: str,
        checks: Checks,  # noqa: ARG002 -- of another host; on Dawn they are of a whole device
    ) -> object:
        """Make a module of WGSL, with all run-time checks."""
        return wgpu_device.create_shader_module(label=label, code=code)

    def make_bind_group(self, wgpu_device: Any, layout: Any, ranges: Sequence[BufferRange]) -> Any:
        """Make a bind group of buffers."""
        entries = [
            {
                "binding": number,
                "resource": {"buffer": handle_of(buffer), "offset": offset_nbytes, "size": nbytes},
            }
            for number, buffer, offset_nbytes, nbytes in ranges
        ]
        return wgpu_device.create_bind_group(layout=layout, entries=entries)

    def is_known_alive(self, buffer: Buffer) -> bool:  # noqa: ARG002 -- of a faster call
        """Whether a buffer has been watched, and not been destroyed since."""
        return False

    def watch(self, buffer: Buffer) -> None:
        """Note when a buffer that was found alive is destroyed: not known, each use checks it (26 us)."""

    def check_valid(self, wgpu_device: Any) -> None:
        """Raise the host's error if the device is lost.

        Only then it rejects a layout without bindings. Dawn stops that once it has told the loss to whoever
        awaits it, so a loss that was found is remembered.
        """
        if wgpu_device in self.lost:
            raise self.refusals("the device is lost")
        try:
            wgpu_device.create_bind_group_layout(entries=[])
        except self.refusals:
            self.lost.add(wgpu_device)
            raise

    def copy_rows(
        self,
        encoder: Any,
        sides: Sequence[Place],
        copies: BufferCopies,
        checked: bool,  # noqa: ARG002 -- of a faster call
    ) -> None:
        """Record a copy for each row.

        The first raises if the encoder has ended, at least if `checked`; all other errors are raised when the
        encoder is finished.
        """
        (read, read_base), (written, written_base) = sides
        source, target = handle_of(read), handle_of(written)
        for read_offset, written_offset in copies.pairs:
            encoder.copy_buffer_to_buffer(
                source, read_base + read_offset, target, written_base + written_offset, copies.nbytes
            )

    def copy_texels(
        self, encoder: Any, region: Region, rows: TexelRows, size: Sequence[int], *, writes: bool
    ) -> None:
        """Record a copy of one aspect."""
        texture, origin, mip_level, aspect = region
        texels = {"texture": texture, "mip_level": mip_level, "origin": origin, "aspect": aspect}
        of_buffer = {
            "buffer": handle_of(rows.buffer),
            "offset": rows.offset_nbytes,
            "bytes_per_row": rows.row_nbytes,
            "rows_per_image": rows.image_rows,
        }
        if writes:
            encoder.copy_buffer_to_texture(of_buffer, texels, tuple(size))
        else:
            encoder.copy_texture_to_buffer(texels, of_buffer, tuple(size))

    def submit(self, wgpu_device: Any, encoder: Any, copy: BytesCopy | None = None) -> None:
        """Submit the commands of an encoder, if there is one, then a copy.

        The end of the encoder raises the errors of its commands.
        """
        if encoder is None:
            encoder = wgpu_device.create_command_encoder()
        if copy is not None:
            source, offset_nbytes, target, nbytes = copy
            encoder.copy_buffer_to_buffer(handle_of(source), offset_nbytes, handle_of(target), 0, nbytes)
        wgpu_device.queue.submit([encoder.finish()])

    def timestamp_period_ns(self, wgpu_device: Any) -> float | None:  # noqa: ARG002 -- another host asks it
        """Return the nanoseconds of a tick of timestamps; None where nothing tells it."""
        return 1.0 if self.name == "dawn" else None

    # Errors

    @contextmanager
    def refused_as_value(self, wgpu_device: Any) -> Iterator[None]:
        """Raise ValueError for what the host refuses in the block, where the values come from a file.

        A browser that cannot wait here raises at the next call that waits instead.
        """
        scopes = SCOPES if self.name == "browser" and self.can_wait() else ()
        texts: list[str] = []
        for kind in scopes:
            wgpu_device.push_error_scope(kind)
        try:
            with self.errors:
                yield
        except self.refusals as error:
            texts.append(str(error))
        finally:
            late = [wgpu_device.pop_error_scope_sync() for _ in scopes]
        for text in (*texts, *map(str, filter(None, late))):
            _, cause, reason = text.partition("Caused by:")  # in wgpu's texts
            said = " ".join((reason if cause else text).split())
            raise ValueError(f"{TEXTS[self.name].host} refuses it: {said}") from None

    def check_loss(self, is_lost: IsLost) -> None:
        """Raise DeviceLostError if the device is lost."""
        if is_lost():
            raise DeviceLostError(LOST)

    # Waits

    def wait_done(self, wgpu_device: Any, is_lost: IsLost) -> None:
        """Wait until all submitted work is done."""
        try:
            promise = wgpu_device.queue.on_submitted_work_done_async()
        except TypeError:  # of wgpu 0.32.0 (wgpu-py issue 834)
            usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
            unread = wgpu_device.create_buffer(size=4, usage=usage)
            encoder = wgpu_device.create_command_encoder()
            encoder.clear_buffer(unread)  # a mapping of an unused buffer waits for nothing
            wgpu_device.queue.submit([encoder.finish()])
            promise = unread.map_async(READ)
        Pending(self, wgpu_device, promise, is_lost).wait()

    def begin_mapping(self, wgpu_device: Any, buffer: Any, nbytes: int, is_lost: IsLost) -> Pending:
        """Begin to map the first bytes of a buffer after all submitted work."""
        return Pending(self, wgpu_device, handle_of(buffer).map_async(READ, 0, nbytes), is_lost)

    def mapped_bytes(self, buffer: Any, nbytes: int) -> memoryview:
        """Return a read-only view of the first bytes of a buffer that has been mapped."""
        view: memoryview = handle_of(buffer).read_mapped(0, nbytes, copy=False)
        return view.toreadonly()

    def end_mapping(self, buffer: Any, *, checked: bool = True) -> None:  # noqa: ARG002 -- of a faster call
        """Unmap a buffer; nothing raises unless `checked`."""
        handle = handle_of(buffer)
        if handle.map_state == "mapped":
            handle.unmap()

    def guard_mappings(self, wgpu_device: Any, mapped: Collection[Buffer]) -> None:
        """Do nothing: no array is on mapped memory."""


class Pending:
    """A mapping of a buffer, or submitted work, which a promise of the host's ends; any thread may wait."""

    failure = ""  # the reason, where it is known to have failed

    def __init__(self, host: WebGPU, wgpu_device: GPUDevice, promise: Any, is_lost: IsLost) -> None:
        self.host = host
        self.wgpu_device = wgpu_device
        self.promise = promise
        self.is_lost = is_lost

    def is_over(self) -> bool:
        """Whether it is known to be done, or to have failed, without waiting."""
        return False

    def wait(self) -> None:
        """Wait until it is done; raise DeviceLostError, or RuntimeError with the reason why it has failed."""
        try:
            self.promise.sync_wait()
        except RuntimeError as error:
            if self.host.name == "dawn" and "destroyed" in str(error):  # by a lost device
                self.host.lost.add(self.wgpu_device)
            self.host.check_loss(self.is_lost)
            raise self.failed(str(error)) from None
        if self.host.name == "browser":  # where a lost device maps all the same
            self.host.check_loss(self.is_lost)

    def failed(self, reason: str) -> RuntimeError:
        """Return an error that no frame refers to, with which buffers would live until a collection."""
        error = RuntimeError(f"{TEXTS[self.host.name].host} did not map a buffer or end the work: {reason}")
        error.add_note(self.host.errors.note)
        return error

    def __await__(self) -> Generator[Any, None, None]:
        with suppress(RuntimeError):  # which `wait` raises
            yield from self.promise.__await__()
