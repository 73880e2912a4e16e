"""Open a model by its spelling, for example `openai:NAME` or `mailbox:DIR`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from kernelskill.config import process_environment
from kernelskill.errors import UsageError
from kernelskill.llm.address import parse_address
from kernelskill.llm.base import Model, ModelRequest, Reply
from kernelskill.llm.budget import Leash, ModelBudget, ModelLimits
from kernelskill.llm.keys import NO_KEY, find_key
from kernelskill.llm.mailbox import Mailbox
from kernelskill.llm.patience import patience_from
from kernelskill.llm.prices import FREE, Price, find_price
from kernelskill.llm.recording import AnswerFile, KeepingModel, ReplayModel
from kernelskill.llm.scripted import ScriptedModel

SPELLINGS = "none, openai:NAME, openai:NAME@URL, mailbox:DIR, scripted:FILE, record:FILE:MODEL, replay:FILE"
ANSWERS = "answers.jsonl"
"""What a model said in a run, in the run's folder."""
Done = Callable[[ModelRequest, Reply], None]


def open_model(spec: str, *, folder: Path | None = None) -> Model | None:
    """Return the model that a spelling means, or None for `none`.

    Args:
        spec: One of `SPELLINGS`.
        folder: The run's folder; answers are kept there, so that nothing is asked or paid for twice.

    Raises:
        UsageError: No model is spelled so, or one of its files or settings cannot be used.
    """
    return _open(spec, AnswerFile(folder / ANSWERS) if folder is not None else None, Leash())


def open_budgeted(spec: str, limits: ModelLimits, *, folder: Path | None = None) -> ModelBudget | None:
    """Return the model that a spelling means within limits, or None for `none`.

    Args:
        spec: One of `SPELLINGS`.
        limits: Of the whole run; what its folder shows as spent counts.
        folder: As for `open_model`.

    Raises:
        UsageError: As for `open_model`, or money is limited and the model has no known price.
    """
    file = AnswerFile(folder / ANSWERS) if folder is not None else None
    leash = Leash()
    model = _open(spec, file, leash)
    if model is None:
        return None
    leash.budget = ModelBudget(model, limits, price=price_of(spec), file=file)
    return leash.budget


def price_of(spec: str) -> Price | None:
    """Return the price of a model's tokens; None where it is not known.

    Raises:
        UsageError: The spelling or the user's `prices.toml` cannot be used.
    """
    kind, rest = _split(spec)
    if kind == "record":
        return price_of(_recorded(spec, rest)[1])
    if kind != "openai":
        return FREE
    address = parse_address(rest, process_environment())
    return find_price(address.model, address.host, at_home=address.at_home)


def absolute_spec(spec: str, folder: Path) -> str:
    """Return a spelling with its file or folder made absolute, for a run that goes on from elsewhere."""
    kind, rest = _split(spec)
    if kind in ("mailbox", "scripted", "replay") and rest:
        return f"{kind}:{os.path.normpath(folder / rest)}"
    if kind == "record":
        path, inner = _recorded(spec, rest)
        return f"record:{os.path.normpath(folder / path)}:{absolute_spec(inner, folder)}"
    return spec.strip()


def _open(spec: str, file: AnswerFile | None, leash: Leash) -> Model | None:
    kind, rest = _split(spec)
    if kind == "none" and not rest:
        return None
    model = _plain(kind, rest, file, leash)
    if model is None and kind == "record":
        path, inner = _recorded(spec, rest)
        model = _open(inner, AnswerFile(path), leash)
        if model is None:
            raise UsageError(f"{spec!r} records no model", remedy="name one behind the file")
    if model is None:
        raise UsageError(f"{spec!r} is no model", remedy=f"models are {SPELLINGS}")
    return model if file is None else KeepingModel(model, file)


def _plain(kind: str, rest: str, file: AnswerFile | None, leash: Leash) -> Model | None:
    """Return a model that stands for itself."""
    if not rest:
        return None
    if kind == "openai":
        return _openai(rest, file, leash)
    if kind == "mailbox":
        return Mailbox(Path(rest))
    if kind == "replay":
        return ReplayModel(Path(rest))
    if kind == "scripted":
        return ScriptedModel(Path(rest), given=file.ended() if file is not None else ())
    return None


def _openai(text: str, file: AnswerFile | None, leash: Leash) -> Model:
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
    from kernelskill.llm.openai_client import OpenAIModel, ignore  # noqa: PLC0415 - the client is slow to load

    done = file.add if file is not None else ignore
    return OpenAIModel(address, key, price=price, patience=patience, done=done, again=leash)


def _split(spec: str) -> tuple[str, str]:
    kind, _, rest = spec.strip().partition(":")
    return kind, rest


def _recorded(spec: str, rest: str) -> tuple[Path, str]:
    """Return the file and the model of `record:FILE:MODEL`."""
    file, _, inner = rest.partition(":")
    if not file or not inner:
        raise UsageError(f"{spec!r} names no file or no model", remedy="write record:FILE:MODEL")
    return Path(file), inner
