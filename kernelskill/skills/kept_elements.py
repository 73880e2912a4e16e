"""Elements of memory that straight-line code accesses again, so that one local variable can stand for them.

The variable takes its value where the code first accesses the element for certain. It stands for the
element up to where something else may write it, a barrier lets other threads write it, or its index changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelskill.skills.device_code import words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.loop_effects import is_invariant, refuse_hidden_accesses
from kernelskill.skills.straight_line import blocks_of, child_of, is_evaluated, outermost_loop
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import enclosing_loops, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_SPACES = (Space.GLOBAL, Space.SHARED)
_STRANGE = frozenset({"goto_statement", "lambda_expression", "gnu_asm_expression", "preproc_if"})


@dataclass(frozen=True)
class KeptUse:
    """One access that the variable can stand for."""

    access: Access
    crossed: tuple[Access, ...]
    """Stores to other elements between the variable's declaration and this access."""
    in_loop: bool
    """Whether it is done again and again while the variable lives."""


@dataclass(frozen=True)
class KeptElement:
    """An element with the accesses that one local variable can stand for."""

    key: str
    text: str
    first: Node = field(repr=False)
    """The statement before which the variable is declared."""
    uses: tuple[KeptUse, ...]
    assumptions: tuple[str, ...]

    @property
    def stores(self) -> tuple[KeptUse, ...]:
        return tuple(use for use in self.uses if use.access.mode.writes)

    @property
    def is_read_again(self) -> bool:
        """Whether it is loaded more than once, and the compiler can't know that it needn't be."""
        again = self.uses[1:] if not self.uses[0].in_loop else self.uses
        return any(use.crossed for use in again if use.access.mode.reads)

    @property
    def is_read_back(self) -> bool:
        """Whether it is loaded after it was stored, and the compiler can't know what was stored."""
        for position, use in enumerate(self.uses):
            before = self.uses if use.in_loop else self.uses[:position]
            stored = any(other.access.mode.writes for other in before)
            if use.access.mode.reads and use.crossed and stored:
                return True
        return False


