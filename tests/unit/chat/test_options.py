"""A chat takes the options of a run: the same definitions, but for those that make no sense in it."""

from __future__ import annotations

import inspect

from kernelskill.cli.chat_command import chat
from kernelskill.cli.run_command import resume, run

NOT_IN_A_CHAT = {
    "dry_run": "`kernelskill run --dry-run` asks and runs nothing; a chat is there to do both",
    "quiet": "a chat prints answers",
}
"""Options of `run` that a chat does without, and why."""
SPELLED_OTHERWISE = {"kernel", "tests", "out"}
"""Those that a chat may do without, because `--resume` takes their place."""


def test_a_chat_takes_what_a_run_takes() -> None:
    of_run, of_chat = inspect.signature(run).parameters, inspect.signature(chat).parameters
    missing = set(of_run) - set(of_chat) - set(NOT_IN_A_CHAT)
    assert not missing, f"add {missing} to kernelskill chat, or name here why it makes no sense there"
    assert set(NOT_IN_A_CHAT).isdisjoint(of_chat)
    for name in set(of_run) & set(of_chat) - SPELLED_OTHERWISE:
        assert of_run[name].annotation == of_chat[name].annotation, name
        assert of_run[name].default == of_chat[name].default, name


def test_a_chat_that_goes_on_takes_what_a_resume_takes() -> None:
    differs = {"folder": "--resume", "rounds": "--more-rounds is --rounds of a chat", "quiet": "as above"}
    assert set(inspect.signature(resume).parameters) - set(inspect.signature(chat).parameters) <= set(differs)
