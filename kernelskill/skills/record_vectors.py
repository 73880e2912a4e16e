"""Neighbouring scalars of one record that a thread accesses one by one, and that one vector can move.

A record is a run of elements `p[S * i + 0]`, `p[S * i + 1]`, ... or a struct whose fields have one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.contraction import stores_product
from kernelskill.skills.device_code import units_of, words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.kept_elements import ElementFinder, lvalue_of
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.straight_line import child_of, is_evaluated
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.pointers import Space
from kernelskill.source.polynomial import Atom, Polynomial
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

VECTORS = {
    "float": ("float", 4),
    "int": ("int", 4),
    "unsigned": ("uint", 4),
    "short": ("short", 2),
    "unsigned short": ("ushort", 2),
    "unsigned char": ("uchar", 1),
    "double": ("double", 8),
    "long long": ("longlong", 8),
    "unsigned long long": ("ulonglong", 8),
}
"""Element type to the stem of its vectors' names, and its bytes."""
_LARGEST = 16


@dataclass(frozen=True)
class Lane:
    """One scalar of a record, with everything that is done to it in a block."""

    position: int
    """Scalars from the record's start."""
    text: str
    accesses: tuple[Access, ...]
    is_certain: bool
    """Whether the block certainly accesses it."""


@dataclass(frozen=True)
class RecordVector:
    """Scalars that one vector moves."""

    base: str
    element: str
    lanes: tuple[Lane, ...]
    fields: tuple[str, ...]
    """The texts of the scalars, one a lane; those that are not accessed too."""
    first: Node = field(repr=False)
    last: Node = field(repr=False)
    is_const: bool
    is_loaded: bool
    assumptions: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.fields)

    @property
    def vector(self) -> str:
        return f"{VECTORS[self.element][0]}{self.width}"

    @property
    def bytes(self) -> int:
        return VECTORS[self.element][1] * self.width

    @property
    def is_stored(self) -> bool:
        return any(access.mode.writes for lane in self.lanes for access in lane.accesses)


