import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.experience.pool import ExperiencePool
from kernelskill.experience.preferences import FAILED_VALUE, preferences
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.experience import Foretold
from kernelskill.schema.proposal import MetricOutcome, Slate
from tests.records import experience


def slate(identity: str) -> Slate:
    return Slate(
        id=identity, run="r", round=1, context=(), feature_names=(), schema_version=1, policy="p", ranked=()
    )


def test_what_is_recorded_comes_back_in_order_and_only_once(tmp_path: Path) -> None:
    pool = ExperiencePool.open(tmp_path / "deep" / "pool.sqlite")
    rows = [experience("s", name, 0.1, (1.0,)) for name in "cab"]
    assert pool.record(rows) == 3
    assert pool.record(rows[:2]) == 3
    pool.record_slate(slate("s"))
    pool.record_slate(slate("s"))
    assert [row.proposal for row in ExperiencePool.open(tmp_path / "deep" / "pool.sqlite").experiences()] == [
        "c",
        "a",
        "b",
    ]
    assert pool.slate("s") == slate("s")
    assert pool.slate("t") is None


def test_rows_are_chosen_by_schema_and_evidence(tmp_path: Path) -> None:
    pool = ExperiencePool.open(tmp_path / "pool.sqlite")
    pool.record([experience("s", "m", 0.1, ()), experience("s", "e", 0.2, (), evidence="estimated")])
    assert [r.proposal for r in pool.experiences(evidence=("measured",))] == ["m"]
    assert pool.experiences(schema_version=99) == []
    record = pool.skill_records()[0]
    assert (record.skill, record.tried, record.won) == ("compute/unroll", 1, 1)


def test_shipped_experience_comes_first_and_is_never_written(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "h200.jsonl").write_text(experience("old", "x", 0.3, ()).model_dump_json() + "\n")
    pool = ExperiencePool.open(tmp_path / "pool.sqlite", shipped=shipped)
    pool.record([experience("s", "y", 0.1, ())])
    assert [r.proposal for r in pool.experiences()] == ["x", "y"]
    assert pool.size() == 1


def test_damage_is_named(tmp_path: Path) -> None:
    (tmp_path / "pool.sqlite").write_bytes(b"this is no database, only text that is long enough" * 20)
    with pytest.raises(ArtifactCorrupt, match="no experience pool") as error:
        ExperiencePool.open(tmp_path / "pool.sqlite")
    assert error.value.remedy
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ArtifactCorrupt, match=r"bad\.jsonl:1"):
        ExperiencePool.open(tmp_path / "other.sqlite", shipped=tmp_path)


def _write(path: Path, start: int) -> None:
    pool = ExperiencePool.open(path)
    for number in range(start, start + 20):
        pool.record([experience(f"s{number}", "p", 0.1, ())])


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "pool.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, start)) for start in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert ExperiencePool.open(path).size() == 40
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_pairs_come_only_from_one_slate_and_include_doing_nothing() -> None:
    rows = [
        experience("a", "win", 0.4, (1.0,)),
        experience("a", "fail", None, (2.0,), verdict=VerdictKind.REFUSED, evidence="none"),
        experience("b", "level", 0.001, (3.0,), verdict=VerdictKind.TIE),
    ]
    pairs = {(p.better, p.worse) for p in preferences(rows)}
    assert pairs == {((1.0,), (2.0,)), ((1.0,), (0.0,)), ((0.0,), (2.0,))}
    assert FAILED_VALUE < 0


def test_a_pool_that_cannot_be_used_any_more_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    pool = ExperiencePool.open(tmp_path / "pool.sqlite")
    connection = sqlite3.connect(tmp_path / "pool.sqlite")
    connection.execute("DROP TABLE experiences")
    connection.close()
    with pytest.raises(HarnessError, match=r"pool\.sqlite.*no such table") as caught:
        pool.size()
    assert "--no-learn" in caught.value.remedy


def foretold(identity: str, skill: str, held: bool | None, evidence: str = "estimated") -> Foretold:
    outcome = MetricOutcome(metric="m", direction="down", skill=skill, before=2, after=1, held=held)
    return Foretold.model_validate(
        {"id": identity, "task": "t", "gpu": "g", "evidence": evidence, "outcome": outcome}
    )


def test_what_became_of_predictions_is_kept_once_and_found_by_evidence(tmp_path: Path) -> None:
    pool = ExperiencePool.open(tmp_path / "pool.sqlite")
    pool.record_foretold([])
    pool.record_foretold([foretold("b", "memory/y", True), foretold("a", "memory/x", None)])
    pool.record_foretold([foretold("a", "memory/x", None), foretold("c", "memory/x", False, "measured")])
    assert [one.id for one in pool.foretold()] == ["a", "c", "b"]
    assert [one.id for one in pool.foretold(evidence=("measured",))] == ["c"]


def test_a_pool_of_an_earlier_version_learns_of_predictions(tmp_path: Path) -> None:
    path = tmp_path / "pool.sqlite"
    ExperiencePool.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE foretold")
        connection.commit()
    assert ExperiencePool.open(path).foretold() == []
