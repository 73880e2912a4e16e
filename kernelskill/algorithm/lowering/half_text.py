"""Text of values in halves of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from kernelskill.algorithm.halves.model import (
    SIGNED,
    Bits,
    Both,
    Chosen,
    Equal,
    Extreme,
    Flag,
    Half,
    Linear,
    Magnitude,
    Not,
    NotNegative,
    Shifted,
    Tap,
    Truth,
    Uniform,
    spread,
    total,
)
from kernelskill.algorithm.halves.sharing import Grid, Offsets, Pattern, Shared, Term, Terms, share_sums
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import size_of

_NAMES = {"+": "sums", "max": "largest", "min": "smallest"}


class HalfText:
    """Writes values of one pair of points, each intermediate one under a name."""

    def __init__(self, context: Context, grid: Grid | None) -> None:
        self._context, self._grid = context, grid
        self._lines: list[str] = []
        self._names: dict[Half | Flag, str] = {}
        self._sums: dict[frozenset[Term], tuple[str, int]] = {}
        self._shared: dict[str, dict[frozenset[Term], Terms]] = {}
        self._arrays: dict[Pattern, tuple[str, Offsets]] = {}

    def taken(self) -> list[str]:
        """Return the declarations that were written since, and forget them."""
        lines, self._lines = self._lines, []
        return lines

    def word(self, value: Half, bias: int) -> str:
        """Return the text of a value under a bias."""
        if isinstance(value, Linear):
            return self._linear(value, bias)
        text = self._plain(value)
        return text if value.bias == bias else f"({text} + {_hex(spread(bias - value.bias))})"

    def flag(self, flag: Flag) -> str:
        """Return the text of a condition: the highest bit of each half."""
        match flag:
            case NotNegative():
                return self.word(flag.value, SIGNED)
            case Not():
                return f"~{self.flag(flag.flag)}"
            case Both():
                return f"({self.flag(flag.left)} {flag.op} {self.flag(flag.right)})"
            case Equal():
                left, right = self.word(flag.left, 0), self.word(flag.right, 0)
                return f"({_hex(spread(SIGNED))} - ({left} ^ {right}))"
        raise AssertionError(type(flag))

    def _plain(self, value: Half) -> str:
        """Return the text of a value under its own bias."""
        if isinstance(value, Tap):
            return value.window + "".join(f"[{show(place)}]" for place in value.places)
        if value not in self._names:
            base, text = self._parts(value)
            self._names[value] = self._declare(base, text)
        return self._names[value]

    def _parts(self, value: Half) -> tuple[str, str]:
        """Return what a value is called, and its text."""
        match value:
            case Uniform():
                return "bound", self._uniform(value)
            case Extreme():
                return self._extreme(value)
            case Magnitude():
                both = (self.word(total([(value.value, sign)]), SIGNED) for sign in (1, -1))
                return "magnitude", f"__vmaxu2({', '.join(both)})"
            case Bits():
                return "bits", f"{self.word(value.left, 0)} {value.op} {self.word(value.right, 0)}"
            case Shifted():
                mask = _hex(spread(0xFFFF >> value.count))
                return "shifted", f"{self.word(value.value, 0)} >> {value.count} & {mask}"
            case Truth():
                return "truth", f"{self.flag(value.flag)} >> 15 & 0x00010001u"
            case Chosen():
                first, second = self.word(value.first, value.bias), self.word(value.second, value.bias)
                mask = self._declare("mask", f"({self.flag(value.flag)} >> 15 & 0x00010001u) * 0xffffu")
                return "chosen", f"({first} & {mask}) | ({second} & ~{mask})"
        raise AssertionError(type(value))

    def _uniform(self, value: Uniform) -> str:
        """Return the word both of whose halves hold a parameter, between its bounds."""
        text, kind = self._context.show(value.expression), value.expression.type
        suffix = "u" if kind == "unsigned" else ""
        if size_of(kind) == 4:
            text = f"static_cast<unsigned>({text})" if suffix else text
            text = f"min({text}, {value.high}{suffix})"
            text = text if suffix else f"max({text}, {value.low})"
        moved = f"{text} + {value.bias}" if value.bias else text
        return f"static_cast<unsigned>({moved}) * 0x00010001u"

    def _extreme(self, value: Extreme) -> tuple[str, str]:
        name = "larger" if value.op == "max" else "smaller"
        leaves = _leaves(value, value.op)
        shared = self._shared.get(value.op, {}).get(frozenset(_elements(leaves)))
        if shared is not None:
            part = _nested(value.op, [self._term(term, factor) for term, factor in shared])
            part = f"({part} + {_hex(spread(value.bias))})" if value.bias else part
            others = [self.word(leaf, value.bias) for leaf in leaves if not isinstance(leaf, Tap)]
            return name, _nested(value.op, [part, *others])
        for added, other in ((value.left, value.right), (value.right, value.left)):
            terms = added.terms if isinstance(added, Linear) and added.number == 0 else ()
            if len(terms) != 2 or any(factor != 1 for _, factor in terms):
                continue
            # Halves are added one by one here: biases that make 65536 vanish.
            if sum(term.bias for term, _ in terms) % (2 * SIGNED) == value.bias:
                listed = [*(self._plain(term) for term, _ in terms), self.word(other, value.bias)]
                return name, f"__viadd{value.op}_u16x2({', '.join(listed)})"
        sides = self.word(value.left, value.bias), self.word(value.right, value.bias)
        return name, f"__v{value.op}u2({', '.join(sides)})"

    def _declare(self, base: str, text: str) -> str:
        name = self._context.names.fresh(base)
        self._lines.append(f"const unsigned {name} = {text};")
        return name

    # sums

    def _linear(self, value: Linear, bias: int) -> str:
        number, texts = value.number + bias, []
        # What is made of elements alone may be wanted again, with other bounds.
        for terms in (self._known(_taps(value)), tuple(e for e in value.terms if not isinstance(e[0], Tap))):
            if len(terms) > 2 or any(abs(factor) != 1 for _, factor in terms):
                name, own, sign = self._held(terms)
                texts.append((name, sign < 0))
                number -= sign * own
            else:
                texts += [(self._term(term, factor), factor < 0) for term, factor in terms]
                number -= sum(factor * _bias(term) for term, factor in terms)
        return _joined(texts, number)

    def _held(self, terms: Terms) -> tuple[str, int, int]:
        """Return the name of a sum, its bias, and whether it is added or taken away."""
        for sign in (1, -1):
            key = frozenset((term, sign * factor) for term, factor in terms)
            if key in self._sums:
                return *self._sums[key], sign
        texts = [(self._term(term, factor), factor < 0) for term, factor in terms]
        bias = sum(factor * _bias(term) for term, factor in terms)
        self._sums[frozenset(terms)] = self._declare("sum", _joined(texts, 0)), bias
        return *self._sums[frozenset(terms)], 1

    def _term(self, term: Half | Shared, factor: int) -> str:
        text = self._shared_text(term) if isinstance(term, Shared) else self._plain(term)
        return text if abs(factor) == 1 else f"{text} * {abs(factor)}"

    # what neighbouring points have in common

    def share(self, values: Iterable[Half]) -> None:
        """Write the sums that neighbouring points have in common, for all of them."""
        if self._grid is None:
            return
        nodes = [node for value in values for node in _nodes(value)]
        inner = {
            side for n in nodes if isinstance(n, Extreme) for side in (n.left, n.right) if _op(side) == n.op
        }
        wanted: dict[str, dict[Terms, None]] = {"+": {}, "max": {}, "min": {}}
        for node in nodes:
            if isinstance(node, Linear):
                wanted["+"][_taps(node)] = None
            elif isinstance(node, Extreme) and node not in inner:
                wanted[node.op][_elements(_leaves(node, node.op))] = None
        self._shared = {op: share_sums(listed, self._grid, op) for op, listed in wanted.items()}
        uses: dict[Pattern, list[Offsets]] = {}
        for term, _ in (
            each for found in self._shared.values() for terms in found.values() for each in terms
        ):
            if isinstance(term, Shared):
                uses.setdefault(term.pattern, []).append(term.at)
        for pattern, places in uses.items():
            self._declare_shared(self._grid, pattern, places)

    def _known(self, terms: Terms) -> Terms:
        """Return a sum made of what is shared, where that is cheaper."""
        for sign in (1, -1):
            found = self._shared.get("+", {}).get(frozenset((term, sign * factor) for term, factor in terms))
            if found is not None:
                return tuple((term, sign * factor) for term, factor in found)
        return terms

    def _declare_shared(self, grid: Grid, pattern: Pattern, places: list[Offsets]) -> None:
        out, names = self._context.out, self._context.names
        low = min(row for row, _ in places), min(column for _, column in places)
        sizes = [grid.sizes[d] + max(place[d] for place in places) - low[d] for d in (0, 1)]
        name = names.fresh(f"{pattern.window.replace('_pairs', '')}_{_NAMES[pattern.op]}")
        self._arrays[pattern] = name, low
        out.line(f"unsigned {name}[{sizes[0]}][{sizes[1]}];")
        steps = [names.fresh(base) for base in ("r", "c")]
        texts = []
        for offset, factor in pattern.parts:
            at = (low[d] + offset * (d == pattern.along) for d in (0, 1))
            element = pattern.window + "".join(f"[{_moved(s, n)}]" for s, n in zip(steps, at, strict=True))
            texts.append((element if abs(factor) == 1 else f"{element} * {abs(factor)}", factor < 0))
        with (
            out.unrolled(f"for (int {steps[0]} = 0; {steps[0]} < {sizes[0]}; ++{steps[0]})"),
            out.unrolled(f"for (int {steps[1]} = 0; {steps[1]} < {sizes[1]}; ++{steps[1]})"),
        ):
            is_sum = pattern.op == "+"
            text = _joined(texts, 0)[1:-1] if is_sum else _nested(pattern.op, [each for each, _ in texts])
            out.line(f"{name}[{steps[0]}][{steps[1]}] = {text};")

    def _shared_text(self, shared: Shared) -> str:
        assert self._grid is not None
        name, low = self._arrays[shared.pattern]
        return name + "".join(
            f"[{_moved(symbol, at - least)}]"
            for symbol, at, least in zip(self._grid.symbols, shared.at, low, strict=True)
        )


def _joined(texts: list[tuple[str, bool]], number: int) -> str:
    """Return a sum of texts, each added or taken away, and of a number in either half."""
    ordered = sorted(texts, key=lambda entry: entry[1])
    known = spread(number)
    if known or not ordered:
        first = bool(ordered) and ordered[0][1]
        ordered = [(_hex(known), False), *ordered] if first else [*ordered, (_hex(known), False)]
    text = "".join(f" {'-' if below else '+'} {each}" for each, below in ordered)
    text = text.removeprefix(" + ").replace(" - ", "-", 1) if ordered[0][1] else text.removeprefix(" + ")
    return text if len(ordered) == 1 and not ordered[0][1] else f"({text})"


def _nested(op: str, texts: Sequence[str]) -> str:
    """Return the largest or the smallest of several words, half by half."""
    return reduce(lambda left, right: f"__v{op}u2({left}, {right})", texts)


def _nodes(value: Half | Flag) -> Iterator[Half | Flag]:
    """Yield all parts of a value, inner ones first."""
    for name in ("value", "left", "right", "flag", "first", "second"):
        part = getattr(value, name, None)
        if isinstance(part, Half | Flag):
            yield from _nodes(part)
    for term, _ in value.terms if isinstance(value, Linear) else ():
        yield from _nodes(term)
    yield value


def _op(value: Half) -> str:
    return value.op if isinstance(value, Extreme) else ""


def _leaves(value: Half, op: str) -> list[Half]:
    """Return the values of which an extreme takes one, each once."""
    if not isinstance(value, Extreme) or value.op != op:
        return [value]
    return list(dict.fromkeys([*_leaves(value.left, op), *_leaves(value.right, op)]))


def _elements(values: Iterable[Half]) -> Terms:
    return tuple((value, 1) for value in values if isinstance(value, Tap))


def _taps(value: Linear) -> Terms:
    """Return the part of a sum that is made of elements."""
    return tuple(entry for entry in value.terms if isinstance(entry[0], Tap))


def _bias(term: Half | Shared) -> int:
    return 0 if isinstance(term, Shared) else term.bias


def _moved(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def _hex(value: int) -> str:
    return f"0x{value % (1 << 32):08x}u"
