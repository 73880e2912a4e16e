"""Have a model write the first kernel of an imported task, and check it before it counts."""

from __future__ import annotations

from pathlib import Path

from kernelskill.agents.answers import AnswerMalformed
from kernelskill.agents.failures import failure_section
from kernelskill.agents.prompts import PromptLibrary
from kernelskill.agents.sections import fitted
from kernelskill.agents.seeding import read_seed, seeding_request
from kernelskill.config import RunConfig
from kernelskill.errors import AnswersWaiting, ModelUnavailable, TaskError
from kernelskill.llm.base import Model, ModelFailure, ModelRequest, Pending
from kernelskill.runs import write_atomically
from kernelskill.schema.base import Record
from kernelskill.session.check import check_kernel
from kernelskill.tasks.load import load_task
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testsource import read_test_source
from kernelskill.tasks.torch_task import ImportedTask

ATTEMPTS = 2
"""The first answer, and one that mends it."""
_FAILURE_TOKENS = 4000


class SeedResult(Record):
    """What became of a first kernel."""

    passed: bool
    detail: str
    """How it was checked, or why the last answer was refused."""
    attempts: int


def seed_kernel(
    task: ImportedTask, model: Model, config: RunConfig, scratch: Path, *, cheap: bool = False
) -> SeedResult:
    """Ask for a kernel, check it, ask once more where it fails; the kernel is written only if it passed.

    Args:
        task: Written before.
        model: Answers.
        config: Device and permissions.
        scratch: An empty folder for what is made on the way.
        cheap: Whether the two smallest cases and one trial suffice.

    Raises:
        AnswersWaiting: The model has not answered yet; the same call goes on when it has.
        ModelUnavailable: The model cannot be asked.
        TaskError: The task's own test cannot be used.
        ToolchainError: A compiler or device is missing.
    """
    with TestProcess.start(read_test_source(task.tests)) as process:
        process.describe()
    prompts = PromptLibrary.load()
    failure, earlier = "", ""
    for attempt in range(1, ATTEMPTS + 1):
        request = seeding_request(
            prompts, task, answer_tokens=config.answer_tokens, failure=failure, earlier=earlier
        )
        earlier = _answer(model, request)
        try:
            text = read_seed(earlier, task)
        except AnswerMalformed as error:
            failure = error.reason
            continue
        failure, detail = _checked(task, text, config, scratch / str(attempt), cheap=cheap)
        if not failure:
            write_atomically(task.kernel, text.encode())
            return SeedResult(passed=True, detail=detail, attempts=attempt)
    first = " ".join(failure.split())
    return SeedResult(passed=False, detail=first, attempts=ATTEMPTS)


def _answer(model: Model, request: ModelRequest) -> str:
    (reply,) = model.ask([request])
    if isinstance(reply, Pending):
        raise AnswersWaiting(
            f"the model has not answered yet: {reply.where}",
            remedy=reply.note or "write the answer there, then give the same command again",
        )
    if isinstance(reply, ModelFailure):
        raise ModelUnavailable(reply.message, remedy=reply.remedy)
    return reply.text


def _checked(
    task: ImportedTask, text: str, config: RunConfig, scratch: Path, *, cheap: bool
) -> tuple[str, str]:
    """Return why a kernel is refused, or nothing, and how it was checked."""
    scratch.mkdir(parents=True)
    kernel = scratch / task.kernel.name
    kernel.write_text(text, encoding="utf-8")
    try:
        original = load_task(kernel, task.tests, keep_exact=config.keep_exact)
    except TaskError as error:
        return f"{error.message} {error.remedy}".strip(), ""
    result = check_kernel(kernel, task.tests, config, scratch, candidate=None, cheap=cheap)
    evaluation = result.evaluation
    if evaluation.passed:
        return "", f"{len(evaluation.checks)} comparisons on {evaluation.conditions.device}"
    section = failure_section(evaluation, original.original, original.task)
    return fitted(section, _FAILURE_TOKENS), ""
