"""Tell what a name means where it stands, and which definition of a variable reaches a use.

Control flow is structured: `goto`, and writes that hide in a lambda, an inline assembly or behind a
reference, make the answer unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.expansion import expand_macro, parse_expression
from kernelskill.source.intrinsics import takes_values
from kernelskill.source.syntax import Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

Declared = ParameterDef | VariableDef
LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_TRANSPARENT = frozenset(
    {"expression_statement", "declaration", "init_declarator", "comma_expression", "assignment_expression"}
)


@dataclass(frozen=True)
class Write:
    """One place where a variable gets a value."""

    declared: Declared
    node: Node
    """The assignment, update, declarator or call."""
    value: Node | None
    """What is assigned by `=` or an initialiser; None for any other kind of write."""
    operator: str
    """`=`, `+=`, `++`, ...; `&` where the address escapes; `init` for a declaration with a value."""

    @property
    def is_plain(self) -> bool:
        return self.value is not None and self.operator in ("=", "init")


@dataclass(frozen=True, eq=False)
class Flow:
    """Names and writes of one function."""

    unit: SourceUnit = field(repr=False)
    function: FunctionDef
    writes: tuple[Write, ...]
    """Writes to variables themselves; writes through pointers and to array elements are accesses."""
    has_goto: bool

    def resolve(self, name: Node) -> Declared | None:
        """Return the local variable, parameter or file variable that an identifier names."""
        return resolve(self.unit, self.function, name)

    def writes_to(self, declared: Declared) -> tuple[Write, ...]:
        """Return every write to a variable, its initialiser included."""
        return self._by_variable().get(id(declared), ())

    def _by_variable(self) -> dict[int, tuple[Write, ...]]:
        return _writes_by_variable(self)

    def is_constant(self, declared: Declared) -> bool:
        """Whether a variable keeps the value it starts with."""
        return all(write.operator == "init" for write in self.writes_to(declared))

    def reaching(self, use: Node, declared: Declared) -> Write | None:
        """Return the one plain definition that reaches a use; None where there is none or several.

        For a parameter that no write reaches, None is returned too: see `is_entry_value`.
        """
        last = self.last_write(use, declared)
        return last if last is not None and last.is_plain else None

    def last_write(self, use: Node, declared: Declared) -> Write | None:
        """Return the one write, of whatever kind, after which a use reads a variable.

        None where there is none, or where it depends on the way taken.
        """
        if self.has_goto:
            return None
        writes = self.writes_to(declared)
        if any(write.operator in ("&", "asm", "lambda") for write in writes):
            return None
        earlier = [write for write in writes if _end_of(write) <= use.start_byte]
        if not earlier:
            return None
        last = max(earlier, key=_end_of)
        if not _dominates(last.node, use):
            return None
        for other in writes:
            if other is not last and _comes_round(other.node, last.node, use):
                return None
        return last

    def is_entry_value(self, use: Node, declared: Declared) -> bool:
        """Whether a use certainly sees the value that a parameter had on entry."""
        writes = self.writes_to(declared)
        if isinstance(declared, VariableDef) or self.has_goto:
            return False
        if any(write.operator in ("&", "asm", "lambda") for write in writes):
            return False
        loops = {node.id for node in ancestors(use) if node.type in LOOPS}
        return all(
            write.node.start_byte >= use.end_byte and not any(n.id in loops for n in ancestors(write.node))
            for write in writes
        )


@lru_cache(maxsize=256)
def flow_of(unit: SourceUnit, function: FunctionDef) -> Flow:
    """Return the names and writes of a function."""
    if function.body is None:
        return Flow(unit, function, (), False)
    writes: list[Write] = []
    goto = False
    for node in walk(function.node):
        goto = goto or node.type == "goto_statement"
        writes.extend(_writes_at(unit, function, node))
    return Flow(unit, function, tuple(writes), goto)


@lru_cache(maxsize=256)
def _writes_by_variable(flow: Flow) -> dict[int, tuple[Write, ...]]:
    found: dict[int, list[Write]] = {}
    for write in flow.writes:
        found.setdefault(id(write.declared), []).append(write)
    return {key: tuple(writes) for key, writes in found.items()}


def resolve(unit: SourceUnit, function: FunctionDef, name: Node) -> Declared | None:
    """Return the local variable, parameter or file variable that an identifier names."""
    text, span = unit.text_of(name), span_of(name)
    visible = [
        variable
        for variable in function.locals
        if variable.name == text
        and variable.name_span.start <= span.start
        and variable.scope_span.contains(span)
    ]
    if visible:
        return min(visible, key=lambda v: (v.scope_span.end - v.scope_span.start, -v.name_span.start))
    parameter = function.parameter(text)
    if parameter is not None:
        return parameter
    return next((variable for variable in unit.globals if variable.name == text), None)


def base_identifier(node: Node) -> Node | None:
    """Return the name that an lvalue starts with: `p` of `p[i].x` and of `*(p + i)`."""
    while True:
        node = strip_parentheses(node)
        if node.type == "identifier":
            return node
        inner = node.child_by_field_name("argument")
        if inner is None and node.type in ("cast_expression",):
            inner = node.child_by_field_name("value")
        if inner is None and node.type == "binary_expression":
            inner = node.child_by_field_name("left")
        if inner is None:
            return None
        node = inner


def written_variable(node: Node) -> Node | None:
    """Return the identifier where an lvalue is a variable or a field of one, not memory behind it."""
    while True:
        node = strip_parentheses(node)
        if node.type == "identifier":
            return node
        inner = node.child_by_field_name("argument")
        if node.type != "field_expression" or inner is None or any(c.type == "->" for c in node.children):
            return None
        node = inner


def _writes_at(unit: SourceUnit, function: FunctionDef, node: Node) -> list[Write]:
    if node.type == "assignment_expression":
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        whole = target is not None and strip_parentheses(target).type == "identifier"
        return _write(unit, function, node, target, value if whole else None, unit.operator(node))
    if node.type == "update_expression":
        return _write(unit, function, node, node.child_by_field_name("argument"), None, unit.operator(node))
    if node.type == "pointer_expression" and unit.operator(node) == "&":
        return _write(unit, function, node, node.child_by_field_name("argument"), None, "&")
    if node.type == "gnu_asm_output_operand":
        return _write(unit, function, node, node.child_by_field_name("value"), None, "asm")
    if node.type == "call_expression":
        return _reference_arguments(unit, function, node)
    if node.type in ("init_declarator", "for_range_loop"):
        return _initialisation(unit, function, node)
    return []


def _write(
    unit: SourceUnit,
    function: FunctionDef,
    node: Node,
    target: Node | None,
    value: Node | None,
    operator: str,
) -> list[Write]:
    name = written_variable(target) if target is not None else None
    declared = resolve(unit, function, name) if name is not None else None
    if declared is None or (isinstance(declared, VariableDef) and declared.dimensions):
        return []
    outside = _lambda_outside(node, declared)
    return [Write(declared, node, value, "lambda" if outside else operator)]


def _lambda_outside(node: Node, declared: Declared) -> bool:
    """Whether a write stands in a lambda within the life of the variable."""
    start = declared.name_span.start
    return any(parent.type == "lambda_expression" and parent.start_byte > start for parent in ancestors(node))


def _initialisation(unit: SourceUnit, function: FunctionDef, node: Node) -> list[Write]:
    for variable in function.locals:
        if variable.declarator == node or (node.type == "for_range_loop" and variable.declaration == node):
            value = variable.initialiser
            if value is not None and value.type in ("argument_list", "initializer_list", "parameter_list"):
                values = named(value)
                value = values[0] if len(values) == 1 else None
            if node.type == "for_range_loop":
                return [Write(variable, node, None, "range")]
            found = [Write(variable, node, value, "init")]
            if variable.is_reference and variable.initialiser is not None:
                found += _write(unit, function, node, variable.initialiser, None, "&")
            return found
    return []


def _reference_arguments(unit: SourceUnit, function: FunctionDef, node: Node) -> list[Write]:
    """Return writes by calls that take, or may take, a variable by reference."""
    called, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or listed is None or called.type == "primitive_type":
        return []
    arguments = named(listed)
    name = unit.text_of(called).split("<")[0].removeprefix("std::")
    target = unit.function(name.split("::")[-1])
    macro = unit.macro(name)
    if target is not None and macro is None:
        pairs = zip(arguments, target.parameters, strict=False)
        suspects = [argument for argument, p in pairs if p.is_reference and not p.is_const]
    elif macro is not None:
        texts = [unit.text_of(argument) for argument in arguments]
        suspects = arguments if _may_write(expand_macro(macro, texts)) else []
    else:
        by_value = takes_values(name) or any(name == p.name for p in function.template_parameters)
        by_value = by_value or any(child.type == "kernel_call_syntax" for child in node.children)
        # A foreign function that reseats a pointer is not expected: pointers are followed past the call.
        suspects = [] if by_value else [a for a in arguments if not _is_pointer(unit, function, a)]
    return [write for argument in suspects for write in _write(unit, function, node, argument, None, "&")]


def _is_pointer(unit: SourceUnit, function: FunctionDef, argument: Node) -> bool:
    declared = resolve(unit, function, argument) if argument.type == "identifier" else None
    return declared is not None and declared.pointer_depth > 0


def _may_write(expansion: str | None) -> bool:
    """Whether the expansion of a macro may assign to something."""
    parsed = parse_expression(f"({expansion})") if expansion is not None else None
    if parsed is None:
        return True
    syntax, value = parsed
    for entry in walk(value):
        if entry.type in ("assignment_expression", "update_expression"):
            return True
        called = entry.child_by_field_name("function") if entry.type == "call_expression" else None
        if called is not None and called.type != "primitive_type":
            name = syntax.text_of(called).split("<")[0].removeprefix("std::").strip("() ")
            if not takes_values(name):
                return True
    return False


def _end_of(write: Write) -> int:
    return write.node.end_byte


def _block_of(node: Node) -> Node | None:
    """Return the block in which a write happens unconditionally; None where it is part of a condition."""
    parent = node.parent
    while parent is not None and parent.type in (*_TRANSPARENT, "parenthesized_expression"):
        parent = parent.parent
    if parent is None:
        return None
    if parent.type in ("compound_statement", "case_statement"):
        return parent
    if parent.type == "for_statement":
        initialiser = parent.child_by_field_name("initializer")
        inside = initialiser is not None and span_of(initialiser).contains(span_of(node))
        return parent if inside else None
    return None


def _dominates(write: Node, use: Node) -> bool:
    """Whether a write is always done before a later use."""
    block = _block_of(write)
    if block is None or block.type == "case_statement":
        return False
    return span_of(block).contains(span_of(use))


def _comes_round(other: Node, last: Node, use: Node) -> bool:
    """Whether a write reaches the use by way of a loop that does not redo the last definition."""
    for loop in ancestors(use):
        if loop.type in LOOPS:
            inside = span_of(loop)
            if _header_contains(loop, last):
                if inside.contains(span_of(other)):
                    return True
            elif inside.contains(span_of(last)):
                return False
            elif inside.contains(span_of(other)):
                return True
    return False


def _header_contains(loop: Node, node: Node) -> bool:
    """Whether a node stands in the initialiser of a `for`, which is done once."""
    initialiser = loop.child_by_field_name("initializer")
    return initialiser is not None and span_of(initialiser).contains(span_of(node))


def names_in(unit: SourceUnit, node: Node) -> tuple[str, ...]:
    """Return the identifiers below a node, each once."""
    found = dict.fromkeys(unit.text_of(n) for n in walk(node) if n.type == "identifier")
    return tuple(found)


def range_nodes(function: FunctionDef, span: Span) -> list[Node]:
    """Return the outermost statements of a function inside a range."""
    found: list[Node] = []
    stack = [function.body] if function.body is not None else []
    while stack:
        node = stack.pop()
        if span.contains(span_of(node)):
            found.append(node)
        elif span.overlaps(span_of(node)):
            stack.extend(reversed(node.children))
    return sorted(found, key=lambda node: node.start_byte)
