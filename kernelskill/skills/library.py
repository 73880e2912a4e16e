"""SkillLibrary: the skills of all folders, later folders over earlier ones."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from kernelskill.errors import SkillError, UnknownNameError
from kernelskill.resources import config_dir, data_folder
from kernelskill.schema.base import sha256_text
from kernelskill.schema.proposal import Skill
from kernelskill.skills.skill_file import FILE_NAME, parse_skill
from kernelskill.skills.transformation import Rewrite, Site, SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

TRANSFORM = "transform.py"


class Transformation(Protocol):
    """What a `transform.py` holds."""

    def sites(self, unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
        """Return the places where the skill applies.

        Raises:
            SkillRefused: It applies nowhere in this kernel, with the reason.
        """

    def rewrite(
        self, unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext
    ) -> Rewrite:
        """Return the edits of one application.

        Raises:
            SkillRefused: A precondition fails or cannot be proven.
        """


def default_folders(project: Path, extra: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the skill folders in order: packaged, the user's, the project's, the command line's.

    Raises:
        SkillError: A folder of the command line does not exist.
    """
    for folder in extra:
        if not folder.is_dir():
            raise SkillError(f"no such skill folder: {str(folder)!r}", remedy="give an existing folder")
    optional = (config_dir() / "skills", project / ".kernelskill" / "skills")
    return (data_folder("skills"), *(folder for folder in optional if folder.is_dir()), *extra)


class SkillLibrary:
    """All known skills. A folder dropped in adds a skill; one of the same id replaces it."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._skills = {skill.id: skill for skill in sorted(skills, key=lambda skill: skill.id)}
        self._transformations: dict[str, Transformation] = {}

    @staticmethod
    def load(folders: Sequence[Path]) -> SkillLibrary:
        """Read `<specialist>/<skill>/SKILL.md` of every folder; later folders replace earlier ones.

        Raises:
            SkillError: A `SKILL.md` is malformed, missing or unreadable.
        """
        found: dict[str, Skill] = {}
        for folder in folders:
            for skill in _read_folder(folder):
                found[skill.id] = skill
        return SkillLibrary(list(found.values()))

    def all(self) -> tuple[Skill, ...]:
        """Return every skill, sorted by id."""
        return tuple(self._skills.values())

    def of(self, specialist: str) -> tuple[Skill, ...]:
        """Return the skills of one specialist, sorted by id."""
        return tuple(skill for skill in self._skills.values() if skill.specialist == specialist)

    def followers(self, skill: Skill) -> tuple[Skill, ...]:
        """Return the skills worth trying right behind one: those it enables, then those that name it.

        Names of skills that this library lacks are passed over: another folder may hold them.
        """
        enabled = [self._skills[name] for name in skill.enables if name in self._skills]
        named = [other for other in self._skills.values() if skill.id in other.after]
        return tuple({other.id: other for other in (*enabled, *named) if other.mechanical}.values())

    def specialists(self) -> tuple[str, ...]:
        """Return the names of the specialists that have a skill, sorted."""
        return tuple(sorted({skill.specialist for skill in self._skills.values()}))

    def get(self, skill_id: str) -> Skill:
        """Return the skill of that id; the part after the slash is enough where it is unique.

        Raises:
            UnknownNameError: None has it; near names are offered.
        """
        if skill_id in self._skills:
            return self._skills[skill_id]
        short = [known for known in self._skills if known.rsplit("/", 1)[-1] == skill_id]
        if len(short) == 1:
            return self._skills[short[0]]
        near = short or _near(skill_id, list(self._skills))
        remedy = f"did you mean {' or '.join(near)}?" if near else "`kernelskill skills list` names them all"
        raise UnknownNameError(f"no skill {skill_id!r}", remedy=remedy)

    def transformation(self, skill: Skill) -> Transformation:
        """Return the loaded `transform.py` of a mechanical skill; it is loaded on first use.

        Raises:
            SkillError: There is none, it cannot be loaded or it lacks a function.
        """
        if skill.id not in self._transformations:
            self._transformations[skill.id] = _load_transformation(skill)
        return self._transformations[skill.id]


def _near(wanted: str, known: list[str]) -> list[str]:
    by_short = {name.rsplit("/", 1)[-1]: name for name in known}
    close = difflib.get_close_matches(wanted.rsplit("/", 1)[-1], list(by_short), n=3)
    return [by_short[name] for name in close] or difflib.get_close_matches(wanted, known, n=3)


def _read_folder(folder: Path) -> list[Skill]:
    skills = []
    for specialist in _subfolders(folder):
        for place in _subfolders(specialist):
            skills.append(_read_skill(place, f"{specialist.name}/{place.name}"))
    return skills


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.is_dir() and not f.name.startswith((".", "_")))


def _read_skill(place: Path, skill_id: str) -> Skill:
    path = place / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SkillError(
            f"{str(place)!r} holds no {FILE_NAME}", remedy="add one or remove the folder"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SkillError(f"cannot read {str(path)!r}: {error}", remedy="save it as UTF-8 text") from error
    return parse_skill(
        text, skill_id=skill_id, folder=str(place), mechanical=(place / TRANSFORM).is_file(), path=str(path)
    )


def _load_transformation(skill: Skill) -> Transformation:
    path = Path(skill.folder) / TRANSFORM
    if not path.is_file():
        raise SkillError(f"skill {skill.id!r} has no {TRANSFORM}", remedy="only a model can apply it")
    # The name holds the path's digest, so that two folders' transformations never share a module.
    name = f"kernelskill_skill_{sha256_text(str(path))[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SkillError(f"cannot load {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, KeyError) as error:
        raise SkillError(
            f"cannot load {str(path)!r}: {type(error).__name__}: {error}", remedy="correct the file"
        ) from error
    for function in ("sites", "rewrite"):
        if not callable(getattr(module, function, None)):
            raise SkillError(f"{str(path)!r} lacks the function {function!r}")
    return cast("Transformation", module)
