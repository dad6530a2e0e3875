"""Types of WGSL as the translator sees them: whether numbers wrap is part of a type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True)
class Scalar:
    """A type of numbers or truth values."""

    kind: str  # "u32", "i32", "bool", or "number" for a literal without suffix
    wraps: bool = False  # whether its arithmetic is modulo 2^32


@dataclass(frozen=True)
class Tuple:
    """A vector, a struct, or an array of fixed size."""

    name: str
    parts: tuple[Type, ...]
    fields: tuple[str, ...] = ()  # of a struct
    length: str = ""  # of an array, an expression; it has one part


@dataclass(frozen=True)
class Pointer:
    """A pointer to an element of a buffer."""

    buffer: str


Type: TypeAlias = Scalar | Tuple | Pointer

U32, I32, BOOL, NUMBER = map(Scalar, ("u32", "i32", "bool", "number"))
EXCHANGE = Tuple("exchange", (U32, BOOL), ("old_value", "exchanged"))  # what a compare-exchange returns


def vector(size: int, of: Type) -> Tuple:
    """Return the type of a vector."""
    return Tuple("vector", (of,) * size)


def wrapping(type_: Type, wraps: bool = True) -> Type:
    """Return a type whose numbers wrap, in all parts."""
    if isinstance(type_, Tuple):
        return replace(type_, parts=tuple(wrapping(part, wraps) for part in type_.parts))
    return replace(type_, wraps=type_.wraps or wraps) if isinstance(type_, Scalar) and wraps else type_


def joined(one: Type, other: Type) -> Type:
    """Return a type whose numbers wrap where those of either do."""
    if isinstance(one, Tuple) and isinstance(other, Tuple):
        return replace(one, parts=tuple(map(joined, one.parts, other.parts)))
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return Scalar(other.kind if one.kind == "number" else one.kind, one.wraps or other.wraps)
    return one


def wraps(type_: Type) -> bool:
    """Return whether some number of a type wraps."""
    return any(map(wraps, type_.parts)) if isinstance(type_, Tuple) else getattr(type_, "wraps", False)


def kind_of(type_: Type) -> str:
    """Return the kind of a scalar or of a vector's components."""
    return kind_of(type_.parts[0]) if isinstance(type_, Tuple) else getattr(type_, "kind", "")


def zero(type_: Type) -> str:
    """Return the expression of a type's zero value."""
    if isinstance(type_, Tuple):
        if type_.length:
            return f"({zero(type_.parts[0])},) * ({type_.length})"
        return f"({''.join(f'{zero(part)}, ' for part in type_.parts)})"
    return "False" if kind_of(type_) == "bool" else "0"
