"""The bits of a run's outputs as one digest: what tells whether a rewrite changed any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelskill.evaluation.trials import Trial
from kernelskill.schema.task import Allowance, Task

CHUNK_ELEMENTS = 1 << 22


def bits_count(task: Task) -> bool:
    """Return whether no bit of a result may change."""
    return Allowance.REORDER not in task.allow


def output_bits(task: Task, trial: Trial, outputs: Mapping[str, Path]) -> str:
    """Return a digest of all outputs; elements for which any value is right count as zeros.

    Args:
        task: Names the outputs.
        trial: Knows which elements count.
        outputs: Output name to the bytes that the candidate left.
    """
    digest = sha256()
    for name in task.outputs:
        digest.update(f"{name}:{outputs[name].stat().st_size}\n".encode())
        for part in _parts(trial, name, outputs[name]):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _parts(trial: Trial, name: str, path: Path) -> Iterator[NDArray[np.uint8]]:
    if not path.stat().st_size:
        return
    data = np.memmap(path, np.uint8, "r")
    expected = trial.bundle.expected.get(name)
    mask = None
    if expected is not None and expected.mask is not None:
        mask = np.broadcast_to(trial.bundle.load(expected.mask), expected.values.shape).reshape(-1)
    if mask is not None and (not mask.size or data.size % mask.size):
        mask = None
    width = 1 if mask is None else data.size // mask.size
    for start in range(0, data.size, CHUNK_ELEMENTS * width):
        part = data[start : start + CHUNK_ELEMENTS * width]
        if mask is None:
            yield part
            continue
        first = start // width
        counts = mask[first : first + CHUNK_ELEMENTS].astype(bool)
        yield np.where(counts[:, None], part.reshape(-1, width), np.uint8(0))
