"""How far the accesses of an algorithm reach into its buffers, as a test that a launcher can make.

A kernel that changes when elements are read and written is right where no array that it writes overlaps one that
it reads. Nobody has to promise that: where it is known how far the accesses reach, the launcher looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Load, Monomial, Sym, walk
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lowering.text import Names, bracketed
from kernelskill.algorithm.model import Algorithm, IllegalMove, Parameter
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import cuda_name

MOST_ENDS = 3
"""Different ends of the accesses to one buffer that are compared one by one."""
_MOST_STEPS = 32


@dataclass(frozen=True)
class Extent:
    """Where the accesses to a buffer end: each a number of elements that one of them reaches at most."""

    ends: tuple[Expression, ...]
    non_negative: frozenset[str]
    """Parameters that must not be negative for that."""


@dataclass(frozen=True)
class ApartTest:
    """Statements that find out whether arrays lie apart, and the name that holds the answer."""

    lines: tuple[str, ...]
    name: str


def extent_of(algorithm: Algorithm, buffer: str) -> Extent:
    """Return how far the accesses to a buffer reach.

    Raises:
        IllegalMove: It is not known, as where an index is read from memory.
    """
    ends: dict[Expression, None] = {}
    non_negative: set[str] = set()
    ranges = algorithm.ranges
    for index in dict.fromkeys(_indices(algorithm, buffer)):
        if index.depends_on(*algorithm.states):
            raise IllegalMove(f"{buffer} is accessed where a recurrence leads to")
        lowest = _bound(index, ranges, non_negative, upper=False)
        if not _starts_inside(lowest, non_negative):
            raise IllegalMove(f"{buffer} may be accessed before its first element")
        highest = _bound(index, ranges, non_negative, upper=True)
        _keep_farthest(ends, integers.add(highest, integers.constant(1)))
    if len(ends) > MOST_ENDS:
        raise IllegalMove(f"the accesses to {buffer} end in too many places")
    return Extent(tuple(ends), frozenset(non_negative))


def apart_test(
    algorithm: Algorithm, pairs: Sequence[tuple[str, str]], arguments: Mapping[str, str], names: Names
) -> ApartTest:
    """Return the test that no first buffer of a pair overlaps the second one.

    Args:
        algorithm: Tells how far its accesses reach.
        pairs: Parameters of the kernel.
        arguments: Parameter to the text of its argument at the launch.
        names: Hands out names that are free in the launcher.

    Raises:
        IllegalMove: It is not known how far they reach.
    """
    extents = {buffer: extent_of(algorithm, buffer) for pair in pairs for buffer in pair}
    lines: list[str] = []
    ends: dict[str, list[str]] = {}
    for buffer, extent in extents.items():
        ends[buffer] = []
        for end in extent.ends:
            name = names.fresh(f"{buffer}_bytes")
            lines.append(f"const size_t {name} = {_bytes(algorithm.parameter(buffer), end, arguments)};")
            ends[buffer].append(f"{_address(arguments[buffer])} + {name}")
    signs = sorted(frozenset().union(*(extent.non_negative for extent in extents.values())))
    tests = [f"{bracketed(arguments[name])} >= 0" for name in signs if _is_signed(algorithm, name)]
    for first, second in pairs:
        before = " && ".join(f"{end} <= {_address(arguments[second])}" for end in ends[first])
        after = " && ".join(f"{end} <= {_address(arguments[first])}" for end in ends[second])
        several = " && " in before + after
        either = (f"({before})", f"({after})") if several else (before, after)
        tests.append(f"({either[0]}\n        || {either[1]})")
    answer = names.fresh("apart")
    lines.append(f"const bool {answer} = " + "\n    && ".join(tests) + ";")
    return ApartTest(tuple(lines), answer)


def _keep_farthest(ends: dict[Expression, None], end: Expression) -> None:
    """Add an end, unless one that is known lies at a fixed distance behind it; replace one before it."""
    for known in list(ends):
        distance = integers.value_of(integers.subtract(end, known))
        if distance is not None and distance <= 0:
            return
        if distance is not None:
            del ends[known]
    ends[end] = None


def _indices(algorithm: Algorithm, buffer: str) -> Iterable[Expression]:
    for store in algorithm.stores:
        if store.buffer == buffer:
            yield store.index
        for expression in store.expressions:
            for node in walk(expression):
                if isinstance(node, Load) and node.buffer == buffer:
                    yield node.index


def _starts_inside(lowest: Expression, non_negative: set[str]) -> bool:
    """Whether a smallest index is zero or more, where parameters are not negative that it notes."""
    terms = integers.terms_of(lowest)
    if any(factor < 0 for factor in terms.values()):
        return False
    atoms = [atom for monomial in terms for atom in monomial]
    if not all(isinstance(atom, Sym) for atom in atoms):
        return False
    non_negative |= {atom.name for atom in atoms if isinstance(atom, Sym)}
    return True


def _bound(index: Expression, ranges: Ranges, non_negative: set[str], *, upper: bool) -> Expression:
    """Return the largest or smallest value of an index over the ranges of its variables."""
    found = index
    for _ in range(_MOST_STEPS):
        name = _innermost(found, ranges)
        if name is None:
            break
        factor = integers.coefficient(found, name)
        if factor is None or factor.depends_on(*ranges):
            raise IllegalMove(f"it is not known how far [{show(index)}] reaches")
        rises = _is_not_negative(factor, non_negative)
        low, above = ranges[name]
        end = integers.subtract(above, integers.constant(1)) if rises == upper else low
        found = integers.add(integers.without(found, name), integers.multiply(factor, end))
    if any(not isinstance(atom, Sym) for monomial in integers.terms_of(found) for atom in monomial):
        raise IllegalMove(f"it is not known how far [{show(index)}] reaches")
    return found


def _innermost(expression: Expression, ranges: Ranges) -> str | None:
    """Return a variable of the expression on which no range of another one of its variables depends."""
    own = [name for name in ranges if expression.depends_on(name)]
    for name in own:
        others = [bound for other in own if other != name for bound in ranges[other]]
        if not any(bound.depends_on(name) for bound in others):
            return name
    return own[0] if own else None


def _is_not_negative(factor: Expression, non_negative: set[str]) -> bool:
    """Return whether a variable's factor is not negative, under conditions on parameters that are added.

    Raises:
        IllegalMove: That is not known.
    """
    signs = {count > 0 for count in integers.terms_of(factor).values()}
    atoms = [atom for monomial in integers.terms_of(factor) for atom in monomial]
    if len(signs) > 1 or any(not isinstance(atom, Sym) for atom in atoms):
        raise IllegalMove(f"the sign of {show(factor)} is not known")
    non_negative |= {atom.name for atom in atoms if isinstance(atom, Sym)}
    return signs != {False}


def _bytes(parameter: Parameter, elements: Expression, arguments: Mapping[str, str]) -> str:
    """Return a number of elements in bytes; `sizeof` comes first, so that every product has 64 bits."""
    size, text = f"sizeof({cuda_name(parameter.kind)})", ""
    for monomial, count in integers.terms_of(elements).items():
        factors = [*([str(abs(count))] if abs(count) != 1 else []), *_factors(monomial, arguments)]
        sign = "-" if count < 0 else "+"
        term = " * ".join([size, *factors])
        text = f"{text} {sign} {term}" if text else term if count > 0 else f"0 - {term}"
    return text or "0"


def _factors(monomial: Monomial, arguments: Mapping[str, str]) -> list[str]:
    names = [atom.name for atom in monomial if isinstance(atom, Sym)]
    return [bracketed(arguments.get(name, name)) for name in names]


def _address(argument: str) -> str:
    return f"reinterpret_cast<size_t>({argument})"


def _is_signed(algorithm: Algorithm, name: str) -> bool:
    """Whether comparing a parameter with zero says anything."""
    kinds = {p.name: p.kind for p in algorithm.parameters}
    return not kinds.get(name, "int").startswith("unsigned")
