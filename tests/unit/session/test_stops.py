"""Stops between any two pieces of work: nothing is lost, nothing is done twice, and the next step goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelskill.errors import RunInterrupted, UsageError
from kernelskill.schema.event import BaselineMeasured, Evaluated, Judged, Ranked
from kernelskill.session import Session
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import session_of, stocked


def judged(session: Session) -> list[tuple[str, str, str]]:
    return [(node.label, node.verdict, node.origin) for node in session.history.tree()]


def test_a_stop_is_gone_on_from(shop: Callable[..., Shop]) -> None:
    made = stocked(shop, slate=2)
    whole = session_of(made, "whole")
    whole.work.step()
    for kind in (BaselineMeasured, Ranked, Evaluated, Judged):
        first = session_of(made, kind.__name__, stop_at=kind).work.step()
        assert first.stopped in ("interrupted", "")
        if kind is Ranked:
            assert (first.stopped, first.finished, first.round) == ("interrupted", False, 1)
            assert "goes on with the next step" in first.detail
        again = session_of(made, kind.__name__)
        done = again.work.step() if first.stopped else first
        assert (done.stopped, done.finished, done.round) == ("", True, 1)
        assert judged(again) == judged(whole)
        evaluated = [event.evaluation for event in again.context.log.events if isinstance(event, Evaluated)]
        assert len(evaluated) == len(set(evaluated))


def test_a_stop_before_anything_began(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.stop()
    assert session.work.baseline().cases  # what was stopped before is no reason not to do what is asked now
    session.stop()
    assert session.work.rounds(1).finished
    for count in (0, -1):
        with pytest.raises(UsageError):
            session.work.rounds(count)


def test_who_listens_hears_until_they_do_not(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    heard: list[str] = []
    end = session.subscribe(lambda event: heard.append(event.kind))
    session.work.baseline()
    assert heard == ["baseline_measured"]
    end()
    end()
    session.steering.say("tiles first")
    assert heard == ["baseline_measured"]


def test_rounds_go_on_to_a_limit_and_on_again(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop, rounds=2, patience=1))
    done = session.work.rounds()
    assert done.finished
    assert done.stopped in ("rounds", "patience", "nothing_to_do")
    assert done.rounds >= 1
    again = session.work.rounds()
    assert again.rounds == 1
    assert again.stopped == "nothing_to_do"


def test_a_confirmation_is_of_the_head(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop, confirm=True))
    assert session.work.confirm() is None
    session.work.step()
    confirmed = session.work.confirm()
    assert confirmed is not None
    assert (confirmed.verdict, session.status().confirmed) == ("accepted", True)
    session.history.undo()
    assert not session.status().confirmed


def test_nothing_is_reported_before_a_baseline(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    for what in (
        session.history.best,
        session.history.undo,
        session.output.report,
        session.output.save,
        session.finish,
    ):
        with pytest.raises((UsageError, RunInterrupted), match="not measured yet"):
            what()
    assert session.status().best_ms is None
