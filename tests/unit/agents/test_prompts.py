"""Prompts have strict variables, and what is put into them stays data, within its tokens, by whole lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.agents.prompts import PromptLibrary, read_prompt
from kernelskill.agents.sections import Block, data, fence, fitted, is_cut, numbered, one_line, words
from kernelskill.errors import ConfigError, UnknownNameError
from kernelskill.llm.tokens import estimate_text
from kernelskill.resources import data_folder

PROMPT = """\
---
tier: light
answer: change
system: You are one.
inputs:
  source: {tokens: 100}
  skills: {tokens: 60}
---
Source: {{ source }}
{{> rules }}
Skills: {{skills}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "rules.md").write_text("Rules.\n")
    (tmp_path / "memory.md").write_text(PROMPT)
    return tmp_path


def test_a_prompt_is_rendered_in_one_pass(folder: Path) -> None:
    prompt = PromptLibrary.load(folder).get("memory")
    text = prompt.render({"source": words("{{ skills }} {{> rules }}"), "skills": words("$1 \\1")})
    assert text == "Source: {{ skills }} {{> rules }}\nRules.\nSkills: $1 \\1\n"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"source": words("x")}, "no value for ['skills']"),
        ({"source": words("x"), "skills": words("y"), "other": words("z")}, "no variable for ['other']"),
    ],
)
def test_missing_and_unknown_variables_are_errors(folder: Path, values, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        PromptLibrary.load(folder).get("memory").render(values)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\ntier", "tier", "no front matter"),
        ("tier: light", "tier: heavy", "tier"),
        ("tier: light", "tier: [", "YAML"),
        ("answer: change\n", "", "answer"),
        ("answer: change", "answer: change\nmood: good", "mood"),
        ("{tokens: 100}", "{tokens: few}", "inputs.source.tokens"),
        ("{{skills}}", "", r"differ in ['skills']"),
        ("{{skills}}", "{{skills}} {{ other }}", r"differ in ['other']"),
        ("{{skills}}", "{{ skills.text }}", "is no variable"),
        ("{{> rules }}", "{{> laws }}", "cannot read"),
    ],
)
def test_a_bad_prompt_is_refused_when_it_is_read(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "memory.md").write_text(PROMPT.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        PromptLibrary.load(folder)
    assert message in caught.value.message + caught.value.remedy
    assert caught.value.remedy


def test_parts_that_take_each_other_in_are_refused(folder: Path) -> None:
    (folder / "parts" / "rules.md").write_text("{{> rules }}")
    with pytest.raises(ConfigError, match="take each other in"):
        read_prompt(folder / "memory.md")


def test_the_hash_covers_the_parts(folder: Path) -> None:
    before = read_prompt(folder / "memory.md").digest
    assert read_prompt(folder / "memory.md").digest == before
    (folder / "parts" / "rules.md").write_text("Other rules.\n")
    assert read_prompt(folder / "memory.md").digest != before


def test_every_specialist_has_a_prompt() -> None:
    library = PromptLibrary.load()
    specialists = {path.name for path in data_folder("skills").iterdir() if path.is_dir()}
    assert specialists | {"answer", "repair", "planner", "seeding"} == set(library.roles())
    with pytest.raises(UnknownNameError, match="memoir"):
        library.get("memoir")


def test_a_fence_is_longer_than_any_in_it() -> None:
    text = fence("a\n````\nb ```", "cuda")
    assert text == "`````cuda\na\n````\nb ```\n`````"


def test_numbered_lines_keep_their_text_and_lose_what_terminals_obey() -> None:
    section = (numbered("int a;\r\n\tb\x1b[31m;\x00\n", title="`k.cu`:"),)
    assert fitted(section, 100) == "`k.cu`:\n\n```cuda\n1| int a;\n2| \tb?[31m;?\n```"


def test_the_least_important_lines_go_first() -> None:
    source = "\n".join(f"line {number};" for number in range(1, 41))
    weights = [9 if 10 <= number <= 12 else 3 for number in range(1, 41)]
    section = (numbered(source, weights),)
    assert is_cut(section, 120)
    text = fitted(section, 120)
    assert "10| line 10;\n11| line 11;\n12| line 12;" in text
    assert re.search(r"\.\.\. \(\d+ lines left out\)", text)
    assert estimate_text(text) <= 120 + 12
    assert not is_cut(section, 2000)


def test_a_line_longer_than_all_tokens_is_left_out_whole() -> None:
    text = fitted((data("short\n" + "x" * 5000),), 100)
    assert text == "```text\nshort\n... (1 line left out)\n```"


def test_others_text_becomes_one_line() -> None:
    assert one_line("a\n\n# b\x07 \ud800c") == "a # b? ?c"
    assert one_line("x" * 400, 10) == "xxxxxxx..."


_LINE = st.text("abc` {}<>#\n", max_size=20)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), _LINE), max_size=25), st.integers(50, 400))
def test_trimming_never_cuts_a_line_and_never_leaves_the_fence(lines, tokens: int) -> None:
    own = tuple((weight, text.replace("\n", "")) for weight, text in lines)
    text = fitted((Block(own, fence="text"),), tokens)
    if not text:
        return
    shown = text.split("\n")
    ticks = shown[0].removesuffix("text")
    assert set(ticks) == {"`"}
    assert shown[-1] == ticks
    inside = shown[1:-1]
    assert all(ticks not in line for line in inside)
    known = [line for _, line in own]
    assert all(line in known or line.startswith("... (") for line in inside)
