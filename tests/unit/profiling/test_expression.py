import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.errors import HarnessError
from kernelskill.profiling.expression import Expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(a - 1) / b", 2),
        ("-a", -5),
        ("min(a, b) + max(a, b)", 7),
        ("a >= 5", 1),
        ("a < b", 0),
        ("b == 2", 1),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert Expression(text).value({"a": 5, "b": 2}) == value


def test_what_is_unknown_stays_unknown() -> None:
    assert Expression("a / b").value({"a": 1}) is None
    assert Expression("a / b").value({"a": 1, "b": 0}) is None
    assert not Expression("a >= 0").holds({})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a +",
        "__import__('os')",
        "a.b",
        "a[0]",
        "'x'",
        "a and b",
        "1 < a < 3",
        "pow(a, b)",
        "min(a)",
        "a ** b",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(HarnessError):
        Expression(text)


@given(st.text(alphabet="ab+-*/()<>=.,' 01", max_size=20))
def test_no_text_does_anything_but_parse_or_fail(text: str) -> None:
    try:
        expression = Expression(text)
    except HarnessError:
        return
    try:
        value = expression.value({"a": 1.0, "b": 2.0})
    except OverflowError:
        return
    assert value is None or isinstance(value, float)
