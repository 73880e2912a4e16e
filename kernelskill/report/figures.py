"""How figures are written for people: units, enough digits, and the word `estimated` where it is due."""

from __future__ import annotations

from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Timing

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def milliseconds(value: float) -> str:
    """Return a time with three significant digits in the unit that suits it."""
    if value >= 1000:
        return f"{value / 1000:.3g} s"
    if value >= 1:
        return f"{value:.3g} ms"
    return f"{value * 1000:.3g} us"


def timing(value: Timing) -> str:
    """Return a median with its spread; an estimate has none and says so."""
    text = milliseconds(value.median_ms)
    if value.evidence == "estimated":
        return f"~{text}"
    if value.high_ms > value.low_ms:
        half = (value.high_ms - value.low_ms) / 2 / value.median_ms
        return f"{text} +-{half:.1%}"
    return text


def per_second(value: float, unit: str) -> str:
    """Return a rate, for example `3.37 TB/s`."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}/s"
    return f"{value:.3g} {unit}/s"


def speedup(value: float, evidence: Evidence) -> str:
    """Return a speedup, for example `8.41x` or `estimated 8.4x`."""
    if evidence == "estimated":
        return f"estimated {value:.3g}x"
    return f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


_REASONS = {
    "rounds": "the limit of rounds is reached",
    "patience": "several rounds brought no gain",
    "seconds": "the limit of wall time is reached",
    "device_seconds": "the limit of device time is reached",
    "evaluations": "the limit of evaluations is reached",
    "near_roof": "the result is at the roof of the hardware",
    "nothing_to_do": "nothing is left to try",
    "interrupted": "it was interrupted",
    "user": "you asked for it",
    "model_budget": "the limit of tokens, money or requests of the model is reached",
}


def stop_reason(reason: str) -> str:
    """Return in words why a run stopped."""
    return _REASONS.get(reason, reason.replace("_", " "))


def percent(value: float | None) -> str:
    """Return a share, or a dash where it is unknown."""
    if value is None:
        return "-"
    return "<1%" if 0 < value < 0.01 else f"{value:.0%}"
