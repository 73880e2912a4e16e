"""Where a part of a statement's value may be computed before the statement."""

from __future__ import annotations

from kernelskill.skills.expression_types import ExpressionTypes
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, ancestors, span_of, walk

_MEMORY = ("subscript_expression", "pointer_expression", "field_expression")
_CONDITIONAL = frozenset({"conditional_expression", "lambda_expression", "comma_expression"})


def statement_before(types: ExpressionTypes, node: Node, value: Node, *, bare: bool = False) -> Node | None:
    """Return the statement before which a value may be computed: same values, no new memory access.

    Args:
        types: Of the function.
        node: Where the value is used.
        value: What is computed.
        bare: Also return a statement that is no part of a block, but what an `if` or a loop does: the
            caller puts both into braces.
    """
    unit = types.unit
    for entry in ancestors(node):
        skipped = entry.type in _CONDITIONAL or unit.operator(entry) in ("&&", "||")
        if skipped and (reads_memory(value) or entry.type != "conditional_expression"):
            return None
        if entry.type in ("expression_statement", "declaration", "return_statement"):
            in_block = entry.parent is not None and entry.parent.type == "compound_statement"
            fits = in_block or (bare and is_body(entry))
            return entry if fits and not _changes_inside(types, entry, value) else None
        if entry.type.endswith("_statement"):
            return None
    return None


def is_body(statement: Node) -> bool:
    """Whether a statement is, without braces, what an `if`, a loop or a case does."""
    parent = statement.parent
    if parent is None or statement.type == "declaration":
        return False
    fields = [parent.child_by_field_name(name) for name in ("body", "consequence")]
    return statement in fields or parent.type in ("else_clause", "case_statement")


def reads_memory(value: Node) -> bool:
    """Whether a value may be read from memory."""
    return any(entry.type in _MEMORY for entry in walk(value))


def _changes_inside(types: ExpressionTypes, statement: Node, value: Node) -> bool:
    """Whether the statement itself declares or writes what the value reads, before it is read."""
    flow = flow_of(types.unit, types.function)
    inside = span_of(statement)
    declared = [flow.resolve(n) for n in walk(value) if n.type == "identifier"]
    writes = [write for d in declared if d is not None for write in flow.writes_to(d)]
    own = [w for w in writes if inside.contains(span_of(w.node))]
    assignments = [n for n in walk(statement) if n.type in ("assignment_expression", "update_expression")]
    # `v = pow(v + 1, 2)` writes after reading; anything else in the statement may write before.
    late = len(assignments) == 1 and all(span_of(w.node).contains(span_of(value)) for w in own)
    if any(w.operator == "init" for w in own) or (own and not late):
        return True
    return len(assignments) > 1
