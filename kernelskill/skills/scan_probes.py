"""What stands before and behind a scan of a block, read as two algorithms with the scan between them left out."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.model import CannotLift
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.launch_pairs import statement_of
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.shared_scan_edits import remaining_uses
from kernelskill.skills.shared_scans import Scan
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import Node, Span, named, span_of
from kernelskill.source.unit import SourceUnit

ELEMENTS, INCLUSIVE, EXCLUSIVE, TOTAL = "elements", "inclusive", "exclusive", "total"
"""Buffers that stand for what the scan takes, and for what it brings: one element a thread, one a block."""
_Patch = tuple[Span, str]


class ScanProbes:
    """The two halves of a kernel round its scan."""

    def __init__(
        self, unit: SourceUnit, kernel: KernelDef, launch: LaunchSite, scan: Scan, context: SkillContext
    ) -> None:
        """Read them.

        Raises:
            SkillRefused: The scan does not stand alone in the kernel, or a half can't be followed.
        """
        _refuse_entangled(unit, kernel, scan)
        self._unit, self._kernel, self._launch, self._scan = unit, kernel, launch, scan
        self._names: dict[str, str] = {}
        for wanted in (ELEMENTS, INCLUSIVE, EXCLUSIVE, TOTAL, "before_scan", "behind_scan"):
            self._names[wanted] = fresh_name(unit, context, wanted, self._names.values())
        self.twins: dict[str, str] = self._find_twins()
        """Parameters -> earlier ones that are given the same pointer; to the halves they are given as others."""
        self._others = {name: fresh_name(unit, context, f"{name}_other") for name in self.twins}
        flags = context.task.flags if context.task is not None else ()
        unit = parsed(self._text(), unit.path, flags)
        by_name = {found.kernel: found for found in unit.launches}
        try:
            self.before: Lifted = lift(unit, by_name[self._names["before_scan"]])
            self.behind: Lifted = lift(unit, by_name[self._names["behind_scan"]])
        except (CannotLift, KeyError) as refused:
            reason = refused.reason if isinstance(refused, CannotLift) else "its launch is not found again"
            raise SkillRefused(f"what stands round the scan: {reason}") from refused

    def buffer(self, what: str) -> str:
        """Return the name under which the halves have a buffer."""
        return self._names[what]

    def _text(self) -> str:
        """Return the file with the two halves as kernels and their launches."""
        unit, kernel = self._unit, self._kernel
        statement = statement_of(self._launch)
        if statement is None or kernel.body is None:
            raise SkillRefused(f"the launch on line {self._launch.line} is part of another statement")
        kind = self._scan.kind
        before = self._copy("before_scan", f"{kind}* {self._names[ELEMENTS]}", self._before())
        results = [self._names[each] for each in (INCLUSIVE, EXCLUSIVE, TOTAL)]
        behind = self._copy(
            "behind_scan", ", ".join(f"const {kind}* {each}" for each in results), self._behind()
        )
        declared = "".join(f"{kind}* {each} = nullptr;\n" for each in (self._names[ELEMENTS], *results))
        declared += "".join(
            f"{self._pointee(name)}* {other} = nullptr;\n" for name, other in self._others.items()
        )
        launches = self._call("before_scan", [self._names[ELEMENTS]]) + self._call("behind_scan", results)
        data, end, at = unit.data, kernel.span.end, statement.start_byte
        if end > at:
            raise SkillRefused("the kernel is defined behind its launch")
        parts = (data[:end].decode(), f"\n{before}\n{behind}\n", data[end:at].decode(), declared, launches)
        return "".join(parts) + data[at:].decode()

    def _copy(self, name: str, more: str, patches: Sequence[_Patch]) -> str:
        kernel = self._kernel
        if not kernel.parameters:
            raise SkillRefused("it has no parameters")
        last = kernel.parameters[-1].span.end
        changes = [(kernel.name_span, self._names[name]), (Span(last, last), f", {more}"), *patches]
        data, start = self._unit.data, kernel.span.start
        text = data[start : kernel.span.end]
        for span, new in sorted(changes, key=lambda change: (-change[0].start, -change[0].end)):
            text = text[: span.start - start] + new.encode() + text[span.end - start :]
        return text.decode()

    def _call(self, name: str, more: Sequence[str]) -> str:
        unit, launch = self._unit, self._launch
        callee = unit.text_of(launch.name_span).replace(launch.kernel, self._names[name], 1)
        named = zip(self._kernel.parameters, launch.arguments, strict=False)
        own = [self._others.get(parameter.name, argument.text) for parameter, argument in named]
        given = ", ".join([*own, *more])
        return f"{callee}{unit.text_of(launch.configuration_span)}({given});\n"

    def _find_twins(self) -> dict[str, str]:
        seen: dict[str, str] = {}
        twins: dict[str, str] = {}
        for parameter, argument in zip(self._kernel.parameters, self._launch.arguments, strict=False):
            if parameter.pointer_depth and seen.setdefault(argument.text, parameter.name) != parameter.name:
                twins[parameter.name] = seen[argument.text]
        return twins

    def _pointee(self, name: str) -> str:
        found = next(p for p in self._kernel.parameters if p.name == name)
        return found.pointee_type.replace("const", "").strip()

    @property
    def _place(self) -> str:
        return f"blockIdx.x * {self._scan.threads} + threadIdx.x"

    def _gone(self) -> list[_Patch]:
        """Return what takes the array away."""
        scan = self._scan
        return [(span_of(statement), ";") for statement in (*scan.copies, scan.array.declaration)]

    def _before(self) -> list[_Patch]:
        scan, body = self._scan, self._kernel.body
        assert body is not None
        target = f"{self._names[ELEMENTS]}[{self._place}] = "
        end = Span(scan.statements[0].start_byte, body.end_byte - 1)
        if scan.fill is not None:
            place = Span(scan.fill.statement.start_byte, scan.fill.value.start_byte)
            return [*self._gone(), (place, target), (end, "")]
        assert scan.variable is not None
        return [*self._gone(), (end, f"{target}{scan.variable.name};\n")]

    def _behind(self) -> list[_Patch]:
        scan = self._scan
        lines = [
            f"{declared.name} = {self._result(which) if which in (INCLUSIVE, EXCLUSIVE) else which};"
            for declared, which in scan.scalars
        ]
        core = Span(scan.statements[0].start_byte, scan.statements[-1].end_byte)
        patches = [*self._gone(), (core, " ".join(lines) or ";")]
        patches += [(span_of(node), self._result(which)) for node, which in scan.reads]
        if scan.fill is not None:
            patches.append((span_of(scan.fill.statement), ";"))
        return patches

    def _result(self, which: str) -> str:
        return f"{self._names[which]}[{'blockIdx.x' if which == TOTAL else self._place}]"


def _refuse_entangled(unit: SourceUnit, kernel: KernelDef, scan: Scan) -> None:
    """Decline where more than its own threads' elements and results pass the scan.

    Raises:
        SkillRefused: They do.
    """
    if scan.way.operator != "+":
        raise SkillRefused("the scan takes no sum")
    in_shared = scan.fill is None and scan.variable is None
    if in_shared or scan.needs_array or scan.share > 1 or scan.is_repeated or scan.block != kernel.body:
        raise SkillRefused("other threads read the results in shared memory, or the scan stands in a loop")
    alone = sum(v.declaration == scan.array.declaration for v in kernel.locals) == 1
    if not alone or remaining_uses(unit, kernel, scan, scan.array):
        raise SkillRefused(f"{scan.array.name!r} is used besides the scan")
    if not _is_statement(kernel, scan.array.declaration):
        raise SkillRefused(f"{scan.array.name!r} is declared inside another statement")


def _is_statement(kernel: KernelDef, node: Node) -> bool:
    return kernel.body is not None and node in named(kernel.body)
