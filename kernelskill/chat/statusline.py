"""The status line: device and clock, best time, speed-up, fraction of the roof, round, spend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelskill.chat import views
from kernelskill.report import figures

if TYPE_CHECKING:
    from kernelskill.session.records import SessionStatus

MOST_LINES = 3
_GAP = "  "


def status_parts(status: SessionStatus) -> list[str]:
    """Return what the status line says, the most important first."""
    parts = []
    if status.best_ms is None:
        parts.append("not measured")
    else:
        parts.append(views.time(status.best_ms, estimated=status.estimated))
        parts.append(views.speedup(status.speedup, estimated=status.estimated))
    if status.roof_fraction is not None:
        parts.append(f"{figures.percent(status.roof_fraction)} of roof")
    parts.append(_round(status))
    parts.append(_device(status))
    parts += _spend(status)
    if status.rules:
        parts.append(f"{status.rules} wish{'' if status.rules == 1 else 'es'}")
    return parts


def status_lines(status: SessionStatus, width: int) -> list[str]:
    """Return the status line, broken between its parts where the terminal is narrow."""
    lines = [""]
    for part in status_parts(status):
        fitted = part if len(part) < width else part[: width - 4] + "..."
        longer = f"{lines[-1]}{_GAP}{fitted}" if lines[-1] else fitted
        if len(longer) < width:
            lines[-1] = longer
        else:
            lines.append(fitted)
    return lines[:MOST_LINES]


def _round(status: SessionStatus) -> str:
    return f"round {status.round}" if status.open_round is None else f"round {status.open_round} (open)"


def _device(status: SessionStatus) -> str:
    name = status.gpu.removeprefix("NVIDIA ") or status.device
    if status.estimated:
        return f"{name} (emulated)"
    return name if status.clock_mhz is None else f"{name} {status.clock_mhz:.0f} MHz"


def _spend(status: SessionStatus) -> list[str]:
    parts = []
    spend, limit = status.spend, status.budget.device_seconds
    of = "" if limit is None else f"/{limit:g}"
    if spend.device_seconds or limit is not None:
        parts.append(f"{spend.device_seconds:.3g}{of} s device")
    if status.model_tokens:
        parts.append(f"{status.model_tokens} tokens")
    if status.model_usd:
        parts.append(f"{status.model_usd:.2f} USD")
    return parts
