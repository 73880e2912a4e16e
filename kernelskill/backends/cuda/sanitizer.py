"""Run compute-sanitizer over a one-shot replay and read its report."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from kernelskill.backends.cuda.client import worker_environment
from kernelskill.backends.cuda.job import write_job
from kernelskill.isolation.child import Limits, private_folder, run_child
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
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK|LEAK) SUMMARY: (\d+)")


class SanitizerFinding(Record):
    """One error that the sanitizer reports in device code."""

    tool: Tool
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
    tools: tuple[Tool, ...] = ("memcheck", "racecheck"),
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
    findings: list[SanitizerFinding] = []
    ran: list[Tool] = []
    problems: list[str] = []
    commands: list[str] = []
    for tool in tools:
        with private_folder("kernelskill-sanitizer-") as folder:
            command = [program, "--tool", tool, "--print-limit", "20"]
            command += write_job(folder, build, plan, contents, device=device, core=core, guard_bytes=0)
            done = run_child(
                command, limits=Limits(wall_s=limit_s), cwd=folder, env=worker_environment(folder)
            )
        commands.append(" ".join(command))
        text = done.stdout + "\n" + done.stderr
        if done.timed_out:
            problems.append(f"{tool} did not finish within {limit_s:g} s; check a smaller case")
        elif not _SUMMARY.search(text):
            problems.append(f"{tool} did not run: {_first_line(text)}")
        else:
            ran.append(tool)
            findings += parse_sanitizer(text, tool)
    return SanitizerReport(
        findings=tuple(findings), ran=tuple(ran), unavailable="; ".join(problems), commands=tuple(commands)
    )


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
        message=first.removeprefix("Error: ").removeprefix("Warning: "),
        kernel=place["kernel"].strip() if place else "",
        file=place["file"] or "" if place else "",
        line=int(place["line"] or 0) if place else 0,
        detail="; ".join(kept),
    )


def _first_line(text: str) -> str:
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    return next((line for line in lines if line and line != "COMPUTE-SANITIZER"), "no output")
