"""A chat from a fresh start to an exported file, through a terminal: every command, borders, interrupts, a kill."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.chat.registry import all_commands
from tests.flow.chatting import COLOUR, Terminal
from tests.flow.processes import adopt_orphans, descendants, no_descendants_left
from tests.flow.small_task import KERNEL, of_kind, write_task

pytestmark = pytest.mark.slow
SETTINGS = '[run]\ndevice = "emulated"\nslate = 1\nrounds = 3\npoints = 0\ntrials = 1\n'
EDITED = KERNEL.replace("m[c] += 0.5 *", "m[c] += 0.5f *")
WRONG = KERNEL.replace("0.5 *", "0.25 *")
EDITOR = '#!/bin/sh\nsed -i "s/Half the sum/Die Hälfte der Summe/" "$1"\n'


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat")
    write_task(folder, settings=SETTINGS)
    nobody_built_it = f"// {secrets.token_hex(8)}\n"
    (folder / "mine.cu").write_text(nobody_built_it + EDITED, encoding="utf-8")
    (folder / "wrong.cu").write_text(WRONG, encoding="utf-8")
    (folder / "größe notes.txt").write_text("leave shared memory alone\n", encoding="utf-8")
    editor = folder / "editor"
    editor.write_text(EDITOR, encoding="utf-8")
    editor.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def chat(work: Path) -> Iterator[Terminal]:
    adopt_orphans()
    terminal = Terminal(
        work,
        "kernel.cu",
        "-t",
        "test.py",
        "--no-learn",
        "--out",
        "run",
        EDITOR=str(work / "editor"),
        VISUAL="",
    )
    terminal.ready()
    yield terminal
    terminal.child.close(force=True)


def test_it_begins_with_what_it_works_on(chat: Terminal, work: Path) -> None:
    assert "column_means on NVIDIA H200, emulated: times are estimates" in chat.transcript
    assert "/help" in chat.transcript
    chat.until("not measured")  # the status line
    shown = chat.say("/task")
    for word in ("column_means", "rows=200, cols=300", "timed", "no_alias", "rtol 0.0001"):
        assert word in shown

    shown = chat.say("/best")
    assert "not measured yet" in shown
    assert "baseline" in shown


def test_bad_input_costs_nothing(chat: Terminal) -> None:
    assert "did you mean /export or /report?" in chat.say("/exprot fast.cu")
    assert "one more letter" in chat.say("/re")
    assert "whole number" in chat.say("run tow")
    assert "close the quotation" in chat.say("/pin 'mine.cu")
    assert "cannot read" in chat.say("/pin nowhere.cu")
    assert "No such file" in chat.say("do what @nowhere.txt says")
    assert "not understood" in chat.say("ゆっくりお願いします")
    chat.child.send("\x1b[A")  # what was typed can be had again
    assert "ゆっくりお願いします" in chat.say("")


def test_the_baseline_stops_at_ctrl_c_and_goes_on(chat: Terminal) -> None:
    chat.begin("/run 1", until="searching")
    chat.interrupt()
    shown = chat.ready()
    assert "stopping soon" in shown
    assert "0 rounds finished" in shown
    assert "preference: registers first" in chat.say("registers first")
    assert "nothing kept" in chat.say("n")
    shown = chat.say("/baseline")
    assert "rows=200, cols=300" in shown
    assert "~" in shown


def test_generated_code_runs_when_the_user_agrees(chat: Terminal, work: Path) -> None:
    shown = chat.say("/step")
    assert "generated code is about to run" in shown
    assert "[y]es, [n]o, [e]dit, [d]iff, [a]lways?" in chat.say("what?") + chat.transcript
    assert "+++" in chat.say("d")
    shown = chat.say("n")
    assert "you did not agree" in shown
    shown = chat.say("/step")
    shown = chat.say("y")
    assert "1 round finished" in shown
    assert "head #1 ~" in shown
    assert len(of_kind(work / "run", "round_finished")) >= 1


def test_looking_at_what_was_found(chat: Terminal, work: Path) -> None:
    shown = chat.say("tree")
    assert "* " in shown
    assert "#1" in shown
    best = chat.say("/best")
    assert "head #1" in best
    assert "~" in best
    assert "__global__ void means" in chat.say("/show")
    assert "0.5 * a[r * cols + c]" in chat.say("/show original")
    assert "+++ b/kernel.cu" in chat.say("/diff")
    assert "they are the same" in chat.say("/diff head 1")
    assert "no candidate" in chat.say("/show 99")
    assert "->" in chat.say("/undo")
    assert "nothing" in chat.say("/undo") or "cannot undo" in chat.transcript
    assert "#1" in chat.say("/redo")
    assert "#0" in chat.say("/redo --to original")
    assert "#1" in chat.say("/redo --to 1")
    assert "p1.1" in chat.say("/offers --all")
    shown = chat.say("/skills")
    assert "compute/unroll" in shown
    assert "compute/unroll" in chat.say("/skills unroll")
    assert "memory/" in chat.say("/skills memory")


def test_evidence(chat: Terminal) -> None:
    assert chat.say("/why").strip()
    assert chat.say("/why 1").strip()
    assert chat.say("why is it slow?").strip()
    assert "means" in chat.say("/profile")
    assert "->" in chat.say("/remeasure 1")


def test_steering(chat: Terminal) -> None:
    assert "constraint: nothing that uses shared memory" in chat.say("leave shared memory alone")
    assert "preference" in chat.say("registers first")
    assert "unroll" in chat.say("/ban unroll")
    shown = chat.say("/constraints")
    assert "shared memory" in shown
    assert "unroll" in shown
    assert chat.say("/allow unroll").strip()
    assert "no longer" in chat.say("/constraints --forget 1")
    assert "preferred: p1.2" in chat.say("/choose p1.2 p1.1")
    assert "shared memory" in chat.say('@"größe notes.txt"')


def test_the_users_own_edits(chat: Terminal, work: Path) -> None:
    assert "refused" in chat.say("/pin wrong.cu")
    chat.begin("/pin mine.cu --head", until="building")
    chat.comes(lambda: any("nvcc" in line for line in descendants(chat.child.pid).values()), "a build")
    chat.interrupt()
    shown = chat.ready()
    assert "stopping soon" in shown
    assert ": right" in shown or ": right" in chat.say("/pin mine.cu --head")
    assert "(yours)" in chat.say("/tree")


def test_settings(chat: Terminal) -> None:
    shown = chat.say("/budget --device 10m --rounds 12")
    assert "600 s" in shown
    assert "12" in shown
    assert "is not a duration" in chat.say("/budget --device soon")
    assert "model: none" in chat.say("/model")
    assert "no model" in chat.say("/model gpt") or "remedy" in chat.transcript


def test_help_shell_and_several_lines(chat: Terminal, work: Path) -> None:
    assert all(f"/{name}" in chat.say("/help") for name in all_commands().names[:1])
    assert "/diff [a] [b]" in chat.say("/diff --help")
    assert "größe notes.txt" in chat.say("!ls")
    assert "ended with 3" in chat.say("!exit 3")
    chat.child.send("!echo one\\\r")
    assert "one\ntwo" in chat.say("echo two")
    chat.child.send("/exp\t")
    assert "/export" in chat.say(" --help")


def test_the_result_is_written_when_the_user_agrees(chat: Terminal, work: Path) -> None:
    assert "# column_means" in chat.say("/report") or "column_means" in chat.transcript
    assert chat.say("/confirm").strip()
    assert "written into" in chat.say("/stop")
    assert "written:" in chat.say("/save")
    assert (work / "run" / "result" / "kernel.cu").is_file()
    shown = chat.say("/export fast.cu")
    assert "written:" in shown
    assert (work / "fast.cu").read_text(encoding="utf-8") != KERNEL
    assert "will be overwritten" in chat.say("/export")
    assert "nothing was written" in chat.say("n")
    assert (work / "kernel.cu").read_text(encoding="utf-8") == KERNEL
    chat.say("/export")
    assert "written" in chat.say("e")
    assert "Die Hälfte der Summe" in (work / "kernel.cu").read_text(encoding="utf-8")
    (work / "kernel.cu").write_text(KERNEL + "// mine\n", encoding="utf-8")
    assert "changed since" in chat.say("/export --candidate 1")
    assert (work / "kernel.cu").read_text(encoding="utf-8").endswith("// mine\n")


def test_a_kill_costs_nothing_and_a_narrow_terminal_goes_on(chat: Terminal, work: Path) -> None:
    chat.begin("/step", until="searching")
    os.kill(chat.child.pid, signal.SIGKILL)
    assert chat.ended() == -signal.SIGKILL
    no_descendants_left()
    again = Terminal(work, "--resume", "run", size=(30, 40), NO_COLOR="1")
    again.ready()
    tree = again.say("/tree")
    assert "(yours)" in tree, again.transcript
    assert max(map(len, tree.splitlines())) <= 40
    for command in ("/help", "/best", "/constraints", "/budget", "/offers"):
        assert max(map(len, again.say(command).splitlines())) <= 40, command
    again.begin("/step", until="searching")
    again.interrupt()
    again.until("stopping soon")
    again.interrupt()
    assert again.ended() == 130
    assert "kernelskill chat --resume run" in again.transcript
    assert not COLOUR.search(again.raw)
    no_descendants_left()
