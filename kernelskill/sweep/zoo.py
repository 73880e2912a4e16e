"""The zoo: kernels that try to fool the evaluator, and honest ones that must not be refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, model_validator

from kernelskill.errors import TaskError, UnknownNameError, UsageError
from kernelskill.schema.base import Record
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Status
from kernelskill.tasks.spelling import listed, suggestion

MANIFEST = "zoo.toml"
TASKS = "tasks"


class ZooKernel(Record):
    """One kernel of the zoo and what must become of it."""

    file: str
    """Below the zoo's folder; `bad/...` or `honest/...`."""
    task: str
    """Folder below `tasks`; the kernel stands in for that task's own."""
    row: str
    """Key of the catalogue: the kind of cheat or mistake, or of what only looks like one."""
    what: str
    """What it does, in one line."""
    must: tuple[Status, ...]
    """Statuses of which it must get one."""
    must_measured: tuple[Status, ...] = ()
    """The same on a GPU, where other ways lead to the same end; empty: as `must`."""
    where: Literal["everywhere", "gpu"] = "everywhere"
    reason: str = ""
    """Why it runs on a GPU only."""
    hole: str = ""
    """Why the evaluator does not catch it yet; it counts as falsely accepted all the same."""

    @model_validator(mode="after")
    def _check(self) -> ZooKernel:
        if self.file.partition("/")[0] not in ("bad", "honest"):
            raise ValueError("a file lies in bad/ or honest/")
        if not self.must:
            raise ValueError(f"{self.file}: name at least one status in must")
        if (self.where == "gpu") != bool(self.reason):
            raise ValueError(f"{self.file}: a reason belongs to a kernel that runs on a GPU only")
        if self.is_bad == (Status.PASSED in (*self.must, *self.must_measured)):
            raise ValueError(f"{self.file}: a bad kernel must not pass, an honest one must")
        return self

    @property
    def is_bad(self) -> bool:
        """Whether accepting it would be a mistake."""
        return self.file.startswith("bad/")

    @property
    def name(self) -> str:
        """The file without its ending."""
        return self.file.removesuffix(".cu")

    def expected(self, evidence: Evidence) -> tuple[Status, ...]:
        """Return the statuses of which it must get one."""
        return self.must_measured or self.must if evidence == "measured" else self.must

    def runs_on(self, evidence: Evidence) -> bool:
        """Whether a device of that evidence can show anything about it."""
        return self.where == "everywhere" or evidence == "measured"


class Zoo(Record):
    """All kernels with the catalogue they belong to."""

    folder: str
    rows: dict[str, str]
    """Key of the catalogue to its meaning."""
    kernels: tuple[ZooKernel, ...]

    def select(self, names: tuple[str, ...]) -> tuple[ZooKernel, ...]:
        """Return the kernels of these names, files or catalogue rows in order; all for none.

        Raises:
            UnknownNameError: There is none of that name.
        """
        if not names:
            return self.kernels
        known = {name for k in self.kernels for name in (k.name, k.file, k.row)}
        for name in names:
            if name not in known:
                raise UnknownNameError(
                    f"the zoo has no kernel or row {name!r}{suggestion(name, sorted(known))}",
                    remedy=f"rows are {listed(sorted(self.rows))}",
                )
        return tuple(k for k in self.kernels if not {k.name, k.file, k.row}.isdisjoint(names))

    def source(self, kernel: ZooKernel) -> str:
        """Return the text of a kernel."""
        return (Path(self.folder) / kernel.file).read_text(encoding="utf-8")

    def task_files(self, task: str) -> tuple[Path, Path]:
        """Return kernel and test of a base task."""
        folder = Path(self.folder) / TASKS / task
        return folder / "kernel.cu", folder / "test.py"


def load_zoo(folder: Path) -> Zoo:
    """Read the manifest of a zoo and see that every file it names is there, and no other.

    Raises:
        UsageError: There is no manifest in the folder.
        TaskError: The manifest is malformed or at odds with the files.
    """
    path = folder / MANIFEST
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read {str(path)!r}: {error.strerror}", remedy=f"give a folder that holds {MANIFEST}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskError(f"{str(path)!r} is no TOML: {error}") from None
    zoo = _read(folder, raw)
    _compare_with_files(zoo)
    return zoo


def _read(folder: Path, raw: dict[str, Any]) -> Zoo:
    try:
        return Zoo(
            folder=str(folder.resolve()), rows=raw.get("rows", {}), kernels=tuple(raw.get("kernel", ()))
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise TaskError(f"{MANIFEST}: {place}: {first['msg']}") from None


def _compare_with_files(zoo: Zoo) -> None:
    folder = Path(zoo.folder)
    named = [kernel.file for kernel in zoo.kernels]
    there = {
        str(path.relative_to(folder)) for kind in ("bad", "honest") for path in folder.glob(f"{kind}/*.cu")
    }
    wrong = [f"{file} is missing" for file in named if file not in there]
    wrong += [f"{file} is not in the manifest" for file in sorted(there.difference(named))]
    wrong += [f"{file} is named twice" for file in sorted({f for f in named if named.count(f) > 1})]
    for kernel in zoo.kernels:
        if kernel.row not in zoo.rows:
            wrong.append(f"{kernel.file}: the catalogue has no row {kernel.row!r}")
        if not all(path.is_file() for path in zoo.task_files(kernel.task)):
            wrong.append(f"{kernel.file}: there is no task {kernel.task!r}")
    if wrong:
        raise TaskError(f"{MANIFEST}: {wrong[0]}", remedy="let the manifest and the folder agree")
