"""The three borders: code that nobody wrote by hand, the user's file, the budget."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelskill.errors import ConfigError, UsageError
from kernelskill.schema.event import Ranked
from kernelskill.session import Session
from kernelskill.session.borders import Border, BorderAnswer, BorderPassed
from tests.unit.graph.conftest import SOURCE
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import Answers, session_of, stocked
from tests.unit.session.test_history import MINE


def user_file(folder: Path, data: bytes = SOURCE.encode()) -> Path:
    path = folder / "mine" / "kernel.cu"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


def won(
    shop: Callable[..., Shop], folder: Path, *answers: str | BorderAnswer, data: bytes = SOURCE.encode()
) -> tuple:
    """A session whose head is a pinned text, its answers, and the user's file."""
    path = user_file(folder, data)
    ask = Answers(*answers)
    session = session_of(stocked(shop), ask=ask, kernel=path)
    session.history.pin(MINE)
    return session, ask, path


def test_generated_code_runs_once_it_was_agreed_to(shop: Callable[..., Shop]) -> None:
    made, ask = stocked(shop), Answers("diff", "yes")
    session = session_of(made, ask=ask)
    session.work.baseline()
    assert session.history.pin(MINE.replace("0.25", "1.0")).accepted
    assert ask.asked == []  # neither the original nor the user's own text is generated
    session.work.step()
    session.history.move("original")
    session.work.step()
    assert [q.border for q in ask.asked] == [Border.FIRST_RUN] * 2
    assert ask.asked[0] == ask.asked[1]
    assert "+++ b/kernel.cu" in ask.asked[0].diff
    again = Answers("no")
    session_of(made, ask=again).history.tree()
    assert again.asked == []


def test_a_no_stops_and_everything_is_kept(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session = session_of(made, ask=Answers("no"))
    done = session.work.step()
    assert (done.stopped, done.finished, done.rounds) == ("refused", False, 0)
    assert len(session.history.tree()) == 1
    done = session_of(made, ask=Answers("always")).work.step()
    assert (done.stopped, done.rounds, done.round) == ("", 1, 1)
    never = Answers("no")
    other = session_of(made, ask=never)
    other.history.move("original")
    assert other.work.step().stopped == ""
    assert never.asked == []
    passed = [e.border for e in other.context.log.events if isinstance(e, BorderPassed)]
    assert passed == ["first_run"]


def test_generated_code_can_be_edited_before_it_runs(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop), ask=Answers(BorderAnswer(kind="edit", text=MINE)))
    done = session.work.step()
    assert (done.stopped, done.head.origin) == ("", "user")
    assert session.history.show().text == MINE


def test_the_users_file_is_replaced_in_its_own_style(shop: Callable[..., Shop], tmp_path: Path) -> None:
    dos = b"\xef\xbb\xbf" + SOURCE.replace("\n", "\r\n").encode()
    session, ask, path = won(shop, tmp_path, "yes", data=dos)
    path.chmod(0o640)
    written = session.output.export()
    assert written.files == (str(path),)
    assert path.read_bytes() == b"\xef\xbb\xbf" + MINE.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    (question,) = ask.asked
    assert (question.border, question.path) == (Border.WRITE, str(path))
    assert "/* mine */" in question.diff
    assert list(path.parent.iterdir()) == [path]
    assert session.output.export().detail == "the file holds that text already"
    session.history.undo()
    assert session.output.export().files == (str(path),)
    assert path.read_bytes() == dos


def test_a_new_file_needs_no_agreement(shop: Callable[..., Shop], tmp_path: Path) -> None:
    session, ask, path = won(shop, tmp_path, "no")
    assert session.output.export(tmp_path / "new" / "k.cu").files == (str(tmp_path / "new" / "k.cu"),)
    assert session.output.export(tmp_path / "new").files == (str(tmp_path / "new" / "kernel.cu"),)
    assert ask.asked == []
    refused = session.output.export()
    assert (refused.files, refused.refused) == ((), True)
    assert path.read_text() == SOURCE


def test_a_file_that_changed_is_left_alone(shop: Callable[..., Shop], tmp_path: Path) -> None:
    session, ask, path = won(shop, tmp_path, "yes")
    path.write_text(SOURCE + "// a word of mine\n")
    with pytest.raises(UsageError, match="changed since it was read") as caught:
        session.output.export()
    assert "pin" in caught.value.remedy
    assert ask.asked == []
    assert path.read_text().endswith("// a word of mine\n")
    path.unlink()
    assert session.output.export().files == (str(path),)


def test_a_file_that_changes_while_it_is_asked_about(shop: Callable[..., Shop], tmp_path: Path) -> None:
    path = user_file(tmp_path)

    def meanwhile(question: object) -> BorderAnswer:
        path.write_text("// new\n")
        return BorderAnswer(kind="yes")

    session = session_of(stocked(shop), ask=meanwhile, kernel=path)
    session.history.pin(MINE)
    with pytest.raises(UsageError, match="changed"):
        session.output.export()
    assert path.read_text() == "// new\n"


