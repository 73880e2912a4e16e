"""Choices: by hypothesis, which shrinks, or by a seeded generator, which is quick and spreads wider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st


class Chooser(Protocol):
    """Makes the choices of a random algorithm; what stands first is the simplest."""

    def pick(self, *options: Any) -> Any:
        """Return one of the options."""
        ...

    def some(self, options: Sequence[Any], least: int, most: int) -> list[Any]:
        """Return different options in any order."""
        ...


class Drawn:
    """Choices that hypothesis draws.

    Args:
        draw: Of the composite strategy.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def some(self, options: Sequence[Any], least: int, most: int) -> list[Any]:
        chosen = st.lists(st.sampled_from(range(len(options))), min_size=least, max_size=most, unique=True)
        return [options[place] for place in self._draw(chosen)]


class Rolled:
    """Choices by chance.

    Args:
        seed: Decides them all.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self._rng.integers(len(options))]

    def some(self, options: Sequence[Any], least: int, most: int) -> list[Any]:
        count = self._rng.integers(least, min(most, len(options)) + 1)
        return [options[place] for place in self._rng.permutation(len(options))[:count]]
