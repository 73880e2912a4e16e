"""Open a model by its spelling, for example `openai:NAME` or `mailbox:DIR`."""

from __future__ import annotations

from pathlib import Path

from kernelskill.config import process_environment
from kernelskill.errors import UsageError
from kernelskill.llm.address import parse_address
from kernelskill.llm.base import Model
from kernelskill.llm.keys import NO_KEY, find_key
from kernelskill.llm.patience import patience_from
from kernelskill.llm.prices import find_price
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
    if kind == "openai":
        return _openai(rest)
    raise UsageError(f"{spec!r} is no model", remedy=f"models are {SPELLINGS}")


def _openai(text: str) -> Model:
    environment = process_environment()
    address = parse_address(text, environment)
    key = find_key(address.host, environment)
    if key is not NO_KEY and address.url.startswith("http://") and not address.at_home:
        raise UsageError(
            f"the key from {key.origin} would travel unencrypted to {address.host}",
            remedy="use an https:// address, or unset the key for a server that needs none",
        )
    price = find_price(address.model, address.host, at_home=address.at_home)
    patience = patience_from(environment)
    from kernelskill.llm.openai_client import OpenAIModel  # noqa: PLC0415 - the client is slow to load

    return OpenAIModel(address, key, price=price, patience=patience)
