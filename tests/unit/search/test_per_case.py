from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.schema.run import Member
from kernelskill.schema.task import Case, Task
from kernelskill.search.per_case import find_split, holds
from kernelskill.skills.size_dispatch import SizeCondition
from tests.records import evaluation, member, step, task, timing


def timed(*weights: float) -> Task:
    return task(
        [Case(index=i, arguments={"n": 10**i}, timed=True, weight=weight) for i, weight in enumerate(weights)]
    )


def of_times(name: str, *times: float, steps: int = 1) -> Member:
    made = member(f"// {name}\n", 1.0, *[step(site=f"{name}{i}") for i in range(steps)])
    timings = tuple(timing(ms, case) for case, ms in enumerate(times))
    return made.model_copy(update={"evaluation": evaluation(None).model_copy(update={"timings": timings})})


SIZES = {i: {"n": 10**i, "m": 5} for i in range(4)}


def test_each_runs_where_it_is_faster_and_the_original_elsewhere() -> None:
    original = of_times("original", 1.0, 1.0, 9.0, steps=0)
    wide = of_times("wide", 2.0, 2.0, 3.0)
    split = find_split(timed(1, 1, 1), [wide, original], SIZES, 0.01)
    assert split is not None
    assert (split.general, split.special) == (original, wide)
    assert split.condition == SizeCondition("n", "large", 100)
    assert split.gain == pytest.approx((log(9.0) - log(3.0)) / 3)
    assert holds(split.condition, 100)
    assert not holds(split.condition, 99)


def test_the_best_single_one_is_what_counts() -> None:
    original, wide = of_times("o", 1.0, 1.0, steps=0), of_times("w", 2.0, 0.5)
    assert find_split(timed(1, 1), [original, wide], SIZES, 0.01) is not None
    better = of_times("b", 0.7, 0.5)
    assert find_split(timed(1, 1), [original, wide, better], SIZES, 0.01) is None


def test_weights_decide_what_is_worth_it() -> None:
    original, wide = of_times("o", 1.0, 1.0, steps=0), of_times("w", 2.0, 0.9)
    split = find_split(timed(9, 1), [original, wide], SIZES, 0.0)
    assert split is not None
    assert split.gain == pytest.approx(0.1 * -log(0.9))
    assert find_split(timed(9, 1), [original, wide], SIZES, 0.02) is None


def test_sizes_that_do_not_separate_and_times_that_are_missing() -> None:
    original, wide = of_times("o", 1.0, 1.0, steps=0), of_times("w", 2.0, 0.5)
    same = {i: {"m": 5} for i in range(2)}
    assert find_split(timed(1, 1), [original, wide], same, 0.01) is None
    assert find_split(timed(1, 1), [original, wide], {0: {"n": 1}}, 0.01) is None
    assert find_split(timed(1, 1), [original, of_times("w", 2.0)], SIZES, 0.01) is None
    assert find_split(timed(1), [original, wide], SIZES, 0.01) is None
    interleaved = of_times("i", 0.5, 2.0, 0.5)
    flat = of_times("f", 1.0, 1.0, 1.0)
    split = find_split(timed(1, 1, 1), [flat, interleaved], SIZES, 0.01)
    assert split is None or split.gain < log(2) / 3 + 1e-9


times = st.lists(st.floats(0.1, 10), min_size=3, max_size=3)


@given(st.lists(times, min_size=1, max_size=4))
def test_a_split_is_never_slower_than_the_best_and_gains_what_it_says(rows: list[list[float]]) -> None:
    members = [of_times(str(i), *row) for i, row in enumerate(rows)]
    split = find_split(timed(1, 1, 1), members, SIZES, 0.01)
    if split is None:
        return
    picked = []
    for case in range(3):
        chosen = split.special if holds(split.condition, 10**case) else split.general
        found = chosen.evaluation.timing(case)
        assert found is not None
        picked.append(found.median_ms)
    best = min(sum(map(log, row)) / 3 for row in rows)
    assert exp(best - sum(map(log, picked)) / 3) == pytest.approx(exp(split.gain))
    assert split.gain >= 0.01
