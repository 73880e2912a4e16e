"""Compare what a candidate left in its buffers with what had to be there. Runs on the host only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelskill.evaluation.trials import Trial
from kernelskill.schema.evaluation import Mismatch, Status
from kernelskill.schema.task import Task, Tolerance
from kernelskill.tasks.tolerance import Comparison, compare, default_tolerance, root_mean_square

PARALLEL_ELEMENTS = 1 << 21
"""Above so many elements an output is compared in several threads."""
CHUNK_BYTES = 1 << 24
MOST_THREADS = 8
BLOCK_SHARE = 0.9
"""Wrong elements that fill so much of their span are called a block."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Finding:
    """The result of comparing all outputs of one call."""

    status: Status
    detail: str = ""
    mismatch: Mismatch | None = None
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    errors: Mapping[str, float] = field(default_factory=dict)
    """Output name to its largest absolute error, where all outputs are right."""


def compare_outputs(task: Task, trial: Trial, outputs: Mapping[str, Path], *, poison: int | None) -> Finding:
    """Compare every element of every output with the reference.

    Args:
        task: Names the outputs and their tolerances.
        trial: The expected values.
        outputs: Output name to the bytes that the candidate left.
        poison: The byte that filled the outputs before the call, to tell what was never written.
    """
    worst_relative = 0.0
    errors: dict[str, float] = {}
    for name in task.outputs:
        found = _compare_one(task, trial, name, outputs[name])
        if not found.ok:
            return _wrong(trial, name, found, outputs[name], poison)
        errors[name] = found.max_abs
        worst_relative = max(worst_relative, found.max_rel)
    return Finding(
        Status.PASSED,
        max_absolute_error=max(errors.values(), default=0.0),
        max_relative_error=worst_relative,
        errors=errors,
    )


def first_difference(left: Path, right: Path, *, skip: int = 0) -> int | None:
    """Return the position of the first byte of `left`, after `skip`, that differs from `right`."""
    mine, theirs = _bytes_of(left)[skip:], _bytes_of(right)
    length = min(mine.size, theirs.size)
    starts = range(0, length, CHUNK_BYTES)
    same = partial(_same_chunk, mine[:length], theirs[:length])
    with _each(same, starts) as answers:
        for start, is_same in zip(starts, answers, strict=True):
            if not is_same:
                stop = min(start + CHUNK_BYTES, length)
                return start + int(np.flatnonzero(mine[start:stop] != theirs[start:stop])[0])
    return None if mine.size == theirs.size else length


def _same_chunk(mine: NDArray[np.uint8], theirs: NDArray[np.uint8], start: int) -> bool:
    return np.array_equal(mine[start : start + CHUNK_BYTES], theirs[start : start + CHUNK_BYTES])


@contextmanager
def _each(function: Callable[[int], _Answer], starts: range) -> Iterator[Iterator[_Answer]]:
    """Give the answers for all parts, in order; several are worked at in threads.

    NumPy releases the interpreter while it compares. A single part is not worth a thread of its own.
    """
    threads = min(MOST_THREADS, len(starts), len(os.sched_getaffinity(0)))
    if threads <= 1:
        yield map(function, starts)
        return
    with ThreadPoolExecutor(max_workers=threads) as pool:
        yield pool.map(function, starts)


