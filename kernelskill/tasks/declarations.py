"""Check the constants of a test.py and turn them into records. Runs in the test process."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.schema.task import Allowance, Case, Cost, Promise, Tolerance
from kernelskill.tasks.description import CONSTANTS, FUNCTIONS, Configuration, TestDescription
from kernelskill.tasks.spelling import listed, nearest, suggestion

Choice = TypeVar("Choice", bound=StrEnum)
Values = Mapping[str, Any]


def describe(names: Values, cost: Callable[[int], Cost | None]) -> TestDescription:
    """Return what the names of a test.py declare.

    Args:
        names: The module's names.
        cost: Evaluates the user's cost function for the case of this index.

    Raises:
        TaskError: A constant cannot be used, or a function that is needed is missing.
    """
    _require_functions(names)
    kernel = names.get("KERNEL")
    if kernel is not None and not (isinstance(kernel, str) and kernel.strip()):
        raise TaskError(f"KERNEL is {kernel!r}, not a name", remedy='write KERNEL = "name"')
    whole, single = _tolerances(names.get("TOLERANCE"))
    scratch = names.get("SCRATCH", ())
    return TestDescription(
        kernel=kernel.strip() if kernel else None,
        cases=_cases(names, cost),
        functions=tuple(name for name in FUNCTIONS if callable(names.get(name))),
        tolerance=whole,
        output_tolerances=single,
        inout=_strings("INOUT", names.get("INOUT", ())),
        scratch=tuple(scratch) if isinstance(scratch, Mapping) else _strings("SCRATCH", scratch),
        flags=_strings("FLAGS", names.get("FLAGS", ()), ordered=True),
        allow=frozenset(_choices("ALLOW", names.get("ALLOW", ()), Allowance)),
        promise=frozenset(_choices("PROMISE", names.get("PROMISE", ()), Promise)),
        insensitive=bool(names.get("INSENSITIVE", False)),
        warnings=_warnings(names),
    )


def arguments_of(case: Any) -> dict[str, Any]:
    """Return a case's arguments: all but `time` and `weight`."""
    return {name: value for name, value in case.items() if name not in ("time", "weight")}


def choices(source: str, values: Iterable[str], kind: type[Choice]) -> tuple[Choice, ...]:
    """Return values as members of a closed set.

    Raises:
        TaskError: One is not of the set; the nearest is named.
    """
    return _choices(source, values, kind)


def cost_of(given: Any) -> Cost:
    """Return the record of what the user's cost function returned.

    Raises:
        TaskError: It is no dict of `bytes` and `flops`.
    """
    known = ("bytes", "flops")
    if not isinstance(given, Mapping) or not given:
        raise TaskError("cost returned no dict", remedy="return dict(bytes=..., flops=...)")
    for name, value in given.items():
        if name not in known:
            raise TaskError(
                f"cost returned {name!r}{suggestion(str(name), known)}", remedy="use bytes and flops"
            )
        if not _is_number(value) or value < 0:
            raise TaskError(f"cost returned {name} = {value!r}, not a number of {name}")
    return Cost(**{name: float(value) for name, value in given.items()})


def configuration_of(given: Any) -> Configuration:
    """Return the record of what the user's launch function returned.

    Raises:
        TaskError: It is no dict of `grid`, `block` and `shared`, or a size cannot be launched.
    """
    known = ("grid", "block", "shared")
    if not isinstance(given, Mapping):
        raise TaskError("launch returned no dict", remedy="return dict(grid=..., block=..., shared=0)")
    for name in given:
        if name not in known:
            raise TaskError(
                f"launch returned the unknown entry {name!r}{suggestion(str(name), known)}",
                remedy="return dict(grid=..., block=..., shared=0)",
            )
    for name in ("grid", "block"):
        if name not in given:
            raise TaskError(f"launch returned no {name}", remedy="return dict(grid=..., block=...)")
    return Configuration(
        grid=_extent("grid", given["grid"]),
        block=_extent("block", given["block"]),
        shared=_whole("shared", given.get("shared", 0), 0),
    )


def _require_functions(names: Values) -> None:
    functions = [name for name, value in names.items() if callable(value)]
    for name, draft in (
        ("make_inputs", "def make_inputs(rng, n): return {...}"),
        ("reference", "def reference(x, n): return {...}"),
    ):
        if name not in names:
            hint = suggestion(name, [f for f in functions if f not in FUNCTIONS])
            raise TaskError(f"test.py defines no {name}{hint}", remedy=f"add {draft!r}")
    for name in FUNCTIONS:
        if name in names and not callable(names[name]):
            raise TaskError(f"{name} is {type(names[name]).__name__}, not a function")


