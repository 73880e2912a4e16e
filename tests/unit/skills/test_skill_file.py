"""SKILL.md: any text gives a Skill or a SkillError that names file, field and expectation."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.errors import SkillError
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Exactness, Skill
from kernelskill.skills.skill_file import FIELDS, parse_skill

GOOD = """---
title: Swap the axes
triggers: [coalescing_load]
features: [is_pointwise]
parameters:
  - name: factor
    values: [4, 2]
    meaning: copies
exactness: rounding
promises: [no_alias]
prior: {log_speedup: 0.5, deviation: 0.25}
predicts:
  - {metric: dram__bytes.sum, direction: down}
pitfalls: [none known]
sources: ["a book: page 3"]
---
# Heading

First paragraph,
two lines.

## When
x
## How
x
## Example
```cuda
## not a heading
```
## Pitfalls
x
"""


def parse(text: str) -> Skill:
    return parse_skill(text, skill_id="memory/swap", folder="/f", mechanical=True, path="f/SKILL.md")


def test_reads_every_field() -> None:
    skill = parse(GOOD)
    assert skill.id == "memory/swap"
    assert skill.specialist == "memory"
    assert skill.triggers == (BottleneckKind.COALESCING_LOAD,)
    assert skill.parameters[0].values == ("4", "2")
    assert skill.exactness is Exactness.ROUNDING
    assert skill.promises == ("no_alias",)
    assert skill.prior.deviation == 0.25
    assert skill.predicts[0].direction == "down"
    assert skill.sources == ("a book: page 3",)
    assert skill.summary == "First paragraph, two lines."


def test_windows_line_ends_and_byte_order_mark() -> None:
    assert parse("\ufeff" + GOOD.replace("\n", "\r\n")).title == "Swap the axes"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("title: Swap the axes", "title: [1]", ["f/SKILL.md", "title", "one line of text", "['1']"]),
        ("title: Swap the axes\n", "", ["title", "nothing"]),
        ("triggers: [coalescing_load]", "triggers: [slow]", ["triggers[0]", "coalescing_load", "'slow'"]),
        ("triggers: [coalescing_load]", "triggers: slow", ["triggers", "a list"]),
        ("values: [4, 2]", "values: []", ["parameters[0]", "best first"]),
        ("values: [4, 2]", "values: [4, 4]", ["parameters[0]"]),
        ("exactness: rounding", "exactness: roughly", ["exactness", "reorders", "'roughly'"]),
        ("promises: [no_alias]", "promises: [never]", ["promises[0]", "aligned16"]),
        ("deviation: 0.25", "deviation: 0", ["prior.deviation", "above 0"]),
        ("log_speedup: 0.5", "log_speedup: nan", ["prior.log_speedup"]),
        ("direction: down", "direction: sideways", ["predicts[0]", "down | up | same"]),
        ("title:", "titel:", ["unknown field 'titel'"]),
        ("pitfalls: [none", "title: again\npitfalls: [none", ["'title' is given twice"]),
        ("## Pitfalls", "## Traps", ["section 'Pitfalls' is missing"]),
        ("features: [is_pointwise]", "features: [[[", ["no YAML"]),
        ("pitfalls: [none", "enables: [unroll]\npitfalls: [none", ["enables[0]", "SPECIALIST/NAME"]),
        ("pitfalls: [none", "after: memory/tile\npitfalls: [none", ["after", "a list"]),
        ("---\ntitle", "title", ["no front matter"]),
    ],
)
def test_names_the_mistake(old: str, new: str, parts: list[str]) -> None:
    with pytest.raises(SkillError) as caught:
        parse(GOOD.replace(old, new, 1))
    for part in parts:
        assert part in caught.value.message


@pytest.mark.parametrize(
    "inner", ["[" * 5000, "&a [*a]", "? [a]\n: b", "a: !!python/object:os.system x", "- x", ""]
)
def test_hostile_front_matter(inner: str) -> None:
    with pytest.raises(SkillError):
        parse(f"---\n{inner}\n---\ntext")


@given(st.text())
def test_any_text(text: str) -> None:
    with pytest.raises(SkillError):
        parse(text)


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from(FIELDS),
        st.recursive(
            st.text() | st.integers() | st.none() | st.booleans(),
            lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        ),
    )
)
def test_any_fields(fields: dict[str, object]) -> None:
    text = "---\n" + yaml.safe_dump(fields) + "---\n## When\n## How\n## Example\n## Pitfalls\n"
    assert outcome(text).startswith(("f/SKILL.md", "skill"))


@given(st.integers(0, len(GOOD)), st.text(max_size=8))
def test_any_insertion(position: int, extra: str) -> None:
    assert outcome(GOOD[:position] + extra + GOOD[position:]).startswith(("f/SKILL.md", "skill"))


def outcome(text: str) -> str:
    """Return `skill`, or the message of the SkillError; anything else is a failure."""
    try:
        parse(text)
    except SkillError as error:
        return error.message
    return "skill"
