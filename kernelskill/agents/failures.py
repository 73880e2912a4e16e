"""Tell whoever wrote a change how it failed: compiler messages with the source, wrong values, reports."""

from __future__ import annotations

from collections.abc import Iterator

from kernelskill.agents.sections import Block, Section, data, one_line
from kernelskill.schema.build import Diagnostic
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import CheckOutcome, Evaluation, Status
from kernelskill.schema.task import Task

_AROUND = 3
_MOST_MESSAGES = 6
_MOST_CHECKS = 6
_PATTERNS = {
    "all": "all of them are wrong",
    "tail": "the wrong ones are at the end: think of sizes that divide nothing",
    "block": "the wrong ones lie together in one piece",
    "nan": "the wrong ones are NaN",
}
_ADVICE = {
    Status.LAUNCH_ERROR: "The launch itself was refused: think of block size, shared memory and grid limits.",
    Status.TIMEOUT: "It did not come to an end: think of barriers that not every thread reaches, and of endless loops.",
    Status.OUT_OF_BOUNDS: "It wrote outside its arrays.",
    Status.INPUT_MODIFIED: "It changed an array that is an input only.",
    Status.NONDETERMINISTIC: "Two runs with equal inputs gave different results: think of races and of state that is kept.",
    Status.UNSUPPORTED: "It uses something that the task does not permit or that cannot be checked.",
    Status.SUSPICIOUS: "It is faster than the work permits: parts of the work are missing.",
}
_KEEP = (
    "Its values are within the tolerance, and no bit may change: think of sums in another order, of products that are"
    " or are not fused with an addition, and of constants or functions of another type."
)


def is_repairable(evaluation: Evaluation) -> bool:
    """Return whether whoever wrote the candidate could mend what went wrong."""
    return evaluation.status not in (Status.PASSED, Status.HARNESS_ERROR)


def failure_section(evaluation: Evaluation, candidate: Candidate, task: Task, bits: str = "") -> Section:
    """Return how an evaluation failed, with what helps to mend it.

    Args:
        evaluation: The evaluator's record.
        candidate: What was evaluated.
        task: Names the cases.
        bits: Where bits changed that may not, though all values are right.
    """
    if bits:
        return (Block(((9, f"Status: right, but not exact. {_KEEP}"),)), data(bits, importance=9))
    advice = _ADVICE.get(evaluation.status, "")
    head = f"Status: {evaluation.status.value}. {advice}".strip()
    blocks = [Block(((9, head),))]
    if evaluation.detail:
        blocks.append(data(evaluation.detail, importance=8))
    if evaluation.diagnostics:
        text = "\n\n".join(
            message(diagnostic, candidate) for diagnostic in evaluation.diagnostics[:_MOST_MESSAGES]
        )
        blocks.append(data(text, title="The compiler says, the first message first:", importance=7))
    checks = [line for check in evaluation.checks for line in _check(check, task)]
    if checks:
        blocks.append(data("\n".join(checks[:_MOST_CHECKS]), title="Checks that failed:", importance=7))
    if evaluation.notes:
        notes = "\n".join(one_line(note) for note in evaluation.notes)
        blocks.append(data(notes, title="Notes:", importance=4))
    return tuple(blocks)


def message(diagnostic: Diagnostic, candidate: Candidate) -> str:
    """Return a compiler's message with the lines around its place."""
    head = f"{diagnostic.file}:{diagnostic.line}: {diagnostic.message}"
    texts = {file.path: file.text for file in candidate.files}
    found = [path for path in texts if diagnostic.file == path or diagnostic.file.endswith(f"/{path}")]
    if not found:
        return f"{head}\n    {diagnostic.excerpt}" if diagnostic.excerpt else head
    lines = texts[found[0]].replace("\r\n", "\n").split("\n")
    first = max(1, diagnostic.line - _AROUND)
    last = min(len(lines), diagnostic.line + _AROUND)
    shown = [
        f"{'>' if number == diagnostic.line else ' '}{number:>5}| {lines[number - 1]}"
        for number in range(first, last + 1)
    ]
    return "\n".join([head, *shown])


def _check(check: CheckOutcome, task: Task) -> Iterator[str]:
    if check.status is Status.PASSED:
        return
    labels = {case.index: case.label for case in task.cases}
    where = f"case {labels.get(check.case, check.case)}, {_LAYOUTS[check.layout]}"
    mismatch = check.mismatch
    if mismatch is None:
        yield f"{where}: {check.status.value} {check.detail}".rstrip()
        return
    index = ", ".join(map(str, mismatch.index))
    pattern = _PATTERNS.get(mismatch.pattern, f"the wrong ones lie in a pattern: {mismatch.pattern}")
    yield (
        f"{where}: {mismatch.output}[{index}] is {mismatch.got}, expected {mismatch.expected};"
        f" {mismatch.wrong} of {mismatch.total} elements are wrong, by {mismatch.max_absolute_error:.3g} at most"
        + (f"; {pattern}" if mismatch.pattern else "")
    )


_LAYOUTS = {
    "plain": "plain call",
    "offset": "pointers one element past an aligned address",
    "aliased": "input and output are one array",
    "moved": "same call with arrays at other addresses",
    "repeat": "called again without any reset in between",
}
