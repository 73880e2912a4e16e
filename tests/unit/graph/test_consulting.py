"""Rounds in which a model is asked: on the scripted device, with a model that answers from a file."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelskill.agents.drafts import Question
from kernelskill.agents.kept_bits import SAME_BITS
from kernelskill.agents.merging import combined_changes
from kernelskill.agents.prompts import PromptLibrary
from kernelskill.errors import AnswersWaiting, ModelUnavailable, RunInterrupted
from kernelskill.graph.asking import ANSWERS, QUESTIONS, model_is_spent
from kernelskill.graph.closing import close_round
from kernelskill.graph.context import RoundContext
from kernelskill.llm.base import ModelAnswer, ModelRequest, Reply
from kernelskill.llm.budget import ModelBudget, ModelLimits
from kernelskill.llm.mailbox import END, Mailbox
from kernelskill.llm.recording import AnswerFile, KeepingModel
from kernelskill.llm.scripted import ScriptedModel
from kernelskill.runs import fold
from kernelskill.schema.event import (
    Answered,
    Asked,
    Evaluated,
    Judged,
    ModelFailed,
    Note,
    Proposed,
    Ranked,
    RunResumed,
)
from kernelskill.schema.proposal import Slate
from kernelskill.session import rounds

SOURCE = """\
// scripted: right ms=1.0
__global__ void k(const float *x, float *y, int n) { /* plain */ }
extern "C" void scale(const float *x, float *y, int n) { k<<<1, 128>>>(x, y, n); }
"""
RIGHT, FASTER, WRONG, BROKEN = "right ms=0.5", "right ms=0.25", "tail ms=0.5", "compile_error ms=0.5"


def change(behaviour: str, mark: str = "1", name: str = "memory/tile") -> str:
    """Return an answer that makes a source behave so; `mark` tells it apart for a compiler."""
    return f"""\
