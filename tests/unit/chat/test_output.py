"""Answers at any width: nothing is cut, nothing sticks out, and pipes and programs get what suits them."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from kernelskill.chat import views
from kernelskill.chat.helping import overview
from kernelskill.chat.output import JsonOutput, TextOutput
from kernelskill.chat.registry import all_commands
from kernelskill.chat.reply import Block, Code, Say, rows, said
from kernelskill.chat.statusline import MOST_LINES, status_lines
from kernelskill.schema.event import Note
from kernelskill.schema.run import Budget, Spend
from kernelskill.session.records import CaseTime, SessionStatus, StepResult, TreeNode

WIDTHS = [40, 60, 100, 200]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(width: int, *blocks: Block, colour: bool = True) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, force_terminal=True, no_color=not colour, highlight=False, legacy_windows=False,
        color_system="standard", _environ={"TERM": "xterm"},
    )  # fmt: skip
    out = TextOutput(console)
    for block in blocks:
        out.block(block)
    return stream.getvalue()


def plain(text: str) -> str:
    return ESCAPE.sub("", text)


def node(number: int, **changes: Any) -> TreeNode:
    values: dict[str, Any] = dict(
        number=number, digest=f"{number:064x}", parent=number - 1 if number else None,
        label="block_shape(shape=1024x1) + shared_tile at a_kernel_with_a_rather_long_name_of_its_own",
        origin="mechanical", round=1, verdict="accepted", reason="", speedup=3.4567, gain=1.5, estimated=True,
        is_head=number == 2, is_best=False, on_line=True, kept=True, depth=number,
    )  # fmt: skip
    return TreeNode(**{**values, **changes})


def status(**changes: Any) -> SessionStatus:
    values: dict[str, Any] = dict(
        task="column_means", device="emulated", gpu="NVIDIA H200", clock_mhz=1980.0, evidence="measured",
        estimated=False, original_ms=17.7, best_ms=2.5, speedup=7.07, roof_fraction=0.61, round=3, open_round=None,
        head=4, spend=Spend(seconds=120, device_seconds=41.3, evaluations=30, rounds=3),
        budget=Budget(rounds=8, patience=3, device_seconds=60), model="none", model_tokens=12345, model_usd=0.31,
        rules=2, confirmed=False, folder="run",
    )  # fmt: skip
    return SessionStatus(**{**values, **changes})


@pytest.mark.parametrize("width", WIDTHS)
def test_a_tree_fits(width: int) -> None:
    nodes = [
        node(number, verdict=verdict) for number, verdict in enumerate(("", "accepted", "tie", "refused"))
    ]
    text = plain(shown(width, views.tree_rows(nodes)))
    assert all(cell_len(line) <= width for line in text.splitlines())
    for number in range(4):
        assert f"#{number}" in text
    assert "~3.46x" in text
    assert "own" in "".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_times_say_what_is_an_estimate(width: int) -> None:
    case = CaseTime(
        label="rows=200, cols=300",
        original_ms=12.5,
        ms=1.25,
        speedup=10.0,
        roof_fraction=0.5,
        evidence="estimated",
    )
    text = plain(shown(width, views.case_rows([case])))
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "~1.25 ms" in text
    assert "~10x" in text
    measured = plain(shown(width, views.case_rows([case.model_copy(update={"evidence": "measured"})])))
    assert "~" not in measured
    assert "10.00x" in measured


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", ["  . " + "a word " * 40, "x" * 300, "共有メモリ" * 30, "größer, " * 40])
def test_a_long_line_is_wrapped_and_whole(width: int, text: str) -> None:
    printed = plain(shown(width, Say(text)))
    assert all(cell_len(line) <= width for line in printed.splitlines())
    assert "".join(printed.split()) == "".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_the_help_fits(width: int) -> None:
    text = plain(shown(width, *overview(all_commands()).blocks))
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert all(f"/{name}" in text for name in all_commands().names)


@pytest.mark.parametrize("colour", [True, False])
def test_colour_only_where_it_is_wanted(colour: bool) -> None:
    blocks: list[Block] = [
        Say("bad", "bad"),
        Code("-old\n+new\n", "diff"),
        Code("int x = 1; // größer\n", "cuda"),
    ]
    text = shown(80, *blocks, colour=colour)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", text)) == colour
    assert "int x = 1; // größer" in plain(text)


def test_code_is_never_wrapped_or_padded() -> None:
    line = "    " + "a + " * 60 + "b;"
    for language in ("cuda", "diff", "text"):
        assert plain(shown(40, Code(line + "\n", language))).rstrip("\n") == line  # type: ignore[arg-type]


def test_markup_of_others_is_text() -> None:
    assert plain(shown(80, Say("[bold]x[/bold] [red"))).startswith("[bold]x[/bold] [red")
    table = rows(("a", "b"), [("[/]", "[link=x]")])
    assert "[/]" in plain(shown(80, table))
    assert "[link=x]" in plain(shown(80, table))


def test_a_terminal_obeys_nothing_that_is_only_shown() -> None:
    bad = "a\x1b[2Jb\x9bc\u202ed\x07\te"
    for width in (40, 200):
        blocks: list[Block] = [Say(bad), rows(("x", "y"), [("1" * 30, bad)])]
        blocks += [Code(bad, language) for language in ("cuda", "diff", "text")]  # type: ignore[arg-type]
        for block in blocks:
            text = plain(shown(width, block))
            assert "a<1B>[2Jb<9B>c<202E>d<07>" in "".join(text.split())
    stream = io.StringIO()
    TextOutput(Console(file=stream, width=40)).block(Code(bad, "cuda"))
    assert stream.getvalue() == bad + "\n", "a pipe gets it as it is"


@pytest.mark.parametrize("width", [20, *WIDTHS])
@pytest.mark.parametrize(
    "changes",
    [{}, {"best_ms": None, "roof_fraction": None, "speedup": 1.0}, {"estimated": True}, {"open_round": 4}],
)
def test_the_status_line_fits(width: int, changes: dict[str, Any]) -> None:
    lines = status_lines(status(**changes), width)
    assert 1 <= len(lines) <= MOST_LINES
    assert all(len(line) < width for line in lines)


def test_the_status_line_has_all_that_was_asked_for() -> None:
    (line,) = status_lines(status(), 200)
    for part in (
        "H200 1980 MHz",
        "2.5 ms",
        "7.07x",
        "61% of roof",
        "round 3",
        "41.3/60 s",
        "12345 tokens",
        "0.31 USD",
    ):
        assert part in line
    (line,) = status_lines(status(estimated=True), 200)
    assert "~2.5 ms" in line
    assert "~7.07x" in line
    assert "emulated" in line
    assert "not measured" in status_lines(status(best_ms=None), 200)[0]


def test_what_rounds_brought() -> None:
    found = StepResult(
        round=2, rounds=1, finished=False, stopped="interrupted", detail="0 rounds finished; stopped at a safe point",
        accepted=(node(2),), head=node(2), speedup=3.4567, estimated=True,
    )  # fmt: skip
    text = plain(shown(40, *views.step(found)))
    assert "#2" in text
    assert "safe point" in " ".join(text.split())
    assert "~3.46x" in text


def test_programs_get_one_object_a_line() -> None:
    stream = io.StringIO()
    out = JsonOutput(stream)
    out(Note(text="größer\nund zwei"))
    out.answer("best", said("one", "two", failed=True))
    out.error("wrong", "do this", 2)
    out.say("left", kind="end", exit_code=0)
    out.status(status())
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["kind"] for line in found] == ["note", "answer", "error", "end", "status"]
    assert found[1] == {"kind": "answer", "command": "best", "ok": False, "result": {"text": "one\ntwo"}}
    assert found[2] == {"kind": "error", "message": "wrong", "remedy": "do this", "exit_code": 2}
