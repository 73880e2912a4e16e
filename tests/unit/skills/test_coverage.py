"""The techniques of the field have skills."""

from __future__ import annotations

import tomllib

from kernelskill.resources import data_folder
from tests.skills.applying import LIBRARY

TABLES = tomllib.loads((data_folder("skills") / "coverage.toml").read_text(encoding="utf-8"))


def test_every_skill_named_exists() -> None:
    known = {skill.id for skill in LIBRARY.all()}
    for table in TABLES.values():
        for technique, skills in table.items():
            assert skills, technique
            assert set(skills) <= known, technique


def test_the_tables_are_whole() -> None:
    assert len(TABLES["techniques"]) == 58
    assert len(TABLES["published"]) == 24


def test_there_are_enough_skills_and_most_of_them_rewrite() -> None:
    assert len(LIBRARY.all()) >= 45
    assert sum(skill.mechanical for skill in LIBRARY.all()) >= 32
