"""What the candidate's own tokens show: fast intrinsics, library calls, code that hides or runs unasked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from kernelskill.backends.composition.device_rules import joined_opcodes
from kernelskill.backends.composition.host_symbols import LOADS_CODE
from kernelskill.backends.composition.own_text import OwnPart
from kernelskill.schema.build import Construct
from kernelskill.schema.task import Allowance
from kernelskill.source.tokens import Token, TokenKind, tokens

FAST_FUNCTIONS = {
    "__expf": "fast exponential",
    "__exp10f": "fast exponential",
    "__logf": "fast logarithm",
    "__log2f": "fast logarithm",
    "__log10f": "fast logarithm",
    "__powf": "fast power",
    "__sinf": "fast sine",
    "__cosf": "fast sine",
    "__sincosf": "fast sine",
    "__tanf": "fast sine",
    "__tanhf": "fast hyperbolic tangent",
    "__fdividef": "fast division",
}
"""Intrinsics with errors beyond the standard functions'. `__frsqrt_rn`, `__fdiv_rn`, `__frcp_rn`, `__fsqrt_rn`
and their like are not here: they are rounded correctly."""
_FAST_STEMS = {
    "ex2": "fast exponential",
    "exp": "fast exponential",
    "lg2": "fast logarithm",
    "log": "fast logarithm",
    "pow": "fast power",
    "sin": "fast sine",
    "cos": "fast sine",
    "tanh": "fast hyperbolic tangent",
    "tan": "fast sine",
    "fdiv": "fast division",
    "div": "fast division",
    "rcp": "fast division",
    "sqrt": "fast square root",
}
_BUILTIN = re.compile(r"__nv_fast_(?P<fast>[a-z]+)|__nvvm_(?P<builtin>[a-z0-9]+?)_approx\w*")
_OPCODE = re.compile(
    r"(?<![\w.%$])(?P<stem>ex2|lg2|sin|cos|tanh|rcp|sqrt|div)\.(?:approx|full)[.\w]*(?<!64)(?![.\w])"
)
_ASSEMBLY = ("asm", "__asm__", "__asm")
_RUNS_UNASKED = ("constructor", "destructor", "ifunc", "section", "naked", "init_priority")
"""Attributes with which code runs before or outside of what is called."""
_PLAIN_THRUST = frozenset(
    [
        "complex",
        "pair",
        "tuple",
        "make_pair",
        "make_tuple",
        "get",
        "tie",
        "swap",
        "plus",
        "minus",
        "multiplies",
        "divides",
        "modulus",
        "negate",
        "maximum",
        "minimum",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal_to",
        "not_equal_to",
        "logical_and",
        "logical_or",
        "logical_not",
        "identity",
        "square",
        "abs",
        "exp",
        "log",
        "pow",
        "sqrt",
        "conj",
        "norm",
        "arg",
        "polar",
        "detail",
        "numeric_limits",
    ]
)


def source_constructs(file: str, found: list[Token]) -> Iterator[Construct]:
    """Yield what the tokens of a part of the candidate's own text show, macros expanded."""
    for position, token in enumerate(found):
        if token.kind is TokenKind.IDENTIFIER:
            yield from _identifier(file, found, position)
        elif token.kind is TokenKind.STRING and LOADS_CODE.fullmatch(token.text):
            does = f"asks for {token.text} by name, which brings in code that nobody has seen"
            yield _finding(file, token, f"call of {token.text}", None, does)


def host_constructs(parts: Iterable[OwnPart]) -> Iterator[Construct]:
    """Yield what only host code may not hold: assembly, which can make any system call."""
    for part in parts:
        for token in tokens(part.text, part.line):
            if token.kind is TokenKind.IDENTIFIER and token.text in _ASSEMBLY:
                yield _finding(
                    part.file,
                    token,
                    "assembly in host code",
                    None,
                    "is assembly in host code, which no launcher needs",
                )


def directive_constructs(file: str, text: str) -> Iterator[Construct]:
    """Yield the directives of one source file, not preprocessed, that give lines another origin."""
    if "??=" in text or "??/" in text:
        line = 1 + text[: min(at for at in (text.find("??="), text.find("??/")) if at >= 0)].count("\n")
        token = Token(TokenKind.PUNCTUATOR, "??", line)
        yield _finding(file, token, "trigraphs", None, "has trigraphs, which hide code from readers")
    before = 0
    found = list(tokens(text))
    for token, following in pairwise(found):
        opens_line = token.line != before
        before = token.line
        if not opens_line or token.text not in ("#", "%"):
            continue
        if following.text == "line" or following.kind is TokenKind.NUMBER or token.text == "%":
            if token.text == "%" and following.text != ":":
                continue
            yield _finding(
                file,
                token,
                "line directive",
                None,
                "gives the lines after it another origin, which hides code",
            )


