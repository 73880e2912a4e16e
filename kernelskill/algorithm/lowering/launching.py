"""The statement that launches a scheduled kernel."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass

from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.integers import subtract, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.hoisting import hoistable
from kernelskill.algorithm.lowering.mapping import block_count, is_single
from kernelskill.algorithm.lowering.text import Names, Writer, bracketed
from kernelskill.algorithm.model import Parameter
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import cuda_name


@dataclass(frozen=True)
class LaunchFacts:
    """What the launch statement of the user's says."""

    arguments: Map[str, str]
    """Parameter -> text of its argument."""
    stream: str = ""
    configuration: str = ""
    """What stands between `<<<` and `>>>`; kept where the user's own mapping is."""
    qualifier: str = ""
    """What stands before the kernel's name in the launch, as `nn::`."""
    identifiers: frozenset[str] = frozenset()
    """Every identifier of the file: none of them is used for anything new."""


def parameter_text(parameter: Parameter) -> str:
    """Return the declaration of a parameter; buffers of vectors or records are taken as their elements."""
    if not parameter.view:
        return parameter.text
    const = "const " if parameter.is_const else ""
    restrict = " __restrict__" if parameter.is_restrict else ""
    return f"{const}{cuda_name(parameter.kind)}*{restrict} {parameter.name}"


def argument_text(parameter: Parameter, facts: LaunchFacts) -> str:
    """Return the argument of a parameter."""
    text = facts.arguments[parameter.name]
    if not parameter.view:
        return text
    const = "const " if parameter.is_const else ""
    return f"reinterpret_cast<{const}{cuda_name(parameter.kind)}*>({text})"


class Launch:
    """Writes the launch: numbers of blocks, the test for wide accesses, the call."""

    def __init__(self, context: Context, facts: LaunchFacts) -> None:
        self._context, self._facts = context, facts
        self._algorithm, self._schedule = context.algorithm, context.schedule

    def text(self) -> str:
        """Return the statement that launches the kernel."""
        context, out = self._context, Writer()
        names = Names({*self._facts.identifiers, *context.constants})
        wide = context.index_type == "long long"
        counts = []
        with out.block(""):
            for text in context.axes.values():
                if is_single(text):
                    continue
                name = names.fresh(f"{text.axis.name}_blocks")
                out.line(f"const {context.index_type} {name} = {block_count(text, self._host)};")
                counts.append(name)
            if self._schedule.splits:
                counts.append(self._split_blocks(out, names, counts))
            blocks = " * ".join(counts) or "1"
            blocks = f"static_cast<unsigned>({blocks})" if wide else blocks
            configuration = f"{blocks}, {context.block_threads}"
            if self._facts.stream or context.shared_bytes:
                configuration += f", {context.shared_bytes or '0'}"
            if self._facts.stream:
                configuration += f", {self._facts.stream}"
            kernel = f"{self._facts.qualifier}{self._algorithm.kernel}"
            if not context.aligned_flag:
                self._call(out, kernel, configuration)
            else:
                test = names.fresh("aligned")
                out.line(f"const bool {test} = {self._aligned_test()};")
                with out.block(f"if ({test})"):
                    self._call(out, f"{kernel}<true>", configuration)
                with out.block("else"):
                    self._call(out, f"{kernel}<false>", configuration)
        return out.text.rstrip("\n")

    def _call(self, out: Writer, kernel: str, configuration: str) -> None:
        """Write one launch; what a GPU without that much shared memory says is seen as its error."""
        if self._context.shared_bytes:
            attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            out.line(f"cudaFuncSetAttribute({kernel}, {attribute}, {self._context.shared_bytes});")
        given = ", ".join(argument_text(p, self._facts) for p in self._algorithm.parameters)
        out.line(f"{kernel}<<<{configuration}>>>({given});")

    def _split_blocks(self, out: Writer, names: Names, counts: list[str]) -> str:
        """Return how many blocks share each point's loops: no more than have something to do."""
        context, schedule = self._context, self._schedule
        limit = context.constant("kSplits", schedule.splits)
        if counts:
            return limit
        name = names.fresh("splits")
        loop = next(r.loops[-1] for e in self._algorithm.expressions for r in hoistable(e))
        length = self._host(subtract(loop.upper, loop.lower), 9)
        steps = f"{context.constant('kLanes', schedule.lanes)}"
        steps = f"({steps} * {schedule.lane_vector})" if schedule.lane_vector > 1 else steps
        kind = context.index_type
        out.line(f"const {kind} {name}_needed = ({length} + {steps} - 1) / {steps};")
        out.line(
            f"const {kind} {name} = {name}_needed < 1 ? 1 : {name}_needed < {limit} ? {name}_needed : {limit};"
        )
        return name

    def _aligned_test(self) -> str:
        context = self._context
        tests = [
            f"{self._host(value, 10)} % {divisor} == 0"
            for value, divisor in sorted(context.divisible.items(), key=lambda item: item[0].key)
            if value_of(value) is None
        ]
        if any(value_of(v) is not None and (value_of(v) or 0) % d for v, d in context.divisible.items()):
            return "false"
        by_bytes: dict[int, list[str]] = {}
        for buffer, alignment in sorted(context.aligned.items()):
            by_bytes.setdefault(alignment, []).append(bracketed(self._facts.arguments[buffer]))
        for alignment, pointers in sorted(by_bytes.items()):
            joined = " | ".join(f"reinterpret_cast<size_t>({pointer})" for pointer in pointers)
            tests.append(f"({joined}) % {alignment} == 0")
        return " && ".join(tests) or "true"

    def _host(self, expression: Expression, context: int = 0) -> str:
        return text_at_launch(expression, self._facts, context)


def text_at_launch(expression: Expression, facts: LaunchFacts, context: int = 0) -> str:
    """Return the text of a value at the launch, where parameters are called otherwise."""
    arguments = facts.arguments

    def leaf(node: Expression) -> str | None:
        if isinstance(node, Sym) and node.name in arguments:
            return bracketed(arguments[node.name])
        return None

    return show(expression, leaf, context)
