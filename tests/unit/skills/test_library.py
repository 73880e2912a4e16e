"""The library: overlay order, lazy loading, near names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.errors import SkillError, UnknownNameError
from kernelskill.resources import data_folder
from kernelskill.skills.library import SkillLibrary, default_folders
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.unit import SourceUnit

TEXT = """---
title: {title}
prior: {{log_speedup: 0.1, deviation: 0.1}}
---
Text.
## When
## How
## Example
## Pitfalls
"""


def add(root: Path, specialist: str, name: str, title: str, transform: str | None = None) -> Path:
    folder = root / specialist / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT.format(title=title))
    if transform is not None:
        (folder / "transform.py").write_text(transform)
    return folder


def test_packaged_skills_load() -> None:
    library = SkillLibrary.load([data_folder("skills")])
    assert {"compute", "memory", "parallelism"} <= set(library.specialists())
    for skill in library.all():
        assert skill.summary
        assert skill.prior.deviation > 0
        if skill.mechanical:
            assert library.transformation(skill) is library.transformation(skill)


def test_dropping_a_folder_in_adds_a_skill(tmp_path: Path) -> None:
    source = "def sites(unit, kernel, context):\n    return []\ndef rewrite(unit, site, parameters, context):\n    pass\n"
    add(tmp_path, "energy", "sleep", "Sleep", source)
    library = SkillLibrary.load([data_folder("skills"), tmp_path])
    assert "energy" in library.specialists()
    skill = library.get("sleep")
    assert skill.id == "energy/sleep"
    assert skill.mechanical
    unit = SourceUnit.parse("__global__ void k() {}")
    assert library.transformation(skill).sites(unit, unit.kernels[0], SkillContext()) == []


def test_later_folders_replace_earlier_ones(tmp_path: Path) -> None:
    add(tmp_path / "a", "memory", "x", "first")
    add(tmp_path / "b", "memory", "x", "second")
    library = SkillLibrary.load([tmp_path / "a", tmp_path / "b"])
    assert [skill.title for skill in library.all()] == ["second"]
    assert not library.all()[0].mechanical


def test_transformations_load_on_first_use_only(tmp_path: Path) -> None:
    add(tmp_path, "memory", "x", "x", "raise ValueError('loaded')")
    library = SkillLibrary.load([tmp_path])
    with pytest.raises(SkillError, match="ValueError: loaded"):
        library.transformation(library.get("memory/x"))


@pytest.mark.parametrize("source", ["def sites(): pass", "import nothing_of_that_name", "def ("])
def test_broken_transformations_are_errors(tmp_path: Path, source: str) -> None:
    add(tmp_path, "memory", "x", "x", source)
    library = SkillLibrary.load([tmp_path])
    with pytest.raises(SkillError):
        library.transformation(library.get("memory/x"))


def test_unknown_names_offer_near_ones() -> None:
    library = SkillLibrary.load([data_folder("skills")])
    with pytest.raises(UnknownNameError) as caught:
        library.get("memory/swap_thread_axis")
    assert "memory/swap_thread_axes" in caught.value.remedy
    with pytest.raises(UnknownNameError) as caught:
        library.get("zzzz")
    assert "skills list" in caught.value.remedy


def test_folder_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "memory" / "x").mkdir(parents=True)
    with pytest.raises(SkillError, match=r"holds no SKILL\.md"):
        SkillLibrary.load([tmp_path])


def test_default_folders(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".kernelskill" / "skills").mkdir(parents=True)
    extra = tmp_path / "extra"
    extra.mkdir()
    folders = default_folders(project, [extra])
    assert folders[0] == data_folder("skills")
    assert folders[-2:] == (project / ".kernelskill" / "skills", extra)
    with pytest.raises(SkillError, match="no such skill folder"):
        default_folders(project, [tmp_path / "none"])
