"""What the original uses and what ALLOW names is permitted; anything else is refused in one sentence."""

import pytest
import scripted_backend as scripted

from kernelskill.evaluation.permissions import refusal_of
from kernelskill.schema.build import Build, BuildFailure, Construct
from kernelskill.schema.evaluation import Status
from kernelskill.schema.task import Allowance, ElementType

FAST = Construct(
    family="fast exponential",
    allowance=Allowance.FAST_MATH,
    shown="__expf",
    does="uses __expf, a hardware approximation",
    found_in="source",
    file="kernel.cu",
    line=12,
)
HALF = FAST.model_copy(
    update={
        "family": "half values",
        "allowance": Allowance.LOWER_PRECISION,
        "does": "rounds values to half (cvt.rn.f16.f32)",
        "found_in": "ptx",
    }
)
HALF_SUMS = HALF.model_copy(update={"family": "half arithmetic", "does": "computes in half (add.f16)"})
READS_HALF = HALF.model_copy(update={"harmless": True})
FORK = FAST.model_copy(
    update={
        "family": "call of fork",
        "allowance": None,
        "does": "calls fork, which is not among the functions that a launcher may call",
        "found_in": "host object",
    }
)
SINGLE = FAST.model_copy(
    update={
        "family": "float arithmetic",
        "allowance": Allowance.LOWER_PRECISION,
        "does": "computes in float (add.f32)",
        "harmless": True,
    }
)
DOUBLE = SINGLE.model_copy(update={"family": "double arithmetic"})


def build(*constructs):
    return Build(
        key="k",
        folder="/nonexistent",
        architecture="sm_90a",
        device_code="d",
        kernels=(),
        constructs=constructs,
    )


def task(*allow, dtype="float32", **changes):
    original = scripted.source("right")
    element = ElementType(name=dtype, dtype=dtype, size_bytes=8)
    pointers = tuple(
        p.model_copy(update={"element": element}) if p.kind == "pointer" else p
        for p in scripted.SIGNATURE.parameters
    )
    signature = scripted.SIGNATURE.model_copy(update={"parameters": pointers})
    return scripted.make_task(original, allow=frozenset(allow), signature=signature, **changes)


def test_the_sentence_names_construct_line_and_remedy():
    assert refusal_of(task(), build(FAST), build()) == (
        "kernel.cu:12: the candidate uses __expf, a hardware approximation; the original does not, "
        'and it takes ALLOW = {"fast_math"} in the test'
    )
    assert refusal_of(task(), build(FORK), build()).endswith("the original does not, and no ALLOW permits it")


@pytest.mark.parametrize(
    ("construct", "allowance"), [(FAST, Allowance.FAST_MATH), (HALF, Allowance.LOWER_PRECISION)]
)
def test_allow_permits_its_own_kind(construct, allowance):
    assert not refusal_of(task(allowance), build(construct), build())
    for other in set(Allowance) - {allowance}:
        assert refusal_of(task(other), build(construct), build())
    assert refusal_of(task(*Allowance), build(FORK), build())


def test_what_the_original_uses_is_permitted():
    for construct in (FAST, HALF, FORK):
        assert not refusal_of(task(), build(construct), build(construct))
    assert refusal_of(task(), build(FAST, HALF), build(FAST))
    assert refusal_of(task(), build(FAST), BuildFailure(diagnostics=(), log=""))


def test_who_has_halves_may_keep_values_in_them_but_not_compute():
    for original in (build(READS_HALF), build(HALF), build(HALF_SUMS)):
        assert not refusal_of(task(), build(HALF), original)
    assert not refusal_of(task(dtype="float16"), build(HALF), build())
    assert refusal_of(task(dtype="float16"), build(HALF_SUMS), build(READS_HALF))
    assert refusal_of(task(dtype="bfloat16"), build(HALF), build())


@pytest.mark.parametrize("flags", [("-use_fast_math",), ("--use_fast_math",)])
def test_flags_of_the_users_hold_for_both_sides(flags):
    assert not refusal_of(task(flags=flags), build(FAST), build())
    division = FAST.model_copy(update={"family": "fast division"})
    assert not refusal_of(task(flags=("-prec-div=false",)), build(division), build())
    assert not refusal_of(task(flags=("--prec-div", "false")), build(division), build())
    assert refusal_of(task(flags=("-prec-div=false",)), build(FAST), build())


def test_a_task_of_doubles_is_not_computed_in_float():
    assert "computes in float" in refusal_of(task(dtype="float64"), build(SINGLE), build(DOUBLE))
    assert not refusal_of(task(dtype="float64"), build(SINGLE), build(DOUBLE, SINGLE))
    assert not refusal_of(task(dtype="float64"), build(DOUBLE), build(DOUBLE))
    assert not refusal_of(task(), build(SINGLE), build(DOUBLE)), "a literal may have been double by mistake"
    assert not refusal_of(task(Allowance.LOWER_PRECISION, dtype="float64"), build(SINGLE), build(DOUBLE))


def test_what_is_not_permitted_is_not_run(laboratory):
    lab = laboratory()
    opened = lab.backend.opened
    found = lab.check("right", uses="__expf")
    assert found.status is Status.UNSUPPORTED
    assert found.detail.startswith("kernel.cu:1: the candidate uses __expf")
    assert (found.checks, lab.backend.opened) == ((), opened)
    assert lab.time("right", ms=0.4, uses="__expf").status is Status.UNSUPPORTED
    allowing = laboratory(allow=frozenset({Allowance.FAST_MATH}))
    assert allowing.check("right", uses="__expf").passed


def test_an_original_may_be_anything(laboratory):
    lab = laboratory(settings={"uses": "__expf"})
    assert lab.evaluator.evaluate(lab.request(lab.original)).passed
    assert lab.check("right", ms=2, uses="__expf").passed
    assert lab.check("right", ms=3, uses="__logf").status is Status.UNSUPPORTED


def test_equal_machine_code_excuses_no_source(laboratory):
    lab = laboratory(settings={"code": "a"})
    for number, uses in enumerate(({}, {"uses": "__expf"})):
        candidate = scripted.source("right", ms=0.5, code="b", number=number, **uses)
        request = lab.request(candidate, stage="time", incumbent=lab.original, depth="search")
        found = lab.evaluator.evaluate(request)
        assert found.status is (Status.UNSUPPORTED if uses else Status.PASSED)
