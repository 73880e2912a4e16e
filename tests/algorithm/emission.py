"""Emitted kernels: files round them, random sequences of moves, comparison with the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelskill.algorithm.interpret import interpret
from kernelskill.algorithm.lowering.kernel import Emitted, LaunchFacts, emit
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import plain_schedule
from kernelskill.algorithm.stages.emission import emit_stages
from tests.algorithm import cpu

HEAD = "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <math.h>\n\n"


def emitted_text(plan: Plan) -> str:
    """Return a file with the kernel of a plan and a launcher `f`.

    Raises:
        IllegalMove: The plan cannot be lowered.
    """
    algorithm = plan.algorithm
    names = frozenset({"f", algorithm.kernel, *(p.name for p in algorithm.parameters)})
    facts = LaunchFacts({name: name for name in names - {"f", algorithm.kernel}}, identifiers=names)
    if plan.stages is not None:
        several = emit_stages(plan.stages, facts)
        return _file(algorithm, several.code, several.launch)
    return file_of(algorithm, emit(algorithm, plan.schedule, facts))


def file_of(algorithm: Algorithm, emitted: Emitted) -> str:
    """Return a file with an emitted kernel and a launcher `f`."""
    return _file(algorithm, f"{emitted.definitions}\n{emitted.kernel}", emitted.launch)


def _file(algorithm: Algorithm, code: str, launch: str) -> str:
    parameters = ", ".join(parameter.text for parameter in algorithm.parameters)
    launcher = f'extern "C" void f({parameters})\n{{\n{launch}\n}}\n'
    return f"{HEAD}{code}\n{launcher}"


def plans(algorithm: Algorithm, rng: np.random.Generator, length: int) -> Iterator[tuple[str, Plan]]:
    """Yield the plain plan and those along one random sequence of legal moves, with what was done."""
    plan, done = Plan(algorithm, plain_schedule(algorithm, int(rng.choice([32, 128, 256])))), "plain"
    yield done, plan
    for _ in range(length):
        moved = _moved(plan, done, rng)
        if moved is None:
            return
        label, plan = moved
        done = f"{done} > {label}"
        yield done, plan


def _moved(plan: Plan, done: str, rng: np.random.Generator) -> tuple[str, Plan] | None:
    if plan.stages is not None:
        return None  # several kernels: each would be read anew
    on_cpu = sorted(set(MOVES) - {"use_tensor_cores"})
    for name in sorted(rng.permutation(on_cpu), key=lambda name: name in done):
        move = MOVES[name]
        try:
            options = move.options(plan)
        except IllegalMove:
            continue
        for _ in range(3):
            values = {option.name: str(rng.choice(option.values)) for option in options}
            try:
                return f"{name}{values}", move.apply(plan, values)
            except IllegalMove:
                continue
    return None


def is_exact(plan: Plan) -> bool:
    """Whether a plan keeps the order of every sum."""
    return plan.schedule.lanes == 1 and not plan.schedule.splits and plan.stages is None


def expected(algorithm: Algorithm, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return what the interpreter makes of arguments."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    return interpret(algorithm, arrays, {k: v for k, v in arguments.items() if k not in arrays})


def differences(want: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], *, exact: bool) -> str:
    """Return where results differ, in words; empty where they agree."""
    for name, wanted in want.items():
        found = got[name]
        if wanted.dtype.kind in "iub" or exact:
            wrong = ~((wanted == found) | ((wanted != wanted) & (found != found)))
        else:
            wide, other = wanted.astype(np.float64), found.astype(np.float64)
            slack = {2: 2e-3, 4: 2e-5, 8: 1e-12}[wanted.dtype.itemsize]
            finite = np.abs(wide[np.isfinite(wide)])
            wrong = ~np.isclose(wide, other, slack, slack * float(finite.max(initial=1.0)), equal_nan=True)
        if wrong.any():
            place = int(np.flatnonzero(wrong.reshape(-1))[0])
            values = wanted.reshape(-1)[place], found.reshape(-1)[place]
            return f"{name}[{place}] is {values[1]!r} instead of {values[0]!r}; {int(wrong.sum())} of {wrong.size}"
    return ""


@dataclass(frozen=True)
class Case:
    """A file to run and what must come of it."""

    label: str
    text: str
    arguments: Mapping[str, Any]
    wanted: Mapping[str, np.ndarray]
    exact: bool
    """Whether results must agree bit for bit."""


def compare(cases: Sequence[Case], folder: Path) -> list[str]:
    """Compile files together, run each at aligned and odd addresses, and return in words what disagrees."""
    problems = []
    names = {text: f"k{number}" for number, text in enumerate(dict.fromkeys(case.text for case in cases))}
    sources = {name: text for text, name in names.items()}
    try:
        library = cpu.build(sources, folder)
    except cpu.CompileFailed as failure:
        if len(sources) == 1:
            return [f"{cases[0].label}: {failure}"]
        by_text = [[case for case in cases if case.text == text] for text in names]
        return [problem for group in by_text for problem in compare(group, folder)]
    calls = [
        cpu.Call(names[case.text], case.arguments, reversed=flush == "start", flush=flush)
        for case in cases
        for flush in ("end", "start", "odd")
    ]
    for place, (call, result) in enumerate(zip(calls, _results(library, calls), strict=True)):
        case = cases[place // 3]
        found = isinstance(result, str) or differences(case.wanted, result, exact=case.exact)
        if found:
            problems.append(
                f"{case.label}: at {call.flush}: {result if found is True else found}\n{case.text}"
            )
    return problems


def _results(library: cpu.Library, calls: Sequence[cpu.Call]) -> list[dict[str, np.ndarray] | str]:
    """Return what each call leaves, or how it failed; all run in one process unless one of them fails."""
    try:
        return list(library.run(calls))
    except cpu.RunFailed as failure:
        if len(calls) == 1:
            return [str(failure)]
        return [result for call in calls for result in _results(library, [call])]
