"""Load one test.py and call its functions. Runs in the test process only; trusts nothing it returns."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.schema.task import Cost
from kernelskill.tasks.binding import Declared
from kernelskill.tasks.declarations import arguments_of, cost_of, describe
from kernelskill.tasks.description import TestDescription
from kernelskill.tasks.spelling import listed, suggestion

MODULE = "kernelskill_test_file"


class TestFile:
    """The names that a test.py defines."""

    __test__ = False

    def __init__(self, path: Path) -> None:
        """Execute the file.

        Raises:
            TaskError: It is no UTF-8 text or no Python; what it raises itself passes through.
        """
        self.path = path
        self.doing = "loading test.py"
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TaskError(
                f"{path.name} is not UTF-8 text: {error.reason} at byte {error.start}",
                remedy="save the file as UTF-8",
            ) from None
        try:
            code = compile(text, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise TaskError(f"{path.name}:{line}: {getattr(error, 'msg', None) or error}") from None
        module = types.ModuleType(MODULE)
        module.__file__ = str(path)
        sys.modules[MODULE] = module
        self.names: dict[str, Any] = module.__dict__
        exec(code, self.names)

    def describe(self) -> TestDescription:
        """Return what the file declares.

        Raises:
            TaskError: Something that it declares cannot be used.
        """
        return describe(self.names, self.cost)

    def arguments(self, case: int) -> dict[str, Any]:
        """Return the arguments of a case as the file gives them."""
        return arguments_of(self.names["CASES"][case])

    def make_inputs(self, case: int, seed: int) -> Any:
        """Return what make_inputs gives for a case and a seed."""
        rng = np.random.default_rng(seed)
        return self._call("make_inputs", case, self.arguments(case), first=(rng,))

    def reference(self, case: int, inputs: Mapping[str, Any]) -> Any:
        """Return what the reference gives for these inputs."""
        return self._call_by_name("reference", case, inputs)

    def check(self, case: int, outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
        """Return why the user's check refuses these outputs, or nothing.

        Raises:
            TaskError: check answered something else than None, a boolean or a text.
        """
        self.doing = f"check in CASES[{case}]"
        try:
            answer = self.names["check"](dict(outputs), dict(expected), self.arguments(case))
        except AssertionError as error:
            return str(error).strip() or "check raised AssertionError"
        if answer is None or answer is True or isinstance(answer, np.bool_):
            return "" if answer is None or bool(answer) else "check returned False"
        if answer is False:
            return "check returned False"
        if isinstance(answer, str):
            return answer.strip()
        raise TaskError(
            f"check returned {type(answer).__name__}", remedy="return None where right, a text where wrong"
        )

    def launch(self, case: int) -> Any:
        """Return what launch gives for a case."""
        return self._call("launch", case, self.arguments(case))

    def cost(self, case: int) -> Cost | None:
        """Return the user's count of the least work of a case, if there is one."""
        if not callable(self.names.get("cost")):
            return None
        return cost_of(self._call("cost", case, self.arguments(case)))

    def baseline(self, case: int, inputs: Mapping[str, Any]) -> Callable[[], Any]:
        """Return a callable that runs the user's baseline on these inputs."""
        function = self.names["baseline"]
        chosen = _chosen(function, "baseline", inputs, self.arguments(case))
        self.doing = f"baseline in CASES[{case}]"
        return lambda: function(**chosen)

    def declared(self, case: int) -> Declared:
        """Return what the file says of its pointers in one case.

        Raises:
            TaskError: A size in SCRATCH is no whole number.
        """
        scratch = self.names.get("SCRATCH", ())
        sizes: dict[str, int | None] = {}
        for name in [scratch] if isinstance(scratch, str) else scratch:
            given = scratch[name] if isinstance(scratch, Mapping) else None
            if callable(given):
                self.doing = f"SCRATCH[{name!r}] in CASES[{case}]"
                given = given(**_chosen(given, f"SCRATCH[{name!r}]", self.arguments(case), {}))
            if given is not None and (not isinstance(given, (int, np.integer)) or given < 0):
                raise TaskError(f"SCRATCH[{name!r}] is {given!r}, not a number of elements")
            sizes[name] = None if given is None else int(given)
        inout = self.names.get("INOUT", ())
        return Declared(inout=tuple([inout] if isinstance(inout, str) else inout), scratch=sizes)

    def _call(self, name: str, case: int, arguments: Mapping[str, Any], first: tuple[Any, ...] = ()) -> Any:
        function = self.names[name]
        self.doing = f"{name} in CASES[{case}]"
        try:
            inspect.signature(function).bind(*first, **arguments)
        except (TypeError, ValueError) as error:
            takes = _parameters(function)[len(first) :]
            raise TaskError(
                f"CASES[{case}] gives {listed(arguments)}, but {name} takes {listed(takes)}: {error}"
            ) from None
        return function(*first, **arguments)

    def _call_by_name(self, name: str, case: int, inputs: Mapping[str, Any]) -> Any:
        function = self.names[name]
        chosen = _chosen(function, name, inputs, self.arguments(case))
        self.doing = f"{name} in CASES[{case}]"
        return function(**chosen)


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _chosen(
    function: Callable[..., Any], name: str, inputs: Mapping[str, Any], case: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that a function takes, from the inputs first and the case second."""
    known = {**case, **inputs}
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(inputs)
    missing = [
        p.name
        for p in parameters
        if p.name not in known and p.default is p.empty and p.kind is not p.VAR_POSITIONAL
    ]
    if missing:
        raise TaskError(
            f"{name} takes {listed(missing)}, which make_inputs does not return{suggestion(missing[0], known)}",
            remedy=f"make_inputs returns {listed(inputs)}",
        )
    return {p.name: known[p.name] for p in parameters if p.name in known}
