"""Run statements of a kernel for all threads of a block in step."""

from __future__ import annotations

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.lockstep_expressions import Block, Unclear
from kernelskill.skills.lockstep_values import Mask, Value
from kernelskill.skills.row_accumulators import Way, plain_text
from kernelskill.source.accesses import find_accesses
from kernelskill.source.declarations import VariableDef
from kernelskill.source.scopes import LOOPS, Declared
from kernelskill.source.syntax import Node, named, span_of, strip_parentheses, walk

_STEPS = 4096
_BARRIER = "__syncthreads();"
_SIGNS = frozenset("+*&|^")


class Stepper:
    """Runs statements on the state of a block, one after the other."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.unit = block.unit
        self.everyone: Mask = np.ones(block.size, np.bool_)
        self.steps = 0

    def is_barrier(self, statement: Node) -> bool:
        """Whether a statement is a barrier of the block and nothing else."""
        return plain_text(self.unit.syntax, statement) == _BARRIER

    def run(self, statement: Node) -> None:
        """Run a statement for all threads.

        Raises:
            Unclear: Everything has to be followed, and this can't be.
        """
        self._run(statement, self.everyone, False)

    def follow(self, statement: Node) -> None:
        """Run a statement as far as it can be followed; what it may change else is not known any more."""
        try:
            self.run(statement)
        except Unclear:
            self.forget(statement)

    def forget(self, node: Node) -> None:
        """Take whatever a piece of code may write as unknown."""
        block, inside = self.block, span_of(node)
        for write in block.flow.writes:
            if inside.contains(span_of(write.node)):
                block.scalars.pop(id(write.declared), None)
        for access in find_accesses(self.unit, block.kernel):
            if inside.contains(access.span) and access.mode.writes and access.root in (block.array, None):
                block.lose_array()

    def _run(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise Unclear(f"line {self.unit.line_of(node)}: too many steps to follow")
        if not mask.any() or node.type in ("comment", "empty_statement", ";"):
            return
        handler = {
            "compound_statement": self._compound,
            "declaration": self._declaration,
            "expression_statement": self._statement,
            "if_statement": self._if,
            **dict.fromkeys(LOOPS - {"for_range_loop"}, self._loop),
        }.get(node.type)
        if handler is not None:
            handler(node, mask, is_maybe)
        elif self.block.is_strict:
            raise Unclear(f"line {self.unit.line_of(node)} can't be followed")
        elif node.type == "else_clause":
            for child in named(node):
                self._run(child, mask, is_maybe)
        else:
            self.forget(node)

    def _compound(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        for child in named(node):
            self._run(child, mask, is_maybe)

    def _declaration(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        for variable in self.block.kernel.locals:
            if variable.declaration == node and self.block.is_plain(variable):
                value = self.block.no_value()
                self.block.scalars.pop(id(variable), None)
                if variable.initialiser is not None:
                    value = self._typed(variable.initialiser, variable, mask)
                self._set(variable, value, mask, is_maybe)

    def _typed(self, node: Node, declared: Declared, mask: Mask) -> Value:
        """Return an expression as a variable of its own type holds it."""
        block = self.block
        new = block.types.of_name(declared.name, node)
        return block.converted(block.value(node, mask), block.types.of(node), new)

    def _set(self, declared: Declared, value: Value, mask: Mask, is_maybe: bool) -> None:
        block = self.block
        block.names[id(declared)] = declared
        old = block.scalars.get(id(declared), block.no_value())
        new = block.no_value() if is_maybe else value
        block.scalars[id(declared)] = values.select(mask, new, old)
        if not block.is_strict and mask.all():
            block.take_group(declared)

    def _statement(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        for expression in named(node):
            if expression.type == "call_expression" and self.is_barrier(node):
                if is_maybe or not mask.all():
                    raise Unclear(
                        f"line {self.unit.line_of(node)}: a barrier that some threads may not reach"
                    )
                self.block.meet()
            else:
                self._expression(expression, mask, is_maybe)

    def _expression(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        node = strip_parentheses(node)
        if node.type == "comma_expression":
            for child in named(node):
                self._expression(child, mask, is_maybe)
        elif node.type == "assignment_expression":
            self._assign(node, mask, is_maybe)
        elif node.type == "update_expression":
            self._step(node, mask, is_maybe)
        elif self.block.is_strict:
            raise Unclear(f"line {self.unit.line_of(node)} can't be followed")
        else:
            self._look(node, mask)

    def _look(self, node: Node, mask: Mask) -> None:
        """Note which elements an expression that is not followed reads, and forget what it writes."""
        for entry in walk(node):
            parent = entry.parent
            is_whole = parent is None or parent.type != "subscript_expression"
            if entry.type == "subscript_expression" and is_whole:
                self.block.value(entry, mask)
        self.forget(node)

    def _assign(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            raise Unclear(f"line {self.unit.line_of(node)} can't be followed")
        operator, block = self.unit.operator(node), self.block
        value = block.value(right, mask)
        if operator != "=":
            old = block.value(left, mask)
            value = self._updated(node, operator[:-1], old, value, left, right, mask)
        self._write(left, value, block.types.of(right if operator == "=" else left), mask, is_maybe)

    def _updated(
        self, node: Node, operator: str, old: Value, new: Value, left: Node, right: Node, mask: Mask
    ) -> Value:
        block = self.block
        has_parts = ((old.kind == values.PARTS) | (new.kind == values.PARTS))[mask].any()
        if has_parts and operator in _SIGNS:
            if block.is_strict and block.types.of(right) != block.types.of(left):
                raise Unclear(f"line {self.unit.line_of(node)} combines values of different types")
            return block.combine(left, old, new, Way(operator, f"{{a}} {operator}= {{b}};"), mask)
        if operator not in values.ARITHMETIC:
            return block.no_value()
        return values.computed(operator, old, new, block.types.of(left))

    def _step(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        argument = node.child_by_field_name("argument")
        if argument is None:
            raise Unclear(f"line {self.unit.line_of(node)} can't be followed")
        old, one = self.block.value(argument, mask), values.constant(self.block.size, 1)
        kind = self.block.types.of(argument)
        self._write(
            argument, values.computed(self.unit.operator(node)[0], old, one, kind), kind, mask, is_maybe
        )

    def _write(self, target: Node, value: Value, kind: str | None, mask: Mask, is_maybe: bool) -> None:
        block, target = self.block, strip_parentheses(target)
        if target.type == "identifier":
            declared = block.flow.resolve(target)
            if declared is not None and (not isinstance(declared, VariableDef) or block.is_plain(declared)):
                new = block.types.of_name(declared.name, target)
                self._set(declared, block.converted(value, kind, new), mask, is_maybe)
                return
        if target.type == "subscript_expression" and block.root_of(target) is block.array:
            stored = block.converted(value, kind, block.kind)
            if block.is_strict and (stored.kind[mask] == values.UNKNOWN).any():
                raise Unclear(f"line {self.unit.line_of(target)} stores what is no part of a scan")
            block.store(target, stored, mask, is_maybe=is_maybe)
            return
        if block.is_strict:
            raise Unclear(
                f"line {self.unit.line_of(target)} writes {self.unit.text_of(target)} within the scan"
            )
        self._look(target, mask)

    def _if(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        test, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        other = node.child_by_field_name("alternative")
        if test is None or body is None:
            raise Unclear(f"line {self.unit.line_of(node)} can't be followed")
        if other is None and self._extreme(strip_parentheses(test), body, mask):
            return
        truth = self.block.value(test, mask)
        known = truth.kind == values.NUMBER
        if not known[mask].all() and self.block.is_strict:
            raise Unclear(f"line {self.unit.line_of(node)}: which threads pass the test can't be told")
        is_maybe = is_maybe or not bool(known[mask].all())
        self._run(body, mask & ~(known & (truth.number == 0)), is_maybe)
        for branch in named(other) if other is not None else ():
            self._run(branch, mask & ~(known & (truth.number != 0)), is_maybe)

    def _extreme(self, test: Node, body: Node, mask: Mask) -> bool:
        """Run `if (a < b) a = b;` on elements; False where it is something else."""
        inner = named(body) if body.type == "compound_statement" else [body]
        block = self.block
        if len(inner) != 1 or inner[0].type != "expression_statement" or not block.is_strict:
            return False
        assignment = named(inner[0])[0]
        left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
        is_plain = assignment.type == "assignment_expression" and self.unit.operator(assignment) == "="
        if left is None or right is None or not is_plain:
            return False
        way = block.extreme_way(test, right, left)
        if way is None:
            return False
        old, new = block.value(left, mask), block.value(right, mask)
        if not ((old.kind == values.PARTS) | (new.kind == values.PARTS))[mask].any():
            return False
        self._write(left, block.combine(left, old, new, way, mask), block.kind, mask, False)
        return True

    def _loop(self, node: Node, mask: Mask, is_maybe: bool) -> None:
        if not self.block.is_strict:
            self._guess_loop(node, mask)
            return
        start, test, step, body = (
            node.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")
        )
        if body is None or test is None:
            raise Unclear(f"line {self.unit.line_of(node)}: when the loop ends can't be told")
        if start is not None:
            if start.type == "declaration":
                self._declaration(start, mask, False)
            else:
                self._expression(start, mask, False)
        is_first = node.type == "do_statement"
        while True:
            if not is_first:
                truth = self.block.value(test, mask)
                if not truth.is_number(mask):
                    raise Unclear(f"line {self.unit.line_of(node)}: when the loop ends can't be told")
                mask = mask & (truth.number != 0)
            if not mask.any():
                return
            is_first = False
            self._run(body, mask, False)
            if step is not None:
                self._expression(step, mask, False)

    def _guess_loop(self, node: Node, mask: Mask) -> None:
        """Look at one turn of a loop of which nothing is known."""
        self.forget(node)
        start, body = node.child_by_field_name("initializer"), node.child_by_field_name("body")
        test = node.child_by_field_name("condition")
        del start
        if test is not None:
            self.block.value(test, mask)
        if body is not None:
            self._run(body, mask, True)
        self.forget(node)
