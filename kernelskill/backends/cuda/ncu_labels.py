"""Which metric a label of ncu's details page stands for."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

from kernelskill.errors import HarnessError

_FILE = Path(__file__).with_name("ncu_labels.toml")


def metric_of_label(section: str, label: str) -> str | None:
    """Return the metric of a label in a section, or None where it is not known."""
    return labels().get((section, label))


@lru_cache(maxsize=1)
def labels() -> dict[tuple[str, str], str]:
    """Return section and label -> metric.

    Raises:
        HarnessError: The shipped file is damaged.
    """
    try:
        generations = tomllib.loads(_FILE.read_text(encoding="utf-8"))
        return {
            (section, label): metric
            for sections in generations.values()
            for section, table in sections.items()
            for label, metric in table.items()
        }
    except (OSError, ValueError, AttributeError) as error:
        raise HarnessError(f"{_FILE.name} cannot be read: {error}", remedy="reinstall kernelskill") from error
