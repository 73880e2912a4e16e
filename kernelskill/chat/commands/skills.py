"""`skills [name]`: what can be tried here, and why the rest cannot."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Code, Reply, Say, Tone, reply, rows
from kernelskill.schema.base import Record
from kernelskill.session.records import SkillRow


class Skills(Record):
    """The skills shown."""

    skills: tuple[SkillRow, ...]


def run(chat: ChatContext, values: Values) -> Reply:
    """List the skills, or show one."""
    evidence = chat.session.evidence
    name = values.text("name")
    specialists = chat.session.steering.names().specialists
    if name and name not in specialists:
        found = evidence.skill(name)
        record = f"won {found.won} of {found.tried}" if found.tried else "not tried yet"
        head = Say(f"{found.id}: {found.title}; {found.state}, {record}", "head")
        reason = [Say(found.reason, "dim")] if found.reason else []
        return reply(found, head, *reason, Code(found.text, "markdown"))
    listed = evidence.skills(name)
    tones: list[Tone] = [
        "dim" if row.state in ("declined", "banned", "not asked") else "plain" for row in listed
    ]
    lines = [
        (row.id, f"{row.fit:.0%}", f"{row.won}/{row.tried}" if row.tried else "-", row.state, row.title)
        for row in listed
    ]
    return reply(
        Skills(skills=listed),
        rows(("skill", "fits", "won", "here", "what it does"), lines, tones, plain=True),
    )


COMMAND = Command(
    "skills",
    "List the skills with how they fit here; with a name, show one, or those of a specialist.",
    "look",
    run,
    arguments=(Argument("name", "A skill or a specialist.", "text"),),
    examples=("/skills", "/skills memory", "/skills unroll"),
)
