"""Find the facts of a GPU model by any of its names."""

from __future__ import annotations

import difflib
import re
import tomllib
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from kernelskill.errors import ConfigError, UnknownNameError
from kernelskill.resources import config_dir
from kernelskill.schema.base import Record
from kernelskill.schema.device import Gpu

_SHIPPED = Path(__file__).with_name("gpus.toml")


class GpuEntry(Record):
    """One table of a GPU file: the facts and the names that mean them."""

    gpu: Gpu
    patterns: tuple[str, ...]

    def means(self, name: str) -> bool:
        """Return whether `name` means this GPU."""
        known = {self.gpu.short_name, self.gpu.name.lower()}
        return name in known or any(re.search(pattern, name) for pattern in self.patterns)


def load_gpus() -> tuple[Gpu, ...]:
    """Return all known GPUs, the user's own first.

    Raises:
        ConfigError: The user's `gpus.toml` cannot be used.
    """
    return tuple(entry.gpu for entry in _entries())


def find_gpu(name: str) -> Gpu:
    """Return the GPU that `name` means: a short name, or a name as the driver prints it.

    Raises:
        UnknownNameError: No known GPU has this name.
        ConfigError: The user's `gpus.toml` cannot be used.
    """
    wanted = " ".join(name.lower().replace("_", " ").split())
    entries = _entries()
    for entry in entries:
        if entry.means(wanted):
            return entry.gpu
    names = [entry.gpu.short_name for entry in entries]
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5) or names
    raise UnknownNameError(
        f"no GPU named {name!r} is known",
        remedy=f"did you mean {', '.join(near)}? or describe it in {config_dir() / 'gpus.toml'}",
    )


def _entries() -> tuple[GpuEntry, ...]:
    shipped = _shipped()
    own_file = config_dir() / "gpus.toml"
    if not own_file.is_file():
        return shipped
    own = _read(own_file)
    names = {entry.gpu.short_name for entry in own}
    return own + tuple(entry for entry in shipped if entry.gpu.short_name not in names)


@lru_cache(maxsize=1)
def _shipped() -> tuple[GpuEntry, ...]:
    return _read(_SHIPPED)


def _read(file: Path) -> tuple[GpuEntry, ...]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        return tuple(_entry(name, table) for name, table in tables.items())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError, re.error) as error:
        raise ConfigError(f"{file} cannot be read: {error}", remedy="correct or remove the file") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{file}: {place}: {first['msg']}", remedy="give every field that the shipped gpus.toml gives"
        ) from error


def _entry(name: str, table: object) -> GpuEntry:
    if not isinstance(table, dict):
        raise TypeError(f"{name!r} is not a table")
    facts = {key: value for key, value in table.items() if key != "match"}
    patterns = tuple(str(pattern).lower() for pattern in table.get("match", ()))
    for pattern in patterns:
        re.compile(pattern)
    return GpuEntry(gpu=Gpu(short_name=name, **facts), patterns=patterns)
