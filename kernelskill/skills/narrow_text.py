"""Write a loop with a copy whose turns are done in 32 bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.narrow_loops import NarrowLoop, NarrowVariable
from kernelskill.skills.text_changes import Replacement, clean_text, replaced_text
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.loops import LoopKind
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import Node, Span, strip_parentheses
from kernelskill.source.unit import SourceUnit

_STEP = "    "
_WHY = "// Small values need 32 bits only; an operation on 64 takes several instructions."
_LOOSE = frozenset({"conditional_expression", "assignment_expression", "comma_expression"})


def narrow_text(
    unit: SourceUnit, found: NarrowLoop, context: SkillContext, *, again: bool
) -> tuple[Span, str]:
    """Return the range of a loop, and its new text.

    Args:
        unit: The file.
        found: The loop.
        context: For a name that nobody uses.
        again: Whether values that have become small again are narrowed again, in an outer loop.
    """
    over, begun, taken = (fresh_name(unit, context, name) for name in ("is_over", "is_begun", "narrow_turn"))
    return _Writer(unit, found, over, begun, taken).whole(again)


class _Writer:
    """Puts the copies of a loop together."""

    def __init__(self, unit: SourceUnit, found: NarrowLoop, over: str, begun: str, taken: str) -> None:
        self.unit, self.found, self.loop = unit, found, found.loop
        self.over = over if found.loop.has_break else ""
        """The variable that tells that the loop was broken out of; empty where it never is."""
        self.begun = begun if found.loop.kind is LoopKind.DO else ""
        """The variable that tells that the first turn, which has no test, has begun."""
        self.breaks = [(node, _broken(node, over)) for node in _breaks(found.loop.body)]
        tested = any(entry.is_tested for entry in found.variables)
        self.taken = taken if found.turns > 1 and tested and not self.begun else ""
        """The variable that counts narrow turns; empty where bounds are tested in each of them."""
        self.is_for = found.loop.kind is LoopKind.FOR
        self.start = found.loop.node.child_by_field_name("initializer") if self.is_for else None

    def whole(self, again: bool) -> tuple[Span, str]:
        loop, unit = self.loop, self.unit
        pragma = loop.pragma_span
        span = Span(pragma.start if pragma is not None else loop.span.start, loop.span.end)
        lines = [_WHY]
        if self.over:
            lines.append(f"bool {self.over} = false;")
        if self.begun:
            lines.append(f"bool {self.begun} = false;")
        lines += self._again() if again else self._once()
        wrapped = not is_statement_of_block(loop.node)
        declares = self.start is not None and self.start.type == "declaration"
        if wrapped or (declares and not again):
            lines = ["{", *_moved(lines), "}"]
        indent = unit.indent_of(loop.node)
        text = "\n".join(lines).split("\n")
        placed = [f"{indent}{line}" if line.strip() else line for line in text]
        own = unit.indent_of(span)
        return span, "\n".join(placed).removeprefix(own)

    def _once(self) -> list[str]:
        """Return a loop of narrow turns, and one behind it for what is left."""
        needed = [self._condition(())] if self.found.needs_condition else []
        lines = [] if self.start is None else [clean_text(self.unit, self.start).rstrip("; ") + ";"]
        lines += [
            f"if ({_all([*needed, *self._fits()])}) {{",
            *_moved(self._narrow()),
            "}",
            *self._rest(),
        ]
        return lines

    def _rest(self) -> list[str]:
        """Return the loop of what is left."""
        tests = [self._goes_on(), self._first_or_condition()]
        if not self.begun:
            return self._loop(tests, ())
        first, *others = self._body(())
        head = [f"while ({_all(tests) or 'true'}) {{", f"{_STEP}{self.begun} = true;"]
        return [*head, *_moved([first.lstrip(), *others]), "}"]

    def _again(self) -> list[str]:
        """Return a loop that goes to and fro between narrow and wide turns."""
        goes_on = _all([self._goes_on(), self._first_or_condition()])
        head = f"while ({goes_on or 'true'})"
        if self.is_for and self.start is not None:
            start = clean_text(self.unit, self.start).rstrip("; ")
            head = f"for ({start}; {goes_on};)"
        unfit = " || ".join(f"{self._unsigned(entry)} > {_bound(entry)}" for entry in self.found.variables)
        unfit = f"({unfit})" if len(self.found.variables) > 1 else unfit
        return [
            f"{head} {{",
            *_moved([f"if ({_all(self._fits())}) {{", *_moved(self._narrow()), "} else {"]),
            *_moved(_moved(self._first())),
            *_moved(_moved(self._loop([unfit, self._condition(())], self.breaks))),
            f"{_STEP}}}",
            "}",
        ]

    def _narrow(self) -> list[str]:
        """Return the declarations of the copies, their loop, and the values given back."""
        lines = self._first()
        for entry in self.found.variables:
            const = "" if entry.is_written else "const "
            lines.append(f"{const}unsigned {entry.name} = (unsigned){entry.declared.name};")
        changes = [*self.found.changes, *self.breaks]
        tests = [f"{entry.name} <= {_bound(entry)}" for entry in self.found.variables if entry.is_tested]
        if self.loop.pragma_span is not None:
            lines.append(self.unit.text_of(self.loop.pragma_span).strip())
        elif self.taken:
            lines.append(f"#pragma unroll {self.found.turns}")
        if self.taken:
            all_fit = _all(tests) if len(tests) == 1 else f"({_all(tests)})"
            tests = [f"({self.taken} % {self.found.turns} != 0 || {all_fit})"]
        lines += self._loop([*tests, self._condition(changes)], changes, self.taken)
        lines += [f"{v.declared.name} = {v.name};" for v in self.found.variables if v.is_written]
        return lines

    def _loop(self, tests: Sequence[str], changes: Sequence[Replacement], count: str = "") -> list[str]:
        """Return the loop with other tests and with changes, its lines at the left margin; `count` counts its turns."""
        condition = _all(tests)
        update = self.loop.node.child_by_field_name("update")
        step = f" {clean_text(self.unit, update, changes)}" if update is not None else ""
        between = f" {condition}" if condition else ""
        if self.begun:
            first, *rest = self._body(changes)
            *lines, last = [f"do{first}", *rest]
            return [*lines, f"{last} while ({condition or 'true'});"]
        head = f"for (;{between};{step})" if self.is_for else f"while ({condition or 'true'})"
        if count:
            head = f"for (unsigned {count} = 0;{between};{step}{',' if step else ''} ++{count})"
        first, *rest = self._body(changes)
        return [f"{head}{first}", *rest]

    def _body(self, changes: Sequence[Replacement]) -> list[str]:
        """Return what follows the head of the loop, its lines at the left margin."""
        own = self.unit.indent_of(self.loop.node)
        text = replaced_text(self.unit, Span(self._end_of_head(), self.loop.body_span.end), changes)
        first, *rest = text.split("\n")
        return [first, *(line.removeprefix(own) for line in rest)]

    def _first(self) -> list[str]:
        return [f"{self.begun} = true;"] if self.begun else []

    def _first_or_condition(self) -> str:
        """Return the test of a turn that may be the first."""
        condition = self._condition(())
        if not self.begun or not condition:
            return condition
        test = f"!{self.begun} || ({condition})"
        return f"({test})" if self.over else test

    def _end_of_head(self) -> int:
        node = self.loop.node
        if self.loop.kind is LoopKind.DO:
            return node.children[0].end_byte
        condition = node.child_by_field_name("condition")
        if not self.is_for and condition is not None:
            return condition.end_byte
        return max(child.end_byte for child in node.children if child.type == ")")

    def _goes_on(self) -> str:
        return f"!{self.over}" if self.over else ""

    def _fits(self) -> list[str]:
        return [f"{self._unsigned(entry)} <= {_bound(entry)}" for entry in self.found.variables]

    def _unsigned(self, entry: NarrowVariable) -> str:
        """Return a variable such that what is negative is large."""
        name = entry.declared.name
        return name if entry.is_unsigned else f"(unsigned long long){name}"

    def _condition(self, changes: Sequence[Replacement]) -> str:
        """Return the condition of the loop as a part of a conjunction; empty where it always holds."""
        condition = self.loop.node.child_by_field_name("condition")
        if condition is None:
            return ""
        inner = strip_parentheses(condition)
        text = clean_text(self.unit, inner, changes)
        is_or = inner.type == "binary_expression" and self.unit.operator(inner) == "||"
        if text in ("true", "1"):
            return ""
        return f"({text})" if is_or or inner.type in _LOOSE else text


def _broken(node: Node, over: str) -> str:
    """Return what a `break` becomes where a loop behind its own must not run either."""
    text = f"{over} = true; break;"
    return text if is_statement_of_block(node) else f"{{ {text} }}"


def _bound(entry: NarrowVariable) -> str:
    return f"{entry.bound}u"


def _all(tests: Sequence[str]) -> str:
    return " && ".join(test for test in tests if test)


def _moved(lines: Sequence[str]) -> list[str]:
    return [f"{_STEP}{line}" if line.strip() else line for line in lines]


def _breaks(body: Node) -> Iterator[Node]:
    """Yield the statements that end a loop, by its body."""
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type == "break_statement":
            yield node
        elif node.type not in (*LOOPS, "switch_statement", "lambda_expression"):
            stack.extend(node.children)
