"""What tensors do not do: compute. Operators and NumPy's names that are absent say what does their work."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from wgslice.errors import ComputationRefused

__all__ = ["INSTEAD", "REMEDY", "Uncomputed", "refused", "remedy_of"]

REMEDY = (
    "tensors are moved, and nothing is computed on them: x.numpy() or np.asarray(x) is an array to compute "
    "with, and libraries that know DLPack take x as it is, such as torch.from_dlpack(x)"
)

# Functions and attributes that compute nothing, by NumPy's names: what does their work on a tensor x.
INSTEAD = {
    "append": "wg.concat((x, y), axis)",
    "arange": "wg.arange(stop, device=x.device)",
    "array": "wg.asarray(array)",
    "array2string": "np.array2string(x.numpy())",
    "array_repr": "np.array_repr(x.numpy())",
    "array_str": "np.array_str(x.numpy())",
    "as_strided": "wg.from_buffer(x.buffer, shape, x.dtype, offset=x.offset, strides=strides)",
    "asfortranarray": "x.T.copy().T",
    "astype": "x.astype(dtype)",
    "base": "x.buffer",
    "block": "wg.concat of rows, each of them wg.concat((x, y), axis=-1)",
    "byteswap": "wg.asarray(x.numpy().byteswap())",
    "can_cast": "np.can_cast(x.dtype, dtype)",
    "choose": "np.take_along_axis(wg.stack(choices), x[None], 0)[0]",
    "common_type": "np.result_type(x.dtype, y.dtype)",
    "compress": "x[mask]",
    "concatenate": "wg.concat((x, y), axis)",
    "ctypes": "x.numpy().ctypes",
    "data": "x.buffer",
    "delete": "x[mask], with a mask of what stays",
    "diag": "x[np.arange(n), np.arange(n)], and for a matrix of zeros y: y[np.arange(n), np.arange(n)] = x",
    "diag_indices_from": "np.diag_indices(len(x), x.ndim)",
    "diagflat": "y[np.arange(n), np.arange(n)] = x.ravel(), for a matrix of zeros y",
    "diagonal": "x[..., np.arange(n), np.arange(n)]",
    "dump": "pickle.dump(x, file)",
    "dumps": "pickle.dumps(x)",
    "extract": "x[mask]",
    "eye": "import wgslice.array_api as xp; xp.eye(n)",
    "fftshift": "wg.roll(x, [size // 2 for size in x.shape], range(x.ndim))",
    "fill": "x[...] = value",
    "fill_diagonal": "x[np.arange(n), np.arange(n)] = value",
    "flags": "x.is_packed",
    "flat": "x.reshape(-1)",
    "fromfunction": "wg.asarray(np.fromfunction(function, shape))",
    "frombuffer": "wg.asarray(np.frombuffer(buffer, dtype))",
    "fromfile": "wg.asarray(np.fromfile(file, dtype))",
    "fromiter": "wg.asarray(np.fromiter(iterable, dtype))",
    "fromstring": "wg.asarray(np.fromstring(string, dtype, sep=sep))",
    "genfromtxt": "wg.asarray(np.genfromtxt(file))",
    "getfield": "x.view(dtype), of the same width",
    "identity": "import wgslice.array_api as xp; xp.eye(n)",
    "ifftshift": "wg.roll(x, [-(size // 2) for size in x.shape], range(x.ndim))",
    "insert": "wg.concat((x[:index], y, x[index:]))",
    "iscomplexobj": 'x.dtype.kind == "c"',
    "isrealobj": 'x.dtype.kind != "c"',
    "ix_": "np.ix_(x.numpy(), y.numpy())",
    "load": "wg.asarray(np.load(file))",
    "loadtxt": "wg.asarray(np.loadtxt(file))",
    "matrix_transpose": "x.mT",
    "meshgrid": "import wgslice.array_api as xp; xp.meshgrid(x, y)",
    "min_scalar_type": "x.dtype",
    "ndarray": "wg.Tensor",
    "place": "x[mask] = values",
    "put": "wg.reshape(x, -1)[indices] = values",
    "put_along_axis": "x[np.arange(len(x))[:, None], indices] = values",
    "putmask": "x[mask] = values",
    "repeat": "wg.repeat(x, repeats, axis)",
    "require": "wg.asarray(array, dtype=dtype)",
    "resize": "wg.tile(x.ravel(), n)[:size].reshape(shape)",
    "result_type": "np.result_type(x.dtype, y.dtype)",
    "rollaxis": "wg.moveaxis(x, axis, start)",
    "save": "np.save(file, x.numpy())",
    "savetxt": "np.savetxt(file, x.numpy())",
    "savez": "np.savez(file, x.numpy())",
    "savez_compressed": "np.savez_compressed(file, x.numpy())",
    "select": "y = x.copy(); y[mask] = other[mask]",
    "setfield": "x.view(dtype)[...] = value, of the same width",
    "setflags": "x.copy(), which is written alone",
    "shares_memory": "np.may_share_memory(x, y)",
    "sliding_window_view": "wgslice.array_api.lib.stride_tricks.sliding_window_view(x, window_shape)",
    "take": "wg.take(x, indices, axis)",
    "tobytes": "x.numpy().tobytes()",
    "tofile": "x.numpy().tofile(file)",
    "tostring": "x.numpy().tobytes()",
    "transpose": "wg.permute(x, axes)",
    "tri": "wg.asarray(np.tri(n))",
    "tril_indices_from": "np.tril_indices(*x.shape)",
    "triu_indices_from": "np.triu_indices(*x.shape)",
    "where": "wgslice.array_api.where(mask, x, y)",
}


def remedy_of(name: str) -> str:
    """How to go on without a function or attribute of NumPy's."""
    return f"not there for tensors; what does its work: {INSTEAD[name]}" if name in INSTEAD else REMEDY


