"""Print the GPU and the launches of a binary report as JSON; a process of its own: the reader is native code."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

_GPU_NAME = "device__attribute_display_name"
NO_PACKAGE = 3
"""Exit status where the package that reads binary reports is missing."""


def main() -> int:
    """Read the report named in the first argument."""
    try:
        import ncu_report  # noqa: PLC0415 - an extra that may be missing
    except ImportError:
        return NO_PACKAGE
    report: Any = ncu_report.load_report(sys.argv[1])
    actions = []
    for number in range(report.num_ranges()):
        span = report.range_by_idx(number)
        actions += [span.action_by_idx(index) for index in range(span.num_actions())]
    rows = [_row(action, ncu_report) for action in actions]
    json.dump({"gpu": _gpu(actions), "launches": rows}, sys.stdout)
    return 0


def _gpu(actions: list[Any]) -> str:
    """Return the name of the GPU that all launches ran on; empty where they differ or do not tell."""
    names = {
        str(action.metric_by_name(_GPU_NAME).value()) if _GPU_NAME in action.metric_names() else ""
        for action in actions
    }
    return names.pop() if len(names) == 1 else ""


def _row(action: Any, package: Any) -> dict[str, Any]:
    metrics = {}
    for name in action.metric_names():
        value = action.metric_by_name(name).value()
        if isinstance(value, (int, float)) and math.isfinite(value):
            metrics[name] = float(value)
    return {
        "kernel": action.name(package.IAction.NameBase_DEMANGLED),
        "grid": _sizes(metrics, "grid"),
        "block": _sizes(metrics, "block"),
        "metrics": metrics,
    }


def _sizes(metrics: dict[str, float], what: str) -> list[int]:
    return [max(1, int(metrics.get(f"launch__{what}_dim_{axis}", 1))) for axis in "xyz"]


if __name__ == "__main__":
    raise SystemExit(main())
