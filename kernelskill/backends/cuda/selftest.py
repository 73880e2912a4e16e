"""Check on a real GPU that everything the `cuda` backend promises holds: `python -m kernelskill.backends.cuda.selftest`.

Prints one line a check with its figures; ends with status 1 where one failed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from kernelskill.backends.base import Call, PointerArgument, RunOutcome, TimingRun, Unrecordable
from kernelskill.backends.cuda.backend import CudaBackend
from kernelskill.backends.cuda.client import CudaWorker
from kernelskill.backends.cuda.direct import DirectWorker
from kernelskill.backends.cuda.selftest_launcher import SOURCE, Floats, Mode, ramp, selftest_signature
from kernelskill.errors import KernelSkillError, WorkerDied
from kernelskill.isolation.child import private_folder
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan

_RUN_S = 30.0
_SMALL = 20_000
_SHARED = 25_000
"""Floats for the shared-memory check: 100 kB, more than a launch gets unasked."""
_LARGE = 1 << 28


class CheckFailed(Exception):
    """A promise that does not hold here."""


class SelfTest:
    """All checks on one GPU; each returns a line with its figures.

    Raises:
        CheckFailed: The test kernels do not build.
    """

    def __init__(self, backend: CudaBackend, folder: Path) -> None:
        self.backend = backend
        self._folder = folder
        self._signature = selftest_signature()
        candidate = Candidate.of("selftest.cu", {"selftest.cu": SOURCE.read_text(encoding="utf-8")})
        build = backend.build(candidate, self._signature, ())
        if isinstance(build, BuildFailure):
            raise CheckFailed(f"the test kernels do not build: {build.log[:500]}")
        self._build: Build = build
        self._files = 0

    # --- correctness ---

    def check_facts(self) -> str:
        """The driver and the table of GPUs agree."""
        gpu = self.backend.gpu
        conditions = self.backend.conditions()
        return (
            f"{self.backend.found.name}, {gpu.architecture}, {gpu.sm_count} SMs, L2 {gpu.l2_bytes >> 20} MiB, "
            f"driver {conditions.driver or 'unknown'}, SM clock {conditions.sm_clock_mhz} MHz"
        )

    def check_results(self) -> str:
        """Every kind of operation gives the values that it must."""
        x, y = ramp(_SMALL), ramp(_SMALL) * 3
        wanted: dict[Mode, Floats] = {
            Mode.SCALE_ADD: 2 * x + y,
            Mode.STREAMS: y + 7,
            Mode.GRAPH: y + 20,
            Mode.COOPERATIVE: np.roll(x, -1),
            Mode.TEMPORARY: 2 * x,
            Mode.CONSTANT: y + 3,
            Mode.COPY: x,
        }
        if self.backend.found.capability >= (9, 0):
            ranks = np.arange(_SMALL) // 256 % 2
            wanted[Mode.CLUSTER] = ranks.astype(np.float32)
        for mode, expected in wanted.items():
            self._expect_values(mode, x, y, expected)
        x = ramp(_SHARED)
        self._expect_values(Mode.SHARED, x, x, x[::-1])
        return f"{len(wanted) + 1} kinds of launchers replayed right"

    def check_addresses(self) -> str:
        """Results do not depend on where buffers lie."""
        x, y = ramp(_SMALL), ramp(_SMALL)
        for salt in (0, 1, 2, 17):
            with self._loaded(Mode.SCALE_ADD, x, y, salt=salt) as worker:
                _expect_status(worker.run(timeout_s=_RUN_S), Status.PASSED)
                _expect(np.array_equal(self._read(worker, "y", _SMALL), 2 * x + y), f"wrong with salt {salt}")
        return "four layouts"

    def check_state(self) -> str:
        """Device variables keep their values between runs and lose them at a fill."""
        with self._loaded(Mode.COUNT, ramp(8), ramp(8)) as worker:
            seen = []
            for _ in range(2):
                _expect_status(worker.run(timeout_s=_RUN_S), Status.PASSED)
                seen.append(float(self._read(worker, "y", 8)[0]))
            worker.fill({}, poison=0)
            worker.run(timeout_s=_RUN_S)
            seen.append(float(self._read(worker, "y", 8)[0]))
        _expect(seen == [41.0, 42.0, 41.0], f"the counter went {seen}")
        return "counter 41, 42, and 41 after a fill"

    # --- failures ---

    def check_overrun(self) -> str:
        """A write just past a buffer is seen in its guard band."""
        with self._loaded(Mode.OVERRUN, ramp(_SMALL), ramp(_SMALL)) as worker:
            _expect(worker.damaged_guards() == (), "guards are damaged before anything ran")
            _expect_status(worker.run(timeout_s=_RUN_S), Status.PASSED)
            _expect(worker.damaged_guards() == ("y",), f"guards say {worker.damaged_guards()}")
        return "guard band of y damaged"

    def check_illegal_address(self) -> str:
        """A write far outside is out of bounds, and the worker refuses afterwards."""
        with self._loaded(Mode.FAR_AWAY, ramp(8), ramp(8)) as worker:
            outcome = worker.run(timeout_s=_RUN_S)
            _expect_status(outcome, Status.OUT_OF_BOUNDS)
            try:
                worker.run(timeout_s=_RUN_S)
            except WorkerDied:
                return outcome.detail
        raise CheckFailed("a broken worker went on")

    def check_trap(self) -> str:
        """A trap is a runtime error."""
        with self._loaded(Mode.TRAP, ramp(8), ramp(8)) as worker:
            outcome = worker.run(timeout_s=_RUN_S)
        _expect_status(outcome, Status.RUNTIME_ERROR)
        return outcome.detail

    def check_hang(self) -> str:
        """A kernel that never ends is ended at the deadline, and the GPU works afterwards."""
        started = time.monotonic()
        with self._loaded(Mode.ENDLESS, ramp(8), ramp(8)) as worker:
            _expect_status(worker.run(timeout_s=3), Status.TIMEOUT)
        seconds = time.monotonic() - started
        self._expect_values(Mode.SCALE_ADD, ramp(8), ramp(8), 3 * ramp(8))
        return f"ended and usable again after {seconds:.1f} s"

    def check_out_of_memory(self) -> str:
        """More memory than there is, is a status."""
        plan = self._plan(Mode.SCALE_ADD, 8)
        allocations = tuple(
            each.model_copy(update={"size_bytes": 1 << 38}) if each.name == "y" else each
            for each in plan.allocations
        )
        with self.backend.open(self._build) as worker:
            worker.load(plan.model_copy(update={"allocations": allocations}))
            outcome = worker.run(timeout_s=_RUN_S)
        _expect_status(outcome, Status.OUT_OF_MEMORY)
        return outcome.detail

    # --- time ---

    def check_copy(self) -> str:
        """A large copy runs at the rate that the table of GPUs states, twice the same."""
        x = ramp(_LARGE)
        with self._loaded(Mode.COPY, x, np.zeros(_LARGE, np.float32)) as worker:
            first, second = (median(self._time(worker, 20).samples_ms) for _ in range(2))
        rate = 8 * _LARGE / (first / 1e3)
        spread = abs(first - second) / first
        _expect(spread < 0.02, f"two runs differ by {spread:.1%}")
        share = rate / self.backend.gpu.copy_bytes_per_s
        _expect(0.7 < share < 1.15, f"{rate / 1e12:.2f} TB/s is {share:.0%} of the table's rate")
        return f"{rate / 1e12:.3f} TB/s, {share:.1%} of the table's rate, two runs within {spread:.2%}"

    def check_launches(self) -> str:
        """Gaps between launches, and the time of a kernel that does nothing worth timing."""
        many = self._median(Mode.MANY, flush_l2=True)
        warm = self._median(Mode.MANY, flush_l2=False)
        graph = self._median(Mode.GRAPH, flush_l2=True)
        return (
            f"200 launches {many * 1e3:.0f} us ({many * 5:.2f} us each), L2 kept {warm * 1e3:.0f} us, "
            f"two graphs of 10 launches {graph * 1e3:.0f} us"
        )

    def check_tiny(self) -> str:
        """A tiny kernel is repeated inside its samples and says so."""
        with self._loaded(Mode.TINY, ramp(32), ramp(32)) as worker:
            timing = self._time(worker, 20)
        note = timing.notes[0] if timing.notes else "not repeated"
        return f"{median(timing.samples_ms) * 1e3:.2f} us; {note}"

    def check_start(self) -> str:
        """How long a worker takes to start, and a plan to load."""
        x = ramp(_SMALL)
        started = time.monotonic()
        with self._loaded(Mode.SCALE_ADD, x, x) as worker:
            ready = time.monotonic()
            worker.load(self._plan(Mode.SCALE_ADD, _SMALL))
            loaded = time.monotonic()
        return f"worker and first fill {ready - started:.2f} s, another load {(loaded - ready) * 1e3:.1f} ms"

    # --- tools ---

    def check_profiler(self) -> str:
        """Nsight Compute gives counters, or a reason."""
        x, y = self._contents(ramp(1 << 22), ramp(1 << 22)).values()
        plan = self._plan(Mode.SCALE_ADD, 1 << 22)
        started = time.monotonic()
        run = self.backend.profile(self._build, plan, {"x": x, "y": y}, depth="full")
        if run.source != "ncu":
            return f"not available: {run.unavailable}"
        kernel = run.kernels[0]
        _expect(kernel.kernel.startswith("scale_add"), f"the kernel is called {kernel.kernel!r}")
        return f"{len(kernel.metrics)} metrics in {time.monotonic() - started:.1f} s, {run.duration_ms} ms"

    def check_sanitizer(self) -> str:
        """compute-sanitizer finds a planted overrun with its line and is silent on a right kernel."""
        contents = self._contents(ramp(_SMALL), ramp(_SMALL))
        started = time.monotonic()
        bad = self.backend.sanitize(self._build, self._plan(Mode.OVERRUN, _SMALL), contents)
        if not bad.ran:
            return f"not available: {bad.unavailable}"
        good = self.backend.sanitize(self._build, self._plan(Mode.SCALE_ADD, _SMALL), contents)
        _expect(bool(bad.findings), "the overrun was not found")
        blamed = [finding for finding in good.findings if finding.severity == "error"]
        _expect(not blamed, f"a right kernel is blamed: {blamed}")
        found = bad.findings[0]
        return f"{found.message} in {found.kernel}, line {found.line}; {time.monotonic() - started:.1f} s for two plans"

    def check_direct(self) -> str:
        """A launcher that reads device data back runs itself, and its times agree with a replay's."""
        call = self._call(Mode.READS_BACK, _SMALL)
        recorded = self.backend.record(self._build, self._signature, call)
        _expect(
            isinstance(recorded, Unrecordable) and recorded.direct_possible, f"it was recorded: {recorded}"
        )
        x, y = ramp(_SMALL) + 5, ramp(_SMALL)
        with self.backend.open_direct(self._build, self._signature) as worker:
            worker.load_call(call)
            worker.fill(self._contents(x, y), poison=0xFF)
            _expect_status(worker.run(timeout_s=_RUN_S), Status.PASSED)
            _expect(np.array_equal(self._read(worker, "y", _SMALL), y + x[0]), "wrong values")
            worker.load_call(self._call(Mode.FAILS, _SMALL))
            _expect_status(worker.run(timeout_s=_RUN_S), Status.LAUNCH_ERROR)
            worker.load_call(self._call(Mode.SCALE_ADD, 1 << 24))
            worker.fill(self._contents(ramp(1 << 24), ramp(1 << 24)), poison=0)
            timing = worker.time(20, flush_l2=True, timeout_s=_RUN_S)
        if isinstance(timing, RunOutcome):
            raise CheckFailed(timing.detail)
        direct, replayed = median(timing.samples_ms), self._median(Mode.SCALE_ADD, size=1 << 24)
        return f"direct {direct * 1e3:.1f} us, replayed {replayed * 1e3:.1f} us; {'; '.join(timing.notes) or 'events'}"

    # --- steps ---

    def _call(self, mode: Mode, size: int) -> Call:
        return Call(
            buffers={"x": 4 * size, "y": 4 * size},
            pointers={"x": PointerArgument(buffer="x"), "y": PointerArgument(buffer="y")},
            scalars={"n": size, "mode": int(mode)},
        )

    def _plan(self, mode: Mode, size: int) -> LaunchPlan:
        plan = self.backend.record(self._build, self._signature, self._call(mode, size))
        if isinstance(plan, Unrecordable):
            raise CheckFailed(f"{mode.name} cannot be recorded: {plan.reason}")
        return plan

    def _loaded(self, mode: Mode, x: Floats, y: Floats, *, salt: int = 0) -> CudaWorker:
        worker = self.backend.open(self._build)
        worker.load(self._plan(mode, x.size), salt=salt)
        worker.fill(self._contents(x, y), poison=0xFF)
        return worker

    def _contents(self, x: Floats, y: Floats) -> dict[str, Path]:
        self._files += 1
        paths = {"x": self._folder / f"x{self._files % 2}", "y": self._folder / f"y{self._files % 2}"}
        x.tofile(paths["x"])
        y.tofile(paths["y"])
        return paths

    def _read(self, worker: CudaWorker | DirectWorker, name: str, size: int) -> Floats:
        path = self._folder / "read"
        worker.read(name, path)
        values = np.fromfile(path, np.float32)
        _expect(values.size == size, f"{values.size} values were read")
        return values

    def _expect_values(self, mode: Mode, x: Floats, y: Floats, expected: Floats) -> None:
        with self._loaded(mode, x, y) as worker:
            _expect_status(worker.run(timeout_s=_RUN_S), Status.PASSED, mode.name)
            got = self._read(worker, "y", x.size)
            _expect(worker.damaged_guards() == (), f"{mode.name}: guards are damaged")
        wrong = int(np.count_nonzero(got != expected))
        _expect(wrong == 0, f"{mode.name}: {wrong} of {x.size} values are wrong")

    def _time(self, worker: CudaWorker, samples: int, *, flush_l2: bool = True) -> TimingRun:
        timing = worker.time(samples, flush_l2=flush_l2, timeout_s=_RUN_S)
        if isinstance(timing, RunOutcome):
            raise CheckFailed(f"timing ended {timing.status}: {timing.detail}")
        return timing

    def _median(self, mode: Mode, *, size: int = 256, flush_l2: bool = True) -> float:
        with self._loaded(mode, ramp(size), ramp(size)) as worker:
            return median(self._time(worker, 20, flush_l2=flush_l2).samples_ms)


