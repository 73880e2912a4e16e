"""SeedPool: the secret seeds that inputs are made from, kept so that a resumed run uses the same."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.schema.base import canonical_json, sha256_text

SEED_BITS = 63
DEFAULT_TRIALS = 5


class SeedSource(Protocol):
    """Where seeds come from: `secrets.SystemRandom` in production, `random.Random` in tests."""

    def getrandbits(self, k: int, /) -> int:
        """Return `k` random bits."""


@dataclass(frozen=True)
class SeedPool:
    """The seeds of one run, one a trial. They never enter a record or a message."""

    seeds: tuple[int, ...] = field(repr=False)

    @property
    def digest(self) -> str:
        """What records carry instead of the seeds."""
        return sha256_text(canonical_json(["seed pool", *self.seeds]))

    @staticmethod
    def draw(size: int, source: SeedSource) -> SeedPool:
        """Draw `size` seeds."""
        return SeedPool(tuple(source.getrandbits(SEED_BITS) for _ in range(size)))


class SeedFile:
    """Named seed pools in one file that only its owner may read.

    Args:
        path: The file; made on the first draw.
        source: Where new seeds come from.
    """

    def __init__(self, path: Path, source: SeedSource | None = None) -> None:
        self.path = path
        self._source: SeedSource = source or secrets.SystemRandom()

    def pool(self, name: str = "main", size: int = DEFAULT_TRIALS) -> SeedPool:
        """Return the pool of that name, drawing it on first use.

        Raises:
            ArtifactCorrupt: The file exists and cannot be read back.
        """
        pools = self._read()
        if name not in pools:
            pools[name] = SeedPool.draw(size, self._source)
            self._write(pools)
        return pools[name]

    def add(self, name: str, pool: SeedPool) -> None:
        """Keep a pool that was drawn elsewhere."""
        pools = self._read()
        if pools.get(name) != pool:
            self._write({**pools, name: pool})

    def find(self, digest: str) -> SeedPool:
        """Return the pool with this digest.

        Raises:
            HarnessError: None is kept here.
        """
        for pool in self._read().values():
            if pool.digest == digest:
                return pool
        raise HarnessError(f"no seed pool with digest {digest[:12]!r} in {self.path.name}")

    def _read(self) -> dict[str, SeedPool]:
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            return {name: SeedPool(tuple(int(seed) for seed in seeds)) for name, seeds in raw.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ArtifactCorrupt(f"{self.path} cannot be read back: {error}") from error

    def _write(self, pools: dict[str, SeedPool]) -> None:
        text = json.dumps({name: list(pool.seeds) for name, pool in sorted(pools.items())})
        write_private(self.path, text.encode())


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically by one that only its owner may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
