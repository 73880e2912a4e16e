"""What a test.py declares, as records. Reads no values of arrays."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.base import Record
from kernelskill.schema.task import Allowance, Case, Promise, Tolerance

FUNCTIONS = ("make_inputs", "reference", "check", "launch", "cost", "baseline")
CONSTANTS = (
    "KERNEL",
    "CASES",
    "TOLERANCE",
    "INOUT",
    "SCRATCH",
    "FLAGS",
    "ALLOW",
    "PROMISE",
    "INSENSITIVE",
)


class TestDescription(Record):
    """Everything that test.py declares besides the functions' results."""

    __test__ = False

    kernel: str | None
    """Launcher or bare kernel; may hold template arguments, such as `scale<float, 4>`."""
    cases: tuple[Case, ...]
    functions: tuple[str, ...]
    """Which of the known functions it defines."""
    tolerance: Tolerance | None = None
    """For every floating-point output that has none of its own."""
    output_tolerances: Mapping[str, Tolerance] = {}
    inout: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    allow: frozenset[Allowance] = frozenset()
    promise: frozenset[Promise] = frozenset()
    insensitive: bool = False
    warnings: tuple[str, ...] = ()


class Configuration(Record):
    """The launch configuration of a bare kernel in one case."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0
    """Dynamic shared memory in bytes."""


class BaselineTiming(Record):
    """How long the user's own baseline takes on the GPU of this process."""

    library: str
    call: str = ""
    """What it calls, as its docstring says."""
    samples_ms: tuple[float, ...]
    median_ms: float
    disagreement: str = ""
    """How its results differ from the reference in the small cases; empty where they do not."""
