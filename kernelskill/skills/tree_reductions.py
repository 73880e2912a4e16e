"""Trees in shared memory, a barrier a step: what they combine, and whether only the result is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.skills.expression_types import called_name
from kernelskill.skills.kernel_launches import block_lengths, template_bindings
from kernelskill.skills.row_accumulators import Way, plain_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, find_loops, loop_body_statements
from kernelskill.source.polynomial import Atom, Polynomial, operation
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import Node, ancestors, named, strip_parentheses
from kernelskill.source.unit import SourceUnit

_KINDS = frozenset(
    {"float", "double", "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"}
)
_MAXIMA, _MINIMA = frozenset({"max", "fmaxf", "fmax"}), frozenset({"min", "fminf", "fmin"})
_Known = Mapping[str, Polynomial | int]
_THREAD = Polynomial.of(Atom.named("threadIdx.x"))


@dataclass(frozen=True)
class TreeArray:
    """One array that a tree combines."""

    variable: VariableDef
    kind: str
    way: Way


@dataclass(frozen=True, eq=False)
class Tree:
    """A loop that halves, or doubles, the distance of the elements that it combines."""

    loop: Loop = field(repr=False)
    arrays: tuple[TreeArray, ...]
    size: int
    thread: str
    """C text of the thread's number."""


def find_trees(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Tree]:
    """Return the trees of a kernel.

    Raises:
        SkillRefused: There is none that can be replaced.
    """
    loops = [loop for loop in find_loops(unit, kernel) if loop.has_barrier and loop.is_innermost]
    if not loops:
        raise SkillRefused("no loop of it has a barrier")
    size = _block_size(unit, kernel, context)
    known: dict[str, Polynomial | int] = {"blockDim.x": size}
    bound = template_bindings(unit, kernel, context).items()
    known |= {name: int(text) for name, text in bound if text.isdigit()}
    found, refusal = [], ""
    for loop in loops:
        try:
            found.append(_read_tree(unit, kernel, loop, size, known))
        except SkillRefused as refused:
            refusal = refusal or refused.reason
    if not found:
        raise SkillRefused(refusal)
    return found


