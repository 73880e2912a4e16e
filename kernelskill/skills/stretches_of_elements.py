"""Kernels whose threads take neighbouring stretches of one long array, in terms of the element's number."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Call, Cast, Expression, Loop, Select, Sym
from kernelskill.algorithm.lifting.coverage import reaches
from kernelskill.algorithm.model import Axis
from kernelskill.algorithm.rewriting import substitute
from kernelskill.skills.scan_points import ELEMENT, HostTerms, limit_of
from kernelskill.skills.transformation import SkillRefused


@dataclass(frozen=True)
class Choice:
    """Which elements threads choose from their stretches."""

    tests: tuple[Expression, ...]
    """What must hold of a chosen one; each is asked only where those before it hold."""
    count: Expression
    """How many elements there are."""

    def in_host_terms(self, terms: HostTerms) -> tuple[frozenset[Expression], Expression]:
        """Return both as the launcher knows them."""
        return frozenset(terms.of(test) for test in self.tests), terms.of(self.count)


def chosen(axis: Axis, loop: Loop, tests: list[Expression], terms: HostTerms) -> Choice:
    """Return what turns of a loop choose under tests, for threads along an axis.

    Raises:
        SkillRefused: The stretches overlap, or leave out elements, or that can't be told.
    """
    refusal = SkillRefused(f"the stretches along {loop.name} may leave out elements, or take some twice")
    if integers.value_of(axis.lower) != 0:
        raise refusal
    number = Sym(axis.name, axis.kind)
    count: Expression | None = None
    place: Expression = ELEMENT
    if loop.lower.depends_on(axis.name):
        start = loop.lower
        after = substitute(start, {axis.name: integers.add(number, integers.constant(1))})
        count = _end(loop.upper, after)
        if count is None and loop.upper != after:
            raise refusal
    elif integers.value_of(loop.lower) == 0 and not loop.upper.depends_on(axis.name):
        start = integers.multiply(loop.upper, number)
        place = integers.subtract(ELEMENT, start)
    else:
        raise refusal
    own = [substitute(test, {loop.name: place}) for test in tests]
    for test in list(own):
        limit = limit_of(test)
        if limit is None:
            continue
        if not limit[1] or count not in (None, limit[0]):
            raise refusal
        count = limit[0]
        own.remove(test)
    whole = substitute(start, {axis.name: axis.upper})
    is_linear = integers.value_of(substitute(start, {axis.name: integers.constant(0)})) == 0
    if not is_linear or any(test.depends_on(axis.name) for test in own):
        raise refusal
    count = whole if count is None else count
    if count.depends_on(axis.name) or (count != whole and not reaches(terms.of(whole), terms.of(count))):
        raise refusal
    return Choice(tuple(own), count)


def _end(upper: Expression, after: Expression) -> Expression | None:
    """Return the number of elements at which a stretch ends that could go on to the next one."""
    if isinstance(upper, Call) and upper.function == "min" and after in upper.arguments:
        return upper.arguments[1 - upper.arguments.index(after)]
    if not isinstance(upper, Select) or not isinstance(upper.condition, Binary):
        return None
    test, sides = upper.condition, (upper.first, upper.second)
    if after not in sides or test.op not in ("<", "<=", ">", ">="):
        return None
    other = sides[1 - sides.index(after)]
    if {test.left, test.right} != {after, other}:
        return None
    is_least = (sides[0] == test.left) == (test.op in ("<", "<="))
    return other if is_least else None


def tests_of_count(body: Expression) -> list[Expression] | None:
    """Return the tests under which a sum's body is one, where it is nothing otherwise; None where it is more."""
    if integers.value_of(body) == 1:
        return []
    if isinstance(body, Select) and integers.value_of(body.second) == 0:
        inner = tests_of_count(body.first)
        return [*integers.conjuncts(body.condition), *inner] if inner is not None else None
    if isinstance(body, Cast):
        body = body.operand
    return list(integers.conjuncts(body)) if body.type == "bool" else None