def _cases(names: Values, cost: Callable[[int], Cost | None]) -> tuple[Case, ...]:
    given = names.get("CASES")
    if given is None:
        hint = suggestion("CASES", [n for n in names if n.isupper() and n not in CONSTANTS])
        raise TaskError(
            f"test.py defines no CASES{hint}", remedy="add CASES = [dict(n=1), dict(n=1 << 20, time=True)]"
        )
    if not isinstance(given, (list, tuple)) or not all(isinstance(case, Mapping) for case in given):
        raise TaskError("CASES is not a list of dicts", remedy="write CASES = [dict(n=1), dict(n=1000)]")
    if not given:
        raise TaskError("CASES is empty", remedy="add at least one case, such as dict(n=1000)")
    timed = [bool(case.get("time", False)) for case in given]
    if not any(timed):
        timed[-1] = True
    return tuple(
        Case(
            index=index,
            arguments={str(name): _plain(index, name, value) for name, value in arguments_of(case).items()},
            timed=timed[index],
            weight=_weight(index, case.get("weight", 1.0)),
            cost=cost(index),
        )
        for index, case in enumerate(given)
    )


def _plain(index: int, name: Any, value: Any) -> Any:
    """Return a case's argument as JSON values."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(index, name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(index, name, item) for key, item in value.items()}
    raise TaskError(
        f"CASES[{index}]: {name} is {type(value).__name__}, not a plain value",
        remedy="use numbers, strings and lists in CASES; make arrays in make_inputs",
    )


def _weight(index: int, value: Any) -> float:
    if not _is_number(value) or value <= 0:
        raise TaskError(f"CASES[{index}]: weight is {value!r}, not a positive number")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def _tolerances(given: Any) -> tuple[Tolerance | None, dict[str, Tolerance]]:
    if given is None:
        return None, {}
    if not isinstance(given, Mapping):
        raise TaskError(f"TOLERANCE is {given!r}", remedy="write TOLERANCE = dict(rtol=1e-4, atol=1e-5)")
    whole = {name: value for name, value in given.items() if not isinstance(value, Mapping)}
    single = {str(name): value for name, value in given.items() if isinstance(value, Mapping)}
    return (
        _tolerance("TOLERANCE", whole) if whole else None,
        {name: _tolerance(f"TOLERANCE[{name!r}]", value) for name, value in single.items()},
    )


def _tolerance(source: str, given: Mapping[Any, Any]) -> Tolerance:
    known = ("rtol", "atol")
    for name, value in given.items():
        if name not in known:
            raise TaskError(
                f"{source} has {name!r}{suggestion(str(name), known)}", remedy="use dict(rtol=..., atol=...)"
            )
        if not _is_number(value) or value < 0:
            raise TaskError(f"{source}: {name} is {value!r}, not a number of at least 0")
    if not given:
        raise TaskError(f"{source} is empty", remedy="use dict(rtol=..., atol=...)")
    return Tolerance(rtol=float(given.get("rtol", 0.0)), atol=float(given.get("atol", 0.0)))


def _strings(source: str, given: Any, *, ordered: bool = False) -> tuple[str, ...]:
    if isinstance(given, str):
        given = given.split() if ordered else [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise TaskError(f"{source} is {given!r}, not a list of strings")
    values = list(given)
    wrong = [value for value in values if not isinstance(value, str)]
    if wrong:
        raise TaskError(f"{source} holds {wrong[0]!r}, not a string")
    return tuple(values) if ordered else tuple(sorted(values))


def _choices(source: str, given: Any, kind: type[Choice]) -> tuple[Choice, ...]:
    found = []
    known = [member.value for member in kind]
    for name in _strings(source, given):
        if name not in known:
            raise TaskError(
                f"{source} holds {name!r}{suggestion(name, known)}", remedy=f"it may hold {listed(known)}"
            )
        found.append(kind(name))
    return tuple(found)


def _extent(name: str, given: Any) -> tuple[int, int, int]:
    sizes = list(given) if isinstance(given, (list, tuple)) else [given]
    if not 1 <= len(sizes) <= 3:
        raise TaskError(f"launch returned {name} = {given!r}", remedy="use a number or up to three")
    whole = [_whole(name, size, 1) for size in sizes]
    return (*whole, *[1] * (3 - len(whole)))  # type: ignore[return-value]


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not _is_number(value) or value != int(value) or value < least:
        raise TaskError(
            f"launch returned {name} = {value!r}, not a whole number of at least {least}",
            remedy="divide with // and round up, such as (n + 255) // 256",
        )
    return int(value)


def _warnings(names: Values) -> tuple[str, ...]:
    """Warn about a constant or function that is nearly one of ours."""
    found = []
    for name, value in names.items():
        if name.startswith("_") or name in CONSTANTS or name in FUNCTIONS:
            continue
        close = None
        if re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            close = nearest(name, CONSTANTS, 0.75)
        elif isinstance(value, types.FunctionType):
            close = nearest(name, [word for word in FUNCTIONS if word not in names], 0.8)
        if close:
            found.append(f"test.py: {name} means nothing to kernelskill; did you mean {close}?")
    return tuple(found)
