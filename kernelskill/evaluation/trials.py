"""Trials: the values of each case at each secret seed, made once and shared by all candidates."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelskill.evaluation.calls import Extent
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.schema.task import Case, Parameter, Signature, Task
from kernelskill.tasks.bundle import Bundle
from kernelskill.tasks.dtypes import dtype_of

UNTYPED_BYTES = 16
"""Step of a `void*` scratch pointer whose element nobody knows: any alignment it may need."""


class ValueSource(Protocol):
    """What the process that holds test.py answers; `tasks.process.TestProcess` is one."""

    def bundle(self, case: int, seed: int, folder: Path, signature: Signature) -> Bundle:
        """Make inputs and expected values of one case, or return the finished ones in `folder`."""

    def check(self, bundle: Bundle, outputs: Mapping[str, Path]) -> str:
        """Run the user's own comparison; empty is right, a text says what is wrong."""


@dataclass(frozen=True)
class Trial:
    """One case at one seed."""

    case: Case
    number: int
    """Position in the seed pool."""
    bundle: Bundle
    extents: Mapping[str, Extent]

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(self.bundle.buffers.values())

    @property
    def folder(self) -> Path:
        """Where derived copies of this trial's values may lie."""
        return Path(self.bundle.folder)


class TrialSource:
    """Makes the values of a case at a position of a seed pool, once.

    Args:
        task: The task.
        values: The process that holds test.py.
        folder: Where the values are kept; they can be made again.
    """

    def __init__(self, task: Task, values: ValueSource, folder: Path) -> None:
        self.task = task
        self._values = values
        self._folder = folder
        self._trials: dict[tuple[str, int, int], Trial] = {}
        self._lock = threading.RLock()

    def trial(self, case: Case, number: int, pool: SeedPool) -> Trial:
        """Return the values of a case at the pool's seed `number`.

        Raises:
            TaskError: `make_inputs` or `reference` failed.
        """
        key = (pool.digest, case.index, number)
        with self._lock:
            if key not in self._trials:
                folder = self._folder / pool.digest[:16] / f"case-{case.index}" / f"trial-{number}"
                folder.mkdir(parents=True, exist_ok=True)
                bundle = self._values.bundle(case.index, pool.seeds[number], folder, self.task.signature)
                extents = {p.name: _extent(p, bundle) for p in self.task.signature.pointers}
                self._trials[key] = Trial(case, number, bundle, extents)
            return self._trials[key]

    def custom_check(self, trial: Trial, outputs: Mapping[str, Path]) -> str:
        """Run the user's own comparison on outputs of a trial."""
        with self._lock:
            return self._values.check(trial.bundle, outputs)


def _extent(pointer: Parameter, bundle: Bundle) -> Extent:
    element = pointer.element.size_bytes if pointer.element is not None else 1
    if pointer.element is None or pointer.element.name == "void":
        if pointer.name in bundle.inputs:
            element = dtype_of(bundle.inputs[pointer.name].dtype).itemsize
        elif pointer.name in bundle.expected:
            element = dtype_of(bundle.expected[pointer.name].dtype).itemsize
        else:
            element = UNTYPED_BYTES
    return Extent(size_bytes=bundle.buffers[pointer.name], element_bytes=element)
