"""The experience pool: every slate and every outcome, in one SQLite file.

Recording is idempotent by id. What ships with kernelskill is read as JSON Lines and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import (
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.schema.device import Evidence
from kernelskill.schema.experience import Experience, Foretold
from kernelskill.schema.proposal import Slate

POOL_FILE = "experience.sqlite"
"""In the user's data folder."""

_METADATA = MetaData()

_SLATES = Table(
    "slates",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("run", String, index=True),
    Column("round", Integer),
    Column("record", Text, nullable=False),
)

_EXPERIENCES = Table(
    "experiences",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("order", Integer, index=True),
    Column("slate", String, index=True),
    Column("skills", String, index=True),
    Column("gpu", String),
    Column("evidence", String, index=True),
    Column("verdict", String),
    Column("schema_version", Integer, index=True),
    Column("log_speedup", Float),
    Column("record", Text, nullable=False),
)

_FORETOLD = Table(
    "foretold",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("skill", String, index=True),
    Column("evidence", String, index=True),
    Column("record", Text, nullable=False),
)


class SkillRecord:
    """How one skill has done so far, over a kind of evidence."""

    def __init__(self, skill: str, tried: int, won: int, mean_log_speedup: float | None) -> None:
        self.skill = skill
        self.tried = tried
        self.won = won
        self.mean_log_speedup = mean_log_speedup


class ExperiencePool:
    """Slates and outcomes of all runs of one user."""

    def __init__(self, path: Path, shipped: tuple[Experience, ...] = ()) -> None:
        self._path = path
        self._shipped = shipped
        self._engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
        event.listen(self._engine, "connect", _configure)

    @staticmethod
    def open(path: Path, *, shipped: Path | None = None) -> ExperiencePool:
        """Open or make the pool.

        Args:
            path: The SQLite file; its folder is made.
            shipped: Folder of `*.jsonl` files of experience that came with the installation.

        Raises:
            ArtifactCorrupt: The file is no pool, or shipped experience cannot be read.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        pool = ExperiencePool(path, tuple(_read_shipped(shipped)) if shipped else ())
        try:
            with pool._engine.begin() as connection:
                for table in _METADATA.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                    for index in sorted(table.indexes, key=lambda index: str(index.name)):
                        connection.execute(CreateIndex(index, if_not_exists=True))
        except SQLAlchemyError as error:
            raise ArtifactCorrupt(
                f"{path} is no experience pool: {error.__class__.__name__}",
                remedy="move the file away; a new one is made",
            ) from error
        return pool

    def record_slate(self, slate: Slate) -> None:
        """Keep a slate; the same one again changes nothing."""
        row = {"id": slate.id, "run": slate.run, "round": slate.round, "record": slate.model_dump_json()}
        self._insert(_SLATES, [row])

    def record(self, experiences: Iterable[Experience]) -> int:
        """Keep outcomes; those already known change nothing.

        Returns:
            The number of outcomes in the pool, shipped ones not counted.
        """
        with self._transaction() as connection:
            start = connection.execute(select(func.count()).select_from(_EXPERIENCES)).scalar_one()
        rows = [_row(experience, start + offset) for offset, experience in enumerate(experiences)]
        if rows:
            self._insert(_EXPERIENCES, rows)
        return self.size()

    def size(self) -> int:
        """Return the number of recorded outcomes."""
        with self._transaction() as connection:
            return int(connection.execute(select(func.count()).select_from(_EXPERIENCES)).scalar_one())

    def slate(self, slate_id: str) -> Slate | None:
        """Return a slate by id."""
        with self._transaction() as connection:
            text = connection.execute(select(_SLATES.c.record).where(_SLATES.c.id == slate_id)).scalar()
        return None if text is None else Slate.model_validate_json(text)

    def experiences(
        self, *, schema_version: int | None = None, evidence: tuple[Evidence, ...] = (), limit: int = 4000
    ) -> list[Experience]:
        """Return outcomes, shipped ones first, then the latest `limit` in the order they came.

        Args:
            schema_version: Only rows whose features are of this version; None: all.
            evidence: Only these kinds; empty: all.
            limit: How many of the user's own at most.
        """
        query = (
            select(_EXPERIENCES.c.record)
            .order_by(_EXPERIENCES.c.order.desc(), _EXPERIENCES.c.id)
            .limit(limit)
        )
        if schema_version is not None:
            query = query.where(_EXPERIENCES.c.schema_version == schema_version)
        if evidence:
            query = query.where(_EXPERIENCES.c.evidence.in_(evidence))
        with self._transaction() as connection:
            texts = list(connection.execute(query).scalars())
        own = [Experience.model_validate_json(text) for text in reversed(texts)]
        shipped = [e for e in self._shipped if _matches(e, schema_version, evidence)]
        return shipped + own

    def record_foretold(self, found: Iterable[Foretold]) -> None:
        """Keep what became of predictions; those already known change nothing."""
        rows = [
            {
                "id": one.id,
                "skill": one.outcome.skill,
                "evidence": one.evidence,
                "record": one.model_dump_json(),
            }
            for one in found
        ]
        if rows:
            self._insert(_FORETOLD, rows)

    def foretold(self, *, evidence: tuple[Evidence, ...] = ()) -> list[Foretold]:
        """Return what became of every prediction, of these kinds of evidence or of all."""
        query = select(_FORETOLD.c.record).order_by(_FORETOLD.c.skill, _FORETOLD.c.id)
        if evidence:
            query = query.where(_FORETOLD.c.evidence.in_(evidence))
        with self._transaction() as connection:
            return [Foretold.model_validate_json(text) for text in connection.execute(query).scalars()]

    def skill_records(self, *, evidence: tuple[Evidence, ...] = ("measured",)) -> list[SkillRecord]:
        """Return how each skill has done, the most tried first."""
        grouped: dict[str, list[Experience]] = {}
        for experience in self.experiences(evidence=evidence, limit=100_000):
            for skill in {step.skill for step in experience.steps}:
                grouped.setdefault(skill, []).append(experience)
        records = [_summarise(skill, rows) for skill, rows in grouped.items()]
        return sorted(records, key=lambda record: (-record.tried, record.skill))

    def close(self) -> None:
        """Release the file."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise HarnessError(
                f"the experience pool {str(self._path)!r} cannot be used: {getattr(error, 'orig', None) or error}",
                remedy="make room or give permission, or go on without it: --no-learn",
            ) from error

    def _insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        with self._transaction() as connection:
            connection.execute(insert(table).on_conflict_do_nothing(index_elements=["id"]), rows)


