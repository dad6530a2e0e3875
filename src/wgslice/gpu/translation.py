"""wgpu's validation errors as Python's own."""

from __future__ import annotations

from wgslice.errors import DeviceLostError, OutOfDeviceMemory

__all__ = ["LOST", "refusals", "translated_errors"]

LOST = "the device is lost: request a new one and upload again"


class TranslatedErrors:
    """Raise wgpu's errors in other words, as far as their texts tell them apart."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        import wgpu

        if not isinstance(error, wgpu.GPUError):
            return
        text = str(error)
        if "Not enough memory left" in text:
            raise OutOfDeviceMemory(
                "the device has no memory left for this buffer: drop tensors that are no longer needed"
            ) from error
        if "device is lost" in text.lower():
            raise DeviceLostError(LOST) from error
        if "has been destroyed" in text:
            raise ValueError("the buffer has been destroyed: its memory is gone") from error


translated_errors = TranslatedErrors()  # holds nothing, so that one serves all threads


def refusals() -> type[Exception]:
    """What wgpu raises where it refuses something, such as a shader."""
    import wgpu

    error: type[Exception] = wgpu.GPUError
    return error
