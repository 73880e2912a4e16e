"""Ask the compiler what a launcher's types are, once for each source. Parses no types itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernelskill.backends.toolchain import Toolchain
from kernelskill.backends.typeprobe import probe_signature
from kernelskill.resources import cache_dir
from kernelskill.schema.base import Record, canonical_json, sha256_text
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Signature


class EntryName(Record):
    """A launcher as the parser saw it."""

    symbol: str
    """With its namespace."""
    parameters: tuple[str, ...]
    c_linkage: bool


def signature_of(
    candidate: Candidate, entry: EntryName, flags: tuple[str, ...], toolchain: Toolchain
) -> Signature:
    """Return the launcher's signature; answered from the user's cache where the sources are the same.

    Raises:
        TaskError: The source does not compile, or a type cannot be handled.
    """
    parts = [1, candidate.digest, entry.model_dump(), list(flags), toolchain.compiler]
    file = cache_dir() / "signatures" / f"{sha256_text(canonical_json(parts))}.json"
    signature = _kept(file)
    if signature is None:
        signature = probe_signature(
            candidate, entry.symbol, entry.parameters, flags, toolchain, c_linkage=entry.c_linkage
        )
        _publish(file, signature.model_dump_json())
    return signature


def _kept(file: Path) -> Signature | None:
    try:
        return Signature.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _publish(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as draft:
        draft.write(text)
    Path(draft.name).replace(file)
