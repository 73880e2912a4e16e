from __future__ import annotations

import random
import stat

import pytest

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.evaluation.seeds import SeedFile, SeedPool


def test_pools_are_kept_and_private(tmp_path):
    path = tmp_path / "seeds.json"
    first = SeedFile(path, random.Random(1)).pool(size=4)
    again = SeedFile(path, random.Random(2)).pool(size=4)
    assert first == again
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    fresh = SeedFile(path, random.Random(2)).pool("confirmation", size=4)
    assert fresh != first
    assert SeedFile(path).find(fresh.digest) == fresh
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_seeds_do_not_show():
    pool = SeedPool((12345678901234567, 2))
    assert "12345678901234567" not in repr(pool)
    assert len(pool.digest) == 64


def test_scripted_source_gives_the_same_pool():
    assert SeedPool.draw(3, random.Random(5)) == SeedPool.draw(3, random.Random(5))


def test_system_seeds_differ(tmp_path):
    assert SeedFile(tmp_path / "a.json").pool() != SeedFile(tmp_path / "b.json").pool()


def test_what_cannot_be_found_or_read_is_said(tmp_path):
    keeper = SeedFile(tmp_path / "seeds.json")
    with pytest.raises(HarnessError, match="no seed pool with digest 'abc'"):
        keeper.find("abc")
    keeper.path.write_text("{not json")
    with pytest.raises(ArtifactCorrupt, match="cannot be read back"):
        keeper.pool()