def _identifier(file: str, found: list[Token], position: int) -> Iterator[Construct]:
    token = found[position]
    name = token.text
    if name in FAST_FUNCTIONS:
        yield _fast(file, token, FAST_FUNCTIONS[name], name)
    elif name in _ASSEMBLY:
        for opcode in _OPCODE.finditer(_template(found, position)):
            yield _fast(file, token, _FAST_STEMS[opcode["stem"]], opcode.group())
    elif name in ("__attribute__", "__attribute", "__declspec"):
        yield from _attributes(file, found[position + 1 :], "(", ")")
    elif name in ("cub", "thrust"):
        yield from _library(file, found, position)
    elif name.startswith("Device") and name in _CUB_ALGORITHMS and _text(found, position + 1) == "::":
        yield _calls_library(file, token, name)
    elif name.strip("_") in _RUNS_UNASKED and _text(found, position - 2).strip("_") == "gnu":
        yield _unasked(file, token)
    elif match := _BUILTIN.fullmatch(name):
        family = _FAST_STEMS.get((match["fast"] or match["builtin"]).removesuffix("f"))
        yield from [_fast(file, token, family, name)] if family else []


_CUB_ALGORITHMS = frozenset(
    f"Device{name}"
    for name in [
        "Reduce",
        "Scan",
        "RadixSort",
        "MergeSort",
        "SegmentedSort",
        "SegmentedRadixSort",
        "SegmentedReduce",
        "Select",
        "Partition",
        "Histogram",
        "RunLengthEncode",
        "AdjacentDifference",
        "For",
        "Copy",
        "Memcpy",
        "Transform",
        "SpmvT",
        "TopK",
        "Merge",
    ]
)


def _library(file: str, found: list[Token], position: int) -> Iterator[Construct]:
    """A device-wide algorithm; what a block or a warp of the candidate's own kernel calls is its own code."""
    name = found[position].text
    if _text(found, position + 1) != "::" or position + 2 >= len(found):
        return
    member = found[position + 2]
    device_wide = member.text.startswith("Device") if name == "cub" else member.text not in _PLAIN_THRUST
    if device_wide and member.kind is TokenKind.IDENTIFIER and _text(found, position + 3) != "{":
        yield _calls_library(file, found[position], f"{name}::{member.text}")


def _attributes(file: str, rest: list[Token], opening: str, closing: str) -> Iterator[Construct]:
    depth = 0
    for token in rest:
        depth += (token.text == opening) - (token.text == closing)
        if token.text.strip("_") in _RUNS_UNASKED:
            yield _unasked(file, token)
        if depth <= 0:
            return


def _template(found: list[Token], position: int) -> str:
    """Return the text of an assembly statement: the adjacent strings after its parenthesis."""
    texts: list[str] = []
    for token in found[position + 1 :]:
        if token.kind is TokenKind.STRING:
            texts.append(token.text)
        elif texts or (token.kind is not TokenKind.IDENTIFIER and token.text != "("):
            break
    return joined_opcodes("".join(texts))


def _text(found: list[Token], position: int) -> str:
    return found[position].text if 0 <= position < len(found) else ""


def _fast(file: str, token: Token, family: str, shown: str) -> Construct:
    does = f"uses {shown}, a hardware approximation"
    return _finding(file, token, family, Allowance.FAST_MATH, does, shown)


def _calls_library(file: str, token: Token, shown: str) -> Construct:
    does = f"uses {shown}, which is a library's"
    return _finding(file, token, "CUB and Thrust", Allowance.LIBRARIES, does, shown)


def _unasked(file: str, token: Token) -> Construct:
    does = f"has the attribute {token.text!r}, with which code runs or lies where no launcher needs it"
    return _finding(file, token, "code that runs unasked", None, does)


def _finding(
    file: str, token: Token, family: str, allowance: Allowance | None, does: str, shown: str = ""
) -> Construct:
    return Construct(
        family=family,
        allowance=allowance,
        shown=shown or token.text,
        does=does,
        found_in="source",
        file=file,
        line=token.line,
    )
