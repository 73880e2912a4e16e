"""Finding, applying, applying again, combining; locked regions, headers, permissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.errors import UnknownNameError
from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.proposal import Exactness
from kernelskill.schema.task import Allowance
from kernelskill.skills.apply import apply_step, combine, find_steps, make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused
from tests.skills.contexts import context_for

LIBRARY = SkillLibrary.load([data_folder("skills")])
HEADER = """#pragma once
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int k = 0; k < n; ++k) s += 0.5 * x[k];
    y[i] = s;
}
"""
MAIN = """#include "add.cuh"
__global__ void other(float* y) { for (int k = 0; k < 99; ++k) y[k] = 0; }
extern "C" void f(const float* x, float* y, int n) {
    add<<<(n + 255) / 256, 256>>>(x, y, n);
    other<<<1, 1>>>(y);
}
"""
CANDIDATE = Candidate.of("main.cu", {"main.cu": MAIN, "add.cuh": HEADER})
UNROLL = Step(skill="compute/unroll", site="add/loop:k", parameters=(("factor", "4"),))
LITERALS = Step(skill="compute/float_literals", site="add/literals")
SHAPE = Step(skill="parallelism/block_shape", site="add", parameters=(("shape", "64x1"),))
CONTEXT = context_for("f")


def test_kernels_and_launches_in_different_files() -> None:
    result = apply_step(CANDIDATE, SHAPE, LIBRARY, CONTEXT).candidate
    assert "add<<<(n + 63) / 64, 64>>>" in result.text_of("main.cu")
    assert result.text_of("add.cuh") == HEADER
    striding = Step(skill="parallelism/grid_stride", site="add", parameters=(("work", "2"),))
    result = apply_step(CANDIDATE, striding, LIBRARY, CONTEXT).candidate
    assert "item < n" in result.text_of("add.cuh")
    assert "(n + 511) / 512" in result.text_of("main.cu")


def test_only_some_kernels() -> None:
    skill = LIBRARY.get("compute/unroll")
    steps, _ = find_steps(CANDIDATE, skill, LIBRARY, CONTEXT)
    assert {entry.site.kernel for entry in steps} == {"add", "other"}
    steps, refusals = find_steps(CANDIDATE, skill, LIBRARY, CONTEXT, only_kernels=["other"])
    assert {entry.site.kernel for entry in steps} == {"other"}
    assert not refusals
    assert [dict(entry.step.parameters)["factor"] for entry in steps] == ["4", "8", "2", "16"]


def test_steps_apply_again_to_each_others_results_in_any_order() -> None:
    one = combine(CANDIDATE, [UNROLL, LITERALS, SHAPE], LIBRARY, CONTEXT).candidate
    other = combine(CANDIDATE, [SHAPE, LITERALS, UNROLL], LIBRARY, CONTEXT).candidate
    assert one.digest == other.digest
    assert "#pragma unroll 4" in one.text_of("add.cuh")
    assert "0.5f * x[k]" in one.text_of("add.cuh")


def test_a_step_whose_site_is_gone_is_refused() -> None:
    changed = CANDIDATE.with_text("add.cuh", HEADER.replace("int k = 0; k < n; ++k", "int q = 0; q < n; ++q"))
    with pytest.raises(SkillRefused, match="is gone"):
        apply_step(changed, UNROLL, LIBRARY, CONTEXT)
    with pytest.raises(SkillRefused, match=r"unroll\(factor=4\) at add/loop:k: site .* is gone"):
        combine(changed, [SHAPE, UNROLL], LIBRARY, CONTEXT)
    with pytest.raises(SkillRefused, match="kernel 'gone' is gone"):
        apply_step(CANDIDATE, Step(skill="compute/unroll", site="gone/loop:k"), LIBRARY, CONTEXT)
    again = apply_step(CANDIDATE, LITERALS, LIBRARY, CONTEXT).candidate
    with pytest.raises(SkillRefused, match="no double literal"):
        apply_step(again, LITERALS, LIBRARY, CONTEXT)


def test_parameters_are_checked() -> None:
    for parameters, message in (
        ((), "expected"),
        ((("factor", "3"),), "is not one of"),
        ((("depth", "4"),), "expected"),
    ):
        with pytest.raises(SkillRefused, match=message):
            apply_step(
                CANDIDATE,
                Step(skill="compute/unroll", site="add/loop:k", parameters=parameters),
                LIBRARY,
                CONTEXT,
            )
    with pytest.raises(UnknownNameError):
        apply_step(CANDIDATE, Step(skill="compute/nothing", site="add"), LIBRARY, CONTEXT)


def test_locked_kernels_launches_and_lines() -> None:
    kernel = "// kernelskill: off\n" + HEADER.removeprefix("#pragma once\n") + "// kernelskill: on\n"
    locked = CANDIDATE.with_text("add.cuh", kernel)
    _, refusals = find_steps(locked, LIBRARY.get("compute/unroll"), LIBRARY, CONTEXT)
    assert [(r.kernel, r.reason) for r in refusals] == [
        ("add", "it lies in a region under `// kernelskill: off`")
    ]
    launch = CANDIDATE.with_text("main.cu", MAIN.replace("    add<<<", "    // kernelskill: off\n    add<<<"))
    with pytest.raises(SkillRefused, match="locked"):
        apply_step(launch, SHAPE, LIBRARY, CONTEXT)
    inside = HEADER.replace("    y[i] = s;", "    // kernelskill: off\n    y[i] = s;\n    // kernelskill: on")
    with pytest.raises(SkillRefused, match="under `// kernelskill: off`"):
        apply_step(CANDIDATE.with_text("add.cuh", inside), UNROLL, LIBRARY, CONTEXT)


def test_exact_runs_refuse_what_rounds_or_reorders() -> None:
    task = CONTEXT.task
    assert task is not None
    exact = SkillContext(task=task.model_copy(update={"allow": frozenset[Allowance]()}))
    for name in ("compute/float_literals", "compute/independent_accumulators"):
        steps, refusals = find_steps(CANDIDATE, LIBRARY.get(name), LIBRARY, exact)
        assert not steps
        assert 'ALLOW lacks "reorder"' in refusals[0].reason
        assert find_steps(CANDIDATE, LIBRARY.get(name), LIBRARY, SkillContext())[0]


def test_proposals_add_up() -> None:
    proposal = make_proposal(CANDIDATE, [LITERALS, UNROLL], LIBRARY, CONTEXT)
    assert proposal.base == CANDIDATE.digest
    assert proposal.exactness is Exactness.ROUNDING
    assert proposal.specialist == "compute"
    assert proposal.predicted.log_speedup == pytest.approx(0.85)
    assert proposal.label == "float_literals at add/literals + unroll(factor=4) at add/loop:k"


def test_unclear_kernels_are_declined_with_the_reason() -> None:
    for text, reason in (
        (
            "__global__ void k(float* y) {\n#ifdef A\ny[0] = 1;\n#endif\nfor (int i = 0; i < 99; ++i) y[i] = 0; }",
            "preprocessor conditional",
        ),
        (
            "namespace a { __global__ void k(float* y) {} }\nnamespace b { __global__ void k(float* y) {} }",
            "2 kernels are named 'k'",
        ),
    ):
        _, refusals = find_steps(
            Candidate.of("k.cu", {"k.cu": text}), LIBRARY.get("compute/unroll"), LIBRARY, CONTEXT
        )
        assert reason in refusals[0].reason


BREAKING = """
from kernelskill.schema.candidate import Edit
from kernelskill.skills.transformation import Rewrite, Site

