"""Run sampled blocks of a plan's launches with the instrumented kernels; in the worker's child process."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from kernelskill.backends.emulated.engine import Runtime
from kernelskill.backends.emulated.execution import Executor, Failed
from kernelskill.backends.emulated.results import Results

SAMPLED_BLOCKS = 5
_FULL_THREADS = 1 << 18
"""A plan of several launches with no more threads than this is run in full, so that later launches see real data."""
_PLACE = 0.382
"""Where in its part a sampled block lies: the golden section is far from every simple fraction."""
_INSTANCES = 2
"""Launches of one kernel and shape that are traced; more of them count as their mean."""


def choose_blocks(total: int, count: int = SAMPLED_BLOCKS) -> list[int]:
    """Return blocks spread over a grid, each from the inside of a part of equal size for which it stands.

    The first and the last blocks are rarely like others: they lie at borders, and the last ones may lack work. So do
    the middles of grids that a power of two divides into rows: there a row begins.
    """
    if total <= count:
        return list(range(total))
    return [int((n + _PLACE) * total / count) for n in range(count)]


class Sampler:
    """Traces the launches of one plan."""

    def __init__(
        self, runtime: Runtime, executor: Executor, module: dict[str, Any], l1_bytes: dict[str, int]
    ) -> None:
        self._results = Results(runtime)
        self._executor = executor
        self._module = module
        self._l1_bytes = l1_bytes
        self._traced: dict[str, list[dict[str, Any]]] = {}
        self._full = False

    def trace(self, operations: list[dict[str, Any]], deadline_s: float) -> list[dict[str, Any]]:
        """Carry out a plan on sampled blocks and return one row for each launch or copy.

        Raises:
            Failed: A launch cannot be carried out.
        """
        flat = _flatten(operations)
        launches = launches_of(operations)
        self._full = len(launches) > 1 and sum(_threads(op) for op in launches) <= _FULL_THREADS
        deadline = time.monotonic() + deadline_s
        return [row for op in flat if (row := self._one(op, deadline)) is not None]

    def _one(self, operation: dict[str, Any], deadline: float) -> dict[str, Any] | None:
        kind = operation["op"]
        if kind == "launch":
            return self._launch(operation, deadline)
        self._executor.one(operation, deadline)
        if kind == "memset":
            return {"op": kind, "bytes": operation["size_bytes"]}
        if kind == "copy_device":
            return {"op": kind, "bytes": 2 * operation["size_bytes"]}
        if kind == "copy_device_2d":
            return {"op": kind, "bytes": 2 * operation["width_bytes"] * operation["height"]}
        return None

    def _launch(self, operation: dict[str, Any], deadline: float) -> dict[str, Any]:
        shape = [
            operation["kernel"],
            operation["grid"],
            operation["block"],
            operation["dynamic_shared_bytes"],
        ]
        known = self._traced.setdefault(repr(shape), [])
        row = {
            "op": "launch",
            "kernel": operation["kernel"],
            "grid": operation["grid"],
            "block": operation["block"],
            "shared": operation["dynamic_shared_bytes"],
        }
        if len(known) >= _INSTANCES:
            if self._full:
                self._executor.launch(operation, deadline)
            return row | {"trace": known[-1]}
        trace = self._run(operation, deadline)
        known.append(trace)
        return row | {"trace": trace}

    def _run(self, operation: dict[str, Any], deadline: float) -> dict[str, Any]:
        traced = self._executor.traced
        if traced is None:
            raise Failed("unsupported", "there is no instrumented object")
        name = operation["kernel"]
        if name not in traced.functions:
            self._executor.request(operation)  # says why
        grid = operation["grid"]
        chosen = choose_blocks(grid[0] * grid[1] * grid[2])
        array = (ctypes.c_uint64 * len(chosen))(*chosen)
        self._results.reset()
        self._executor.launch(
            operation,
            deadline,
            traced=traced.functions[name],
            sampled=ctypes.cast(array, ctypes.POINTER(ctypes.c_uint64)),
            sampled_count=len(chosen),
            only_sampled=0 if self._full else 1,
            lenient=0 if self._full else 1,
            trace_mode=2,
            threads=1,
            l1_bytes=self._l1_bytes.get(name, 1 << 17),
            keep=[array],
        )
        return self._results.collect(len(self._module["sites"]), len(self._module["blocks"]))


def _flatten(operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for operation in operations:
        if operation["op"] == "graph_launch":
            flat.extend(_flatten(operation["operations"]))
        else:
            flat.append(operation)
    return flat


def launches_of(operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the launches of a plan in order, those inside graphs included."""
    return [operation for operation in _flatten(operations) if operation["op"] == "launch"]


def _threads(operation: dict[str, Any]) -> int:
    grid, block = operation["grid"], operation["block"]
    return int(grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2])
