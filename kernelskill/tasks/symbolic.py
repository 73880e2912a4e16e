"""Trace a Python launch function with recording integers. Placeholder body follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def trace_launch(
    function: Callable[..., Any], parameters: list[str], arguments: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the sizes as C expressions."""
    return None
