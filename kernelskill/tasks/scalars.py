"""Convert Python values to C scalars with a range check. Rounds nothing silently but float literals."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.schema.task import Parameter
from kernelskill.tasks.dtypes import dtype_of, is_complex, is_floating

Scalar = int | float | bool | str


def convert_scalar(parameter: Parameter, value: Any) -> Scalar:
    """Return `value` as the parameter's C type, in a form that JSON carries.

    Half, bfloat16, complex and vector scalars become `hex:` and their little-endian bytes.

    Raises:
        TaskError: The value is not a number of that type.
    """
    element = parameter.element
    if element is None:
        raise TaskError(f"parameter {parameter.name!r} takes no value")
    dtype = dtype_of(element.dtype)
    plain = _plain(value)
    if element.lanes > 1 or is_complex(dtype):
        return _lanes(parameter, plain, dtype, element.lanes)
    if element.size_bytes != dtype.itemsize:
        return _bytes(parameter, value, element.size_bytes)
    if isinstance(plain, str) and len(plain) == 1 and dtype.itemsize == 1:
        plain = ord(plain)
    if isinstance(plain, complex) or not isinstance(plain, (bool, int, float)):
        raise _wrong(parameter, value, "is not a number")
    if dtype.kind == "b":
        return _bool(parameter, plain)
    if dtype.kind in "iu":
        return _integer(parameter, plain, dtype)
    return _floating(parameter, plain, dtype)


def _plain(value: Any) -> Any:
    """Return NumPy's scalars and 0-d arrays, and other libraries' one-element tensors, as Python values."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if isinstance(value, np.generic) and value.dtype.kind == "V" and is_floating(value.dtype):
            return float(value)
        return value.item() if isinstance(value, np.generic) else value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def _wrong(parameter: Parameter, value: Any, fact: str) -> TaskError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return TaskError(
        f"{parameter.name} = {shown} {fact}; the launcher's {parameter.name} is {parameter.declared}",
        remedy=f"give a value that fits {parameter.declared}",
    )


def _bool(parameter: Parameter, value: bool | int | float) -> bool:
    if value not in (0, 1):
        raise _wrong(parameter, value, "is neither True nor False")
    return bool(value)


def _integer(parameter: Parameter, value: bool | int | float, dtype: np.dtype[Any]) -> int:
    if isinstance(value, float):
        if not value.is_integer():
            raise _wrong(parameter, value, "is not a whole number")
        value = int(value)
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise _wrong(parameter, value, f"is outside {limits.min} .. {limits.max}")
    return int(value)


def _floating(parameter: Parameter, value: bool | int | float, dtype: np.dtype[Any]) -> float | str:
    try:
        number = float(value)
    except OverflowError:
        raise _wrong(parameter, value, f"is outside the range of {dtype.name}") from None
    with np.errstate(over="ignore"):
        stored = np.array(number, np.float64).astype(dtype)
    if np.isfinite(number) and not np.isfinite(stored.astype(np.float64)):
        raise _wrong(parameter, value, f"is outside the range of {dtype.name}")
    if dtype.name in ("float32", "float64"):
        return number
    return f"hex:{stored.tobytes().hex()}"


def _lanes(parameter: Parameter, value: Any, dtype: np.dtype[Any], lanes: int) -> str:
    if isinstance(value, complex) and not is_complex(dtype) and lanes == 2:
        value = [value.real, value.imag]
    try:
        array = np.asarray(value).astype(dtype, casting="same_kind" if is_complex(dtype) else "unsafe")
    except (TypeError, ValueError):
        raise _wrong(parameter, value, "cannot be converted") from None
    if array.size != lanes:
        raise _wrong(parameter, value, f"does not have {lanes} components")
    return f"hex:{array.tobytes().hex()}"


def _bytes(parameter: Parameter, value: Any, size: int) -> str:
    """A struct passed by value is given as a NumPy record or bytes of exactly its size."""
    data = value if isinstance(value, bytes) else getattr(value, "tobytes", bytes)()
    if len(data) != size:
        raise _wrong(parameter, value, f"is not {size} bytes")
    return f"hex:{data.hex()}"
