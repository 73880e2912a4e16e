"""Tell what a value may depend on: thread indices, loop variables, parameters, memory.

The answer is an upper bound: every definition of a variable counts, and every condition that decides
whether a definition is done.
"""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.scopes import Declared, Flow
from kernelskill.source.syntax import SyntaxTree, ancestors, span_of, walk

BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
MEMORY = "memory"
_THREADS = frozenset(f"threadIdx.{axis}" for axis in "xyz")
_CONDITIONAL = frozenset(
    {"if_statement", "for_statement", "while_statement", "do_statement", "switch_statement"}
    | {"conditional_expression"}
)


def influences(flow: Flow, node: Node, syntax: SyntaxTree, at: Node) -> frozenset[str]:
    """Return what the value of an expression may depend on.

    Args:
        flow: Names and writes of the function.
        node: The expression, in `syntax`.
        syntax: The file's tree, or that of an expanded macro.
        at: The node of the file that tells what names mean.

    Returns:
        Texts such as `threadIdx.x` and `n`; `memory` where something is loaded.
    """
    tracer = _Tracer(flow)
    tracer.expression(node, syntax, at if syntax is not flow.unit.syntax else None)
    return frozenset(tracer.found)


class _Tracer:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._seen: set[int] = set()
        self.found: set[str] = set()

    def expression(self, node: Node, syntax: SyntaxTree, at: Node | None) -> None:
        for entry in walk(node):
            if entry.type == "field_expression":
                text = "".join(syntax.text_of(entry).split())
                if text.split(".")[0] in BUILTINS:
                    self.found.add(text)
            elif entry.type in ("subscript_expression", "pointer_expression"):
                self.found.add(MEMORY)
            elif entry.type == "call_expression":
                self._call(entry, syntax)
            elif entry.type == "identifier":
                self._name(entry, syntax, at)

    def _call(self, entry: Node, syntax: SyntaxTree) -> None:
        function = entry.child_by_field_name("function")
        name = syntax.text_of(function) if function is not None else ""
        unit = self._flow.unit
        if "thread_rank" in name or "lane" in name or "thread_index" in name:
            self.found |= _THREADS
        target = unit.function(name)
        if target is not None and target.body is not None and target is not self._flow.function:
            for inner in walk(target.body):
                text = "".join(unit.text_of(inner).split()) if inner.type == "field_expression" else ""
                if text.split(".")[0] in BUILTINS:
                    self.found.add(text)
        macro = unit.macro(name)
        if macro is not None:
            self.found |= {
                f"{base}.{axis}" for base in BUILTINS for axis in "xyz" if f"{base}.{axis}" in macro.possible
            }

    def _name(self, entry: Node, syntax: SyntaxTree, at: Node | None) -> None:
        name = syntax.text_of(entry)
        if name in BUILTINS:
            return
        declared = self._resolve(name, entry, at)
        macro = self._flow.unit.macro(name) if declared is None else None
        if macro is not None:
            self.found |= {f"{b}.{a}" for b in BUILTINS for a in "xyz" if f"{b}.{a}" in macro.possible}
        self.found.add(name)
        if declared is not None:
            self._variable(declared)

    def _resolve(self, name: str, entry: Node, at: Node | None) -> Declared | None:
        if at is None:
            return self._flow.resolve(entry)
        span = span_of(at)
        function = self._flow.function
        for variable in reversed(function.locals):
            if variable.name == name and variable.scope_span.contains(span):
                return variable
        return function.parameter(name)

    def _variable(self, declared: Declared) -> None:
        if id(declared) in self._seen:
            return
        self._seen.add(id(declared))
        if isinstance(declared, VariableDef) and (
            declared.dimensions or declared.storage is not Storage.LOCAL
        ):
            self.found.add(MEMORY)
        syntax = self._flow.unit.syntax
        for write in self._flow.writes_to(declared):
            self.expression(write.node, syntax, None)
            if write.operator in ("&", "asm"):
                self.found |= {MEMORY, *_THREADS}
            self._conditions(write.node, declared)

    def _conditions(self, node: Node, declared: Declared) -> None:
        """Count the conditions between a write and the scope of its variable."""
        syntax = self._flow.unit.syntax
        for parent in ancestors(node):
            if isinstance(declared, VariableDef) and parent == declared.scope:
                if parent.type == "for_statement":
                    self._condition_of(parent, syntax)
                return
            if parent.type in _CONDITIONAL:
                self._condition_of(parent, syntax)

    def _condition_of(self, parent: Node, syntax: SyntaxTree) -> None:
        condition = parent.child_by_field_name("condition")
        if condition is not None and condition.id not in self._seen:
            self._seen.add(condition.id)
            self.expression(condition, syntax, None)
