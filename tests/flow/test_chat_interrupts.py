"""Each stage of a chat at a terminal: Ctrl-C once stops and asks, twice leaves; neither they nor a kill lose anything.

A sample runs always, all of it with KERNELSKILL_CHAT_STAGES=1.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from tests.flow.chatting import TAKEN, Terminal
from tests.flow.processes import adopt_orphans, descendants, no_descendants_left
from tests.flow.small_task import KERNEL, evaluation_files, kinds, write_task
from tests.flow.test_chat import EDITED, SETTINGS
from tests.flow.test_chat_pipes import STAGES, piped
from tests.llm.asking import Server, serving

pytestmark = pytest.mark.slow
SAMPLE = {("a model is asked", "twice")}
"""What is tried always."""
TRIES = 5
"""How often a line is typed whose work may be over before anybody sees that its stage has come."""

Sign = Callable[[Terminal, Path, int], bool]


def running(*names: str) -> Sign:
    """Something below the chat is a program of one of these names."""

    def found(chat: Terminal, _run: Path, _known: int) -> bool:
        return any(name in line for line in descendants(chat.child.pid).values() for name in names)

    return found


def told(kind: str) -> Sign:
    """The run has told of something of a kind since the line was typed."""

    def found(_chat: Terminal, run: Path, known: int) -> bool:
        log = run / "events.jsonl"
        lines = log.read_bytes().splitlines() if log.is_file() else []
        return any(f'"kind":"{kind}"'.encode() in line for line in lines[known:])

    return found


@dataclass(frozen=True)
class Moment:
    """What is typed, and how it is seen that its stage has come."""

    name: str
    line: str
    sign: Sign
    done: str
    """What is shown when the line has been carried out."""
    begins: Literal["begun", "new", "known"] = "begun"
    """What is worked on: a run with a baseline and a head, or a new run of a kernel that nobody, or somebody, built."""
    told: str = ""
    """What must be told before the sign counts."""
    pause: float = 0.1
    """Seconds between two looks for the sign."""
    past: str = ""
    """What is told when it is too late for this stage."""


BUILDS, RUNS = running("cicc", "nvcc", "cc1plus"), running("emulated.child")
MOMENTS = (
    Moment("baseline: build", "/baseline", BUILDS, "rows=200", begins="new"),
    Moment("baseline: run", "/baseline", RUNS, "rows=200", begins="new"),
    Moment("round: profile", "/step", told("round_started"), "1 round finished", past="diagnosed"),
    Moment("round: proposals", "/step", told("diagnosed"), "1 round finished", past="proposed"),
    Moment("round: build", "/step", BUILDS, "1 round finished", told="ranked", begins="new"),
    Moment("round: check and time", "/step", RUNS, "1 round finished", told="ranked", begins="new"),
    Moment(
        "round: judge", "/step", told("evaluated"), "1 round finished", pause=0.002, past="round_finished"
    ),
    Moment("pin: build", "/pin mine.cu", BUILDS, "right"),
    Moment("pin: check and time", "/pin mine.cu", RUNS, "right"),
    Moment("profile", "/profile 1", RUNS, "means"),
    Moment("remeasure", "/remeasure", RUNS, "->"),
    Moment("confirm", "/confirm", RUNS, "of roof"),
    Moment("stop", "/stop", RUNS, "written into"),
    Moment("a model is asked", "why is it slow?", told("asked"), "You said", begins="known"),
    Moment("a specialist is asked", "/step", told("asked"), "1 round finished", begins="known"),
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has a baseline, and a head that somebody pinned."""
    folder = tmp_path_factory.mktemp("stages")
    write_task(folder, settings=SETTINGS)
    (folder / "mine.cu").write_text(EDITED, encoding="utf-8")
    script = ["baseline", "pin mine.cu --head"]
    done, lines = piped(script, "kernel.cu", "-t", "test.py", "--no-learn", "--out", "run", cwd=folder)
    assert done.returncode == 0, lines
    return folder