SKILL: {name}
KERNEL: k
EXPECTED SPEEDUP: 2
RATIONALE: it is said to be so
<<<<<<< FILE
// scripted: {behaviour}
__global__ void k(const float *x, float *y, int n) {{ /* {mark} */ int mark = {mark}; }}
extern "C" void scale(const float *x, float *y, int n) {{ k<<<1, 128>>>(x, y, n); }}
>>>>>>> FILE
"""


def scripted(made: Any, answers: list[Any], out: str = "out", **how: Any) -> RoundContext:
    """Open a run whose model gives these answers, in the order of their roles."""
    file = made.folder / "script.yaml"
    entries = [
        {"role": role, **({"text": text} if isinstance(text, str) else text)} for role, text in answers
    ]
    file.write_text(yaml.safe_dump({"answers": entries}))
    kept = AnswerFile(made.folder / out / "answers.jsonl")
    model = KeepingModel(ScriptedModel(file, given=kept.ended()), kept)
    return with_model(made, model, out, **how)


def with_model(made: Any, model: Any, out: str = "out", **how: Any) -> RoundContext:
    made.settings.setdefault("points", 0)
    context = made.context(out, **how)
    context.model, context.prompts = model, PromptLibrary.load()
    return context


def of_kind(context: RoundContext, kind: type) -> list[Any]:
    return [event for event in context.log.events if isinstance(event, kind)]


def verdicts(context: RoundContext) -> list[tuple[str, str]]:
    return [(event.label, event.verdict.kind.value) for event in of_kind(context, Judged)]


@pytest.fixture
def made(shop: Callable[..., Any]) -> Any:
    """A run with one mechanical skill that gains a little."""
    one = shop(slate=2)
    one.skill("memory/tile", "/* plain */", "/* tiled */", 0.9)
    return one


def test_a_models_change_stands_beside_the_mechanical_ones_and_may_win(made: Any) -> None:
    context = made.run(scripted(made, [("memory", change(RIGHT))]))
    assert verdicts(context) == [("tile at k//* tiled */", "accepted"), ("model tile in k", "accepted")]
    assert "ms=0.5" in context.member(fold(context.log.events).best).candidate.source
    (asked,) = of_kind(context, Asked)
    (answered,) = of_kind(context, Answered)
    assert (asked.role, asked.purpose, asked.prompt) == (
        "memory",
        "change",
        context.prompts.get("memory").digest,
    )
    assert (answered.outcome, answered.idea, answered.request) == ("proposal", False, asked.request)
    assert answered.input_tokens > 500
    mechanical, model = of_kind(context, Proposed)
    assert (mechanical.origin, model.origin) == ("mechanical", "model")
    (ranked,) = of_kind(context, Ranked)
    assert (ranked.offered, len(ranked.chosen)) == (2, 2)
    member = context.member(fold(context.log.events).best)
    assert (member.lineage.patches[0].title, member.exact) == ("model tile in k", False)


def test_without_a_model_nothing_is_different(made: Any) -> None:
    plain = made.run(made.context("plain"))
    context = made.run(scripted(made, [("memory", "NOTHING: no idea")]))
    keep = (Proposed, Ranked, Evaluated, Judged)

    def told(run: RoundContext) -> list[dict[str, Any]]:
        drop = {"ts", "seq", "seconds", "verdict", "speedup_to_original"}
        return [e.model_dump(exclude=drop) for e in run.log.events if isinstance(e, keep)]

    assert told(plain) == told(context)


def test_a_change_that_fails_is_mended_at_most_so_often(made: Any) -> None:
    made.settings["repairs"] = 2
    answers = [
        ("memory", change(BROKEN)),
        ("repair", change(WRONG, "2")),
        ("repair", change(WRONG, "3")),
        ("repair", change(RIGHT, "4")),
    ]
    context = made.run(scripted(made, answers))
    assert [kind for _, kind in verdicts(context)] == ["accepted", "refused", "refused", "refused"]
    assert [(e.purpose, e.attempt) for e in of_kind(context, Asked)] == [
        ("change", 0),
        ("repair", 1),
        ("repair", 2),
    ]
    first, second = [context.run.get(QUESTIONS, e.request, Question) for e in of_kind(context, Asked)[1:]]
    assert "expected a ';'" in first.request.messages[1].text
    text = second.request.messages[1].text
    assert "expected a ';'" in text  # what was tried before
    assert "y[" in text
    assert [e.turn for e in of_kind(context, Ranked)] == [0, 1, 2]
    assert context.pool is not None
    assert sum(row.steps == () for row in context.pool.experiences()) == 3


@pytest.mark.parametrize(
    ("bad", "again"),
    [
        ("Sure! I will make it faster.", "I did."),
        (change(RIGHT).replace(" FILE\n//", " FILE nowhere.cu\n//"), change(RIGHT)),
    ],
)
def test_a_bad_answer_is_fed_back_once(made: Any, bad: str, again: str) -> None:
    context = made.run(scripted(made, [("memory", bad), ("repair", again)]))
    assert [e.purpose for e in of_kind(context, Asked)] == ["change", "reformat"]
    assert [kind for _, kind in verdicts(context)] == ["accepted"] * (2 if again == change(RIGHT) else 1)


def test_equal_sources_are_built_once(made: Any) -> None:
    made.settings["samples"] = 4
    plain = made.original.source.replace("/* plain */", "/* only a comment */")
    same = change(RIGHT)
    file = same[same.index("// scripted") : same.index(">>>>>>> FILE")]
    answers = [
        same,
        same.replace("/* 1 */", "//\n").replace("int mark", "int  mark"),
        change(WRONG, "2"),
        same.replace(file, plain),
    ]
    context = made.run(scripted(made, [("memory", text) for text in answers]))
    outcomes = [e.outcome for e in of_kind(context, Answered) if e.role == "memory"]
    assert outcomes == ["proposal", "duplicate", "proposal", "duplicate"]
    assert [e.sample for e in of_kind(context, Asked)][:4] == [0, 1, 2, 3]
    assert len({e.request for e in of_kind(context, Asked)}) == 5  # and one repair


def test_what_is_in_the_mailbox_is_waited_for_after_everything_else(made: Any, tmp_path: Path) -> None:
    box = tmp_path / "box"
    context = with_model(made, Mailbox(box))
    with pytest.raises(AnswersWaiting, match="1 answer of the model is missing") as caught:
        made.run(context)
    assert caught.value.exit_code == 5
    assert verdicts(context) == [("tile at k//* tiled */", "accepted")]
    (request,) = box.glob("memory-*.md")
    with pytest.raises(AnswersWaiting):
        rounds.run_rounds(with_model(made, Mailbox(box)))
    (box / f"{request.stem}.answer.md").write_text(f"{change(BROKEN)}{END}\n")
    context = with_model(made, Mailbox(box))
    with pytest.raises(AnswersWaiting):
        rounds.run_rounds(context)
    (repair,) = box.glob("repair-*.md")
    (box / f"{repair.stem}.answer.md").write_text(f"{change(RIGHT, '2')}{END}\n")
    context = with_model(made, Mailbox(box))
    assert rounds.run_rounds(context) == "rounds"
    assert [kind for _, kind in verdicts(context)] == ["accepted", "refused", "accepted"]
    assert len({e.evaluation for e in of_kind(context, Evaluated)}) == len(of_kind(context, Evaluated)) == 3
    assert [e.turn for e in of_kind(context, Ranked)] == [0, 1, 2]


def slates(context: RoundContext) -> list[Slate]:
    """The slates of a run as its pool keeps them."""
    assert context.pool is not None
    found = [context.pool.slate(event.slate) for event in of_kind(context, Ranked)]
    return [slate for slate in found if slate is not None]


def rows(context: RoundContext, slate: Slate) -> dict[str, tuple[str, bool]]:
    """Label to who offered it and whether it was chosen, the best first."""
    return {context.proposal(row.proposal).label: (row.origin, row.chosen) for row in slate.ranked}


def test_answers_and_mechanical_proposals_stand_in_one_slate(made: Any) -> None:
    made.settings["slate"] = 1
    made.skill("memory/wide", "/* plain */", "/* wided */", 0.8, prior=-0.2)
    made.skill("memory/share", "/* plain */", "/* shared */", 0.8, prior=-0.3)
    weak = change(RIGHT, name="x").replace("SKILL: x", "IDEA: hope").replace("SPEEDUP: 2", "SPEEDUP: 1")
    context = made.run(scripted(made, [("memory", change(RIGHT))]))
    (slate,) = slates(context)
    chosen = [label for label, row in rows(context, slate).items() if row[1]]
    assert "model tile in k" in chosen
    assert [row.origin for row in slate.ranked].count("mechanical") == 3
    # An answer that is not among the best is tried as well, behind them.
    context = made.run(scripted(made, [("memory", weak)], out="weak"))
    (slate,) = slates(context)
    assert [row.origin for row in slate.ranked if row.chosen] == ["mechanical", "model"]
    assert next(row for row in slate.ranked if row.origin == "model").mean == 0.0


def test_late_answers_stand_beside_what_the_round_had_no_place_for(made: Any, tmp_path: Path) -> None:
    made.settings.update(slate=1, model="mailbox:box")
    made.skill("memory/wide", "/* plain */", "/* wide */", 0.8, prior=0.6)
    made.skill("memory/share", "/* plain */", "/* shared */", 0.7, prior=0.5)
    box = tmp_path / "box"
    with pytest.raises(AnswersWaiting):
        made.run(with_model(made, Mailbox(box)))
    (request,) = box.glob("memory-*.md")
    hopeless = change(RIGHT, name="x").replace("SKILL: x", "IDEA: hope").replace("SPEEDUP: 2", "SPEEDUP: 1")
    (box / f"{request.stem}.answer.md").write_text(f"{hopeless}{END}\n")
    context = with_model(made, Mailbox(box))
    rounds.run_rounds(context)
    first, second = slates(context)
    tried = {row.proposal for row in first.ranked if row.chosen}
    left = {row.proposal for row in first.ranked} - tried
    assert {row.proposal for row in second.ranked} > left
    assert {row.origin for row in second.ranked} == {"mechanical", "model"}
    assert not tried & {row.proposal for row in second.ranked}
    # The best of what was left goes before the answer, which is tried as well.
    assert [row.origin for row in second.ranked if row.chosen] == ["mechanical", "model"]
    assert context.pool is not None
    of_slate = {row.proposal: row.slate for row in context.pool.experiences()}
    for slate in (first, second):
        assert all(of_slate[row.proposal] == slate.id for row in slate.ranked if row.chosen)


def test_forecasts_are_asked_for_answers_too(made: Any) -> None:
    made.settings.update(forecasts=4, samples=2)
    answers = [("memory", change(RIGHT, "1; /* unknown */")), ("memory", change(FASTER, "2"))]
    context = scripted(made, answers)
    context.budget = context.budget.model_copy(update={"device_seconds": 1000.0})
    made.run(context)
    (slate,) = slates(context)
    told = {
        context.proposal(row.proposal).candidate.source.split("\n")[0]: row.forecast for row in slate.ranked
    }
    assert told["// scripted: right ms=0.5"] is None
    assert told["// scripted: right ms=0.25"] == pytest.approx(log(4))
    assert told["// scripted: right ms=0.9"] == pytest.approx(log(1 / 0.9))
    assert "ms=0.25" in context.proposal(slate.ranked[0].proposal).candidate.source


def test_an_answer_that_comes_when_its_round_is_over_is_used_in_the_next(made: Any, tmp_path: Path) -> None:
    made.settings.update(rounds=2, patience=2, model="mailbox:box")
    box = tmp_path / "box"
    with pytest.raises(AnswersWaiting):
        made.run(with_model(made, Mailbox(box)))
    # The user loses patience, and the round ends without the answer.
    context = made.context()
    opened = fold(context.log.events).open_round
    assert opened is not None
    close_round(context, opened)
    (request,) = box.glob("memory-*.md")
    (box / f"{request.stem}.answer.md").write_text(f"{change(BROKEN)}{END}\n")
    with pytest.raises(AnswersWaiting):
        rounds.run_rounds(with_model(made, Mailbox(box)))
    (late,) = of_kind(made.context(), Answered)
    assert (late.round, late.outcome) == (1, "proposal")
    # It starts from the original, which leads no longer, and is mended like any other.
    (repair,) = box.glob("repair-*.md")
    (box / f"{repair.stem}.answer.md").write_text(f"{change(RIGHT, '2')}{END}\n")
    (other,) = [path for path in box.glob("memory-*.md") if not path.name.startswith(request.stem)]
    (box / f"{other.stem}.answer.md").write_text(f"NOTHING: no\n{END}\n")
    context = with_model(made, Mailbox(box))
    rounds.run_rounds(context)
    of_round = [(e.round, e.verdict.kind.value) for e in of_kind(context, Judged)]
    assert of_round == [(1, "accepted"), (2, "refused"), (2, "accepted")]
    assert context.member(fold(context.log.events).best).candidate.source.startswith(
        "// scripted: right ms=0.5"
    )
    assert len(of_kind(context, Answered)) == 3


@pytest.mark.parametrize("kind", [Answered, Ranked, Evaluated, Judged])
def test_late_answers_survive_stops_anywhere(made: Any, tmp_path: Path, kind: type) -> None:
    made.settings.update(slate=1, rounds=2, patience=2, model="mailbox:box")
    made.skill("memory/wide", "/* plain */", "/* wide */", 0.8, prior=0.6)
    box = tmp_path / "box"
    with pytest.raises(AnswersWaiting):
        made.run(with_model(made, Mailbox(box)))
    opened = fold(made.context().log.events).open_round
    assert opened is not None
    close_round(made.context(), opened)
    (request,) = box.glob("memory-*.md")
    (box / f"{request.stem}.answer.md").write_text(f"{change(RIGHT)}{END}\n")
    context = with_model(made, Mailbox(box))
    for _ in range(12):
        context = with_model(made, Mailbox(box), stop_at=kind)
        try:
            rounds.run_rounds(context)
        except RunInterrupted:
            continue
        except AnswersWaiting:
            break
    context = with_model(made, Mailbox(box))
    with pytest.raises(AnswersWaiting, match="1 answer"):
        rounds.run_rounds(context)
    assert len({e.candidate for e in of_kind(context, Judged)}) == len(of_kind(context, Judged))
    assert [e.label for e in of_kind(context, Judged) if e.round == 2].count("model tile in k") == 1
    assert len(of_kind(context, Ranked)) == 2


def test_device_time_is_kept_for_answers_that_are_not_there_yet(made: Any, tmp_path: Path) -> None:
    box = tmp_path / "box"
    context = with_model(made, Mailbox(box))
    context.budget = context.budget.model_copy(update={"device_seconds": 1000.0})
    with pytest.raises(AnswersWaiting):
        made.run(context)
    assert context.budget_for_now().device_seconds == pytest.approx(500.0)
    (request,) = box.glob("memory-*.md")
    (box / f"{request.stem}.answer.md").write_text(f"{change(RIGHT)}{END}\n")
    context = with_model(made, Mailbox(box))
    context.budget = context.budget.model_copy(update={"device_seconds": 1000.0})
    rounds.run_rounds(context)
    assert context.budget_for_now() == context.budget


@pytest.mark.parametrize("kind", [Answered, Evaluated])
def test_a_run_that_was_stopped_anywhere_goes_on_to_the_same_end(made: Any, kind: type) -> None:
    answers = [("memory", change(BROKEN)), ("repair", change(FASTER, "2"))]
    for _ in range(12):
        cut = scripted(made, answers, stop_at=kind)
        try:
            made.run(cut)
        except RunInterrupted:
            continue
        break
    done = made.run(scripted(made, answers))
    assert [e.purpose for e in of_kind(done, Asked)] == ["change", "repair"]
    assert [e.outcome for e in of_kind(done, Answered)] == ["proposal", "proposal"]
    assert [e.turn for e in of_kind(done, Ranked)] == [0, 1]
    assert [kind for _, kind in verdicts(done)] == ["accepted", "refused", "accepted"]
    assert len(of_kind(done, Evaluated)) == len(of_kind(done, Judged)) == 3
    kept = AnswerFile(made.folder / "out" / "answers.jsonl")
    assert len(kept.rows) == 2  # nothing was asked twice


def test_failures_of_a_model_are_told_and_the_run_goes_on(made: Any) -> None:
    failure = {"failure": {"kind": "refusal", "message": "I'd rather not", "remedy": "ask nicely"}}
    context = made.run(scripted(made, [("memory", failure)]))
    (failed,) = of_kind(context, ModelFailed)
    assert (failed.failure, failed.message, failed.remedy) == ("refusal", "I'd rather not", "ask nicely")
    assert verdicts(context) == [("tile at k//* tiled */", "accepted")]


def test_a_model_that_cannot_be_asked_at_all_ends_the_run_at_once_and_it_goes_on_later(made: Any) -> None:
    failure = {"failure": {"kind": "bad_key", "message": "the key is wrong", "remedy": "set another"}}
    with pytest.raises(ModelUnavailable, match="the key is wrong") as caught:
        made.run(scripted(made, [("memory", failure)]))
    assert "set another; then: kernelskill resume" in caught.value.remedy
    context = scripted(made, [("memory", change(RIGHT))])
    (made.folder / "out" / "answers.jsonl").unlink()
    context = scripted(made, [("memory", change(RIGHT))])
    context.log.emit(RunResumed(conditions=context.evaluator.conditions(), attempt=1))
    made.run(context)
    assert [kind for _, kind in verdicts(context)] == ["accepted", "accepted"]


def test_at_the_border_of_the_budget_the_run_ends_with_the_best(made: Any) -> None:
    made.settings.update(rounds=5, patience=5)
    context = scripted(made, [("memory", change(RIGHT)), ("memory", change(FASTER, "2"))])
    assert context.model is not None
    context.model = ModelBudget(context.model, ModelLimits(requests=1))
    rounds.establish(context, made.original)
    assert rounds.run_rounds(context) == "model_budget"
    assert model_is_spent(context)
    assert [e.failure for e in of_kind(context, ModelFailed)] == ["budget"]
    assert "ms=0.5" in context.member(fold(context.log.events).best).candidate.source


def test_a_planner_chooses_and_its_own_ideas_are_marked(made: Any) -> None:
    made.settings["plan"] = True
    made.skill("compute/unroll", "/* plain */", "/* unrolled */", 0.95)
    plan = "IDEA: compute | count backwards\nDIRECTION: 99 | what\nIDEA: cooking | stir\n"
    context = made.run(scripted(made, [("planner", plan), ("compute", change(RIGHT, name="compute/unroll"))]))
    first, second = of_kind(context, Answered)
    assert (first.outcome, first.idea) == ("plan", True)
    assert (second.role, second.outcome, second.idea) == ("compute", "proposal", True)
    question = context.run.get(QUESTIONS, second.request, Question)
    assert "free idea: count backwards" in question.request.messages[1].text
    assert verdicts(context)[-1] == ("model idea: compute/unroll in k", "accepted")


def test_a_plan_that_cannot_be_read_leaves_the_rules(made: Any) -> None:
    made.settings["plan"] = True
    context = made.run(scripted(made, [("planner", "whatever"), ("memory", change(RIGHT))]))
    assert [e.role for e in of_kind(context, Asked)] == ["planner", "memory"]
    assert [e.outcome for e in of_kind(context, Answered)] == ["malformed", "proposal"]


EXACT = change(RIGHT).replace("RATIONALE", "EXACTNESS: exact\nRATIONALE")


def test_where_bits_count_a_model_is_told_so_and_the_evaluator_compares_them(
    shop: Callable[..., Any],
) -> None:
    made = shop(slate=2, samples=3, keep_exact=True)
    made.skill("memory/tile", "/* nowhere */", "/* tiled */")
    inexact = EXACT.replace("right ms=0.5", "coarse error=2e-6 ms=0.25").replace("/* 1 */", "/* 2 */; int i;")
    restless = EXACT.replace("right ms=0.5", "noisy ms=0.25").replace("/* 1 */", "/* 3 */; int j;")
    answers = [("memory", text) for text in (EXACT, inexact, restless)]
    context = made.run(scripted(made, [*answers, ("repair", "NOTHING: a"), ("repair", "NOTHING: b")]))
    told = {event.candidate: event.verdict for event in of_kind(context, Judged)}
    by_source = {
        context.proposal(e.proposal).candidate.source.split()[2]: told[e.candidate]
        for e in of_kind(context, Judged)
    }
    assert by_source["right"].kind.value == "accepted"
    assert by_source["coarse"].reason.endswith("an output differs from the original's in some bits")
    assert by_source["noisy"].reason.endswith("it gives other bits when it is called again")
    best = context.member(fold(context.log.events).best)
    assert best.assumptions == (SAME_BITS,)
    assert "ms=0.5" in best.candidate.source
    questions = [context.run.get(QUESTIONS, e.request, Question) for e in of_kind(context, Asked)]
    texts = [question.request.messages[1].text for question in questions]
    assert all("reordering of floating-point sums is not wanted" in " ".join(text.split()) for text in texts)
    # What changed is fed back, like any other failure.
    assert sum("Status: right, but not exact" in text for text in texts) == 2


def test_what_says_of_itself_that_it_reorders_is_sent_back_where_bits_count(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, keep_exact=True)
    made.skill("memory/tile", "/* nowhere */", "/* tiled */")
    context = made.run(scripted(made, [("memory", change(RIGHT)), ("repair", EXACT)]))
    assert [e.outcome for e in of_kind(context, Answered)] == ["not_permitted", "proposal"]
    assert [kind for _, kind in verdicts(context)] == ["accepted"]


def test_where_the_original_does_not_keep_its_own_bits_nobody_is_asked(shop: Callable[..., Any]) -> None:
    source = SOURCE.replace("right ms=1.0", "noisy ms=1.0")
    made = shop(source=source, slate=2, keep_exact=True)
    made.skill("memory/tile", "/* plain */", "/* tiled */", 0.5)
    context = made.run(scripted(made, [("memory", EXACT)]))
    assert not of_kind(context, Asked)
    (note,) = of_kind(context, Note)
    assert "the original itself gives other bits when it is called again" in note.text
    # What is proven to be exact needs no comparison.
    assert [kind for _, kind in verdicts(context)] == ["accepted"]


def test_a_run_that_waits_can_go_on_without_a_model(made: Any, tmp_path: Path) -> None:
    made.settings.update(rounds=2, patience=2)
    with pytest.raises(AnswersWaiting):
        made.run(with_model(made, Mailbox(tmp_path / "box")))
    context = made.context()
    assert rounds.run_rounds(context) in ("rounds", "nothing_to_do")
    assert [kind for _, kind in verdicts(context)] == ["accepted"]


def test_two_changes_of_a_model_are_merged_as_text_and_a_skill_applied_to_them(
    shop: Callable[..., Any],
) -> None:
    source = """\
