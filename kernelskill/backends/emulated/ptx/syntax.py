"""The syntax tree of a PTX module."""

from __future__ import annotations

from dataclasses import dataclass, field


class PtxError(Exception):
    """PTX that this parser cannot read.

    Args:
        message: What is wrong.
        line: Line of the PTX text, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"PTX line {line}: {message}")
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Name:
    """A register, special register, variable, function or label."""

    text: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer literal."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point literal as its bits."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`."""

    operand: Name


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`: a destination with a second predicate."""

    first: Name
    second: Name


@dataclass(frozen=True, slots=True)
class Sum:
    """`variable+offset` outside brackets."""

    base: Name
    offset: int


@dataclass(frozen=True, slots=True)
class Place:
    """`[base+offset]`; the base is None for an absolute address."""

    base: Name | None
    offset: int


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)` of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """A bracketed operand of another form, such as a tensor coordinate; only named in refusals."""

    text: str


Operand = Name | Integer | Float | Negated | Pair | Sum | Place | Vector | Group | Opaque


@dataclass(frozen=True, slots=True)
class Location:
    """A source position with the call it was inlined at."""

    file: int
    line: int
    column: int
    inlined_at: Location | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter."""

    name: str
    space: str
    """`reg`, `param`, `local`, `shared`, `global` or `const`."""
    type: str
    """Without the dot: `b32`, `pred`."""
    count: int = 1
    """Elements; 0 for an array without a size."""
    align: int = 0
    is_array: bool = False
    vector: int = 1
    family: int = 0
    """`%r<8>` declares the registers `%r0` to `%r7`: 8."""
    external: bool = False
    initial: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its guard."""

    opcode: tuple[str, ...]
    """Parts between the dots: `("ld", "global", "f32")`."""
    operands: tuple[Operand, ...]
    line: int
    location: Location | None = None
    guard: Name | None = None
    guard_negated: bool = False

    @property
    def text(self) -> str:
        """The opcode as written."""
        return ".".join(self.opcode)


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target."""

    name: str


@dataclass(frozen=True, slots=True)
class BranchTargets:
    """`name: .branchtargets a, b;`."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prototype:
    """`name: .callprototype ...;`: how an indirect call is made."""

    name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """`{ ... }`."""

    statements: tuple[Statement, ...]


Statement = Instruction | Label | BranchTargets | Prototype | Scope | Variable


@dataclass(frozen=True, slots=True)
class Function:
    """An entry or a device function; `body` is None for a declaration."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    body: Scope | None
    line: int
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(slots=True)
class Module:
    """A whole PTX file."""

    version: str = ""
    target: str = ""
    files: dict[int, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
