"""Time the user's own baseline in CuPy or PyTorch. Runs in the test process; needs a GPU there.

`baseline` is called with what it names of the inputs and the case. Arrays arrive as `torch.Tensor` on the GPU
where the function names torch, as `cupy.ndarray` otherwise; scalars as they are. It returns the first output or a
dict of outputs; an output that is also an input may be updated in place.
"""

from __future__ import annotations

import importlib
import statistics
import types
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.tasks.agreement import disagreement
from kernelskill.tasks.arrays import Array
from kernelskill.tasks.description import BaselineTiming
from kernelskill.tasks.testfile import TestFile

WARM_UP = 5
SAMPLES = 30
FLUSH_BYTES = 256 << 20
"""Written between samples, so that none finds its data in the L2 cache."""
FLUSHES = 8
"""So many that the host has queued the whole call before the device comes to it: a library's own work is timed, not
the interpreter between its kernels."""


class _Library(Protocol):
    name: str

    def to_device(self, array: Array) -> Any: ...

    def sample_ms(self, call: Callable[[], Any]) -> float: ...


def ready_baseline(test: TestFile, case: int, seed: int) -> Mapping[str, Any]:
    """Import the library of `baseline` and return fresh inputs of a case; the GPU is not touched yet.

    Raises:
        TaskError: test.py has no baseline, or its library is missing.
    """
    _import(_wanted(_function(test)))
    given: Mapping[str, Any] = test.make_inputs(case, seed)
    return given


def time_baseline(test: TestFile, case: int, given: Mapping[str, Any]) -> BaselineTiming:
    """Run and time `baseline` on inputs of a case.

    Args:
        test: Has a baseline.
        case: Number of the case.
        given: What `ready_baseline` returned for it.

    Raises:
        TaskError: test.py has no baseline, or its library or a GPU is missing.
    """
    function = _function(test)
    library = _open(_wanted(function))
    note = disagreement(test, lambda inputs: {name: _moved(library, v) for name, v in inputs.items()})
    inputs = {name: _moved(library, value) for name, value in given.items()}
    call = test.baseline(case, inputs)
    for _ in range(WARM_UP):
        library.sample_ms(call)
    samples = tuple(library.sample_ms(call) for _ in range(SAMPLES))
    return BaselineTiming(
        library=library.name,
        call=" ".join((function.__doc__ or "").split()),
        samples_ms=samples,
        median_ms=statistics.median(samples),
        disagreement=note,
    )


def _moved(library: _Library, value: Any) -> Any:
    return library.to_device(value) if isinstance(value, np.ndarray) and value.ndim else value


def _wanted(function: types.FunctionType) -> str:
    """Return `torch` or `cupy`, by what the function's code names."""
    names = {part for name in function.__code__.co_names for part in name.split(".")}
    modules = {
        value.__name__.partition(".")[0]
        for name, value in function.__globals__.items()
        if name in names and isinstance(value, types.ModuleType)
    }
    return "torch" if "torch" in names | modules else "cupy"


def _function(test: TestFile) -> types.FunctionType:
    function = test.names.get("baseline")
    if not isinstance(function, types.FunctionType):
        raise TaskError("test.py defines no baseline")
    return function


def _import(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TaskError(
            f"baseline needs {name}: {error}", remedy=f"install {name} or remove baseline"
        ) from None


def _open(name: str) -> _Library:
    module = _import(name)
    return _Torch(module) if name == "torch" else _CuPy(module)


class _Torch:
    name = "torch"

    def __init__(self, torch: types.ModuleType) -> None:
        if not torch.cuda.is_available():
            raise TaskError("baseline needs a GPU, and PyTorch sees none")
        self._torch = torch
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def to_device(self, array: Array) -> Any:
        if array.dtype.name == "bfloat16":
            return self._torch.from_numpy(array.view(np.int16)).cuda().view(self._torch.bfloat16)
        return self._torch.from_numpy(array).cuda()

    def sample_ms(self, call: Callable[[], Any]) -> float:
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        for _ in range(FLUSHES):
            self._flush.zero_()
        start.record()
        call()
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end))


class _CuPy:
    name = "cupy"

    def __init__(self, cupy: types.ModuleType) -> None:
        try:
            self._flush = cupy.empty(FLUSH_BYTES, dtype=np.uint8)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise TaskError(f"baseline needs a GPU: {error}") from None
        self._cupy = cupy

    def to_device(self, array: Array) -> Any:
        return self._cupy.asarray(array)

    def sample_ms(self, call: Callable[[], Any]) -> float:
        cuda = self._cupy.cuda
        start, end = cuda.Event(), cuda.Event()
        for _ in range(FLUSHES):
            self._flush.fill(0)
        start.record()
        call()
        end.record()
        cuda.runtime.deviceSynchronize()
        return float(cuda.get_elapsed_time(start, end))
