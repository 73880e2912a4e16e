"""Candidate, Patch and Lineage: immutable sources and the edits between them."""

from __future__ import annotations

from pydantic import model_validator

from kernelskill.schema.base import Record, canonical_json, sha256_text


class SourceFile(Record):
    """One file of a candidate, with its path relative to the candidate's root, in POSIX form."""

    path: str
    text: str


class ScheduleMove(Record):
    """One move on the schedule of a lifted kernel."""

    move: str
    values: tuple[tuple[str, str], ...] = ()
    """Parameter names and values, sorted by name."""


class Replacement(Record):
    """A stretch of source that emission replaced; each text stands once in its file."""

    original: str
    emitted: str


class Scheduled(Record):
    """A kernel that was lifted to an algorithm and emitted again under a schedule.

    Putting the originals back gives the text that was lifted, so moves can be added later. Where the
    emitted texts are no longer found, something else changed the kernel and its schedule is closed.
    """

    path: str
    kernel: str
    moves: tuple[ScheduleMove, ...]
    replacements: tuple[Replacement, ...]


class Candidate(Record):
    """One immutable set of sources. Equal sources are the same candidate, whoever wrote them."""

    main: str
    """Path of the `.cu` file that holds the launcher."""
    files: tuple[SourceFile, ...]
    """All files, sorted by path; local headers included."""
    scheduled: tuple[Scheduled, ...] = ()
    """Kernels that were emitted under a schedule. Says how the files came about, and is no part of them."""

    @model_validator(mode="after")
    def _check(self) -> Candidate:
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("files must be sorted by path and unique")
        if self.main not in paths:
            raise ValueError(f"main file {self.main!r} is not among the files")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 over the main file's name and all files."""
        return sha256_text(canonical_json([self.main, [[f.path, f.text] for f in self.files]]))

    @property
    def source(self) -> str:
        """Text of the main file."""
        return self.text_of(self.main)

    def text_of(self, path: str) -> str:
        """Return the text of one file.

        Raises:
            KeyError: No file has this path.
        """
        for file in self.files:
            if file.path == path:
                return file.text
        raise KeyError(path)

    def with_text(self, path: str, text: str) -> Candidate:
        """Return a candidate in which one file's text is replaced."""
        self.text_of(path)
        files = tuple(SourceFile(path=f.path, text=text) if f.path == path else f for f in self.files)
        return Candidate(main=self.main, files=files, scheduled=self.scheduled)

    def with_schedule(self, scheduled: Scheduled) -> Candidate:
        """Return a candidate that knows the schedule of one more kernel, or a newer one of that kernel."""
        kept = [s for s in self.scheduled if (s.path, s.kernel) != (scheduled.path, scheduled.kernel)]
        return Candidate(main=self.main, files=self.files, scheduled=(*kept, scheduled))

    @staticmethod
    def of(main: str, files: dict[str, str]) -> Candidate:
        """Build a candidate from a mapping of relative path to text."""
        return Candidate(
            main=main,
            files=tuple(SourceFile(path=path, text=files[path]) for path in sorted(files)),
        )


class Edit(Record):
    """Replacement of one range of one file. Offsets count bytes of the UTF-8 text."""

    path: str
    start: int
    end: int
    text: str


class Step(Record):
    """One application of a skill at one site with chosen parameters; can be applied again elsewhere."""

    skill: str
    """Skill id, for example `memory/swap_thread_axes`."""
    site: str
    """Key of the site as the skill names it: `mm_naive`, `mm_naive/loop:k`, `count/with:add_up/with:copy`."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameter names and values, sorted by name; values as text."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels whose work the site is: the one that it begins with, and those that come with it."""
        first, *rest = self.site.partition("#")[0].split("/")
        return (first, *(part.removeprefix("with:") for part in rest if part.startswith("with:")))

    @property
    def label(self) -> str:
        """Short form for people, for example `unroll(factor=4) at mm_naive/loop:k`."""
        values = ", ".join(f"{name}={value}" for name, value in self.parameters)
        short = self.skill.rsplit("/", 1)[-1]
        return f"{short}({values}) at {self.site}" if values else f"{short} at {self.site}"


class Patch(Record):
    """The edit from one candidate to another."""

    parent: str
    """Digest of the candidate it starts from."""
    child: str
    steps: tuple[Step, ...]
    """Empty for a patch that a model or a person wrote."""
    diff: str
    """Unified diff over all files."""
    title: str = ""
    """Short name of a patch without steps."""

    @property
    def label(self) -> str:
        """Short form for people; empty where nothing is known."""
        return " + ".join(step.label for step in self.steps) or self.title


class Lineage(Record):
    """The chain of patches from the original to one candidate."""

    patches: tuple[Patch, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps in the order they were applied."""
        return tuple(step for patch in self.patches for step in patch.steps)
