"""Session: what run, bench and every other front end drive.

A run needs the graph, the pool and the optimiser, which take seconds to load; the rooms' smaller doors (`check`,
`profiling`, `checkup`) do not, so `Session` is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from kernelskill.runs import StopFlag

if TYPE_CHECKING:
    from kernelskill.session.session import Session

__all__ = ["Session", "StopFlag"]


def __getattr__(name: str) -> Any:
    if name == "Session":
        from kernelskill.session.session import Session  # noqa: PLC0415 - see above

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
