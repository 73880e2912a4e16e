"""Prompts: one Markdown file a role, with strict variables. What a model reads stands there, not in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from kernelskill.agents.sections import Section, fitted
from kernelskill.errors import ConfigError
from kernelskill.registry import unknown_name
from kernelskill.resources import data_folder
from kernelskill.schema.base import Record, sha256_text

PARTS = "parts"
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"\{\{[ \t]*([a-z_]+)[ \t]*\}\}")
_PART = re.compile(r"\{\{>[ \t]*([a-z_]+)[ \t]*\}\}")
_STRAY = re.compile(r"\{\{[^{}]*\}\}")
_DEEPEST = 4


class PromptInput(Record):
    """One variable of a prompt."""

    tokens: int = Field(ge=50)
    """What it may take at most."""


class PromptFront(Record):
    """The front matter of a prompt."""

    tier: Literal["strong", "light"]
    answer: Literal["change", "plan", "text"]
    system: str = Field(min_length=1)
    inputs: dict[str, PromptInput]


class Prompt(Record):
    """One role's prompt, its parts taken in."""

    role: str
    front: PromptFront
    text: str
    digest: str
    """Hash of the whole file with its parts."""

    def render(self, values: Mapping[str, Section]) -> str:
        """Return the text with every variable in its place, each within its tokens.

        Raises:
            ConfigError: A variable has no value, or a value no variable.
        """
        wanted, given = set(self.front.inputs), set(values)
        if wanted != given:
            missing, unknown = sorted(wanted - given), sorted(given - wanted)
            what = f"no value for {missing}" if missing else f"no variable for {unknown}"
            raise ConfigError(
                f"prompt {self.role!r}: {what}", remedy="the inputs of its front matter say what it takes"
            )
        texts = {name: fitted(section, self.front.inputs[name].tokens) for name, section in values.items()}
        # In one pass: what is put in is never looked at for variables.
        return _VARIABLE.sub(lambda match: texts[match[1]], self.text)


class PromptLibrary:
    """The prompts of a folder by role."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self._prompts = {prompt.role: prompt for prompt in prompts}

    @staticmethod
    def load(folder: Path | None = None) -> PromptLibrary:
        """Read every prompt of a folder; the packaged ones by default.

        Raises:
            ConfigError: One cannot be read, or its variables and inputs differ.
        """
        place = folder or data_folder("prompts")
        files = [path for path in sorted(place.glob("*.md")) if path.name != "README.md"]
        return PromptLibrary([read_prompt(path) for path in files])

    def roles(self) -> tuple[str, ...]:
        """Return the roles that have a prompt, sorted."""
        return tuple(self._prompts)

    def get(self, role: str) -> Prompt:
        """Return the prompt of a role.

        Raises:
            UnknownNameError: There is none.
        """
        if role not in self._prompts:
            raise unknown_name("prompt", role, self._prompts)
        return self._prompts[role]


def read_prompt(path: Path) -> Prompt:
    """Return the prompt in a file.

    Raises:
        ConfigError: It cannot be read, or its variables and inputs differ.
    """
    match = _FRONT.match(_read(path))
    if match is None:
        raise ConfigError(f"{path}: no front matter", remedy="begin the file with --- and end it with ---")
    front = _front(path, match[1])
    text = _with_parts(match[2].strip() + "\n", path, _DEEPEST)
    used = set(_VARIABLE.findall(text))
    stray = [found for found in _STRAY.findall(text) if not _VARIABLE.fullmatch(found)]
    if stray:
        raise ConfigError(f"{path}: {stray[0]!r} is no variable", remedy="write {{ name }} or {{> part }}")
    if used != set(front.inputs):
        odd = sorted(used ^ set(front.inputs))
        raise ConfigError(f"{path}: variables and inputs differ in {odd}", remedy="list exactly what is used")
    return Prompt(role=path.stem, front=front, text=text, digest=sha256_text(match[1] + text))


def _front(path: Path, text: str) -> PromptFront:
    try:
        document: Any = yaml.safe_load(text)
        return PromptFront.model_validate(document)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: {reason}", remedy="the front matter must be YAML") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{path}: {where or 'front matter'}: {first['msg']}",
            remedy=f"fields are {', '.join(PromptFront.model_fields)}",
        ) from error


def _with_parts(text: str, path: Path, depth: int) -> str:
    if not _PART.search(text):
        return text
    if depth == 0:
        raise ConfigError(f"{path}: parts take each other in", remedy="break the circle")

    def part(match: re.Match[str]) -> str:
        return _with_parts(_read(path.parent / PARTS / f"{match[1]}.md").strip(), path, depth - 1)

    return _PART.sub(part, text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error}", remedy="save it as UTF-8 text") from error
