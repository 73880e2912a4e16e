"""`kernelskill skills`: list them, or show one with its text and how it has done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.resources import data_dir, data_folder

if TYPE_CHECKING:
    from kernelskill.experience.pool import SkillRecord
    from kernelskill.skills.library import SkillLibrary

app = typer.Typer(help="List the skills or show one.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FolderOption = Annotated[
    list[Path] | None, typer.Option("--skills", help="A further folder of skills; may be given again.")
]


@app.command("list")
def list_skills(as_json: JsonOption = False, folders: FolderOption = None) -> None:
    """List every skill with what it does to results and how often it won of the times it was measured."""
    from rich.console import Console
    from rich.table import Table

    library = _library(folders)
    records = _records()
    if as_json:
        rows = [
            {**skill.model_dump(mode="json", exclude={"text"}), **_record_json(records.get(skill.id))}
            for skill in library.all()
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    # What a skill removes is many words; `show` has them.
    table = Table(box=None, pad_edge=False)
    for name in ("skill", "results", "won"):
        table.add_column(name, no_wrap=True)
    table.add_column("what it does")
    for skill in library.all():
        record = records.get(skill.id)
        table.add_row(
            skill.id,
            skill.exactness.value,
            f"{record.won}/{record.tried}" if record else "-",
            skill.title if skill.mechanical else f"{skill.title} (by a model)",
        )
    Console(highlight=False).print(table)


@app.command("show")
def show_skill(
    name: Annotated[str, typer.Argument(help="Id of the skill, or the part after the slash.")],
    as_json: JsonOption = False,
    folders: FolderOption = None,
) -> None:
    """Show a skill: its text, parameters, preconditions and record."""
    from rich.console import Console
    from rich.markdown import Markdown

    skill = _library(folders).get(name)
    record = _records().get(skill.id)
    if as_json:
        typer.echo(json.dumps({**skill.model_dump(mode="json"), **_record_json(record)}, indent=1))
        return
    console = Console(highlight=False)
    console.print(f"[bold]{skill.id}[/bold]: {skill.title}")
    rows = {
        "kind": "mechanical: rewrites by itself" if skill.mechanical else "applied by a model",
        "results": skill.exactness.value,
        "removes": ", ".join(trigger.value for trigger in skill.triggers) or "no particular limit",
        "needs": ", ".join(f"PROMISE {promise}" for promise in skill.promises) or "no promise",
        "parameters": "; ".join(f"{p.name} in {', '.join(p.values)}" for p in skill.parameters)
        or ("those of the place where it applies, if any" if skill.mechanical else "none"),
        "expected": f"ln(speedup) {skill.prior.log_speedup:+.2f} +- {skill.prior.deviation:.2f}",
        "record": _record_text(record),
    }
    for key, value in rows.items():
        console.print(f"  {key:<11} {value}", markup=False)
    console.print(Markdown(skill.text))


def _library(folders: list[Path] | None) -> SkillLibrary:
    from kernelskill.skills.library import SkillLibrary, default_folders

    return SkillLibrary.load(default_folders(Path.cwd(), folders or ()))


def _records() -> dict[str, SkillRecord]:
    from kernelskill.experience.pool import ExperiencePool

    pool = ExperiencePool.open(data_dir() / "experience.sqlite", shipped=data_folder("experience_pool"))
    try:
        return {record.skill: record for record in pool.skill_records(evidence=("measured", "none"))}
    finally:
        pool.close()


def _record_text(record: SkillRecord | None) -> str:
    if record is None:
        return "not tried on a GPU yet"
    mean = "" if record.mean_log_speedup is None else f", mean ln(speedup) {record.mean_log_speedup:+.3f}"
    return f"won {record.won} of {record.tried} measured tries{mean}"


def _record_json(record: SkillRecord | None) -> dict[str, object]:
    return {
        "tried": record.tried if record else 0,
        "won": record.won if record else 0,
        "mean_log_speedup": record.mean_log_speedup if record else None,
    }
