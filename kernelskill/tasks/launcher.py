"""Generate the launcher of a bare kernel from the `launch` function of its test.py."""

from __future__ import annotations

import re

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.task import Case, Promise
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.description import Configuration, TestDescription
from kernelskill.tasks.formula import c_text, evaluate
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.spelling import listed

_INTEGER = re.compile(
    r"(?:const\s+)?(?:(?:unsigned|signed|long|short|int|char|size_t|std::size_t|ptrdiff_t|std::ptrdiff_t"
    r"|(?:std::)?u?int(?:8|16|32|64)_t|uint|ulong|ushort)\s*)+(?:const)?"
)


class Formula(Record):
    """The sizes of a launch as C expressions in the kernel's integer parameters."""

    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str


class GeneratedLauncher(Record):
    """A launcher for a bare kernel, as text to append to its file."""

    symbol: str
    text: str
    parameters: tuple[str, ...]
    formula: Formula | None
    """None where a table over the cases holds the sizes."""
    assumption: str = ""
    """What it relies on beyond the kernel itself."""


def generate_launcher(
    unit: SourceUnit, kernel: KernelDef, template_arguments: str, process: TestProcess, test: TestDescription
) -> GeneratedLauncher:
    """Write `extern "C" void <kernel>_launch(...)` with the sizes that `launch` gives.

    The sizes become formulas in the kernel's integer parameters where `launch` is one for every case;
    else a table of the cases, which needs the promise `fixed_shapes`.

    Raises:
        TaskError: launch fails, or neither form can hold what it gives.
    """
    _require_usable(kernel, template_arguments)
    types = _parameter_types(kernel, template_arguments)
    integers = [name for name, text in types.items() if _INTEGER.fullmatch(text.strip())]
    actual = [process.launch(case.index) for case in test.cases]
    formula = _formula(process, test.cases, integers, actual)
    assumption = ""
    if formula is None:
        if Promise.FIXED_SHAPES not in test.promise:
            raise TaskError(
                f"launch() is no formula in the integer parameters of {kernel.name} ({listed(integers)})",
                remedy='use only + - * // % min and max on them, or add PROMISE = {"fixed_shapes"}',
            )
        body = _table(test.cases, integers, actual)
        assumption = "the generated launcher knows only the sizes in CASES (fixed_shapes)"
    else:
        body = _formula_body(formula)
    symbol = _free_name(unit, f"{kernel.name}_launch")
    return GeneratedLauncher(
        symbol=symbol,
        text=_text(kernel, template_arguments, symbol, types, body),
        parameters=tuple(types),
        formula=formula,
        assumption=assumption,
    )


def split_template(name: str) -> tuple[str, str]:
    """Split `scale<float, 4>` into the name and `<float, 4>`; the second is empty where there is none."""
    base, bracket, rest = name.partition("<")
    return base.strip(), f"{bracket}{rest}".strip()


def _require_usable(kernel: KernelDef, template_arguments: str) -> None:
    needed = [p for p in kernel.template_parameters if not p.default]
    given = _arguments(template_arguments)
    if len(given) < len(needed) or (given and not kernel.template_parameters):
        names = [p.name for p in kernel.template_parameters]
        example = ", ".join("float" if p.kind == "typename" else "4" for p in kernel.template_parameters)
        raise TaskError(
            f"kernel {kernel.name} has the template parameters {listed(names)}, and KERNEL gives {len(given)}",
            remedy=f'write KERNEL = "{kernel.name}<{example}>"'
            if names
            else f'write KERNEL = "{kernel.name}"',
        )
    if any(not p.name for p in kernel.parameters):
        raise TaskError(f"kernel {kernel.name} has a parameter without a name", remedy="give it one")


