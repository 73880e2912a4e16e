"""A whole run on the emulated device, from files to files, as a user starts it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.flow.small_task import (
    KERNEL,
    json_lines,
    kernelskill,
    kinds,
    of_kind,
    optimised,
    program,
    section,
    write_task,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a space and an umlaut, holding the task and one finished run in `out`."""
    folder = tmp_path_factory.mktemp("flow") / "my t\u00e4sk"
    write_task(folder)
    done = program("run", "kernel.cu", "-t", "test.py", "--no-learn", "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def report(work: Path) -> str:
    return (work / "out" / "report.md").read_text(encoding="utf-8")


def test_the_events_tell_the_run_in_order(work: Path) -> None:
    found = kinds(work / "out")
    first = [kind for kind in dict.fromkeys(found) if kind != "note"]
    if "searched" in first:
        first.remove("searched")
    assert first == [
        "run_started",
        "baseline_measured",
        "round_started",
        "diagnosed",
        "proposed",
        "ranked",
        "evaluated",
        "judged",
        "learned",
        "round_finished",
        "observed",
        "confirmed",
        "run_finished",
    ]
    assert found.count("round_started") == found.count("round_finished") == 2
    whole = [event for event in of_kind(work / "out", "evaluated") if event.depth == "search"]
    assert len(whole) == found.count("judged")
    assert len(of_kind(work / "out", "evaluated")) - len(whole) >= 2 * found.count("searched")
    log = (work / "out" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in log] == list(range(len(log)))


def test_the_settings_of_the_file_are_used(work: Path) -> None:
    started = of_kind(work / "out", "run_started")[0]
    assert (started.config["slate"], started.config["rounds"], started.config["device"]) == (3, 2, "emulated")
    assert all(len(event.chosen) <= 3 for event in of_kind(work / "out", "ranked"))


def test_the_terminal_says_what_happened(work: Path) -> None:
    text = (work / "stdout.txt").read_text()
    assert "emulated: times are estimates" in text
    assert re.search(r"^column_means: estimated \d\.\d+x in \d accepted changes?$", text, re.MULTILINE)
    assert re.search(r"^  rows=200, cols=300: ~[\d.]+ us -> ~[\d.]+ us$", text, re.MULTILINE)
    assert "  source  out/result/kernel.cu\n" in text
    assert "\x1b" not in text


def test_the_report_has_everything_a_reader_needs(report: str) -> None:
    assert re.match(r"# column_means: estimated \d", report)
    assert "**estimated**" in report
    assert "nothing was measured on a GPU" in report
    assert "| rows=200, cols=300 | ~" in section(report, "Timed cases")
    assert "```diff" in section(report, "Accepted changes")
    assert "alias" in section(report, "Assumptions") or "overlap" in section(report, "Assumptions")
    assert section(report, "Not verified").strip()
    assert re.search(
        r"\| (up|down|same) \| (\d+ of \d+|not observed) \|", section(report, "What skills predicted")
    )
    conditions = section(report, "Conditions")
    assert "| ceilings | data sheet |" in conditions
    for word in ("emulated:h200", "NVIDIA H200", "compiler", "kernelskill", "Python", "Linux", "estimated"):
        assert word in conditions
    assert "nvcc" in section(report, "Reproduce")
    assert "kernelskill check" in section(report, "Reproduce")


def test_every_table_of_the_report_is_whole(report: str) -> None:
    width = 0
    for line in report.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert width in (0, cells), line
            width = cells
        else:
            width = 0


def test_the_result_passes_the_check_of_its_own_test(work: Path) -> None:
    candidate = work / "out" / "result" / "kernel.cu"
    assert candidate.read_text() != KERNEL
    done = optimised("check", "kernel.cu", "-t", "test.py", "--candidate", candidate, cwd=work)
    assert "passed: " in done.stdout


def test_a_wrong_candidate_does_not_pass_the_check(work: Path) -> None:
    (work / "wrong.cu").write_text(KERNEL.replace("0.5 *", "0.25 *"))
    done = kernelskill("check", "kernel.cu", "-t", "test.py", "--candidate", "wrong.cu", "--cheap", cwd=work)
    assert done.returncode == 1
    assert "incorrect: case rows=3, cols=5: m[0]" in done.stdout


def test_the_patches_lead_from_the_original_to_the_result(work: Path, tmp_path: Path) -> None:
    shutil.copy(work / "kernel.cu", tmp_path / "kernel.cu")
    patches = sorted((work / "out" / "patches").glob("*.patch"))
    assert patches
    for patch in patches:
        subprocess.run(
            ["patch", "-p1", "-i", str(patch)], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL
        )
    assert (tmp_path / "kernel.cu").read_bytes() == (work / "out" / "result" / "kernel.cu").read_bytes()


def test_the_reproducer_compiles(work: Path, tmp_path: Path) -> None:
    source = work / "out" / "result" / "reproducer.cu"
    subprocess.run(
        ["nvcc", "-arch=sm_90", "-c", "-o", str(tmp_path / "r.o"), str(source)], check=True, timeout=120
    )
    assert "-arch=native" in source.read_text()


def test_the_folder_can_be_read_anywhere(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "out", tmp_path / "elsewhere")
    done = optimised("report", tmp_path / "elsewhere", cwd=tmp_path)
    assert done.stdout == (work / "out" / "report.md").read_text()
    figures = json.loads(optimised("report", "elsewhere", "--json", cwd=tmp_path).stdout)
    assert figures["improved"] is True
    assert figures["evidence"] == "estimated"
    assert figures["accepted"]
    assert any(row["observed"] for row in figures["predictions"])
    assert all((tmp_path / "elsewhere" / name).is_file() for name in figures["files"])


def test_seeds_stay_secret(work: Path) -> None:
    seeds = work / "out" / "seeds.json"
    assert seeds.stat().st_mode & 0o077 == 0
    numbers = [str(n) for pool in json.loads(seeds.read_text()).values() for n in pool]
    others = [p for p in (work / "out").rglob("*") if p.is_file() and p != seeds]
    assert others
    assert not any(n.encode() in p.read_bytes() for p in others for n in numbers)


def test_the_original_files_are_untouched_and_a_second_run_is_refused_at_once(work: Path) -> None:
    assert (work / "kernel.cu").read_bytes() == KERNEL.encode()
    done = kernelskill("run", "kernel.cu", "-t", "test.py", "--out", "out", cwd=work)
    assert done.returncode == 2
    assert "already holds a run" in done.stderr
    assert "kernelskill resume out" in done.stderr


def test_json_is_all_that_stands_on_standard_output_and_the_limit_of_device_time_holds(work: Path) -> None:
    done = program(
        "run", "kernel.cu", "-t", "test.py", "--json", "--budget", "1ms", "--rounds", "9", "--no-learn",
        "--out", "budget", cwd=work,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = list(json_lines(done.stdout))
    assert [line["kind"] for line in lines][:2] == ["run_started", "baseline_measured"]
    assert lines[-1]["kind"] == "result"
    assert lines[-1]["run"] == "budget"
    assert of_kind(work / "budget", "run_finished")[0].reason == "device_seconds"
    # The first candidate uses the budget up; what was chosen beside it is not evaluated any more.
    assert len(of_kind(work / "budget", "evaluated")) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--rounds", "0"], "rounds"),
        (["--wall", "1ms"], "seconds"),
        (["--keep-exact", "--patience", "1"], None),
    ],
)
def test_limits_end_a_run_with_their_name(work: Path, options: list[str], reason: str | None) -> None:
    out = work / ("limit" + "".join(options))
    done = optimised(
        "run", "kernel.cu", "-t", "test.py", "-q", "--no-learn", *options, "--out", out, cwd=work
    )
    finished = of_kind(out, "run_finished")[0]
    if reason is not None:
        assert finished.reason == reason
        assert not of_kind(out, "evaluated")
        assert "no change accepted" in done.stdout
        assert (out / "result" / "kernel.cu").read_text() == KERNEL
        assert not (out / "patches").exists()
    else:
        proposed = [label for event in of_kind(out, "proposed") for label in event.labels]
        assert proposed
        assert not any("float_literals" in label or "accumulators" in label for label in proposed)
        refusals = {r.skill: r.reason for event in of_kind(out, "proposed") for r in event.refusals}
        assert "--keep-exact" in refusals["compute/float_literals"]
        assert "may round otherwise" not in (out / "report.md").read_text()
