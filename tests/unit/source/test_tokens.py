"""Tokens as the compiler sees them: what stands in comments and strings is no code, what is spliced is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.source.tokens import TokenKind, tokens

WORDS = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,12}", fullmatch=True)


def words(text: str) -> list[str]:
    return [token.text for token in tokens(text) if token.kind is TokenKind.IDENTIFIER]


@pytest.mark.parametrize(
    "text",
    [
        "// __expf\n",
        "// a comment that goes on \\\n __expf\n",
        "/* __expf\n __expf */",
        '"__expf"',
        '"a \\" __expf"',
        'R"(" __expf)"',
        'R"x()" __expf )x"',
        "'__expf'",
        '"a \\\n __expf"',
        "/\\\n/ __expf",
        "1.5__expf",
    ],
)
def test_what_is_no_code_is_no_identifier(text):
    assert "__expf" not in words(text)


@pytest.mark.parametrize(
    "text",
    [
        "__ex\\\npf",
        "__ex\\ \t\r\npf",
        "__e\\u0078pf",
        "/**/__expf/**/",
        '"\\\\"__expf""',
        "1'000;__expf",
        "'\"';__expf;'\"'",
        "a//\n__expf",
        'R"(//)"__expf',
        "x<__expf>::y",
    ],
)
def test_what_is_code_is_found(text):
    assert "__expf" in words(text)


def test_strings_are_given_as_the_compiler_reads_them():
    (token,) = tokens('"ex2\\x2e\\141pp\\162ox\\n"')
    assert token.text == "ex2.approx\n"
    (raw,) = tokens('u8R"d(a\\n)" )d"')
    assert raw.text == 'a\\n)" '


def test_lines_are_counted_through_everything():
    text = 'a /* \n */ b \\\n c R"(\n\n)" d "x\\\ny" e'
    assert [(token.text, token.line) for token in tokens(text) if len(token.text) == 1] == [
        ("a", 1), ("b", 2), ("c", 3), ("d", 5), ("e", 6),
    ]  # fmt: skip


@given(st.text())
def test_any_text_is_read_to_its_end(text):
    assert sum(1 for _ in tokens(text)) <= len(text)
    assert all(1 <= token.line <= text.count("\n") + 1 for token in tokens(text))


@given(st.lists(WORDS, min_size=1), st.sampled_from([" ", "\n", "/**/", " // x\n", ' "R(" ', " '\"' "]))
def test_words_survive_what_stands_between_them(given_words, between):
    assert words(between.join(given_words)) == given_words


@given(WORDS, st.integers(0, 12))
def test_a_splice_anywhere_changes_nothing(word, position):
    assert words(f"{word[:position]}\\\n{word[position:]}") == [word]
