"""kernelskill takes a CUDA kernel that is right but slow and returns one that is right and fast.

`Session`, `StopFlag` and `RunConfig` can be imported from here; they are loaded on first use.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_PLACES = {
    "RunConfig": "kernelskill.config",
    "Session": "kernelskill.session",
    "StopFlag": "kernelskill.runs",
}
"""What is loaded on first use; `__init__.pyi` says it to type checkers."""


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'kernelskill' has no attribute {name!r}")
