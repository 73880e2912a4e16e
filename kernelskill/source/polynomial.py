"""Integer expressions as polynomials: two spellings of one index compare equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelskill.computed import computed


@dataclass(frozen=True)
class Atom:
    """Something that a polynomial does not look into."""

    key: str
    """Tells atoms apart; atoms of one key have one value wherever both are visible."""
    text: str = field(compare=False)
    """As people write it, for example `threadIdx.x`, `n` or `a / b`."""
    depends: frozenset[str] = field(default=frozenset(), compare=False)
    """Texts of what the value depends on, its own included."""
    operation: str = field(default="", compare=False)
    """`/`, `%`, `>>` or `&` where the atom is such an operation on polynomials."""
    operands: tuple[Polynomial, ...] = field(default=(), compare=False, repr=False)

    @staticmethod
    def named(text: str) -> Atom:
        """Return an atom that depends on nothing but itself."""
        return Atom(text, text, frozenset({text}))


Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of atoms with integer coefficients."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial((((), value),)) if value else Polynomial()

    @staticmethod
    def of(atom: Atom) -> Polynomial:
        return Polynomial((((atom,), 1),))

    @staticmethod
    def collect(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
        """Add up terms, and join `(a / b) * b + a % b` to `a`."""
        sums: dict[Monomial, int] = {}
        for monomial, factor in terms:
            key = tuple(sorted(monomial, key=lambda atom: atom.key))
            sums[key] = sums.get(key, 0) + factor
        joined = _join_remainders(sums)
        kept = [(monomial, factor) for monomial, factor in joined.items() if factor]
        return Polynomial(tuple(sorted(kept, key=lambda term: [atom.key for atom in term[0]])))

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial.collect([*self.terms, *other.terms])

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Polynomial.collect(
            ((*left, *right), a * b) for left, a in self.terms for right, b in other.terms
        )

    @property
    def value(self) -> int | None:
        """The constant, where it is one."""
        if not self.terms:
            return 0
        monomial, factor = self.terms[0]
        return factor if len(self.terms) == 1 and not monomial else None

    @property
    def is_zero(self) -> bool:
        return not self.terms

    @computed
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms, each once."""
        return tuple(dict.fromkeys(atom for monomial, _ in self.terms for atom in monomial))

    @computed
    def depends(self) -> frozenset[str]:
        """What the value depends on."""
        return frozenset().union(*(atom.depends for atom in self.atoms))

    def depends_on(self, text: str) -> bool:
        """Whether the value may change with what `text` names."""
        return text in self.depends

    def coefficient(self, text: str) -> Polynomial | None:
        """Return the factor of an atom.

        None where the value depends on it in another way than as a factor of degree one, for example
        inside a division.
        """
        found: list[tuple[Monomial, int]] = []
        for monomial, factor in self.terms:
            own = [atom for atom in monomial if atom.text == text and not atom.operation]
            rest = tuple(atom for atom in monomial if atom not in own)
            if len(own) > 1 or any(text in atom.depends for atom in rest):
                return None
            if own:
                found.append((rest, factor))
        return Polynomial.collect(found)

    def without(self, text: str) -> Polynomial:
        """Return the terms that do not depend on an atom."""
        kept = [
            (monomial, factor)
            for monomial, factor in self.terms
            if not any(text in atom.depends or atom.text == text for atom in monomial)
        ]
        return Polynomial.collect(kept)

    def substitute(self, values: Mapping[str, Polynomial | int]) -> Polynomial:
        """Return the polynomial with atoms replaced by their text."""
        result = Polynomial()
        for monomial, factor in self.terms:
            product = Polynomial.constant(factor)
            for atom in monomial:
                product = product * _substituted(atom, values)
            result = result + product
        return result

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        return " + ".join(_term_text(monomial, factor) for monomial, factor in self.terms)


def _term_text(monomial: Monomial, factor: int) -> str:
    parts = [atom.text if _is_simple(atom.text) else f"({atom.text})" for atom in monomial]
    if factor != 1 or not parts:
        parts.insert(0, str(factor))
    return "*".join(parts)


def _is_simple(text: str) -> bool:
    return all(character.isalnum() or character in "_.:#[]" for character in text)


def _substituted(atom: Atom, values: Mapping[str, Polynomial | int]) -> Polynomial:
    if atom.text in values and not atom.operation:
        value = values[atom.text]
        return Polynomial.constant(value) if isinstance(value, int) else value
    if atom.operation and any(text in values for text in atom.depends):
        return operation(atom.operation, *(operand.substitute(values) for operand in atom.operands))
    return Polynomial.of(atom)


def operation(operator: str, left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the result of `/`, `%`, `>>` or `&` on non-negative values, folded where it is exact."""
    a, b = left.value, right.value
    if a is not None and b is not None and a >= 0 and b > 0:
        folded = {"/": a // b, "%": a % b, ">>": a >> min(b, 63), "&": a & b}
        return Polynomial.constant(folded[operator])
    if operator in ("/", "%") and b == 1:
        return left if operator == "/" else Polynomial()
    if left.is_zero:
        return Polynomial()
    text = f"{_operand_text(left)} {operator} {_operand_text(right)}"
    key = f"({left}) {operator} ({right}) {_keys(left)}|{_keys(right)}"
    return Polynomial.of(Atom(key, text, left.depends | right.depends | {text}, operator, (left, right)))


def _keys(polynomial: Polynomial) -> str:
    return ",".join(atom.key for atom in polynomial.atoms)


def _operand_text(polynomial: Polynomial) -> str:
    text = str(polynomial)
    return text if _is_simple(text) else f"({text})"


_PARTNERS = {"%": "/", "&": ">>"}


def _join_remainders(sums: dict[Monomial, int]) -> dict[Monomial, int]:
    for monomial in list(sums):
        for position, atom in enumerate(monomial):
            if atom.operation not in _PARTNERS or monomial not in sums or not sums[monomial]:
                continue
            rest = (*monomial[:position], *monomial[position + 1 :])
            joined = _join_one(sums, monomial, rest, atom)
            if joined is not None:
                return _join_remainders(joined)
    return sums


def _join_one(
    sums: dict[Monomial, int], monomial: Monomial, rest: Monomial, atom: Atom
) -> dict[Monomial, int] | None:
    """Join one remainder with its quotient times the divisor; None where that product is not there."""
    left, right = atom.operands
    divisor = right
    shift = right
    if atom.operation == "&":
        mask = right.value
        if mask is None or mask <= 0 or mask & (mask + 1):
            return None
        divisor, shift = Polynomial.constant(mask + 1), Polynomial.constant(mask.bit_length())
    if len(divisor.terms) != 1:
        return None
    quotients = operation(_PARTNERS[atom.operation], left, shift).terms
    if len(quotients) != 1:
        return None
    (divisor_atoms, divisor_factor), (quotient_atoms, _) = divisor.terms[0], quotients[0]
    product = tuple(sorted((*rest, *divisor_atoms, *quotient_atoms), key=lambda entry: entry.key))
    factor = sums[monomial]
    if sums.get(product, 0) != factor * divisor_factor:
        return None
    result = {key: value for key, value in sums.items() if key not in (monomial, product)}
    for atoms, value in left.terms:
        key = tuple(sorted((*rest, *atoms), key=lambda entry: entry.key))
        result[key] = result.get(key, 0) + value * factor
    return result
