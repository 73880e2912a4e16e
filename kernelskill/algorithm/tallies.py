"""Loops that add constants by cases: the cases are kept as digits of words, and counted a word at a time.

A step that adds to one of several accumulators compares and selects for each of them. Written into a word, the case of a
step is a digit of a few bits; population counts say of a whole word how often each bit was set, and from these
numbers the sums follow. All is exact: sums of integers may be taken in any order modulo 2^32.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import combinations

from kernelskill.algorithm.case_amounts import Accumulator, amounts, case_count, choices
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Loop,
    Num,
    Reduce,
    Sym,
    walk,
)
from kernelskill.algorithm.integers import (
    add,
    compared,
    constant,
    divide,
    multiply,
    remainder,
    selected,
    value_of,
)
from kernelskill.algorithm.low_bits import low_bits
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.renaming import bound_names, renamed_expression
from kernelskill.algorithm.rewriting import replace_outermost, substitute
from kernelskill.algorithm.types import is_signed

_BITS = 32
_WORD = "unsigned"


@dataclass(frozen=True)
class _State:
    """A variable that goes from step to step."""

    symbol: Sym
    initial: Expression
    update: Expression


@dataclass(frozen=True)
class _Sum:
    """An accumulator that is computed from counts of cases."""

    kind: str
    initial: Expression
    amounts: tuple[int, ...]


def with_tallies(algorithm: Algorithm, found: tuple[Reduce | Fold, ...]) -> Algorithm:
    """Return the algorithm with cases counted a word at a time, in every loop where that is possible.

    Args:
        algorithm: What to change.
        found: The accumulations that run once a point.

    Raises:
        IllegalMove: It is possible in no loop.
    """
    loops: dict[tuple[Loop, ...], list[Reduce | Fold]] = {}
    for each in found:
        loops.setdefault(each.loops, []).append(each)
    names = Names(_taken(algorithm))
    table: dict[Expression, Expression] = {}
    reasons: list[str] = []
    for members in loops.values():
        try:
            table.update(_Tally(members, names).replacements())
        except IllegalMove as refused:
            reasons.append(refused.reason)
    if not table:
        raise IllegalMove(reasons[0] if reasons else "no loop accumulates")
    return algorithm.mapped(lambda expression: replace_outermost(expression, table.get))


def _taken(algorithm: Algorithm) -> set[str]:
    """Return the names that mean something in an algorithm, those of functions and constants among them."""
    taken = {*bound_names(algorithm), *(parameter.name for parameter in algorithm.parameters)}
    for expression in algorithm.expressions:
        for node in walk(expression):
            if isinstance(node, Call):
                taken.add(node.function)
            elif isinstance(node, Num):
                taken |= set(re.findall(r"[A-Za-z_]\w*", node.text))
    return taken


class _Tally:
    """One loop whose steps add constants by cases.

    Raises:
        IllegalMove: Its steps do not, or it does something else besides.
    """

    def __init__(self, members: list[Reduce | Fold], names: Names) -> None:
        self._members, self._names = members, names
        self._loop = _plain_loop(members[0])
        self._carried = _carried(members)
        self._choice, self._sums = self._chosen()
        self._states = [state for name, state in self._carried.items() if name not in self._sums]
        self._require_gain()
        self._digit = max(1, ((case_count(self._choice) or 1) - 1).bit_length())
        self._steps = _BITS // self._digit
        self._takes_low_bits = self._keep_low_bits()

    # what is there

    def _accumulators(self) -> dict[str, tuple[Accumulator, Expression]]:
        """Return the variables that steps add to, with their first values."""
        found: dict[str, tuple[Accumulator, Expression]] = {}
        for name, state in self._carried.items():
            others = [each.update for other, each in self._carried.items() if other != name]
            if not any(update.depends_on(name) for update in others):
                found[name] = Accumulator(name, state.symbol.type, state.update), state.initial
        for number, member in enumerate(self._members):
            if isinstance(member, Reduce) and member.op == "+":
                found[_key(number)] = Accumulator("", member.kind, member.body), member.initial
        return found

    def _chosen(self) -> tuple[Expression, dict[str, _Sum]]:
        """Return the value by which the steps choose, and the accumulators that it decides."""
        every = self._accumulators()
        best: tuple[Expression, dict[str, _Sum]] | None = None
        for choice in choices([entry.update for entry, _ in every.values()]):
            sums = {}
            for key, (entry, initial) in every.items():
                added = amounts(entry, choice)
                if added is not None and len(set(added)) > 1:
                    sums[key] = _Sum(entry.kind, initial, added)
            if sums and (best is None or len(sums) > len(best[1])):
                best = choice, sums
        if best is None:
            raise IllegalMove("no loop adds constants that are chosen by a value of at most eight cases")
        return best

    def _require_gain(self) -> None:
        if len(self._sums) == 1 and len(set(next(iter(self._sums.values())).amounts)) < 3:
            raise IllegalMove("a step adds to one variable, with two outcomes: there is little to save")
        for number, member in enumerate(self._members):
            if isinstance(member, Reduce) and _key(number) not in self._sums:
                raise IllegalMove("the loop accumulates something else besides")
        kept = (self._choice, *(state.update for state in self._states))
        if any(node.depends_on(*self._sums) for node in kept):
            raise IllegalMove("the loop reads what it accumulates")
        if any(isinstance(node, Reduce | Fold) for each in kept for node in walk(each)):
            raise IllegalMove("a step runs loops of its own")

    def _keep_low_bits(self) -> bool:
        """Keep the only state without its highest bits where nobody asks for more of it than the cases."""
        if len(self._states) != 1 or case_count(self._choice) != 1 << self._digit:
            return False
        (state,) = self._states
        used = [each.states[each.index].name for each in self._members if isinstance(each, Fold)]
        found = low_bits(state.symbol, state.update, self._choice) if state.symbol.name not in used else None
        if found is None:
            return False
        self._states = [_State(state.symbol, found.initial(state.initial), found.update)]
        self._choice = found.choice
        return True

    # what stands for it

    def replacements(self) -> dict[Expression, Expression]:
        """Return the values that stand for the accumulations."""
        loop, steps = self._loop, constant(self._steps)
        words, rest = divide(loop.upper, steps), remainder(loop.upper, steps)
        if value_of(rest) is None and is_signed(loop.upper.type):
            rest = selected(compared(">", loop.upper, constant(0)), rest, constant(0))
        initials = [state.initial for state in self._states]
        totals = {key: _unsigned(each.initial, each.kind) for key, each in self._sums.items()}
        if value_of(words) != 0:
            initials, totals = self._whole_words(words, initials, totals)
        if value_of(rest) != 0:
            first = multiply(words, steps)
            last = self._word(rest, first, initials)
            totals = {key: self._with_counts(totals[key], key, last[-1], rest) for key in totals}
            initials = last[:-1]
        return self._table(initials, totals)

    def _whole_words(
        self, words: Expression, initials: list[Expression], totals: dict[str, Expression]
    ) -> tuple[list[Expression], dict[str, Expression]]:
        """Return the variables behind all steps that fill a word, and the sums."""
        outer = Loop(self._names.fresh(f"{self._loop.name}_word"), constant(0), words, self._loop.kind)
        states = [Sym(self._names.fresh(s.symbol.name), s.symbol.type) for s in self._states]
        sums = {key: Sym(self._names.fresh(self._base(key)), totals[key].type) for key in totals}
        first = multiply(outer.symbol, constant(self._steps))
        word = self._word(constant(self._steps), first, list(states))
        updates = word[:-1] + [
            self._with_counts(symbol, key, word[-1], constant(self._steps)) for key, symbol in sums.items()
        ]
        fold = Fold((outer,), (*states, *sums.values()), (*initials, *totals.values()), tuple(updates), 0)
        values: list[Expression] = [replace(fold, index=at) for at in range(len(fold.states))]
        return values[: len(states)], dict(zip(totals, values[len(states) :], strict=True))

    def _base(self, key: str) -> str:
        return key if key in self._carried else "total"

    def _word(self, steps: Expression, first: Expression, initials: list[Expression]) -> list[Expression]:
        """Return the variables behind some steps, and last the word with a digit for the case of each."""
        loop = Loop(self._names.fresh(f"{self._loop.name}_step"), constant(0), steps, "int")
        cases = Sym(self._names.fresh("cases"), _WORD)
        names = {state.symbol.name: self._names.fresh(state.symbol.name) for state in self._states}
        position = {self._loop.name: add(first, loop.symbol)}

        def own(expression: Expression) -> Expression:
            return renamed_expression(substitute(expression, position), names)

        digit = own(self._choice)
        if digit.type != _WORD:
            digit = Cast(_WORD, digit)
        placed = Binary(
            "|", cases, Binary("<<", digit, multiply(loop.symbol, constant(self._digit)), _WORD), _WORD
        )
        if _are_highest(self._choice, self._digit):
            # One shift takes the highest bits of one word into the lowest of another.
            placed = Binary("|", Binary("<<", cases, constant(self._digit), _WORD), digit, _WORD)
        updates = [own(state.update) for state in self._states]
        fold = Fold(
            (loop,),
            (*(Sym(names[s.symbol.name], s.symbol.type) for s in self._states), cases),
            (*initials, constant(0, _WORD)),
            (*updates, placed),
            0,
        )
        return [replace(fold, index=at) for at in range(len(fold.states))]

    def _with_counts(self, total: Expression, key: str, word: Expression, steps: Expression) -> Expression:
        """Return a sum with what the steps of a word add to it."""
        # What is added may be negative: it is widened with its sign, whatever counts the steps.
        turns = steps if steps.type == "int" else Cast("int", steps)
        counted = _sum_of(self._sums[key].amounts, word, turns, self._digit)
        if value_of(counted) == 0:
            return total
        return Binary("+", total, Cast(total.type, counted), total.type)

    def _table(self, states: list[Expression], totals: dict[str, Expression]) -> dict[Expression, Expression]:
        variables = {s.symbol.name: value for s, value in zip(self._states, states, strict=True)}
        if self._takes_low_bits:
            variables = {}
        variables |= {key: _back(value, self._sums[key].kind) for key, value in totals.items()}
        table: dict[Expression, Expression] = {}
        for number, member in enumerate(self._members):
            if isinstance(member, Reduce):
                table[member] = variables[_key(number)]
                continue
            for position, state in enumerate(member.states):
                if state.name in variables:
                    table[replace(member, index=position)] = variables[state.name]
        return table


def _key(number: int) -> str:
    """Return what stands for the name of an accumulator that has none."""
    return f"#{number}"


def _carried(members: list[Reduce | Fold]) -> dict[str, _State]:
    """Return what goes from step to step, by name: several recurrences may have a variable in common.

    Raises:
        IllegalMove: One name stands for two variables.
    """
    found: dict[str, _State] = {}
    for member in members:
        if isinstance(member, Fold):
            for position, symbol in enumerate(member.states):
                state = _State(symbol, member.initials[position], member.updates[position])
                if found.setdefault(symbol.name, state) != state:
                    raise IllegalMove("two recurrences of the loop call their variables alike")
    return found


def _plain_loop(member: Reduce | Fold) -> Loop:
    if len(member.loops) != 1:
        raise IllegalMove("the accumulators run over several loops")
    (loop,) = member.loops
    if value_of(loop.lower) != 0:
        raise IllegalMove("the loop does not begin with zero")
    return loop


def _unsigned(value: Expression, kind: str) -> Expression:
    """Return a value in the unsigned type of the same size: sums that are put off must not overflow on their way."""
    unsigned = kind if not is_signed(kind) else "unsigned long long" if kind == "long long" else "unsigned"
    known = value_of(value)
    if known is not None and known >= 0:
        return constant(known, unsigned)
    return value if value.type == unsigned else Cast(unsigned, value)


def _back(value: Expression, kind: str) -> Expression:
    return Cast(kind, value) if is_signed(kind) else value


def _are_highest(choice: Expression, digit: int) -> bool:
    """Whether a case is the highest bits of a word."""
    if not isinstance(choice, Binary) or choice.op != ">>" or choice.left.type != _WORD:
        return False
    return value_of(choice.right) == _BITS - digit


def _sum_of(added: tuple[int, ...], word: Expression, steps: Expression, digit: int) -> Expression:
    """Return what some steps add, from the word with their cases.

    The amount of a case is a sum over the sets of bits that are set in it, so that of a word it is enough to
    know for each set how many digits have all its bits.
    """
    factors = _by_bits(added, digit)
    total = multiply(constant(factors[()]), steps)
    for bits, factor in factors.items():
        if bits and factor:
            total = add(total, multiply(constant(factor), _count(word, bits, digit)))
    return total


def _by_bits(added: tuple[int, ...], digit: int) -> dict[tuple[int, ...], int]:
    """Return the factor of every set of bits, from what is added in every case."""
    factors: dict[tuple[int, ...], int] = {}
    for size in range(digit + 1):
        for bits in combinations(range(digit), size):
            case = sum(1 << bit for bit in bits)
            below = sum(factor for other, factor in factors.items() if set(other) < set(bits))
            # A case that never comes may add what costs nothing.
            factors[bits] = added[case] - below if case < len(added) else 0
    return factors


def _count(word: Expression, bits: tuple[int, ...], digit: int) -> Expression:
    """Return in how many digits of a word all of some bits are set."""
    places = sum(1 << digit * at for at in range(_BITS // digit))
    lowest, *others = bits
    # One bit alone is counted where it stands.
    if not others:
        return Call("__popc", (_masked(word, places << lowest),), "int")
    shifted = [word if bit == 0 else Binary(">>", word, constant(bit), _WORD) for bit in bits]
    both = shifted[0]
    for each in shifted[1:]:
        both = Binary("&", both, each, _WORD)
    return Call("__popc", (_masked(both, places),), "int")


def _masked(word: Expression, mask: int) -> Expression:
    return Binary("&", word, constant(mask, _WORD), _WORD)
