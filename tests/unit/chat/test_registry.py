"""The commands are found as modules, looked up by unique prefixes, and explain themselves."""

from __future__ import annotations

import os
import pkgutil
from pathlib import Path

import pytest

from kernelskill.chat import commands as command_modules
from kernelskill.chat.helping import PAGE_BEGIN, PAGE_END, help_of, overview, page
from kernelskill.chat.registry import TOPICS, all_commands
from kernelskill.errors import UnknownNameError

PAGE = Path(__file__).parents[3] / "docs" / "chat.md"
REGENERATE = "KERNELSKILL_REGENERATE"
PROMISED = [
    "task",
    "baseline",
    "run",
    "step",
    "stop",
    "best",
    "tree",
    "show",
    "diff",
    "undo",
    "redo",
    "pin",
    "why",
    "profile",
    "remeasure",
    "ban",
    "allow",
    "skills",
    "model",
    "budget",
    "report",
    "export",
    "save",
    "help",
    "quit",
]
COMMANDS = all_commands()


def test_every_module_is_a_command_and_all_that_were_promised_are_there() -> None:
    assert {module.name for module in pkgutil.iter_modules(command_modules.__path__)} == set(COMMANDS.names)
    assert set(PROMISED) <= set(COMMANDS.names)
    assert all(command.topic in TOPICS for command in COMMANDS)


@pytest.mark.parametrize("command", list(COMMANDS), ids=lambda c: c.name)
def test_a_command_explains_itself(command) -> None:
    assert command.summary.endswith(".")
    assert command.name in COMMANDS.find(command.name).usage
    said = " ".join(block.text for block in help_of(command).blocks if hasattr(block, "text"))
    assert command.summary in said
    for example in command.examples:
        word, _, rest = example.removeprefix("/").partition(" ")
        assert COMMANDS.find(word) is command
        command.takes.parse(command.name, rest)


@pytest.mark.parametrize("name", COMMANDS.names)
def test_every_unique_prefix_means_the_command(name: str) -> None:
    for length in range(1, len(name) + 1):
        prefix = name[:length]
        sharing = [other for other in COMMANDS.names if other.startswith(prefix)]
        if prefix == name or sharing == [name]:
            assert COMMANDS.find(prefix).name == name
        else:
            with pytest.raises(UnknownNameError) as caught:
                COMMANDS.find(prefix)
            assert all(f"/{other}" in caught.value.message for other in sharing)


def test_case_does_not_matter_and_habits_are_understood() -> None:
    assert COMMANDS.find("RUN").name == "run"
    assert COMMANDS.find("exit").name == "quit"


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        COMMANDS.find("exprot")
    assert "/export" in caught.value.remedy
    with pytest.raises(UnknownNameError) as caught:
        COMMANDS.find("xyzzy")
    assert "/help" in caught.value.remedy


def test_the_overview_has_every_command() -> None:
    record = overview(COMMANDS).record
    assert record is not None
    assert [command.name for command in record.commands] == COMMANDS.names  # type: ignore[attr-defined]


def test_the_documentation_is_made_from_the_commands() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(PAGE_BEGIN), text.index(PAGE_END) + len(PAGE_END)
    if os.environ.get(REGENERATE):
        text = text[:begin] + page(COMMANDS) + text[end:]
        PAGE.write_text(text, encoding="utf-8")
    assert page(COMMANDS) in text, f"regenerate with {REGENERATE}=1"
