"""Task, Case, Signature: what to speed up, at which sizes, with what promised."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import model_validator

from kernelskill.schema.base import Record


class ElementType(Record):
    """A scalar or vector type of C, as the compiler sees it."""

    name: str
    """Canonical C name, for example `float`, `unsigned int`, `__half`, `float4`, `void`."""
    dtype: str
    """NumPy (or `ml_dtypes`) name of one lane: `float32`, `bfloat16`, `uint8`; `uint8` for `void`."""
    lanes: int = 1
    """Lanes of a vector type: 4 for `float4`; an array of it has a last axis of 4."""
    size_bytes: int
    """Size of the whole element; 1 for `void`."""

    @property
    def is_float(self) -> bool:
        """Whether one lane is a floating-point number."""
        return "float" in self.dtype or "complex" in self.dtype


class Parameter(Record):
    """One parameter of the launcher."""

    name: str
    kind: Literal["pointer", "scalar", "stream"]
    element: ElementType | None
    """Pointee of a pointer, type of a scalar, None for a stream."""
    is_const: bool = False
    """Whether a pointer's target is const."""
    is_restrict: bool = False
    """Whether no other pointer may overlap with it, by its declaration or that of a kernel it is handed to."""
    declared: str = ""
    """The type as the compiler spells it."""


class Signature(Record):
    """The frozen C signature of the launcher."""

    symbol: str
    """Name as written in the source."""
    parameters: tuple[Parameter, ...]
    returns: Literal["void", "int", "cudaError_t"] = "void"
    c_linkage: bool = True
    """False for a C++ function, which gets a shim."""

    @property
    def pointers(self) -> tuple[Parameter, ...]:
        """The pointer parameters in order."""
        return tuple(p for p in self.parameters if p.kind == "pointer")

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of that name.

        Raises:
            KeyError: There is none.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)


class Role(StrEnum):
    """What a pointer parameter is to the test."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    SCRATCH = "scratch"


class Promise(StrEnum):
    """What the user vouches for; anything absent may not be assumed by a rewrite."""

    ALIGNED16 = "aligned16"
    """Every pointer is aligned to 16 bytes."""
    NO_ALIAS = "no_alias"
    """No two pointers overlap."""
    FIXED_SHAPES = "fixed_shapes"
    """Only the sizes in CASES occur."""
    INT32_SIZES = "int32_sizes"
    """Every index and product of sizes fits 32 bits."""


class Allowance(StrEnum):
    """What a rewrite may do beyond exact arithmetic on plain CUDA."""

    LIBRARIES = "libraries"
    FAST_MATH = "fast_math"
    LOWER_PRECISION = "lower_precision"
    REORDER = "reorder"
    """Floating-point sums may be reordered; on unless `--keep-exact`."""


class Tolerance(Record):
    """|got - expected| <= atol + rtol * |expected| for every element."""

    rtol: float
    atol: float
    scaled: bool = False
    """Whether `atol` is in units of the root mean square of the expected values; so are the defaults."""


class Cost(Record):
    """The user's count of the least work of one case, for the roofline only."""

    bytes: float | None = None
    flops: float | None = None


class Case(Record):
    """One concrete call: the keyword arguments of `make_inputs`."""

    index: int
    arguments: dict[str, Any]
    """JSON values."""
    timed: bool = False
    weight: float = 1.0
    cost: Cost | None = None

    @property
    def label(self) -> str:
        """For example `n=1000`."""
        return ", ".join(f"{name}={value}" for name, value in self.arguments.items()) or "default"


class Task(Record):
    """All facts about what to speed up. The values live in the test process, never here."""

    name: str
    signature: Signature
    cases: tuple[Case, ...]
    roles: dict[str, Role]
    """Pointer parameter name to role."""
    tolerances: dict[str, Tolerance]
    """Output name to tolerance; empty where `custom_check` is true."""
    custom_check: bool = False
    """Whether test.py has its own `check(outputs, expected, case)`."""
    flags: tuple[str, ...] = ()
    """Compiler flags of the user's, for both sides."""
    allow: frozenset[Allowance] = frozenset({Allowance.REORDER})
    promise: frozenset[Promise] = frozenset()
    insensitive: bool = False
    """The reference is known not to depend on the seed."""
    has_baseline: bool = False
    original: str
    """Digest of the original candidate."""
    tests: str
    """Digest over test.py and the files beside it that it may load."""
    generated_launcher: bool = False
    """Whether the launcher was generated for a bare kernel."""

    @model_validator(mode="after")
    def _check(self) -> Task:
        if not self.cases:
            raise ValueError("a task needs at least one case")
        if not any(case.timed for case in self.cases):
            raise ValueError("a task needs at least one timed case")
        return self

    @property
    def timed_cases(self) -> tuple[Case, ...]:
        """The cases to make fast."""
        return tuple(case for case in self.cases if case.timed)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the pointers that are compared, in signature order."""
        compared = (Role.OUTPUT, Role.INOUT)
        return tuple(p.name for p in self.signature.pointers if self.roles[p.name] in compared)
