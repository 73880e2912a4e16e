"""Put a situation into the sections of a prompt. Source, tool output and text of others come in fences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelskill.agents.sections import Block, Line, Section, data, numbered, one_line, words
from kernelskill.agents.situation import Attempt, FittingSkill, PoolRecord, Situation
from kernelskill.profiling.potential import plain_name
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Gpu
from kernelskill.schema.profile import Bottleneck, KernelProfile, LineProfile
from kernelskill.schema.task import Allowance, Parameter, Promise, Role, Signature, Task, Tolerance
from kernelskill.skills.parsed_files import parsed
from kernelskill.source.signature import called_names
from kernelskill.source.unit import SourceUnit

_HOT, _LAUNCHER, _KERNEL, _OTHER = 8, 7, 5, 3
_MOST_CASES = 24
_MOST_LINES = 12
_MOST_BOTTLENECKS = 4
_MOST_METRICS = 6
_KEEP_BITS = (
    "No bit of any output may change (--keep-exact): every output is compared bit for bit with the original's, in all"
    " cases and with secret inputs. So reordering of floating-point sums is not wanted, in parallel or in vectors"
    " neither: each value keeps its operations, their types, their operands and their order, fused multiply-adds"
    " included. Change who computes what, when and from where: loads, layout, launch shape, reuse, what is computed"
    " twice. Say EXACTNESS: exact; anything else is turned down unread."
)


def contract(situation: Situation) -> Section:
    """Return what must hold of every answer for this task."""
    task = situation.task
    lines = [(9, "The launcher, whose signature is frozen:"), (9, "")]
    arguments = [(9, ""), (9, "What its arguments are to the test:"), (9, "")]
    arguments += [(9, f"- {line}") for line in _parameters(task)]
    return (
        Block(tuple(lines)),
        data(declaration(task.signature), info="cuda", importance=9),
        Block(tuple(arguments)),
        _cases(task),
        Block(tuple((9, line) for line in _terms(task, situation.only_kernel))),
        *_wishes(situation.wishes),
    )


def _cases(task: Task) -> Block:
    """Return the cases as the tests name them."""
    shown = []
    cases = sorted(task.cases, key=lambda case: not case.timed)
    for case in cases[:_MOST_CASES]:
        mark = f" (timed, weight {case.weight:g})" if case.timed else ""
        shown.append((9 if case.timed else 6, f"{one_line(case.label)}{mark}"))
    if len(cases) > _MOST_CASES:
        shown.append((6, f"and {len(cases) - _MOST_CASES} more"))
    return Block(tuple(shown), title="Cases that are checked; the timed ones count for speed:", fence="text")


def _wishes(lines: Sequence[str]) -> Section:
    """Return what the user asked for; a change against it is not taken."""
    if not lines:
        return ()
    said = "\n".join(f"- {one_line(line)}" for line in lines)
    return (data(said, title="What the user of this run asks for; keep to it:", importance=9),)


def declaration(signature: Signature) -> str:
    """Return the launcher's declaration as the compiler sees it."""
    parameters = ", ".join(f"{p.declared or '?'} {p.name}" for p in signature.parameters)
    linkage = 'extern "C" ' if signature.c_linkage else ""
    return f"{linkage}{signature.returns} {signature.symbol}({parameters});"


def _parameters(task: Task) -> Iterator[str]:
    for parameter in task.signature.parameters:
        yield f"`{parameter.name}`: {_described(parameter, task)}"


def _described(parameter: Parameter, task: Task) -> str:
    if parameter.kind == "stream":
        return "the stream to launch on"
    element = parameter.element.name if parameter.element is not None else "?"
    if parameter.kind == "scalar":
        return f"scalar of type `{element}`"
    role = {
        Role.INPUT: "input",
        Role.OUTPUT: "output",
        Role.INOUT: "input and output",
        Role.SCRATCH: "scratch, contents don't matter",
    }[task.roles[parameter.name]]
    overlap = "" if not parameter.is_restrict else ", overlaps with no other"
    return f"device pointer to `{element}`, {role}{overlap}{_tolerance(task.tolerances.get(parameter.name))}"


