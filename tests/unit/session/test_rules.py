"""Rules as those who propose ask about them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelskill.agents.drafts import Desk, Question, draft
from kernelskill.agents.families import Family
from kernelskill.agents.steering import Steering, describe
from kernelskill.llm.base import Message, ModelRequest
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.proposal import Choice, Refusal
from kernelskill.schema.steering import Action, Rule
from kernelskill.schema.task import Parameter, Signature
from kernelskill.skills.library import SkillLibrary, default_folders

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))
from scripted_backend import FLOAT, make_task

SKILLS = SkillLibrary.load(default_folders(Path("/nonexistent"))).all()

BASE = """\
__device__ float half_of(float v) { return v / 2; }
__global__ void a(float *x) { x[0] = half_of(x[0]); } // atomicAdd, wmma
__global__ void b(float *x) { x[0] = 1; }
"""


def rule(action: Action, **more: object) -> Rule:
    return Rule(number=1, action=action, topic="it", text="as I said", **more)  # type: ignore[arg-type]


def family(*values: str, name: str = "tile", steps: int = 1) -> Family:
    made = tuple(Step(skill="m/s", site=f"k/{i}", parameters=((name, values[0]),)) for i in range(steps))
    choices = (Choice(name=name, values=values, steps=tuple(range(steps))),) if len(values) > 1 else ()
    return Family(steps=made, choices=choices, reason="")


@pytest.mark.parametrize(
    ("action", "value", "measure", "values", "left"),
    [
        ("at_most", "32", "side", ("64", "32", "16"), ("32", "16")),
        ("at_most", "32", "side", ("64x8", "32x32", "8x16"), ("32x32", "8x16")),
        ("at_most", "256", "product", ("16x16", "32x16", "1x256"), ("16x16", "1x256")),
        ("at_least", "16", "side", ("64x8", "32x32", "1x16"), ("32x32", "1x16")),
        ("exactly", "16", "side", ("16x16", "1x16", "16x8"), ("16x16", "1x16")),
        ("exactly", "16x8", "side", ("16x16", "8x16", "16x8"), ("8x16", "16x8")),
        ("larger", "", "side", ("8", "32", "16"), ("32", "16", "8")),
        ("smaller", "", "side", ("8x8", "32x1", "16x16"), ("32x1", "8x8", "16x16")),
        ("at_most", "4", "side", ("both", "stores"), ("both", "stores")),
    ],
)  # fmt: skip
def test_values_that_are_left(action: Action, value: str, measure: str, values: tuple, left: tuple) -> None:
    steering = Steering((rule(action, parameters=("tile",), value=value, measure=measure),))
    found = steering.restricted(family(*values, steps=2))
    assert isinstance(found, Family)
    assert found.choices[0].values == left
    assert {dict(step.parameters)["tile"] for step in found.steps} == {left[0]}


def test_nothing_that_is_left_is_a_refusal_with_what_there_was() -> None:
    steering = Steering((rule("at_most", parameters=("tile",), value="8"),))
    for offered in (family("64", "32"), family("64")):
        found = steering.restricted(offered)
        assert isinstance(found, Refusal)
        assert found.reason.startswith("tile is offered as 64")
        assert "as I said" in found.reason
    assert isinstance(steering.restricted(family("64", "32", name="other")), Family)
    only_there = Steering((rule("at_most", parameters=("tile",), value="8", skills=("m/t",)),))
    assert isinstance(only_there.restricted(family("64", "32")), Family)


def test_the_last_word_counts() -> None:
    ban, allow = rule("ban", skills=("m/s", "m/t")), rule("allow", skills=("m/s",))
    assert not Steering((ban, allow)).declines("m/s")
    assert Steering((ban, allow)).declines("m/t")
    assert Steering((allow, ban)).declines("m/s")
    only = rule("only", skills=("m/t",))
    assert Steering((only,)).declines("m/s")
    assert not Steering((only,)).declines("m/t")
    assert not Steering((only, rule("only", skills=("m/s",)))).declines("m/s")
    assert not Steering((only, allow)).declines("m/s")
    kernel = rule("ban", kernels=("k",))
    assert Steering((kernel,)).declines("m/s", "k")
    assert not Steering((kernel,)).declines("m/s")
    both = rule("ban", skills=("m/s",), kernels=("k",))
    assert Steering((both,)).declines("m/s", "k")
    assert not Steering((both,)).declines("m/s", "l")
    assert not Steering((rule("only", kernels=("k",)), only)).declines("m/t", "k")
    assert Steering((rule("only", kernels=("k",)),)).declines("m/t", "l")


@pytest.mark.parametrize(
    ("words", "added", "word"),
    [
        (("__shared__",), "__shared__ float t[1];", "__shared__"),
        (("atomicAdd*",), "atomicAdd_block(x, 1.f);", "atomicAdd"),
        (("mma.sync",), 'asm("mma.sync.aligned");', "mma.sync"),
        (("red.",), "// red.x", ""),
        (("__shared__",), "/* __shared__ */", ""),
        (("half2",), "float half = 2;", ""),
    ],
)
def test_names_that_a_change_may_not_add(words: tuple, added: str, word: str) -> None:
    base = Candidate.of("k.cu", {"k.cu": BASE})
    made = base.with_text("k.cu", BASE.replace("x[0] = 1;", f"x[0] = 1; {added}"))
    reason = Steering((rule("ban", words=words, skills=("m/s",)),)).objection(base, made)
    assert reason.startswith(f"it adds {word};") if word else reason == ""
    assert Steering((rule("ban", words=words), rule("allow", words=words))).objection(base, made) == ""
    assert Steering((rule("ban", words=words),)).objection(made, base) == ""


def test_kernels_that_may_not_change() -> None:
    base = Candidate.of("k.cu", {"k.cu": BASE})
    made = base.with_text("k.cu", BASE.replace("x[0] = 1;", "x[0] = 2;"))
    assert Steering((rule("ban", kernels=("a",)),)).objection(base, made) == ""
    assert "changes the kernel 'b'" in Steering((rule("ban", kernels=("b",)),)).objection(base, made)
    assert "changes the kernel 'b'" in Steering((rule("only", kernels=("a",)),)).objection(base, made)
    assert Steering((rule("only", skills=("m/s",)), rule("only", kernels=("b",)))).objection(base, made) == ""


def test_rules_in_our_words() -> None:
    said = [
        describe(each)
        for each in (
            rule("ban", skills=("m/s",)),
            rule("ban", kernels=("k",)),
            rule("ban", skills=("m/s",), kernels=("k", "l")),
            rule("only", skills=("m/s",)),
            rule("prefer", skills=("m/s",), value="1"),
            rule("prefer", skills=("m/s",), value="2"),
            rule("later", skills=("m/s",)),
            rule("larger", parameters=("tile",)),
            rule("at_most", parameters=("tile",), value="32"),
            rule("exactly", parameters=("tile",), value="32"),
            rule("note"),
        )
    ]
    assert said == [
        "nothing that uses it", "no change of it", "nothing that uses it in the kernels k, l", "only it", "it first",
        "it next", "it last", "larger it first", "it: at most 32", "it: 32", "as I said",
    ]  # fmt: skip


ANSWER = """\
SKILL: {skill}
KERNEL: b
TARGETS: none
EXPECTED SPEEDUP: 2
EXACTNESS: exact
NEEDS: none
RATIONALE: it is faster