def _configure(connection: Any, _record: Any) -> None:
    # Several runs may write at once and wait for each other. The journal's mode is left alone: to change
    # it needs the file alone, which fails at once, without waiting, when two runs start together.
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.close()


def _row(experience: Experience, order: int) -> dict[str, Any]:
    return {
        "id": experience.id,
        "order": order,
        "slate": experience.slate,
        "skills": " ".join(step.skill for step in experience.steps),
        "gpu": experience.gpu,
        "evidence": experience.evidence,
        "verdict": experience.verdict.value,
        "schema_version": experience.schema_version,
        "log_speedup": experience.log_speedup,
        "record": experience.model_dump_json(),
    }


def _summarise(skill: str, rows: list[Experience]) -> SkillRecord:
    gains = [row.log_speedup for row in rows if row.log_speedup is not None]
    won = sum(row.verdict.value == "accepted" for row in rows)
    return SkillRecord(skill, len(rows), won, sum(gains) / len(gains) if gains else None)


def _matches(experience: Experience, schema_version: int | None, evidence: tuple[Evidence, ...]) -> bool:
    right_version = schema_version is None or experience.schema_version == schema_version
    return right_version and (not evidence or experience.evidence in evidence)


def _read_shipped(folder: Path) -> Iterator[Experience]:
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                yield Experience.model_validate_json(line)
            except ValidationError as error:
                raise ArtifactCorrupt(f"{path}:{number} is no experience of this version") from error
