"""`kernelskill evaluator report`: protocol, machine, zoo and noise, for people and for programs."""

from __future__ import annotations

import json

import pytest

from kernelskill.cli.main import run_program
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Status
from kernelskill.sweep.zoo import ZooKernel
from kernelskill.sweep.zoo_run import ZooOutcome, record_of


@pytest.fixture
def recorded(tmp_path):
    kernels = {
        "bad/one.cu": ((Status.INCORRECT,), Status.INCORRECT, ""),
        "bad/two.cu": ((Status.INCORRECT,), Status.PASSED, "nobody looks there"),
        "honest/three.cu": ((Status.PASSED,), Status.PASSED, ""),
    }
    outcomes = [
        ZooOutcome(
            kernel=ZooKernel(file=file, task="t", row="r", what="-", must=must, hole=hole),
            status=status,
            detail="",
            expected=must,
        )
        for file, (must, status, hole) in kernels.items()
    ]
    conditions = Conditions(device="emulated:h200", gpu="NVIDIA H200", evidence="estimated", cuda="13.0")
    record = record_of(conditions, outcomes, trials=3, left_out={"honest/four.cu": "needs a GPU"})
    (tmp_path / "zoo-emulated.json").write_text(record.model_dump_json())
    return tmp_path


def test_people_read_it(recorded, capsys):
    assert run_program(["evaluator", "report", "--results", str(recorded)]) == 0
    text = capsys.readouterr().out
    assert "falsely accepted   1 of 2 = 50.0% (exact 95% interval 1.3% to 98.7%)" in text
    assert "falsely rejected   0 of 1 = 0.0% (exact 95% interval 0.0% to 97.5%)" in text
    assert "bad/two: passed, must be incorrect; known: nobody looks there" in text
    assert "left out there: honest/four.cu" in text
    assert "Noise of the decision\n  not measured: no record in" in text
    assert "guard_bytes" in text
    assert "python" in text


def test_programs_read_it(recorded, capsys):
    assert run_program(["evaluator", "report", "--json", "--results", str(recorded)]) == 0
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["zoo"][0]["false_accept"]["count"] == 1
    assert sheet["noise"] == []
    assert {part["title"] for part in sheet["protocol"]} >= {"check", "time", "decide"}


def test_nothing_recorded_is_said(tmp_path, capsys):
    assert run_program(["evaluator", "report", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("not measured") == 2


def test_a_damaged_record_is_one_clear_line(recorded, capsys):
    (recorded / "zoo-emulated.json").write_text("{}")
    assert run_program(["evaluator", "report", "--results", str(recorded)]) == 6
    error = capsys.readouterr().err
    assert "zoo-emulated.json" in error
    assert "record it again" in error


def test_a_folder_that_is_none_is_refused(tmp_path, capsys):
    assert run_program(["evaluator", "report", "--results", str(tmp_path / "none")]) == 2
    assert "no folder" in capsys.readouterr().err
