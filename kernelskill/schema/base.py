"""What every noun shares: frozen, closed records with a canonical form and a content digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable record. Unknown fields are errors, so that old and new files never mix silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def canonical(self) -> str:
        """Return the record as JSON with sorted keys and no spaces: equal records, equal text."""
        return canonical_json(self.model_dump(mode="json"))

    def content_digest(self) -> str:
        """Return a SHA-256 over the canonical form, as 64 hex digits."""
        return sha256_text(self.canonical())


class Explained(Record):
    """A record whose fields' docstrings are kept as their descriptions.

    Reading them back from the source costs every start of the program; only what is printed needs them.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_text(text: str) -> str:
    """Return the SHA-256 of UTF-8 text as 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()
