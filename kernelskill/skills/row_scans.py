"""Running sums: loops whose turns need the sum of all turns before, and nothing else of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.expression_types import ExpressionTypes, is_integer, plain_type
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import Declared, Write, flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
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
    }
)


@dataclass(frozen=True, eq=False)
class Scan:
    """The running sum of a loop."""

    declared: Declared = field(repr=False)
    kind: str
    amount: str
    """C text of what a turn adds, for use before the body."""

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
    added = _added(unit, write)
    if added is None or not _is_once(write.node, loop) or (loop.step is not None and loop.step_value != 1):
        raise refusal
    if isinstance(added, str):
        return Scan(declared, kind, added)
    found = ExpressionTypes(unit, kernel).of(added)
    if any(n.type == "identifier" and flow.resolve(n) is declared for n in walk(added)):
        raise refusal
    if is_integer(kind) and not is_integer(found):
        raise refusal
    text = _before_body(unit, kernel, loop, added, 0)
    return Scan(declared, kind, text if found == kind else f"({kind})({text})")


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
        plain = node.parent is not None and node.parent.type == "expression_statement"
        return "1" if plain else None
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


def _is_once(node: Node, loop: Loop) -> bool:
    """Whether every turn evaluates a node once, whatever the data."""
    if loop.has_continue or loop.has_break or loop.has_return:
        return False
    parent = node.parent
    while parent is not None and parent.type in _ONCE:
        parent = parent.parent
    if parent is None or parent.type not in ("expression_statement", "declaration"):
        return False
    return parent == loop.body or parent.parent == loop.body


def _before_body(unit: SourceUnit, kernel: KernelDef, loop: Loop, node: Node, depth: int) -> str:
    """Return the text of an expression with the variables of the body replaced by what they start with.

    Raises:
        SkillRefused: One of them changes, or the expression changes something.
    """
    flow = flow_of(unit, kernel)
    refusal = SkillRefused(f"what the loop on line {loop.line} adds can't be told before its body")
    if depth > 4 or any(n.type in ("assignment_expression", "update_expression") for n in walk(node)):
        raise refusal
    text, position = "", node.start_byte
    for name in walk(node):
        declared = flow.resolve(name) if name.type == "identifier" else None
        if declared is None or declared is loop.declared:
            continue
        if not isinstance(declared, VariableDef) or not loop.body_span.contains(declared.name_span):
            if any(loop.span.contains(span_of(write.node)) for write in flow.writes_to(declared)):
                raise refusal
            continue
        plain = declared.initialiser is not None and not declared.pointer_depth and not declared.dimensions
        at_top = declared.declaration.parent == loop.body
        if not plain or not at_top or not flow.is_constant(declared) or declared.base_type == "auto":
            raise refusal
        assert declared.initialiser is not None
        inner = _before_body(unit, kernel, loop, declared.initialiser, depth + 1)
        same = ExpressionTypes(unit, kernel).of(declared.initialiser) == plain_type(declared.base_type)
        cast = f"({inner})" if same else f"({declared.base_type})({inner})"
        if same and (name == node or inner.isidentifier()):
            cast = inner
        text += unit.text_of(Span(position, name.start_byte)) + cast
        position = name.end_byte
    return " ".join((text + unit.text_of(Span(position, node.end_byte))).split())


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


def scan_function(name: str, kind: str) -> str:
    """Return the text of a device function for the sum of the threads before in a block."""
    return (
        "// Returns the sum of the values of the block's threads before this one; `total` is that of all.\n"
        f"__device__ __forceinline__ {kind} {name}({kind} value, {kind}& total)\n"
        "{\n"
        f"    __shared__ {kind} of_warp[32];\n"
        "    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;\n"
        f"    {kind} upto = value;\n"
        "    for (int step = 1; step < 32; step *= 2) {\n"
        f"        const {kind} other = __shfl_up_sync(0xffffffffu, upto, step);\n"
        "        if (lane >= step)\n"
        "            upto += other;\n"
        "    }\n"
        "    __syncthreads();  // the last sums may still be read\n"
        "    if (lane == 31)\n"
        "        of_warp[warp] = upto;\n"
        "    __syncthreads();\n"
        f"    {kind} before = 0;\n"
        "    total = 0;\n"
        "    for (int w = 0; w < warps; ++w) {\n"
        "        if (w == warp)\n"
        "            before = total;\n"
        "        total += of_warp[w];\n"
        "    }\n"
        f"    const {kind} last = __shfl_up_sync(0xffffffffu, upto, 1);\n"
        "    return lane > 0 ? before + last : before;\n"
        "}\n"
    )
