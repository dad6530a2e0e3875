"""Errors of operators, attributes and NumPy names that tensors do not have: each gives a remedy."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from wgslice.docstrings import documented
from wgslice.errors import ComputationRefused, fitted

REMEDY = (
    "tensors are moved, and nothing is computed on them: compute with x.numpy(), or with np.asarray(a) for "
    "an xarray or Dask array a of tensors, or pass x to a library that supports DLPack, as "
    "torch.from_dlpack(x)"
)

XP = "import wgslice.array_api as xp; "

# Replacements, for a tensor x, of NumPy functions and attributes that compute nothing. Other names are
# NumPy's parameters.
INSTEAD = {
    "arange": "wg.arange(stop, device=x.device)",
    "__array_interface__": "x.numpy()  # as in PIL.Image.fromarray(x.numpy())",
    "array": "wg.asarray(array)",
    "array2string": "np.array2string(x.numpy())",
    "array_repr": "np.array_repr(x.numpy())",
    "array_str": "np.array_str(x.numpy())",
    "asfortranarray": 'x.copy("F")',
    "astype": "x.astype(dtype)",
    "byteswap": "wg.asarray(x.numpy().byteswap())",
    "can_cast": "np.can_cast(x.dtype, dtype)",
    "common_type": "np.common_type(np.empty(0, x.dtype), np.empty(0, y.dtype))",
    "compress": "np.compress(condition, x, axis)",
    "concatenate": "wg.concat((x, y), axis)",
    "ctypes": "x.numpy().ctypes",
    "data": "x.buffer",
    "dump": "pickle.dump(x, file)",
    "dumps": "pickle.dumps(x)",
    "eye": f"{XP}xp.eye(n)",
    "fftshift": "np.fft.fftshift(x, axes)",
    "fromfunction": "wg.asarray(np.fromfunction(function, shape))",
    "frombuffer": "wg.asarray(np.frombuffer(buffer, dtype))",
    "fromfile": "wg.asarray(np.fromfile(file, dtype))",
    "fromiter": "wg.asarray(np.fromiter(iterable, dtype))",
    "fromstring": "wg.asarray(np.fromstring(string, dtype, sep=sep))",
    "genfromtxt": "wg.asarray(np.genfromtxt(file))",
    "getfield": "x.view(dtype)  # of the same width",
    "identity": f"{XP}xp.eye(n)",
    "ifftshift": "np.fft.ifftshift(x, axes)",
    "iscomplexobj": 'x.dtype.kind == "c"',
    "isrealobj": 'x.dtype.kind != "c"',
    "load": "wg.asarray(np.load(file))",
    "loadtxt": "wg.asarray(np.loadtxt(file))",
    "matrix_transpose": "x.mT",
    "min_scalar_type": "x.dtype",
    "ndarray": "wg.Tensor",
    "require": "wg.asarray(array, dtype=dtype)",
    "resize": "np.resize(x, shape)",
    "result_type": "np.result_type(x.dtype, y.dtype)",
    "setfield": "x.view(dtype)[...] = value  # of the same width",
    "setflags": "wg.broadcast_to(x, x.shape)  # read-only; x.copy() can be written",
    "sliding_window_view": "np.lib.stride_tricks.sliding_window_view(x, window_shape, axis)",
    "tobytes": "x.numpy().tobytes()",
    "tofile": "x.numpy().tofile(file)",
    "tostring": "x.numpy().tobytes()",
    "transpose": "x.transpose(axes)",
    "tri": "wg.asarray(np.tri(n))",
}

# Replacements of PyTorch's and CuPy's names for what tensors have by another name.
INSTEAD |= {
    "as_tensor": "wg.asarray(array)",
    "asnumpy": "x.numpy()",
    "cat": "wg.concat((x, y), axis)",
    "chunk": "np.array_split(x, sections, axis)",
    "clone": "x.copy()",
    "contiguous": "x.copy()",
    "cpu": "x.numpy()",
    "cuda": "x.to_device(device)",
    "devices": "wg.adapters()  # and x.device",
    "dim": "x.ndim",
    "expand": "wg.broadcast_to(x, shape)",
    "flip": "wg.flip(x, axis)",
    "from_numpy": "wg.asarray(array)",
    "gather": "np.take_along_axis(x, indices, axis)",
    "get": "x.numpy()",
    "index_select": "x.take(indices, axis)",
    "is_contiguous": "x.is_packed",
    "movedim": "wg.moveaxis(x, source, destination)",
    "narrow": "x[start : start + length]",
    "numel": "x.size",
    "permute": "wg.permute(x, *order)",
    "roll": "wg.roll(x, shift, axis)",
    "split": "wg.split(x, indices_or_sections, axis)",
    "t": "x.T",
    "tensor": "wg.asarray(array)",
    "tile": "wg.tile(x, repetitions)",
    "to": "x.to_device(device)  # or x.numpy(), in host memory",
    "to_numpy": "x.numpy()",
    "unbind": "tuple(x)",
    "unsqueeze": "np.expand_dims(x, axis)",
}


def remedy_of(name: str) -> str:
    """Return the remedy for an absent NumPy function or attribute."""
    return f"not available for tensors; use instead: {INSTEAD[name]}" if name in INSTEAD else REMEDY


def refused(operation: str) -> NoReturn:
    """Raise the error of an operation with its remedy; a ComputationRefused if the operation computes."""
    name = operation.rpartition(".")[-1]
    kind = NotImplementedError if name in INSTEAD else ComputationRefused
    raise kind(f"{operation}: {remedy_of(name)}")


ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


def is_computable(value: object) -> bool:
    """Whether a value is a number or array-like, so that arithmetic with it may be expected."""
    return isinstance(value, Number | np.generic | list | tuple) or any(
        hasattr(type(value), protocol) for protocol in ARRAY_PROTOCOLS
    )


def refusing(expression: str) -> Callable[..., Any]:
    """Return an operator that raises with an expression; it is not implemented for other operands."""

    def refuse(*operands: object) -> Any:
        if all(map(is_computable, operands[1:])):
            refused(expression.format(*(type(each).__name__ for each in operands)))
        return NotImplemented

    return refuse


def of_two(symbol: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return an operator for a tensor as the left operand, and one for a tensor as the right operand."""
    return refusing(f"{{0}} {symbol} {{1}}"), refusing(f"{{1}} {symbol} {{0}}")


