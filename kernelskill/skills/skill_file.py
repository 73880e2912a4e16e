"""Read a `SKILL.md`: YAML front matter with a closed set of fields, then Markdown with four sections."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import yaml

from kernelskill.errors import SkillError
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Effect, Exactness, MetricChange, Skill, SkillParameter
from kernelskill.schema.task import Promise

FILE_NAME = "SKILL.md"
SECTIONS = ("When", "How", "Example", "Pitfalls")
FIELDS = (
    "title",
    "triggers",
    "features",
    "parameters",
    "exactness",
    "promises",
    "prior",
    "predicts",
    "pitfalls",
    "sources",
    "enables",
    "after",
)
_LARGEST = 64 * 1024
_FENCE = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
_SKILL_ID = re.compile(r"[\w.-]+/[\w.-]+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CODE_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_Item = TypeVar("_Item")


class _PlainLoader(yaml.BaseLoader):
    """Load every scalar as text and refuse a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{name!r} is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep=deep)


@dataclass(frozen=True)
class _Front:
    """The front matter of one file, and how to complain about it."""

    path: str
    fields: dict[str, Any]

    def fail(self, field: str, expected: str, got: object) -> NoReturn:
        raise SkillError(
            f"{self.path}: {field}: expected {expected}, got {_short(got)}", remedy="correct the front matter"
        )

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if not isinstance(value, str) or not value.strip():
            self.fail(field, "one line of text", value)
        return " ".join(value.split())

    def items(self, field: str, expected: str, read: Callable[[Any], _Item | None]) -> tuple[_Item, ...]:
        """Read a list; an item for which `read` gives None is refused as not being `expected`."""
        value = self.fields.get(field, [])
        if not isinstance(value, list):
            self.fail(field, f"a list of {expected}", value)
        found = []
        for index, item in enumerate(value):
            result = read(item)
            if result is None:
                self.fail(f"{field}[{index}]", expected, item)
            found.append(result)
        return tuple(found)


def parse_skill(text: str, *, skill_id: str, folder: str, mechanical: bool, path: str = FILE_NAME) -> Skill:
    """Return the skill that the text of a `SKILL.md` describes.

    Args:
        text: The whole file.
        skill_id: `<specialist>/<folder>`.
        folder: Where the file lies; kept in the record.
        mechanical: Whether a `transform.py` stands beside it.
        path: The file as messages name it.

    Raises:
        SkillError: The text is no skill; the message names file, field and what is expected.
    """
    fields, body = _split(text, path)
    front = _Front(path, fields)
    for field in fields:
        if field not in FIELDS:
            raise SkillError(f"{path}: unknown field {_short(field)}", remedy=f"fields: {', '.join(FIELDS)}")
    _check_sections(body, path)
    return Skill(
        id=skill_id,
        title=front.text("title"),
        specialist=skill_id.split("/", 1)[0],
        mechanical=mechanical,
        triggers=front.items("triggers", f"one of {', '.join(BottleneckKind)}", _trigger),
        features=front.items("features", "a feature name", _text),
        parameters=_parameters(front),
        exactness=_exactness(front),
        promises=front.items("promises", f"one of {', '.join(Promise)}", _promise),
        prior=_prior(front),
        predicts=front.items("predicts", "{metric: NAME, direction: down | up | same}", _metric_change),
        pitfalls=front.items("pitfalls", "one line of text", _text),
        sources=front.items("sources", "one line of text", _text),
        enables=front.items("enables", "a skill's id, SPECIALIST/NAME", _skill_id),
        after=front.items("after", "a skill's id, SPECIALIST/NAME", _skill_id),
        summary=_summary(body),
        text=body.strip() + "\n",
        folder=folder,
    )


