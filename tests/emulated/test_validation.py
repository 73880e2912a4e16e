"""The programs that hold estimates against measurements: what they say of records, and of bad ones."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from kernelskill.schema.profile import BottleneckKind

FOLDER = Path(__file__).parents[2] / "benchmarks" / "emulation"


def rows(evidence: str, times: dict[str, dict[str, float]]) -> str:
    """Return a record: task to label to milliseconds; every variant is timed beside an original of 10 ms."""
    conditions = {"device": "here", "gpu": "NVIDIA H200", "evidence": evidence}
    lines = [
        {
            "task": task,
            "label": label,
            "candidate": label,
            "status": "passed",
            "median_ms": ms,
            "original_ms": 10.0,
            "conditions": conditions,
        }
        for task, own in times.items()
        for label, ms in own.items()
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_order_regret_and_margin_are_those_of_the_records(tmp_path):
    measured, estimated, out = tmp_path / "m.jsonl", tmp_path / "e.jsonl", tmp_path / "out.json"
    measured.write_text(
        rows("measured", {"one": {"a": 1, "b": 2, "c": 4}, "two": {"a": 2.0, "b": 1.0, "c": 20}})
    )
    estimated.write_text(
        rows("estimated", {"one": {"a": 3, "b": 5, "c": 6}, "two": {"a": 1.0, "b": 2.0, "c": 30}})
    )
    done = run("validate.py", "compare", measured, estimated, "--out", out)
    assert done.returncode == 1, done.stderr  # two kernels are too few to meet the bar
    found = json.loads(out.read_text())
    by_task = {kernel["task"]: kernel for kernel in found["kernels"]}
    assert by_task["one"]["rank_correlation"] == 1
    assert by_task["one"]["regret"] == 0
    assert by_task["one"]["variants"] == 4
    assert by_task["two"]["rank_correlation"] == 0.8
    assert by_task["two"]["regret"] == 1
    assert not found["met"]
    assert found["margin"] >= 1  # an estimated factor of two was wrong once


def test_bad_records_are_named_in_one_line(tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"task": "one"}\n')
    for arguments, part in (
        (["compare", broken], "line 1"),
        (["compare", tmp_path / "none.jsonl"], "none.jsonl"),
        (["time", "--only", "nothing", "--out", tmp_path / "x"], "no variants of nothing"),
    ):
        done = run("validate.py", *arguments)
        assert done.returncode != 0
        assert part in done.stderr
        assert "Traceback" not in done.stderr


def test_every_pattern_has_its_files_and_a_table_of_what_may_be_said():
    table = tomllib.loads((FOLDER / "patterns" / "diagnoses.toml").read_text())
    folders = {place.parent.name for place in (FOLDER / "patterns").glob("*/kernel.cu")}
    assert folders == set(table)
    kinds = {kind.value for kind in BottleneckKind}
    for name, row in table.items():
        assert (FOLDER / "patterns" / name / "test.py").is_file()
        assert {*row["first"], *row.get("must", [])} <= kinds
        assert row["why"]
        assert row["fault"]


def test_counts_are_compared_by_name(tmp_path):
    figure = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    lines = []
    for source, sectors in (("ncu", 1000.0), ("trace", 1030.0)):
        kernel = {"kernel": "k", "launches": 1, "time_share": 1, "grid": [1, 1, 1], "block": [1, 1, 1]}
        profile = {"candidate": "c", "case": 0, "source": source, "conditions": {"device": "d", "gpu": "g"}}
        profile["kernels"] = [kernel | {"metrics": {figure: sectors}}]
        lines.append(json.dumps({"name": "one", "profile": profile}))
    for line, name in zip(lines, ("gpu", "trace"), strict=True):
        (tmp_path / name).write_text(line + "\n")
    done = run("counts.py", tmp_path / "gpu", tmp_path / "trace")
    assert done.returncode == 1
    assert "1000 measured, 1030 traced" in done.stdout
    assert "0 of 1 counts" in done.stdout
