"""Bring the arrays of a test.py to the bytes that a pointer parameter takes. Casts no input silently."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelskill.errors import TaskError
from kernelskill.schema.task import ElementType, Parameter
from kernelskill.tasks.dtypes import WIDER, dtype_of, is_floating

Array = NDArray[Any]


def to_numpy(name: str, value: Any) -> Array:
    """Return an array of NumPy's, PyTorch's, CuPy's or anyone's with `__dlpack__` or `__array__`.

    Raises:
        TaskError: The value is no array.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "detach") and hasattr(value, "cpu"):
        array = _from_torch(value)
    elif hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):
        array = value.get()
    else:
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            value = np.from_dlpack(value)
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise TaskError(
                f"{name} is not an array: {error}",
                remedy="return a NumPy array of the pointer's element type",
            ) from None
    if array.dtype.kind in "OUSmM":
        raise TaskError(
            f"{name} is {_described(value, array)}, not an array of numbers",
            remedy="return a NumPy array of the pointer's element type",
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # np.ascontiguousarray would make a 0-d array 1-d.
    return array if array.flags.c_contiguous else array.copy(order="C")


def _from_torch(tensor: Any) -> Array:
    tensor = tensor.detach().cpu().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":
        bits: Array = tensor.view(__import__("torch").int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: Array = tensor.numpy()
    return array


def _described(value: Any, array: Array) -> str:
    return "None" if value is None else f"{type(value).__name__} ({array.dtype})"


def input_array(parameter: Parameter, value: Any) -> Array:
    """Return the contents of an input buffer: the same bytes, typed as one lane of the element.

    Python lists and numbers are converted; arrays must already have the element's type or one with
    the same bits (a uint16 view of half, complex for pairs, a structured type for structs).

    Raises:
        TaskError: The array's type is not the pointer's.
    """
    element = _element(parameter)
    array = to_numpy(parameter.name, value)
    if not _has_type(value) and element.name != "void":
        array = _converted(parameter, array, dtype_of(element.dtype))
    typed = _as_element(array, element)
    if typed is None:
        raise _mismatch(parameter, array)
    return typed


def expected_array(parameter: Parameter, value: Any) -> tuple[Array, np.dtype[Any]]:
    """Return expected values and the type in which the output's own bytes are read; their shape is one.

    Values of a wider type are kept wide, so that a double-precision reference stays one.

    Raises:
        TaskError: The values' type is neither the pointer's nor a wider one.
    """
    element = _element(parameter)
    array = to_numpy(parameter.name, value)
    if element.name == "void":
        return array, array.dtype
    own = dtype_of(element.dtype)
    wider = tuple(dtype_of(name) for name in WIDER.get(element.dtype, ()))
    if not _has_type(value) and array.dtype not in wider:
        array = _converted(parameter, array, own)
    if array.dtype in wider and array.nbytes // array.dtype.itemsize % element.lanes == 0:
        return array, own
    typed = _as_element(array, element)
    if typed is None:
        raise _mismatch(parameter, array)
    return typed, typed.dtype


def _element(parameter: Parameter) -> ElementType:
    if parameter.element is None:
        raise TaskError(f"parameter {parameter.name!r} is no pointer")
    return parameter.element


def _has_type(value: Any) -> bool:
    """Whether the user chose the array's type; a list, a number or a 0-d result has none that matters."""
    return hasattr(value, "dtype") and not isinstance(value, np.generic)


def _as_element(array: Array, element: ElementType) -> Array | None:
    """Return the array typed as lanes of the element where its bits can be read so, else None."""
    if element.name == "void":
        return array
    own = dtype_of(element.dtype)
    if array.dtype == own:
        return array if array.nbytes % element.size_bytes == 0 else None
    if array.dtype.names is not None:
        if array.dtype.itemsize != element.size_bytes:
            return None
        return array if own == np.uint8 else _lanes_of(array, own, element.lanes)
    same_bits = array.dtype.itemsize == own.itemsize and (
        (array.dtype == np.uint16 and own.itemsize == 2 and is_floating(own))
        or {array.dtype.name, own.name} <= {"bool", "uint8"}
    )
    if same_bits:
        return array.view(own)
    return _pairs(array, own, element.lanes)


def _lanes_of(array: Array, own: np.dtype[Any], lanes: int) -> Array | None:
    fields = [field[0] for field in (array.dtype.fields or {}).values()]
    bases = {field.base for field in fields}
    if bases != {own}:
        return None
    flat = array.reshape(-1).view(own)
    return flat.reshape((*array.shape, lanes)) if flat.size == array.size * lanes else None


def _pairs(array: Array, own: np.dtype[Any], lanes: int) -> Array | None:
    """Complex numbers and pairs of their parts have the same bits."""
    if array.dtype.kind == "c" and lanes == 2 and array.dtype.itemsize == 2 * own.itemsize:
        return array.reshape(-1).view(own).reshape((*array.shape, 2)) if is_floating(own) else None
    parts = own.kind == "c" and array.dtype.kind == "f" and array.dtype.itemsize * 2 == own.itemsize
    return array.view(own)[..., 0] if parts and array.ndim and array.shape[-1] == 2 else None


def _converted(parameter: Parameter, array: Array, own: np.dtype[Any]) -> Array:
    """Convert a list or a number where no value changes by more than the type's rounding."""
    if array.dtype == own or array.size == 0:
        return array.astype(own, copy=False)
    given = array.dtype.kind
    if own.kind in "iu" and given in "iub":
        limits = np.iinfo(own)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise TaskError(f"{parameter.name} holds values outside {limits.min} .. {limits.max}")
        return array.astype(own)
    floats = (is_floating(own) or own.kind == "c") and given in "iubf"
    if floats or (own.kind == "c" == given) or (own.kind == "b" and given in "bi"):
        return array.astype(own)
    raise _mismatch(parameter, array)


def _mismatch(parameter: Parameter, array: Array) -> TaskError:
    element = _element(parameter)
    own = dtype_of(element.dtype)
    name = parameter.name
    if array.dtype == own and element.lanes > 1:
        fact = f"{name} has shape {array.shape}, but each {element.name} needs {element.lanes} values"
        return TaskError(fact, remedy=f"make the last axis of {name} {element.lanes} long")
    module = "np" if hasattr(np, own.name) else "ml_dtypes"
    lanes = f", with a last axis of {element.lanes}" if element.lanes > 1 else ""
    return TaskError(
        f"{name} is {array.dtype.name}, but the launcher's {name} is {parameter.declared}",
        remedy=f"use .astype({module}.{own.name}){lanes}",
    )