def _bytes_of(path: Path) -> NDArray[np.uint8]:
    """Map a file; an empty one cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def _compare_one(task: Task, trial: Trial, name: str, path: Path) -> Comparison:
    bundle = trial.bundle
    expected = bundle.expected[name]
    values = bundle.load(expected.values)
    mask = bundle.load(expected.mask) if expected.mask is not None else None
    tolerance = task.tolerances.get(name) or default_tolerance(expected.dtype)
    got = bundle.load_output(name, path)
    if values.size <= PARALLEL_ELEMENTS or values.dtype.names is not None or got.size != values.size:
        return compare(got, values, tolerance, mask, expected.scale)
    return _compare_parallel(got, values, tolerance, mask, expected.scale)


def _compare_parallel(
    got: NDArray[Any],
    values: NDArray[Any],
    tolerance: Tolerance,
    mask: NDArray[Any] | None,
    scale: float | None,
) -> Comparison:
    """Split a large output over threads; NumPy releases the interpreter while it works."""
    flat_got, flat_values = got.reshape(-1), values.reshape(-1)
    flat_mask = None if mask is None else np.broadcast_to(mask, values.shape).reshape(-1)
    if tolerance.scaled and tolerance.atol:
        scale = root_mean_square(flat_values, flat_mask) if scale is None else scale
        tolerance = Tolerance(rtol=tolerance.rtol, atol=tolerance.atol * scale)
    starts = range(0, flat_values.size, PARALLEL_ELEMENTS)

    def part(start: int) -> Comparison:
        piece = slice(start, start + PARALLEL_ELEMENTS)
        piece_mask = None if flat_mask is None else flat_mask[piece]
        return compare(flat_got[piece], flat_values[piece], tolerance, piece_mask)

    with _each(part, starts) as answers:
        parts = list(answers)
    return _joined(parts, list(starts), values.shape)


def _joined(parts: Sequence[Comparison], starts: Sequence[int], shape: tuple[int, ...]) -> Comparison:
    sample = [start + i for part, start in zip(parts, starts, strict=True) for i in part.wrong_sample]
    lasts = [
        start + part.last_wrong
        for part, start in zip(parts, starts, strict=True)
        if part.last_wrong is not None
    ]
    first = next((part for part in parts if not part.ok), parts[0])
    where = tuple(int(i) for i in np.unravel_index(sample[0], shape)) if sample else None
    return first.model_copy(
        update={
            "wrong": sum(part.wrong for part in parts),
            "total": sum(part.total for part in parts),
            "max_abs": max(part.max_abs for part in parts),
            "max_rel": max(part.max_rel for part in parts),
            "nan_mismatch": sum(part.nan_mismatch for part in parts),
            "wrong_sample": tuple(sample[:64]),
            "last_wrong": max(lasts, default=None),
            "first_index": where,
        }
    )


def _wrong(trial: Trial, name: str, found: Comparison, path: Path, poison: int | None) -> Finding:
    index = found.first_index or ()
    unwritten = poison is not None and _still_poison(trial, name, found, path, poison)
    pattern = classify(found)
    where = f"{name}[{', '.join(map(str, index))}]"
    got = "was never written" if unwritten else f"is {found.got}"
    place = {"tail": ": the tail", "block": ": one block", "all": ""}.get(pattern, f": {pattern}")
    if pattern in ("", "all"):
        place = ""
    extent = (
        f"all {found.total} elements wrong"
        if found.wrong == found.total
        else f"{found.wrong} of {found.total} elements wrong{place}"
    )
    only_nan = found.nan_mismatch == found.wrong and not unwritten
    return Finding(
        status=Status.INCORRECT_NAN if only_nan else Status.INCORRECT,
        detail=f"{where} {got}, expected {found.expected} ({extent})",
        mismatch=Mismatch(
            output=name,
            index=index,
            got=found.got,
            expected=found.expected,
            wrong=found.wrong,
            total=found.total,
            max_absolute_error=found.max_abs,
            max_relative_error=found.max_rel,
            pattern=pattern,
        ),
        max_absolute_error=found.max_abs,
        max_relative_error=found.max_rel,
    )


def _still_poison(trial: Trial, name: str, found: Comparison, path: Path, poison: int) -> bool:
    if not found.wrong_sample or trial.bundle.expected[name].values.dtype.startswith("["):
        return False
    element = trial.bundle.load_output(name, path).reshape(-1)[found.wrong_sample[0]]
    return set(element.tobytes()) == {poison}


def classify(found: Comparison) -> str:
    """Name where the wrong elements lie: `all`, `nan`, `tail`, `stride k`, `block` or nothing."""
    if found.wrong == found.total:
        return "all"
    sample = found.wrong_sample
    if not sample:
        return ""
    first, last = sample[0], found.last_wrong if found.last_wrong is not None else sample[-1]
    contiguous = last - first + 1 <= found.wrong / BLOCK_SHARE
    if contiguous and last == found.total - 1:
        return "tail"
    steps = {b - a for a, b in pairwise(sample)}
    if len(steps) == 1 and len(sample) > 2 and 1 not in steps:
        return f"stride {steps.pop()}"
    if found.nan_mismatch == found.wrong:
        return "nan"
    return "block" if contiguous and found.wrong > 1 else ""
