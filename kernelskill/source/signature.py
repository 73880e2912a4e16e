"""Find the functions that a task can call: launchers, and bare kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.syntax import Span, walk
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class DeclaredParameter:
    """A parameter as the source declares it; the compiler knows what the type means."""

    name: str
    type_text: str
    pointer_depth: int
    is_const: bool


@dataclass(frozen=True)
class LauncherDecl:
    """A host function that may be the launcher of a task."""

    name: str
    qualified_name: str
    """With namespaces."""
    parameters: tuple[DeclaredParameter, ...]
    return_type: str
    c_linkage: bool
    line: int
    kernels: tuple[str, ...]
    """Kernels that it launches, directly or through functions it calls, in the order of the text."""
    is_template: bool
    is_static: bool
    """Whether it is not visible outside the file: `static` or in an unnamed namespace."""
    span: Span

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def unnamed_parameters(self) -> tuple[int, ...]:
        """Positions, counted from 1, of parameters without a name."""
        return tuple(index for index, p in enumerate(self.parameters, 1) if not p.name)


@dataclass(frozen=True)
class KernelDecl:
    """A kernel that a task may launch itself."""

    name: str
    qualified_name: str
    parameters: tuple[DeclaredParameter, ...]
    template_parameters: tuple[str, ...]
    line: int
    c_linkage: bool
    is_launched: bool
    """Whether the file launches it."""


def find_launchers(unit: SourceUnit) -> tuple[LauncherDecl, ...]:
    """Return the candidates for the launcher, the outermost and `extern "C"` ones first.

    A candidate is a host function that launches a kernel, itself or through functions it calls, or one
    with C linkage; `main` is none. Functions that another candidate calls come last.
    """
    reached = {function.name: _launched_kernels(unit, function) for function in unit.host_functions}
    candidates = [
        function
        for function in unit.host_functions
        if function.name != "main" and (reached[function.name] or function.c_linkage)
    ]
    called = {name for function in unit.host_functions for name in called_names(unit, function)}
    ordered = sorted(candidates, key=lambda f: (f.name in called, not f.c_linkage, f.line))
    return tuple(_launcher(function, reached[function.name]) for function in ordered)


def restricted_parameters(unit: SourceUnit, launcher: str) -> frozenset[str]:
    """Return the launcher's pointers that no other pointer may overlap with.

    These are declared `__restrict__`, or handed as they stand to a kernel's parameter that is: a caller who
    passes overlapping memory there has undefined results already.
    """
    own = [f for f in unit.host_functions if launcher in (f.name, f.qualified_name)]
    parameters = {
        parameter.name: parameter.is_restrict for function in own for parameter in function.parameters
    }
    names = {name for name, is_restrict in parameters.items() if is_restrict}
    for launch in unit.launches:
        kernel = unit.kernel(launch.kernel)
        if kernel is None or launch.function != launcher.rsplit("::", 1)[-1]:
            continue
        given = zip(launch.arguments, kernel.parameters, strict=False)
        names |= {argument.text.strip() for argument, parameter in given if parameter.is_restrict}
    return frozenset(names & parameters.keys())


def has_main(unit: SourceUnit) -> bool:
    """Whether the file defines `main`."""
    return any(function.name == "main" for function in unit.host_functions)


def find_kernels(unit: SourceUnit) -> tuple[KernelDecl, ...]:
    """Return the kernels of the file in the order of the text."""
    launched = {launch.kernel for launch in unit.launches}
    return tuple(_kernel(kernel, launched) for kernel in unit.kernels)


def called_names(unit: SourceUnit, function: FunctionDef) -> tuple[str, ...]:
    """Return the names that a function's body calls, without namespaces and template arguments."""
    if function.body is None:
        return ()
    found: dict[str, None] = {}
    for node in walk(function.body):
        target = node.child_by_field_name("function") if node.type == "call_expression" else None
        if target is not None and not _is_launch(node):
            found[unit.text_of(target).split("<")[0].split("::")[-1]] = None
    return tuple(found)


def _is_launch(call: Node) -> bool:
    return any(child.type == "kernel_call_syntax" for child in call.children)


def _launched_kernels(unit: SourceUnit, function: FunctionDef) -> tuple[str, ...]:
    by_name = {entry.name: entry for entry in unit.host_functions}
    pending, seen = [function.name], {function.name}
    kernels: dict[str, None] = {}
    while pending:
        current = pending.pop(0)
        for launch in unit.launches:
            if launch.function == current:
                kernels[launch.kernel] = None
        for name in called_names(unit, by_name[current]):
            if name in by_name and name not in seen:
                seen.add(name)
                pending.append(name)
    return tuple(kernels)


def _launcher(function: FunctionDef, kernels: tuple[str, ...]) -> LauncherDecl:
    return LauncherDecl(
        name=function.name,
        qualified_name=function.qualified_name,
        parameters=_declared(function),
        return_type=function.return_type,
        c_linkage=function.c_linkage,
        line=function.line,
        kernels=kernels,
        is_template=function.is_templated,
        is_static="static" in function.qualifiers or "" in function.namespace,
        span=function.span,
    )


def _kernel(kernel: KernelDef, launched: set[str]) -> KernelDecl:
    return KernelDecl(
        name=kernel.name,
        qualified_name=kernel.qualified_name,
        parameters=_declared(kernel),
        template_parameters=tuple(parameter.name for parameter in kernel.template_parameters),
        line=kernel.line,
        c_linkage=kernel.c_linkage,
        is_launched=kernel.name in launched,
    )


def _declared(function: FunctionDef) -> tuple[DeclaredParameter, ...]:
    return tuple(
        DeclaredParameter(p.name, p.type_text, p.pointer_depth, p.is_const) for p in function.parameters
    )
