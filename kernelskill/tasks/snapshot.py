"""Keep a loaded task in a folder, so that it can be taken up again elsewhere without compiler or parser."""

from __future__ import annotations

import shutil
from pathlib import Path

from kernelskill.errors import ArtifactCorrupt, TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Task
from kernelskill.tasks.testsource import TestSource, read_test_source

TASK_FILE = "task.json"
SOURCES_FOLDER = "original"
TESTS_FOLDER = "tests"


class Snapshot(Record):
    """A task as it lies in a folder."""

    version: int = 1
    task: Task
    main: str
    """Path of the kernel file inside the sources' folder."""
    files: tuple[str, ...]
    tests: TestSource
    generated: str = ""
    assumptions: tuple[str, ...] = ()


class StoredTask(Record):
    """A task read back from a snapshot."""

    task: Task
    original: Candidate
    tests: TestSource
    """With the snapshot's own folder."""
    generated: str = ""
    assumptions: tuple[str, ...] = ()


def write_snapshot(
    folder: Path,
    task: Task,
    original: Candidate,
    tests: TestSource,
    *,
    generated: str = "",
    assumptions: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Write task.json, the sources and the test with its files into `folder`.

    Returns:
        Files of the test that were too large to carry.

    Raises:
        TaskError: The test changed since it was loaded.
    """
    if read_test_source(tests.path).digest != tests.digest:
        raise TaskError(f"{tests.main} changed since the task was loaded", remedy="start again")
    for file in original.files:
        _write(folder / SOURCES_FOLDER / file.path, file.text.encode())
    for name in tests.files:
        _copy(Path(tests.folder) / name, folder / TESTS_FOLDER / name)
    snapshot = Snapshot(
        task=task,
        main=original.main,
        files=tuple(file.path for file in original.files),
        tests=tests.model_copy(update={"folder": ""}),
        generated=generated,
        assumptions=assumptions,
    )
    # The record comes last: a folder without it is no snapshot.
    _write(folder / TASK_FILE, snapshot.model_dump_json(indent=1).encode())
    return tests.left_behind


def read_snapshot(folder: Path) -> StoredTask:
    """Read a task back.

    Raises:
        TaskError: The folder holds no task.
        ArtifactCorrupt: Its files are not what was written.
    """
    try:
        text = (folder / TASK_FILE).read_text(encoding="utf-8")
    except OSError:
        raise TaskError(f"{str(folder)!r} holds no {TASK_FILE}", remedy="name a run folder") from None
    try:
        snapshot = Snapshot.model_validate_json(text)
        texts = {name: (folder / SOURCES_FOLDER / name).read_bytes().decode() for name in snapshot.files}
        original = Candidate.of(snapshot.main, texts)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactCorrupt(f"the task in {str(folder)!r} cannot be read back: {reason}") from None
    tests_folder = (folder / TESTS_FOLDER).resolve()
    tests = snapshot.tests.model_copy(update={"folder": str(tests_folder), "left_behind": ()})
    if original.digest != snapshot.task.original:
        raise ArtifactCorrupt(f"the sources in {str(folder)!r} are not those of its task")
    found = read_test_source(tests_folder / tests.main)
    if found.files != tests.files or (not snapshot.tests.left_behind and found.digest != tests.digest):
        raise ArtifactCorrupt(f"the tests in {str(folder)!r} are not those of its task")
    return StoredTask(
        task=snapshot.task,
        original=original,
        tests=found,
        generated=snapshot.generated,
        assumptions=snapshot.assumptions,
    )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(data)
    draft.replace(path)


def _copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.resolve() != destination.resolve():
        shutil.copyfile(source, destination)
