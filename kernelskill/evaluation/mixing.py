"""Inputs that differ in one place only: answers kept from an earlier call must not be taken for theirs.

Nobody knows what the right answer to mixed inputs is. But a program whose memory is fresh has nothing to
confuse them with, so it must give the same after it has seen the unmixed ones.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.case_run import POISONS, CheckReport
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.trials import Trial
from kernelskill.schema.evaluation import Status
from kernelskill.schema.task import Role
from kernelskill.tasks.dtypes import dtype_of, is_floating
from kernelskill.tasks.tolerance import compare, default_tolerance

SHARE = 32
"""One part of so many of each input is another seed's."""
ROUNDS = 3


def tell_mixed_inputs_apart(protocol: CheckProtocol, bench: Bench, report: CheckReport) -> None:
    """Look whether a program with a memory of its own gives an answer to other inputs than the ones it got.

    Must come last: mixed inputs may be none that a kernel can live with, and then the worker is of no more use.

    Args:
        protocol: The task and its values.
        bench: Holds the candidate.
        report: Of the candidate's check.
    """
    case = protocol.cases("cheap")[-1]
    if protocol.trial_count(case, "full") < 2:
        return
    trial, other = protocol.trial(case, 0), protocol.trial(case, 1)
    if trial.bundle.buffers != other.bundle.buffers or trial.bundle.scalars != other.bundle.scalars:
        return
    look = _Look(protocol, bench, trial)
    for number in range(ROUNDS):
        mixed = _mix(trial, other, number)
        fresh = look.answer(mixed, f"fresh-{number}", POISONS[0]) if mixed else None
        other_fresh = look.answer(mixed, f"fresh-too-{number}", POISONS[1]) if look.is_masked else fresh
        if fresh is None or other_fresh is None or not look.begin():
            return
        found = look.again({**trial.bundle.contents(), **mixed}, f"mixed-{number}")
        if found is None:
            return
        wrong = look.difference(found, fresh, other_fresh)
        if wrong:
            report.fail(
                Status.NONDETERMINISTIC,
                f"case {case.label} (a few inputs changed since the last call): {wrong}",
            )
            return


class _Look:
    """Runs one case on contents that nobody has expected values for."""

    def __init__(self, protocol: CheckProtocol, bench: Bench, trial: Trial) -> None:
        self._protocol = protocol
        self._bench = bench
        self._trial = trial
        self._arrangement = calls.plain(trial.extents, trial.bundle.scalars)

    @property
    def is_masked(self) -> bool:
        """Whether parts of an output may be anything; which parts may follow from the inputs."""
        return any(output.mask is not None for output in self._trial.bundle.expected.values())

    def answer(self, mixed: Mapping[str, Path], slot: str, poison: int) -> dict[str, Path] | None:
        """Return what a program with a fresh memory makes of the inputs, None where it fails."""
        if not self._start({**self._trial.bundle.contents(), **mixed}, poison):
            return None
        return self._run(slot)

    def begin(self) -> bool:
        """Let the program see the unmixed inputs."""
        return self._start(self._trial.bundle.contents(), POISONS[0]) and self._run("unmixed") is not None

    def again(self, contents: Mapping[str, Path], slot: str) -> dict[str, Path] | None:
        """Return what it makes of other contents, nothing else reset."""
        self._bench.worker.put(contents)
        return self._run(slot)

    def difference(
        self, found: Mapping[str, Path], fresh: Mapping[str, Path], other_fresh: Mapping[str, Path]
    ) -> str:
        """Say where an answer differs from the fresh ones by more than the task's tolerance.

        Where these differ from each other nothing was written, if parts of the output may be anything.
        """
        bundle = self._trial.bundle
        for name in self._protocol.task.outputs:
            expected = bundle.expected[name]
            mask = None
            if expected.mask is not None:
                mask = _same_elements(fresh[name], other_fresh[name], expected.shape)
            tolerance = self._protocol.task.tolerances.get(name) or default_tolerance(expected.dtype)
            seen = compare(
                bundle.load_output(name, found[name]), bundle.load_output(name, fresh[name]), tolerance, mask
            )
            if not seen.ok:
                index = ", ".join(map(str, seen.first_index or ()))
                return f"{name}[{index}] is {seen.got}, but {seen.expected} where nothing came before"
        return ""

    def _start(self, contents: Mapping[str, Path], poison: int) -> bool:
        guard = self._protocol.rules.guard_bytes
        return self._bench.start(self._arrangement, contents, poison=poison, guard_bytes=guard) is None

    def _run(self, slot: str) -> dict[str, Path] | None:
        outcome = self._bench.run(self._protocol.timeout_s(self._trial.case))
        if outcome.status is not Status.PASSED:
            return None
        outputs = self._protocol.task.outputs
        return {name: self._bench.read(self._arrangement, name, slot).path for name in outputs}


def _same_elements(one: Path, other: Path, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    same = np.fromfile(one, np.uint8) == np.fromfile(other, np.uint8)
    return same.reshape(*shape, -1).all(axis=-1) if same.size else np.ones(shape, np.bool_)


def _mix(trial: Trial, other: Trial, number: int) -> dict[str, Path]:
    """Write copies of the inputs in which one stretch is the other trial's; floating-point ones if there are any."""
    inputs = {
        name: array
        for name, array in trial.bundle.inputs.items()
        if trial.bundle.roles[name] is Role.INPUT and array.size_bytes
    }
    floats = {name: array for name, array in inputs.items() if is_floating(dtype_of(array.dtype))}
    files, others = trial.bundle.contents(), other.bundle.contents()
    mixed = {}
    for name, array in (floats or inputs).items():
        step = dtype_of(array.dtype).itemsize
        data, source = bytearray(files[name].read_bytes()), others[name].read_bytes()
        elements = len(data) // step
        length = max(1, elements // SHARE)
        seed = hashlib.sha256(source[:4096] + bytes([number])).digest()
        start = random.Random(seed).randrange(elements - length + 1) * step
        data[start : start + length * step] = source[start : start + length * step]
        mixed[name] = trial.folder / f"{name}.mixed-{number}"
        mixed[name].write_bytes(data)
    return mixed
