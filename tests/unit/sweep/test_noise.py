"""Recording noise: decisions as a run makes them, compilations beside them, a journal that goes on."""

from __future__ import annotations

import importlib.util
import random
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.sweep.noise import BuildLoad, Decision, NoiseBench, tally
from kernelskill.tasks.load import LoadedTask
from kernelskill.tasks.testsource import read_test_source

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))
import scripted_backend as scripted

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "noise" / "run.py"


@pytest.fixture(scope="module")
def program():
    specification = importlib.util.spec_from_file_location("noise_program", PROGRAM)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def decision(kind, verdict=VerdictKind.TIE):
    return Decision(
        kind=kind, verdict=verdict, ratio=1.0, low=0.99, high=1.01, pairs=30, candidate_ms=1.0, seconds=2.0, builds=3
    )  # fmt: skip


def test_decisions_are_made_beside_compilations(tmp_path):
    (tmp_path / "test.py").write_text(scripted.TESTS)
    text = "// scripted: right ms=1.0 spread=0.01\nconstexpr int EXTRA = 30;\n"
    original = Candidate.of("kernel.cu", {"kernel.cu": text})
    loaded = LoadedTask(
        task=scripted.make_task(original), original=original, tests=read_test_source(tmp_path / "test.py")
    )
    backend = scripted.ScriptedBackend()
    bench = NoiseBench(
        backend, loaded, tmp_path / "work", seeds=SeedFile(tmp_path / "seeds.json", random.Random(1)),
        clock=SystemClock(), gain=0.03,
    )  # fmt: skip
    with closing(bench):
        bench.prepare()
        found = [bench.decide("same"), bench.decide("gain")]
    assert [each.kind for each in found] == ["same", "gain"]
    assert all(each.verdict is not VerdictKind.ACCEPTED for each in found), "the fake knows no extra work"
    assert sum(each.builds for each in found) > 0
    assert found[0].pairs >= 12


def test_a_load_that_is_none_is_told():
    def fails(number):
        raise HarnessError("no compiler")

    load = BuildLoad(fails, reserve=False)
    with pytest.raises(HarnessError, match="no compiler"):
        load.close()


def test_rates_are_counted_by_kind():
    found = [decision("same"), decision("same"), decision("gain", VerdictKind.ACCEPTED), decision("gain")]
    assert (tally(found, "same").count, tally(found, "same").of) == (0, 2)
    assert tally(found, "gain").share == 0.5


def test_both_kinds_are_spread_over_the_recording(program):
    made, wanted = [], {"same": 6, "gain": 2}
    while (kind := program._next_kind(made, wanted)) is not None:
        made.append(decision(kind))
    kinds = [each.kind for each in made]
    assert (kinds.count("same"), kinds.count("gain")) == (6, 2)
    assert "gain" in kinds[:4]


def test_a_journal_goes_on_where_it_was_cut_off(program, tmp_path):
    journal = tmp_path / "noise.decisions.jsonl"
    assert program._read(journal) == []
    for kind in ("same", "gain"):
        program._append(journal, decision(kind))
    with journal.open("a") as stream:
        stream.write('{"kind":"sa')
    assert [each.kind for each in program._read(journal)] == ["same", "gain"]
    program._append(journal, decision("same"))
    assert len(program._read(journal)) == 3
    journal.write_text("{}\n")
    with pytest.raises(ArtifactCorrupt, match="no decision"):
        program._read(journal)


def test_an_impossible_gain_is_refused(program, tmp_path, capsys):
    with pytest.raises(SystemExit):
        program.main(["--out", str(tmp_path / "x.json"), "--gain", "3"])
    assert "give 0.03 for three percent" in capsys.readouterr().err
