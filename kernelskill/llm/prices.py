"""What tokens cost: a shipped table with dates and sources, and the user's own before it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import Field, ValidationError

from kernelskill.errors import ConfigError
from kernelskill.llm.base import Usage
from kernelskill.resources import config_dir
from kernelskill.schema.base import Record

_SHIPPED = Path(__file__).with_name("prices.toml")
_DATE_BEHIND = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Price(Record):
    """What a million tokens cost, in US dollars."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    date: str
    """When the source was read."""
    source: str
    hosts: tuple[str, ...] = ()
    """Servers that ask this price; empty: any."""
    longest_input: int | None = Field(default=None, ge=1)
    """Longer requests cost more, by what is not known here."""

    def cost_usd(self, usage: Usage) -> float | None:
        """Return what `usage` costs, or None where that is not known."""
        if self.longest_input is not None and usage.input_tokens > self.longest_input * max(
            usage.requests, 1
        ):
            return None
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


FREE = Price(input=0, output=0, date="", source="no server that asks for money")


def find_price(model: str, host: str, *, at_home: bool) -> Price | None:
    """Return the price of a model at a server; one at home costs nothing unless the user's file says so.

    Raises:
        ConfigError: The user's `prices.toml` cannot be used.
    """
    own_file = config_dir() / "prices.toml"
    own = _read(own_file) if own_file.is_file() else {}
    found = _look_up(own, model, host)
    if found is None and at_home:
        return FREE
    return found or _look_up(_read(_SHIPPED), model, host)


def _look_up(table: dict[str, Price], model: str, host: str) -> Price | None:
    for name in (model, _DATE_BEHIND.sub("", model)):
        price = table.get(name)
        if price is not None and (not price.hosts or host in price.hosts):
            return price
    return None


def _read(file: Path) -> dict[str, Price]:
    remedy = "each table is a model's name with input, output (dollars for a million tokens), date and source"
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: {error}", remedy=remedy) from error
    prices = {}
    for name, table in tables.items():
        try:
            prices[name] = Price.model_validate(table)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{file}: {name!r} {where}: {first['msg']}", remedy=remedy) from error
    return prices