def refused(operation: str) -> NoReturn:
    """Refuse an operation by its name, which a module may precede, and say how to go on.

    A ComputationRefused where it computes, else a plain NotImplementedError.
    """
    name = operation.rpartition(".")[-1]
    kind = NotImplementedError if name in INSTEAD else ComputationRefused
    raise kind(f"{operation}: {remedy_of(name)}")


ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


def is_computable(value: object) -> bool:
    """Whether people expect to compute with a value: a number, or anything like an array."""
    return isinstance(value, Number | np.generic | list | tuple) or any(
        hasattr(type(value), protocol) for protocol in ARRAY_PROTOCOLS
    )


def of_two(symbol: str) -> Callable[[Any, object], Any]:
    """An operator between a tensor and another value."""

    def refuse(x: Uncomputed, other: object) -> Any:
        if is_computable(other):
            refused(f"{type(x).__name__} {symbol} {type(other).__name__}")
        return NotImplemented  # let the other's class answer; of `==` Python makes a comparison by identity

    return refuse


def of_two_reflected(symbol: str) -> Callable[[Any, object], Any]:
    """An operator between another value and a tensor."""

    def refuse(x: Uncomputed, other: object) -> Any:
        if is_computable(other):
            refused(f"{type(other).__name__} {symbol} {type(x).__name__}")
        return NotImplemented

    return refuse


def of_one(symbol: str) -> Callable[[Any], NoReturn]:
    """An operator on a tensor alone."""

    def refuse(x: Uncomputed) -> NoReturn:
        refused(symbol.format(type(x).__name__))

    return refuse


class Uncomputed:
    """Refuses comparison and arithmetic with tensors, arrays and numbers; identity makes keys and hashes."""

    __slots__ = ()

    __hash__ = object.__hash__

    __eq__ = of_two("==")
    __ne__ = of_two("!=")
    __lt__, __gt__ = of_two("<"), of_two(">")
    __le__, __ge__ = of_two("<="), of_two(">=")

    __add__, __radd__ = of_two("+"), of_two_reflected("+")
    __sub__, __rsub__ = of_two("-"), of_two_reflected("-")
    __mul__, __rmul__ = of_two("*"), of_two_reflected("*")
    __matmul__, __rmatmul__ = of_two("@"), of_two_reflected("@")
    __truediv__, __rtruediv__ = of_two("/"), of_two_reflected("/")
    __floordiv__, __rfloordiv__ = of_two("//"), of_two_reflected("//")
    __mod__, __rmod__ = of_two("%"), of_two_reflected("%")
    __divmod__, __rdivmod__ = of_two("divmod"), of_two_reflected("divmod")
    __pow__, __rpow__ = of_two("**"), of_two_reflected("**")
    __lshift__, __rlshift__ = of_two("<<"), of_two_reflected("<<")
    __rshift__, __rrshift__ = of_two(">>"), of_two_reflected(">>")
    __and__, __rand__ = of_two("&"), of_two_reflected("&")
    __or__, __ror__ = of_two("|"), of_two_reflected("|")
    __xor__, __rxor__ = of_two("^"), of_two_reflected("^")

    __neg__, __pos__ = of_one("-{}"), of_one("+{}")
    __invert__, __abs__ = of_one("~{}"), of_one("abs({})")

    def __contains__(self, value: object) -> NoReturn:
        refused(f"{type(value).__name__} in {type(self).__name__}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> NoReturn:
        called = "" if method == "__call__" else f".{method}"
        refused(f"numpy.{ufunc.__name__}{called}")
