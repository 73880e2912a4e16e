"""Loads of a loop that can be made before the turn that uses them: where their address is known by then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.counted_loops import CountedLoop
from kernelskill.skills.device_code import macros_in, units_of, words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_pure, plain_type
from kernelskill.skills.kept_elements import is_element, is_own_type
from kernelskill.skills.loop_effects import is_invariant, is_unconditional
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.pointers import Space
from kernelskill.source.purity import is_pure_call
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_DEPTH = 6
_WORD = re.compile(r"[A-Za-z_]\w*")
_ATOM = re.compile(r"\w+(\[\w+\])?")
_SUM = re.compile(r"\((\w+ \+ \w+|\(\w+\)\w+)\)")
_STATEMENTS = ("expression_statement", "declaration", "return_statement", "argument_list")


@dataclass(frozen=True)
class Fetch:
    """An expression that loads, and the variable that is to hold it."""

    node: Node = field(repr=False)
    """An element, or a choice between elements and other values."""
    kind: str
    """Type of the value."""
    base: str
    loads: tuple[Access, ...]


@dataclass(frozen=True)
class FetchReader:
    """Finds the fetches of one loop."""

    unit: SourceUnit
    kernel: KernelDef
    counted: CountedLoop
    accesses: Sequence[Access]
    """Every access of the loop."""
    context: SkillContext

    def fetches(self, *, choices: bool = False) -> tuple[list[Fetch], tuple[str, ...]]:
        """Return the fetches with the assumptions that they rest on.

        Args:
            choices: Whether `inside ? x[i] : 0` counts as one.

        Raises:
            SkillRefused: There is none, with the reason against the first load.
        """
        found: list[Fetch] = []
        assumptions: list[str] = []
        reasons: list[str] = []
        for access in self.accesses:
            if access.mode is not AccessMode.READ or not self._is_plain(access):
                continue
            try:
                fetch = self._fetch(access, choices)
                for load in fetch.loads:
                    assumptions += self._check_stores(load)
            except SkillRefused as refused:
                reasons.append(refused.reason)
                continue
            if fetch.node not in [other.node for other in found]:
                found.append(fetch)
        if not found:
            line = self.counted.loop.line
            raise SkillRefused(reasons[0] if reasons else f"the loop on line {line} loads nothing")
        return found, tuple(dict.fromkeys(assumptions))

    def _is_plain(self, access: Access) -> bool:
        in_body = self.counted.loop.body_span.contains(access.span)
        return in_body and is_element(self.unit, access.node) and self._is_loadable(access)

    def _is_loadable(self, access: Access) -> bool:
        """Whether what a load reads is known well enough: any memory will do where the loop stores nothing."""
        if access.root is None:
            return not any(other.mode.writes for other in self.accesses)
        return access.space is Space.GLOBAL and is_own_type(access)

    def _fetch(self, access: Access, choices: bool) -> Fetch:
        text = f"line {access.line}: {self.unit.text_of(access.node)}"
        node = access.node
        kind = access.element_type or field_element(self.unit, self.kernel, self.context, access)
        if choices and not is_unconditional(self.unit, self.counted.loop, node):
            node = self._choice_around(node)
            kind = ExpressionTypes(self.unit, self.kernel).of(node) or ""
            if node != access.node and not is_pure(self.unit, node):
                raise SkillRefused(f"{text} stands in an expression that does more than load")
        if not is_unconditional(self.unit, self.counted.loop, node):
            raise SkillRefused(f"{text} is not loaded in every turn")
        if not kind or kind.endswith("*") or kind == "auto":
            raise SkillRefused(f"{text} is of unknown type")
        self._refuse_calls(node, text)
        if not self._moves(node):
            raise SkillRefused(f"{text} is the same in every turn")
        self.text(node, {}, self.counted.variable.name)
        loads = tuple(a for a in self._loads_behind(node))
        if not all(self._is_loadable(load) for load in loads):
            raise SkillRefused(f"{text}: what its index is loaded from can't be told")
        pointer = access.node.child_by_field_name("argument")
        field_name = pointer.child_by_field_name("field") if pointer is not None else None
        return Fetch(node, kind, self.unit.text_of(field_name) if field_name else access.base, loads)

    def _refuse_calls(self, node: Node, text: str) -> None:
        """Decline an expression with a call that does more than compute, or a macro that hides variables."""
        local_names = {variable.name for variable in self.kernel.locals}
        for entry in walk(node):
            if entry.type == "call_expression" and not is_pure(self.unit, entry):
                name = called_name(self.unit, entry)
                if self.unit.macro(name) is None or not is_pure_call(self.unit, entry):
                    raise SkillRefused(f"{text} calls {name!r}")
            if entry.type != "identifier" or self.unit.macro(self.unit.text_of(entry)) is None:
                continue
            for macro in macros_in(self.unit, [self.unit.text_of(entry)], self.context):
                if local_names & set(_WORD.findall(macro.possible)):
                    raise SkillRefused(f"{text}: macro {macro.name!r} uses variables of the kernel")

    def _choice_around(self, node: Node) -> Node:
        found = node
        for parent in ancestors(node):
            if parent.type == "conditional_expression":
                found = parent
            if parent.type in _STATEMENTS or parent == self.counted.loop.node:
                break
        return found

    def _moves(self, node: Node) -> bool:
        """Whether a value may differ from turn to turn."""
        flow = flow_of(self.unit, self.kernel)
        for entry in walk(node):
            declared = flow.resolve(entry) if entry.type == "identifier" else None
            if declared is self.counted.variable:
                return True
            inner = self._initialiser(declared) if isinstance(declared, VariableDef) else None
            if inner is not None and self._moves(inner):
                return True
        return False

    def _initialiser(self, declared: VariableDef) -> Node | None:
        """Return what a constant of the loop's body is."""
        flow = flow_of(self.unit, self.kernel)
        in_body = self.counted.loop.body_span.contains(declared.name_span)
        plain = not declared.dimensions and not declared.pointer_depth and not declared.is_reference
        return declared.initialiser if in_body and plain and flow.is_constant(declared) else None

    def _loads_behind(self, node: Node, depth: int = 0) -> list[Access]:
        """Return every load that a value needs, those of constants of the body included."""
        flow = flow_of(self.unit, self.kernel)
        found = [access for access in self.accesses if span_of(node).contains(access.span)]
        for entry in walk(node):
            declared = flow.resolve(entry) if entry.type == "identifier" else None
            inner = self._initialiser(declared) if isinstance(declared, VariableDef) else None
            if inner is not None and depth < _DEPTH:
                found += self._loads_behind(inner, depth + 1)
        return found

    def text(self, node: Node, names: Mapping[int, str], variable: str, depth: int = 0) -> str:
        """Return an expression as C text for another place of the loop.

        Args:
            node: The expression.
            names: What to write instead of some nodes, by id.
            variable: What to write instead of the loop's variable.
            depth: Of constants within constants.

        Raises:
            SkillRefused: It needs a variable that the turn computes in another way.
        """
        text, position = "", node.start_byte
        stack = [node]
        while stack:
            entry = stack.pop()
            replaced = "" if entry.type == "comment" else self._replaced(entry, names, variable, depth)
            if replaced is None:
                stack.extend(reversed(entry.children))
                continue
            text += self.unit.text_of(Span(position, entry.start_byte)) + replaced
            position = entry.end_byte
        return " ".join((text + self.unit.text_of(Span(position, node.end_byte))).split())

    def _replaced(self, entry: Node, names: Mapping[int, str], variable: str, depth: int) -> str | None:
        """Return what to write instead of a node; None to look below it."""
        if entry.id in names:
            return names[entry.id]
        if entry.type in ("assignment_expression", "update_expression", "lambda_expression"):
            raise SkillRefused(f"line {self.unit.line_of(entry)} changes a variable inside an expression")
        if entry.type != "identifier":
            return None
        declared = flow_of(self.unit, self.kernel).resolve(entry)
        if declared is self.counted.variable:
            whole = entry.parent is not None and entry.parent.type == "subscript_argument_list"
            bare = _SUM.fullmatch(variable) if whole else None
            return bare[1] if bare is not None else variable
        if isinstance(declared, VariableDef) and self.counted.loop.span.contains(declared.name_span):
            return self._constant_text(declared, names, variable, depth)
        if not is_invariant(self.unit, self.kernel, entry, self.counted.loop.span):
            name = self.unit.text_of(entry)
            raise SkillRefused(f"line {self.unit.line_of(entry)}: {name!r} is known in its own turn only")
        return None

    def _constant_text(
        self, declared: VariableDef, names: Mapping[int, str], variable: str, depth: int
    ) -> str:
        value = self._initialiser(declared)
        name, line = declared.name, self.unit.line_of(declared.name_span)
        if value is None or depth > _DEPTH or value.type in ("initializer_list", "argument_list"):
            raise SkillRefused(f"line {line}: {name!r} is known in its own turn only")
        if not is_pure(self.unit, value):
            raise SkillRefused(f"line {line}: {name!r} is computed by more than an expression")
        text = self.text(value, names, variable, depth + 1)
        own = plain_type(declared.base_type)
        if declared.base_type != "auto" and ExpressionTypes(self.unit, self.kernel).of(value) != own:
            return f"({declared.base_type})({text})"
        return text if _ATOM.fullmatch(text) else f"({text})"

    def _check_stores(self, load: Access) -> list[str]:
        """Decline where a store of the loop, in whatever turn, may reach what a load reads."""
        found = []
        for other in self.accesses:
            if not other.mode.writes:
                continue
            answer = separate(self.unit, self.kernel, load, other, self.context)
            if not answer.disjoint or other.root is load.root:
                text = self.unit.text_of(other.node)
                raise SkillRefused(
                    f"line {other.line} writes {text}, which may be {self.unit.text_of(load.node)} of a later turn"
                )
            found += [answer.assumption] if answer.assumption else []
        return found


