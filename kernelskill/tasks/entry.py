"""Choose the function that a task calls: a launcher of the file, or one generated for a bare kernel."""

from __future__ import annotations

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.source.definitions import KernelDef
from kernelskill.source.signature import LauncherDecl, called_names, find_launchers, has_main
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.description import TestDescription
from kernelskill.tasks.launcher import generate_launcher, split_template
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.signatures import EntryName
from kernelskill.tasks.spelling import listed, suggestion

_INIT = "`kernelskill init {file}` drafts what is missing"


class Entry(Record):
    """The launcher of a task."""

    name: str
    """For people."""
    candidate: Candidate
    launcher: EntryName
    generated: str = ""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def choose_entry(candidate: Candidate, process: TestProcess, test: TestDescription) -> Entry:
    """Return the launcher that KERNEL names, or the only one, or one generated from launch().

    Raises:
        TaskError: There is none, several, or one that cannot be called.
    """
    unit = SourceUnit.parse(candidate.source, candidate.main)
    launchers = find_launchers(unit)
    wanted, template_arguments = split_template(test.kernel or "")
    named = [entry for entry in launchers if wanted in (entry.name, entry.qualified_name)]
    if wanted and named:
        return _launcher(candidate, named[0], test)
    if wanted:
        kernel = unit.kernel(wanted)
        if kernel is None:
            known = [*(entry.name for entry in launchers), *(kernel.name for kernel in unit.kernels)]
            raise TaskError(
                f"KERNEL names {wanted!r}, which {candidate.main} does not define{suggestion(wanted, known)}",
                remedy=f"it defines {listed(known)}",
            )
        return _bare(candidate, unit, kernel, template_arguments, process, test)
    if "launch" in test.functions and unit.kernels:
        return _bare(candidate, unit, _only_kernel(candidate, unit), "", process, test)
    return _launcher(candidate, _only_launcher(candidate, unit, launchers), test)


def _launcher(candidate: Candidate, chosen: LauncherDecl, test: TestDescription) -> Entry:
    where = f"{candidate.main}:{chosen.line}"
    if chosen.is_template:
        raise TaskError(
            f"{where}: launcher {chosen.name} is a template",
            remedy='add an extern "C" function that calls it with the types you need',
        )
    if chosen.unnamed_parameters:
        raise TaskError(
            f"{where}: parameter {chosen.unnamed_parameters[0]} of {chosen.name} has no name",
            remedy="name it: test.py binds its values by name",
        )
    ignored = "test.py: launch() is not used, because KERNEL names a launcher"
    return Entry(
        name=chosen.name,
        candidate=candidate,
        launcher=EntryName(
            symbol=chosen.qualified_name, parameters=chosen.parameter_names, c_linkage=chosen.c_linkage
        ),
        warnings=(ignored,) if "launch" in test.functions else (),
    )


def _only_launcher(
    candidate: Candidate, unit: SourceUnit, launchers: tuple[LauncherDecl, ...]
) -> LauncherDecl:
    called = {name for function in unit.host_functions for name in called_names(unit, function)}
    outer = [entry for entry in launchers if entry.name not in called or entry.c_linkage]
    working = [entry for entry in outer if entry.kernels]
    pools = [[entry for entry in working if entry.c_linkage], working, outer, list(launchers)]
    pool = next((pool for pool in pools if pool), [])
    if len(pool) == 1:
        return pool[0]
    if pool:
        names = [entry.name for entry in pool]
        raise TaskError(
            f"{candidate.main} has several launchers: {listed(names)}",
            remedy=f'write KERNEL = "{names[0]}" in test.py',
        )
    raise _without_launcher(candidate, unit)


def _without_launcher(candidate: Candidate, unit: SourceUnit) -> TaskError:
    file = candidate.main
    remedy = _INIT.format(file=file)
    kernels = [kernel.name for kernel in unit.kernels]
    if has_main(unit):
        return TaskError(
            f"{file} has only its own main(); nothing in it can be called with test data",
            remedy='add extern "C" void NAME(device pointers and sizes) that launches the kernel, or launch()'
            f" to test.py; {remedy}",
        )
    if kernels:
        return TaskError(
            f"{file} has no launcher, only the kernel {listed(kernels)}",
            remedy=f"add def launch(n): return dict(grid=..., block=...) to test.py; {remedy}",
        )
    return TaskError(
        f"{file} defines neither a launcher nor a kernel",
        remedy='add extern "C" void NAME(const float* x, float* y, int n) that launches your kernel',
    )


def _only_kernel(candidate: Candidate, unit: SourceUnit) -> KernelDef:
    if len(unit.kernels) == 1:
        return unit.kernels[0]
    names = [kernel.name for kernel in unit.kernels]
    raise TaskError(
        f"{candidate.main} has several kernels: {listed(names)}",
        remedy=f'write KERNEL = "{names[0]}" in test.py',
    )


def _bare(
    candidate: Candidate,
    unit: SourceUnit,
    kernel: KernelDef,
    template_arguments: str,
    process: TestProcess,
    test: TestDescription,
) -> Entry:
    if "launch" not in test.functions:
        raise TaskError(
            f"{kernel.name} is a bare kernel, and test.py has no launch()",
            remedy="add def launch(n): return dict(grid=..., block=...), with the case's arguments",
        )
    made = generate_launcher(unit, kernel, template_arguments, process, test)
    return Entry(
        name=kernel.name,
        candidate=candidate.with_text(
            candidate.main, candidate.source + made.text.replace("\n", unit.newline)
        ),
        launcher=EntryName(symbol=made.symbol, parameters=made.parameters, c_linkage=True),
        generated=made.text.strip("\n"),
        assumptions=(made.assumption,) if made.assumption else (),
    )
