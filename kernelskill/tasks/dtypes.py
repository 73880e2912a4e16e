"""NumPy types by the names that records carry. Nothing here touches an array's contents."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from kernelskill.errors import TaskError

WIDER = {
    "bfloat16": ("float32", "float64"),
    "complex64": ("complex128",),
    "float16": ("float32", "float64"),
    "float32": ("float64",),
}
"""Types that expected values may have beyond the output's own, so that a reference can be more exact."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the type of this name: NumPy's, `ml_dtypes`', or a structured type in its text form.

    Raises:
        TaskError: No such type is known.
    """
    if name.startswith("["):
        return np.dtype([(field, text, tuple(shape)) for field, text, shape in _fields(name)])
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise TaskError(f"unknown array type {name!r}", remedy="use a NumPy or ml_dtypes type") from None


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name under which `dtype_of` finds this type again."""
    if dtype.names is None:
        return dtype.name
    parts = []
    for field in dtype.names:
        base, shape = dtype.fields[field][0], ()  # type: ignore[index]
        if base.subdtype is not None:
            base, shape = base.subdtype
        parts.append(f"{field}:{base.str[1:]}:{'x'.join(map(str, shape))}")
    return f"[{';'.join(parts)}]"


def _fields(name: str) -> list[tuple[str, str, tuple[int, ...]]]:
    fields = []
    for part in name[1:-1].split(";"):
        field, text, shape = part.split(":")
        fields.append((field, text, tuple(int(size) for size in shape.split("x") if size)))
    return fields


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether the type holds real floating-point numbers, half and bfloat16 included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether the type holds complex numbers."""
    return dtype.kind == "c"
