"""What was found in a file with a PyTorch module: its tensors, its sizes, and the launcher that follows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}


class Value(Record):
    """A parameter of the launcher."""

    name: str
    role: Literal["input", "weight", "output", "number", "size"]
    dtype: str
    """Of PyTorch, for example `float32`; of numbers and sizes `int32`, `int64`, `float32` or `bool`."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of a tensor in every case that was run; empty for numbers."""
    origin: str = ""
    """A weight's name in the module."""


class ModuleFacts(Record):
    """A file with a module, as a child process found it."""

    values: tuple[Value, ...]
    """In the order of the launcher's parameters."""
    cases: tuple[dict[str, int], ...]
    """Sizes that are set in every case, the original ones last."""
    derived: tuple[dict[str, int], ...] = ()
    """Numbers that the file computes from them, in every case."""
    extents: dict[str, tuple[str, int]] = Field(default_factory=dict)
    """Lengths that no size of the file explains: a tensor and its axis."""
    notes: tuple[str, ...] = ()


def launcher_signature(symbol: str, facts: ModuleFacts) -> str:
    """Return the launcher's declaration without a semicolon.

    Raises:
        TaskError: A tensor has a type that no launcher takes.
    """
    parameters = ", ".join(f"{kind} {name}" for name, kind in parameter_types(facts))
    return f'extern "C" void {symbol}({parameters})'


def parameter_types(facts: ModuleFacts) -> tuple[tuple[str, str], ...]:
    """Return name and C type of every parameter.

    Raises:
        TaskError: A tensor has a type that no launcher takes.
    """
    return tuple((value.name, _c_type(value)) for value in facts.values)


def headers(facts: ModuleFacts) -> tuple[str, ...]:
    """Return the headers of CUDA that the signature needs."""
    return tuple(dict.fromkeys(_HEADERS[v.dtype] for v in facts.values if v.dtype in _HEADERS))


def described_shape(value: Value, facts: ModuleFacts) -> str:
    """Return a tensor's shape in terms of the sizes where they explain it, for example `[N, 3]`."""
    if not value.shapes:
        return ""
    return f"[{', '.join(_extent(value, axis, facts) for axis in range(len(value.shapes[0])))}]"


def size_rows(facts: ModuleFacts) -> dict[str, tuple[int, ...]]:
    """Return every size by name with its value in each case."""
    rows: dict[str, tuple[int, ...]] = {}
    for cases in (facts.cases, facts.derived):
        for name in cases[0] if cases else ():
            rows[name] = tuple(case[name] for case in cases)
    shapes = {value.name: value.shapes for value in facts.values}
    for name, (tensor, axis) in facts.extents.items():
        rows[name] = tuple(shape[axis] for shape in shapes[tensor])
    return rows


def _extent(value: Value, axis: int, facts: ModuleFacts) -> str:
    seen = [shape[axis] for shape in value.shapes]
    if len(set(seen)) == 1:
        return str(seen[0])
    for name, lengths in size_rows(facts).items():
        if list(lengths[: len(seen)]) == seen:
            return name
    return " or ".join(str(extent) for extent in dict.fromkeys(seen))


def _c_type(value: Value) -> str:
    if value.dtype not in C_TYPES:
        what = f"{value.role} {value.name!r}"
        raise TaskError(
            f"{what} has type {value.dtype}, which no launcher takes",
            remedy=f"types are {', '.join(C_TYPES)}",
        )
    kind = C_TYPES[value.dtype]
    if value.role in ("number", "size"):
        return kind
    return f"{kind}*" if value.role == "output" else f"const {kind}*"