class AbsentComputation(AttributeError, ComputationRefused):  # noqa: N818 -- says what happened
    """A tensor lacks an attribute that computes in NumPy; an AttributeError, so that `hasattr` is False."""


class Uncomputed:
    """Base class that refuses operators, absent attributes and deletion, and hashes by identity."""

    __slots__ = ()

    __hash__ = object.__hash__

    __eq__ = of_two("==")[0]
    __ne__ = of_two("!=")[0]
    __lt__, __gt__ = of_two("<")[0], of_two(">")[0]
    __le__, __ge__ = of_two("<=")[0], of_two(">=")[0]

    __add__, __radd__ = of_two("+")
    __sub__, __rsub__ = of_two("-")
    __mul__, __rmul__ = of_two("*")
    __matmul__, __rmatmul__ = of_two("@")
    __truediv__, __rtruediv__ = of_two("/")
    __floordiv__, __rfloordiv__ = of_two("//")
    __mod__, __rmod__ = of_two("%")
    __divmod__, __rdivmod__ = of_two("divmod")
    __pow__, __rpow__ = of_two("**")
    __lshift__, __rlshift__ = of_two("<<")
    __rshift__, __rrshift__ = of_two(">>")
    __and__, __rand__ = of_two("&")
    __or__, __ror__ = of_two("|")
    __xor__, __rxor__ = of_two("^")

    __neg__, __pos__ = refusing("-{}"), refusing("+{}")
    __invert__, __abs__ = refusing("~{}"), refusing("abs({})")

    def __contains__(self, value: object) -> NoReturn:
        refused(f"{type(value).__name__} in {type(self).__name__}")

    @documented(("NoReturn", "Nothing."), ("ComputationRefused", "Always."))
    @fitted("x.numpy().all() computes it")
    def all(self) -> NoReturn:
        """Refuse to compute; `zarr.save` takes only arrays that have the method, and never calls it."""
        refused("all")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Refuse; but no integer is NaN or infinite, which Dask asks before it assigns a tensor."""
        called = "" if method == "__call__" else f".{method}"
        if ufunc in (np.isnan, np.isinf) and not called and not options:
            (x,) = cast("Any", inputs)
            if x.dtype.kind in "biu":
                return np.broadcast_to(np.False_, x.shape)
        refused(f"numpy.{ufunc.__name__}{called}")

    def __delitem__(self, key: Any) -> NoReturn:
        raise ValueError("cannot delete elements of a tensor: np.delete(x, indices, axis) copies the others")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "flat":
            cast("Any", self).flat[...] = value
            return
        raise AttributeError(
            f"a tensor's attributes cannot be set ({name}): x[...] = value writes elements, x.reshape(shape) "
            "and x.view(dtype) return other views"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a tensor's attributes cannot be deleted ({name})")

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the remedy if other libraries' arrays have the attribute."""
            known = name in INSTEAD or (hasattr(np.ndarray, name) and not name.startswith("_"))
            kind = AbsentComputation if known and name not in INSTEAD else AttributeError
            remedy = f": {remedy_of(name)}" if known else ""
            raise kind(f"'Tensor' object has no attribute {name!r}{remedy}", name=name, obj=self)
