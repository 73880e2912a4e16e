"""Gate a test before any kernel runs: a test that a wrong kernel would pass proves nothing."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.task import Case, Role, Task, Tolerance
from kernelskill.tasks.arrays import Array
from kernelskill.tasks.bundle import Bundle
from kernelskill.tasks.dtypes import dtype_of
from kernelskill.tasks.probes import equals, first_unusable, probes
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.tolerance import compare, default_tolerance

SEEDS = (1, 2)


class ProbeResult(Record):
    """What became of one wrong answer in one output."""

    output: str
    probe: str
    caught_in: int | None
    """`Case.index` of the first case that refused it."""
    passed_in: tuple[int, ...] = ()
    """Cases that took it for right."""

    @property
    def is_weak(self) -> bool:
        """Whether every case in which it was wrong took it for right."""
        return self.caught_in is None and bool(self.passed_in)


class GateReport(Record):
    """What the gate found out about a test."""

    cases: tuple[int, ...]
    """`Case.index` of the cases it looked at."""
    probes: tuple[ProbeResult, ...]
    depends_on_seed: bool

    @property
    def weak(self) -> tuple[ProbeResult, ...]:
        """Wrong answers that the test accepts."""
        return tuple(result for result in self.probes if result.is_weak)


def run_gate(
    task: Task,
    process: TestProcess,
    folder: Path,
    *,
    accept_weak: bool = False,
    seeds: tuple[int, int] = SEEDS,
) -> GateReport:
    """Check the test itself; timed cases are looked at only where the others do not suffice.

    Args:
        task: The loaded task.
        process: Holds its test.py.
        folder: Where bundles are kept.
        accept_weak: Whether a wrong answer that passes is only reported.
        seeds: Two different ones.

    Raises:
        TaskError: The reference is not deterministic, not finite, or does not depend on the seed; the
            tolerance refuses the reference itself; or a wrong answer passes.
    """
    gate = _Gate(task, process, folder, seeds)
    cases = [case for case in task.cases if not case.timed] or list(task.cases[:1])
    for case in cases:
        gate.look_at(case)
    rest = [case for case in task.cases if case not in cases]
    for case in rest:
        if not (gate.weak() or (not gate.depends and not task.insensitive)):
            break
        gate.look_at(case)
    report = gate.report()
    if not report.depends_on_seed and not task.insensitive:
        raise TaskError(
            "the reference gives the same values for two seeds",
            remedy="use rng in make_inputs, or write INSENSITIVE = True if that is meant",
        )
    if report.weak and not accept_weak:
        raise _too_weak(task, report.weak[0])
    return report


def _too_weak(task: Task, result: ProbeResult) -> TaskError:
    case = next(case for case in task.cases if case.index == result.passed_in[0])
    return TaskError(
        f"the test is too weak: {result.probe} as {result.output} passes in CASES[{case.index}] ({case.label})"
        " and no case refuses it",
        remedy="tighten TOLERANCE or make the inputs vary more; --accept-weak-test goes on anyway",
    )


class _Gate:
    """Results so far, case by case."""

    def __init__(self, task: Task, process: TestProcess, folder: Path, seeds: tuple[int, int]) -> None:
        self._task = task
        self._process = process
        self._folder = folder
        self._seeds = seeds
        self._cases: list[int] = []
        self._caught: dict[tuple[str, str], int | None] = {}
        self._passed: dict[tuple[str, str], list[int]] = {}
        self.depends = False

    def look_at(self, case: Case) -> None:
        bundle = self._process.bundle(case.index, self._seeds[0], self._folder, self._task.signature)
        self._cases.append(case.index)
        self._require_stable(case, bundle)
        other = self._process.bundle(case.index, self._seeds[1], self._folder, self._task.signature)
        self._require_same_kind(case, bundle)
        self.depends |= _digest(bundle, expected_only=True) != _digest(other, expected_only=True)
        for name in self._task.outputs:
            self._probe(case, bundle, name)

    def weak(self) -> bool:
        """Whether some wrong answer has passed and none of the cases so far refused it."""
        return any(self._caught[key] is None and self._passed[key] for key in self._caught)

    def report(self) -> GateReport:
        results = tuple(
            ProbeResult(output=o, probe=p, caught_in=caught, passed_in=tuple(self._passed[o, p]))
            for (o, p), caught in self._caught.items()
        )
        return GateReport(cases=tuple(self._cases), probes=results, depends_on_seed=self.depends)

    def _require_stable(self, case: Case, bundle: Bundle) -> None:
        """The same seed must give the same bits, made a second time from nothing."""
        with tempfile.TemporaryDirectory(dir=self._folder) as again:
            second = self._process.bundle(case.index, bundle.seed, Path(again), self._task.signature)
            changed = _changed(bundle, second)
        if changed is not None:
            raise TaskError(
                f"{changed} differs between two runs with the same seed in CASES[{case.index}] ({case.label})",
                remedy="take all randomness from rng, and do not change arrays that outlive the call",
            )

    def _require_same_kind(self, case: Case, bundle: Bundle) -> None:
        if bundle.roles != self._task.roles:
            raise TaskError(
                f"CASES[{case.index}] ({case.label}) returns other names than the first case",
                remedy="make_inputs and reference must return the same names in every case",
            )

    def _probe(self, case: Case, bundle: Bundle, name: str) -> None:
        output = bundle.expected[name]
        expected = bundle.load(output.values)
        mask = None if output.mask is None else bundle.load(output.mask)
        bad = first_unusable(expected, mask)
        if bad is not None:
            raise TaskError(
                f"reference gives {expected[bad]} at {name}{list(bad)} in CASES[{case.index}] ({case.label})",
                remedy=f'mask it: return {{"{name}": (expected, mask)}} with False where any value is right',
            )
        own = dtype_of(output.dtype)
        if not self._is_right(bundle, name, expected.astype(own), expected, mask):
            what = "check" if self._task.custom_check else "TOLERANCE"
            raise TaskError(
                f"{what} refuses the reference's own {name} as {output.dtype} in CASES[{case.index}]"
                f" ({case.label})",
                remedy=f"loosen {what} at least to the rounding of {output.dtype}",
            )
        inputs = {n: bundle.load(a) for n, a in bundle.inputs.items() if bundle.roles[n] is not Role.SCRATCH}
        if not expected.size:
            return
        for probe, values in probes(expected, own, inputs):
            key = (name, probe)
            self._caught.setdefault(key, None)
            self._passed.setdefault(key, [])
            if self._caught[key] is not None or equals(values, expected, mask):
                continue
            if self._is_right(bundle, name, values, expected, mask):
                self._passed[key].append(case.index)
            else:
                self._caught[key] = case.index

    def _is_right(
        self, bundle: Bundle, name: str, values: Array, expected: Array, mask: Array | None
    ) -> bool:
        if not self._task.custom_check:
            return compare(values, expected, self._tolerance(bundle, name), mask).ok
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            outputs = {n: Path(folder) / f"{n}.bin" for n in bundle.expected}
            for other, path in outputs.items():
                found = values if other == name else _own_values(bundle, other)
                path.write_bytes(found.tobytes())
            return not self._process.check(bundle, outputs)

    def _tolerance(self, bundle: Bundle, name: str) -> Tolerance:
        return self._task.tolerances.get(name) or default_tolerance(bundle.expected[name].dtype)


def _own_values(bundle: Bundle, name: str) -> Array:
    output = bundle.expected[name]
    return bundle.load(output.values).astype(dtype_of(output.dtype))


def _files(bundle: Bundle, *, expected_only: bool = False) -> Iterator[tuple[str, Path]]:
    if not expected_only:
        for name, array in bundle.inputs.items():
            yield f"{name} of make_inputs", bundle.path(array)
    for name, output in bundle.expected.items():
        yield f"{name} of reference", bundle.path(output.values)
        if output.mask is not None:
            yield f"the mask of {name}", bundle.path(output.mask)


def _digests(bundle: Bundle, *, expected_only: bool = False) -> Mapping[str, str]:
    found = {}
    for name, path in _files(bundle, expected_only=expected_only):
        with path.open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _digest(bundle: Bundle, *, expected_only: bool) -> str:
    return "".join(_digests(bundle, expected_only=expected_only).values())


def _changed(first: Bundle, second: Bundle) -> str | None:
    if first.scalars != second.scalars:
        return "a scalar of make_inputs"
    left, right = _digests(first), _digests(second)
    return next((name for name in left if left[name] != right.get(name)), None)