@pytest.fixture
def work(request: pytest.FixtureRequest, tmp_path: Path, moment: Moment) -> Path:
    """A folder to work in, with a kernel and an edit that nobody has built before."""
    work = tmp_path / "work"
    if moment.begins == "begun":
        shutil.copytree(request.getfixturevalue("begun"), work)
    else:
        write_task(work, settings=SETTINGS)
    mark = f"// {secrets.token_hex(8)}\n"
    (work / "mine.cu").write_text(mark + EDITED, encoding="utf-8")
    if moment.begins == "new":
        (work / "kernel.cu").write_text(mark + KERNEL, encoding="utf-8")
    return work


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    """Ends what a failed test leaves behind."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as found:
        adopt_orphans()  # but for the server
        yield found


@pytest.fixture
def slow_model(server: Server, how: str) -> str:
    """How a model is spelled that thinks for some seconds, or until nobody waits any more."""
    return f"openai:m@{server.scenario('ok=3' if how == 'once' else 'ok=60')}/v1"


def opened(work: Path, moment: Moment, model: str) -> Terminal:
    """Return a chat that has been begun and waits for a line."""
    asks = ("--model", model) if "asked" in moment.name else ()
    new = ("kernel.cu", "-t", "test.py", "--no-learn", "--out", "run")
    begins = ("--resume", "run") if moment.begins == "begun" else new
    chat = Terminal(work, *begins, "--answer", "first_run=yes", *asks, OPENAI_API_KEY="none")
    chat.ready()
    return chat


def has_come(chat: Terminal, run: Path, known: int, moment: Moment) -> bool:
    """Whether the stage of a moment has come, or the line has been carried out."""
    if chat.waits():
        return True
    return (not moment.told or told(moment.told)(chat, run, known)) and moment.sign(chat, run, known)


def reached(chat: Terminal, run: Path, moment: Moment) -> None:
    """Type the line of a moment and wait until its stage has come; the chat stands still in it then.

    A loaded machine may show the stage when it is over: the line is typed again then.
    """
    for _ in range(TRIES):
        known = len(kinds(run))
        chat.child.send(moment.line + "\r")
        chat.until(TAKEN)
        chat.comes(partial(has_come, chat, run, known, moment), moment.name, pause=moment.pause)
        chat.freeze()
        if not (chat.waits() or (moment.past and told(moment.past)(chat, run, known))):
            return
        chat.thaw()
        chat.ready()
    pytest.fail(f"{moment.name} was over {TRIES} times before it was seen: {chat.transcript}")


@pytest.mark.parametrize(
    ("moment", "how"),
    [
        pytest.param(
            moment,
            how,
            id=f"{moment.name}-{how}",
            marks=pytest.mark.skipif(
                STAGES not in os.environ and (moment.name, how) not in SAMPLE,
                reason=f"set {STAGES}=1 to stop at every stage",
            ),
        )
        for moment in MOMENTS
        for how in ("once", "twice", "killed")
    ],
)
def test_a_stop_at_a_stage(ending: ExitStack, work: Path, slow_model: str, moment: Moment, how: str) -> None:
    run = work / "run"
    chat = opened(work, moment, slow_model)
    ending.callback(chat.end)
    before = evaluation_files(run)
    events = kinds(run)
    reached(chat, run, moment)
    if how == "once":
        stopped_and_gone_on(chat, moment)
        chat.child.sendeof()
        assert chat.ended() == 0, chat.transcript
    else:
        if how == "twice":
            left(chat)
        else:
            os.kill(chat.child.pid, signal.SIGKILL)
            assert chat.ended() == -signal.SIGKILL
        no_descendants_left()
        again, lines = piped([moment.line], "--resume", str(run), "--model", "none", cwd=work)
        expected = "small grid" if moment.line.endswith("?") else moment.done
        assert again.returncode in (0, 1), "\n".join(lines)  # 1: carried out, and the answer is no
        assert expected in again.stdout, "\n".join(lines)
    no_descendants_left()
    assert kinds(run)[: len(events)] == events
    assert before.items() <= evaluation_files(run).items(), "what was evaluated is kept as it was"


def stopped_and_gone_on(chat: Terminal, moment: Moment) -> None:
    """Press Ctrl-C once, and see the work through."""
    chat.interrupt()
    shown = chat.ready()
    assert "stopping soon" in shown, chat.transcript
    if "go on" in chat.until(r"kernelskill>|go on\?"):
        shown = chat.say("y")
    if moment.done not in shown:
        assert "stopped" in shown, chat.transcript
        shown = chat.say(moment.line)
    assert moment.done in shown, chat.transcript
    assert "usable" in chat.say("!echo us''able")


def left(chat: Terminal) -> None:
    """Press Ctrl-C twice."""
    chat.interrupt()
    chat.until("stopping soon")
    chat.interrupt()
    assert chat.ended() == 130, chat.transcript
    assert "kernelskill chat --resume" in chat.transcript


@pytest.mark.skipif(STAGES not in os.environ, reason=f"set {STAGES}=1 to press Ctrl-C at every question")
def test_ctrl_c_at_the_questions(ending: ExitStack, tmp_path: Path) -> None:
    adopt_orphans()
    write_task(tmp_path, settings=SETTINGS)
    chat = Terminal(tmp_path, "kernel.cu", "-t", "test.py", "--no-learn", "--out", "run")
    ending.callback(chat.end)
    chat.ready()
    assert "generated code is about to run" in chat.say("/step")
    chat.interrupt()
    assert "you did not agree" in chat.ready()
    chat.say("/step")
    assert "1 round finished" in chat.say("a")
    chat.say("/budget --evaluations 1")
    assert "go on?" in chat.say("/step")
    chat.interrupt()
    assert "evaluations" in chat.ready()
    chat.say("/budget --evaluations none")
    assert "will be overwritten" in chat.say("/export")
    chat.interrupt()
    assert "nothing was written" in chat.ready()
    assert (tmp_path / "kernel.cu").read_text(encoding="utf-8") == KERNEL
    chat.child.send("!sleep 100\r")
    chat.comes(lambda: running("sleep 100")(chat, tmp_path, 0), "the shell's command")
    chat.interrupt()
    assert "ended with" in chat.ready()
    chat.begin("/step", until="round 2")
    chat.interrupt()
    chat.ready()
    chat.interrupt()  # at the question whether to go on it is the second one
    assert chat.ended() == 130, chat.transcript
    no_descendants_left()
    done, lines = piped(["step", "tree"], "--resume", "run", cwd=tmp_path)
    assert done.returncode == 0, lines
