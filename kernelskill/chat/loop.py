"""The loop of a chat: read an entry, carry it out, show what came of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

from kernelskill.chat import views
from kernelskill.chat.helping import help_of
from kernelskill.chat.lines import Invocation, Line, Message, Shell, entries_of, read_line
from kernelskill.chat.output import Output, show_error
from kernelskill.chat.readers import Reader
from kernelskill.chat.reply import Block, Reply, Say, reply
from kernelskill.chat.signals import Interrupts
from kernelskill.errors import HarnessError, KernelSkillError, RunInterrupted
from kernelskill.schema.base import Record

if TYPE_CHECKING:
    from kernelskill.chat.context import ChatContext

EXIT_ANSWER_IS_NO = 1
EXIT_INTERRUPTED = 130
_GO_ON = "go on? [y]es, [n]o, [q]uit, a command, or say what should change: "


class ShellResult(Record):
    """What a command of the shell ended with."""

    command: str
    returncode: int
    output: str
    """For programs; people have seen it."""


class Loop:
    """Drives one chat to its end."""

    def __init__(self, reader: Reader, out: Output, interrupts: Interrupts) -> None:
        self._reader = reader
        self._out = out
        self._interrupts = interrupts
        self._chat: ChatContext | None = None
        self._code = 0
        self._leaves = False
        self._waiting: list[str] = []
        """Entries that were pasted with another, or given where a question was asked; they come next."""

    def run(self, chat: ChatContext) -> int:
        """Carry out entries until the user leaves; returns the exit code."""
        self._chat = chat
        interrupts = 0
        while not (self._leaves or self._interrupts.leaving):
            try:
                is_typed = self._reader.can_ask and not self._waiting
                text = self._waiting.pop(0) if self._waiting else self._reader.line()
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 1 or not self._reader.can_ask:
                    self._interrupts.leaving = True
                else:
                    self._out.say("Ctrl-C again or Ctrl-D leaves; everything is kept", "dim")
                continue
            except KernelSkillError as error:
                self._failed(error)
                continue
            if text is None:
                break
            interrupts = 0
            first, *others = entries_of(text, chat.commands)
            self._waiting = [*others, *self._waiting]
            self.carry_out(first, is_seen=is_typed and not others)
        return EXIT_INTERRUPTED if self._interrupts.leaving else self._code

    def carry_out(self, text: str, *, is_seen: bool = False) -> None:
        """Carry out one entry; nothing that goes wrong ends the chat.

        Args:
            text: The entry.
            is_seen: Whether it stands right above already, because somebody typed it.
        """
        chat = self._context
        if text.strip() and not (is_seen or self._out.as_json):
            self._out.say(f"\n> {text.strip()}", "head")  # a transcript without what was asked says little
        try:
            line = read_line(text, chat.commands, folder=chat.folder)
            if line is None:
                return
            self._show(line)
        except KeyboardInterrupt:
            self._interrupts.leaving = True
        except RunInterrupted as error:
            self._waiting.clear()
            self._failed(error)
            self._leaves = self._leaves or not self._reader.can_ask
        except KernelSkillError as error:
            self._failed(error)
        except BrokenPipeError:
            raise
        except (OSError, sqlite3.Error) as error:
            self._failed(HarnessError(str(error), remedy="what was finished before is kept"))
        if self._interrupts.pressed and not self._reader.can_ask:
            self._interrupts.leaving = (
                True  # nobody is there to say whether the next entries are wanted still
            )
        if self._out.as_json:
            self._out.status(chat.session.status())

    def goes_on(self, where: str) -> bool:
        """Ask after Ctrl-C whether the work is taken up again.

        Words are taken as a wish first, a command is carried out instead, and Ctrl-C or Ctrl-D leaves.
        """
        self._waiting.clear()
        if self._reader.can_ask:
            self._out.say(where)
        while self._reader.can_ask and not self._interrupts.leaving:
            with self._out.paused():
                said = self._reader.answer(_GO_ON)
            word = "quit" if said is None else said.strip()
            if word.lower() in ("y", "yes"):
                self._interrupts.go_on()
                return True
            if word.lower() in ("", "n", "no", "q", "quit"):
                self._leaves = self._leaves or word.lower().startswith("q")
                if said is None:
                    self._interrupts.leaving = True
                return False
            if not self._is_wish(word):
                self._waiting.append(word)
                return False
        self._leaves = True
        return False

    def _is_wish(self, text: str) -> bool:
        """Take a message for what should change; returns whether it is none but a command."""
        try:
            line = read_line(text, self._context.commands, folder=self._context.folder)
            if isinstance(line, Message):
                self._out.answer("say", self._message(line.text))
            return line is None or isinstance(line, Message)
        except KernelSkillError as error:
            self._failed(error)
            return True

    def _show(self, line: Line) -> None:
        """Carry out a line and show its answer."""
        with self._interrupts.while_working():
            name, found = self._answered(line)
        try:
            self._out.answer(name, found)
        except KeyboardInterrupt:
            if not self._reader.can_ask:
                raise
            self._out.say("\nthe rest is not shown", "dim")
        if found.failed:
            self._note_code(EXIT_INTERRUPTED if self._interrupts.pressed else EXIT_ANSWER_IS_NO)
        self._leaves = self._leaves or found.leaves

    def _answered(self, line: Line) -> tuple[str, Reply]:
        match line:
            case Invocation(command=command, wants_help=True):
                return "help", help_of(command)
            case Invocation():
                return line.command.name, line.command.run(self._context, line.values)
            case Shell():
                return "!", self._shell(line.text)
            case Message():
                return "say", self._message(line.text)

    def _message(self, text: str) -> Reply:
        with self._context.working("thinking"):
            found = self._context.session.say(text)
        blocks: list[Block] = [] if found.steered is None else views.steered(found.steered)
        if found.explanation is not None:
            blocks += views.explanation(found.explanation)
        if found.kind == "nothing":
            blocks.append(Say("/help lists the commands, /skills what can be wished for or banned", "dim"))
        return reply(found, *blocks, failed=found.kind == "nothing")

    def _shell(self, text: str) -> Reply:
        sys.stdout.flush()
        quiet = self._out.as_json or not self._reader.can_ask
        with self._interrupts.while_a_shell_works():
            done = subprocess.run(
                text,
                shell=True,
                cwd=self._context.folder,
                check=False,
                stdin=subprocess.DEVNULL if quiet else None,
                stdout=subprocess.PIPE if self._out.as_json else None,
                stderr=subprocess.STDOUT if self._out.as_json else None,
            )
        output = (done.stdout or b"").decode(errors="replace")
        ended = [Say(f"ended with {done.returncode}", "dim")] if done.returncode else []
        record = ShellResult(command=text, returncode=done.returncode, output=output)
        return reply(record, *ended, failed=done.returncode != 0)

    def _failed(self, error: KernelSkillError) -> None:
        show_error(self._out, error)
        self._note_code(error.exit_code)

    def _note_code(self, code: int) -> None:
        """Keep the code of the first entry that failed; at a terminal the user has seen it."""
        if not self._reader.can_ask:
            self._code = self._code or code

    @property
    def _context(self) -> ChatContext:
        assert self._chat is not None
        return self._chat
