"""SpoolFolder: jobs and answers as files that survive a kill of either side at any moment.

    tasks/<digest>/         what the jobs are about
    seeds/<digest>.json     the secret seeds; readable by their owner only
    jobs/<key>/job.json     waits for a worker
    claimed/<key>/          taken: the folder was renamed here, so that one worker has it
    claimed/<key>/lease     rewritten by the worker while it lives
    results/<key>.json      answered
    store/<digest>/         what workers found out on the way: checks, demands, profiles
    workers/<id>.json       rewritten by a worker while it lives

Every change is one rename. Names that begin with a dot are unfinished and ignored. Ages are told by
an observer's own clock from whether a file's text changes, so that clocks need not agree.
"""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kernelskill.runs import write_atomically
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Gpu
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.profile import Profile, ProfileDepth

_TAKEN = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)


class EvaluateJob(Record):
    """Asks for an evaluation."""

    kind: Literal["evaluate"] = "evaluate"
    request: Request

    @property
    def key(self) -> str:
        """Key of the answer."""
        return self.request.key

    @property
    def task(self) -> str:
        """Digest of the task."""
        return self.request.task

    @property
    def seed_pool(self) -> str:
        """Digest of the seeds."""
        return self.request.seed_pool


class ProfileJob(Record):
    """Asks for a profile."""

    kind: Literal["profile"] = "profile"
    task: str
    candidate: Candidate
    seed_pool: str
    depth: ProfileDepth = "quick"

    @property
    def key(self) -> str:
        """Key of the answer."""
        return self.content_digest()


Job = Annotated[EvaluateJob | ProfileJob, Field(discriminator="kind")]


class JobFile(Record):
    """What `job.json` holds."""

    job: Job


class Answer(Record):
    """What `results/<key>.json` holds: one of the three."""

    key: str
    evaluation: Evaluation | None = None
    profile: Profile | None = None
    error: str = ""
    """Why the worker could not answer; the job may be asked again."""
    remedy: str = ""
    worker: str = ""


class Announcement(Record):
    """What a worker says of itself."""

    worker: str
    """Host and process."""
    device: str
    gpu: Gpu
    conditions: Conditions
    beat: int
    """Grows while the worker lives."""


class Lease(Record):
    """Who works on a claimed job, and that it lives."""

    worker: str
    beat: int


class SpoolFolder:
    """The files of one spool."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tasks = root / "tasks"
        self.seeds = root / "seeds"
        self.store = root / "store"
        self._jobs = root / "jobs"
        self._claimed = root / "claimed"
        self._results = root / "results"
        self._workers = root / "workers"

    def submit(self, job: Job) -> bool:
        """Add a job unless it waits, is worked on or is answered; return whether it was added."""
        key = job.key
        if self.state(key) != "unknown":
            return False
        temporary = self._jobs / f".{key[:16]}.{secrets.token_hex(4)}"
        temporary.mkdir(parents=True)
        (temporary / "job.json").write_text(JobFile(job=job).model_dump_json(), encoding="utf-8")
        if _rename(temporary, self._jobs / key):
            return True
        shutil.rmtree(temporary, ignore_errors=True)
        return False

    def state(self, key: str) -> Literal["answered", "claimed", "waiting", "unknown"]:
        """Return how far a job is."""
        if (self._results / f"{key}.json").is_file():
            return "answered"
        if (self._claimed / key).is_dir():
            return "claimed"
        return "waiting" if (self._jobs / key).is_dir() else "unknown"

    def waiting(self) -> list[str]:
        """Return the keys of the jobs that wait, the oldest first."""
        return [path.name for path in sorted(_entries(self._jobs), key=_age)]

    def claimed(self) -> list[str]:
        """Return the keys of the jobs that are worked on, or were by a worker that died."""
        return sorted(path.name for path in _entries(self._claimed))

    def read_job(self, key: str) -> EvaluateJob | ProfileJob | None:
        """Return a waiting job, or None where it is gone or has not arrived completely."""
        try:
            job = JobFile.model_validate_json((self._jobs / key / "job.json").read_bytes()).job
        except (OSError, ValidationError):
            return None
        return job if job.key == key else None

    def claim(self, key: str) -> bool:
        """Take a waiting job; False where somebody else was faster."""
        self._claimed.mkdir(parents=True, exist_ok=True)
        return _rename(self._jobs / key, self._claimed / key)

    def attempt(self, key: str) -> int:
        """Count one more attempt at a claimed job and return the count."""
        path = self._claimed / key / "attempts"
        try:
            count = int(path.read_text(encoding="ascii")) + 1
        except (OSError, ValueError):
            count = 1
        if path.parent.is_dir():
            write_atomically(path, str(count).encode())
        return count

    def give_back(self, key: str) -> bool:
        """Let a claimed job wait again; drop it where it is answered or waits already."""
        place = self._claimed / key
        if self.state(key) != "answered" and _rename(place, self._jobs / key):
            return True
        # Renamed first, so that a worker that comes late finds nothing half removed.
        grave = self._claimed / f".{key[:16]}.{secrets.token_hex(4)}"
        if _rename(place, grave):
            shutil.rmtree(grave, ignore_errors=True)
        return False

    def renew(self, key: str, lease: Lease) -> None:
        """Rewrite the lease of a claimed job, if it is still claimed."""
        place = self._claimed / key
        if place.is_dir():
            (place / "lease").write_text(lease.model_dump_json(), encoding="utf-8")

    def lease_text(self, key: str) -> str:
        """Return the text of a lease; empty where there is none yet."""
        return _text(self._claimed / key / "lease")

    def answer(self, answer: Answer) -> None:
        """Publish an answer and remove its job, wherever it is."""
        write_atomically(self._results / f"{answer.key}.json", answer.model_dump_json().encode())
        for place in (self._claimed / answer.key, self._jobs / answer.key):
            shutil.rmtree(place, ignore_errors=True)

    def result(self, key: str) -> Answer | None:
        """Return an answer, or None where there is none that can be read yet."""
        try:
            return Answer.model_validate_json((self._results / f"{key}.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def forget(self, key: str) -> None:
        """Remove an answer, so that the job can be asked again."""
        (self._results / f"{key}.json").unlink(missing_ok=True)

    def announce(self, announcement: Announcement) -> None:
        """Rewrite what a worker says of itself."""
        path = self._workers / f"{announcement.worker}.json"
        write_atomically(path, announcement.model_dump_json().encode())

    def announcements(self) -> list[Announcement]:
        """Return what workers said of themselves, dead ones included."""
        found = []
        for path in _entries(self._workers):
            try:
                found.append(Announcement.model_validate_json(path.read_bytes()))
            except (OSError, ValidationError):
                continue
        return found


class Watch:
    """Tells from unchanging texts who has died, by the observer's own clock.

    Args:
        patience_s: How long a text may stay as it is.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._seen: dict[str, tuple[str, float]] = {}

    def is_silent(self, name: str, text: str, now: float) -> bool:
        """Return whether `name` has shown the same text for longer than the patience."""
        before = self._seen.get(name)
        if before is None or before[0] != text:
            self._seen[name] = (text, now)
            return False
        return now - before[1] > self._patience_s

    def forget(self, name: str) -> None:
        """Begin anew with a name."""
        self._seen.pop(name, None)


def _rename(source: Path, target: Path) -> bool:
    """Rename a folder; False where the source is gone or the target is there."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _entries(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if not path.name.startswith("."))


def _age(path: Path) -> tuple[int, str]:
    try:
        return (path / "job.json").stat().st_mtime_ns, path.name
    except OSError:
        return 1 << 63, path.name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
