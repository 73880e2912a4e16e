"""One CUDA source file, parsed: its functions, launches, macros and the places to leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from kernelskill.computed import computed
from kernelskill.source.constants import Constants
from kernelskill.source.declarations import VariableDef, read_variables
from kernelskill.source.definitions import FunctionDef, FunctionKind, KernelDef, find_functions
from kernelskill.source.launches import LaunchSite, find_launches
from kernelskill.source.preprocessor import (
    ConditionalDef,
    IncludeDef,
    MacroDef,
    find_conditionals,
    find_includes,
    find_macros,
    with_given,
)
from kernelskill.source.syntax import Span, SyntaxTree, ancestors, parse_syntax, span_of, walk

_OFF, _ON = "kernelskill: off", "kernelskill: on"
_EXCERPT = 60


@dataclass(frozen=True)
class Problem:
    """A region that could not be parsed."""

    span: Span
    line: int
    message: str


@dataclass(frozen=True, eq=False)
class SourceUnit:
    """A parsed source file. Build it with `SourceUnit.parse`."""

    path: str
    syntax: SyntaxTree = field(repr=False)
    macros: tuple[MacroDef, ...]
    includes: tuple[IncludeDef, ...]
    conditionals: tuple[ConditionalDef, ...]
    all_functions: tuple[FunctionDef, ...]
    """Kernels, device and host functions, prototypes included, in the order of the text."""
    globals: tuple[VariableDef, ...]
    locked: tuple[Span, ...]
    """Ranges under `// kernelskill: off`, up to `// kernelskill: on` or the end of the file."""
    problems: tuple[Problem, ...]

    @staticmethod
    def parse(text: str, path: str = "kernel.cu", given: Mapping[str, str] | None = None) -> SourceUnit:
        """Parse a source. Text that does not parse still gives a unit, with `problems`.

        Args:
            text: The source.
            path: Its path in the candidate.
            given: Macros that the compiler's flags define (`preprocessor.given_macros`): what depends on
                one has no known value.
        """
        syntax = parse_syntax(text)
        macros = find_macros(syntax)
        conditionals = find_conditionals(syntax)
        problems = _find_problems(syntax)
        functions = _with_opaque_reasons(syntax, find_functions(syntax, macros), problems, conditionals)
        return SourceUnit(
            path=path,
            syntax=syntax,
            macros=with_given(macros, given) if given else macros,
            includes=find_includes(syntax),
            conditionals=conditionals,
            all_functions=functions,
            globals=_find_globals(syntax),
            locked=_find_locked(syntax),
            problems=problems,
        )

    @property
    def text(self) -> str:
        return self.syntax.text

    @property
    def data(self) -> bytes:
        """The text in UTF-8: what all offsets count."""
        return self.syntax.data

    @property
    def root(self) -> Node:
        return self.syntax.root

    @computed
    def kernels(self) -> tuple[KernelDef, ...]:
        """The kernels that have a body."""
        return tuple(f for f in self.all_functions if isinstance(f, KernelDef) and f.body is not None)

    @computed
    def functions(self) -> tuple[FunctionDef, ...]:
        """The device and host functions that have a body."""
        return tuple(f for f in self.all_functions if not isinstance(f, KernelDef) and f.body is not None)

    @property
    def device_functions(self) -> tuple[FunctionDef, ...]:
        return tuple(f for f in self.functions if f.kind is not FunctionKind.HOST)

    @property
    def host_functions(self) -> tuple[FunctionDef, ...]:
        return tuple(f for f in self.functions if f.kind is FunctionKind.HOST)

    @computed
    def constants(self) -> Constants:
        """What folds integer expressions of this file."""
        return Constants.of(self.syntax, self.macros, self.globals)

    @computed
    def launches(self) -> tuple[LaunchSite, ...]:
        """Every kernel launch in the order of the text."""
        return find_launches(self.syntax, self.all_functions, self.constants)

    def launches_of(self, kernel: FunctionDef | str) -> tuple[LaunchSite, ...]:
        """Return the launches of one kernel."""
        name = kernel if isinstance(kernel, str) else kernel.name.split("<")[0]
        return tuple(launch for launch in self.launches if launch.kernel == name)

    @property
    def newline(self) -> str:
        """The line break of most lines."""
        carriage = self.data.count(b"\r\n")
        return "\r\n" if carriage * 2 > self.data.count(b"\n") else "\n"

    def kernel(self, name: str) -> KernelDef | None:
        """Return the kernel of that name, qualified or not."""
        return next((k for k in self.kernels if name in (k.name, k.qualified_name)), None)

    def function(self, name: str) -> FunctionDef | None:
        """Return the device or host function of that name, qualified or not."""
        return next((f for f in self.functions if name in (f.name, f.qualified_name)), None)

    def macro(self, name: str) -> MacroDef | None:
        """Return the last macro of that name."""
        return next((m for m in reversed(self.macros) if m.name == name), None)

    def text_of(self, node: Node | Span) -> str:
        """Return the original text of a node or span; `node.text` must not be used."""
        return self.syntax.text_of(node)

    def operator(self, node: Node) -> str:
        """Return the operator of an expression; empty if it has none."""
        return self.syntax.operator(node)

    def line_of(self, position: Node | Span | int) -> int:
        """Return the line, counted from 1."""
        return self.syntax.line_of(position)

    def indent_of(self, position: Node | Span | int) -> str:
        """Return the white space that starts the line of a position."""
        text = self.text_of(self.syntax.line_span(self.line_of(position)))
        return text[: len(text) - len(text.lstrip(" \t"))]

    def is_locked(self, position: Node | Span) -> bool:
        """Whether a range touches a locked region."""
        span = span_of(position)
        return any(span.overlaps(region) or _is_inside(span, region) for region in self.locked)

    def enclosing_function(self, node: Node) -> FunctionDef | None:
        """Return the innermost function whose definition holds a node."""
        inside = [f for f in self.all_functions if f.span.contains(span_of(node))]
        return min(inside, key=lambda f: f.span.end - f.span.start, default=None)


def _is_inside(span: Span, region: Span) -> bool:
    return region.start < span.start and span.end < region.end


def _find_problems(syntax: SyntaxTree) -> tuple[Problem, ...]:
    if not syntax.root.has_error:
        return ()
    found = []
    for node in walk(syntax.root):
        if node.type == "ERROR":
            excerpt = " ".join(syntax.text_of(node).split())[:_EXCERPT]
            found.append(Problem(span_of(node), syntax.line_of(node), f"cannot parse {excerpt!r}"))
        elif node.is_missing:
            found.append(Problem(span_of(node), syntax.line_of(node), f"missing {node.type!r}"))
    return tuple(found)


def _with_opaque_reasons(
    syntax: SyntaxTree,
    functions: tuple[FunctionDef, ...],
    problems: tuple[Problem, ...],
    conditionals: tuple[ConditionalDef, ...],
) -> tuple[FunctionDef, ...]:
    counts: dict[tuple[str, bool], int] = {}
    for function in functions:
        key = (function.qualified_name, function.body is not None)
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        function
        if function.opaque_reason
        else replace(
            function,
            opaque_reason=_opaque_reason(function, problems, conditionals, counts)
            or _false_cast(syntax, function),
        )
        for function in functions
    )


def _false_cast(syntax: SyntaxTree, function: FunctionDef) -> str:
    """Return where the tree has a variable of a function as a type: its uses would not be found."""
    for span in syntax.false_casts:
        if function.span.contains(span):
            name = syntax.text_of(span)
            return (
                f"line {syntax.line_of(span)}: ({name}) cannot be told from a cast; leave its parentheses out"
            )
    return ""


def _opaque_reason(
    function: FunctionDef,
    problems: tuple[Problem, ...],
    conditionals: tuple[ConditionalDef, ...],
    counts: dict[tuple[str, bool], int],
) -> str:
    for problem in problems:
        inside = function.span.start <= problem.span.start <= function.span.end
        if inside or problem.span.overlaps(function.span):
            return f"line {problem.line}: {problem.message}"
    for conditional in conditionals:
        if function.span.contains(conditional.span):
            return f"it contains the preprocessor conditional {conditional.condition!r}"
    number = counts[function.qualified_name, True] if function.body is not None else 1
    return f"{number} definitions are named {function.qualified_name!r}" if number > 1 else ""


def _find_globals(syntax: SyntaxTree) -> tuple[VariableDef, ...]:
    found: list[VariableDef] = []
    for node in walk(syntax.root):
        if node.type == "declaration" and not _is_inside_body(node):
            found.extend(read_variables(syntax, node, in_device_code=False))
    return tuple(found)


def _is_inside_body(node: Node) -> bool:
    inner = ("compound_statement", "field_declaration_list")
    return any(parent.type in inner for parent in ancestors(node))


def _find_locked(syntax: SyntaxTree) -> tuple[Span, ...]:
    regions: list[Span] = []
    start: int | None = None
    for node in walk(syntax.root):
        if node.type != "comment":
            continue
        words = syntax.text_of(node).strip("/* \t\r\n")
        if start is None and words.startswith(_OFF):
            start = node.start_byte
        elif start is not None and words.startswith(_ON) and not words.startswith(_OFF):
            regions.append(Span(start, node.end_byte))
            start = None
    if start is not None:
        regions.append(Span(start, len(syntax.data)))
    return tuple(regions)
