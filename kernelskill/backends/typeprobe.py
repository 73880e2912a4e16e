"""The launcher's signature as the compiler sees it.

A generated file includes the candidate and instantiates undefined templates over the launcher's type.
The compiler's front end refuses each with a message that holds a number for every parameter; no code
is generated. Typedefs, macros, `using` and enums are thereby resolved by the one who knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kernelskill.backends.diagnostics import SourceNames, find_errors, find_unclosed
from kernelskill.backends.element_types import DECLARED_STRUCTS, ELEMENT_TYPES
from kernelskill.backends.entry import ENTRY_FILE, SOURCES, include_line
from kernelskill.backends.flags import check_flags, named_paths
from kernelskill.backends.sandbox import run_compiler, written_sources
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import TaskError
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Parameter, Signature

_TIMEOUT_S = 60.0
_GENCODE = "arch=compute_90,code=sm_90"
_TEMPLATES = Path(__file__).with_name("typeprobe.cuh")
_STREAM, _POINTER, _CONST, _FIRST_ELEMENT = 1, 2, 4, 8
_RESULTS: tuple[Literal["void"], Literal["int"], Literal["cudaError_t"]] = ("void", "int", "cudaError_t")
_ANSWER = re.compile(
    r'incomplete type "kernelskill_(?P<what>count|result|parameter)'
    r'<(?P<numbers>-?\d+(?:, -?\d+)*)(?:, (?P<type>.*?))?>" '
)
_REFUSALS = (
    (
        re.compile(r"overloaded function"),
        "the launcher {symbol!r} is overloaded",
        "give the launcher a name that no other function has",
    ),
    (
        re.compile(r"function template"),
        "the launcher {symbol!r} is a template",
        'add an extern "C" function that calls it with fixed template arguments',
    ),
    (
        re.compile(r"is undefined|has no member"),
        "the compiler knows no function {symbol!r} at the end of the file",
        "name it in full, such as space::name, and see that no #if hides it",
    ),
)
_ACCEPTED = "use pointers to and values of plain C, half or CUDA vector types, or a cudaStream_t"


def probe_signature(
    candidate: Candidate,
    symbol: str,
    parameter_names: tuple[str, ...],
    flags: tuple[str, ...],
    toolchain: Toolchain,
    *,
    c_linkage: bool,
) -> Signature:
    """Return the launcher's signature with types resolved by the compiler.

    Args:
        candidate: The sources.
        symbol: The launcher's name as written; with its namespace where it has one.
        parameter_names: In order, as the parser read them.
        flags: The user's compiler flags.
        toolchain: Supplies nvcc.
        c_linkage: As the parser saw it.

    Raises:
        TaskError: The source does not compile, the launcher cannot be told apart, or a type cannot be passed.
    """
    check_flags(flags)
    log = _ask_compiler(candidate, _question(candidate, symbol, len(parameter_names)), flags, toolchain)
    answers = _read_answers(log)
    _refuse_errors(candidate, symbol, log)
    if answers.count is None or answers.result is None:
        raise TaskError(
            f"{symbol!r} is not a function that can be called", remedy="name the launcher in KERNEL"
        )
    if answers.count != len(parameter_names) or len(answers.parameters) != answers.count:
        raise TaskError(
            f"{symbol!r} has {answers.count} parameters for the compiler, "
            f"but {len(parameter_names)} names were read in its definition",
            remedy="write the parameter list without macros",
        )
    if answers.result < 0:
        raise TaskError(
            f"{symbol!r} returns {answers.result_text!r}",
            remedy="let the launcher return void, int or cudaError_t",
        )
    return Signature(
        symbol=symbol,
        parameters=tuple(
            _parameter(symbol, name, answers.parameters[position], answers.parameter_text(position))
            for position, name in enumerate(parameter_names)
        ),
        returns=_RESULTS[answers.result],
        c_linkage=c_linkage,
    )


@dataclass
class _Answers:
    count: int | None = None
    result: int | None = None
    parameters: dict[int, int] = field(default_factory=dict)
    function_type: str = ""
    """As the compiler spells it, for people: `int (const real *, float4)`."""

    @property
    def result_text(self) -> str:
        return self.function_type[: self._opening].strip()

    def parameter_text(self, position: int) -> str:
        inside = self.function_type[self._opening + 1 : self.function_type.rfind(")")]
        parts = _split_outside_brackets(inside)
        return parts[position] if len(parts) == self.count else ""

    @property
    def _opening(self) -> int:
        """Where the bracket of the parameter list opens: the partner of the last closing one."""
        depth = 0
        for position in range(self.function_type.rfind(")"), -1, -1):
            depth += {")": 1, "(": -1}.get(self.function_type[position], 0)
            if depth == 0:
                return position
        return len(self.function_type)


def _question(candidate: Candidate, symbol: str, count: int) -> str:
    function = f"kernelskill_function<decltype({symbol})>"
    lines = ["namespace kernelskill_end_of_file {}", *(f"struct {name};" for name in DECLARED_STRUCTS)]
    lines.append("template <class ks_t> struct kernelskill_element { static const int ks_value = 0; };")
    for number, element in enumerate(ELEMENT_TYPES):
        value = (number + 1) * _FIRST_ELEMENT
        lines.append(
            f"template <> struct kernelskill_element<{element.name}> {{ static const int ks_value = {value}; }};"
        )
    lines.append(f'#include "{_TEMPLATES.name}"')
    lines.append(f"template struct kernelskill_count<{function}::ks_count, decltype({symbol})>;")
    lines.append(
        f"template struct kernelskill_result<kernelskill_result_code<{function}::ks_result>::ks_value>;"
    )
    for position in range(count):
        nth = f"kernelskill_nth<{position}, {function}::ks_list>::ks_type"
        lines.append(f"template struct kernelskill_parameter<{position}, kernelskill_code<{nth}>::ks_value>;")
    return include_line(candidate) + "\n".join(lines) + "\n"


def _ask_compiler(candidate: Candidate, question: str, flags: tuple[str, ...], toolchain: Toolchain) -> str:
    extra = {ENTRY_FILE: question, _TEMPLATES.name: _TEMPLATES.read_text(encoding="utf-8")}
    command = [
        str(toolchain.nvcc),
        "-gencode",
        _GENCODE,
        *flags,
        "-w",
        "-c",
        f"../{ENTRY_FILE}",
        "-o",
        "../probe.o",
    ]
    with written_sources(candidate, extra) as work:
        result = run_compiler(command, work, toolchain, named_paths(flags), _TIMEOUT_S)
        log = result.stderr + result.stdout
        for prefix in (f"{work}/{SOURCES}/", f"../{SOURCES}/"):
            log = log.replace(prefix, "")
    if result.timed_out:
        raise TaskError(f"the compiler did not get through {candidate.main!r} in {_TIMEOUT_S:g} s")
    return log


def _read_answers(log: str) -> _Answers:
    answers = _Answers()
    for found in _ANSWER.finditer(log):
        numbers = [int(number) for number in found["numbers"].split(",")]
        if found["what"] == "count":
            answers.count = numbers[0]
            answers.function_type = found["type"] or ""
        elif found["what"] == "result":
            answers.result = numbers[0]
        else:
            answers.parameters[numbers[0]] = numbers[1]
    return answers


def _split_outside_brackets(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "(<[":
            depth += 1
        elif letter in ")>]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _refuse_errors(candidate: Candidate, symbol: str, log: str) -> None:
    """Raise for whatever the compiler said besides the answers."""
    rest = [line for line in log.splitlines() if "kernelskill_" not in line]
    files = {file.path: file.text for file in candidate.files}
    names = SourceNames(files, candidate.main, f"/{SOURCES}", ENTRY_FILE)
    if not find_unclosed(log, names):
        _refuse_symbol(symbol, rest)
    errors = find_errors("\n".join(rest), names)
    if errors:
        first = errors[0]
        place = f"{first.file}:{first.line}: " if first.file else ""
        excerpt = f": {first.excerpt}" if first.excerpt else ""
        raise TaskError(f"{place}{first.message}{excerpt}", remedy="the kernel must compile as it is")


def _refuse_symbol(symbol: str, lines: list[str]) -> None:
    """Raise where the compiler cannot tell which function is meant."""
    for line in lines:
        if line.startswith(f"../{ENTRY_FILE}"):
            for pattern, message, remedy in _REFUSALS:
                if pattern.search(line):
                    raise TaskError(message.format(symbol=symbol), remedy=remedy)


def _parameter(symbol: str, name: str, number: int, text: str) -> Parameter:
    if number == _STREAM:
        return Parameter(name=name, kind="stream", element=None, declared=text)
    position = number // _FIRST_ELEMENT - 1
    is_pointer = bool(number & _POINTER)
    if position < 0 or (position == 0 and not is_pointer):
        raise TaskError(
            f"parameter {name!r} of {symbol!r} has the type {text!r}, which cannot be passed",
            remedy=_ACCEPTED,
        )
    return Parameter(
        name=name,
        kind="pointer" if is_pointer else "scalar",
        element=ELEMENT_TYPES[position],
        is_const=bool(number & _CONST),
        declared=text,
    )
