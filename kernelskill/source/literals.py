"""Read number literals: value and type."""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT_SUFFIXES = {"f": "float", "l": "long double", "": "double"}
_INTEGER_SUFFIXES = {
    "": "int",
    "u": "unsigned",
    "l": "long",
    "ul": "unsigned long",
    "ll": "long long",
    "ull": "unsigned long long",
    "z": "size_t",
    "uz": "size_t",
}


@dataclass(frozen=True)
class NumberLiteral:
    """A number as written."""

    text: str
    digits: str
    """Without suffix and digit separators."""
    suffix: str
    """In lower case, `u` first."""
    type_name: str
    """`int`, `unsigned`, `long long`, ..., `float`, `double`, `long double`."""
    value: int | float

    @property
    def is_double(self) -> bool:
        return self.type_name == "double"

    @property
    def is_floating(self) -> bool:
        return isinstance(self.value, float)


def read_number(text: str) -> NumberLiteral | None:
    """Read a C++ number literal; None for one that has another form."""
    plain = text.replace("'", "").lower()
    hexadecimal = plain.startswith("0x")
    floating = ("p" in plain or "." in plain) if hexadecimal else ("." in plain or "e" in plain)
    if plain.startswith("0b"):
        floating = False
    suffixes = "fl" if floating else "ulz"
    digits = plain.rstrip(suffixes) if not (hexadecimal and floating) else _hex_float_digits(plain)
    suffix = plain[len(digits) :]
    if not floating and not hexadecimal and suffix == "" and plain.endswith("f"):
        return None
    return _floating(text, digits, suffix) if floating else _integer(text, digits, suffix)


def _hex_float_digits(plain: str) -> str:
    head, _, exponent = plain.partition("p")
    return f"{head}p{exponent.rstrip('fl')}"


def _floating(text: str, digits: str, suffix: str) -> NumberLiteral | None:
    if suffix not in _FLOAT_SUFFIXES:
        return None
    try:
        value = float.fromhex(digits) if digits.startswith("0x") else float(digits)
    except (ValueError, OverflowError):
        return None
    return NumberLiteral(text, digits, suffix, _FLOAT_SUFFIXES[suffix], value)


def _integer(text: str, digits: str, suffix: str) -> NumberLiteral | None:
    suffix = "u" + suffix.replace("u", "", 1) if "u" in suffix else suffix
    if suffix not in _INTEGER_SUFFIXES:
        return None
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        value = int(digits, 8) if octal else int(digits, 0)
    except ValueError:
        return None
    kind = _INTEGER_SUFFIXES[suffix]
    if suffix == "" and value > 0x7FFFFFFF:
        decimal = digits.isdigit() and not octal
        kind = "long" if decimal or value > 0xFFFFFFFF else "unsigned"
    return NumberLiteral(text, digits, suffix, kind, value)


def read_integer(text: str) -> int | None:
    """Return the value of an integer literal; None for anything else."""
    number = read_number(text)
    return number.value if number is not None and isinstance(number.value, int) else None
