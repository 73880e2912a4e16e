from pathlib import Path

import pytest

from kernelskill.errors import ArtifactCorrupt, UsageError
from kernelskill.runs import RunFolder, write_atomically
from kernelskill.schema.run import Spend


def test_records_are_kept_and_come_back(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run with space \u00e9")
    folder.put("spends", "a", Spend(seconds=2.0))
    assert folder.get("spends", "a", Spend) == Spend(seconds=2.0)
    assert folder.has("spends", "a")
    assert not folder.has("spends", "b")


def test_a_missing_or_damaged_record_is_named(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path)
    with pytest.raises(ArtifactCorrupt, match=r"a\.json"):
        folder.get("spends", "a", Spend)
    write_atomically(tmp_path / "spends" / "a.json", b"{")
    with pytest.raises(ArtifactCorrupt, match=r"a\.json"):
        folder.get("spends", "a", Spend)


def test_a_folder_with_a_run_is_not_started_over(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"kind":"run_started"}\n')
    RunFolder.create(tmp_path)
    (tmp_path / "events.jsonl").write_text('{"kind":"baseline_measured"}\n')
    with pytest.raises(UsageError, match="already holds a run") as error:
        RunFolder.create(tmp_path)
    assert "resume" in error.value.remedy


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        RunFolder.open(tmp_path)


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot write") as error:
        RunFolder.create(tmp_path / "file" / "run")
    assert "--out" in error.value.remedy


def test_an_atomic_write_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"1")
    write_atomically(tmp_path / "a", b"2")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"2"


def test_only_what_killed_processes_began_to_write_is_removed(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run")
    kept = ["events.jsonl", ".lock", "judgements/abc.json", "sources/.hidden.cu", "sources/.a.12.b"]
    left = ["judgements/.abc.json.5053.57b0514c", ".report.md.1.00000000"]
    for name in (*kept, *left):
        (run.root / name).parent.mkdir(exist_ok=True)
        (run.root / name).touch()
    run.remove_unfinished_files()
    assert sorted(str(p.relative_to(run.root)) for p in run.root.rglob("*") if p.is_file()) == sorted(kept)
