"""Answers of a model are read strictly, whatever is written around them."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.agents.answers import (
    CHANGE_SCHEMA,
    PLAN_SCHEMA,
    AnswerMalformed,
    ChangeAnswer,
    PlanAnswer,
    parse_change,
    parse_plan,
)
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Exactness
from kernelskill.schema.task import Promise

HEAD = """\
SKILL: memory/shared_tile
KERNEL: mm
TARGETS: latency, no_reuse
EXPECTED SPEEDUP: 1.5x
METRICS: dram__bytes.sum down, sm__throughput.avg up
EXACTNESS: reorders
NEEDS: aligned16
RATIONALE: tiles are read once
and used often
"""
BLOCK = "\n<<<<<<< SEARCH\nint a;\n=======\nint b;\n>>>>>>> REPLACE\n"


def test_every_field_of_the_markdown_form_is_read() -> None:
    answer = parse_change(HEAD + BLOCK)
    assert (answer.skill, answer.idea, answer.kernel) == ("memory/shared_tile", "", "mm")
    assert answer.targets == (BottleneckKind.LATENCY, BottleneckKind.NO_REUSE)
    assert (answer.expected_speedup, answer.exactness) == (1.5, Exactness.REORDERS)
    assert [(m.metric, m.direction) for m in answer.metrics] == [
        ("dram__bytes.sum", "down"),
        ("sm__throughput.avg", "up"),
    ]
    assert answer.needs == (Promise.ALIGNED16,)
    assert answer.rationale == "tiles are read once and used often"
    assert [(e.path, e.search, e.replace) for e in answer.edits] == [("", "int a;", "int b;")]


@pytest.mark.parametrize(
    "dressed",
    [
        lambda text: f"```markdown\n{text}\n```",
        lambda text: f"<think>SKILL: none\n<<<<<<< SEARCH\n</think>\nHere it is.\n\n{text}\nGood luck!",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: text.replace("SKILL:", "**Skill:**").replace("KERNEL: mm", "- Kernel: `mm`"),
        lambda text: text.replace("<<<<<<< SEARCH", "```cuda\n<<<<<<< SEARCH").replace(
            "REPLACE\n", "REPLACE\n```\n"
        ),
        lambda text: text.replace("SEARCH\nint a;", "SEARCH\n```cuda\nint a;\n```"),
    ],
)
def test_what_stands_around_the_form_makes_no_difference(dressed) -> None:
    answer = parse_change(dressed(HEAD + BLOCK))
    assert (answer.skill, answer.kernel, answer.expected_speedup) == ("memory/shared_tile", "mm", 1.5)
    assert [(e.search, e.replace) for e in answer.edits] == [("int a;", "int b;")]


def test_a_whole_file_and_a_path() -> None:
    answer = parse_change(
        "IDEA: anew\nRATIONALE: r\n<<<<<<< FILE src/a.cuh\n#pragma once\nint a;\n>>>>>>> FILE\n"
    )
    assert [(f.path, f.text) for f in answer.files] == [("src/a.cuh", "#pragma once\nint a;")]
    answer = parse_change(f"IDEA: anew\nRATIONALE: r\n{BLOCK.replace('SEARCH', 'SEARCH src/a.cuh')}")
    assert answer.edits[0].path == "src/a.cuh"


def test_nothing_is_an_answer() -> None:
    assert parse_change("NOTHING: it is at the roof\nalready").nothing == "it is at the roof already"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "give either SKILL or IDEA"),
        ("I would tile it.", "give either SKILL or IDEA"),
        (HEAD, "SEARCH blocks or whole files"),
        (HEAD + "IDEA: too\n" + BLOCK, "give either SKILL or IDEA"),
        (HEAD + "SKILL: memory/b\n" + BLOCK, "SKILL is given twice"),
        (HEAD.replace("RATIONALE", "BECAUSE") + BLOCK, "RATIONALE is missing"),
        (HEAD.replace("latency", "slowness") + BLOCK, "targets.0"),
        (HEAD.replace("1.5x", "much") + BLOCK, "expected_speedup"),
        (HEAD.replace("1.5x", "0") + BLOCK, "expected_speedup"),
        (HEAD.replace("1.5x", "nan") + BLOCK, "expected_speedup"),
        (HEAD.replace("reorders", "fine") + BLOCK, "exactness"),
        (HEAD.replace("aligned16", "luck") + BLOCK, "needs.0"),
        (HEAD + "<<<<<<< SEARCH\nint a;\n=======\nint b;\n", ">>>>>>> REPLACE"),
        (HEAD + "<<<<<<< SEARCH\nint a;\n", "======="),
        (HEAD + "<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n", ">>>>>>> REPLACE"),
        (HEAD + "<<<<<<< FILE\nint a;\n", ">>>>>>> FILE"),
        (HEAD + BLOCK + ">>>>>>> REPLACE\n", "closes or opens no block"),
        (HEAD + BLOCK + "<<<<<<< FILE\nint a;\n>>>>>>> FILE\n", "SEARCH blocks or whole files"),
        ("NOTHING: no\n" + BLOCK, "NOTHING and a change"),
        ('{"skill": "a/b"', "begins like JSON"),
        ('{"skil": "a/b"}', "skil"),
        ("{" * 100_000, "begins like JSON"),
        (HEAD + BLOCK.replace("int b;", "int \0b;"), "no text"),
        ("x" * 3_000_000, "characters"),
    ],
)
def test_a_malformed_answer_is_told_why(text: str, reason: str) -> None:
    with pytest.raises(AnswerMalformed) as caught:
        parse_change(text)
    assert reason in caught.value.reason


def test_json_of_the_schema_is_read_and_odd_characters_in_it_are_not() -> None:
    fields = dict.fromkeys(("skill", "kernel", "nothing"), "") | {
        "idea": "swap", "rationale": "r", "targets": [], "needs": [], "metrics": [], "exactness": "exact",
        "expected_speedup": 2, "edits": [{"path": "", "search": "a", "replace": "b"}], "files": [],
    }  # fmt: skip
    assert set(fields) == set(CHANGE_SCHEMA["required"]) == set(ChangeAnswer.model_fields)
    for text in (json.dumps(fields), f"```json\n{json.dumps(fields, indent=1)}\n```"):
        assert parse_change(text).edits[0].replace == "b"
    for odd in ("\ud800", "\0"):
        fields["rationale"] = odd
        with pytest.raises(AnswerMalformed):
            parse_change(json.dumps(fields))


def test_directions_are_read_in_both_forms() -> None:
    text = "Sure:\nDIRECTION: 2 | tile the inner loop\n- IDEA: compute | use a closed form\nDIRECTION: 1"
    plan = parse_plan(text)
    assert [(d.number, d.specialist, d.advice) for d in plan.directions] == [
        (2, "", "tile the inner loop"),
        (0, "compute", "use a closed form"),
        (1, "", ""),
    ]
    assert set(PLAN_SCHEMA["required"]) == set(PlanAnswer.model_fields)
    assert (
        parse_plan('{"directions": [{"number": 3, "specialist": "", "advice": "x"}]}').directions[0].number
        == 3
    )


@pytest.mark.parametrize(
    "text", ["", "all of them", "DIRECTION: 1\n" * 4, '{"directions": []}', "DIRECTION: one | x"]
)
def test_a_plan_without_directions_is_none(text: str) -> None:
    with pytest.raises(AnswerMalformed):
        parse_plan(text)


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*HEAD.splitlines(), *BLOCK.splitlines(), "```", "{", "x"]), max_size=30).map(
        "\n".join
    )
)
def test_any_text_is_an_answer_or_malformed(text: str) -> None:
    for parse in (parse_change, parse_plan):
        with contextlib.suppress(AnswerMalformed):  # anything else would be a fault
            parse(text)


_CODE = st.text("abc{}();=<> \t'\"\\/*", max_size=30).filter(lambda line: "SEARCH" not in line)


@settings(max_examples=150, deadline=None)
@given(st.lists(_CODE, min_size=1, max_size=8), st.lists(_CODE, max_size=8))
def test_code_comes_through_blocks_unchanged(old: list[str], new: list[str]) -> None:
    marks = ("<<<<<", ">>>>>", "=====", "```")
    if any(line.startswith(marks) for line in (*old, *new)):
        return
    block = "\n".join(["<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE"])
    answer = parse_change(f"IDEA: x\nRATIONALE: y\n{block}\n")
    assert (answer.edits[0].search, answer.edits[0].replace) == ("\n".join(old), "\n".join(new))
