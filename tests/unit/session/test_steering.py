"""Wishes in a session: kept, shown back, honoured by those who propose, and taken back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelskill.errors import ConfigError, UnknownNameError, UsageError
from kernelskill.graph.context import SLATES
from kernelskill.graph.learning import stated_preferences
from kernelskill.schema.event import Proposed, Ranked
from kernelskill.schema.proposal import Slate
from kernelskill.session import Session
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import session_of, stocked


def offered(session: Session) -> set[str]:
    events = [e for e in session.context.log.events if isinstance(e, Proposed)]
    last = max(e.round for e in events)
    found = [session.context.proposal(p) for e in events if e.round == last for p in e.proposals]
    return {step.skill.rsplit("/", 1)[-1] for proposal in found for step in proposal.steps}


def refusals(session: Session) -> dict[str, str]:
    events = [e for e in session.context.log.events if isinstance(e, Proposed)]
    return {r.skill: r.reason for e in events for r in e.refusals}


def test_a_ban_is_shown_back_kept_and_honoured(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made)
    steered = session.steering.say("Leave shared memory alone")
    (rule,) = steered.rules
    assert (rule.number, rule.strength, rule.shown) == (
        1,
        "constraint",
        "constraint: nothing that uses shared memory",
    )
    assert (rule.text, steered.unknown, steered.noted) == ("Leave shared memory alone", (), False)
    session.work.step()
    assert offered(session) == {"unroll", "accumulate_in_register"}
    assert refusals(session)["memory/shared_tile"] == "you asked for it: 'Leave shared memory alone'"
    again = session_of(made)
    assert again.steering.rules() == (rule,)
    allowed = again.steering.allow("shared_tile")
    assert [r.shown for r in allowed.rules] + list(allowed.withdrawn) == [1]
    again.history.move("original")
    again.work.step()
    assert "shared_tile" in offered(again)


def test_an_exception_to_a_ban(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.steering.ban("memory")
    assert session.context.steering.declines("memory/shared_tile")
    allowed = session.steering.allow("accumulate_in_register")
    assert (len(allowed.rules), allowed.withdrawn) == (1, ())
    assert session.context.steering.declines("memory/shared_tile")
    assert not session.context.steering.declines("memory/accumulate_in_register")
    assert session.steering.allow("unroll").notes == ("unroll was not banned",)
    assert session.steering.forget(1).number == 1
    assert not session.context.steering.declines("memory/shared_tile")
    with pytest.raises(UnknownNameError, match="no rule has the number 7"):
        session.steering.forget(7)


def test_only_one_direction(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.steering.say("only registers")
    session.work.step()
    assert offered(session) == {"accumulate_in_register"}
    session.steering.say("only unrolling")
    session.history.move("original")
    session.work.step()
    assert offered(session) == {"unroll"}


def test_an_only_takes_back_what_was_banned(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.steering.say("don't touch the kernel k; no unrolling; no shared memory")
    assert session.steering.say("only kernel k").withdrawn == (1,)
    assert session.steering.say("only unrolling").withdrawn == (2,)
    assert [rule.number for rule in session.steering.rules()] == [3, 4, 5]


def test_ranges_and_orders_of_parameters(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.steering.say("no unroll factor above 4")
    session.work.step()
    unrolled = [p.label for p in session.steering.proposals() if p.skills == ("compute/unroll",)]
    assert unrolled == ["unroll(factor=4) at k//* unrolled {factor} */"]
    (family,) = [p for p in _proposals(session) if p.steps[0].skill == "compute/unroll"]
    assert [choice.values for choice in family.choices] == [("4", "2", "1")]
    session.steering.say("less unrolling")
    session.history.move("original")
    session.work.step()
    (family,) = [p for p in _proposals(session) if p.steps[0].skill == "compute/unroll"]
    assert family.choices[0].values == ("1", "2", "4")
    session.steering.say("unroll by 16")
    session.history.move("original")
    session.work.step()
    reason = "factor is offered as 1, 2, 4 only; you asked for it: 'unroll by 16'"
    assert refusals(session)["compute/unroll"] == reason


def test_what_is_preferred_comes_first(shop: Callable[..., Shop]) -> None:
    plain = session_of(stocked(shop))
    plain.work.step()
    first = plain.steering.proposals()[0].skills
    session = session_of(plain_shop(plain, shop), "other")
    session.steering.say("unrolling first, shared memory last")
    session.work.step()
    order = [p.skills[0] for p in session.steering.proposals()]
    assert first != ("compute/unroll",)
    assert order[0] == "compute/unroll"
    assert order[-1] == "memory/shared_tile"


def plain_shop(session: Session, shop: Callable[..., Shop]) -> Shop:
    """The same shop once more, under another folder of runs."""
    made = shop(slate=3, points=0)
    made.skills = session.context.run.root.parent / "skills"
    return made


def test_a_model_hears_the_wishes_and_a_note(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    assert session.steering.say("mind the gap").rules == ()
    session.context.model = _Silent()
    steered = session.steering.say("no tensor cores, and mind the gap")
    assert [rule.strength for rule in steered.rules] == ["constraint", "note"]
    assert (steered.noted, [u.text for u in steered.unknown]) == (True, ["mind the gap"])
    assert session.context.steering.lines() == (
        "nothing that uses tensor cores",
        "no tensor cores, and mind the gap",
    )


def test_misspelt_names_get_suggestions(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    (unknown,) = session.steering.say("leave sharde memory alone").unknown
    assert "shared memory" in unknown.near
    for name, near in (("sharedtile", "shared_tile"), ("registres", "register"), ("zzz", "name a")):
        with pytest.raises(UnknownNameError) as caught:
            session.steering.ban(name)
        assert near in caught.value.remedy
    assert session.steering.rules() == ()
    for text in ("", "  ", "x" * 5000):
        with pytest.raises(UsageError):
            session.steering.say(text)


def test_consequences_are_told(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.work.step()
    assert session.history.node().label.startswith("shared_tile")
    (note,) = session.steering.say("no shared memory").notes
    assert note.startswith("the head holds shared_tile")
    assert "undo" in note
    (note,) = session.steering.say("shared memory first").notes
    assert note.startswith("shared memory stays banned")
    lacking = session.steering.say("only tensor cores")
    assert (lacking.rules, lacking.notes) == (
        (),
        ("no skill of this run is about tensor cores, so that changes nothing",),
    )
    session.steering.ban("compute")
    notes = session.steering.ban("memory").notes
    assert "nothing is left that may be tried; allow something, or take a rule back" in notes


def test_a_choice_between_proposals_moves_the_policy(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made)
    session.work.step()
    shown = session.steering.proposals()
    assert [p.name for p in shown] == ["p1.1", "p1.2", "p1.3"]
    better, worse = shown[-1], shown[0]
    before = _margin(session, better.label, worse.label)
    stated = session.steering.prefer(better.name, "1")
    assert (stated.better, stated.worse) == (better, worse)
    assert _margin(session, better.label, worse.label) > before
    again = session_of(made)
    assert [p.better.name for p in again.steering.preferences()] == [better.name]
    again.context.policy.state(stated_preferences(again.context))
    assert _margin(again, better.label, worse.label) > before
    for names, error in (
        (("p1.1", "p1.1"), UsageError),
        (("p1.9", "p1.1"), UnknownNameError),
        (("p9.1", "1"), UsageError),
    ):
        with pytest.raises(error):
            again.steering.prefer(*names)


def test_what_a_terminal_would_obey_is_not_kept(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    steered = session.steering.say("no \x1b[31mshared memory\udc80, and mind\x07 it")
    assert steered.text == "no [31mshared memory?, and mind it"
    assert session_of(stocked_again(session, shop), "out").steering.rules() == session.steering.rules()


def stocked_again(session: Session, shop: Callable[..., Shop]) -> Shop:
    made = shop(slate=3, points=0)
    made.skills = session.context.run.root.parent / "skills"
    return made


def test_there_is_nothing_to_compare_before_a_round(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    with pytest.raises(UsageError, match="nothing was proposed yet"):
        session.steering.proposals()
    names = session.steering.names()
    assert names.kernels == ("k",)
    assert "compute/unroll" in names.skills
    assert "shared memory" in names.directions
    assert "factor" in names.parameters
    assert names.specialists == ("compute", "memory")


class _Silent:
    """A model that is never asked."""

    name = "silent"

    def ask(self, requests: object) -> tuple[()]:
        raise AssertionError("nobody asks")


def _proposals(session: Session) -> list:
    events = [e for e in session.context.log.events if isinstance(e, Proposed)]
    last = max(e.round for e in events)
    return [session.context.proposal(p) for e in events if e.round == last for p in e.proposals]


def _margin(session: Session, better: str, worse: str) -> float:
    (ranked,) = [e for e in session.context.log.events if isinstance(e, Ranked)]
    rows = session.context.run.get(SLATES, ranked.slate, Slate).ranked
    by_label = {session.context.proposal(row.proposal).label: np.array([row.features]) for row in rows}
    utilities = session.context.policy.model.utilities
    return float(utilities(by_label[better])[0] - utilities(by_label[worse])[0])


def test_everything_can_be_banned_but_one_thing(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    banned = session.steering.ban("everything")
    assert [rule.shown for rule in banned.rules] == ["constraint: nothing that uses any skill"]
    assert "nothing is left that may be tried" in " ".join(banned.notes)
    session.steering.allow("the registers")
    session.work.step()
    assert offered(session) == {"accumulate_in_register"}
    allowed = session.steering.allow("everything")
    assert allowed.lifted == ("constraint: nothing that uses any skill",)
    assert session.context.steering.declines("memory/shared_tile") == ""


def test_settings_of_the_model_are_kept_and_checked(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made)
    found = session.settings.set_model(samples=3, plan=True)
    assert (found.spec, found.samples, found.repairs, found.plan) == ("none", 3, 2, True)
    for samples, repairs in ((0, 1), (65, 1), (1, 17)):
        with pytest.raises(ConfigError):
            session.settings.set_model(samples=samples, repairs=repairs)
    assert session.settings.model().samples == 3
    assert session.state.settings == {"samples": 3, "plan": True}
    session.settings.keep({"patience": 7})
    assert session.state.settings["patience"] == 7
