"""Bind what a test.py returns to the launcher's parameters, by name. Runs in the test process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.task import Parameter, Role, Signature
from kernelskill.tasks.arrays import Array, expected_array, input_array, to_numpy
from kernelskill.tasks.scalars import Scalar, convert_scalar
from kernelskill.tasks.spelling import listed, suggestion


class Declared(Record):
    """What test.py says of its pointers beyond the two functions."""

    inout: tuple[str, ...] = ()
    scratch: Mapping[str, int | None] = {}
    """Scratch pointer to its number of elements; None: an array in make_inputs gives the size."""


class BoundInputs:
    """The inputs of one case after conversion."""

    def __init__(self, arrays: dict[str, Array], scalars: dict[str, Scalar]) -> None:
        self.arrays = arrays
        self.scalars = scalars


class BoundOutput:
    """One expected output after conversion."""

    def __init__(self, values: Array, own: np.dtype[Any], mask: Array | None) -> None:
        self.values = values
        self.own = own
        self.mask = mask

    @property
    def own_bytes(self) -> int:
        """Size of the output's buffer."""
        return int(self.values.size) * self.own.itemsize


def bind_inputs(signature: Signature, given: Any) -> BoundInputs:
    """Convert what make_inputs returned.

    Raises:
        TaskError: It is no dict, a name is no parameter, or a value does not fit.
    """
    values = _named(given, "make_inputs")
    names = [p.name for p in signature.parameters if p.kind != "stream"]
    extra = [name for name in values if name not in names]
    missing = [p.name for p in signature.parameters if p.kind == "scalar" and p.name not in values]
    if extra:
        raise _unknown("make_inputs", extra, names, missing)
    if missing:
        raise TaskError(
            f"make_inputs does not return {listed(missing)}, which {signature.symbol} takes",
            remedy=f"add {missing[0]!r} to what make_inputs returns",
        )
    arrays = {p.name: input_array(p, values[p.name]) for p in signature.pointers if p.name in values}
    scalars = {p.name: convert_scalar(p, values[p.name]) for p in signature.parameters if p.kind == "scalar"}
    return BoundInputs(arrays, scalars)


def bind_outputs(signature: Signature, given: Any) -> dict[str, BoundOutput]:
    """Convert what reference returned.

    Raises:
        TaskError: It is no dict, is empty, a name is no pointer that may be written, or a value does not fit.
    """
    values = _named(given, "reference")
    if not values:
        raise TaskError("reference returns nothing to compare", remedy='return {"y": expected}')
    pointers = {p.name: p for p in signature.pointers}
    extra = [name for name in values if name not in pointers]
    if extra:
        raise _unknown("reference", extra, list(pointers), [])
    for name in values:
        if pointers[name].is_const:
            raise TaskError(
                f"reference returns {name!r}, but the launcher's {name} is {pointers[name].declared}",
                remedy="a const pointer is an input; return only what the kernel writes",
            )
    return {name: _output(pointers[name], value) for name, value in values.items()}


def assign_roles(
    signature: Signature, inputs: Mapping[str, Any], outputs: Mapping[str, Any], declared: Declared
) -> dict[str, Role]:
    """Return what every pointer parameter is to the test.

    Raises:
        TaskError: A pointer is nothing, or two things at once.
    """
    pointers = [p.name for p in signature.pointers]
    for source, names in (("SCRATCH", declared.scratch), ("INOUT", declared.inout)):
        for name in names:
            if name not in pointers:
                hint = suggestion(name, pointers)
                raise TaskError(f"{source} names {name!r}, which is no pointer of {signature.symbol}{hint}")
    roles = {name: _role(name, inputs, outputs, declared) for name in pointers}
    missing = [name for name, role in roles.items() if role is None]
    if missing:
        raise TaskError(
            f"pointer {listed(missing)} of {signature.symbol} is in neither make_inputs nor reference",
            remedy=f"return {missing[0]!r} from one of them, or write SCRATCH = {{{missing[0]!r}}}",
        )
    return {name: role for name, role in roles.items() if role is not None}