def _split(text: str, path: str) -> tuple[dict[str, Any], str]:
    if len(text) > _LARGEST:
        raise SkillError(f"{path}: the file has {len(text)} characters", remedy=f"at most {_LARGEST}")
    match = _FENCE.match(text)
    if match is None:
        raise SkillError(f"{path}: no front matter", remedy="begin with a line ---, the fields, a line ---")
    try:
        fields = yaml.load(match[1], Loader=_PlainLoader)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise SkillError(f"{path}: the front matter is no YAML: {reason[:300]}") from error
    except RecursionError as error:
        raise SkillError(f"{path}: the front matter is nested too deeply") from error
    if not isinstance(fields, dict) or not all(isinstance(field, str) for field in fields):
        raise SkillError(f"{path}: the front matter holds no fields", remedy="write `title: ...` and so on")
    return fields, match[2].replace("\r\n", "\n")


def _check_sections(body: str, path: str) -> None:
    bare = _CODE_FENCE.sub("", body)
    headings = [line[3:].strip() for line in bare.splitlines() if line.startswith("## ")]
    for section in SECTIONS:
        if section not in headings:
            raise SkillError(
                f"{path}: section {section!r} is missing",
                remedy="the text needs the headings " + ", ".join(f"## {name}" for name in SECTIONS),
            )


def _summary(body: str) -> str:
    paragraphs = re.split(r"\n[ \t]*\n", _CODE_FENCE.sub("", body))
    for paragraph in paragraphs:
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        summary = " ".join(" ".join(lines).split())
        if summary:
            return summary
    return ""


def _text(item: Any) -> str | None:
    return " ".join(item.split()) if isinstance(item, str) and item.strip() else None


def _skill_id(item: Any) -> str | None:
    return item if isinstance(item, str) and _SKILL_ID.fullmatch(item) else None


def _trigger(item: Any) -> BottleneckKind | None:
    return BottleneckKind(item) if isinstance(item, str) and item in set(BottleneckKind) else None


def _promise(item: Any) -> str | None:
    return item if isinstance(item, str) and item in set(Promise) else None


def _metric_change(item: Any) -> MetricChange | None:
    if not isinstance(item, dict) or set(item) != {"metric", "direction"}:
        return None
    metric, direction = item["metric"], item["direction"]
    if not isinstance(metric, str) or not metric or direction not in ("down", "up", "same"):
        return None
    return MetricChange(metric=metric, direction=direction)


def _parameter(item: Any) -> SkillParameter | None:
    if not isinstance(item, dict) or not {"name", "values"} <= set(item) <= {"name", "values", "meaning"}:
        return None
    name, values, meaning = item["name"], item["values"], item.get("meaning", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(meaning, str):
        return None
    if not isinstance(values, list) or not values or not all(isinstance(v, str) and v for v in values):
        return None
    if len(set(values)) != len(values):
        return None
    return SkillParameter(name=name, values=tuple(values), meaning=" ".join(meaning.split()))


def _parameters(front: _Front) -> tuple[SkillParameter, ...]:
    expected = "{name: NAME, values: [each once, best first], meaning: TEXT}"
    found = front.items("parameters", expected, _parameter)
    names = [parameter.name for parameter in found]
    if len(set(names)) != len(names):
        front.fail("parameters", "each name once", names)
    return found


def _exactness(front: _Front) -> Exactness:
    value = front.fields.get("exactness", Exactness.EXACT.value)
    if not isinstance(value, str) or value not in set(Exactness):
        front.fail("exactness", f"one of {', '.join(Exactness)}", value)
    return Exactness(value)


def _prior(front: _Front) -> Effect:
    value = front.fields.get("prior")
    if not isinstance(value, dict) or set(value) != {"log_speedup", "deviation"}:
        front.fail("prior", "{log_speedup: NUMBER, deviation: NUMBER > 0}", value)
    numbers = {}
    for field, item in value.items():
        number = _number(item)
        if number is None or not -5 <= number <= 5 or (field == "deviation" and number <= 0):
            front.fail(f"prior.{field}", "a number between -5 and 5, a deviation above 0", item)
        numbers[field] = number
    return Effect(log_speedup=numbers["log_speedup"], deviation=numbers["deviation"])


def _number(item: Any) -> float | None:
    if not isinstance(item, str):
        return None
    try:
        number = float(item)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
