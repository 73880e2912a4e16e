"""Launches of a file, one after the other, in the interpreter."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelskill.algorithm.interpreting.values import dtype_of
from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.model import CannotLift
from kernelskill.algorithm.types import canonical, is_known
from kernelskill.source.signature import find_launchers
from kernelskill.source.unit import SourceUnit
from tests.algorithm.cpu import NotForThisHarness
from tests.algorithm.emission import expected

_CAST = re.compile(r"\((?:const )?(?:unsigned|int|long long|long|size_t|float|double|u?int\d+_t)\)")
_LOCAL = re.compile(r"(?:int|long long|long|size_t|unsigned|int64_t)\s+(\w+) = ([^;]+);")
_SUFFIX = re.compile(r"(?<=[\d.])[fFuUlL]+\b")


@dataclass(frozen=True)
class LaunchCase:
    """One launch with the values of its kernel's parameters, and the buffers that it should leave."""

    lifted: Lifted
    arguments: dict[str, Any]
    wanted: dict[str, np.ndarray]


def launch_cases(text: str, arguments: Mapping[str, Any]) -> Iterator[LaunchCase | CannotLift]:
    """Yield the launches of a file's launcher in order, each on what the one before left.

    Ends at the first that cannot be lifted, with the reason.
    """
    unit = SourceUnit.parse(text)
    (launcher,) = find_launchers(unit)
    memory = dict(arguments)
    for launch in unit.launches:
        if launch.function != launcher.name:
            continue
        try:
            lifted = lift(unit, launch)
        except CannotLift as refused:
            yield refused
            return
        names = {name: _plain(given) for name, given in lifted.arguments}
        memory |= _locals(unit.text_of(launcher.span), memory)
        values = {name: _value(given, memory) for name, given in names.items()}
        wanted = expected(lifted.algorithm, values)
        yield LaunchCase(lifted, values, wanted)
        for name, array in wanted.items():
            memory[names[name]] = array


def _plain(text: str) -> str:
    return _SUFFIX.sub("", _CAST.sub("", text)).strip()


def _locals(text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a launcher computes from its parameters, where they are simple."""
    found: dict[str, Any] = {}
    for name, value in _LOCAL.findall(text):
        try:
            found[name] = _value(_plain(value), {**known, **found})
        except NotForThisHarness:
            continue
    return {name: value for name, value in found.items() if name not in known}


def _value(text: str, known: Mapping[str, Any]) -> Any:
    """Return the value of an argument: a name, a number, or sums and products of them."""
    if text in known:
        return known[text]
    scalars = {name: value for name, value in known.items() if not isinstance(value, np.ndarray)}
    try:
        return eval(text.replace("/", "//") if "." not in text else text, {"__builtins__": {}}, scalars)
    except (NameError, SyntaxError, TypeError):
        raise NotForThisHarness(f"the argument {text!r} of a launch") from None


def small_cases(folder: Path, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a benchmark's untimed cases, outputs included."""
    tests = runpy.run_path(str(folder / "test.py"))
    launchers = find_launchers(SourceUnit.parse((folder / "kernel.cu").read_text()))
    if len(launchers) != 1:
        raise NotForThisHarness("a bare kernel")
    (launcher,) = launchers
    signature = inspect.signature(tests["reference"]).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature)
    wanted = {parameter.name for parameter in signature}
    for case in tests["CASES"]:
        if case.get("time"):
            continue
        sizes = {name: value for name, value in case.items() if name not in ("time", "weight")}
        inputs = tests["make_inputs"](np.random.default_rng(seed), **sizes)
        outputs = tests["reference"](
            **{name: value for name, value in inputs.items() if takes_all or name in wanted}
        )
        arguments: dict[str, Any] = {}
        for parameter in launcher.parameters:
            name = parameter.name
            if "Stream" in parameter.type_text:
                continue
            value = inputs.get(name, inputs.get(f"{name}_"))
            if value is None and name in tests.get("SCRATCH", ()):
                extent = tests["SCRATCH"][name]
                asked = inspect.signature(extent).parameters if callable(extent) else ()
                known = {key: value for key, value in inputs.items() if key in asked}
                size = extent(**known) if callable(extent) else extent
                value = np.zeros(int(np.prod(size)))
            elif value is None:
                value = np.zeros_like(_array(outputs.get(name, outputs.get(f"{name}_"))))
            arguments[name] = value
            if parameter.pointer_depth:
                kind = canonical(parameter.type_text.replace("*", " "))
                if not is_known(kind):
                    raise NotForThisHarness(f"elements of type {kind!r}")
                arguments[name] = np.ascontiguousarray(value).astype(dtype_of(kind))
        yield arguments


def _array(value: Any) -> np.ndarray:
    return np.asarray(value[0] if isinstance(value, tuple) else value)
