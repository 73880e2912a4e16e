"""`task`: what is to be made fast, and what counts as right."""

from __future__ import annotations

from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply, rows
from kernelskill.schema.task import Task, Tolerance


def run(chat: ChatContext, values: Values) -> Reply:
    """Show the task."""
    task = chat.session.context.task
    roles = ", ".join(f"{name} ({role.value})" for name, role in task.roles.items())
    cases = [(f"{case.index}", case.label, "timed" if case.timed else "checked only") for case in task.cases]
    return reply(
        task,
        Say(f"{task.name}: {roles}", "head"),
        rows(("case", "sizes", ""), cases),
        Say(f"compared: {_compared(task)}"),
        Say(f"promised: {_named(task.promise) or 'nothing'}"),
        Say(f"allowed beyond what the original does: {_named(task.allow) or 'nothing'}"),
        *([Say(f"flags: {' '.join(task.flags)}")] if task.flags else []),
        Say(f"run folder: {chat.session.folder}", "dim"),
    )


def _compared(task: Task) -> str:
    if task.custom_check:
        return f"{', '.join(task.outputs)} by the test's own check()"
    return ", ".join(f"{name} within {_tolerance(task.tolerances[name])}" for name in task.outputs)


def _tolerance(tolerance: Tolerance) -> str:
    scaled = " of the root mean square" if tolerance.scaled else ""
    return f"rtol {tolerance.rtol:g}, atol {tolerance.atol:g}{scaled}"


def _named(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))


COMMAND = Command("task", "Show the task: launcher, cases, promises, what is allowed.", "measure", run)
