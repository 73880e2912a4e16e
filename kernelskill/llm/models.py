"""Open a model by its spelling, for example `openai:NAME` or `mailbox:DIR`."""

from __future__ import annotations

from pathlib import Path

from kernelskill.errors import UsageError
from kernelskill.llm.base import Model
from kernelskill.llm.scripted import ScriptedModel

SPELLINGS = "none, openai:NAME, openai:NAME@URL, mailbox:DIR, scripted:FILE, record:FILE:MODEL, replay:FILE"


def open_model(spec: str, *, folder: Path | None = None) -> Model | None:
    """Return the model that a spelling means, or None for `none`.

    Args:
        spec: One of `SPELLINGS`.
        folder: The run's folder; what a model answered is kept there, so that nothing is paid for twice.

    Raises:
        UsageError: No model is spelled so, or one of its files cannot be used.
    """
    kind, _, rest = spec.strip().partition(":")
    if kind == "none" and not rest:
        return None
    if kind == "scripted" and rest:
        return ScriptedModel(Path(rest))
    raise UsageError(f"{spec!r} is no model", remedy=f"models are {SPELLINGS}")
