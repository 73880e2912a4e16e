"""The text of stages: kernels one after the other, and a statement that allocates, launches and frees."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.integers import subtract, value_of
from kernelskill.algorithm.lowering.kernel import Emitted, LaunchFacts, emit
from kernelskill.algorithm.lowering.launching import text_at_launch
from kernelskill.algorithm.lowering.text import Names, Writer
from kernelskill.algorithm.stages.model import Cut, Sharing, Stage, Stages
from kernelskill.algorithm.types import cuda_name

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class EmittedStages:
    """The kernels and the statement that launches them."""

    code: str
    launch: str


def emit_stages(stages: Stages, facts: LaunchFacts) -> EmittedStages:
    """Return the CUDA text of stages.

    Args:
        stages: The kernels; their names and those of what they need are changed where the file has them already.
        facts: Of the launch that they replace.

    Raises:
        IllegalMove: A schedule does not fit its algorithm.
    """
    return _Emission(stages, facts).run()


class _Emission:
    def __init__(self, stages: Stages, facts: LaunchFacts) -> None:
        self._stages = stages
        words = {word for text in facts.arguments.values() for word in _IDENTIFIER.findall(text)}
        self._names = Names({*facts.identifiers, *words, *_IDENTIFIER.findall(facts.stream)})
        arguments = dict(facts.arguments)
        for name in self._made():
            arguments[name] = self._names.fresh(name)
        self._facts = replace(facts, arguments=arguments)
        self._defined: dict[str, str] = {}
        self._identifiers = facts.identifiers | frozenset(arguments.values())

    def _made(self) -> list[str]:
        """Return the names of all that the launcher makes for the kernels."""
        cuts = [cut for sharing in self._stages.sharings for cut in sharing.cuts]
        names = [name for cut in cuts for name in (cut.parts, cut.steps)]
        return [*names, *(each.name for each in self._stages.temporaries)]

    def run(self) -> EmittedStages:
        out, texts = Writer(), []
        with out.block(""):
            for sharing in self._stages.sharings:
                self._share(out, sharing)
            stream = self._facts.stream or "0"
            for each in self._stages.temporaries:
                name, kind = self._facts.arguments[each.name], cuda_name(each.kind)
                out.line(f"{kind} *{name} = nullptr;")
                size = f"sizeof({kind})" + f" * {self._host(each.size, 10)}" * (value_of(each.size) != 1)
                out.line(f"cudaMallocAsync(&{name}, {size}, {stream});")
            for stage in self._stages.stages:
                emitted = self._emitted(stage)
                new = [text for text in _items(emitted.definitions) if text not in self._defined.values()]
                self._defined |= {_name_of(text): text for text in new}
                comment = f"// {stage.comment[:1].upper()}{stage.comment[1:]}."
                texts.append(_joined(new) + f"{comment}\n{emitted.kernel.rstrip()}")
                out.line(comment)
                tests = self._turns(stage)
                with out.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
                    is_block = bool(tests) and emitted.launch.startswith("{\n")
                    out.line(textwrap.dedent(emitted.launch[2:-2]) if is_block else emitted.launch)
            for each in self._stages.temporaries:
                out.line(f"cudaFreeAsync({self._facts.arguments[each.name]}, {stream});")
        return EmittedStages("\n\n".join(texts), out.text.rstrip("\n"))

    def _turns(self, stage: Stage) -> list[str]:
        """Return the tests that the loops have turns which are axes of a stage: no launch may be empty."""
        unknown = [loop for loop in stage.loops if value_of(subtract(loop.upper, loop.lower)) is None]
        return [f"{self._host(loop.upper, 8)} > {self._host(loop.lower, 8)}" for loop in unknown]

    def _emitted(self, stage: Stage) -> Emitted:
        """Return the text of a stage, which calls nothing as an earlier one calls something else."""
        kernel = self._names.fresh(stage.algorithm.kernel)
        algorithm, taken = replace(stage.algorithm, kernel=kernel), self._identifiers | {kernel}
        while True:
            emitted = emit(algorithm, stage.schedule, replace(self._facts, identifiers=taken))
            others = {
                name
                for text in _items(emitted.definitions)
                if (name := _name_of(text)) in self._defined and self._defined[name] != text
            }
            if not others:
                return emitted
            taken |= others

    def _share(self, out: Writer, sharing: Sharing) -> None:
        """Write how many blocks share each result, and how many steps each of them takes."""
        alone, share = self._names.fresh("blocks_alone"), self._names.fresh("blocks_each")
        factors = [] if value_of(sharing.rows) == 1 else [self._long(sharing.rows)]
        if sharing.columns > 1:
            factors.append(f"(({self._long(sharing.row)} + {sharing.columns - 1}) / {sharing.columns})")
        most = sharing.blocks
        out.line("// As many blocks share each result as keep the GPU busy.")
        out.line(f"const long long {alone} = {' * '.join(factors) or '1'};")
        out.line(f"const long long {share} = {alone} > 0 && {alone} < {most} ? {most} / {alone} : 1;")
        for cut in sharing.cuts:
            self._cut(out, cut, share)
            share = f"({share} / {self._facts.arguments[cut.parts]})"

    def _cut(self, out: Writer, cut: Cut, share: str) -> None:
        arguments = self._facts.arguments
        length = self._names.fresh(f"{cut.loop.name}_length")
        text = self._long(cut.loop.upper)
        if value_of(cut.loop.lower) != 0:
            text += f" - {self._long(cut.loop.lower)}"
        out.line(f"const long long {length} = {text};")
        steps, parts = arguments[cut.steps], arguments[cut.parts]
        groups = share if cut.multiple == 1 else f"({share} * {cut.multiple})"
        rounded = f"({length} + {groups} - 1) / {groups}" + (f" * {cut.multiple}" if cut.multiple > 1 else "")
        out.line(f"const long long {steps} = {rounded};")
        out.line(f"const long long {parts} = {length} > {steps} ? ({length} + {steps} - 1) / {steps} : 1;")

    def _long(self, expression: Expression) -> str:
        if isinstance(expression, Sym) or value_of(expression) is not None:
            return self._host(expression, 10)
        return f"static_cast<long long>({self._host(expression)})"

    def _host(self, expression: Expression, context: int = 0) -> str:
        return text_at_launch(expression, self._facts, context)


def _items(definitions: str) -> list[str]:
    """Return the constants, types and functions that stand before a kernel, one by one."""
    found: list[str] = []
    for block in definitions.strip("\n").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if all(line.startswith(("constexpr ", "#include ")) for line in lines):
            found += lines
        elif block.strip():
            found.append(block.strip("\n"))
    return found


def _name_of(text: str) -> str:
    """Return what an item defines; the whole of it where it is no definition."""
    found = re.search(r"^constexpr int (\w+)|\) (\w+) \{$|^__device__.*? (\w+)\(", text, re.MULTILINE)
    return next(filter(None, found.groups()), text) if found is not None else text


def _joined(items: Sequence[str]) -> str:
    """Return items as text, constants in one paragraph."""
    constants = [item for item in items if "\n" not in item]
    paragraphs = ["\n".join(constants)] if constants else []
    paragraphs += [item for item in items if "\n" in item]
    return "".join(f"{text}\n\n" for text in paragraphs)
