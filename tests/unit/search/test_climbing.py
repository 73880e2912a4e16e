"""Which points of a family are looked at where every look tells how good it is."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kernelskill.agents.families import Values, neighbours, points, values_of
from kernelskill.schema.proposal import Choice
from kernelskill.search.climbing import climbed
from tests.records import step

CHOICES = (
    Choice(name="points", values=("8x8", "8x16", "4x4", "8x4", "4x8"), steps=(0,)),
    Choice(name="threads", values=("16x16", "8x16", "16x8", "8x8"), steps=(0,)),
    Choice(name="depth", values=("8", "16", "32"), steps=(0,)),
    Choice(name="copy", values=("registers", "double", "async"), steps=(1,)),
)
ORDER = points(CHOICES, 48)


def climb(good: dict[str, float], most: int = 36) -> tuple[list[Values], list[Values]]:
    """Return the points of a climb over sums of what values are worth, and all that were asked for."""
    asked: list[Values] = []

    def tell(wave: Sequence[Values]) -> dict[Values, float]:
        asked.extend(wave)
        return {values: sum(good.get(value, 0.0) for value in values) for values in wave}

    return climbed(CHOICES, ORDER[0], most, tell), asked


def test_a_point_far_down_all_lists_is_found() -> None:
    best = ("4x4", "8x8", "32", "async")
    found, asked = climb(dict.fromkeys(best, 1.0), most=60)
    assert found[0] == best
    assert len(asked) == len(set(asked)) < 5 * 4 * 3 * 3 / 3


def test_values_of_several_parameters_are_found_together_by_few_looks() -> None:
    found, asked = climb({"4x8": 0.2, "16": 0.1, "double": 0.05})
    assert {"4x8", "16", "double"} < set(found[0])
    assert len(asked) <= 36


def test_no_more_is_asked_than_may_be_and_the_first_point_is_asked_first() -> None:
    found, asked = climb({"4x4": 1.0, "8x8": -0.5}, most=7)
    assert len(asked) == 7
    assert asked[0] == ORDER[0]
    assert sorted(found) == sorted(asked)


def test_what_nothing_can_be_said_of_is_left_out() -> None:
    assert climbed(CHOICES, ORDER[0], 36, lambda wave: {}) == []
    known = climbed(
        CHOICES, ORDER[0], 36, lambda wave: {values: 1.0 for values in wave if "double" in values}
    )
    assert known
    assert all("double" in values for values in known)


@given(st.integers(0, len(ORDER) - 1))
def test_neighbours_differ_in_one_value_and_the_nearest_come_first(place: int) -> None:
    own = ORDER[place]
    near = neighbours(CHOICES, own)
    assert len(near) == len(set(near)) == sum(len(choice.values) - 1 for choice in CHOICES)
    assert all(sum(a != b for a, b in zip(own, other, strict=True)) == 1 for other in near)


def test_steps_tell_their_point() -> None:
    steps = (step(points="8x4", threads="8x8", depth="16"), step(copy="async"))
    assert values_of(CHOICES, steps) == ("8x4", "8x8", "16", "async")
