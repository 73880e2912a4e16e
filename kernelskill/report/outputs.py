"""The files that a run leaves for the user: the optimised source, patches, reproducer and report."""

from __future__ import annotations

import re
from pathlib import Path

from kernelskill.report.markdown import render
from kernelskill.report.view import RunView
from kernelskill.runs import write_atomically
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.run import Member

RESULT_FOLDER = "result"
MOST_ALTERNATIVES = 3


def write_outputs(view: RunView, root: Path, *, reproducer: str) -> tuple[str, ...]:
    """Write the results of a run into its folder.

    Args:
        view: The run.
        root: The run folder.
        reproducer: Text of the standalone program; empty for none.

    Returns:
        The files written, relative to `root`, the optimised source first.
    """
    written = [*_write_sources(view.best.candidate, root, root / RESULT_FOLDER)]
    for number, member in enumerate(view.alternatives[:MOST_ALTERNATIVES], 1):
        written += _write_sources(
            member.candidate, root, root / "alternatives" / _alternative_name(number, member)
        )
    for change in view.changes:
        path = root / "patches" / f"{change.number:02d}-{_slug(change.label)}.patch"
        verdict = f"{change.verdict.kind.value}: {change.verdict.reason}" if change.verdict else ""
        text = f"{change.label}\n{verdict}\n\n{change.diff}"
        written.append(_write(root, path, text))
    if reproducer:
        main = Path(view.best.candidate.main)
        written.append(_write(root, root / RESULT_FOLDER / main.parent / "reproducer.cu", reproducer))
    written.append(_write(root, root / "report.md", render(view)))
    return tuple(written)


def _write_sources(candidate: Candidate, root: Path, folder: Path) -> list[str]:
    ordered = sorted(candidate.files, key=lambda file: file.path != candidate.main)
    return [_write(root, folder / file.path, file.text) for file in ordered]


def _write(root: Path, path: Path, text: str) -> str:
    write_atomically(path, text.encode())
    return path.relative_to(root).as_posix()


def _alternative_name(number: int, member: Member) -> str:
    return f"{number}-{'exact' if member.exact else 'rounding'}"


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60] or "change"
