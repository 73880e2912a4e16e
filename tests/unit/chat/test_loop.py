"""The loop of a chat on the scripted device: what is typed, pasted or said where the work was stopped."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Sequence

import pytest
from rich.console import Console

from kernelskill.chat.context import ChatContext
from kernelskill.chat.loop import EXIT_INTERRUPTED, Loop
from kernelskill.chat.output import TextOutput
from kernelskill.chat.registry import all_commands
from kernelskill.chat.signals import Interrupts
from kernelskill.schema.event import Event
from kernelskill.session import Session
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import session_of, stocked


class Somebody:
    """Types lines and gives answers from lists; then there is nobody any more."""

    def __init__(self, lines: Sequence[str], answers: Sequence[str] = (), *, can_ask: bool = True) -> None:
        self.can_ask = can_ask
        self.lines, self.answers = list(lines), list(answers)
        self.asked: list[str] = []

    def line(self) -> str | None:
        return self.lines.pop(0) if self.lines else None

    def answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else None


class Impatient(io.StringIO):
    """A screen in front of which somebody presses Ctrl-C at the third line of an answer."""

    lines = 0
    pressed = False

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        if self.lines >= 3 and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


def held(
    session: Session, somebody: Somebody, press_at: str = "", shown: io.StringIO | None = None
) -> tuple[int, str]:
    """Hold a chat; Ctrl-C is pressed at the first event of a kind. Returns the exit code and what was shown."""
    shown = shown or io.StringIO()
    out = TextOutput(Console(file=shown, width=100))
    pressed: list[str] = []

    def press(event: Event) -> None:
        if event.kind == press_at and not pressed:
            pressed.append(event.kind)
            os.kill(os.getpid(), signal.SIGINT)

    end = session.subscribe(press)
    interrupts = Interrupts(session.context.stop, lambda: False)
    loop = Loop(somebody, out, interrupts)
    # What starts the tests may have told its children to ignore Ctrl-C; a program at a terminal is not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = loop.run(ChatContext(session, out, all_commands(), loop.goes_on))
    finally:
        signal.signal(signal.SIGINT, before)
        end()
    return code, shown.getvalue()


@pytest.fixture
def session(shop: Callable[..., Shop]) -> Session:
    return session_of(stocked(shop, slate=2))


def rounds(session: Session) -> tuple[int, int | None]:
    status = session.status()
    return status.round, status.open_round


def test_yes_goes_on(session: Session) -> None:
    somebody = Somebody(["/step"], ["y"])
    code, shown = held(session, somebody, "ranked")
    assert (code, rounds(session)) == (0, (1, None))
    assert len(somebody.asked) == 1
    assert "1 round finished" in shown


def test_no_leaves_the_round_open_for_the_next_step(session: Session) -> None:
    code, shown = held(session, Somebody(["/step"], ["n"]), "ranked")
    assert (code, rounds(session)) == (0, (0, 1))
    assert "goes on with the next step" in shown
    held(session, Somebody(["/step"]))
    assert rounds(session) == (1, None)


@pytest.mark.parametrize("command", ["/stop", "stop", "/tree", "!true"])
def test_a_command_there_is_carried_out_instead(session: Session, command: str) -> None:
    code, shown = held(session, Somebody(["/step", "/constraints"], [command]), "ranked")
    assert (code, rounds(session)) == (0, (0, 1))
    assert f"> {command}" in shown
    assert "nothing yet; say what you wish" in shown, "what was typed after that comes too"
    held(session, Somebody(["/run 1"]))
    assert rounds(session) == (1, None)


def test_a_wish_there_is_taken_first(session: Session) -> None:
    somebody = Somebody(["/step"], ["no unrolling", "exprot", "/exprot", "y"])
    code, shown = held(session, somebody, "ranked")
    assert code == 0
    assert [rule.text for rule in session.steering.rules()] == ["no unrolling"]
    assert len(somebody.asked) == 4
    assert "did you mean /export or /report?" in shown
    assert rounds(session) == (2, None), "the wish ended the round that was open"


def test_ctrl_c_there_leaves(session: Session) -> None:
    code, _ = held(session, Somebody(["/step", "/undo"]), "ranked")
    assert (code, rounds(session)) == (EXIT_INTERRUPTED, (0, 1))


@pytest.mark.parametrize(("line", "kind"), [("/step", "ranked"), ("/baseline", "baseline_measured")])
def test_a_pipe_ends_with_the_entry_that_was_interrupted(session: Session, line: str, kind: str) -> None:
    code, shown = held(session, Somebody([line, "/ban unroll"], can_ask=False), kind)
    assert code == EXIT_INTERRUPTED
    assert session.steering.rules() == ()
    assert "> /ban" not in shown


def test_pasted_commands_are_carried_out_one_after_the_other(session: Session) -> None:
    code, shown = held(session, Somebody(["/step\nno unrolling\n/exprot\n/undo", "/best"]))
    assert code == 0
    assert (
        shown.index("> /step")
        < shown.index("> no unrolling")
        < shown.index("> /exprot")
        < shown.index("> /undo")
    )
    assert "> /best" not in shown, "what was typed stands there already"
    assert session.history.node().number == 0


def test_a_long_answer_is_cut_short_by_ctrl_c(session: Session) -> None:
    code, shown = held(session, Somebody(["/help", "/constraints"]), shown=Impatient())
    assert code == 0
    assert "the rest is not shown" in shown
    assert "/quit" not in shown
    assert "nothing yet; say what you wish" in shown
