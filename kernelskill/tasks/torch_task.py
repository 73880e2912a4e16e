"""Write the task folder of a PyTorch module: test.py, the module beside it, a signature, a README."""

from __future__ import annotations

from pathlib import Path

from kernelskill.errors import UsageError
from kernelskill.schema.base import Record
from kernelskill.tasks.tolerance import default_tolerance
from kernelskill.tasks.torch_facts import (
    ModuleFacts,
    Value,
    described_shape,
    headers,
    launcher_signature,
    parameter_types,
)

KERNEL, TESTS, MODULE, NOTES = "kernel.cu", "test.py", "torch_problem.py", "README.md"


class ImportedTask(Record):
    """A task folder without its kernel."""

    folder: str
    symbol: str
    signature: str
    """Declaration of the launcher, without a semicolon."""
    facts: ModuleFacts
    files: dict[str, str]
    """Name to text of what was written."""

    @property
    def kernel(self) -> Path:
        """Where the kernel goes."""
        return Path(self.folder) / KERNEL

    @property
    def tests(self) -> Path:
        """The test."""
        return Path(self.folder) / TESTS


def write_task(folder: Path, symbol: str, module: str, facts: ModuleFacts) -> ImportedTask:
    """Write a task folder; writing the same again changes nothing.

    Args:
        folder: Made if it is missing.
        symbol: Name of the launcher.
        module: Text of the file with the module.
        facts: What was found in it.

    Raises:
        TaskError: A tensor has a type that no launcher takes.
        UsageError: A file of another content stands there, or the folder cannot be written.
    """
    signature = launcher_signature(symbol, facts)
    files = {
        MODULE: module,
        TESTS: tests_text(symbol, facts),
        NOTES: readme_text(signature, facts),
        KERNEL: stub_text(signature, facts),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = folder / name
            if path.exists() and path.read_bytes() != text.encode():
                raise UsageError(
                    f"{str(path)!r} exists and holds something else", remedy="give another folder with --out"
                )
        for name, text in files.items():
            (folder / name).write_bytes(text.encode())
    except OSError as error:
        shown = error.filename or str(folder)
        raise UsageError(f"cannot write {str(shown)!r}: {error.strerror}", remedy="use --out") from None
    return ImportedTask(folder=str(folder), symbol=symbol, signature=signature, facts=facts, files=files)


def parameter_lines(facts: ModuleFacts) -> list[str]:
    """Return one line for each parameter: type, name, shape and what it is."""
    types = dict(parameter_types(facts))
    return [
        " ".join(
            part for part in (types[v.name], v.name + described_shape(v, facts), _meaning(v, facts)) if part
        )
        for v in facts.values
    ]


def stub_text(signature: str, facts: ModuleFacts) -> str:
    """Return a kernel.cu that says what is to be written and does not compile."""
    lines = [
        "// TO BE WRITTEN: this file only states the launcher that test.py calls.",
        "// Arrays are dense, last axis fastest. Write kernels and the launcher, then remove the #error.",
        *(f"//   {line}" for line in parameter_lines(facts)),
        *(f"#include <{name}>" for name in headers(facts)),
        "",
        '#error "kernel.cu is to be written: define the launcher below"',
        "",
        f"{signature};",
    ]
    return "\n".join(lines) + "\n"


def readme_text(signature: str, facts: ModuleFacts) -> str:
    """Return the folder's README."""
    notes = [f"- {note}." for note in facts.notes]
    lines = [
        "# Task from a PyTorch module",
        "",
        f"`{MODULE}` holds the module, `{TESTS}` takes it as the reference (on the CPU, seeds fixed). The launcher",
        f"that `{KERNEL}` has to define:",
        "",
        "```cuda",
        f"{signature};",
        "```",
        "",
        "Arrays are dense with the last axis fastest; weights are inputs, in the module's own order.",
        "",
        *(f"- `{line}`" for line in parameter_lines(facts)),
        *notes,
        "",
        f"Then: `kernelskill check {KERNEL} --tests {TESTS}` and `kernelskill run {KERNEL} --tests {TESTS}`.",
    ]
    return "\n".join(lines) + "\n"


def tests_text(symbol: str, facts: ModuleFacts) -> str:
    """Return the test.py."""
    settable = list(facts.cases[0])
    derived = list(facts.derived[0]) if facts.derived else []
    sizes = ", ".join(f"{name}={name}" for name in settable)
    given = [v.name for v in facts.values if v.role in ("input", "weight", "number")]
    extras = f", derived={tuple(derived)!r}" if derived else ""
    extras += f", extents={facts.extents!r}" if facts.extents else ""
    lines = [
        f'"""Test of {symbol}: {MODULE} is the reference. Written by `kernelskill import kernelbench`."""',
        "",
        "from pathlib import Path",
        "",
        f"import {Path(MODULE).stem}",
        "",
        "from kernelskill.tasks.torch_module import TorchModule",
        "",
        f'KERNEL = "{symbol}"',
        f"MODULE = TorchModule(Path({Path(MODULE).stem}.__file__))",
        *_cases(facts),
        *_tolerances(facts),
        "",
        "",
        f"def make_inputs({', '.join(['rng', *settable])}):",
        f"    return MODULE.inputs(rng, dict({sizes}){extras})",
        "",
        "",
        f"def reference({', '.join([*given, *settable])}):",
        "    given = {",
        *(f'        "{name}": {name},' for name in given),
        "    }",
        f"    return MODULE.reference(given, dict({sizes}))",
    ]
    return "\n".join(lines) + "\n"


def _cases(facts: ModuleFacts) -> list[str]:
    last = len(facts.cases) - 1
    rows = [
        ", ".join([*(f"{n}={v}" for n, v in case.items()), *(["time=True"] if number == last else [])])
        for number, case in enumerate(facts.cases)
    ]
    return ["CASES = [", *(f"    dict({row})," for row in rows), "]"]


def _tolerances(facts: ModuleFacts) -> list[str]:
    """Say what holds for each output without a TOLERANCE: only its defaults count from an output's own scale."""
    rows = []
    for value in facts.values:
        tolerance = default_tolerance(value.dtype)
        if value.role == "output":
            limit = f"rtol {tolerance.rtol:g}, atol {tolerance.atol:g} times the root mean square"
            rows.append(f"#   {value.name} ({value.dtype}): {limit if tolerance.rtol else 'exact'}")
    return [
        "# By default outputs are compared by their types; TOLERANCE = dict(rtol=..., atol=...) sets others:",
        *rows,
    ]


def _meaning(value: Value, facts: ModuleFacts) -> str:
    if value.role == "weight":
        return f"(weight {value.origin})"
    if value.name in facts.extents:
        tensor, axis = facts.extents[value.name]
        return f"(length of axis {axis} of {tensor})"
    return f"({value.role})"