def field_element(unit: SourceUnit, kernel: KernelDef, context: SkillContext, access: Access) -> str:
    """Return what a pointer that is a field of a parameter points at; empty where that can't be told."""
    pointer = access.node.child_by_field_name("argument")
    owner = pointer.child_by_field_name("argument") if pointer is not None else None
    name = pointer.child_by_field_name("field") if pointer is not None else None
    if pointer is None or owner is None or name is None or owner.type != "identifier":
        return ""
    declared = flow_of(unit, kernel).resolve(owner)
    if not isinstance(declared, ParameterDef) or declared.pointer_depth or declared.is_reference:
        return ""
    found = []
    for other in units_of(unit, context):
        for node in walk(other.root):
            title = node.child_by_field_name("name") if node.type == "struct_specifier" else None
            body = node.child_by_field_name("body")
            if title is not None and body is not None and other.text_of(title) == declared.pointee_type:
                found += [_pointee(other, member, unit.text_of(name)) for member in named(body)]
    kinds = [kind for kind in found if kind]
    return kinds[0] if len(kinds) == 1 else ""


def _pointee(unit: SourceUnit, member: Node, name: str) -> str:
    """Return what a member points at; empty where it is another, or no pointer to plain elements."""
    kind, declared = member.child_by_field_name("type"), member.child_by_field_name("declarator")
    if kind is None or declared is None or declared.type != "pointer_declarator":
        return ""
    words = [word for word in words_in(unit, declared) if word not in ("__restrict__", "const")]
    single = len(member.children_by_field_name("declarator")) == 1
    plain = words == [name] and single and unit.text_of(declared).count("*") == 1
    return " ".join(unit.text_of(kind).split()) if plain and "volatile" not in words_in(unit, member) else ""