def buffer_sizes(
    signature: Signature,
    roles: Mapping[str, Role],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, BoundOutput],
    declared: Declared,
) -> dict[str, int]:
    """Return every pointer's buffer size in bytes.

    Raises:
        TaskError: A scratch pointer has no size, or an in-out pointer has two.
    """
    sizes = {}
    for parameter in signature.pointers:
        name, role = parameter.name, roles[parameter.name]
        if role is Role.INOUT and inputs[name].nbytes != outputs[name].own_bytes:
            raise TaskError(
                f"{name} has {inputs[name].size} elements in make_inputs and {outputs[name].values.size}"
                " in reference",
                remedy=f"{name} is in-out, so both must have one shape",
            )
        if role is Role.SCRATCH:
            sizes[name] = _scratch_bytes(parameter, inputs, declared)
        else:
            sizes[name] = outputs[name].own_bytes if role is Role.OUTPUT else inputs[name].nbytes
    return sizes


def _named(given: Any, source: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TaskError(
            f"{source} returned {type(given).__name__}, not a dict",
            remedy='return a dict from parameter name to value, such as {"x": x, "n": n}',
        )
    wrong = [name for name in given if not isinstance(name, str)]
    if wrong:
        raise TaskError(f"{source} returned the key {wrong[0]!r}, which is no parameter name")
    return dict(given)


def _unknown(source: str, extra: list[str], known: list[str], missing: list[str]) -> TaskError:
    hint = suggestion(extra[0], missing or known)
    lacks = f" and does not return {listed(missing)}" if missing else ""
    return TaskError(
        f"{source} returns {listed(extra)}, which the launcher does not take{lacks}{hint}",
        remedy=f"the launcher takes {listed(known)}",
    )


def _role(
    name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], declared: Declared
) -> Role | None:
    if name in declared.scratch:
        if name in outputs:
            raise TaskError(f"{name!r} is in SCRATCH, but reference returns it", remedy="take it out of one")
        return Role.SCRATCH
    if name in declared.inout and not (name in inputs and name in outputs):
        source = "reference" if name in inputs else "make_inputs"
        raise TaskError(f"{name!r} is in INOUT, but {source} does not return it")
    if name in outputs:
        return Role.INOUT if name in inputs else Role.OUTPUT
    return Role.INPUT if name in inputs else None


def _output(parameter: Parameter, value: Any) -> BoundOutput:
    mask: Array | None = None
    if isinstance(value, tuple) and len(value) == 2:
        value, given = value
        mask = None if given is None else to_numpy(f"the mask of {parameter.name}", given)
    values, own = expected_array(parameter, value)
    if mask is not None:
        mask = _fitted(parameter.name, mask, values)
    return BoundOutput(values, own, mask)


def _fitted(name: str, mask: Array, values: Array) -> Array:
    if mask.dtype != np.bool_:
        raise TaskError(f"the mask of {name} is {mask.dtype.name}, not bool", remedy="True where it counts")
    if mask.ndim == values.ndim - 1 and mask.shape == values.shape[:-1]:
        mask = mask[..., np.newaxis]
    try:
        return np.ascontiguousarray(np.broadcast_to(mask, values.shape)).reshape(values.shape)
    except ValueError:
        raise TaskError(f"the mask of {name} has shape {mask.shape}, its values {values.shape}") from None


def _scratch_bytes(parameter: Parameter, inputs: Mapping[str, Array], declared: Declared) -> int:
    count = declared.scratch[parameter.name]
    if count is not None:
        return count * (parameter.element.size_bytes if parameter.element else 1)
    if parameter.name in inputs:
        return int(inputs[parameter.name].nbytes)
    raise TaskError(
        f"scratch pointer {parameter.name!r} has no size",
        remedy=f"return an array of its size from make_inputs, or write "
        f"SCRATCH = {{{parameter.name!r}: lambda n: n}} with its number of elements",
    )
