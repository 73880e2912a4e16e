"""Small records for tests: only what a test cares about is named there."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.schema.candidate import Candidate, Lineage, Patch, Step
from kernelskill.schema.device import Conditions, Evidence
from kernelskill.schema.evaluation import CheckOutcome, Evaluation, Status, Timing, VerdictKind
from kernelskill.schema.experience import Experience
from kernelskill.schema.profile import Bottleneck, BottleneckKind
from kernelskill.schema.proposal import Effect, Exactness, Proposal
from kernelskill.schema.run import Member
from kernelskill.schema.task import Allowance, Case, ElementType, Parameter, Role, Signature, Task, Tolerance

FLOAT = ElementType(name="float", dtype="float32", size_bytes=4)
INT = ElementType(name="int", dtype="int32", size_bytes=4)


def candidate(text: str = "// a\n") -> Candidate:
    return Candidate.of("kernel.cu", {"kernel.cu": text})


def task(cases: Sequence[Case] | None = None, allow: Sequence[Allowance] = (Allowance.REORDER,)) -> Task:
    parameters = (
        Parameter(name="x", kind="pointer", element=FLOAT, is_const=True, declared="const float*"),
        Parameter(name="y", kind="pointer", element=FLOAT, declared="float*"),
        Parameter(name="n", kind="scalar", element=INT, declared="int"),
    )
    return Task(
        name="scale",
        signature=Signature(symbol="scale", parameters=parameters),
        cases=tuple(
            cases or (Case(index=0, arguments={"n": 4}), Case(index=1, arguments={"n": 64}, timed=True))
        ),
        roles={"x": Role.INPUT, "y": Role.OUTPUT},
        tolerances={"y": Tolerance(rtol=1e-5, atol=1e-6)},
        allow=frozenset(allow),
        original=candidate().digest,
        tests="t",
    )


def conditions(evidence: Evidence = "measured") -> Conditions:
    return Conditions(device="cuda:0", gpu="GPU", evidence=evidence)


def timing(ms: float, case: int = 1, evidence: Evidence = "measured") -> Timing:
    return Timing(case=case, samples_ms=(ms,), median_ms=ms, low_ms=ms, high_ms=ms, evidence=evidence)


def evaluation(
    ms: float | None = 1.0, *, status: Status = Status.PASSED, error: float | None = None, of: str = "c"
) -> Evaluation:
    check = CheckOutcome(case=1, trial=0, layout="plain", status=status, max_absolute_error=error)
    return Evaluation(
        key="k" + of,
        candidate=of,
        stage="time",
        status=status,
        checks=(check,),
        timings=(timing(ms),) if ms is not None and status is Status.PASSED else (),
        conditions=conditions(),
    )


def step(skill: str = "compute/unroll", site: str = "k", **parameters: str) -> Step:
    return Step(skill=skill, site=site, parameters=tuple(sorted(parameters.items())))


def proposal(
    text: str = "// b\n",
    *,
    steps: Sequence[Step] = (),
    prior: float = 0.1,
    triggers: Sequence[BottleneckKind] = (),
    exactness: Exactness = Exactness.EXACT,
    base: Candidate | None = None,
) -> Proposal:
    return Proposal(
        base=(base or candidate()).digest,
        candidate=candidate(text),
        specialist="compute",
        origin="mechanical",
        steps=tuple(steps) or (step(),),
        predicted=Effect(log_speedup=prior, deviation=0.05),
        exactness=exactness,
        rationale="because",
        triggers=tuple(triggers),
    )


def bottleneck(kind: BottleneckKind, confidence: float = 0.9) -> Bottleneck:
    return Bottleneck(kind=kind, kernel="k", confidence=confidence, gain=0.5, evidence=(), summary="s")


def member(text: str, speedup: float, *steps: Step, proven: bool = True) -> Member:
    made = candidate(text)
    patches = tuple(Patch(parent="p", child=made.digest, steps=(one,), diff="") for one in steps)
    return Member(
        candidate=made,
        lineage=Lineage(patches=patches),
        evaluation=evaluation(of=made.digest),
        speedup=speedup,
        proven=proven,
        exact=True,
    )


def experience(
    slate: str,
    name: str,
    gain: float | None,
    features: Sequence[float],
    *,
    verdict: VerdictKind = VerdictKind.ACCEPTED,
    evidence: Evidence = "measured",
    skill: str = "compute/unroll",
) -> Experience:
    return Experience(
        id=f"{slate}-{name}",
        slate=slate,
        proposal=name,
        task="t",
        round=1,
        steps=(step(skill),),
        specialist=skill.split("/")[0],
        features=tuple(features),
        schema_version=1,
        status=Status.PASSED,
        verdict=verdict,
        log_speedup=gain,
        evidence=evidence,
        gpu="GPU",
        kernelskill="0",
        predicted=0.1,
    )
