from kernelskill.agents.coordinator import combinations_to_try, nothing_to_fix, route
from kernelskill.agents.verifier import error_growth, objection, permitted
from kernelskill.schema.evaluation import Status
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Effect, Exactness, Skill
from kernelskill.schema.task import Allowance
from tests.records import bottleneck, evaluation, proposal, task


def skill(identity: str, *triggers: BottleneckKind) -> Skill:
    return Skill(
        id=identity,
        title="t",
        specialist=identity.split("/")[0],
        mechanical=True,
        triggers=triggers,
        prior=Effect(log_speedup=0.1, deviation=0.1),
        summary="s",
        text="t",
        folder="f",
    )


SKILLS = [
    skill("memory/a", BottleneckKind.COALESCING_LOAD),
    skill("compute/b", BottleneckKind.FP64_IN_FLOAT),
    skill("layout/c"),
]


def test_the_specialist_that_answers_the_diagnosis_comes_first_and_none_is_left_out() -> None:
    routes = route([bottleneck(BottleneckKind.FP64_IN_FLOAT, 0.8)], SKILLS)
    assert [r.specialist for r in routes] == ["compute", "layout", "memory"]
    assert routes[0].weight == 0.8
    assert "fp64_in_float" in routes[0].reason


def test_nothing_to_fix_is_said_only_by_the_first_diagnosis() -> None:
    assert nothing_to_fix([bottleneck(BottleneckKind.NONE)])
    assert not nothing_to_fix([bottleneck(BottleneckKind.SPILLS), bottleneck(BottleneckKind.NONE)])
    assert not nothing_to_fix([])


def test_combinations_start_from_the_larger_gain_and_skip_conflicts() -> None:
    gains = {"a": 0.1, "b": 0.5, "c": 0.3}
    assert combinations_to_try(gains, set(), 3) == [("b", "c", "a"), ("b", "c"), ("b", "a")]
    assert combinations_to_try(gains, {frozenset(("b", "c"))}, 2) == [("b", "a"), ("c", "a")]
    assert combinations_to_try({"a": 1.0}, set(), 2) == []


def test_what_is_not_allowed_is_not_tried() -> None:
    assert permitted(Exactness.EXACT, task(), keep_exact=True) == ""
    assert "--keep-exact" in permitted(Exactness.ROUNDING, task(), keep_exact=True)
    assert "ALLOW" in permitted(Exactness.FAST_MATH, task(), keep_exact=False)
    assert permitted(Exactness.FAST_MATH, task(allow=[Allowance.FAST_MATH]), keep_exact=False) == ""
    assert "ALLOW" in permitted(Exactness.REORDERS, task(allow=[]), keep_exact=False)


def test_a_wrong_candidate_is_refused_with_its_status() -> None:
    wrong = evaluation(None, status=Status.INCORRECT)
    assert objection(proposal(), wrong, evaluation(), task(), keep_exact=False).startswith("incorrect")
    assert objection(proposal(), evaluation(), evaluation(), task(), keep_exact=False) == ""


def test_precision_given_up_is_refused_unless_allowed() -> None:
    original, coarse = evaluation(error=1e-7), evaluation(error=1e-3)
    assert error_growth(coarse, original) > 100
    assert "error" in objection(proposal(), coarse, original, task(), keep_exact=False)
    allowed = task(allow=[Allowance.LOWER_PRECISION])
    assert objection(proposal(), coarse, original, allowed, keep_exact=False) == ""


def test_rounding_over_an_exact_original_is_no_loss_of_precision() -> None:
    assert (
        objection(proposal(), evaluation(error=1e-7), evaluation(error=0.0), task(), keep_exact=False) == ""
    )