def kept_elements(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> list[KeptElement]:
    """Return the elements of a kernel that a variable can stand for; reasons against others go to `refusals`.

    Raises:
        SkillRefused: The kernel does something that hides accesses.
    """
    refuse_strange(unit, kernel)
    finder = ElementFinder(unit, kernel, context, find_accesses(unit, kernel), refusals)
    found: list[KeptElement] = []
    covered: set[int] = set()
    keys: dict[str, int] = {}
    for block in blocks_of(kernel.body) if kernel.body is not None else ():
        for group in finder.groups(block):
            element = finder.element(block, group)
            if element is None or all(use.access.node.id in covered for use in element.uses):
                continue
            covered |= {use.access.node.id for use in element.uses}
            keys[element.key] = keys.get(element.key, 0) + 1
            number = keys[element.key]
            key = element.key if number == 1 else f"{element.key}#{number}"
            found.append(KeptElement(key, element.text, element.first, element.uses, element.assumptions))
    return found


def refuse_strange(unit: SourceUnit, kernel: KernelDef) -> None:
    """Decline a kernel that may access memory in a way that its elements don't show.

    Raises:
        SkillRefused: It has volatile memory, jumps, lambdas, inline assembly or references.
    """
    if "volatile" in words_in(unit, kernel.span):
        raise SkillRefused("the kernel uses volatile memory")
    if any(node.type in _STRANGE for node in walk(kernel.node)):
        raise SkillRefused("it has jumps, lambdas or inline assembly")
    reference = next((variable for variable in kernel.locals if variable.is_reference), None)
    if reference is not None:
        raise SkillRefused(f"{reference.name!r} is a reference, which may name an element")


@dataclass(frozen=True)
class ElementFinder:
    """Groups the accesses of a kernel by element, and tells how long an element stays what it was."""

    unit: SourceUnit
    kernel: KernelDef
    context: SkillContext
    accesses: Sequence[Access]
    refusals: list[str]
    obstacles: dict[int, str] = field(default_factory=dict)

    def groups(self, block: Node) -> list[list[Access]]:
        """Return the accesses below a block, those to one element together."""
        found: dict[str, list[Access]] = {}
        for access in self.accesses:
            if span_of(block).contains(access.span) and self._is_plain(access):
                found.setdefault("".join(self.unit.text_of(access.node).split()), []).append(access)
        return list(found.values())

    def _is_plain(self, access: Access) -> bool:
        known = access.root is not None and access.space in _SPACES and is_own_type(access)
        return is_element(self.unit, access.node) and known and access.mode is not AccessMode.ATOMIC

    def element(self, block: Node, group: list[Access]) -> KeptElement | None:
        """Return what a variable declared in the block can stand for; None for too little."""
        start = self._start(block, group)
        if start is None:
            return None
        first, anchor = start
        uses: list[KeptUse] = []
        assumptions: list[str] = []
        for access in group:
            if access.span.start < first.start_byte:
                continue
            try:
                use, found = self._use(block, first, anchor, access)
            except SkillRefused as refused:
                self.refusals.append(refused.reason)
                break
            uses.append(use)
            assumptions += found
        self._cut(block, group, uses)
        while uses and not uses[-1].access.mode.reads and not uses[-1].in_loop:
            uses.pop()
        if not uses:
            return None
        text = self.unit.text_of(anchor.node)
        loops = enclosing_loops(find_loops(self.unit, self.kernel), block)
        place = loops[-1].key if loops else "body"
        key = f"{self.kernel.name}/{place}/{''.join(text.split())}"
        return KeptElement(key, text, first, tuple(uses), tuple(dict.fromkeys(assumptions)))

    def _cut(self, block: Node, group: list[Access], uses: list[KeptUse]) -> None:
        """Drop uses in loops that also store the element where the variable can't follow."""
        while uses:
            covered = {use.access.node.id for use in uses}
            missed = [a for a in group if a.mode.writes and a.node.id not in covered]
            loops = [outermost_loop(block, use.access.node) for use in uses]
            held = [
                position
                for position, loop in enumerate(loops)
                if loop is not None and any(span_of(loop).contains(access.span) for access in missed)
            ]
            if not held:
                return
            del uses[held[0] :]

    def _start(self, block: Node, group: list[Access]) -> tuple[Node, Access] | None:
        """Return the first statement of a block that certainly accesses the element."""
        for access in group:
            statement = child_of(block, access.node)
            if is_evaluated(self.unit, statement, access.node):
                return statement, access
        return None

    def _use(
        self, block: Node, first: Node, anchor: Access, access: Access
    ) -> tuple[KeptUse, tuple[str, ...]]:
        """Return a use with what it crosses.

        Raises:
            SkillRefused: The variable may not hold the element's value there.
        """
        loop = outermost_loop(block, access.node)
        own_start = access.span.start if loop is None else loop.end_byte
        reach = Span(first.start_byte, max(access.span.end, own_start))
        self.check_index(anchor, access, reach)
        self.check_statements(block, first, child_of(block, access.node))
        if access.mode.writes:
            refuse_unwritable(self.unit, access)
        crossed, assumptions = [], []
        for other in self.accesses:
            if not other.mode.writes or not reach.contains(other.span) or self._is_same(anchor, other):
                continue
            if loop is None and _is_stored_after(other, access):
                continue
            answer = separate(self.unit, self.kernel, access, other, self.context)
            if not answer.disjoint:
                text = self.unit.text_of(other.node)
                raise SkillRefused(
                    f"line {other.line} writes {text}, which may be {self.unit.text_of(anchor.node)}"
                )
            crossed.append(other)
            assumptions += [answer.assumption] if answer.assumption else []
        return KeptUse(access, tuple(crossed), loop is not None), tuple(assumptions)

    def _is_same(self, anchor: Access, other: Access) -> bool:
        """Whether another access is certainly one to the element itself."""
        texts = ["".join(self.unit.text_of(entry.node).split()) for entry in (anchor, other)]
        return texts[0] == texts[1] and self._is_plain(other) and self.names_agree(anchor, other)

    def names_agree(self, anchor: Access, access: Access) -> bool:
        """Whether the names in two elements of one text mean the same variables."""
        flow = flow_of(self.unit, self.kernel)
        names = [
            [flow.resolve(node) for node in walk(entry.node) if node.type == "identifier"]
            for entry in (anchor, access)
        ]
        return all(one is other for one, other in zip(*names, strict=True))

    def check_index(self, anchor: Access, access: Access, reach: Span) -> None:
        """Decline where an access is not certain to name the anchor's element all through a range."""
        text = self.unit.text_of(access.node)
        if anchor is not access and not self.names_agree(anchor, access):
            raise SkillRefused(f"line {access.line}: {text} names other variables")
        base = access.node.child_by_field_name("argument")
        while base is not None and base.type == "subscript_expression":
            base = strip_parentheses(base.child_by_field_name("argument") or base)
        declared = None
        if base is not None and base.type == "identifier":
            declared = flow_of(self.unit, self.kernel).resolve(base)
        is_array = isinstance(declared, VariableDef) and bool(declared.dimensions)
        parts = [*access.indices] if is_array or base is None else [*access.indices, base]
        if not all(is_invariant(self.unit, self.kernel, part, reach) for part in parts):
            raise SkillRefused(f"line {access.line}: the index of {text} changes, or is more than variables")

    def check_statements(self, block: Node, first: Node, last: Node) -> None:
        """Decline where a statement up to the use may access memory unseen or wait for other threads."""
        for statement in named(block):
            if statement.start_byte < first.start_byte or statement.start_byte > last.start_byte:
                continue
            if statement.id not in self.obstacles:
                try:
                    refuse_hidden_accesses(self.unit, self.kernel, statement, self.context)
                    self.obstacles[statement.id] = ""
                except SkillRefused as refused:
                    self.obstacles[statement.id] = refused.reason
            if self.obstacles[statement.id]:
                raise SkillRefused(self.obstacles[statement.id])


def is_element(unit: SourceUnit, node: Node) -> bool:
    """Whether a node is an element itself, not the address that an intrinsic takes."""
    if node.type == "pointer_expression":
        return unit.operator(node) == "*"
    return node.type == "subscript_expression"


def is_own_type(access: Access) -> bool:
    """Whether an element is of the type that its parameter or array is declared with."""
    root = access.root
    declared = root.pointee_type if isinstance(root, ParameterDef) else root.base_type if root else ""
    return bool(access.element_type) and plain_type(access.element_type) == plain_type(declared)


def _is_stored_after(store: Access, use: Access) -> bool:
    """Whether a store is the last thing that an assignment does, whose operands hold the use."""
    assignment = next((n for n in ancestors(store.node) if n.type == "assignment_expression"), None)
    if assignment is None or store.mode is AccessMode.ATOMIC:
        return False
    left = assignment.child_by_field_name("left")
    target = left is not None and span_of(left).contains(store.span)
    return target and span_of(assignment).contains(use.span) and store.node != use.node


def lvalue_of(access: Access) -> Node:
    """Return the element with the fields behind it."""
    node, parent = access.node, access.node.parent
    while parent is not None and parent.type in ("field_expression", "parenthesized_expression"):
        node, parent = parent, parent.parent
    return node


def refuse_unwritable(unit: SourceUnit, access: Access) -> None:
    """Decline a store that is more than a statement of its own.

    Raises:
        SkillRefused: Its value is used, or it stands in the head of a loop.
    """
    change = lvalue_of(access).parent
    statement = change.parent if change is not None else None
    if (
        change is None
        or statement is None
        or change.type not in ("assignment_expression", "update_expression")
        or statement.type != "expression_statement"
    ):
        raise SkillRefused(f"line {access.line} stores {unit.text_of(access.node)} inside an expression")
