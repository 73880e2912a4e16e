"""What was typed is a command, a shell command, a message or nothing, and bad input says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.chat.lines import Invocation, Message, Shell, entries_of, read_line
from kernelskill.chat.registry import all_commands
from kernelskill.errors import KernelSkillError, UsageError

COMMANDS = all_commands()


def read(text: str, folder: Path = Path("/nowhere")):
    return read_line(text, COMMANDS, folder=folder)


def invoked(text: str) -> tuple[str, dict[str, str]]:
    line = read(text)
    assert isinstance(line, Invocation), line
    return line.command.name, line.values.given


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("/run", "run", {}),
        ("/run 2", "run", {"n": "2"}),
        ("run 2", "run", {"n": "2"}),
        ("ru 2", "run", {"n": "2"}),
        ("  /diff  1   head~2 ", "diff", {"a": "1", "b": "head~2"}),
        ("/ban it's shared memory", "ban", {"name": "it's shared memory"}),
        ("ban shared memory", "ban", {"name": "shared memory"}),
        ("why is it slow?", "why", {"what": "is it slow?"}),
        ('/pin "my file.cu" --head', "pin", {"file": "my file.cu", "--head": ""}),
        ("/pin my\\ file.cu", "pin", {"file": "my file.cu"}),
        ("/export 'über größe.cu' --candidate=3", "export", {"file": "über größe.cu", "--candidate": "3"}),
        ("/export --cand 3", "export", {"--candidate": "3"}),
        ("/budget --device 2m --rounds 3", "budget", {"--device": "2m", "--rounds": "3"}),
        ("show \noriginal", "show", {"candidate": "original"}),
        ("?", "help", {}),
        ("/help run", "help", {"command": "run"}),
        ("q", "quit", {}),
    ],
)
def test_a_command_with_its_arguments(text: str, name: str, given: dict[str, str]) -> None:
    assert invoked(text) == (name, given)


@pytest.mark.parametrize(
    "text",
    [
        "leave shared memory alone",
        "try bigger tiles",
        "registers first",
        "stop using shared memory",
        "run it with more threads in a block",
        "show me what limits it",
        "all loops should be unrolled",
        "be careful with rounding",
        "best would be fewer registers",
        "какой предел?",
        "共有メモリは使わないで",
        "step by step, please\nand slowly",
        "why\nnot try\nbigger tiles",
        "run\nfaster",
    ],
)
def test_a_sentence_is_a_message(text: str) -> None:
    assert read(text) == Message(text)


@pytest.mark.parametrize("text", ["", "   ", "\n", "# a comment"])
def test_nothing_is_nothing(text: str) -> None:
    assert read(text) is None


def test_the_shell_gets_its_line_as_it_is() -> None:
    assert read("!ls 'a b' | head") == Shell("ls 'a b' | head")


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("/run two", "'two'", "whole number"),
        ("run tow", "'tow'", "whole number"),
        ("/run -1", "'-1'", "whole number"),
        ("/run ²", "'²'", "whole number"),
        ("/run 1 2", "no use for '2'", "/run [n]"),
        ("/pin", "needs file", "/pin file"),
        ("/pin 'open", "cannot be read", "close the quotation"),
        ("/tree --kep --loud", "--loud", "--kept"),
        ("/tree --keep", "--keep", "did you mean --kept"),
        ("/export --candidate", "needs a value", "--candidate"),
        ("/stop --now", "no option '--now'", "takes no options"),
        ("/r", "/run", "one more letter"),
        ("s", "/step", "one more letter"),
        ("re 3", "/redo", "one more letter"),
        ("/shwo 3", "'shwo'", "/show"),
        ("/", "no command", "/help"),
        ("/ run", "no command", "/help"),
        ("!", "no command", "!"),
    ],
)
def test_bad_input_says_what_and_what_to_do(text: str, message: str, remedy: str) -> None:
    with pytest.raises(KernelSkillError) as caught:
        read(text)
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "text", ["/run --help", "run --help", "/export x.cu --help", "/ban --help", "why -h"]
)
def test_a_command_asked_for_help(text: str) -> None:
    line = read(text)
    assert isinstance(line, Invocation)
    assert line.wants_help


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("try bigger tiles\nno shared memory", 1),
        ("try bigger tiles\n\n/tree\n", 2),
        ("/undo\n/redo\n/best", 3),
        ("what is in /tmp?\n/tmp/notes says little", 1),
        ("!cat <<X\n/run\nX", 1),
        ("", 1),
    ],
)
def test_pasted_lines_with_commands_are_entries_each(text: str, entries: int) -> None:
    found = entries_of(text, COMMANDS)
    assert len(found) == entries
    assert "".join(found).split() == text.split() or entries > 1


def test_a_file_goes_into_the_message(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("größer\n", encoding="utf-8")
    (tmp_path / "two words.txt").write_text("second\n", encoding="utf-8")
    line = read('read @notes.txt, then @"two words.txt"; mail me\\@home not \\@this', tmp_path)
    assert isinstance(line, Message)
    assert line.text.startswith('read @notes.txt, then @"two words.txt"; mail me\\@home not @this')
    assert "notes.txt:\n```\ngrößer\n```" in line.text
    assert "two words.txt:\n```\nsecond\n```" in line.text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"x" * 300_000)
    for name, why in (
        ("missing", "No such file"),
        ("binary", "UTF-8"),
        ("large", "larger"),
        (".", "directory"),
    ):
        with pytest.raises(UsageError) as caught:
            read(f"look at @{name}", tmp_path)
        assert why in caught.value.message
        assert caught.value.remedy


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_with_a_remedy(text: str) -> None:
    refused = None
    try:
        line = read(text)
    except KernelSkillError as error:
        line, refused = None, error
    if refused is not None:
        assert refused.message
        assert refused.remedy
    else:
        assert line is not None or not text.strip() or text.strip().startswith("#")
