"""The scripted device of the graph's tests."""

from __future__ import annotations

from tests.unit.graph.conftest import shop, values

__all__ = ["shop", "values"]
