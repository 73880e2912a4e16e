"""Chains of shipped skills on ordinary kernels."""

from __future__ import annotations

import pytest

from kernelskill.agents.brief import Brief
from kernelskill.agents.chains import LONGEST, MOST_CHAINS
from kernelskill.agents.specialist import combined, propose
from kernelskill.policy.features import FEATURE_NAMES, feature_row
from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate, Lineage
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext
from tests.records import bottleneck, task

LIBRARY = SkillLibrary.load([data_folder("skills")])
SUMS = """\
__global__ void sums(const float *x, float *y, int n)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < n) {
        y[c] = 0.0f;
        for (int r = 0; r < n; ++r)
            y[c] += x[r * n + c];
    }
}

__global__ void untouched(float *y) { for (int i = 0; i < 64; ++i) y[i * 64 + threadIdx.x] *= 2.0f; }

extern "C" void scale(const float *x, float *y, int n)
{
    sums<<<(n + 127) / 128, 128>>>(x, y, n);
    untouched<<<1, 64>>>(y);
}
"""
BASE = Candidate.of("kernel.cu", {"kernel.cu": SUMS})


def offered(specialist: str, *, keep_exact: bool = False, only: str = "") -> list[Proposal]:
    brief = Brief(
        base=BASE,
        lineage=Lineage(),
        task=task(),
        only_kernel=only,
        keep_exact=keep_exact,
        tried=frozenset(),
    )
    return list(propose(specialist, brief, LIBRARY).proposals)


def skills_of(proposal: Proposal) -> list[str]:
    return list(dict.fromkeys(step.skill for step in proposal.steps))


@pytest.fixture(scope="module")
def memory() -> list[Proposal]:
    return offered("memory")


def test_names_of_other_skills_are_names_of_skills() -> None:
    known = {skill.id for skill in LIBRARY.all()}
    for skill in LIBRARY.all():
        assert set(skill.enables) | set(skill.after) <= known, skill.id
        assert skill.id not in {*skill.enables, *skill.after}
        assert {other.id for other in LIBRARY.followers(skill)} >= {
            name for name in skill.enables if LIBRARY.get(name).mechanical
        }


def test_a_sum_goes_to_a_register_is_unrolled_and_bounded_in_one_proposal(memory: list[Proposal]) -> None:
    chains = [proposal for proposal in memory if len(skills_of(proposal)) > 1]
    wanted = ["memory/accumulate_in_register", "compute/unroll", "parallelism/launch_bounds"]
    (chain,) = [proposal for proposal in chains if skills_of(proposal) == wanted]
    assert "__launch_bounds__" in chain.candidate.source
    assert "#pragma unroll" in chain.candidate.source
    assert {choice.name for choice in chain.choices} == {"factor", "blocks"}
    assert all(chain.steps[p].site.startswith("sums") for choice in chain.choices for p in choice.steps)
    assert len(chain.parts) == 3
    assert chain.predicted.log_speedup == pytest.approx(sum(part.log_speedup for part in chain.parts))


def test_chains_are_few_short_and_different(memory: list[Proposal]) -> None:
    chains = [proposal for proposal in memory if proposal.parts]
    assert 0 < len(chains) <= MOST_CHAINS
    assert all(1 < len(skills_of(chain)) == len(chain.parts) <= LONGEST for chain in chains)
    assert len({proposal.candidate.digest for proposal in memory}) == len(memory)


def test_a_chain_is_worth_the_sum_of_its_skills_each_as_far_as_it_fits(memory: list[Proposal]) -> None:
    chain = next(proposal for proposal in memory if len(proposal.parts) == 3)
    first, *_ = [p for p in memory if p.steps == chain.steps[:1]]
    prior = FEATURE_NAMES.index("prior")
    seen = [bottleneck(BottleneckKind.LATENCY, 0.8)]
    rows = [feature_row(proposal, seen, {}) for proposal in (first, chain)]
    assert rows[1][prior] > rows[0][prior]
    unseen = [bottleneck(BottleneckKind.DIVERGENCE, 0.8)]
    assert feature_row(chain, unseen, {})[prior] < rows[1][prior]


def test_what_is_not_permitted_is_in_no_chain(memory: list[Proposal]) -> None:
    reordering = "compute/independent_accumulators"
    assert any(reordering in skills_of(proposal) for proposal in memory)
    kept = offered("memory", keep_exact=True)
    assert not any(reordering in skills_of(proposal) for proposal in kept)


def test_only_one_kernel_is_chained_where_only_one_may_change() -> None:
    for proposal in offered("memory", only="sums"):
        assert all(step.site.startswith("sums") for step in proposal.steps)


def test_everything_that_goes_together_is_combined_and_what_does_not_is_left() -> None:
    single = [p for s in ("compute", "parallelism") for p in offered(s, only="untouched") if not p.parts]
    unroll = next(p for p in single if skills_of(p) == ["compute/unroll"])
    bounds = next(p for p in single if skills_of(p) == ["parallelism/launch_bounds"])
    gone = bounds.model_copy(
        update={"steps": (bounds.steps[0].model_copy(update={"site": "no_such_kernel"}),)}
    )
    context = SkillContext(task=task())
    both = combined(unroll, [gone, bounds], LIBRARY, context)
    assert isinstance(both, Proposal)
    assert both.steps == bounds.steps
    assert both.base == unroll.candidate.digest
    assert not isinstance(combined(unroll, [gone], LIBRARY, context), Proposal)
