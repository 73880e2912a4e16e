"""The Markdown report of a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelskill.agents.kept_bits import SAME_BITS
from kernelskill.report import figures, foresight, promises
from kernelskill.report.tables import plain, table
from kernelskill.report.view import CaseRow, KernelRow, RunView, first_bottlenecks
from kernelskill.schema.evaluation import Verdict, VerdictKind
from kernelskill.schema.profile import KernelProfile
from kernelskill.schema.run import Member
from kernelskill.tasks.snapshot import SOURCES_FOLDER, TESTS_FOLDER

_MOST_TRIED = 60


def render(view: RunView) -> str:
    """Return the report as Markdown."""
    sections = [
        _headline(view),
        _cases(view),
        _limits(view),
        foresight.hot_kernels(view),
        _changes(view),
        _kernels(view.kernels),
        _list("Assumptions", view.best.assumptions, "None: the result holds wherever the original does."),
        _list("Not verified", view.unverified, "Nothing was left out."),
        promises.section(view.refusals),
        _tried(view),
        _searches(view),
        foresight.predictions(view),
        _usage(view),
        _refusals(view),
        _alternatives(view),
        _list("Notes", view.notes, ""),
        _conditions(view),
        _reproduce(view),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def headline(view: RunView) -> str:
    """Return the run in one sentence."""
    name = view.task.name
    if not view.improved:
        tried = len(view.tried)
        what = (
            "nothing could be tried" if not tried else f"none of {tried} candidates was faster beyond doubt"
        )
        return f"{name}: no change accepted; {what}"
    confirmed = view.state.confirmed
    found = figures.speedup(view.headline_speedup, view.evidence)
    steps = len(view.best.lineage.patches)
    text = f"{name}: {found} in {steps} accepted change{'s' if steps != 1 else ''}"
    if (
        confirmed is not None
        and confirmed.verdict.low is not None
        and confirmed.verdict.low != confirmed.verdict.high
    ):
        text += f" (95 % interval {confirmed.verdict.low:.2f} to {confirmed.verdict.high:.2f}, confirmed with fresh seeds)"
    return text


def _headline(view: RunView) -> str:
    lines = [f"# {headline(view)}", ""]
    gpu = view.conditions.gpu
    if view.evidence == "estimated":
        lines.append(
            f"Every time and speedup here is **estimated** for {gpu} by a model of the device; nothing was "
            "measured on a GPU. Results were checked by running the kernels on the emulated device."
        )
    else:
        lines.append(f"Measured on {gpu}. Speedup is the original's time over the result's time.")
    stop = view.state.finished
    if stop is not None:
        lines.append(f"\nThe run stopped because {figures.stop_reason(stop.reason)}.")
    elif view.state.interrupted:
        lines.append("\nThe run was interrupted; `kernelskill resume` continues it.")
    confirmed = view.state.confirmed
    if confirmed is not None and confirmed.verdict.kind is not VerdictKind.ACCEPTED:
        lines.append(
            f"\nThe confirmation did **not** hold the gain found in the search: {confirmed.verdict.reason}."
        )
    return "\n".join(lines)


def _cases(view: RunView) -> str:
    rows = [_case_row(row, view) for row in view.cases]
    if not rows:
        return ""
    header = (
        "case",
        "original",
        "result",
        "speedup",
        "memory rate",
        "arithmetic rate",
        "of the roof, before",
        "after",
    )
    return "\n\n".join(["## Timed cases\n\n" + table(header, rows), *compared(view.cases)])


def compared(rows: Sequence[CaseRow]) -> list[str]:
    """Return a sentence for each case whose library call was timed too."""
    return [
        f"The test's `baseline()` takes {figures.timing(row.library)} on {row.case.label} ({row.library.call.rstrip('.')});"
        f" the result is {row.library.median_ms / row.best.median_ms:.2f} times as fast."
        for row in rows
        if row.library is not None
    ]


def _case_row(row: CaseRow, view: RunView) -> tuple[str, ...]:
    after, before = row.roof_best, row.roof_original
    return (
        row.case.label,
        figures.timing(row.original),
        figures.timing(row.best),
        figures.speedup(row.speedup, view.evidence),
        figures.per_second(after.bytes_per_s, "B") if after and after.bytes_per_s else "-",
        figures.per_second(after.flops_per_s, "FLOP") if after and after.flops_per_s else "-",
        figures.percent(before.fraction if before else None),
        figures.percent(after.fraction if after else None),
    )


def _limits(view: RunView) -> str:
    parts = []
    for title, diagnosis in (("original", view.before), ("result", view.after)):
        if diagnosis is None or (title == "result" and view.after is view.before):
            continue
        found = first_bottlenecks(diagnosis)
        lines = [f"**{title}** (from {diagnosis.profile.source}):"]
        for bottleneck in found:
            evidence = ", ".join(f"{m.name} = {m.value:.4g}{m.unit}" for m in bottleneck.evidence)
            lines.append(
                f"- {bottleneck.kind.value.replace('_', ' ')} in `{bottleneck.kernel}` "
                f"({bottleneck.confidence:.0%} sure): {bottleneck.summary} [{evidence}]"
            )
        if not found:
            lines.append("- no limit was named")
        if diagnosis.profile.unavailable:
            lines.append(f"- better figures were not to be had: {diagnosis.profile.unavailable}")
        parts.append("\n".join(lines))
        if view.best.candidate.digest == view.original.candidate.digest:
            break
    return "## What limits it\n\n" + "\n\n".join(parts) if parts else ""


def _changes(view: RunView) -> str:
    if not view.changes:
        return ""
    parts = ["## Accepted changes"]
    for change in view.changes:
        verdict = _verdict(change.verdict) if change.verdict else "not judged by itself"
        text = f"### {change.number}. {change.label}\n\n{verdict}"
        if change.reason:
            text += f"\n\nWhy, in the model's words: {plain(change.reason)}"
        if change.assumptions:
            text += "\n\nRelies on: " + "; ".join(change.assumptions)
        parts.append(f"{text}\n\n```diff\n{change.diff.rstrip()}\n```")
    return "\n\n".join(parts)


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.kind.value.replace('_', ' ')}: {verdict.reason}"


def _kernels(rows: Sequence[KernelRow]) -> str:
    if not rows:
        return ""
    header = ("kernel", "registers", "shared memory", "spills", "occupancy", "block", "grid")
    body = []
    for row in rows:
        for name, side in ((f"{row.name} before", row.before), (f"{row.name} after", row.after)):
            if side is not None:
                body.append((name, *_kernel_cells(side)))
    return "## Registers, shared memory and occupancy\n\n" + table(header, body)


def _kernel_cells(kernel: KernelProfile) -> tuple[str, ...]:
    resources = kernel.resources
    limit = f" (by {kernel.occupancy_limit})" if kernel.occupancy_limit else ""
    return (
        str(resources.registers) if resources else "-",
        f"{resources.static_shared_bytes} B" if resources else "-",
        f"{resources.spill_store_bytes + resources.spill_load_bytes} B" if resources else "-",
        "-" if kernel.occupancy is None else f"{kernel.occupancy:.0%}{limit}",
        " x ".join(map(str, kernel.block)),
        " x ".join(map(str, kernel.grid)),
    )


def _tried(view: RunView) -> str:
    if not view.tried:
        return ""
    rows = []
    for row in view.tried[:_MOST_TRIED]:
        gain = "-" if row.verdict.speedup is None else figures.speedup(row.verdict.speedup, view.evidence)
        label = f"{row.label} (combined)" if row.combined else row.label
        rows.append(
            (str(row.round), label, row.verdict.kind.value.replace("_", " "), gain, row.verdict.reason)
        )
    text = "## What was tried\n\n" + table(("round", "change", "verdict", "over its base", "why"), rows)
    hidden = len(view.tried) - _MOST_TRIED
    return text + (f"\n\nand {hidden} more in events.jsonl" if hidden > 0 else "")


def _searches(view: RunView) -> str:
    """Return what parameter searches looked at; only what they kept was evaluated in full."""
    rows = [
        (
            str(event.round),
            event.label,
            str(event.points),
            str(event.timed),
            str(event.pruned),
            str(event.failed),
            ", ".join(f"`{label}`" for label in event.labels) or "-",
        )
        for event in view.searches[:_MOST_TRIED]
    ]
    header = ("round", "offered as", "points", "timed briefly", "ruled out", "failed", "went on")
    return "## Parameters searched\n\n" + table(header, rows) if rows else ""


def _usage(view: RunView) -> str:
    rows = [
        (
            f"{row.role} ({row.models})" if row.models else row.role,
            str(row.asked),
            str(row.answered),
            str(row.changes),
            str(row.won),
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            "unknown" if row.cost_usd is None else f"{row.cost_usd:.4f} USD",
        )
        for row in view.usage
    ]
    header = ("role", "asked", "answered", "changes", "accepted", "tokens in", "tokens out", "cost")
    return "## What the model was asked\n\n" + table(header, rows) if rows else ""


def _refusals(view: RunView) -> str:
    if not view.refusals:
        return ""
    skills: dict[tuple[str, str], list[str]] = {}
    for refusal in view.refusals:
        skills.setdefault((refusal.kernel or "-", refusal.reason), []).append(refusal.skill)
    rows = [(", ".join(names), kernel, reason) for (kernel, reason), names in skills.items()]
    return "## What did not apply to the original\n\n" + table(("skills", "kernel", "reason"), rows)


def _alternatives(view: RunView) -> str:
    rows = [
        (
            figures.speedup(member.speedup, view.evidence),
            _results(member),
            " + ".join(patch.label for patch in member.lineage.patches),
        )
        for member in view.alternatives
    ]
    return "## Alternatives\n\n" + table(("speedup", "results", "changes"), rows) if rows else ""


def _results(member: Member) -> str:
    if SAME_BITS in member.assumptions:
        return "same bits in every test"
    return "exact" if member.exact else "may round otherwise"


def _conditions(view: RunView) -> str:
    c = view.conditions
    spend = view.state.spend
    rows = [
        ("device", c.device),
        ("GPU", c.gpu),
        ("driver", c.driver or "none"),
        ("compiler", c.cuda),
        ("SM clock", "-" if c.sm_clock_mhz is None else f"{c.sm_clock_mhz:.0f} MHz"),
        ("host", c.host),
        ("kernelskill", f"{c.kernelskill} on Python {c.python}"),
        ("evidence", c.evidence),
        ("ceilings", foresight.ceilings(view)),
        ("samples a case", _samples(view)),
        ("candidates evaluated", str(spend.evaluations)),
        ("device time", f"{spend.device_seconds:.1f} s"),
        ("wall time", f"{spend.seconds:.0f} s"),
    ]
    return "## Conditions\n\n" + table(("", ""), [(k, v) for k, v in rows if v])


def _samples(view: RunView) -> str:
    counts = sorted({len(row.best.samples_ms) for row in view.cases})
    return ", ".join(map(str, counts)) or "-"


def _reproduce(view: RunView) -> str:
    """Return what to type in the run folder, and the calls of the tools that made the figures."""
    main = view.best.candidate.main
    check = (
        "kernelskill", "check", f"task/{SOURCES_FOLDER}/{main}",
        "--tests", f"task/{TESTS_FOLDER}/{view.tests_name}",
        "--candidate", f"result/{main}", "--device", str(view.started.config.get("device", "auto")),
    )  # fmt: skip
    lines = ["# check the result with its test again", shlex.join(check)]
    if view.has_reproducer:
        program = (Path("result") / main).with_name("reproducer.cu").as_posix()
        flags = ("-O3", "-arch=native", *view.task.flags)
        lines += [
            "# time it by itself; needs a GPU",
            f"{shlex.join(('nvcc', *flags, '-o', 'reproducer', program))} && ./reproducer",
        ]
    text = "## Reproduce\n\nIn the run folder:\n\n" + _code(lines)
    # The folders of the build cache that the calls were made in say nothing to a reader.
    calls = [re.sub(r"^cd \S+ && ", "", command) for command in view.commands]
    return f"{text}\n\nThe tools were called like this:\n\n{_code(calls)}" if calls else text


def _code(lines: Sequence[str]) -> str:
    return "```sh\n" + "\n".join(lines) + "\n```"


def _list(title: str, items: Iterable[str], empty: str) -> str:
    lines = [f"- {item}" for item in items]
    if not lines:
        return f"## {title}\n\n{empty}" if empty else ""
    return f"## {title}\n\n" + "\n".join(lines)
