from hypothesis import given
from hypothesis import strategies as st

from kernelskill.agents.families import place_of, points, shifted, site_families, size_of, steps_at
from kernelskill.schema.proposal import Choice, Effect, Skill, SkillParameter
from kernelskill.skills.apply import FoundStep
from kernelskill.skills.transformation import Site
from tests.records import step

FACTOR = SkillParameter(name="factor", values=("8", "4", "2"))
SKILL = Skill(
    id="compute/unroll",
    title="t",
    specialist="compute",
    mechanical=True,
    triggers=(),
    parameters=(FACTOR,),
    prior=Effect(log_speedup=0.1, deviation=0.1),
    summary="s",
    text="t",
    folder="f",
)


def found(kernel: str, loop: str, *own: SkillParameter) -> list[FoundStep]:
    site = Site(key=f"{kernel}/loop:{loop}", kernel=kernel, reason=f"{loop} is short", parameters=own)
    values = (own or (FACTOR,))[0].values
    return [FoundStep(step=step(site=site.key, factor=value), site=site, path="k.cu") for value in values]


def test_every_place_is_a_family_and_all_places_of_a_kernel_are_one_more() -> None:
    families = site_families(SKILL, [*found("k", "i"), *found("k", "j"), *found("other", "i")])
    assert [[s.label for s in family.steps] for family in families] == [
        ["unroll(factor=8) at k/loop:i", "unroll(factor=8) at k/loop:j"],
        ["unroll(factor=8) at k/loop:i"],
        ["unroll(factor=8) at k/loop:j"],
        ["unroll(factor=8) at other/loop:i"],
    ]
    assert families[0].choices == (Choice(name="factor", values=("8", "4", "2"), steps=(0, 1)),)
    assert families[0].reason == "2 places at once: i is short"


def test_places_go_together_at_the_values_that_both_take() -> None:
    few = SkillParameter(name="factor", values=("2", "8"))
    chain = site_families(SKILL, [*found("k", "i"), *found("k", "j", few)])[0]
    assert chain.choices[0].values == ("8", "2")
    none = SkillParameter(name="factor", values=("3",))
    families = site_families(SKILL, [*found("k", "i"), *found("k", "j", none)])
    assert [len(family.steps) for family in families] == [1, 1]
    assert families[1].choices == ()


def test_the_first_values_come_first_and_all_places_take_a_point() -> None:
    choices = (
        Choice(name="factor", values=("8", "4", "2"), steps=(0, 1)),
        Choice(name="shape", values=("a", "b"), steps=(1,)),
    )
    listed = points(choices, 4)
    assert listed == [("8", "a"), ("8", "b"), ("4", "a"), ("4", "b")]
    assert size_of(choices) == 6
    first, second = steps_at((step(factor="8"), step(factor="8", shape="a")), choices, ("4", "b"))
    assert (first.parameters, second.parameters) == (
        (("factor", "4"),),
        (("factor", "4"), ("shape", "b")),
    )
    assert [choice.steps for choice in shifted(choices, 2)] == [(2, 3), (3,)]


@given(st.lists(st.integers(1, 40), max_size=5), st.integers(1, 60))
def test_points_are_different_ordered_and_never_too_many(lengths: list[int], limit: int) -> None:
    choices = [
        Choice(name=f"p{i}", values=tuple(str(v) for v in range(n)), steps=(i,))
        for i, n in enumerate(lengths)
    ]
    listed = points(choices, limit)
    assert len(set(listed)) == len(listed) == min(limit, size_of(choices))
    places = [place_of(choices, values) for values in listed]
    assert places == sorted(places)