def sites(unit, kernel, context):
    return [Site(key=kernel.name, kernel=kernel.name, reason="test")]

def rewrite(unit, site, parameters, context):
    start = unit.data.index({old!r})
    return Rewrite(edits=(Edit(path=unit.path, start=start, end=start + {size}, text={new!r}),))
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"y[0] = 1;", "y[0] = (1;", "no longer parses"),
        (b"float* y, int n", "double* y, int n", "signature of a launcher"),
        (b"y[0] = 1;", "y[0] = 1; // kernelskill: off\n", "locked region"),
    ],
)
def test_faulty_skills_are_caught(tmp_path: Path, old: bytes, new: str, message: str) -> None:
    folder = tmp_path / "memory" / "faulty"
    folder.mkdir(parents=True)
    text = (data_folder("skills") / "memory" / "hoist_invariant" / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text)
    (folder / "transform.py").write_text(BREAKING.format(old=old, new=new, size=len(old)))
    library = SkillLibrary.load([tmp_path])
    source = (
        '__global__ void k(float* y) { y[0] = 1; }\nextern "C" void f(float* y, int n) { k<<<1, 1>>>(y); }\n'
    )
    with pytest.raises(SkillRefused, match=rf"{message}.*\(internal\)"):
        apply_step(Candidate.of("k.cu", {"k.cu": source}), Step(skill="faulty", site="k"), library, CONTEXT)


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        ((), True),
        (("-O2", "-DOTHER=1"), True),
        (("-DB=128",), False),
        (("-D", "B=64"), False),
        (("-UB",), False),
    ],
)
def test_a_macro_given_by_flags_has_no_known_value(flags: tuple[str, ...], offered: bool) -> None:
    text = (
        "#ifndef B\n#define B 256\n#endif\n"
        "__global__ void k(float* x, int n) {\n    int i = blockIdx.x * B + threadIdx.x;\n"
        "    if (i < n) x[i] = 1;\n}\n"
        'extern "C" void f(float* x, int n) { k<<<(n + B - 1) / B, B>>>(x, n); }\n'
    )
    candidate = Candidate.of("k.cu", {"k.cu": text})
    context = context_for("f", flags=flags)
    skill = LIBRARY.get("parallelism/grid_stride")
    found, refusals = find_steps(candidate, skill, LIBRARY, context)
    assert bool(found) is offered, refusals


def test_a_macro_given_by_flags_may_hide_an_access() -> None:
    text = (
        "#define NEXT 1\n"
        "__global__ void k(float* x, float* y, int n) {\n"
        "    for (int j = 0; j < n; ++j) x[0] += y[j] * NEXT;\n}\n"
        'extern "C" void f(float* x, float* y, int n) { k<<<1, 1>>>(x, y, n); }\n'
    )
    candidate = Candidate.of("k.cu", {"k.cu": text})
    skill = LIBRARY.get("memory/accumulate_in_register")
    for flags, offered in (((), True), (("-DNEXT=2",), True), (("-DNEXT=x[1]",), False)):
        found, _ = find_steps(candidate, skill, LIBRARY, context_for("f", flags=flags))
        assert bool(found) is offered, flags
