"""Load a kernel and its test.py as a task. Everything that the user got wrong ends here, as a TaskError."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from kernelskill.backends.flags import check_flags
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Allowance, Promise, Role, Signature, Task, Tolerance
from kernelskill.source.signature import restricted_parameters
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.bundle import Bundle
from kernelskill.tasks.declarations import choices
from kernelskill.tasks.description import TestDescription
from kernelskill.tasks.entry import Entry, choose_entry
from kernelskill.tasks.process import DEFAULT_TIMEOUT_S, TestProcess
from kernelskill.tasks.signatures import signature_of
from kernelskill.tasks.sources import read_kernel, require_file
from kernelskill.tasks.spelling import listed, suggestion
from kernelskill.tasks.testsource import TestSource, read_test_source
from kernelskill.tasks.tolerance import default_tolerance

FIRST_SEED = 0
"""Seed of the values that loading looks at."""


class LoadedTask(Record):
    """A task that can be worked on, and what the user should hear about it."""

    task: Task
    original: Candidate
    """The kernel as given; with the generated launcher for a bare kernel."""
    tests: TestSource
    generated: str = ""
    """Text of the generated launcher."""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load_task(
    kernel: Path,
    tests: Path,
    *,
    only_kernel: str | None = None,
    allow: Iterable[str] = (),
    keep_exact: bool = False,
    promise: Iterable[str] = (),
    toolchain: Toolchain | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> LoadedTask:
    """Read, check and describe a task; runs make_inputs and reference once, on the first untimed case.

    Args:
        kernel: The `.cu` file.
        tests: Its test.py.
        only_kernel: Launcher or bare kernel to use, in place of KERNEL.
        allow: Names of allowances beyond those of ALLOW.
        keep_exact: Whether floating-point sums must keep their order.
        promise: Names of promises beyond those of PROMISE.
        toolchain: The compiler that says what the types are; the machine's own by default.
        timeout_s: For every single call of the user's code.

    Raises:
        TaskError: The kernel or the test cannot be used.
        CompilerMissing: There is no nvcc.
    """
    require_file(kernel, "kernel")
    require_file(tests, "test")
    if kernel.suffix == ".py" and tests.suffix == ".cu":
        raise TaskError(
            f"{kernel.name} is no CUDA file", remedy="give the .cu first and the .py with --tests"
        )
    extra = choices("--allow", allow, Allowance), choices("--promise", promise, Promise)
    source = read_test_source(tests)
    with TestProcess.start(source, timeout_s=timeout_s) as process:
        test = process.describe()
        test = test.model_copy(
            update={
                "allow": test.allow | set(extra[0]) | ({Allowance.REORDER} if not keep_exact else set()),
                "promise": test.promise | set(extra[1]),
                "kernel": only_kernel or test.kernel,
            }
        )
        return _load(kernel, source, process, test, toolchain or Toolchain.find(), keep_exact)


def _load(
    kernel: Path,
    source: TestSource,
    process: TestProcess,
    test: TestDescription,
    toolchain: Toolchain,
    keep_exact: bool,
) -> LoadedTask:
    check_flags(test.flags)
    read = read_kernel(kernel, test.flags, Path(source.folder))
    entry = choose_entry(read.candidate, process, test)
    signature = _with_restrictions(
        signature_of(entry.candidate, entry.launcher, read.flags, toolchain), entry.candidate
    )
    bundle = _first_bundle(process, test, signature)
    _require_formula_holds(entry, test, bundle)
    task = Task(
        name=_name(kernel, entry),
        signature=signature,
        cases=test.cases,
        roles=bundle.roles,
        tolerances={} if "check" in test.functions else _tolerances(test, signature, bundle),
        custom_check="check" in test.functions,
        flags=read.flags,
        allow=test.allow - {Allowance.REORDER} if keep_exact else test.allow,
        promise=test.promise,
        insensitive=test.insensitive,
        has_baseline="baseline" in test.functions,
        original=entry.candidate.digest,
        tests=source.digest,
        generated_launcher=bool(entry.generated),
    )
    return LoadedTask(
        task=task,
        original=entry.candidate,
        tests=source,
        generated=entry.generated,
        assumptions=entry.assumptions,
        warnings=(*test.warnings, *_without_effect(test, task), *_left_behind(source), *entry.warnings),
    )


def _with_restrictions(signature: Signature, candidate: Candidate) -> Signature:
    """Say of each pointer whether it is restricted: the compiler drops that from a function's type."""
    names = restricted_parameters(SourceUnit.parse(candidate.source, candidate.main), signature.symbol)
    parameters = tuple(
        parameter.model_copy(update={"is_restrict": parameter.kind == "pointer" and parameter.name in names})
        for parameter in signature.parameters
    )
    return signature.model_copy(update={"parameters": parameters})


