"""The command line: options in, sessions driven, errors as one line with a remedy and an exit code."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from kernelskill import __version__
from kernelskill.cli import (
    bench_command,
    ceilings_command,
    chat_command,
    check_command,
    doctor_command,
    evaluator_command,
    import_command,
    init_command,
    profile_command,
    run_command,
    skills_command,
    worker_command,
)
from kernelskill.errors import KernelSkillError

app = typer.Typer(
    name="kernelskill",
    help="Take a CUDA kernel that is right but slow and return one that is right and fast, with proof.",
    epilog="Begin with `kernelskill doctor`. No test.py yet? `kernelskill init kernel.cu` drafts one. "
    "Then: `kernelskill run kernel.cu --tests test.py`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# typer carries its own copy of click in newer versions and uses the installed one in older ones; its
# public exception leads to the right base class in both.
_CliUsageError: type[Exception] = typer.BadParameter.__mro__[1]
_CliError: type[Exception] = typer.BadParameter.__mro__[2]


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"kernelskill {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take a CUDA kernel that is right but slow and return one that is right and fast, with proof."""


app.command("run")(run_command.run)
app.command("resume")(run_command.resume)
app.command("report")(run_command.report)
app.command("check")(check_command.check)
app.command("chat")(chat_command.chat)
app.command("profile")(profile_command.profile)
app.command("init")(init_command.init)
app.command("doctor")(doctor_command.doctor)
app.command("worker")(worker_command.worker)
app.command("bench")(bench_command.bench)
app.command("ceilings")(ceilings_command.ceilings)
app.add_typer(import_command.app, name="import")
app.add_typer(skills_command.app, name="skills")
app.add_typer(evaluator_command.app, name="evaluator")


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code."""
    sys.exit(run_program(sys.argv[1:] if arguments is None else arguments))


def run_program(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 success, 1 or 2 wrong use, 3 a tool or device is missing, 4 jobs wait in a spool folder, 5 a model has
    not answered yet, 6 our own
    machinery failed, 130 interrupted.
    """
    try:
        result = app(arguments, standalone_mode=False)
    except KernelSkillError as error:
        _show_error(error.message, error.remedy, error.exit_code, as_json="--json" in arguments)
        return error.exit_code
    except typer.Exit as exit_:
        return exit_.exit_code
    except _CliError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(getattr(error, "message", ""))
            return 2
        _show_error(
            _usage_message(error), f"see `{_command_path(error)} --help`", 2, as_json="--json" in arguments
        )
        return 2
    except (KeyboardInterrupt, typer.Abort):
        _show_error("interrupted", "", 130, as_json="--json" in arguments)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        sys.stderr.close()
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _show_error(f"{error.strerror or error}{where}", "", 6, as_json="--json" in arguments)
        return 6
    return result if isinstance(result, int) else 0


def _show_error(message: str, remedy: str, code: int, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"kind": "error", "message": message, "remedy": remedy, "exit_code": code}))
        return
    typer.echo(f"kernelskill: {message}", err=True)
    if remedy:
        typer.echo(f"  {remedy}", err=True)


def _usage_message(error: Exception) -> str:
    text: str = getattr(error, "format_message", lambda: str(error))()
    return text.strip() or "give a command"


def _command_path(error: Exception) -> str:
    context = getattr(error, "ctx", None) if isinstance(error, _CliUsageError) else None
    return context.command_path if context is not None else "kernelskill"
