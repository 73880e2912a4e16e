"""Literals and named constants of C as numbers."""

from __future__ import annotations

import numpy as np

from kernelskill.algorithm.interpreting.values import InterpretError, Value, dtype_of

_NAMED = {
    "INFINITY": np.inf,
    "HUGE_VAL": np.inf,
    "HUGE_VALF": np.inf,
    "CUDART_INF": np.inf,
    "CUDART_INF_F": np.inf,
    "NAN": np.nan,
    "CUDART_NAN": np.nan,
    "CUDART_NAN_F": np.nan,
    "FLT_MAX": float(np.finfo(np.float32).max),
    "FLT_MIN": float(np.finfo(np.float32).tiny),
    "FLT_EPSILON": float(np.finfo(np.float32).eps),
    "DBL_MAX": float(np.finfo(np.float64).max),
    "DBL_MIN": float(np.finfo(np.float64).tiny),
    "DBL_EPSILON": float(np.finfo(np.float64).eps),
    "M_PI": np.pi,
    "CUDART_PI": np.pi,
    "CUDART_PI_F": float(np.float32(np.pi)),
    "M_E": np.e,
    "M_LOG2E": 1 / np.log(2),
    "M_SQRT2": float(np.sqrt(2)),
    "M_SQRT1_2": float(np.sqrt(0.5)),
    "M_PI_2": np.pi / 2,
    "M_2_SQRTPI": float(2 / np.sqrt(np.pi)),
    "M_LN2": float(np.log(2)),
}


def literal(text: str, kind: str) -> Value:
    """Return a literal such as `0.5f`, `-INFINITY` or `0x1p-3` in its type.

    Raises:
        InterpretError: The text is neither a number nor a constant that is known here.
    """
    stripped = text.strip().replace("'", "")
    negative = stripped.startswith("-")
    plain = stripped.lstrip("+-").strip("() ")
    value = _NAMED.get(plain)
    if value is None:
        value = _number(plain)
    if value is None:
        raise InterpretError(f"no value for the constant {text!r}")
    return np.asarray(-value if negative else value).astype(dtype_of(kind))


def _number(text: str) -> float | None:
    hexadecimal = text.lower().startswith("0x")
    digits = text.rstrip("lL") if hexadecimal and "p" not in text.lower() else text.rstrip("fFlL")
    try:
        return float.fromhex(digits) if hexadecimal else float(digits)
    except ValueError:
        return None
