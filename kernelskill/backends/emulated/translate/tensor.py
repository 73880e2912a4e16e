"""Matrix instructions."""

from __future__ import annotations

from kernelskill.backends.emulated.translate.function import Handler

HANDLERS: dict[str, Handler] = {}