def run_checks(index: int, report: Callable[[str], None]) -> int:
    """Run every check on one GPU; return the number that failed."""
    failed = 0
    with private_folder("kernelskill-selftest-") as folder:
        test = SelfTest(CudaBackend(index), folder)
        with test.backend.exclusive():
            for name in check_names():
                started = time.monotonic()
                try:
                    said = getattr(test, f"check_{name}")()
                    verdict = "ok    "
                except (CheckFailed, KernelSkillError) as error:
                    said, verdict = f"{type(error).__name__}: {error}", "FAILED"
                    failed += 1
                report(f"{verdict} {name:16} {time.monotonic() - started:6.1f} s  {said}")
    return failed


def check_names() -> tuple[str, ...]:
    """Return the names of all checks in order."""
    return tuple(name.removeprefix("check_") for name in vars(SelfTest) if name.startswith("check_"))


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CheckFailed(otherwise)


def _expect_status(outcome: RunOutcome, wanted: Status, what: str = "") -> None:
    _expect(outcome.status is wanted, f"{what} ended {outcome.status}, not {wanted}: {outcome.detail}")


def main() -> int:
    """Print the table of checks."""
    index = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    try:
        failed = run_checks(index, lambda line: print_line(line))
    except (CheckFailed, KernelSkillError) as error:
        print_line(f"FAILED {error}")
        return 1
    return 1 if failed else 0


def print_line(line: str) -> None:
    """Write a line at once: a hang shall show how far the checks came."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