// scripted: right ms=1.0
__global__ void k(const float *x, float *y, int n) {
    int first = 1;
    /* plain */
    int second = 1;
}
extern "C" void scale(const float *x, float *y, int n) { k<<<1, 128>>>(x, y, n); }
"""
    made = shop(source=source, slate=3, samples=2)
    made.skill("memory/tile", "/* plain */", "/* tiled */")
    answers = []
    for name in ("first", "second"):
        answers.append(
            f"IDEA: {name}\nRATIONALE: r\n<<<<<<< SEARCH\n    int {name} = 1;\n=======\n    int {name} = 2;\n>>>>>>> REPLACE\n"
        )
    context = scripted(made, [("memory", text) for text in answers])
    made.run(context)
    proposals = [context.proposal(p) for e in of_kind(context, Proposed) for p in e.proposals]
    assert len(proposals) == 3
    both = combined_changes(
        made.original, proposals[1], [proposals[2], proposals[0]], context.library, context.skill_context
    )
    assert both.base == proposals[1].candidate.digest
    assert both.origin == "combined"
    for wanted in ("int first = 2;", "int second = 2;", "/* tiled */"):
        assert wanted in both.candidate.source
    clash = combined_changes(
        made.original, proposals[1],
        [proposals[1].model_copy(update={"candidate": made.original.with_text("kernel.cu", source.replace("first = 1", "first = 3"))})],
        context.library, context.skill_context,
    )  # fmt: skip
    assert "both change" in clash.reason


class Counting:
    """A model that answers nothing and counts."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    def ask(self, requests: Any) -> tuple[Reply, ...]:
        self.asked += requests
        return tuple(ModelAnswer(request=r.digest, model=self.name, text="NOTHING: no") for r in requests)


def test_all_specialists_and_samples_are_asked_at_once_and_every_round_afresh(made: Any) -> None:
    made.settings.update(samples=3, rounds=2, patience=2)
    model = Counting()
    context = made.run(with_model(made, model))
    assert [request.sample for request in model.asked] == [0, 1, 2, 3, 4, 5]
    assert len({request.digest for request in model.asked}) == 6
    assert all(context.run.has(ANSWERS, request.digest) for request in model.asked)
