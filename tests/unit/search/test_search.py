import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.config import RunConfig
from kernelskill.errors import UnknownNameError
from kernelskill.runs import RunState
from kernelskill.schema.run import Spend
from kernelskill.search.budget import budget_of, exhausted, stop_reason
from kernelskill.search.frontier import best_member, updated_frontier
from kernelskill.search.strategy import beam, find_strategy, greedy
from tests.records import member, step


@given(st.lists(st.floats(0.5, 20), min_size=1, max_size=8), st.integers(1, 4))
def test_the_best_always_stays_and_the_frontier_is_bounded(speedups: list[float], size: int) -> None:
    members = [member(f"// {i}\n", s, step(site=str(i))) for i, s in enumerate(speedups)]
    frontier = updated_frontier([], members, size)
    assert len(frontier) == min(size, len(members))
    assert frontier[0] == best_member(members)
    assert frontier[0].speedup == max(speedups)


def test_a_level_step_stays_alive_but_is_never_the_best() -> None:
    best, step_ = member("// a\n", 1.0), member("// b\n", 1.1, proven=False)
    frontier = updated_frontier([best], [step_], 3)
    assert frontier == (best, step_)
    assert best_member(frontier) == best


def test_a_member_reached_by_the_same_skills_yields_to_another_way() -> None:
    first = member("// a\n", 3.0, step(factor="4"))
    twin = member("// b\n", 2.9, step(factor="8"))
    other = member("// c\n", 1.5, step("memory/tile"))
    assert updated_frontier([first], [twin, other], 2) == (first, other)


def test_of_equals_the_shorter_way_is_the_best() -> None:
    long = member("// a\n", 2.0, step(), step(site="other"))
    short = member("// b\n", 2.0, step())
    assert best_member([long, short]) == short


def test_beam_turns_to_a_level_member_once_the_best_was_expanded() -> None:
    best, level, far = member("// a\n", 2.0), member("// b\n", 1.99), member("// c\n", 1.2)
    frontier = [best, level, far]
    assert beam(frontier, {}) == [best]
    assert beam(frontier, {best.candidate.digest: 1}) == [best, level]
    assert beam(frontier, {best.candidate.digest: 1, level.candidate.digest: 1}) == [best]
    assert greedy(frontier, {}) == [best]
    with pytest.raises(UnknownNameError):
        find_strategy("bean")


def test_limits_stop_a_run_and_say_which() -> None:
    budget = budget_of(RunConfig(rounds=3, patience=2, budget_s=10, near_roof=0.9))
    assert exhausted(budget, Spend(device_seconds=10)) == "device_seconds"

    def reason(
        state: RunState, spend: Spend | None = None, roof: float | None = None, offered: int = 5
    ) -> str | None:
        return stop_reason(budget, spend or Spend(), state, roof_fraction=roof, offered=offered)

    assert reason(RunState()) is None
    assert reason(RunState(rounds=3)) == "rounds"
    assert reason(RunState(rounds_without_gain=2)) == "patience"
    assert reason(RunState(), roof=0.95) == "near_roof"
    assert reason(RunState(), offered=0) == "nothing_to_do"
    assert reason(RunState(), Spend(device_seconds=11)) == "device_seconds"
