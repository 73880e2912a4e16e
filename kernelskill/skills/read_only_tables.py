"""Small tables that every thread of a kernel reads: arrays of the file, or pointers of provable extent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelskill.skills.device_code import macros_in, words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.global_index import GuardedKernel, read_guarded
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.shared_arrays import SIZES, whole_accesses
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_polynomial, index_reader
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, LoopKind, enclosing_loops, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, ancestors, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_THREADS = frozenset(f"threadIdx.{axis}" for axis in "xyz")


@dataclass(frozen=True)
class Table:
    """A table with its accesses."""

    declared: Declared
    element: str
    extents: tuple[int, ...]
    accesses: tuple[Access, ...]
    condition: str
    """C text, valid where the kernel begins, under which the whole table is certain to exist."""
    assumptions: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return SIZES[plain_type(self.element)] * math.prod(self.extents)


@dataclass(frozen=True)
class TableReader:
    """Finds the tables of one kernel."""

    unit: SourceUnit
    kernel: KernelDef
    ranges: ValueRanges
    context: SkillContext

    def of_file(self, variable: VariableDef) -> Table:
        """Return a constant array of the file as a table.

        Raises:
            SkillRefused: It is none, or it is better left where it is.
        """
        name = variable.name
        extents = [self.ranges.constant(node) if node is not None else None for node in variable.dimensions]
        known = tuple(extent for extent in extents if extent is not None and extent > 0)
        if len(known) != len(extents) or len(known) > 2 or plain_type(variable.base_type) not in SIZES:
            raise SkillRefused(f"{name!r} has unknown extents or elements")
        accesses = whole_accesses(self.unit, self.kernel, variable, self.context)
        if not accesses or any(access.mode is not AccessMode.READ or access.member for access in accesses):
            raise SkillRefused(f"{name!r} is not only read")
        if not any(self._differs(access) for access in accesses):
            raise SkillRefused(f"all threads read {name!r} at one index, which constant memory serves best")
        return Table(variable, variable.base_type, known, tuple(accesses), "")

    def _differs(self, access: Access) -> bool:
        """Whether threads read different elements."""
        indices = [index_polynomial(self.unit, self.kernel, index) for index in access.indices]
        return any(index.depends & _THREADS for index in indices)

    def of_parameter(self, parameter: ParameterDef) -> Table:
        """Return what a pointer points at as a table.

        Raises:
            SkillRefused: Its extent can't be proven, or it may be written.
        """
        name = parameter.name
        kind = plain_type(self.ranges.bindings.get(parameter.pointee_type, parameter.pointee_type))
        accesses = self._plain_accesses(parameter)
        if kind not in SIZES:
            raise SkillRefused(f"{name!r} has elements of type {kind!r}")
        guarded = read_guarded(self.unit, self.kernel)
        condition = self._guard_text(guarded)
        sizes = [self._certain_extent(access, guarded) for access in accesses]
        extent = max((size for size in sizes if size is not None), default=0)
        if not extent:
            raise SkillRefused(f"{name!r} is nowhere certain to be read over a constant range from 0 on")
        for access in accesses:
            found = self.ranges.of(access.indices[0])
            if found is None or found[0] < 0 or found[1] >= extent:
                text = self.unit.text_of(access.node)
                raise SkillRefused(f"line {access.line}: {text} is not certain to be below {extent}")
        assumptions = self._check_writes(accesses[0])
        return Table(parameter, parameter.pointee_type, (extent,), tuple(accesses), condition, assumptions)

    def is_shared_by_threads(self, parameter: ParameterDef) -> bool:
        """Whether threads read some element of a pointer together."""
        own = [access for access in find_accesses(self.unit, self.kernel) if access.root is parameter]
        return any(
            not index_polynomial(self.unit, self.kernel, index).depends & _THREADS
            for access in own
            for index in access.indices
        )

    def _plain_accesses(self, parameter: ParameterDef) -> list[Access]:
        name = parameter.name
        flow = flow_of(self.unit, self.kernel)
        own = [access for access in find_accesses(self.unit, self.kernel) if access.root is parameter]
        for access in own:
            plain = access.node.type == "subscript_expression" and len(access.indices) == 1
            plain = plain and access.base == name and not access.member and access.space is Space.GLOBAL
            if not plain or access.mode is not AccessMode.READ:
                raise SkillRefused(f"line {access.line}: {self.unit.text_of(access.node)} is no plain load")
        uses = [
            node
            for node in (walk(self.kernel.body) if self.kernel.body is not None else ())
            if node.type == "identifier" and flow.resolve(node) is parameter
        ]
        for macro in macros_in(self.unit, words_in(self.unit, self.kernel.span), self.context):
            if name in macro.possible:
                raise SkillRefused(f"macro {macro.name!r} may use {name!r}")
        if not own or len(uses) != len(own):
            raise SkillRefused(f"{name!r} is used as more than an array of elements")
        return own

    def _guard_text(self, guarded: GuardedKernel) -> str:
        """Return under which condition the thread of index 0 does the work.

        Raises:
            SkillRefused: It is more than tests of the global indices against parameters.
        """
        flow = flow_of(self.unit, self.kernel)
        tests = [s for s in guarded.prologue if s.type == "if_statement"]
        tests += [guarded.wrapper] if guarded.wrapper is not None else []
        leaves = sum(self._leaves(test.child_by_field_name("condition")) for test in tests)
        if leaves != len(guarded.guards):
            raise SkillRefused("it tests more than its global indices before the work")
        texts = []
        for guard in guarded.guards:
            for node in walk(guard.bound):
                declared = flow.resolve(node) if node.type == "identifier" else None
                fixed = isinstance(declared, ParameterDef) and not flow.writes_to(declared)
                if declared is not None and not fixed:
                    raise SkillRefused(f"the size {self.unit.text_of(guard.bound)} is not known at its start")
            bound = self.unit.text_of(guard.bound)
            bound = bound if guard.bound.type in ("identifier", "number_literal") else f"({bound})"
            kind = guard.variable.base_type
            texts.append(f"{'' if kind == 'int' else f'({kind})'}0 < {bound}")
        return " && ".join(texts)

    def _leaves(self, node: Node | None) -> int:
        if node is None:
            return 0
        node = strip_parentheses(node)
        if node.type == "binary_expression" and self.unit.operator(node) in ("&&", "||"):
            return sum(self._leaves(node.child_by_field_name(side)) for side in ("left", "right"))
        return 1

    def _certain_extent(self, access: Access, guarded: GuardedKernel) -> int | None:
        """Return how many elements from 0 on the work certainly reaches; None where that isn't certain."""
        work = next((s for s in guarded.work if span_of(s).contains(access.span)), None)
        if work is None or any(n.type == "return_statement" for s in guarded.work for n in walk(s)):
            return None
        loops = enclosing_loops(find_loops(self.unit, self.kernel), access.node)
        if not all(self._is_full(loop) for loop in loops) or not self._is_always_done(access.node, work):
            return None
        reader = index_reader(self.unit, self.kernel)
        index = index_polynomial(self.unit, self.kernel, access.indices[0])
        low = high = 0
        by_atom = {reader.loop_atom(loop): loop for loop in loops}
        for monomial, factor in index.terms:
            if not monomial:
                low, high = low + factor, high + factor
                continue
            loop = by_atom.get(monomial[0].text) if len(monomial) == 1 else None
            if loop is None or factor < 0 or loop.start_value is None or loop.trip_count is None:
                return None
            low += factor * loop.start_value
            high += factor * (loop.start_value + loop.trip_count - 1)
        return high + 1 if low == 0 else None

    def _is_full(self, loop: Loop) -> bool:
        """Whether a loop takes each of a constant number of turns, by ones."""
        counted = loop.kind is LoopKind.FOR and loop.signed_step == 1 and bool(loop.trip_count)
        return counted and not (loop.has_break or loop.has_continue or loop.has_return)

    def _is_always_done(self, node: Node, work: Node) -> bool:
        child = node
        for parent in ancestors(node):
            choosing = parent.type in ("if_statement", "switch_statement", "while_statement", "do_statement")
            if choosing and child != parent.child_by_field_name("condition"):
                return False
            if parent.type in ("conditional_expression", "lambda_expression", "sizeof_expression"):
                return False
            if parent.type == "binary_expression" and self.unit.operator(parent) in ("&&", "||"):
                return False
            if parent == work:
                return True
            child = parent
        return child == work

    def _check_writes(self, load: Access) -> tuple[str, ...]:
        """Decline where any thread may write the table while the kernel runs."""
        if self.kernel.body is not None:
            refuse_hidden_accesses(self.unit, self.kernel, self.kernel.body, self.context)
        assumptions: list[str] = []
        for other in find_accesses(self.unit, self.kernel):
            if other.mode.writes:
                answer = separate(self.unit, self.kernel, load, other, self.context)
                if not answer.disjoint:
                    text = self.unit.text_of(other.node)
                    raise SkillRefused(f"line {other.line} writes {text}, which may be part of {load.base!r}")
                assumptions += [answer.assumption] if answer.assumption else []
        return tuple(dict.fromkeys(assumptions))


def file_arrays(unit: SourceUnit) -> list[VariableDef]:
    """Return the arrays of a file that kernels can only read."""
    return [
        variable
        for variable in unit.globals
        if variable.dimensions
        and not variable.pointer_depth
        and (
            variable.storage is Storage.CONSTANT or (variable.storage is Storage.DEVICE and variable.is_const)
        )
    ]
