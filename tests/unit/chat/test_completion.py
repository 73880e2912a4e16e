"""What Tab offers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from kernelskill.chat.arguments import Kind
from kernelskill.chat.completion import ChatCompleter
from kernelskill.chat.registry import all_commands


def names(kind: Kind) -> Iterable[tuple[str, str]]:
    if kind == "candidate":
        return [("head", ""), ("1", "unroll"), ("12", "tile")]
    return [("memory/shared_tile", ""), ("compute/unroll", "")]


def offered(text: str, folder: Path = Path("/nowhere")) -> list[str]:
    completer = ChatCompleter(all_commands(), names, folder)
    document = Document(text)
    return [
        (text[: len(text) + c.start_position] if c.start_position else text) + c.text
        for c in completer.get_completions(document, CompleteEvent(completion_requested=True))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/ru", ["/run"]),
        ("exp", ["export"]),
        ("/show 1", ["/show 1", "/show 12"]),
        ("/diff 1 he", ["/diff 1 head"]),
        ("/diff 1 head ", []),
        ("/ban unr", ["/ban compute/unroll"]),
        ("/skills mem", ["/skills memory/shared_tile"]),
        ("/tree --", ["/tree --kept"]),
        ("/export --candidate 1", ["/export --candidate 1", "/export --candidate 12"]),
        ("/help exp", ["/help export"]),
        ("/re 1", []),
        ("a message about she", []),
        ("/nonsense ", []),
    ],
)
def test_names_are_offered_where_they_fit(text: str, expected: list[str]) -> None:
    assert sorted(offered(text)) == sorted(expected)


def test_everything_is_offered_at_an_empty_line() -> None:
    assert offered("") == [f"/{name}" for name in all_commands().names]


def test_files_are_offered(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").touch()
    for text in ("/pin mi", "look at @mi", "!cat mi"):
        assert offered(text, tmp_path) == [text + "ne.cu"]