def _block_size(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> int:
    sizes = block_lengths(unit, kernel, context)
    size = sizes.pop()
    if sizes or size % 32 or size & (size - 1):
        raise SkillRefused(f"blocks of {size} threads and others are no power of two of whole warps")
    return size


def _read_tree(unit: SourceUnit, kernel: KernelDef, loop: Loop, size: int, known: _Known) -> Tree:
    where = f"the loop on line {loop.line}"
    barriers: list[Node] = []
    work: list[Node] = []
    for statement in loop_body_statements(loop):
        (barriers if _is_barrier(unit, statement) else work).append(statement)
    if len(barriers) != 1 or len(work) != 1 or work[0].type != "if_statement":
        raise SkillRefused(f"{where} is no tree: a test, updates and a barrier")
    condition = work[0].child_by_field_name("condition")
    body = work[0].child_by_field_name("consequence")
    if condition is None or body is None or work[0].child_by_field_name("alternative") is not None:
        raise SkillRefused(f"{where} is no tree: its test has another branch")
    thread = _tested_thread(unit, kernel, loop, strip_parentheses(condition), size, known)
    updates = named(body) if body.type == "compound_statement" else [body]
    arrays = tuple(_read_update(unit, kernel, loop, update) for update in updates)
    if len({id(array.variable) for array in arrays}) != len(arrays):
        raise SkillRefused(f"{where} combines twice in one array")
    for array in arrays:
        _refuse_other_uses(unit, kernel, loop, array)
    return Tree(loop, arrays, size, thread)


def _is_barrier(unit: SourceUnit, statement: Node) -> bool:
    return plain_text(unit.syntax, statement) == "__syncthreads();"


def _tested_thread(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, test: Node, size: int, known: _Known
) -> str:
    """Return the text of the thread's number in the test of a tree that covers the block.

    Raises:
        SkillRefused: The loop or its test is another one.
    """
    refusal = SkillRefused(f"the loop on line {loop.line} does not combine all threads of the block")
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if test.type != "binary_expression" or left is None or right is None or loop.declared is None:
        raise refusal
    sign = unit.operator(test)
    if sign in (">", ">=") or (sign == "==" and index_polynomial(unit, kernel, left).is_zero):
        left, right = right, left
        sign = {">": "<", ">=": "<="}.get(sign, sign)
    halving = loop.step_operator in ("/", ">>") and loop.step_value == (2 if loop.step_operator == "/" else 1)
    doubling = loop.step_operator in ("*", "<<") and loop.step_value == (
        2 if loop.step_operator == "*" else 1
    )
    distance = index_polynomial(unit, kernel, _variable_use(unit, kernel, loop))
    starts_at_half = _value(unit, kernel, loop.start, known) == size // 2
    if halving and sign == "<" and starts_at_half and _ends_at_one(loop):
        same = index_polynomial(unit, kernel, left) == _THREAD
        if same and index_polynomial(unit, kernel, right) == distance:
            return unit.text_of(strip_parentheses(left))
    bound = _value(unit, kernel, loop.bound, known)
    if doubling and sign == "==" and loop.start_value == 1 and loop.comparison == "<" and bound == size:
        double = distance + distance
        wanted = (operation("%", _THREAD, double), operation("&", _THREAD, double - Polynomial.constant(1)))
        zero = index_polynomial(unit, kernel, right).is_zero
        if zero and index_polynomial(unit, kernel, left) in wanted:
            return "threadIdx.x"
    raise refusal


def _variable_use(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> Node:
    """Return a use of a loop's variable in its body."""
    stack = [loop.body]
    while stack:
        node = stack.pop()
        if node.type == "identifier" and unit.text_of(node) == loop.variable:
            return node
        stack.extend(reversed(node.children))
    raise SkillRefused(f"the loop on line {loop.line} does not use {loop.variable!r}")


def _value(unit: SourceUnit, kernel: KernelDef, node: Node | None, known: _Known) -> int | None:
    if node is None:
        return None
    return index_polynomial(unit, kernel, node).substitute(known).value


def _ends_at_one(loop: Loop) -> bool:
    above_zero = loop.comparison in (">", "!=") and loop.bound_value == 0
    return above_zero or (loop.comparison == ">=" and loop.bound_value == 1)


def _read_update(unit: SourceUnit, kernel: KernelDef, loop: Loop, statement: Node) -> TreeArray:
    """Return what `s[t] += s[t + d]` combines.

    Raises:
        SkillRefused: It is another statement.
    """
    refusal = SkillRefused(f"line {unit.line_of(statement)} is no step of a tree")
    span = (statement.start_byte, statement.end_byte)
    accesses = [a for a in find_accesses(unit, kernel) if span[0] <= a.span.start and a.span.end <= span[1]]
    texts = {_plain(unit, access.node): access for access in accesses}
    written = [access for access in accesses if access.mode.writes]
    if len(texts) != 2 or len(written) != 1 or not all(access.is_shared for access in accesses):
        raise refusal
    own = _plain(unit, written[0].node)
    other = next(text for text in texts if text != own)
    root, first, second = written[0].root, written[0].index, texts[other].index
    distance = index_polynomial(unit, kernel, _variable_use(unit, kernel, loop))
    reaches = first == _THREAD and second is not None and second - distance == _THREAD
    if not isinstance(root, VariableDef) or texts[other].root is not root or not reaches:
        raise refusal
    if root.storage is Storage.DYNAMIC_SHARED and _dynamic_arrays(kernel) != 1:
        raise SkillRefused(f"other arrays may lie where {root.name!r} lies")
    way = _way(unit, statement, own, other)
    if way is None or written[0].element_type not in _KINDS or len(root.dimensions) != 1:
        raise refusal
    return TreeArray(root, written[0].element_type, way)


def _dynamic_arrays(kernel: KernelDef) -> int:
    pointers = sum(v.pointer_depth > 0 for v in kernel.locals)
    return sum(v.storage is Storage.DYNAMIC_SHARED for v in kernel.locals) + pointers


def _plain(unit: SourceUnit, node: Node) -> str:
    return plain_text(unit.syntax, strip_parentheses(node))


def _way(unit: SourceUnit, statement: Node, own: str, other: str) -> Way | None:
    condition = None
    if statement.type == "if_statement" and statement.child_by_field_name("alternative") is None:
        condition = statement.child_by_field_name("condition")
        body = statement.child_by_field_name("consequence")
        inner = named(body) if body is not None and body.type == "compound_statement" else [body]
        statement = inner[0] if len(inner) == 1 and inner[0] is not None else statement
    assignment = named(statement)[0] if statement.type == "expression_statement" else statement
    right = assignment.child_by_field_name("right")
    if assignment.type != "assignment_expression" or right is None:
        return None
    value, sign = strip_parentheses(right), unit.operator(assignment)
    if condition is not None:
        return _compared(unit, strip_parentheses(condition), own, other, value) if sign == "=" else None
    if sign != "=":
        ok = sign in ("+=", "*=", "&=", "|=", "^=") and _plain(unit, value) == other
        return Way(sign[0], f"{{a}} {sign} {{b}};") if ok else None
    left, last = value.child_by_field_name("left"), value.child_by_field_name("right")
    if value.type == "binary_expression" and left is not None and last is not None:
        sign = unit.operator(value)
        pair = sorted((_plain(unit, left), _plain(unit, last))) == sorted((own, other))
        return Way(sign, f"{{a}} {sign}= {{b}};") if pair and sign in ("+", "*", "&", "|", "^") else None
    if value.type == "call_expression":
        return _called(unit, value, own, other)
    return _chosen(unit, value, own, other) if value.type == "conditional_expression" else None


def _called(unit: SourceUnit, value: Node, own: str, other: str) -> Way | None:
    name = called_name(unit, value)
    listed = value.child_by_field_name("arguments")
    arguments = [_plain(unit, argument) for argument in named(listed)] if listed is not None else []
    known = name in _MAXIMA | _MINIMA and unit.function(name) is None and unit.macro(name) is None
    if not known or sorted(arguments) != sorted((own, other)):
        return None
    return Way("max" if name in _MAXIMA else "min", f"{{a}} = {name}({{a}}, {{b}});")


def _chosen(unit: SourceUnit, value: Node, own: str, other: str) -> Way | None:
    condition = value.child_by_field_name("condition")
    sides = [value.child_by_field_name(name) for name in ("consequence", "alternative")]
    texts = [_plain(unit, side) for side in sides if side is not None]
    if condition is None or sorted(texts) != sorted((own, other)):
        return None
    test = strip_parentheses(condition)
    names = _test_texts(unit, test)
    if names is None or sorted(names) != sorted((own, other)):
        return None
    sign = unit.operator(test)
    operator = "max" if (sign[0] == ">") == (texts[0] == names[0]) else "min"
    parts = ["{a}" if text == own else "{b}" for text in (*names, *texts)]
    return Way(operator, f"{{a}} = {parts[0]} {sign} {parts[1]} ? {parts[2]} : {parts[3]};")


def _compared(unit: SourceUnit, test: Node, own: str, other: str, value: Node) -> Way | None:
    names = _test_texts(unit, test)
    if names is None or sorted(names) != sorted((own, other)) or _plain(unit, value) != other:
        return None
    sign = unit.operator(test)
    parts = ["{a}" if text == own else "{b}" for text in names]
    grows = (sign[0] == ">") == (names[1] == own)
    return Way("max" if grows else "min", f"if ({parts[0]} {sign} {parts[1]}) {{a}} = {{b}};")


def _test_texts(unit: SourceUnit, test: Node) -> tuple[str, str] | None:
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if test.type != "binary_expression" or left is None or right is None:
        return None
    return (_plain(unit, left), _plain(unit, right)) if unit.operator(test)[0] in "<>" else None


def _refuse_other_uses(unit: SourceUnit, kernel: KernelDef, loop: Loop, array: TreeArray) -> None:
    """Decline where anything but the result is read before the array is filled again.

    Raises:
        SkillRefused: It is, or that can't be told.
    """
    own = [a for a in find_accesses(unit, kernel) if a.root is array.variable]
    unknown = [a for a in find_accesses(unit, kernel) if a.root is None]
    if unknown:
        raise SkillRefused(f"line {unknown[0].line} may use {array.variable.name!r}")
    after = [a for a in own if a.span.start >= loop.span.end]
    if _only_result(unit, kernel, after, array) or not _outer(loop):
        return
    outer = _outer(loop)[-1]
    again = [a for a in own if outer.start_byte <= a.span.start < loop.span.start]
    _only_result(unit, kernel, again, array)


def _outer(loop: Loop) -> list[Node]:
    return [node for node in ancestors(loop.node) if node.type in LOOPS]


def _only_result(unit: SourceUnit, kernel: KernelDef, accesses: list[Access], array: TreeArray) -> bool:
    """Return whether a store of every thread ends the life of the old elements.

    Raises:
        SkillRefused: One of them but the first is used before.
    """
    for access in accesses:
        parent = access.statement.parent
        is_filled = access.mode is AccessMode.WRITE and access.index == _THREAD
        in_block = parent is not None and parent.type == "compound_statement"
        if is_filled and in_block and parent is not None and not _is_conditional(parent, kernel):
            return True
        if access.index is None or not access.index.is_zero:
            raise SkillRefused(
                f"line {access.line} uses {unit.text_of(access.node)}, of which the tree has made something"
            )
    return False


def _is_conditional(block: Node, kernel: KernelDef) -> bool:
    """Whether a block is done by some threads only, as far as can be told."""
    node: Node | None = block
    while node is not None and node != kernel.body:
        if node.type in ("if_statement", "switch_statement", "else_clause"):
            return True
        node = node.parent
    return False
