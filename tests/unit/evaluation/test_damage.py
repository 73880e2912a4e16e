from __future__ import annotations

import random

import numpy as np
import pytest

from kernelskill.evaluation.damage import DAMAGE, damaged, later_calls


@pytest.mark.parametrize("elements", [1, 7, 8, 1000])
def test_one_stretch_of_whole_elements_is_overwritten(tmp_path, elements):
    answer = tmp_path / "y.now"
    np.random.default_rng(elements).random(elements).tofile(answer)
    before = np.fromfile(answer, np.uint64)
    after = np.fromfile(damaged(answer, 8, tmp_path), np.uint64)
    changed = np.flatnonzero(before != after)
    assert len(changed) == max(1, elements // 8)
    assert changed[-1] - changed[0] + 1 == len(changed)
    assert set(after[changed].tobytes()) == {DAMAGE}
    assert (np.fromfile(answer, np.uint64) == before).all(), "the answer itself stays"


def test_where_and_how_often_follow_from_the_answer(tmp_path):
    places, counts = set(), set()
    for seed in range(12):
        answer = tmp_path / f"{seed}.now"
        answer.write_bytes(random.Random(seed).randbytes(400))
        copy = damaged(answer, 4, tmp_path).read_bytes()
        assert copy == damaged(answer, 4, tmp_path).read_bytes()
        places.add(copy.index(bytes([DAMAGE]) * 40))
        counts.add(later_calls(answer))
    assert len(places) > 4
    assert len(counts) > 4
    assert min(counts) >= 24
