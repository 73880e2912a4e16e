"""Session: what run, bench and every other front end drive."""

from kernelskill.runs import StopFlag
from kernelskill.session.session import Session

__all__ = ["Session", "StopFlag"]
