"""Let each thread run pieces of a kernel for several neighbouring elements, in loops over its items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.device_code import BARRIERS, WARP_WORDS, words_outside
from kernelskill.skills.expression_types import is_pure
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import LOOPS, flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

Replacement = tuple[Span, str]
_THREAD_WORDS = frozenset({"threadIdx", "blockDim"})


@dataclass
class Segment:
    """Statements that run for one item after the other."""

    statements: Sequence[Node] = field(repr=False)
    before: list[str] = field(default_factory=list)
    """Declarations above its loop."""
    replaced: list[Replacement] = field(default_factory=list)
    texts: dict[int, list[str]] = field(default_factory=dict)
    """Lines that stand for a whole statement, by the node's id."""
    last: list[str] = field(default_factory=list)
    """Lines at the end of a turn."""

    def holds(self, node: Node) -> bool:
        """Whether a node is part of it."""
        return any(span_of(statement).contains(span_of(node)) for statement in self.statements)


class ItemWriter:
    """Knows which variables of a kernel's body differ from element to element, and writes its segments."""

    def __init__(
        self,
        unit: SourceUnit,
        kernel: KernelDef,
        context: SkillContext,
        threads: int,
        fresh: Callable[[str], str],
    ) -> None:
        """Prepare.

        Args:
            unit: The file.
            kernel: The kernel.
            context: What may be known besides.
            threads: Elements of a block.
            fresh: Gives a name that nothing uses.
        """
        self.unit, self.kernel, self.context = unit, kernel, context
        self.threads, self.fresh = threads, fresh
        self.element = fresh("element")
        self.flow = flow_of(unit, kernel)
        self.given: dict[int, str] = {}
        """Text of the value with which a segment begins, by variable, where something else provides it."""

    def check(self, statements: Iterable[Node], array: VariableDef, *, may_return: bool) -> None:
        """Decline statements that can't run for one element after the other; `array` is that of the scan.

        Raises:
            SkillRefused: One of them is such.
        """
        if words_outside(self.unit, self.kernel, self.context) & (_THREAD_WORDS | BARRIERS | WARP_WORDS):
            raise SkillRefused(
                "functions or macros that it uses ask which thread runs them, or wait for others"
            )
        for write in self.flow.writes:
            if isinstance(write.declared, ParameterDef):
                raise SkillRefused(f"it changes its parameter {write.declared.name!r}")
        for statement in statements:
            for access in find_accesses(self.unit, self.kernel):
                if span_of(statement).contains(access.span) and access.is_shared and access.root is not array:
                    raise SkillRefused(f"line {access.line} uses other shared memory")
            refuse_unclear(self.unit, self.kernel, statement, self.context)
            for node in walk(statement):
                self._check_node(node, may_return=may_return)

    def _check_node(self, node: Node, *, may_return: bool) -> None:
        line = self.unit.line_of(node)
        if node.type == "return_statement":
            looped = any(outer.type in (*LOOPS, "switch_statement") for outer in self._within(node))
            if looped or not may_return:
                raise SkillRefused(f"line {line} leaves the kernel")
        if node.type == "identifier" and self.unit.text_of(node) in _THREAD_WORDS:
            parent = node.parent
            text = "".join(self.unit.text_of(parent).split()) if parent is not None else ""
            if text.partition(".")[2] not in ("x", "y", "z"):
                raise SkillRefused(f"line {line} hands on which thread runs it")
        if node.type == "call_expression":
            inside = [a for a in find_accesses(self.unit, self.kernel) if span_of(node).contains(a.span)]
            atomic = any(access.mode is AccessMode.ATOMIC for access in inside)
            if atomic and any(outer.type in LOOPS for outer in self._within(node)):
                raise SkillRefused(f"line {line} may wait for another thread")

    def _within(self, node: Node) -> Iterable[Node]:
        for outer in ancestors(node):
            if outer == self.kernel.body:
                return
            yield outer

    def is_uniform(self, statement: Node) -> bool:
        """Whether a declaration gives all threads the same values for good."""
        return self._is_fixed(statement, of_thread=False)

    def is_recomputable(self, statement: Node) -> bool:
        """Whether a declaration can be written again, with the same values."""
        return self._is_fixed(statement, of_thread=True)

    def is_repeatable(self, node: Node) -> bool:
        """Whether an expression has the same value wherever it is made again."""
        accesses = find_accesses(self.unit, self.kernel)
        reads = any(span_of(node).contains(access.span) for access in accesses)
        return not reads and is_pure(self.unit, node) and self._is_fixed_expression(node, of_thread=True)

    def _is_fixed(self, statement: Node, *, of_thread: bool, outer: tuple[Node, ...] = ()) -> bool:
        if statement in outer:
            return True  # it is being looked at
        variables = self._declared_by(statement)
        if statement.type != "declaration" or not variables:
            return False
        for variable in variables:
            plain = not (variable.dimensions or variable.is_reference)
            written = any(write.operator != "init" for write in self.flow.writes_to(variable))
            start = variable.initialiser
            if not plain or written or start is None or not is_pure(self.unit, start):
                return False
            accesses = find_accesses(self.unit, self.kernel)
            if any(span_of(start).contains(access.span) for access in accesses):
                return False
            if not self._is_fixed_expression(start, of_thread=of_thread, outer=(*outer, statement)):
                return False
        return True

    def _is_fixed_expression(self, node: Node, *, of_thread: bool, outer: tuple[Node, ...] = ()) -> bool:
        for entry in walk(node):
            if entry.type != "identifier":
                continue
            declared = self.flow.resolve(entry)
            if declared is None and self.unit.text_of(entry) == "threadIdx" and not of_thread:
                return False
            if isinstance(declared, VariableDef) and declared.scope == self.kernel.body:
                if not self._is_fixed(declared.declaration, of_thread=of_thread, outer=outer):
                    return False
            elif isinstance(declared, VariableDef) and not declared.is_const:
                return False
        return True

    def _declared_by(self, statement: Node) -> list[VariableDef]:
        return [v for v in self.kernel.locals if v.declaration == statement]

    # Writing

    def write(self, segments: Sequence[Segment], items: str, item: str) -> list[str]:
        """Return the text of each segment, its indentation that of a kernel's body without the first."""
        texts: list[str] = []
        kept = self._kept(segments)
        for number, segment in enumerate(segments):
            lines = [*segment.before]
            for variable, home in kept.items():
                if segment.holds(variable.declaration):
                    lines.append(f"{variable.base_type} {home}[{items}];")
            lines += ["#pragma unroll", f"for (int {item} = 0; {item} < {items}; ++{item}) {{"]
            inner = [f"const unsigned {self.element} = threadIdx.x * {items} + {item};"]
            inner += self._provided(segments, number, kept, item)
            for statement in segment.statements:
                inner += self.gap(statement)
                inner += segment.texts.get(statement.id) or [self.whole(statement, segment.replaced)]
            inner += segment.last
            for variable, home in kept.items():
                if segment.holds(variable.declaration) or self._is_written(segment, variable):
                    inner.append(f"{home}[{item}] = {variable.name};")
            word = re.compile(rf"\b{self.element}\b")
            inner = inner if any(word.search(line) for line in inner[1:]) else inner[1:]
            lines += indented(inner)
            texts.append("\n".join(indented([*lines, "}"])))
        return texts

    def _provided(
        self, segments: Sequence[Segment], number: int, kept: dict[VariableDef, str], item: str
    ) -> list[str]:
        """Return the declarations of variables of earlier segments that a segment uses."""
        wanted: list[VariableDef] = []
        for statement in segments[number].statements:
            self._collect(statement, segments, number, wanted, kept)
        lines: list[str] = []
        done: list[Node] = []
        for variable in sorted(wanted, key=lambda v: v.name_span.start):
            if id(variable) in self.given:
                lines.append(f"{self._type_of(variable)} {variable.name} = {self.given[id(variable)]};")
            elif variable in kept:
                lines.append(f"{self._type_of(variable)} {variable.name} = {kept[variable]}[{item}];")
            elif variable.declaration not in done:
                done.append(variable.declaration)
                lines.append(self.patched(variable.declaration, []))
        return lines

    def _collect(
        self,
        node: Node,
        segments: Sequence[Segment],
        number: int,
        wanted: list[VariableDef],
        kept: dict[VariableDef, str],
    ) -> None:
        """Collect the variables that a piece of code needs, those behind recomputed ones included."""
        skipped = [span for span, _ in segments[number].replaced]
        for entry in walk(node):
            gone = any(span.contains(span_of(entry)) for span in skipped)
            declared = self.flow.resolve(entry) if entry.type == "identifier" and not gone else None
            if not isinstance(declared, VariableDef) or declared in wanted:
                continue
            if declared.scope != self.kernel.body or not self._is_earlier(segments, number, declared):
                continue
            wanted.append(declared)
            if id(declared) not in self.given and declared not in kept:
                self._collect(declared.declaration, segments, number, wanted, kept)

    def _is_earlier(self, segments: Sequence[Segment], number: int, variable: VariableDef) -> bool:
        return any(segment.holds(variable.declaration) for segment in segments[:number])

    def _kept(self, segments: Sequence[Segment]) -> dict[VariableDef, str]:
        """Return the variables whose values wait in arrays from one segment to the next, with their names."""
        kept: dict[VariableDef, str] = {}
        for number in range(1, len(segments)):
            wanted: list[VariableDef] = []
            for statement in segments[number].statements:
                self._collect(statement, segments, number, wanted, kept)
            for variable in wanted:
                if (
                    id(variable) in self.given
                    or variable in kept
                    or self.is_recomputable(variable.declaration)
                ):
                    continue
                if variable.dimensions or variable.is_reference or variable.base_type == "auto":
                    raise SkillRefused(f"{variable.name!r} is no plain variable")
                if variable.pointer_depth:
                    raise SkillRefused(f"the pointer {variable.name!r} changes from element to element")
                kept[variable] = self.fresh(f"{variable.name}_kept")
        return kept

    def _type_of(self, variable: VariableDef) -> str:
        return variable.base_type

    def _is_written(self, segment: Segment, variable: VariableDef) -> bool:
        return any(segment.holds(write.node) for write in self.flow.writes_to(variable))

    def patched(self, node: Node | Span, replaced: Sequence[Replacement]) -> str:
        """Return the text of a statement for an element, with replacements."""
        span = span_of(node)
        changes = [entry for entry in replaced if span.contains(entry[0])]
        changes += self._of_threads(span, [entry[0] for entry in changes])
        data = self.unit.data[span.start : span.end]
        for place, new in sorted(changes, key=lambda entry: -entry[0].start):
            data = data[: place.start - span.start] + new.encode() + data[place.end - span.start :]
        return self._dedented(data.decode(), self.unit.indent_of(span))

    def gap(self, statement: Node) -> list[str]:
        """Return the comments and pragmas above a statement of the body.

        Raises:
            SkillRefused: Something else stands there.
        """
        body = self.kernel.body
        siblings = named(body) if body is not None else []
        ends = [sibling.end_byte for sibling in siblings if sibling.end_byte <= statement.start_byte]
        start = max(ends) if ends else body.start_byte + 1 if body is not None else statement.start_byte
        text = self.unit.text_of(Span(start, statement.start_byte))
        text = text.removeprefix(self._remark_behind(start)) if ends else text
        if re.search(r"^\s*#\s*(?!pragma\b)", text, re.MULTILINE):
            raise SkillRefused(f"line {self.unit.line_of(statement)} follows a directive")
        return [self._dedented(text.strip(), self.unit.indent_of(statement))] if text.strip() else []

    def _remark_behind(self, end: int) -> str:
        """Return the comment behind a statement on its last line, with the space before it."""
        line = self.unit.syntax.line_span(self.unit.line_of(end))
        rest = self.unit.text_of(Span(end, max(end, line.end)))
        return rest if rest.strip().startswith("//") else ""

    def whole(self, statement: Node, replaced: Sequence[Replacement]) -> str:
        """Return the text of a statement of the body for an element, with the comment behind it."""
        return self.patched(statement, replaced) + self._remark_behind(statement.end_byte)

    @staticmethod
    def _dedented(text: str, indent: str) -> str:
        return "\n".join(line.removeprefix(indent) for line in text.split("\n"))

    def _of_threads(self, span: Span, done: Sequence[Span]) -> list[Replacement]:
        found: list[Replacement] = []
        for node in walk(self.kernel.node):
            place = span_of(node)
            if not span.contains(place) or any(other.contains(place) for other in done):
                continue
            text = "".join(self.unit.text_of(node).split()) if node.type == "field_expression" else ""
            if text == "threadIdx.x":
                found.append((place, self.element))
            elif text == "blockDim.x":
                found.append((place, f"{self.threads}u"))
            elif node.type == "return_statement":
                found.append((place, "continue;"))
        return found


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines one step further in; directives stay where they are."""
    single = [line for text in lines for line in text.split("\n")]
    return [line if line.startswith("#") or not line else f"    {line}" for line in single]
