"""Output: report, results and the user's own file."""

from __future__ import annotations

import os
from pathlib import Path

from kernelskill.errors import UsageError
from kernelskill.graph.context import RoundContext
from kernelskill.report.markdown import render
from kernelskill.report.outputs import write_outputs
from kernelskill.report.reproducer import reproducer
from kernelskill.report.view import RunView, build_view
from kernelskill.schema.base import sha256_bytes
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import Exported, Opened
from kernelskill.schema.event import Note
from kernelskill.session.borders import Border, BorderQuestion
from kernelskill.session.history import History
from kernelskill.session.records import TreeNode, Written
from kernelskill.session.user_file import UserFile, read_user_file
from kernelskill.session.workbench import Workbench
from kernelskill.source.edits import unified_diff


class Output:
    """Writes what a run found."""

    def __init__(self, bench: Workbench, history: History) -> None:
        self._bench = bench
        self._history = history

    @property
    def kernel_path(self) -> Path | None:
        """The user's kernel, where it is known."""
        opened = self._opened()
        return Path(opened.kernel) if opened is not None else None

    def report(self) -> str:
        """Return the report as it stands now, in Markdown.

        Raises:
            UsageError: The original is not measured yet.
        """
        return render(self.view())

    def view(self) -> RunView:
        """Return the run as a report shows it.

        Raises:
            UsageError: The original is not measured yet.
        """
        self._bench.measured()
        return build_view(self._bench.context.run, self._bench.context.log.events)

    def save(self) -> Written:
        """Write source, patches and report into the run folder, as they stand now.

        Raises:
            UsageError: The original is not measured yet.
        """
        view, root = self.view(), self._bench.context.run.root
        files = write_outputs(view, root, reproducer=standalone(self._bench.context, view))
        return Written(files=tuple(str(root / name) for name in files), confirmed=self._is_confirmed())

    def export(self, target: Path | None = None, *, ref: str = "head") -> Written:
        """Write a candidate to a file of the user's: whole or not at all, in the style of what is there.

        Args:
            target: The file, or a folder; the user's own kernel by default.
            ref: The candidate.

        Raises:
            UsageError: The file changed since it was read, cannot be written, or no file is known.
            UnknownNameError: No candidate is named so.
        """
        node = self._history.node(ref)
        if not node.kept:
            raise UsageError(
                f"#{node.number} is not right, so it is not written: {node.reason}",
                remedy="give a candidate that is right; `show` prints any",
            )
        candidate = self._history.candidate(node)
        files = self._files(candidate, self._place(target, candidate))
        changed = [file for file in files if file.is_changed]
        if not changed:
            return Written(
                files=(), detail="the file holds that text already", confirmed=self._is_confirmed()
            )
        return self._agreed(node, candidate, changed)

    def _agreed(self, node: TreeNode, candidate: Candidate, files: list[UserFile]) -> Written:
        for file in files:
            file.require_unchanged(self._read_as(file.path))
        existing = [file for file in files if file.before is not None]
        if existing:
            main = next((file for file in existing if file.name == candidate.main), existing[0])
            names = ", ".join(str(file.path) for file in existing)
            answer = self._bench.borders.answer(
                BorderQuestion(
                    border=Border.WRITE,
                    text=f"{names} will be overwritten with #{node.number}",
                    detail=f"{node.label}: {'' if node.speedup is None else f'{node.speedup:.2f}x'}",
                    path=str(main.path),
                    source=main.after,
                    diff="".join(_diff(file) for file in existing),
                )
            )
            if answer.kind == "no":
                return Written(files=(), refused=True, detail="nothing was written")
            if answer.kind == "edit":
                return self._edited(answer.text, main)
        for file in files:
            file.write(self._read_as(file.path))
        written = tuple((str(file.path), sha256_bytes(file.data)) for file in files)
        bench = self._bench
        bench.context.log.emit(Exported(number=bench.number, candidate=node.digest, files=written))
        confirmed = self._is_confirmed() and node.is_head
        detail = (
            "" if confirmed or node.number == 0 else "not measured with fresh seeds yet: confirm does that"
        )
        return Written(files=tuple(path for path, _ in written), detail=detail, confirmed=confirmed)

    def _edited(self, text: str, file: UserFile) -> Written:
        """Check the user's text like any other, and write it where it is right."""
        pinned = self._history.pin(text, move=True)
        if not pinned.accepted:
            return Written(files=(), refused=True, detail=f"your text was not written: {pinned.reason}")
        edited = file.with_text(self._history.candidate(pinned.node).source)
        edited.write(self._read_as(edited.path))
        bench = self._bench
        written = ((str(edited.path), sha256_bytes(edited.data)),)
        bench.context.log.emit(Exported(number=bench.number, candidate=pinned.node.digest, files=written))
        return Written(files=(written[0][0],), detail=f"your text was written as #{pinned.node.number}")

    def _place(self, target: Path | None, candidate: Candidate) -> Path:
        """Return where the main file goes."""
        place = target.expanduser() if target is not None else self.kernel_path
        if place is None or (target is None and not place.parent.is_dir()):
            raise UsageError(
                "the run does not know the user's own file on this machine",
                remedy="name the file to write: export FILE",
            )
        place = Path(os.path.normpath(Path.cwd() / place))
        return place / Path(candidate.main).name if place.is_dir() else place

    def _files(self, candidate: Candidate, place: Path) -> list[UserFile]:
        """Return what is to be written: the main file, and the headers that changed beside it."""
        original = self._bench.assembly.original
        text = self._without_launcher(candidate.source)
        files = [read_user_file(place, candidate.main, text)]
        depth = len(Path(candidate.main).parents) - 1
        root = place.parents[depth] if depth < len(place.parents) else place.parent
        for file in candidate.files:
            if file.path != candidate.main and file.text != original.text_of(file.path):
                files.append(read_user_file(root / file.path, file.path, file.text))
        return files

    def _without_launcher(self, text: str) -> str:
        """Return the main file without the launcher that was generated for a bare kernel, where it is as it was."""
        generated = self._bench.assembly.generated
        for made in (generated, generated.replace("\n", "\r\n")):
            if made and text.rstrip().endswith(made):
                return text.rstrip()[: -len(made)].rstrip() + ("\r\n" if "\r\n" in text else "\n")
        return text

    def _read_as(self, path: Path) -> str | None:
        """Return the SHA-256 of a file as this run last read or wrote it; None where it never did."""
        known: str | None = None
        for event in self._bench.context.log.events:
            if isinstance(event, Opened | Exported):
                known = dict(event.files).get(str(path), known)
        return known

    def _opened(self) -> Opened | None:
        opened = [event for event in self._bench.context.log.events if isinstance(event, Opened)]
        return opened[-1] if opened else None

    def _is_confirmed(self) -> bool:
        return self._bench.state.confirmed is not None


def _diff(file: UserFile) -> str:
    before = Candidate.of(file.path.name, {file.path.name: file.before or ""})
    return unified_diff(before, before.with_text(file.path.name, file.after))


def standalone(context: RoundContext, view: RunView) -> str:
    """Return the standalone program of a run's result; empty where no sizes are known."""
    shapes = view.original.evaluation.shapes
    if not shapes:
        context.log.emit(Note(text="no reproducer was written: the sizes of the timed case are unknown"))
        return ""
    case = next(case for case in view.task.cases if case.index == shapes[0].case)
    return reproducer(view.task, view.best.candidate, case, shapes[0].buffers, shapes[0].scalars)
