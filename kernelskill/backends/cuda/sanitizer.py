"""Run compute-sanitizer over a one-shot replay and read its report."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from kernelskill.backends.cuda.job import write_job
from kernelskill.backends.cuda.prepared import worker_environment
from kernelskill.isolation.child import ChildResult, Limits, private_folder, run_child
from kernelskill.schema.base import Record
from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan

Tool = Literal["memcheck", "racecheck", "synccheck", "initcheck"]

_LIMIT_S = 300.0
_PREFIX = re.compile(r"^=========\s?")
_PLACE = re.compile(r"\bat (?P<kernel>[^+]+)\+0x[0-9a-f]+(?: in (?P<file>[^:\[\]]+):(?P<line>\d+))?")
_FINDING = re.compile(
    r"^(Invalid |Error: |Warning: |Uninitialized |Barrier error|Potential |Out-of-|Illegal |Leaked |Race reported)"
)
_SUMMARY = re.compile(
    r"^========= (?:ERROR SUMMARY: (?P<errors>\d+) error"
    r"|RACECHECK SUMMARY: \d+ hazards? displayed \((?P<races>\d+) error)",
    re.MULTILINE,
)
_REPORT = "report.txt"
_SHOWN = 20
ALL_TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck", "initcheck")


class SanitizerFinding(Record):
    """One error that the sanitizer reports in device code."""

    tool: Tool
    severity: Literal["error", "warning"] = "error"
    """`warning` for what may be harmless: hazards that racecheck calls so, and all that initcheck says."""
    message: str
    """First line of the report, for example `Invalid __global__ write of size 4 bytes`."""
    kernel: str = ""
    file: str = ""
    line: int = 0
    detail: str = ""
    """The following lines, joined: thread, block, address."""


class SanitizerReport(Record):
    """What one or more tools found."""

    findings: tuple[SanitizerFinding, ...]
    ran: tuple[Tool, ...]
    unavailable: str = ""
    """Why a tool did not run, with the remedy."""
    commands: tuple[str, ...] = ()


def sanitize_plan(
    build: Build,
    plan: LaunchPlan,
    contents: Mapping[str, Path],
    *,
    device: int,
    core: Path,
    tools: tuple[Tool, ...] = ALL_TOOLS,
    limit_s: float = _LIMIT_S,
) -> SanitizerReport:
    """Run tools over one execution with exact allocation sizes: guard bands would hide small overruns."""
    program = find_sanitizer()
    if program is None:
        return SanitizerReport(
            findings=(),
            ran=(),
            unavailable="compute-sanitizer was not found; install it with the CUDA toolkit",
        )

    def run(tool: Tool) -> _ToolRun:
        return _run_tool(program, tool, build, plan, contents, device=device, core=core, limit_s=limit_s)

    # The tools are processes of their own and nothing is timed meanwhile: most of a run is their start.
    with ThreadPoolExecutor(max_workers=len(tools) or 1, thread_name_prefix="sanitizer") as pool:
        runs = list(pool.map(run, tools))
    return SanitizerReport(
        findings=tuple(finding for each in runs for finding in each.findings),
        ran=tuple(each.tool for each in runs if not each.problem),
        unavailable="; ".join(each.problem for each in runs if each.problem),
        commands=tuple(each.command for each in runs),
    )


class _ToolRun(Record):
    """What came of one tool."""

    tool: Tool
    findings: tuple[SanitizerFinding, ...]
    problem: str
    """Why it clears nobody; empty where it ran to its end or found something."""
    command: str


def _run_tool(
    program: str,
    tool: Tool,
    build: Build,
    plan: LaunchPlan,
    contents: Mapping[str, Path],
    *,
    device: int,
    core: Path,
    limit_s: float,
) -> _ToolRun:
    """Run one tool to its end and read its report."""
    with private_folder("kernelskill-sanitizer-") as folder:
        command = [program, "--tool", tool, "--print-limit", str(_SHOWN), "--log-file", _REPORT]
        command += write_job(folder, build, plan, contents, device=device, core=core, guard_bytes=0)
        done = run_child(command, limits=Limits(wall_s=limit_s), cwd=folder, env=worker_environment(folder))
        text = _report_text(folder / _REPORT, done)
    reading = read_report(text, tool)
    problem = ""
    if not reading.complete and not reading.findings:
        problem = (
            f"{tool} did not finish within {limit_s:g} s; check a smaller case"
            if done.timed_out
            else f"{tool} did not run to its end: {_first_line(text)}"
        )
    return _ToolRun(tool=tool, findings=reading.findings, problem=problem, command=" ".join(command))


class ReportReading(Record):
    """What a report of one tool says."""

    findings: tuple[SanitizerFinding, ...]
    complete: bool
    """Whether it ends with the tool's own count; a report that is cut off clears nobody."""


def read_report(text: str, tool: Tool) -> ReportReading:
    """Read one tool's report; the exit status says nothing.

    What the tool counts and we cannot read is a finding too: an unknown message is not a clean report.
    """
    findings = parse_sanitizer(text, tool)
    summaries = list(_SUMMARY.finditer(text))
    if not summaries:
        return ReportReading(findings=findings, complete=False)
    counted = int(summaries[-1]["errors"] or summaries[-1]["races"] or 0)
    if counted and not findings:
        message = f"{counted} errors are reported in words that cannot be read"
        findings = (SanitizerFinding(tool=tool, severity=_severity("", tool), message=message),)
    return ReportReading(findings=findings, complete=True)


def _report_text(report: Path, done: ChildResult) -> str:
    """Return the report: from its own file, where no kernel can print into it."""
    if report.is_file():
        return report.read_bytes().decode(errors="replace")
    return done.stdout + "\n" + done.stderr


def find_sanitizer() -> str | None:
    """Return the sanitizer's path: from PATH, else beside the usual toolkits."""
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    places = sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))
    return str(places[-1]) if places else None


def parse_sanitizer(text: str, tool: Tool) -> tuple[SanitizerFinding, ...]:
    """Return the findings of a report. API errors count only where nothing else explains them."""
    device: list[SanitizerFinding] = []
    api: list[SanitizerFinding] = []
    for block in _blocks(text):
        first, rest = block[0], block[1:]
        if _FINDING.match(first):
            device.append(_finding(first, rest, tool))
        elif first.startswith("Program hit "):
            api.append(SanitizerFinding(tool=tool, message=first))
    return tuple(device or api)


def _blocks(text: str) -> list[list[str]]:
    """Split a report into its entries: each starts a line at the margin after the prefix."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if not _PREFIX.match(line):
            continue
        content = _PREFIX.sub("", line).rstrip()
        if content.startswith(" ") and blocks:
            blocks[-1].append(content.strip())
        elif content:
            blocks.append([content])
    return blocks


def _finding(first: str, rest: list[str], tool: Tool) -> SanitizerFinding:
    place = next((match for line in (first, *rest) if (match := _PLACE.search(line))), None)
    kept = [line for line in rest if not line.startswith(("Saved host backtrace", "Host Frame"))]
    return SanitizerFinding(
        tool=tool,
        severity=_severity(first, tool),
        message=first.removeprefix("Error: ").removeprefix("Warning: "),
        kernel=place["kernel"].strip() if place else "",
        file=place["file"] or "" if place else "",
        line=int(place["line"] or 0) if place else 0,
        detail="; ".join(kept),
    )


def _severity(first: str, tool: Tool) -> Literal["error", "warning"]:
    return "warning" if tool == "initcheck" or first.startswith("Warning: ") else "error"


def _first_line(text: str) -> str:
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    return next((line for line in lines if line and line != "COMPUTE-SANITIZER"), "no output")
