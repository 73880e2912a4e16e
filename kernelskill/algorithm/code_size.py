"""How much code a schedule writes out: long functions in many points at once take the compiler minutes."""

from __future__ import annotations

from math import prod

from kernelskill.algorithm.expression import Call, walk
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.schedule import Schedule

MOST_WRITTEN_OUT = 16
"""Long functions in the points of one thread; tiles multiply them by their steps."""
_LONG = frozenset(
    [
        "pow",
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "sincos",
        "sinpi",
        "cospi",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
        "erfinv",
        "tgamma",
        "lgamma",
        "cbrt",
        "hypot",
        "fmod",
        "remainder",
        "normcdf",
        "j0",
        "j1",
        "y0",
        "y1",
    ]
)
"""In double precision each is a hundred instructions and more, in line."""
_LONG_IN_FLOAT = frozenset(
    [
        "pow",
        "sin",
        "cos",
        "tan",
        "sincos",
        "tgamma",
        "lgamma",
        "erfc",
        "erfinv",
        "fmod",
        "remainder",
        "normcdf",
    ]
)
_FLOAT_WEIGHT = 0.5


def require_short(algorithm: Algorithm, schedule: Schedule) -> None:
    """Refuse a schedule that writes a long function out too often.

    Raises:
        IllegalMove: It does; the reason names the function.
    """
    points = prod(plan.points for plan in schedule.axes)
    if points == 1:
        return
    calls = {n for e in algorithm.expressions for n in walk(e) if isinstance(n, Call)}
    long = sorted({call.function for call in calls if _weight(call)})
    if points * sum(map(_weight, calls)) > MOST_WRITTEN_OUT:
        raise IllegalMove(
            f"{', '.join(long)} would be written out for each of {points} points: replace such long functions first"
        )


def _weight(call: Call) -> float:
    name = call.function.removeprefix("std::").removeprefix("::")
    bare = name[:-1] if name.endswith("f") and name[:-1] in _LONG else name
    if call.kind == "double":
        return float(bare in _LONG)
    return _FLOAT_WEIGHT if bare in _LONG_IN_FLOAT else 0.0
