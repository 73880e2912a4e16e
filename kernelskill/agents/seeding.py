"""The seeding role: what a model is asked for a first kernel, and what of its answer is taken."""

from __future__ import annotations

from kernelskill.agents.answers import AnswerMalformed, parse_change
from kernelskill.agents.prompts import PromptLibrary
from kernelskill.agents.sections import Section, data, words
from kernelskill.llm.base import Message, ModelRequest
from kernelskill.source.signature import LauncherDecl, find_launchers
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.torch_facts import parameter_types
from kernelskill.tasks.torch_task import MODULE, ImportedTask, parameter_lines

SEEDING = "seeding"


def seeding_request(
    prompts: PromptLibrary, task: ImportedTask, *, answer_tokens: int, failure: str = "", earlier: str = ""
) -> ModelRequest:
    """Return what is asked: for a first kernel, or for one that mends what failed.

    Args:
        prompts: Holds the role's prompt.
        task: What the kernel is for.
        answer_tokens: Most tokens of the answer.
        failure: Why the earlier answer was refused; empty at first.
        earlier: That answer.
    """
    prompt = prompts.get(SEEDING)
    values: dict[str, Section] = {
        "signature": (data(task.signature, info="cuda", importance=9),),
        "parameters": (data("\n".join(parameter_lines(task.facts)), importance=9),),
        "module": (data(task.files[MODULE], info="python"),),
        "cases": (data("\n".join(str(case) for case in task.facts.cases)),),
        "failure": _failure(failure, earlier),
    }
    return ModelRequest(
        role=prompt.role,
        messages=(
            Message(role="system", text=" ".join(prompt.front.system.split())),
            Message(role="user", text=prompt.render(values)),
        ),
        prompt_digest=prompt.digest,
        max_output_tokens=answer_tokens,
    )


def read_seed(text: str, task: ImportedTask) -> str:
    """Return the kernel file in an answer.

    Raises:
        AnswerMalformed: It has another form than was asked for, or its launcher another signature.
    """
    answer = parse_change(text)
    if answer.nothing:
        raise AnswerMalformed(f"it offers nothing: {answer.nothing}")
    if len(answer.files) != 1 or answer.edits:
        raise AnswerMalformed("give the whole of kernel.cu in one FILE block")
    kernel = answer.files[0].text.rstrip("\n") + "\n"
    _require_signature(kernel, task)
    return kernel


def _failure(failure: str, earlier: str) -> Section:
    if not failure:
        return words("Nothing yet: this is the first attempt.")
    return (
        data(failure, title="An earlier answer was refused:", importance=9),
        data(earlier, title="This was the answer:"),
        *words("Mend it and give the whole file again."),
    )


def _require_signature(kernel: str, task: ImportedTask) -> None:
    """Refuse a kernel without the launcher that the test calls."""
    launchers = [found for found in find_launchers(SourceUnit.parse(kernel)) if found.name == task.symbol]
    if len(launchers) != 1:
        raise AnswerMalformed(f"it defines {len(launchers) or 'no'} function {task.symbol}; define one")
    launcher = launchers[0]
    if not launcher.c_linkage or launcher.is_static or launcher.is_template:
        raise AnswerMalformed(f'{task.symbol} must be a plain extern "C" function')
    if launcher.return_type.removeprefix('extern "C"').strip() != "void":
        raise AnswerMalformed(f"{task.symbol} must return void, not {launcher.return_type}")
    wanted = [(name, _squeezed(kind)) for name, kind in parameter_types(task.facts)]
    if _declared(launcher) != wanted:
        shown = ", ".join(f"{p.type_text} {p.name}" for p in launcher.parameters)
        raise AnswerMalformed(f"{task.symbol} takes ({shown}), not what was asked for: {task.signature}")


def _declared(launcher: LauncherDecl) -> list[tuple[str, str]]:
    return [(p.name, _squeezed(p.type_text)) for p in launcher.parameters]


def _squeezed(kind: str) -> str:
    return "".join(kind.split())
