"""Lines of a pipe."""

from __future__ import annotations

import io

import pytest

from kernelskill.chat.readers import PipeReader
from kernelskill.errors import UsageError


def test_lines_are_read_to_the_end() -> None:
    reader = PipeReader(io.BytesIO("\ufeffrun 2\r\n\nüber größe\nfirst \\\nsecond\nlast".encode()))
    assert [reader.line() for _ in range(6)] == ["run 2", "", "über größe", "first \nsecond", "last", None]
    assert reader.line() is None
    assert reader.answer("who is there?") is None


def test_a_backslash_at_the_very_end() -> None:
    reader = PipeReader(io.BytesIO(b"one\\"))
    assert [reader.line(), reader.line()] == ["one", None]


def test_a_line_that_is_no_text_is_named_and_the_next_is_read() -> None:
    reader = PipeReader(io.BytesIO(b"run\n\xff\xfe\nbest\n"))
    assert reader.line() == "run"
    with pytest.raises(UsageError) as caught:
        reader.line()
    assert "line 2" in caught.value.message
    assert reader.line() == "best"