<<<<<<< SEARCH
__global__ void b(float *x) {{ x[0] = 1; }}
=======
__global__ void b(float *x) {{ {line} }}
>>>>>>> REPLACE
"""


@pytest.mark.parametrize(
    ("rules", "skill", "line", "outcome"),
    [
        ((), "memory/shared_tile", "x[0] = 2;", "proposal"),
        ((rule("ban", skills=("memory/shared_tile",)),), "memory/shared_tile", "x[0] = 2;", "not_permitted"),
        ((rule("ban", words=("__shared__",)),), "compute/unroll", "__shared__ float t[1];", "not_permitted"),
        ((rule("ban", kernels=("b",)),), "compute/unroll", "x[0] = 2;", "not_permitted"),
        ((rule("ban", kernels=("a",)),), "compute/unroll", "x[0] = 2;", "proposal"),
        ((rule("only", skills=("compute/unroll",)),), "an idea", "x[0] = 2;", "not_permitted"),
        ((rule("only", skills=("memory/x",), specialists=("memory",)),), "an idea", "x[0] = 2;", "proposal"),
        ((rule("prefer", skills=("compute/unroll",)),), "memory/shared_tile", "x[0] = 2;", "proposal"),
    ],
)
def test_a_model_is_held_to_the_rules_too(rules: tuple, skill: str, line: str, outcome: str) -> None:
    base = Candidate.of("k.cu", {"k.cu": BASE + 'extern "C" void run(float *x) { b<<<1, 1>>>(x); }\n'})
    signature = Signature(
        symbol="run", parameters=(Parameter(name="x", kind="pointer", element=FLOAT, declared="float *"),)
    )
    task = make_task(base).model_copy(update={"signature": signature})
    request = ModelRequest(role="memory", messages=(Message(role="user", text="?"),))
    question = Question(
        request=request, round=1, specialist="memory", purpose="change", base=base.digest, subject=base
    )
    desk = Desk(task=task, keep_exact=False, only_kernel="", skills=SKILLS, steering=Steering(rules))
    made, _ = draft(question, ANSWER.format(skill=skill, line=line), truncated=False, desk=desk)
    assert made.outcome == outcome
    assert ("as I said" in made.detail) is (outcome == "not_permitted")
