"""What replaces a buffer in a captured call, on every host."""

from __future__ import annotations

from typing import NoReturn

from wgslice.gpu.protocols import GPUDevice


class Placeholder:
    """Replaces a buffer in a captured call, without memory."""

    map_state = "unmapped"
    label = ""

    def __init__(
        self,
        wgpu_device: GPUDevice,
        size: int,
        usage: int,
        zeroed: bool = True,
        used_nbytes: int | None = None,
    ) -> None:
        self.device = wgpu_device
        self.size = size
        self.usage = usage
        self.zeroed = zeroed  # whether the call relies on zeros where it does not write
        self.used_nbytes = size if used_nbytes is None else used_nbytes  # whole words that tensors may use

    @property
    def _device(self) -> GPUDevice:
        """The device, by the name of wgpu-py's handles."""
        return self.device

    @property
    def _internal(self) -> NoReturn:
        """The native handle, which wgpu reads before it uses a buffer."""
        raise ValueError(
            "the tensor comes from an explained or captured call, which did not run: it has no elements"
        )

    js = _internal  # JavaScript's buffer, which the browser's host reads