def _tolerance(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return ""
    scale = " times the root mean square of the expected values" if tolerance.scaled else ""
    return f", checked to rtol {tolerance.rtol:g}, atol {tolerance.atol:g}{scale}"


def _terms(task: Task, only_kernel: str) -> Iterator[str]:
    promised = sorted(p.value for p in task.promise)
    missing = sorted(p.value for p in Promise if p not in task.promise)
    yield f"Promised by the user (PROMISE): {', '.join(promised) or 'nothing'}."
    if missing:
        yield f"Not promised, so not to be assumed: {', '.join(missing)}."
    allowed = sorted(a.value for a in task.allow)
    forbidden = sorted(a.value for a in Allowance if a not in task.allow)
    yield f"Allowed (ALLOW): {', '.join(allowed) or 'nothing beyond exact arithmetic'}."
    if forbidden:
        yield f"Not allowed: {', '.join(forbidden)}."
    if Allowance.REORDER not in task.allow:
        yield _KEEP_BITS
    if task.flags:
        yield f"Compiler flags of both sides: {one_line(' '.join(task.flags))}"
    if only_kernel:
        yield f"Only the kernel `{only_kernel}` and its launches may be rewritten."


def gpu(facts: Gpu) -> Section:
    """Return what the device can do."""
    lines = [
        f"{facts.name}, compiled for {facts.architecture}: {facts.sm_count} SMs at {facts.clock_mhz:.0f} MHz.",
        f"Device memory: {facts.dram_bytes_per_s / 1e12:.2f} TB/s at most, {facts.copy_bytes_per_s / 1e12:.2f} TB/s"
        f" reached by a plain copy. L2: {facts.l2_bytes / 2**20:.0f} MiB, {facts.l2_bytes_per_s / 1e12:.1f} TB/s.",
        f"An SM has {facts.registers_per_sm} registers, {facts.shared_bytes_per_sm // 1024} KiB of shared memory"
        f" ({facts.shared_bytes_per_block // 1024} KiB a block at most, opt-in above 48 KiB),"
        f" {facts.max_threads_per_sm} threads, {facts.max_blocks_per_sm} blocks.",
        f"Arithmetic: {facts.fp32_flops_per_s / 1e12:.1f} TFLOP/s in float,"
        f" {facts.fp64_flops_per_s / 1e12:.1f} TFLOP/s in double.",
        f"A launch costs about {facts.launch_latency_s * 1e6:.1f} us.",
    ]
    return words("\n".join(lines))


def source(candidate: Candidate, hot: str = "", launcher: str = "") -> Section:
    """Return all files with line numbers; where something has to be left out, the hot kernel stays longest.

    Args:
        candidate: The sources.
        hot: Plain name of the kernel in which most can be won.
        launcher: Name of the launcher.
    """
    blocks = []
    files = sorted(candidate.files, key=lambda file: (file.path != candidate.main, file.path))
    for file in files:
        unit = parsed(file.text, file.path)
        role = " (the main file)" if file.path == candidate.main and len(files) > 1 else ""
        blocks.append(
            numbered(file.text, _importances(unit, hot, launcher), title=f"`{one_line(file.path)}`{role}:")
        )
    return tuple(blocks)


def _importances(unit: SourceUnit, hot: str, launcher: str) -> list[int]:
    count = len(unit.text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    weights = [_OTHER] * count
    called = {n for k in unit.kernels if k.name == hot for n in called_names(unit, k)}
    for function in (*unit.functions, *unit.kernels):
        weight = _KERNEL
        if function.name == hot or function.name in called:
            weight = _HOT
        elif function.name == launcher:
            weight = _LAUNCHER
        first = unit.line_of(function.span.start)
        last = unit.line_of(max(function.span.start, function.span.end - 1))
        for line in range(first, min(last, count) + 1):
            weights[line - 1] = max(weights[line - 1], weight)
    return weights


def diagnosis(situation: Situation) -> Section:
    """Return times, named limits with their evidence, each kernel's figures and the hottest lines."""
    found = situation.diagnosis
    estimated = " (estimated, nothing was measured)" if situation.evidence == "estimated" else ""
    head = (9, f"The incumbent is {situation.speedup:.3g} times as fast as the original{estimated}.")
    labels = {case.index: case.label for case in situation.task.cases}
    times = Block(
        tuple(
            (9, f"{one_line(labels.get(timing.case, '?'))}: {_time(timing.median_ms)}")
            for timing in situation.timings
        ),
        fence="text",
    )
    lines: list[Line] = []
    roof = found.roofline
    if roof is not None and roof.floor_ms is not None and roof.fraction is not None:
        lines.append(
            (9, f"On the longest case it is at {roof.fraction:.0%} of the roof ({roof.bound} bound):")
        )
        lines.append((9, f"at best it could take {_time(roof.floor_ms)}."))
    lines += [(9, ""), (9, "Limits, the most likely first:")]
    lines += [(8, line) for line in _bottlenecks(found.bottlenecks)] or [(8, "- none was named")]
    kernels = [(7, line) for kernel in found.profile.kernels[:6] for line in _kernel(kernel)]
    if kernels:
        lines += [(8, ""), (8, f"Kernels, the hottest first (from {found.profile.source}):"), *kernels]
    hot = list(_hot_lines(situation))
    blocks = [Block((head,)), times, Block(tuple(lines))]
    if hot:
        blocks.append(data("\n".join(hot), title="Hottest lines:", importance=6))
    return tuple(blocks)


def _bottlenecks(found: Sequence[Bottleneck]) -> Iterator[str]:
    for each in found[:_MOST_BOTTLENECKS]:
        evidence = ", ".join(f"{m.name} = {m.value:.4g}{m.unit}" for m in each.evidence[:_MOST_METRICS])
        where = f", lines {', '.join(map(str, each.lines))}" if each.lines else ""
        yield (
            f"- {each.kind.value} in `{one_line(each.kernel)}` ({each.confidence:.0%} sure, removing it could win"
            f" {each.gain:.0%} of the time{where}): {one_line(each.summary)} [{evidence}]"
        )


def _kernel(kernel: KernelProfile) -> Iterator[str]:
    resources = kernel.resources
    parts = [
        f"{kernel.time_share:.0%} of the time",
        f"grid {'x'.join(map(str, kernel.grid))}, block {'x'.join(map(str, kernel.block))}",
    ]
    if kernel.launches > 1:
        parts.append(f"{kernel.launches} launches")
    if resources is not None:
        parts.append(f"{resources.registers} registers, {resources.static_shared_bytes} B shared")
        if spilled := resources.spill_store_bytes + resources.spill_load_bytes:
            parts.append(f"{spilled} B spilled")
    if kernel.occupancy is not None:
        by = f", limited by {kernel.occupancy_limit}" if kernel.occupancy_limit else ""
        parts.append(f"occupancy {kernel.occupancy:.0%}{by}")
    yield f"- `{one_line(kernel.kernel)}`: {'; '.join(parts)}"


def _hot_lines(situation: Situation) -> Iterator[str]:
    texts = {file.path: file.text.split("\n") for file in situation.base.files}
    lines = [line for kernel in situation.diagnosis.profile.kernels for line in kernel.lines]
    for line in sorted(lines, key=_heat, reverse=True)[:_MOST_LINES]:
        known = texts.get(line.file, texts[situation.base.main])
        text = known[line.line - 1].strip() if 0 < line.line <= len(known) else ""
        figures = ", ".join(f"{name} = {value:.4g}" for name, value in list(line.metrics.items())[:4])
        yield f"{line.line}: {text}    [{figures}]"


def _heat(line: LineProfile) -> float:
    return max(line.metrics.values(), default=0.0)


def hot_kernel(situation: Situation) -> str:
    """Return the plain name of the kernel in which most can be won."""
    if situation.only_kernel:
        return situation.only_kernel
    known = situation.potentials
    if known:
        return max(sorted(known), key=lambda name: known[name].winnable)
    kernels = situation.diagnosis.profile.kernels
    return plain_name(kernels[0].kernel) if kernels else ""


def skills(found: Sequence[FittingSkill]) -> Section:
    """Return the text of fitting skills, the best fitting kept longest."""
    blocks = []
    for rank, each in enumerate(found):
        text, state = each.skill.text.strip(), ""
        if each.offered:
            state = "its mechanical form applies here and is tried anyway; offer it only in a better form"
        elif not each.skill.mechanical:
            state = "it has no mechanical form; only you can apply it"
        elif each.declined:
            # A reason may quote the source, so that it stands inside.
            text = f"Its mechanical form declined here: {one_line(each.declined)}\n\n{text}"
        title = f"`{each.skill.id}`: {each.skill.title}" + (f" ({state})" if state else "")
        blocks.append(data(text, title=title, info="markdown", importance=9 - rank))
    return tuple(blocks) or words("No skill answers what was diagnosed. Have an idea of your own.")


def pool(records: Sequence[PoolRecord]) -> Section:
    """Return how skills have done where the same was diagnosed, wins and losses."""
    lines = []
    for each in records:
        gain = f", {each.mean_speedup:.2f}x on average where timed" if each.mean_speedup is not None else ""
        text = f"{each.skill}: won {each.won} of {each.tried}{gain}"
        lines.append(
            text + (f"; last failure: {one_line(each.last_failure, 160)}" if each.last_failure else "")
        )
    if not lines:
        return words("Nothing yet about contexts like this one.")
    if not all(each.same_limit for each in records):
        return (
            *words("Of kernels of all kinds, since none with this limit is known:"),
            data("\n".join(lines)),
        )
    return (data("\n".join(lines)),)


def others(notes: Sequence[str]) -> Section:
    """Return what the other specialists offer or did last."""
    return (data("\n".join(map(one_line, notes))),) if notes else words("Nothing yet.")


def tried(attempts: Sequence[Attempt]) -> Section:
    """Return what was tried in this run, the latest kept longest."""
    if not attempts:
        return words("Nothing yet.")
    lines = []
    for position, each in enumerate(attempts):
        gain = f" ({each.gain:.3f}x over its base)" if each.gain is not None else ""
        text = f"round {each.round}, {each.specialist}: {one_line(each.label, 160)}: {one_line(each.outcome)}{gain}"
        lines.append((min(8, 1 + 8 * position // len(attempts)), text))
    return (Block(tuple(lines), fence="text"),)


def direction(text: str) -> Section:
    """Return what the planner asked for, as a hint."""
    return (data(text),) if text else words("None in particular: choose what you expect to gain most.")


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.4g} ms" if milliseconds >= 1 else f"{milliseconds * 1000:.4g} us"
