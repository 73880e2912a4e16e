"""A suite is a folder of task folders, each with a kernel.cu and a test.py."""

from __future__ import annotations

from pathlib import Path

from kernelskill.errors import TaskError, UnknownNameError
from kernelskill.resources import data_folder
from kernelskill.schema.base import Record
from kernelskill.tasks.spelling import listed, suggestion

TEST_FILE = "test.py"


class SuiteEntry(Record):
    """One task of a suite."""

    name: str
    """Name of its folder."""
    kernel: str
    tests: str


class Suite(Record):
    """A set of tasks in the order of their names."""

    name: str
    folder: str
    entries: tuple[SuiteEntry, ...]


def load_suite(name: str | Path) -> Suite:
    """Return the suite in a folder, or the packaged one of that name, such as `core`.

    Raises:
        UnknownNameError: There is no such folder and no packaged suite of that name.
        TaskError: The folder holds no task, or one without its kernel.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = _packaged(str(name))
    entries = tuple(_entry(path.parent) for path in sorted(folder.glob(f"*/{TEST_FILE}")))
    if not entries:
        raise TaskError(
            f"{str(folder)!r} holds no task folders", remedy="a task folder has a kernel.cu and a test.py"
        )
    return Suite(name=folder.name, folder=str(folder.resolve()), entries=entries)


def packaged_suites() -> tuple[str, ...]:
    """Return the names of the suites that come with kernelskill."""
    root = data_folder("benchmarks")
    return tuple(sorted({path.parent.parent.name for path in root.glob(f"*/*/{TEST_FILE}")}))


def _packaged(name: str) -> Path:
    known = packaged_suites()
    if name not in known:
        raise UnknownNameError(
            f"there is no suite folder {name!r}{suggestion(name, known)}",
            remedy=f"name a folder of task folders, or one of {listed(known)}",
        )
    return data_folder("benchmarks") / name


def _entry(folder: Path) -> SuiteEntry:
    kernels = sorted(folder.glob("*.cu"))
    if len(kernels) > 1:
        kernels = [path for path in kernels if path.name == "kernel.cu"]
    if len(kernels) != 1:
        raise TaskError(
            f"task folder {str(folder)!r} has no kernel.cu", remedy="keep one .cu file beside each test.py"
        )
    return SuiteEntry(
        name=folder.name, kernel=str(kernels[0].resolve()), tests=str((folder / TEST_FILE).resolve())
    )