@dataclass(frozen=True)
class RecordReader:
    """Finds the records of one kernel."""

    unit: SourceUnit
    kernel: KernelDef
    context: SkillContext
    finder: ElementFinder
    entries: Sequence[KernelLaunch]
    bindings: Mapping[str, str]

    def vectors(self, block: Node, root: ParameterDef, refusals: list[str]) -> list[RecordVector]:
        """Return what vectors can move of one array in a block."""
        found: list[RecordVector] = []
        reasons: dict[int, list[str]] = {2: [], 4: []}
        for lanes, names in self._records(block, root):
            taken: set[int] = set()
            for width in (4, 2):
                for start in sorted({lane.position // width * width for lane in lanes.values()}):
                    wanted = range(start, start + width)
                    if taken & set(wanted):
                        continue
                    try:
                        found.append(self._vector(block, root, lanes, names, wanted))
                        taken |= set(wanted)
                    except SkillRefused as refused:
                        reasons[width].append(refused.reason)
        refusals += [*reasons[2], *reasons[4]]
        return found

    def _records(
        self, block: Node, root: ParameterDef
    ) -> list[tuple[dict[int, Lane], tuple[str, ...] | None]]:
        """Return the lanes of each record by position, and the fields' names of a struct."""
        names = struct_fields(self.unit, self.context, root)
        groups: dict[tuple[str, str], dict[int, list[Access]]] = {}
        for access in find_accesses(self.unit, self.kernel):
            place = self._place(access, root, names) if span_of(block).contains(access.span) else None
            if place is not None:
                groups.setdefault(place[0], {}).setdefault(place[1], []).append(access)
        found = []
        for lanes in groups.values():
            made = {position: self._lane(block, position, own) for position, own in lanes.items()}
            found.append((made, names))
        return found

    def _place(
        self, access: Access, root: ParameterDef, names: tuple[str, ...] | None
    ) -> tuple[tuple[str, str], int] | None:
        """Return what tells a record from others, and where in it an access lies."""
        if access.root is not root or access.index is None or access.node.type != "subscript_expression":
            return None
        if access.space is not Space.GLOBAL or access.mode is AccessMode.ATOMIC:
            return None
        if self._plain(access.element_type) != self._plain(root.pointee_type):
            return None
        if names is not None:
            name = access.member.removeprefix(".")
            keys = ",".join(atom.key for atom in access.index.atoms)
            return ((str(access.index), keys), names.index(name)) if name in names else None
        constant = dict(access.index.terms).get((), 0)
        rest = access.index - Polynomial.constant(constant)
        if access.member or constant < 0 or any(factor % 2 for _, factor in rest.terms):
            return None
        return (str(rest), ",".join(atom.key for atom in rest.atoms)), constant

    def _lane(self, block: Node, position: int, accesses: list[Access]) -> Lane:
        certain = any(
            is_evaluated(self.unit, child_of(block, access.node), access.node) for access in accesses
        )
        return Lane(position, self.unit.text_of(lvalue_of(accesses[0])), tuple(accesses), certain)

    def _vector(
        self,
        block: Node,
        root: ParameterDef,
        lanes: Mapping[int, Lane],
        names: tuple[str, ...] | None,
        wanted: range,
    ) -> RecordVector:
        own = tuple(lanes[position] for position in wanted if position in lanes)
        if not own:
            raise SkillRefused(f"{root.name!r} has no such record")
        element = self._element(root, names)
        size = VECTORS[element][1] * len(wanted)
        first_access = own[0].accesses[0]
        where = f"line {first_access.line}: {own[0].text}"
        if size > _LARGEST or (names is not None and len(names) % len(wanted)):
            raise SkillRefused(f"{where}: no vector has {len(wanted)} elements of type {element!r}")
        fields = self._fields(own, names, wanted)
        if names is None and not self._is_aligned(first_access, len(wanted)):
            raise SkillRefused(f"{where}: its records do not start at multiples of {len(wanted)} elements")
        if names is None and not all(lane.is_certain for lane in own):
            raise SkillRefused(f"{where}: not all of the scalars beside it are certainly accessed")
        if not any(lane.is_certain for lane in own) or sum(len(lane.accesses) for lane in own) < 2:
            raise SkillRefused(f"{where}: it is not certainly accessed more than once")
        first, last, assumptions = self._reach(block, own)
        vector = RecordVector(
            base=first_access.base,
            element=element,
            lanes=own,
            fields=fields,
            first=first,
            last=last,
            is_const=root.is_const,
            is_loaded=not all(self._is_set_first(block, lane) for lane in own) or len(own) < len(wanted),
            assumptions=assumptions,
        )
        if vector.is_stored:
            self._check_stores(vector, root)
        return vector

    def _plain(self, kind: str) -> str:
        bare = kind.removeprefix("struct ").strip()
        return plain_type(self.bindings.get(bare, bare))

    def _element(self, root: ParameterDef, names: tuple[str, ...] | None) -> str:
        kind = self._plain(root.pointee_type)
        if names is not None:
            kind = struct_type(self.unit, self.context, root)
        if kind not in VECTORS:
            raise SkillRefused(f"{root.name!r} has elements of type {kind!r}, which has no vector")
        return kind

    def _fields(self, own: tuple[Lane, ...], names: tuple[str, ...] | None, wanted: range) -> tuple[str, ...]:
        if names is None:
            if len(own) != len(wanted):
                raise SkillRefused(
                    f"line {own[0].accesses[0].line}: the scalars beside {own[0].text} are not accessed"
                )
            return tuple(lane.text for lane in own)
        whole = self.unit.text_of(own[0].accesses[0].node)
        return tuple(f"{whole}.{names[position]}" for position in wanted)

    def _is_aligned(self, access: Access, width: int) -> bool:
        terms = access.index.terms if access.index is not None else ()
        return all(factor % width == 0 for monomial, factor in terms if monomial)

    def _reach(self, block: Node, own: tuple[Lane, ...]) -> tuple[Node, Node, tuple[str, ...]]:
        """Return the statements between which the vector stands for the scalars."""
        accesses = sorted((a for lane in own for a in lane.accesses), key=lambda a: a.span.start)
        statements = [child_of(block, access.node) for access in accesses]
        first, last = statements[0], statements[-1]
        reach = Span(first.start_byte, last.end_byte)
        self.finder.check_statements(block, first, last)
        for statement in named(block):
            if reach.contains(span_of(statement)) and _may_leave(statement):
                raise SkillRefused(f"line {self.unit.line_of(statement)} may leave between two accesses")
        for lane in own:
            for access in lane.accesses:
                self.finder.check_index(access, access, reach)
        stored = any(access.mode.writes for access in accesses)
        assumptions: list[str] = []
        ids = {access.node.id for access in accesses}
        for other in find_accesses(self.unit, self.kernel):
            if other.node.id in ids or not reach.contains(other.span) or not (stored or other.mode.writes):
                continue
            for lane in own:
                answer = separate(self.unit, self.kernel, lane.accesses[0], other, self.context)
                if not answer.disjoint:
                    text = self.unit.text_of(other.node)
                    raise SkillRefused(f"line {other.line} accesses {text}, which may be {lane.text}")
                assumptions += [answer.assumption] if answer.assumption else []
        return first, last, tuple(dict.fromkeys(assumptions))

    def _is_set_first(self, block: Node, lane: Lane) -> bool:
        """Whether the first thing done to a scalar is certainly that it gets a value."""
        access = lane.accesses[0]
        statement = child_of(block, access.node)
        inside = [other for other in lane.accesses if span_of(statement).contains(other.span)]
        plain = access.mode is AccessMode.WRITE and statement.type == "expression_statement"
        return plain and len(inside) == 1 and is_evaluated(self.unit, statement, access.node)

    def _check_stores(self, vector: RecordVector, root: ParameterDef) -> None:
        """Decline where the stores of the whole vector could undo what another thread writes.

        Raises:
            SkillRefused: A scalar is not certainly stored, and may belong to another thread as well.
        """
        surely = [any(self._stores_surely(vector, a) for a in lane.accesses) for lane in vector.lanes]
        if root.is_const or not any(surely):
            raise SkillRefused(f"{vector.fields[0]} and the scalars beside it are not certainly stored")
        if not all(surely) or len(vector.lanes) < vector.width:
            self._check_owner(root)
            self._check_others(vector, root)
        for lane in vector.lanes:
            for position, access in enumerate(lane.accesses):
                change = lvalue_of(access).parent
                read = any(other.mode.reads for other in lane.accesses[position + 1 :])
                if not access.mode.writes or not read or change is None:
                    continue
                if stores_product(self.unit, self.kernel, change, vector.element):
                    raise SkillRefused(
                        f"line {access.line} stores a product in {lane.text}: "
                        "kept in a register, it might be added without being rounded"
                    )

    def _stores_surely(self, vector: RecordVector, access: Access) -> bool:
        statement = child_of(vector.first.parent or vector.first, access.node)
        return access.mode.writes and is_evaluated(self.unit, statement, access.node)

    def _check_owner(self, root: ParameterDef) -> None:
        """Decline unless each record is accessed by one thread only: the one of its global index."""
        is_struct = struct_fields(self.unit, self.context, root) is not None
        extent = 0
        for access in find_accesses(self.unit, self.kernel):
            if access.root is not root:
                continue
            stride = access.index.coefficient("threadIdx.x") if access.index is not None else None
            size = stride.value if stride is not None else None
            if access.index is None or size is None or size < 1 or extent not in (0, size):
                raise SkillRefused(f"line {access.line}: other threads may access the same record")
            extent = size
            constant = dict(access.index.terms).get((), 0)
            if not 0 <= constant < (1 if is_struct else size) or not self._is_own(
                access.index, constant, size
            ):
                raise SkillRefused(f"line {access.line}: other threads may access the same record")
        if not self.entries:
            raise SkillRefused(f"how many threads access a record of {root.name!r} can't be told")
        for entry in self.entries:
            if entry.launch.block.values[1:] != (1, 1) or entry.launch.grid.values[1:] != (1, 1):
                raise SkillRefused(f"line {entry.launch.line} launches threads that share a record")

    def _is_own(self, index: Polynomial, constant: int, size: int) -> bool:
        """Whether an index is the global index, times a size, plus a constant."""
        blocks = {entry.launch.block.values[0] for entry in self.entries}
        widths = [Polynomial.of(Atom.named("blockDim.x"))]
        widths += [Polynomial.constant(block) for block in blocks if block and len(blocks) == 1]
        thread, place = (Polynomial.of(Atom.named(f"{name}.x")) for name in ("threadIdx", "blockIdx"))
        rest = index - Polynomial.constant(constant)
        return any(rest == Polynomial.constant(size) * (thread + place * width) for width in widths)

    def _check_others(self, vector: RecordVector, root: ParameterDef) -> None:
        """Decline where another thread may write the record by way of another pointer."""
        for other in find_accesses(self.unit, self.kernel):
            if other.mode.writes and other.root is not root:
                access = vector.lanes[0].accesses[0]
                if not separate(self.unit, self.kernel, access, other, self.context).disjoint:
                    text = self.unit.text_of(other.node)
                    raise SkillRefused(f"line {other.line} writes {text}, which may be {vector.fields[0]}")


def _may_leave(statement: Node) -> bool:
    """Whether a statement may end more than itself."""
    for node in walk(statement):
        if node.type == "return_statement":
            return True
        if node.type in ("break_statement", "continue_statement"):
            inside = [parent for parent in ancestors(node) if span_of(statement).contains(span_of(parent))]
            if not any(parent.type in LOOPS for parent in inside):
                return True
    return False


def struct_fields(unit: SourceUnit, context: SkillContext, root: ParameterDef) -> tuple[str, ...] | None:
    """Return the fields of a plain struct of scalars of one type; None for anything else."""
    found = _struct(unit, context, root)
    return found[1] if found is not None else None


def struct_type(unit: SourceUnit, context: SkillContext, root: ParameterDef) -> str:
    """Return the type of the fields of a plain struct; empty where it is none."""
    found = _struct(unit, context, root)
    return found[0] if found is not None else ""


def _struct(
    unit: SourceUnit, context: SkillContext, root: ParameterDef
) -> tuple[str, tuple[str, ...]] | None:
    name = root.pointee_type.removeprefix("struct ").strip()
    found = []
    for other in units_of(unit, context):
        for node in walk(other.root):
            title = node.child_by_field_name("name") if node.type == "struct_specifier" else None
            if title is not None and other.text_of(title) == name and node.child_by_field_name("body"):
                found.append(_read_struct(other, node))
    return found[0] if len(found) == 1 else None


def _bare(unit: SourceUnit, body: Node) -> str:
    """Return the text of a struct's body without white space, comments and signs between the names."""
    text, position = "", body.start_byte
    for node in walk(body):
        if node.type == "comment":
            text += unit.text_of(Span(position, node.start_byte))
            position = node.end_byte
    text += unit.text_of(Span(position, body.end_byte))
    return "".join(text.translate(str.maketrans("{},;", "    ")).split())


def _read_struct(unit: SourceUnit, node: Node) -> tuple[str, tuple[str, ...]] | None:
    body = node.child_by_field_name("body")
    head = {child.type for child in node.children}
    if body is None or head - {"struct", "type_identifier", "field_declaration_list", "comment"}:
        return None
    kinds: set[str] = set()
    names: list[str] = []
    words: list[str] = []
    for member in named(body):
        kind = member.child_by_field_name("type")
        declared = member.children_by_field_name("declarator")
        if member.type != "field_declaration" or kind is None or not declared:
            return None
        if any(child.type != "field_identifier" for child in declared):
            return None
        words += [*unit.text_of(kind).split(), *(unit.text_of(child) for child in declared)]
        kinds.add(plain_type(unit.text_of(kind)))
        names += [unit.text_of(child) for child in declared]
    # Alignments, bit fields and the like show as more than types and names.
    plain = words_in(unit, body) == words and "".join(words) == _bare(unit, body)
    return (kinds.pop(), tuple(names)) if plain and len(kinds) == 1 else None
