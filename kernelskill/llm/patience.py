"""How long and how often a server is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from kernelskill.errors import ConfigError
from kernelskill.schema.base import Record

_SETTINGS = (("parallel", "PARALLEL", 256), ("attempts", "ATTEMPTS", 100), ("silence_s", "TIMEOUT", 86400))


class Patience(Record):
    """Limits of asking and waiting."""

    parallel: int = 4
    """Requests under way at once."""
    attempts: int = 6
    attempts_at_first: int = 3
    """Attempts to reach a server that has never answered."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    """Longest wait before another attempt of our own choice."""
    longest_asked_wait_s: float = 300.0
    """Longest `Retry-After` that is waited for."""
    connect_s: float = 10.0
    silence_s: float = 300.0
    """Longest silence in an answer; a slow machine reads a long prompt for minutes."""
    answer_s: float = 1800.0
    """Longest time for one whole answer."""


def patience_from(environment: Mapping[str, str]) -> Patience:
    """Return what `KERNELSKILL_MODEL_PARALLEL`, `_ATTEMPTS` and `_TIMEOUT` (seconds of silence) ask for.

    Raises:
        ConfigError: One of them is no whole number, or out of range.
    """
    values: dict[str, float] = {}
    for name, suffix, most in _SETTINGS:
        variable = f"KERNELSKILL_MODEL_{suffix}"
        text = environment.get(variable, "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= most:
            raise ConfigError(f"{variable} is {text!r}", remedy=f"give a whole number from 1 to {most}")
        values[name] = int(text)
    values["answer_s"] = max(Patience().answer_s, values.get("silence_s", 0))
    return Patience.model_validate(values)


class Rest:
    """A time before which no request goes out, because the server has asked for it."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self, seconds: float) -> None:
        """Rest from now on for this long at least."""
        self._until = max(self._until, time.monotonic() + seconds)

    def wait(self, stop: threading.Event) -> None:
        """Wait until the rest is over or `stop` is set."""
        left = self._until - time.monotonic()
        if left > 0:
            stop.wait(left)
