"""EvaluationStore: finished answers by key in the run folder, so that nothing is done twice."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernelskill.runs import write_atomically
from kernelskill.schema.base import Record
from kernelskill.schema.evaluation import Evaluation, Status
from kernelskill.schema.profile import Profile

AnyRecord = TypeVar("AnyRecord", bound=Record)


class EvaluationStore:
    """Evaluations, profiles and facts of one run, a file each.

    A file that cannot be read back is moved to `quarantine/` and the work is done again.

    Args:
        root: The run folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._device_seconds = 0.0

    def get(self, key: str) -> Evaluation | None:
        """Return the finished evaluation of that key, or None."""
        found = self.read("evaluations", key, Evaluation)
        if found is not None and found.key != key:
            self._quarantine(self.root / "evaluations" / f"{key}.json")
            return None
        return found

    def put(self, evaluation: Evaluation) -> None:
        """Keep an evaluation; one that our own machinery spoilt is not finished and not kept."""
        if evaluation.status is not Status.HARNESS_ERROR:
            self.write("evaluations", evaluation.key, evaluation)

    def get_profile(self, key: str) -> Profile | None:
        """Return the finished profile of that key, or None."""
        return self.read("profiles", key, Profile)

    def put_profile(self, key: str, profile: Profile) -> None:
        """Keep a profile."""
        self.write("profiles", key, profile)

    def read(self, kind: str, key: str, model: type[AnyRecord]) -> AnyRecord | None:
        """Return a kept record, or None where there is none that can be read."""
        path = self.root / kind / f"{key}.json"
        try:
            return model.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            self._quarantine(path)
            return None

    def write(self, kind: str, key: str, record: Record) -> None:
        """Keep a record; a reader sees the old or the new one, never a part."""
        write_atomically(self.root / kind / f"{key}.json", record.model_dump_json().encode())

    @property
    def device_seconds(self) -> float:
        """Seconds in which the device was held since this store was opened."""
        return self._device_seconds

    def count_device(self, seconds: float) -> None:
        """Add to the device's account."""
        with self._lock:
            self._device_seconds += seconds

    def quarantined(self) -> tuple[str, ...]:
        """Return the names of the files that could not be read back."""
        folder = self.root / "quarantine"
        return tuple(sorted(path.name for path in folder.glob("*.json"))) if folder.is_dir() else ()

    def _quarantine(self, path: Path) -> None:
        folder = self.root / "quarantine"
        folder.mkdir(parents=True, exist_ok=True)
        path.replace(folder / f"{path.parent.name}-{path.name}")
