import numpy as np
import pytest

from kernelskill.policy.features import FEATURE_NAMES, context_features, feature_row
from kernelskill.policy.model import fit, prior_model
from kernelskill.policy.rank import Policy, choose
from kernelskill.profiling.potential import Potential
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.experience import Experience
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Proposal
from tests.records import bottleneck, candidate, experience, proposal, step

COALESCING = (bottleneck(BottleneckKind.COALESCING_LOAD),)
CONTEXT = context_features(COALESCING, {"has_barrier": 1.0}, None)


def offers(count: int = 4) -> list:
    return [
        proposal(
            f"// {i}\n",
            steps=[step(f"compute/s{i}")],
            prior=0.05 * i,
            triggers=[BottleneckKind.COALESCING_LOAD],
        )
        for i in range(count)
    ]


def rank(policy: Policy, proposals: list, seed: int = 1, take: int = 2, **how) -> list:
    base = candidate().digest
    return policy.rank(
        proposals, {base: COALESCING}, {base: CONTEXT}, take=take, rng=np.random.default_rng(seed), **how
    )


def test_rows_have_the_named_length_and_depend_on_the_context() -> None:
    row = feature_row(offers()[2], COALESCING, CONTEXT)
    assert len(row) == len(FEATURE_NAMES)
    assert row != feature_row(offers()[2], (), {})


def test_without_experience_the_priors_order_the_slate() -> None:
    means = {r.steps[0].skill: r.mean for r in rank(Policy("measured"), offers())}
    assert sorted(means, key=lambda skill: means[skill]) == [f"compute/s{i}" for i in range(4)]


def test_a_prior_counts_less_where_its_trigger_was_not_seen() -> None:
    fitting = proposal("// f\n", prior=0.5, triggers=[BottleneckKind.COALESCING_LOAD])
    stray = proposal("// s\n", prior=0.5, triggers=[BottleneckKind.SPILLS])
    means = {r.proposal: r.mean for r in rank(Policy("measured"), [fitting, stray])}
    assert means[fitting.id] > means[stray.id]


def test_equal_seeds_give_equal_slates_and_chances_add_up() -> None:
    policy = Policy("measured")
    first, second = rank(policy, offers()), rank(policy, offers())
    assert first == second
    assert sum(r.chance for r in first) == pytest.approx(2.0)
    assert [r.chosen for r in first] == [True, True, False, False]


def lessons(policy_evidence: str, gain: float) -> list[Experience]:
    found = []
    for number in range(8):
        for name, value in (("good", gain), ("bad", -0.2)):
            made = proposal(f"// {name}\n", steps=[step(f"compute/{name}")], prior=0.1)
            row = feature_row(made, COALESCING, CONTEXT)
            found.append(experience(f"slate{number}", name, value, row, evidence=policy_evidence))
    return found


def test_outcomes_move_the_ranking() -> None:
    policy = Policy("measured")
    good = proposal("// good\n", steps=[step("compute/good")], prior=0.1)
    bad = proposal("// bad\n", steps=[step("compute/bad")], prior=0.15)
    before = {r.proposal: r.mean for r in rank(policy, [good, bad])}
    policy.update(lessons("measured", 0.4))
    after = {r.proposal: r.mean for r in rank(policy, [good, bad])}
    assert before[bad.id] > before[good.id]
    assert after[good.id] > after[bad.id]


def test_experience_narrows_the_uncertainty() -> None:
    row = np.array([feature_row(proposal("// good\n", steps=[step("compute/good")]), COALESCING, CONTEXT)])
    taught = Policy("measured")
    taught.update(lessons("measured", 0.4))
    assert taught.model.deviations(row)[0] < prior_model().deviations(row)[0]


def test_estimates_never_move_a_measured_policy() -> None:
    policy = Policy("measured")
    policy.update(lessons("estimated", 0.4))
    assert policy.model.pairs == 0
    emulated = Policy("estimated")
    emulated.update(lessons("estimated", 0.4))
    assert emulated.model.pairs > 0


def test_a_refused_candidate_teaches_a_measured_policy_too() -> None:
    policy = Policy("measured")
    row = feature_row(offers()[1], COALESCING, CONTEXT)
    policy.update([experience("s", "p", None, row, verdict=VerdictKind.REFUSED, evidence="none")])
    assert policy.model.pairs == 1


def test_rows_of_another_length_are_left_out() -> None:
    assert fit([]).pairs == 0
    policy = Policy("measured")
    policy.update([experience("s", "p", 0.5, (1.0, 2.0))])
    assert policy.model.pairs == 0


def test_a_slate_is_spread_over_skills() -> None:
    same = [proposal(f"// u{i}\n", steps=[step("compute/unroll", factor=str(i))]) for i in range(6)]
    other = [proposal("// o\n", steps=[step("memory/other")])]
    assert choose(np.array([9, 8, 7, 6, 5, 4, 0.1]), same + other, 3) == [0, 1, 6]
    assert choose(np.array([9, 8, 7, 6, 5, 4, 0.1]), same + other, 2) == [0, 6]
    assert len(choose(np.array([9, 8, 7, 6, 5, 4]), same, 5)) == 5


