"""Translate a kernel's module to Python functions that run all invocations at once, as NumPy arrays.

A value that is the same in all invocations is a Python number, any other one an array over invocations;
vectors, structs and local arrays are tuples of them. Each function takes the mask of its active invocations;
None is an empty one.

A comment with `modulo 2^32` or `modulo 32` marks arithmetic that wraps on purpose: of a statement, its
operations and those of functions that it calls; of a field of a uniform block, its values and what sums and
products make of them. `beyond the binding` marks loads in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

from checker.types import (
    BOOL,
    EXCHANGE,
    I32,
    NUMBER,
    U32,
    Pointer,
    Scalar,
    Tuple,
    Type,
    joined,
    kind_of,
    vector,
    wrapping,
    wraps,
    zero,
)
from lark import Lark, Token, Tree

WRAPS, BEYOND = re.compile(r"modulo (2\^)?32\b"), re.compile("beyond the binding")  # in comments
REPEATS = re.compile(r"^// Repeats(?: where `(\w+)`)?: (.*)$", re.MULTILINE)

Node: TypeAlias = Any  # lark's trees and tokens
Typed: TypeAlias = tuple[str, Type]  # Python's expression

COMPARED = {"==", "!=", "<", ">", "<=", ">="}
WORDS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "<<": "shl", ">>": "shr"}
BITWISE = {"&": "and_", "|": "or_", "^": "xor"}
ORDER = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge"}


@cache
def parser() -> Lark:
    """Return the parser of the kernels' WGSL."""
    grammar = Path(__file__).with_name("wgsl.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def children_of(node: Node, kind: str) -> list[Node]:
    """Return the children of a node that are of a kind."""
    return [each for each in node.children if isinstance(each, Tree) and each.data == kind]


@dataclass
class Variable:
    """A variable of the module that is not of one invocation: a buffer, a uniform block, workgroup memory."""

    name: str
    space: str  # "uniform", "storage", "workgroup" or "private"
    type: Type
    element: Type
    binding: int | None


@dataclass
class Module:
    """A translated kernel."""

    code: CodeType
    entry: str  # Python function
    inputs: tuple[Any, ...]  # names of built-in values, nested as the entry point's parameters are
    defaults: dict[str, str]  # expressions of constants and overrides, in order
    variables: list[Variable]
    lines: list[str]  # of the WGSL
    repeats: list[tuple[str, str]]  # constants with which words are written twice, "" for always; the reasons


class Translator:
    """The declarations of a module, and the functions translated so far."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.repeats = REPEATS.findall(text)
        self.types: dict[str, Type] = {"u32": U32, "i32": I32, "bool": BOOL}
        self.constants: dict[str, Type] = {}
        self.defaults: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Node] = {}
        self.builtins: dict[str, tuple[str, ...]] = {}
        self.done: dict[tuple[Any, ...], tuple[str, Type | None]] = {}
        self.sources: list[str] = []
        nodes: list[Node] = parser().parse(text).children
        found = {kind: [node for node in nodes if node.data == kind] for kind in KINDS}
        for node in found["alias"]:
            self.types[str(node.children[0])] = self.type(node.children[1])
        self.structs = {str(node.children[0]): node for node in found["struct"]}
        for name in [*self.structs]:
            self.declare_struct(name)
        for node in [*found["override"], *found["const"]]:
            name, type_, value = node.children
            self.constants[str(name)] = self.type(type_)
            self.defaults[str(name)] = value
        for node in found["global"]:
            self.declare_variable(node)
        for node in found["function"]:
            name = next(str(child) for child in node.children if isinstance(child, Token))
            self.functions[name] = node
        writer = Function(self, [])
        self.defaults = {name: writer.expr(value)[0] for name, value in self.defaults.items()}

    def comment(self, node: Node) -> str:
        """Return the comments of a node: on its lines, and on those before it that are comments alone."""
        first = node.meta.line - 1
        while self.lines[first - 1].lstrip().startswith("//"):
            first -= 1
        return " ".join(line.partition("//")[2] for line in self.lines[first : node.meta.end_line])

    def type(self, node: Node) -> Type:
        """Return the type that is written."""
        name = str(node.children[0])
        if node.data == "named":
            self.declare_struct(name)
            return self.types[name]
        if node.data == "array":
            length = str(node.children[1] or -1)
            written = f"_{length}" if length.isidentifier() else length.rstrip("u")
            return Tuple("array", (self.type(node.children[0]),), length=written)
        outer, inner = re.findall(r"\w+", name)
        return self.types[inner] if outer == "atomic" else vector(int(outer[3:]), self.types[inner])

    def declare_struct(self, name: str) -> None:
        """Add a struct, unless that is done or it is another type."""
        node = self.structs.pop(name, None) if name not in self.types else None
        if node is None:
            return
        _, *members = node.children
        fields, parts, builtins = [], [], []
        for member in filter(None, members):
            *attributes, field_name, type_ = member.children
            fields.append(str(field_name))
            parts.append(wrapping(self.type(type_), bool(WRAPS.search(self.comment(member)))))
            builtins += [str(each.children[1].children[0]) for each in attributes]
        self.types[name] = Tuple(name, tuple(parts), tuple(fields))
        self.builtins[name] = tuple(builtins)

    def declare_variable(self, node: Node) -> None:
        """Add a variable of the module."""
        attributes = children_of(node, "attribute")
        space, _, name, written = node.children[len(attributes) :]
        numbers = {str(each.children[0]): str(each.children[1].children[0]) for each in attributes}
        type_ = self.type(written)
        element = type_.parts[0] if isinstance(type_, Tuple) and type_.name == "array" else type_
        binding = int(numbers["binding"]) if numbers else None
        self.variables[str(name)] = Variable(str(name), str(space), type_, element, binding)

    def call(self, name: str, types: tuple[Type, ...], marks: tuple[bool, bool]) -> tuple[str, Type | None]:
        """Return the Python function for parameters of some types and marks, and the type that it returns."""
        key = name, types, marks
        if key not in self.done:
            node = self.functions[name]
            parameters = children_of(node, "parameter")
            own = f"{name}_{len(self.done)}"
            self.done[key] = own, None  # WGSL has no recursion
            given = [(str(each.children[-2]), type_) for each, type_ in zip(parameters, types, strict=True)]
            function = Function(self, given, wraps=marks[0], beyond=marks[1])
            body, returned = function.translated(node.children[-1])
            arguments = ", ".join(["m0", *(variable for variable, _ in function.parameters)])
            self.sources.append(f"def {own}({arguments}):\n" + "\n".join(body))
            self.done[key] = own, returned
        return self.done[key]

    def module(self, entry_point: str) -> Module:
        """Translate an entry point with all that it calls."""
        node = self.functions[entry_point]
        parameters = children_of(node, "parameter")
        types = tuple(self.type(each.children[-1]) for each in parameters)
        inputs = tuple(
            self.builtins[str(each.children[-1].children[0])]
            if isinstance(type_, Tuple) and type_.fields
            else str(each.children[0].children[1].children[0])
            for each, type_ in zip(parameters, types, strict=True)
        )
        entry, _ = self.call(entry_point, types, (False, False))
        code = compile("\n\n".join(self.sources), f"<{entry_point}>", "exec")
        variables = [*self.variables.values()]
        return Module(code, entry, inputs, self.defaults, variables, self.lines, self.repeats)


KINDS = "struct", "override", "const", "alias", "global", "function"


@dataclass
class Local:
    """A local variable."""

    python: str
    type: Type
    level: int  # of the mask under which it is declared


@dataclass
class Function:
    """The translation of one function for parameters of some types."""

    module: Translator
    given: list[tuple[str, Type]]
    parameters: list[tuple[str, Type]] = field(default_factory=list)
    grown: dict[str, Type] = field(default_factory=dict)  # types of variables that later statements make wrap
    scopes: list[dict[str, Local]] = field(default_factory=list)
    level: int = 0  # of the current mask
    line: int = 0  # of the current statement
    wraps: bool = False  # whether its operations are marked to wrap
    beyond: bool = False  # whether its loads may be outside of a binding

    def translated(self, block: Node) -> tuple[list[str], Type | None]:
        """Return the lines of the Python function's body, and the returned type."""
        while True:  # until no variable's type changes
            before = dict(self.grown)
            self.count, self.level, self.indent = 0, 0, 1
            self.scopes: list[dict[str, Local]] = [{}]
            self.returned: Type | None = None
            self.out = ["    alive, result = True, None"]
            self.parameters = [(self.declare(name, type_).python, type_) for name, type_ in self.given]
            self.block(block)
            self.indent = 1
            self.emit("return result")
            if self.grown == before:
                return self.out, self.returned

    # statements

    @property
    def mask(self) -> str:
        """The Python variable of the current mask."""
        return f"m{self.level}"

    def emit(self, line: str) -> None:
        self.out.append("    " * self.indent + line)

    def declare(self, name: str, type_: Type) -> Local:
        """Add a local variable."""
        python = f"{name}_{self.count}"
        self.count += 1
        local = Local(python, joined(type_, self.grown.get(python, type_)), self.level)
        self.scopes[-1][name] = local
        return local

    def find(self, name: str) -> Local | None:
        """Return a local variable by its name."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    @contextmanager
    def marks_of(self, node: Node) -> Iterator[None]:
        """Set the line and the marks of a statement."""
        comment = self.module.comment(node)
        before, self.line = (self.wraps, self.beyond), node.meta.line
        self.wraps |= bool(WRAPS.search(comment))
        self.beyond |= bool(BEYOND.search(comment))
        yield
        self.wraps, self.beyond = before

    def block(self, node: Node) -> None:
        """Translate a block in the current level."""
        self.scopes.append({})
        indent = self.indent
        self.emit("pass")
        for statement in node.children:
            getattr(self, f"do_{statement.data}")(statement)
            if statement.data == "if" and any(statement.find_data("return")):
                self.emit(f"{self.mask} = both({self.mask}, alive)")
                self.emit(f"if {self.mask} is not None:")
                self.indent += 1
                self.emit("pass")
        self.indent = indent
        self.scopes.pop()

    def do_var(self, node: Node) -> None:
        with self.marks_of(node):
            name, written, value = node.children
            code, type_ = self.expr(value) if value is not None else ("", NUMBER)
            if written is not None:
                type_ = joined(self.module.type(written), type_)
            type_ = I32 if type_ == NUMBER else type_
            self.emit(f"{self.declare(name, type_).python} = {code or zero(type_)}")

    do_let = do_var

    def do_return(self, node: Node) -> None:
        with self.marks_of(node):
            (value,) = node.children
            if value is not None:
                code, type_ = self.expr(value)
                self.returned = type_ if self.returned is None else joined(self.returned, type_)
                self.emit(f"result = merge({self.mask}, {code}, result)")
            self.emit(f"alive = without(alive, {self.mask})")

    def do_call(self, node: Node) -> None:
        with self.marks_of(node):
            self.emit(self.expr(node)[0])

    def do_if(self, node: Node) -> None:
        condition, then, other = node.children
        line = replace_meta(node, condition)
        with self.marks_of(line):
            chosen = f"c{self.count}"
            self.count += 1
            self.emit(f"{chosen} = {self.expr(condition)[0]}")
        for body, code in ((then, chosen), (other, f"not_({chosen})")):
            if body is None:
                continue
            self.emit(f"m{self.level + 1} = both({self.mask}, {code})")
            self.level += 1
            self.emit(f"if {self.mask} is not None:")
            self.indent += 1
            self.block(body) if body.data == "block" else self.block(Tree("block", [body], body.meta))
            self.indent -= 1
            self.level -= 1

    def loop(self, node: Node, first: Node, condition: Node, after: Node, body: Node) -> None:
        """Translate a loop, whose mask loses the invocations that have ended."""
        assert not any(body.find_data("return")), "a loop with a return"
        self.emit(f"m{self.level + 1} = {self.mask}")
        self.level += 1
        self.scopes.append({})
        line = replace_meta(node, condition)
        if first is not None:
            self.do_var(first)
        iterations = f"n{self.count}"
        self.count += 1
        self.emit(f"{iterations} = 0")
        self.emit("while True:")
        self.indent += 1
        with self.marks_of(line):
            self.emit(f"{self.mask} = both({self.mask}, {self.expr(condition)[0]})")
        self.emit(f"if {self.mask} is None: break")
        self.emit(f"{iterations} = iteration({iterations}, {self.mask}, {self.line})")
        self.block(body)
        if after is not None:
            getattr(self, f"do_{after.data}")(after)
        self.indent -= 1
        self.scopes.pop()
        self.level -= 1

    def do_for(self, node: Node) -> None:
        *first, condition, after, body = node.children
        self.loop(node, first[0] if first else None, condition, after, body)

    def do_while(self, node: Node) -> None:
        condition, body = node.children
        self.loop(node, None, condition, None, body)

    def do_step(self, node: Node) -> None:
        with self.marks_of(node):
            place, sign = node.children
            self.assign(place, sign[0], ("1", NUMBER))

    def do_assign(self, node: Node) -> None:
        with self.marks_of(node):
            place, sign, value = node.children
            self.assign(place, sign[:-1], self.expr(value))

    def assign(self, place: Node, operator: str, value: Typed) -> None:
        """Translate an assignment to a variable, a part of one, or an element of a buffer."""
        if operator:
            value = self.binary(operator, self.expr(place), value)
        path: list[Node] = []
        root = place
        while root.data != "name":
            path.insert(0, root)
            root = root.children[0]
        name, mask = str(root.children[0]), self.mask
        buffer = self.module.variables.get(name)
        if self.find(name) is None and buffer is not None and buffer.space != "private":
            index = self.expr(path[0].children[1])[0]
            part = f", part={self.expr(path[1].children[1])[0]}" if path[1:] else ""
            self.emit(f"_{name}.store({index}, {value[0]}, {mask}, {self.line}{part})")
            return
        local = self.find(name) or Local(f"_{name}", buffer.type if buffer else U32, -1)
        if local.level < 0 and f"    global {local.python}" not in self.out:
            self.out.insert(0, f"    global {local.python}")
        owner = f"m{local.level}" if local.level >= 0 else "everyone"
        new = f"into({mask}, {owner}, {value[0]}, {self.expr(place)[0]})"
        for part in reversed(path):
            whole, type_ = self.expr(part.children[0])
            assert isinstance(type_, Tuple)
            number = self.expr(part.children[1])[0] if part.data == "index" else self.position(type_, part)
            new = f"put({whole}, {number}, {new})"
        self.emit(f"{local.python} = {new}")
        if local.level >= 0:
            self.grow(local, path, value[1])

    def grow(self, local: Local, path: Sequence[Node], assigned: Type) -> None:
        """Note that a variable holds numbers that wrap."""

        def within(type_: Type, rest: Sequence[Node]) -> Type:
            if not rest:
                scalar = isinstance(type_, Scalar)
                return wrapping(type_, wraps(assigned)) if scalar else joined(type_, assigned)
            assert isinstance(type_, Tuple)
            if rest[0].data == "index" or not type_.fields:
                return replace(type_, parts=tuple(within(part, rest[1:]) for part in type_.parts))
            number = self.position(type_, rest[0])
            changed = within(type_.parts[number], rest[1:])
            return replace(type_, parts=(*type_.parts[:number], changed, *type_.parts[number + 1 :]))

        local.type = within(local.type, path)
        self.grown[local.python] = joined(self.grown.get(local.python, local.type), local.type)

    # expressions

    def expr(self, node: Node) -> Typed:
        """Translate an expression."""
        return getattr(self, f"of_{node.data}")(node)  # type: ignore[no-any-return]  # found by name

    def of_number(self, node: Node) -> Typed:
        written = str(node.children[0])
        return str(int(written.rstrip("u"), 0)), U32 if written.endswith("u") else NUMBER

    def of_name(self, node: Node) -> Typed:
        name = str(node.children[0])
        local = self.find(name)
        if local is not None:
            return local.python, local.type
        if name in ("true", "false"):
            return name.title(), BOOL
        known = self.module.constants | {each.name: each.type for each in self.module.variables.values()}
        return f"_{name}", known[name]

    def of_and(self, node: Node) -> Typed:
        one, other = (self.expr(child)[0] for child in node.children)
        return f"land({self.mask}, {one}, lambda {self.mask}: {other})", BOOL

    def of_or(self, node: Node) -> Typed:
        one, other = (self.expr(child)[0] for child in node.children)
        return f"lor({self.mask}, {one}, lambda {self.mask}: {other})", BOOL

    def of_binary(self, node: Node) -> Typed:
        one, sign, other = node.children
        return self.binary(str(sign), self.expr(one), self.expr(other))

    def binary(self, sign: str, one: Typed, other: Typed) -> Typed:
        """Translate an operation on two scalars, two vectors, or one of each."""
        (a, left), (b, right) = one, other
        kind = kind_of(right) if kind_of(left) == "number" else kind_of(left)
        shape = left if isinstance(left, Tuple) else right
        free = wraps(left) or wraps(right) or self.wraps
        if sign in COMPARED:
            name, result = ORDER[sign], BOOL
        elif sign in BITWISE:
            name, result = BITWISE[sign], Scalar(kind)
        elif kind == "number":
            return f"({a} {sign} {b})", NUMBER
        else:
            unchecked = free if sign in "+-*" else self.wraps and sign in ("<<", ">>")
            name = f"{WORDS[sign]}_{kind}" + "_wrapping" * unchecked
            result = Scalar(kind, free and sign in "+-*")
        arguments = f"{a}, {b}"
        if sign in WORDS and not name.endswith("_wrapping"):
            arguments += f", {self.mask}, {self.line}"
        if isinstance(shape, Tuple):
            return f"each({name}, {arguments})", vector(len(shape.parts), result)
        if sign in COMPARED or sign in BITWISE:
            return f"({a} {sign} {b})", result
        return f"{name}({arguments})", result

    def of_prefix(self, node: Node) -> Typed:
        sign, operand = node.children
        code, type_ = self.expr(operand)
        if sign == "!":
            return f"not_({code})", type_
        if sign == "-" and type_ == NUMBER:
            return f"(-{code})", NUMBER
        if sign == "-":
            return self.binary("-", ("0", NUMBER), (code, type_))
        return self.binary("^", (code, type_), (str(2**32 - 1), U32))

    def of_address(self, node: Node) -> Typed:
        (place,) = node.children
        name, index = place.children
        return self.expr(index)[0], Pointer(str(name.children[0]))

    def position(self, type_: Tuple, node: Node) -> int:
        """Return the number of a field or component."""
        name = str(node.children[1])
        return type_.fields.index(name) if type_.fields else "xyzw".index(name)

    def of_member_of(self, node: Node) -> Typed:
        code, type_ = self.expr(node.children[0])
        assert isinstance(type_, Tuple)
        name = str(node.children[1])
        if type_.fields or len(name) == 1:
            number = self.position(type_, node)
            return f"{code}[{number}]", type_.parts[number]
        numbers = ", ".join(str("xyzw".index(letter)) for letter in name)
        return f"swizzle({code}, {numbers})", vector(len(name), type_.parts[0])

    def of_index(self, node: Node) -> Typed:
        whole, index = node.children
        number = self.expr(index)[0]
        if whole.data == "name":
            variable = self.module.variables.get(str(whole.children[0]))
            if variable is not None and variable.space in ("storage", "workgroup"):
                beyond = ", beyond=True" * self.beyond
                return f"_{variable.name}.load({number}, {self.mask}, {self.line}{beyond})", variable.element
        code, type_ = self.expr(whole)
        assert isinstance(type_, Tuple)
        if (
            whole.data == "index" and code.startswith("_") and ".load(" in code
        ):  # of a buffer, which loads no other
            one = f"{code.removesuffix(')')}, part={number})"
            return (
                f"({one} if isinstance({number}, int) else pick({code}, {number}, {self.mask}, {self.line}))",
                (type_.parts[0]),
            )
        return f"pick({code}, {number}, {self.mask}, {self.line})", type_.parts[0]

    def of_call(self, node: Node) -> Typed:
        name = str(node.children[0])
        values = [self.expr(child) for child in node.children[1:] if child is not None]
        codes, types = [code for code, _ in values], tuple(type_ for _, type_ in values)
        listed = ", ".join(codes)
        if name in self.module.functions:
            python, returned = self.module.call(name, types, (self.wraps, self.beyond))
            return f"{python}({', '.join([self.mask, *codes])})", returned or BOOL
        declared = self.module.types.get(name)
        if declared is None and re.match("vec[24]", name):
            of = self.module.types["u32"] if "<" in name or not types else types[0]
            declared = vector(int(name[3]), Scalar(kind_of(of) if kind_of(of) != "number" else "u32"))
        if isinstance(declared, Tuple):
            return self.construct(declared, values)
        if declared is not None and not values:
            return zero(declared), declared
        if name in ("u32", "i32") or name.startswith("bitcast"):
            kind = name if name[-1] != ">" else name[8:-1]
            converted = Scalar(kind, wraps(types[0]))
            same = kind_of(types[0]) in (kind, "number")
            return (listed if same else f"{kind}_of_{kind_of(types[0])}({listed})"), converted
        return self.built_in(name, codes, types)

    def built_in(self, name: str, codes: Sequence[str], types: Sequence[Type]) -> Typed:
        """Translate a call of a function of WGSL."""
        listed = ", ".join(codes)
        if name == "workgroupBarrier":
            return f"barrier({self.mask}, {self.line})", BOOL
        if isinstance(types[0], Pointer):
            returned = EXCHANGE if name == "atomicCompareExchangeWeak" else U32
            return f"_{types[0].buffer}.{name}({', '.join([*codes, self.mask, str(self.line)])})", returned
        if name == "select":
            return f"select({listed})", joined(types[0], types[1])
        if name in ("any", "all"):
            return f"{name}_of({listed})", BOOL
        if name in ("extractBits", "insertBits"):
            kind = kind_of(types[0]).replace("number", "i32")
            return f"{name}_{kind}({listed}, {self.mask}, {self.line})", Scalar(kind)
        assert name in ("min", "max", "clamp", "abs"), name
        result = types[0] if kind_of(types[0]) != "number" else types[1]
        if isinstance(result, Tuple):
            return f"each({name}_of, {listed})", vector(len(result.parts), Scalar(kind_of(result)))
        return f"{name}_of({listed})", Scalar(kind_of(result))

    def construct(self, declared: Tuple, values: Sequence[Typed]) -> Typed:
        """Translate a constructor of a vector or a struct."""
        if not values:
            return zero(declared), declared
        if declared.fields:
            types = tuple(map(joined, declared.parts, (type_ for _, type_ in values)))
            return f"({''.join(f'{code}, ' for code, _ in values)})", replace(declared, parts=types)
        size, free = len(declared.parts), any(wraps(type_) for _, type_ in values)
        of = wrapping(declared.parts[0], free)
        if len(values) == 1 and not isinstance(values[0][1], Tuple):
            return f"({values[0][0]},) * {size}", vector(size, of)
        parts = [("*" if isinstance(type_, Tuple) else "") + code for code, type_ in values]
        return f"({''.join(f'{part}, ' for part in parts)})", vector(size, of)


def replace_meta(node: Node, end: Node) -> Node:
    """Return a node with the lines of a statement up to its condition."""
    shown: Node = Tree("lines", [])
    shown.meta.line, shown.meta.end_line, shown.meta.empty = node.meta.line, end.meta.end_line, False
    return shown


@cache
def translated(text: str, entry_point: str) -> Module:
    """Translate a module once."""
    return Translator(text).module(entry_point)
