"""Settings of a run: defaults, then `kernelskill.toml`, then the environment, then the command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from kernelskill.errors import ConfigError
from kernelskill.schema.base import Record

CONFIG_FILE = "kernelskill.toml"
_ENVIRONMENT = "KERNELSKILL_"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


class RunConfig(Record):
    """Every setting of a run, resolved. It is recorded in the run's first event."""

    device: str = "auto"
    """`auto`, `cuda:N`, `emulated[:GPU]`, `spool:DIR` or `replay:FILE`."""
    rounds: int = Field(default=8, ge=0)
    patience: int = Field(default=3, ge=1)
    """Rounds without gain after which the run stops."""
    budget_s: float | None = Field(default=None, gt=0)
    """Seconds of device time."""
    wall_s: float | None = Field(default=None, gt=0)
    """Seconds of wall time."""
    evaluations: int | None = Field(default=None, gt=0)
    """Most evaluations, brief ones included."""
    slate: int = Field(default=6, ge=1)
    """Proposals evaluated a round."""
    points: int = Field(default=12, ge=0)
    """Parameter values that are timed briefly a round, to choose what is evaluated; 0: none are searched."""
    forecasts: int = Field(default=12, ge=0)
    """Proposals a round that the emulated device looks at before a GPU with a budget does; 0: none."""
    frontier: int = Field(default=3, ge=1, le=8)
    """Candidates kept alive."""
    strategy: str = "beam"
    """How bases are chosen: `beam` or `greedy`."""
    near_roof: float = Field(default=0.97, gt=0, le=1)
    """Stop within this fraction of the roof."""
    seed: int = 0
    """Seed of the search; the seeds of the test data are secret and not settable."""
    trials: int = Field(default=3, ge=1)
    """Size of the run's pool of secret seeds."""
    only_kernel: str = ""
    """Name of the one kernel that may be rewritten; empty: any."""
    keep_exact: bool = False
    """Refuse every rewrite that may change bits of a floating-point result."""
    accept_weak_test: bool = False
    """Go on although a wrong kernel would pass the test."""
    learn: bool = True
    """Write outcomes to the user's experience pool and use it."""
    confirm: bool = True
    """Measure the winner against the original again with fresh seeds in a fresh process."""
    model: str = "none"
    """`none`, `openai:NAME`, `mailbox:DIR`, `scripted:FILE`, `record:FILE:SPEC` or `replay:FILE`."""
    samples: int = Field(default=1, ge=1, le=64)
    """Answers asked of a model for each specialist and round."""
    repairs: int = Field(default=2, ge=0, le=16)
    """Times that a model may mend a change that failed."""
    plan: bool = False
    """Ask the model which of the permitted directions to try."""
    answer_tokens: int = Field(default=16384, ge=256)
    """Most tokens of one answer of a model; some servers permit fewer."""
    model_tokens: int | None = Field(default=None, gt=0)
    """Most tokens in and out, together."""
    model_usd: float | None = Field(default=None, gt=0)
    """Most money for a model, in US dollars."""
    model_requests: int | None = Field(default=None, gt=0)
    """Most calls of a model."""
    wait: bool = True
    """Whether to wait for the workers of a spool folder; if not, the run ends with its jobs waiting."""


def load_config(overrides: Mapping[str, Any], *, folder: Path, environment: Mapping[str, str]) -> RunConfig:
    """Merge the settings; later sources win.

    Args:
        overrides: Options given on the command line; None means not given.
        folder: Where the search for `kernelskill.toml` starts; it goes up to the root.
        environment: For example `os.environ`.

    Raises:
        ConfigError: A file cannot be read, or a value is unknown or out of range.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in (
        *_file_layers(folder),
        ("the environment", _from_environment(environment)),
        ("the command line", {k: v for k, v in overrides.items() if v is not None}),
    ):
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        raise ConfigError(
            f"setting {name!r} from {origins.get(name, 'the defaults')}: {first['msg']}",
            remedy=f"settings are {', '.join(sorted(RunConfig.model_fields))}",
        ) from error


def parse_duration(text: str) -> float:
    """Return a duration in seconds; `40s`, `2m`, `1.5h`, `300ms` and plain seconds are understood.

    Raises:
        ConfigError: The text is no positive duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"{text!r} is not a duration", remedy="write for example 40s, 2m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def find_config_file(folder: Path) -> Path | None:
    """Return the nearest `kernelskill.toml` at or above a folder."""
    resolved = folder.resolve()
    for parent in (resolved, *resolved.parents):
        if (parent / CONFIG_FILE).is_file():
            return parent / CONFIG_FILE
    return None


def _file_layers(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    path = find_config_file(folder)
    if path is None:
        return []
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}", remedy="the file must be TOML") from error
    table = document.get("run", {})
    if not isinstance(table, dict) or set(document) - {"run"}:
        unknown = ", ".join(sorted(set(document) - {"run"})) or "run"
        raise ConfigError(f"{path}: unknown entry {unknown!r}", remedy="settings stand in a table [run]")
    return [(str(path), _durations(table))]


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in RunConfig.model_fields:
        value = environment.get(_ENVIRONMENT + name.upper())
        if value:
            found[name] = value
    return _durations(found)


def _durations(table: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(table)
    for short, name in (("budget", "budget_s"), ("wall", "wall_s")):
        if short in values:
            values[name] = values.pop(short)
        if isinstance(values.get(name), str):
            values[name] = parse_duration(values[name])
    return values


def process_environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ
