"""What an evaluator needs of a loaded task, and how that reaches a worker on another machine."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Protocol

from kernelskill.errors import ArtifactCorrupt
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Task
from kernelskill.tasks.snapshot import TASK_FILE, StoredTask, read_snapshot, write_snapshot
from kernelskill.tasks.testsource import TestSource


class TaskParts(Protocol):
    """A task, its original kernel and its tests; both a loaded and a stored task are one."""

    @property
    def task(self) -> Task:
        """The facts."""

    @property
    def original(self) -> Candidate:
        """The user's own kernel."""

    @property
    def tests(self) -> TestSource:
        """Where test.py lies."""

    @property
    def generated(self) -> str:
        """The launcher that was made for a bare kernel; empty where the user wrote one."""


def publish_task(parts: TaskParts, folder: Path) -> None:
    """Put a task under its digest into `folder`, whole or not at all."""
    digest = parts.task.content_digest()
    place = folder / digest
    if (place / TASK_FILE).is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{digest[:16]}.{secrets.token_hex(4)}"
    try:
        write_snapshot(temporary, parts.task, parts.original, parts.tests)
        try:
            temporary.rename(place)
        except OSError:
            # Another client published the same task first.
            if not (place / TASK_FILE).is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def fetch_task(folder: Path, digest: str) -> StoredTask:
    """Return the task that lies under its digest.

    Raises:
        TaskError: It has not arrived.
        ArtifactCorrupt: It has not arrived completely, or is not what was sent.
    """
    stored = read_snapshot(folder / digest)
    if stored.task.content_digest() != digest:
        raise ArtifactCorrupt(f"the task in {str(folder / digest)!r} is not the one that its folder names")
    return stored