def body_text(unit: SourceUnit, counted: CountedLoop, names: Mapping[int, str]) -> list[str]:
    """Return the lines of a loop's body with some nodes replaced, their common indentation taken off."""
    body = counted.loop.body
    span = span_of(body)
    if body.type == "compound_statement":
        span = Span(span.start + 1, span.end - 1)
    text, position = "", span.start
    stack = [body]
    while stack:
        entry = stack.pop()
        if entry.id in names:
            text += unit.text_of(Span(position, entry.start_byte)) + names[entry.id]
            position = entry.end_byte
        else:
            stack.extend(reversed(entry.children))
    text += unit.text_of(Span(position, span.end))
    lines = text.replace("\r\n", "\n").split("\n")
    head = [lines[0].strip()] if lines[0].strip() else []
    rest = [line.rstrip() for line in lines[1:] if line.strip()]
    least = min((len(line) - len(line.lstrip()) for line in rest), default=0)
    return [*head, *(line[least:] for line in rest)]


def refuse_repeated(unit: SourceUnit, counted: CountedLoop) -> None:
    """Decline a loop whose body can't be written twice.

    Raises:
        SkillRefused: It declares a static or shared variable, or has a label.
    """
    line = counted.loop.line
    if {"static", "__shared__"} & set(words_in(unit, counted.loop.node)):
        raise SkillRefused(f"the loop on line {line} can't be repeated")
    if any(node.type in ("labeled_statement", "goto_statement") for node in walk(counted.loop.node)):
        raise SkillRefused(f"the loop on line {line} has a label")
