"""Run a launcher once, without a GPU, against a CUDA runtime that writes down what it is asked for."""

from kernelskill.backends.recorder.history import history_matters
from kernelskill.backends.recorder.record import record

__all__ = ["history_matters", "record"]