def _name(kernel: Path, entry: Entry) -> str:
    """A file called `kernel.cu` says nothing, so its launcher or folder names the task."""
    stem = kernel.stem
    return stem if stem not in ("kernel", "main", "solution", "test") else entry.name


def _first_bundle(process: TestProcess, test: TestDescription, signature: Signature) -> Bundle:
    first = next((case for case in test.cases if not case.timed), test.cases[0])
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as folder:
        return process.bundle(first.index, FIRST_SEED, Path(folder), signature)


def _require_formula_holds(entry: Entry, test: TestDescription, bundle: Bundle) -> None:
    """A generated launcher computes with the kernel's values, launch() with the case's: they must agree."""
    if not entry.generated:
        return
    case = next(case for case in test.cases if case.index == bundle.case)
    for name, value in bundle.scalars.items():
        if name in case.arguments and case.arguments[name] != value:
            raise TaskError(
                f"CASES[{case.index}] gives {name} = {case.arguments[name]!r}, but make_inputs returns {value!r}",
                remedy="launch() sees the case's value and the kernel the other; give them two names",
            )


def _tolerances(test: TestDescription, signature: Signature, bundle: Bundle) -> dict[str, Tolerance]:
    outputs = [name for name, role in bundle.roles.items() if role in (Role.OUTPUT, Role.INOUT)]
    for name in test.output_tolerances:
        if name not in outputs:
            hint = suggestion(name, outputs)
            raise TaskError(
                f"TOLERANCE names {name!r}, which is no output{hint}",
                remedy=f"the outputs are {listed(outputs)}",
            )
    return {name: _tolerance(test, bundle.expected[name].dtype, name) for name in outputs}


def _tolerance(test: TestDescription, dtype: str, name: str) -> Tolerance:
    if name in test.output_tolerances:
        return test.output_tolerances[name]
    default = default_tolerance(dtype)
    is_exact = default.rtol == 0.0 and default.atol == 0.0
    if is_exact and not dtype.startswith("["):
        return default
    return test.tolerance or (default_tolerance("float32") if is_exact else default)


def _without_effect(test: TestDescription, task: Task) -> tuple[str, ...]:
    """Say so where a TOLERANCE for all outputs loosens none: integers are exact unless they are named."""
    exact = [name for name, tolerance in task.tolerances.items() if not (tolerance.rtol or tolerance.atol)]
    given = test.tolerance
    if given is None or not (given.rtol or given.atol) or len(exact) < len(task.tolerances) or not exact:
        return ()
    return (
        f"TOLERANCE has no effect: all outputs ({listed(exact)}) are integers, which are compared exactly; "
        f"name one to allow more: TOLERANCE = {{{exact[0]!r}: dict(rtol={given.rtol:g}, atol={given.atol:g})}}",
    )


def _left_behind(source: TestSource) -> tuple[str, ...]:
    return tuple(
        f"{source.main}: {name} is too large to travel with the test; a worker elsewhere will lack it"
        for name in source.left_behind
    )
