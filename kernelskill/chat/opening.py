"""Open a chat: a session on one side, a terminal, a pipe or a program on the other."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelskill.chat.arguments import Kind
from kernelskill.chat.borders import Borders
from kernelskill.chat.context import ChatContext
from kernelskill.chat.loop import Loop
from kernelskill.chat.output import JsonOutput, Output, TextOutput
from kernelskill.chat.readers import PipeReader, Reader
from kernelskill.chat.registry import all_commands
from kernelskill.chat.reply import Code
from kernelskill.chat.signals import Interrupts
from kernelskill.config import RunConfig
from kernelskill.errors import KernelSkillError
from kernelskill.resources import data_dir
from kernelskill.runs import StopFlag

if TYPE_CHECKING:
    from kernelskill.session import Session
    from kernelskill.session.records import SessionStatus

HISTORY_FILE = "chat_history"


@dataclass(frozen=True)
class Beginning:
    """What a chat begins with: a kernel and its test, or a run to go on with."""

    folder: Path
    """The run folder."""
    kernel: Path | None = None
    tests: Path | None = None
    config: RunConfig = field(default_factory=RunConfig)
    device: str = ""
    """Of a resumed run, where it differs."""
    wait: bool = True
    """Of a resumed run: whether to wait for the workers of a spool folder."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a resumed run that differ."""


def open_chat(beginning: Beginning, *, as_json: bool, answers: Mapping[str, str]) -> int:
    """Hold a chat to its end.

    Args:
        beginning: What it is about.
        as_json: Whether events and answers are lines of JSON.
        answers: Answers to borders, given in advance.

    Returns:
        The exit code: 0, or at a pipe that of the first entry that failed, or 130 after Ctrl-C twice.

    Raises:
        KernelSkillError: The session cannot be opened.
    """
    at_terminal = not as_json and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    out: Output = JsonOutput() if as_json else TextOutput()
    live = _Live()
    reader, end_prompt = _terminal(live, out) if at_terminal else (PipeReader(), lambda: False)
    interrupts = Interrupts(StopFlag(), end_prompt)
    with interrupts.of_a_chat():
        with interrupts.while_working(), out.working("reading the kernel and its test"):
            session = _session(beginning, out, interrupts.stop, Borders(out, reader, answers))
        live.session = session
        with session:
            loop = Loop(reader, out, interrupts)
            interrupts.leaving = interrupts.leaving or (interrupts.pressed and not reader.can_ask)
            _greet(session, out, asking=reader.can_ask)
            code = loop.run(ChatContext(session, out, all_commands(), loop.goes_on))
            _farewell(session, out, code)
    return code


class _Live:
    """The session once it is there: completion and status line ask for it."""

    session: Session | None = None

    def status(self) -> SessionStatus | None:
        return None if self.session is None else self.session.status()

    def names(self, kind: Kind) -> Iterable[tuple[str, str]]:
        if self.session is None:
            return
        with suppress(KernelSkillError):
            if kind == "candidate":
                yield from (("head", ""), ("best", ""), ("original", ""))
                yield from ((str(node.number), node.label) for node in self.session.history.tree())
            else:
                names = self.session.steering.names()
                for group in (names.skills, names.specialists, names.directions, names.kernels):
                    yield from ((name, "") for name in group)


def _terminal(live: _Live, out: Output) -> tuple[Reader, Callable[[], bool]]:
    from kernelskill.chat.completion import ChatCompleter  # noqa: PLC0415 - only where somebody types
    from kernelskill.chat.prompt import TerminalReader, leave_prompt  # noqa: PLC0415

    completer = ChatCompleter(all_commands(), live.names, Path.cwd())
    reader = TerminalReader(data_dir() / HISTORY_FILE, completer, live.status, out.say)
    return reader, leave_prompt


def _session(beginning: Beginning, out: Output, stop: StopFlag, borders: Borders) -> Session:
    from kernelskill.session import Session  # noqa: PLC0415 - takes a second, and --help needs none

    if beginning.kernel is None or beginning.tests is None:
        session = Session.resume(
            beginning.folder,
            device=beginning.device,
            sinks=(out,),
            stop=stop,
            waiting=out.waiting,
            wait=beginning.wait,
            changes={name: value for name, value in beginning.changes.items() if name != "rounds"},
            ask=borders,
        )
        if "rounds" in beginning.changes:
            session.settings.set_budget(rounds=beginning.changes["rounds"])
        return session
    return Session.start(
        beginning.kernel,
        beginning.tests,
        beginning.config,
        beginning.folder,
        sinks=(out,),
        stop=stop,
        waiting=out.waiting,
        ask=borders,
    )


def _greet(session: Session, out: Output, *, asking: bool) -> None:
    out.say(f"run folder {session.folder}", "dim", kind="begin", run=str(session.folder))
    if asking:
        out.say("/run searches, /help lists the commands; anything else is a wish or a question", "dim")


def _farewell(session: Session, out: Output, code: int) -> None:
    again = f"kernelskill chat --resume {shlex.quote(str(session.folder))}"
    out.say("everything is kept; go on with", kind="end", exit_code=code, resume=again)
    out.block(Code(f"  {again}"))  # not wrapped, so that it can be copied
