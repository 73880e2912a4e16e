"""The candidates of a session: names, undo and redo, texts of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.runs import fold
from kernelskill.schema.event import Judged, RoundFinished
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import session_of, stocked

MINE = """\
// scripted: right ms=0.25
__global__ void k(const float *x, float *y, int n) { /* mine */ }
extern "C" void scale(const float *x, float *y, int n) { k<<<1, 128>>>(x, y, n); }
"""


def test_the_tree_holds_everything_that_was_judged(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    assert [node.number for node in session.history.tree()] == [0]
    done = session.work.step()
    nodes = session.history.tree()
    assert (done.round, done.rounds, done.finished, done.stopped) == (1, 1, True, "")
    assert [node.parent for node in nodes] == [None, *[0] * (len(nodes) - 1)]
    (head,) = [node for node in nodes if node.is_head]
    assert head == done.head
    assert head.is_best
    assert head.on_line
    assert head.label.startswith("shared_tile")
    assert head.speedup == pytest.approx(2.0, rel=0.1)
    assert [node.digest for node in nodes if node.verdict == "accepted"] == [n.digest for n in done.accepted]
    assert session.history.best().faster is None


def test_candidates_go_by_many_names(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.work.step()
    head = session.history.node("head")
    for name in (
        "",
        "best",
        "HEAD",
        f"#{head.number}",
        str(head.number),
        head.digest[:8],
        "fastest",
        "head~0",
    ):
        assert session.history.node(name) == head
    for name in ("original", "0", "parent", "head~1", "head~", "head^", session.history.tree()[0].digest):
        assert session.history.node(name).number == 0
    for name, remedy in (
        ("haed", "head"),
        ("99", "from 0 to"),
        ("abcdef123", "give a number"),
        ("#", "give"),
    ):
        with pytest.raises(UnknownNameError) as caught:
            session.history.node(name)
        assert remedy in caught.value.remedy
    with pytest.raises(UsageError, match="only 1 change behind it"):
        session.history.node("head~2")


def test_undo_moves_the_head_and_destroys_nothing(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made)
    won = session.work.step().head
    before = session.history.tree()
    moved = session.history.undo()
    assert (moved.before.digest, moved.after.number, moved.can_undo, moved.can_redo) == (
        won.digest,
        0,
        False,
        True,
    )
    assert any(f"#{won.number}" in note for note in moved.notes)
    assert [node.digest for node in session.history.tree()] == [node.digest for node in before]
    assert session.history.best().faster is not None
    assert session.status().speedup == 1.0
    with pytest.raises(UsageError, match="the head is the original"):
        session.history.undo()
    again = session_of(made)
    assert again.history.node().number == 0
    assert again.history.redo().after.digest == won.digest
    with pytest.raises(UsageError, match="nothing was undone"):
        again.history.redo()


def test_rounds_start_from_where_the_user_went(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.work.step()
    slower = next(n for n in session.history.tree() if n.kept and n.number and not n.is_head)
    session.history.move(f"#{slower.number}")
    session.work.step()
    finished = [e for e in session.context.log.events if isinstance(e, RoundFinished)]
    assert finished[-1].result.base == slower.digest
    assert session.history.node().on_line
    assert session.history.node(str(slower.number)).on_line


def test_a_gain_after_undo_ends_redo(shop: Callable[..., Shop]) -> None:
    made = stocked(shop, slate=1)
    session = session_of(made)
    session.work.step()
    session.history.undo()
    done = session.work.step()
    assert done.head.number > 1
    with pytest.raises(UsageError, match="cannot redo"):
        session.history.redo()


def test_a_text_of_ones_own_is_checked_like_any_other(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made)
    session.work.step()
    pinned = session.history.pin(MINE)
    assert (pinned.accepted, pinned.moved, pinned.status, pinned.known) == (True, True, "accepted", False)
    assert pinned.node.origin == "user"
    assert pinned.node.is_head
    assert pinned.node.round == 0
    assert session.history.show().text == MINE
    assert session.history.pin(MINE).known
    wrong = session.history.pin(MINE.replace("right", "tail"))
    assert (wrong.accepted, wrong.moved, wrong.status) == (False, False, "refused")
    assert wrong.reason.startswith("incorrect")
    with pytest.raises(UsageError, match="cannot be the head"):
        session.history.move(str(wrong.node.number))
    assert session_of(made).history.show().text == MINE


def test_a_slower_text_is_kept_and_becomes_the_head_on_request(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.work.step()
    head = session.history.node()
    slow = MINE.replace("0.25", "5.0")
    pinned = session.history.pin(slow)
    assert (pinned.accepted, pinned.moved, pinned.status) == (True, False, "slower")
    assert session.history.node() == head
    assert not session.history.pin(slow).moved
    assert not session.history.pin(session.history.show("original").text).moved
    assert session.history.pin(slow, move=True).moved
    assert session.history.undo().after.digest == head.digest


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MINE.replace("scale", "other"), "scale"),
        (MINE.replace("const float *x", "const double *x"), "x"),
        (MINE.replace("right", "compile_error"), "compile_error"),
    ],
)
def test_what_cannot_be_used_is_said(shop: Callable[..., Shop], text: str, reason: str) -> None:
    session = session_of(stocked(shop))
    session.work.baseline()
    pinned = session.history.pin(text)
    assert not pinned.accepted
    assert reason in pinned.reason
    assert session.history.node().number == 0
    judged = [e for e in session.context.log.events if isinstance(e, Judged)]
    assert [e.round for e in judged] == [0]


def test_bad_texts_and_files(shop: Callable[..., Shop], tmp_path: Path) -> None:
    session = session_of(stocked(shop))
    session.work.baseline()
    for text, path, message in (
        ("  \n", "", "empty"),
        ("a\0", "", "no source"),
        ("a\udcff", "", "no source"),
        (MINE, "no.cu", "no file 'no.cu'"),
    ):
        with pytest.raises(UsageError, match=message):
            session.history.pin(text, path=path)
    with pytest.raises(UsageError, match="cannot read"):
        session.history.pin_file(tmp_path / "none.cu")
    (tmp_path / "bytes.cu").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no UTF-8"):
        session.history.pin_file(tmp_path / "bytes.cu")
    (tmp_path / "marked.cu").write_bytes(b"\xef\xbb\xbf" + MINE.encode())
    assert session.history.pin_file(tmp_path / "marked.cu").moved


def test_texts_can_be_compared(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    assert session.history.show().text == session.history.show("original").text
    session.work.step()
    diff = session.history.diff()
    assert (diff.first.number, diff.second.is_head) == (0, True)
    assert "-// scripted: right ms=1.0" in diff.text
    assert session.history.diff("head", "best").text == ""


def test_an_open_round_ends_with_what_it_has_before_the_head_moves(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made, stop_at=Judged)
    done = session.work.step()
    if done.stopped:  # the flag falls between two evaluations
        assert (done.stopped, done.finished) == ("interrupted", False)
    again = session_of(made)
    again.work.baseline()
    again.history.pin(MINE)
    state = fold(again.context.log.events)
    assert state.open_round is None
    assert state.rounds == 1
    assert again.work.step().round == 2
