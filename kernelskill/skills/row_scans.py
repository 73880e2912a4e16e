"""Running sums: loops whose turns need the sum of all turns before, and nothing else of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.expression_types import ExpressionTypes, is_integer, plain_type
from kernelskill.skills.memory_runs import Order, Run, turns_of
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import LOOPS, Declared, Write, flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_KINDS = frozenset(
    {"float", "double", "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"}
)
_ONCE = frozenset(
    {
        "assignment_expression",
        "parenthesized_expression",
        "init_declarator",
        "argument_list",
        "cast_expression",
        "compound_statement",
        "declaration",
        "else_clause",
        "expression_statement",
        "subscript_argument_list",
        "subscript_expression",
    }
)


@dataclass(frozen=True, eq=False)
class Scan:
    """The running sum of a loop."""

    declared: Declared = field(repr=False)
    kind: str
    amount: str
    """C text of what a turn adds, for use before the body."""
    test: str = ""
    """C text of the condition under which a turn adds it, for use before the body; empty where each does."""
    reads: tuple[Span, ...] = ()
    """What that text is made of."""
    packs: Node | None = field(default=None, repr=False)
    """The write to the sum, where turns that add it add a number above zero: places that are taken one by one."""

    @property
    def name(self) -> str:
        return self.declared.name


def read_scan(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> Scan:
    """Return the running sum of a loop.

    Raises:
        SkillRefused: It has none, or several, or one that isn't added to once a turn.
    """
    flow = flow_of(unit, kernel)
    sums = []
    for write in flow.writes:
        outside = not loop.span.contains(write.declared.name_span) and write.declared is not loop.declared
        if (
            outside
            and loop.span.contains(span_of(write.node))
            and _reads_elsewhere(unit, kernel, loop, write)
        ):
            sums.append(write)
    if len(sums) != 1:
        raise SkillRefused(
            f"the loop on line {loop.line} carries more than one running sum from turn to turn"
        )
    write = sums[0]
    declared = write.declared
    name = declared.name
    refusal = SkillRefused(f"{name!r} of the loop on line {loop.line} is no plain running sum")
    kind = ExpressionTypes(unit, kernel).of_name(name, write.node)
    is_local = isinstance(declared, ParameterDef) or declared.storage is Storage.LOCAL
    if kind not in _KINDS or not is_local or declared.is_reference:
        raise refusal
    added, branches = _added(unit, write), branches_round(write.node, loop)
    if added is None or branches is None or (loop.step is not None and loop.step_value != 1):
        raise refusal
    reader = _BeforeBody(unit, kernel, loop)
    tests = [reader.test(branch) for branch in branches]
    if isinstance(added, str):
        amount = added
    else:
        found = ExpressionTypes(unit, kernel).of(added)
        if any(n.type == "identifier" and flow.resolve(n) is declared for n in walk(added)):
            raise refusal
        if is_integer(kind) and not is_integer(found):
            raise refusal
        text = reader.text(added)
        amount = text if found == kind else f"({kind})({text})"
    is_count = is_integer(kind) and amount.isdigit() and int(amount) > 0
    packs = write.node if is_count else None
    return Scan(declared, kind, amount, " && ".join(tests), tuple(reader.reads), packs)


def _reads_elsewhere(unit: SourceUnit, kernel: KernelDef, loop: Loop, write: Write) -> bool:
    """Whether a loop reads a variable outside the expression that changes it."""
    flow = flow_of(unit, kernel)
    own = span_of(write.node)
    plain = write.node.parent is not None and write.node.parent.type == "expression_statement"
    for node in walk(loop.node):
        is_use = node.type == "identifier" and unit.text_of(node) == write.declared.name
        if is_use and flow.resolve(node) is write.declared and not (plain and own.contains(span_of(node))):
            return True
    return False


def _added(unit: SourceUnit, write: Write) -> Node | str | None:
    """Return what `s += v` and `s = s + v` add; text where it is written `++s`."""
    node = write.node
    operator = unit.operator(node)
    if operator == "++":
        return "1"
    if operator == "+=":
        return node.child_by_field_name("right")
    value = strip_parentheses(write.value) if write.value is not None and operator == "=" else None
    if value is None or value.type != "binary_expression" or unit.operator(value) != "+":
        return None
    left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    if left is None or right is None:
        return None
    for side, other in ((left, right), (right, left)):
        inner = strip_parentheses(side)
        if inner.type == "identifier" and unit.text_of(inner) == write.declared.name:
            return other
    return None


@dataclass(frozen=True)
class Branch:
    """A side of an `if` that a turn may take."""

    node: Node = field(repr=False, compare=False)
    start: int
    is_first: bool


def branches_round(node: Node, loop: Loop) -> tuple[Branch, ...] | None:
    """Return the sides of `if` on which a node stands in the body of a loop, outer ones first.

    None where turns that take them may evaluate it several times, or not at all.
    """
    if loop.has_continue or loop.has_break or loop.has_return:
        return None
    found: list[Branch] = []
    child, parent = node, node.parent
    while parent is not None and child != loop.body:
        if parent.type == "if_statement":
            is_first = child == parent.child_by_field_name("consequence")
            if not is_first and child != parent.child_by_field_name("alternative"):
                return None
            found.append(Branch(parent, parent.start_byte, is_first))
        elif parent.type not in _ONCE:
            return None
        child, parent = parent, parent.parent
    return tuple(reversed(found)) if parent is not None else None


class _BeforeBody:
    """Writes expressions as they can be evaluated before the body of a loop."""

    def __init__(self, unit: SourceUnit, kernel: KernelDef, loop: Loop) -> None:
        self._unit, self._kernel, self._loop = unit, kernel, loop
        self.reads: list[Span] = []

    def test(self, branch: Branch) -> str:
        """Return the condition of a side.

        Raises:
            SkillRefused: Its variables change, or it changes something.
        """
        clause = branch.node.child_by_field_name("condition")
        parts = named(clause) if clause is not None else []
        if len(parts) != 1 or parts[0].type == "declaration":
            raise SkillRefused(f"line {self._unit.line_of(branch.node)} declares what it tests")
        text = self.text(parts[0])
        return f"({text})" if branch.is_first else f"!({text})"

    def text(self, node: Node, depth: int = 0) -> str:
        """Return an expression with the variables of the body replaced by what they start with.

        Raises:
            SkillRefused: One of them changes, or the expression changes something.
        """
        unit, loop, flow = self._unit, self._loop, flow_of(self._unit, self._kernel)
        refusal = SkillRefused(f"what the loop on line {loop.line} adds can't be told before its body")
        if depth > 4 or any(n.type in ("assignment_expression", "update_expression") for n in walk(node)):
            raise refusal
        self.reads.append(span_of(node))
        text, position = "", node.start_byte
        for name in walk(node):
            declared = flow.resolve(name) if name.type == "identifier" else None
            if declared is None or declared is loop.declared:
                continue
            if not isinstance(declared, VariableDef) or not loop.body_span.contains(declared.name_span):
                if any(loop.span.contains(span_of(write.node)) for write in flow.writes_to(declared)):
                    raise refusal
                continue
            plain = (
                declared.initialiser is not None and not declared.pointer_depth and not declared.dimensions
            )
            at_top = declared.declaration.parent == loop.body
            if not plain or not at_top or not flow.is_constant(declared) or declared.base_type == "auto":
                raise refusal
            assert declared.initialiser is not None
            inner = self.text(declared.initialiser, depth + 1)
            same = ExpressionTypes(unit, self._kernel).of(declared.initialiser) == plain_type(
                declared.base_type
            )
            cast = f"({inner})" if same else f"({declared.base_type})({inner})"
            if same and (name == node or inner.isidentifier()):
                cast = inner
            text += unit.text_of(Span(position, name.start_byte)) + cast
            position = name.end_byte
        return " ".join((text + unit.text_of(Span(position, node.end_byte))).split())


def takes_places(unit: SourceUnit, kernel: KernelDef, loop: Loop, scan: Scan, target: Node) -> bool:
    """Whether a store goes to the place that its turn takes by adding to the running sum, and so to its own."""
    branches, own = (
        branches_round(target, loop),
        branches_round(scan.packs, loop) if scan.packs is not None else None,
    )
    if (
        branches is None
        or own is None
        or branches[: len(own)] != own
        or target.type != "subscript_expression"
    ):
        return False
    base, indices = target.child_by_field_name("argument"), target.child_by_field_name("indices")
    parts = named(indices) if indices is not None else []
    if base is None or base.type != "identifier" or len(parts) != 1:
        return False
    index = strip_parentheses(parts[0])
    flow = flow_of(unit, kernel)
    root = flow.resolve(base)
    moves = root is None or any(loop.span.contains(span_of(write.node)) for write in flow.writes_to(root))
    return not moves and (
        index == scan.packs or (index.type == "identifier" and flow.resolve(index) is scan.declared)
    )


def places_of(unit: SourceUnit, kernel: KernelDef, loop: Loop, scan: Scan, access: Access) -> Run:
    """Return the run of the places that turns can take, as C text that can be evaluated before the loop.

    Raises:
        SkillRefused: What the sum holds before the loop isn't what it holds before the work of the thread.
    """
    flow = flow_of(unit, kernel)
    known = isinstance(scan.declared, VariableDef)
    for write in flow.writes_to(scan.declared):
        known = known and (write.operator == "init" or loop.span.contains(span_of(write.node)))
    inside = [node for node in ancestors(loop.node) if node.type in LOOPS]
    if not known or inside or scan.amount != "1":
        raise SkillRefused(
            f"what {unit.text_of(access.node)} touches is not known before the loop on line {loop.line}"
        )
    turns = turns_of(unit, kernel, loop)
    base = access.base
    last = f"{base}[{scan.name} + ({turns.wide_last} - {turns.wide_first})]"
    return Run(
        base, f"{base}[{scan.name}]", last, f"sizeof({access.element_type or f'{base}[0]'})", Order.RISING
    )


def refuse_wide_head(unit: SourceUnit, loop: Loop) -> None:
    """Decline a head that does more than count one variable up by one.

    Raises:
        SkillRefused: It does.
    """
    parts = [loop.node.child_by_field_name(name) for name in ("initializer", "condition", "update")]
    initialiser, condition, update = parts
    plain = update == loop.step_statement and condition is not None and loop.signed_step == 1
    if initialiser is not None and initialiser.type == "declaration":
        plain = plain and len(initialiser.children_by_field_name("declarator")) == 1
    elif initialiser is not None:
        inner = named(initialiser)[0] if initialiser.type == "expression_statement" else initialiser
        plain = plain and inner.type == "assignment_expression"
    if not plain or condition is None or strip_parentheses(condition).type != "binary_expression":
        raise SkillRefused(f"the head of the loop on line {loop.line} does more than count")