def test_what_was_paid_for_is_tried_beside_the_best() -> None:
    policy, slate = Policy("measured"), offers(6)
    worst = {r.proposal for r in rank(policy, slate)[-3:]}
    ranked = rank(policy, slate, paid=worst, least_paid=2)
    assert [r.chosen for r in ranked] == [True] * 4 + [False] * 2
    assert sum(r.proposal in worst for r in ranked if r.chosen) == 2
    assert [r.sampled for r in ranked if r.chosen] == sorted(
        (r.sampled for r in ranked if r.chosen), reverse=True
    )
    best = {r.proposal for r in rank(policy, slate)[:2]}
    assert sum(r.chosen for r in rank(policy, slate, paid=best, least_paid=2)) == 2
    # Where a forecast puts it far behind, it is not looked at; where there is none, it is.
    gains = {p.id: -3.0 if p.id in worst else 1.5 for p in slate}
    told = rank(policy, slate, paid=worst, least_paid=2, forecasts=gains)
    assert not any(r.chosen for r in told if r.proposal in worst)
    others = {key: gain for key, gain in gains.items() if key not in worst}
    untold = rank(policy, slate, paid=worst, least_paid=2, forecasts=others)
    assert sum(r.chosen for r in untold if r.proposal in worst) == 2


def test_an_empty_slate_is_empty() -> None:
    assert rank(Policy("measured"), []) == []


def of_kernel(kernel: str, prior: float = 0.5, triggers: tuple[BottleneckKind, ...] = ()) -> Proposal:
    return proposal(f"// {kernel}\n", steps=[step(site=f"{kernel}/loop:i")], prior=prior, triggers=triggers)


def means_of(proposals: list, potentials: dict[str, Potential], bottlenecks: tuple = ()) -> dict[str, float]:
    base = candidate().digest
    ranked = Policy("measured").rank(
        proposals, {base: bottlenecks}, {base: {}}, take=1, rng=np.random.default_rng(1),
        potentials={base: potentials},
    )  # fmt: skip
    return {row.steps[0].site.split("/")[0]: row.mean for row in ranked}


def test_kernels_are_taken_in_order_of_what_can_be_won() -> None:
    hot, near, cold = (Potential(time_share=s, distance=d) for s, d in ((0.5, 1.0), (0.45, 0.2), (0.05, 1.0)))
    means = means_of([of_kernel(k) for k in "abc"], {"a": hot, "b": near, "c": cold})
    assert means["a"] > means["b"] > means["c"] > 0
    whole = -np.log(1 - 0.5 + 0.5 * np.exp(-0.5 * 0.4))
    assert means["a"] == pytest.approx(whole)


def test_a_chain_of_launches_wins_what_its_kernels_do_together() -> None:
    hot, cold = Potential(time_share=0.9, distance=1.0), Potential(time_share=0.05, distance=1.0)
    means = means_of([of_kernel("a/with:b"), of_kernel("c")], {"a": cold, "b": hot, "c": cold})
    assert means["a"] > 10 * means["c"]
    assert step(site="a/with:b/with:c#2").kernels == ("a", "b", "c")
    assert step(site="a/loop:i").kernels == ("a",)


def test_no_gain_is_expected_beyond_the_roof_and_a_loss_is_shared_too() -> None:
    potentials = {"a": Potential(time_share=0.5, distance=0.2), "b": Potential(time_share=0.5, distance=1.0)}
    far, loss = of_kernel("a", prior=20.0), of_kernel("b", prior=-1.0)
    means = means_of([far, loss], potentials)
    assert means["a"] == pytest.approx(-np.log(1 - 0.1))
    assert -0.4 < means["b"] < 0


def test_another_kernels_limit_is_no_reason_to_change_this_one() -> None:
    same = Potential(time_share=0.5, distance=1.0)
    seen = (bottleneck(BottleneckKind.COALESCING_LOAD).model_copy(update={"kernel": "void a<float>"}),)
    offered = [of_kernel(k, triggers=(BottleneckKind.COALESCING_LOAD,)) for k in "ab"]
    means = means_of(offered, {"a": same, "b": same}, seen)
    assert means["a"] > 2 * means["b"]


def test_a_lone_kernel_and_an_unknown_profile_change_nothing() -> None:
    lone = means_of([of_kernel("a")], {"a": Potential(time_share=0.1, distance=0.2)})
    assert lone == pytest.approx(means_of([of_kernel("a")], {}))
    both = {"a": Potential(time_share=0.5, distance=1.0), "b": Potential(time_share=0.5, distance=1.0)}
    assert 0 < means_of([of_kernel("gone")], both)["gone"] < means_of([of_kernel("a")], both)["a"]


def test_with_forecasts_other_kernels_have_a_third_of_the_places() -> None:
    hot = [
        proposal(f"// hot {i}\n", steps=[step(f"compute/h{i}", site="hot")], prior=1.0 + 0.1 * i)
        for i in range(6)
    ]
    others = [
        proposal(f"// {kernel}\n", steps=[step("compute/o", site=kernel)], prior=0.3) for kernel in "cdef"
    ]
    slate = [*hot, *others]
    gains = {p.id: p.predicted.log_speedup for p in slate}
    told = {r.proposal for r in rank(Policy("measured"), slate, take=6, forecasts=gains) if r.chosen}
    assert sum(p.id in told for p in hot) == 4
    assert sum(p.id in told for p in others) == 2
    # What promises next to nothing has no place of its own.
    small = [proposal(f"// s{k}\n", steps=[step("compute/o", site=k)], prior=0.0) for k in "cde"]
    gains |= {p.id: 0.0 for p in small}
    slate = [*hot, *small, others[3]]
    told = {r.proposal for r in rank(Policy("measured"), slate, take=6, forecasts=gains) if r.chosen}
    assert others[3].id in told
    assert not any(p.id in told for p in small)
