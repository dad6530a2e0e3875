"""Writing into tensors, beside `x[key] = value`."""

from __future__ import annotations

from numpy.typing import ArrayLike

from wgslice.errors import named
from wgslice.tensors.assign import as_copied
from wgslice.tensors.outputs import check_tensor
from wgslice.tensors.tensor import Tensor, write_tensor

__all__ = ["copyto"]


def copyto(dst: Tensor, src: Tensor | ArrayLike) -> None:
    """Copy a tensor, an array or a scalar into a tensor, window to window, as `numpy.copyto` does.

    Parameters
    ----------
    dst : Tensor
        Where to write: a tensor or any view of one in which no element repeats. Bytes of its buffer between
        and around its elements keep their value.
    src : Tensor or array_like
        What broadcasts to `dst.shape`. A tensor has `dst`'s dtype and device; it may lie in the same buffer,
        and is read before anything is written. An array is cast where NumPy's rule `same_kind` allows it.

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    TypeError
        `dst` is no tensor, `src` a tensor of another dtype, or an array that cannot be cast.
    ValueError
        `src` does not broadcast to `dst.shape`, two elements of `dst` lie on the same bytes, a buffer is
        destroyed or mapped, or the devices differ.
    OverflowError
        `src` is a Python integer that `dst`'s dtype does not hold.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left to read `src` aside, or is gone.
    """
    with named("copyto"):
        check_tensor("dst", dst)
        write_tensor(dst, src if isinstance(src, Tensor) else as_copied(src, dst.dtype))