def test_a_link_stays_one(shop: Callable[..., Shop], tmp_path: Path) -> None:
    session, _, path = won(shop, tmp_path, "yes")
    link = tmp_path / "link.cu"
    link.symlink_to(path)
    session.output.export(link)
    assert link.is_symlink()
    assert path.read_text() == MINE


def test_an_edited_text_is_checked_before_it_is_written(shop: Callable[..., Shop], tmp_path: Path) -> None:
    wrong = BorderAnswer(kind="edit", text=MINE.replace("right", "tail"))
    better = MINE.replace("0.25", "0.2")
    session, _, path = won(shop, tmp_path, wrong, BorderAnswer(kind="edit", text=better))
    refused = session.output.export()
    assert (refused.refused, path.read_text()) == (True, SOURCE)
    assert "incorrect" in refused.detail
    written = session.output.export()
    assert path.read_text() == better
    assert written.detail.startswith("your text was written as #")


def test_what_cannot_be_exported(shop: Callable[..., Shop], tmp_path: Path) -> None:
    session, _, _ = won(shop, tmp_path, "yes")
    wrong = session.history.pin(MINE.replace("right", "tail")).node
    with pytest.raises(UsageError, match="is not right"):
        session.output.export(ref=str(wrong.number))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="no UTF-8 text"):
        session.output.export(tmp_path / "binary")
    with pytest.raises(UsageError, match="cannot"):
        session.output.export(tmp_path / "binary" / "under" / "k.cu")
    unknown = session_of(stocked_elsewhere(session, shop), "other")
    unknown.work.baseline()
    with pytest.raises(UsageError, match="does not know the user's own file"):
        unknown.output.export()


def test_a_new_model_begins_a_new_round(shop: Callable[..., Shop]) -> None:
    made = stocked(shop)
    session_of(made, stop_at=Ranked).work.step()
    session = session_of(made)
    assert session.status().open_round == 1
    with pytest.raises(UsageError):
        session.settings.set_model("scripted:")
    assert session.status().open_round == 1
    script = made.folder / "script.yaml"
    script.write_text("model: silent\nanswers: []\n")
    view = session.settings.set_model(f"scripted:{script}")
    assert (view.spec, session.status().model) == (f"scripted:{script}", f"scripted:{script}")
    assert session.status().open_round is None
    session.settings.set_model("none")
    assert session.work.step().round == 2


def stocked_elsewhere(session: Session, shop: Callable[..., Shop]) -> Shop:
    made = shop(slate=3, points=0)
    made.skills = session.context.run.root.parent / "skills"
    return made


def test_a_budget_is_passed_only_with_consent(shop: Callable[..., Shop]) -> None:
    made = stocked(shop, budget_s=1e-6)
    session = session_of(made)
    session.work.baseline()
    session.history.pin(MINE)  # takes device time
    session.history.move("original")
    done = session.work.rounds(2)
    assert (done.stopped, done.rounds) == ("device_seconds", 0)
    ask = Answers("no")
    done = session_of(made, ask=ask).work.step()
    assert (done.stopped, [q.border for q in ask.asked]) == ("device_seconds", [Border.BUDGET])
    assert ask.asked[0].answers == ("yes", "no", "edit", "always")
    ask = Answers(BorderAnswer(kind="edit", text="+5m"), "yes")
    session = session_of(made, ask=ask)
    assert session.work.step().stopped == ""
    assert session.settings.budget().budget.device_seconds == pytest.approx(300, abs=30)


def test_a_budget_can_be_lifted(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop, budget_s=1e-6), ask=Answers("always"))
    session.history.pin(MINE)
    session.history.move("original")
    assert session.work.step().stopped == ""
    assert session.settings.budget().budget.device_seconds is None


def test_limits_are_set_and_kept(shop: Callable[..., Shop]) -> None:
    session = session_of(stocked(shop))
    session.settings.set_budget(
        device="40s", wall="2m", rounds=5, patience="2", roof="90%", tokens="1000", usd="0.5"
    )
    budget = session.settings.budget()
    assert (budget.budget.device_seconds, budget.budget.seconds, budget.budget.rounds) == (40, 120, 5)
    assert (budget.budget.patience, budget.budget.near_roof) == (2, 0.9)
    assert (budget.model.limits.tokens, budget.model.limits.usd) == (1000, 0.5)
    assert session.state.settings["budget_s"] == 40
    assert session.settings.set_budget(evaluations="+5").budget.evaluations == 5
    assert session.settings.set_budget(device=None, tokens="none").budget.device_seconds is None
    bad = (
        {"device": "soon"}, {"device": "-1s"}, {"wall": "0"}, {"rounds": None}, {"rounds": "many"}, {"rounds": 1.5},
        {"patience": 0}, {"roof": "300%"}, {"colour": "red"}, {"usd": "-2"},
    )  # fmt: skip
    for changes in bad:
        with pytest.raises(ConfigError):
            session.settings.set_budget(**changes)
    with pytest.raises(UsageError, match="is no model"):
        session.settings.set_model("oracle:delphi")
    assert session.settings.set_model("none").spec == "none"
    assert session.settings.budget().budget.rounds == 5