def _arguments(template_arguments: str) -> list[str]:
    """Split `<float, Pair<int, 2>>` at its own commas."""
    parts, depth = [""], 0
    for character in template_arguments.strip()[1:-1]:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _parameter_types(kernel: KernelDef, template_arguments: str) -> dict[str, str]:
    """Return the kernel's parameter types with the template's parameters replaced."""
    given = _arguments(template_arguments)
    values = {
        p.name: given[index] if index < len(given) else p.default
        for index, p in enumerate(kernel.template_parameters)
    }

    def replaced(text: str) -> str:
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda word: values.get(word[0], word[0]), text)

    return {parameter.name: replaced(parameter.type_text) for parameter in kernel.parameters}


def _formula(
    process: TestProcess, cases: tuple[Case, ...], integers: list[str], actual: list[Configuration]
) -> Formula | None:
    """Return the sizes as formulas if they are the same ones, and right, in every case."""
    traces = [process.trace_launch(case.index, integers) for case in cases]
    first = traces[0]
    if first is None or any(trace != first for trace in traces):
        return None
    for case, wanted in zip(cases, actual, strict=True):
        if [evaluate(node, case.arguments) for node in first] != [*wanted.grid, *wanted.block, wanted.shared]:
            return None
    texts = [c_text(node) for node in first]
    return Formula(grid=tuple(texts[:3]), block=tuple(texts[3:6]), shared=texts[6])


def _formula_body(formula: Formula) -> list[str]:
    lines = [f"const dim3 grid({_trimmed(formula.grid)});", f"const dim3 block({_trimmed(formula.block)});"]
    if formula.shared != "0":
        lines.append(f"const size_t shared = {formula.shared};")
    return lines


def _trimmed(sizes: tuple[str, ...]) -> str:
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes = sizes[:-1]
    return ", ".join(sizes)


def _table(cases: tuple[Case, ...], integers: list[str], actual: list[Configuration]) -> list[str]:
    keys: dict[tuple[tuple[str, int], ...], Configuration] = {}
    for case, configuration in zip(cases, actual, strict=True):
        names = [name for name in integers if type(case.arguments.get(name)) is int]
        key = tuple((name, case.arguments[name]) for name in names)
        if not key and len(set(actual)) > 1:
            raise TaskError(
                f"launch() depends on what the kernel does not take: none of {listed(case.arguments)} is an"
                " integer parameter of it",
                remedy='write a launcher: extern "C" void name(...) that chooses grid and block',
            )
        if keys.setdefault(key, configuration) != configuration:
            raise TaskError(
                f"launch() gives two sizes where the kernel sees the same {listed(names)}",
                remedy='write a launcher: extern "C" void name(...) that chooses grid and block',
            )
    lines = ["dim3 grid, block;", "size_t shared = 0;"]
    word = "if"
    for key, configuration in keys.items():
        condition = " && ".join(f"{name} == {value}" for name, value in key) or "true"
        grid, block = _numbers(configuration.grid), _numbers(configuration.block)
        lines.append(f"{word} ({condition}) {{")
        lines += [f"    grid = dim3({grid});", f"    block = dim3({block});"]
        lines += [f"    shared = {configuration.shared};"] if configuration.shared else []
        word = "} else if"
    return [*lines, "} else {", "    return;  // no case of test.py has these sizes", "}"]


def _numbers(sizes: tuple[int, int, int]) -> str:
    return _trimmed(tuple(str(size) for size in sizes))


def _free_name(unit: SourceUnit, wanted: str) -> str:
    name = wanted
    while re.search(rf"\b{name}\b", unit.text):
        name += "_"
    return name


def _text(
    kernel: KernelDef, template_arguments: str, symbol: str, types: dict[str, str], body: list[str]
) -> str:
    parameters = ", ".join(f"{text} {name}" for name, text in types.items())
    shared = ", shared" if any("shared" in line for line in body) else ""
    call = f"{kernel.qualified_name}{template_arguments}<<<grid, block{shared}>>>({', '.join(types)});"
    lines = [
        "",
        "// Launcher generated by kernelskill from launch() in test.py; edit it as you like.",
        f'extern "C" void {symbol}({parameters}) {{',
        *(f"    {line}" for line in [*body, call]),
        "}",
        "",
    ]
    return "\n".join(lines)
