"""Measure what a GPU can do at best, with kernels of ours that the replay worker carries out and times.

The launcher of `ceilings.cu` is recorded like any other; its host code is never near the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from kernelskill.backends.base import (
    Backend,
    Call,
    PointerArgument,
    RunOutcome,
    TimingRun,
    Unrecordable,
    Worker,
)
from kernelskill.backends.cuda.backend import CudaBackend
from kernelskill.backends.cuda.ceiling_rates import RATES, Mode, Rate, Shape
from kernelskill.errors import HarnessError, KernelSkillError
from kernelskill.hardware.ceilings import LAUNCH, driver_version
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Ceiling, Ceilings
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import ElementType, Parameter, Signature

SOURCE = Path(__file__).with_name("ceilings.cu")
_POISON = 0x3C
"""Floats of 0.0115, halves of 1.06: arithmetic on them stays finite for long."""
_SAMPLES = 20
_RUN_S = 60.0
_AIM_S = 2e-3
"""Long enough that launch and tail are below a hundredth."""
_MOST_ROUNDS = 1 << 22
_FEW_LAUNCHES, _MANY_LAUNCHES = 100, 400
Report = Callable[[str], None]


class CeilingProbe:
    """The launcher of `ceilings.cu`, built and recorded on one backend.

    Args:
        backend: Where it is built.
        flags: Further ones for the compiler.

    Raises:
        HarnessError: It does not build.
    """

    def __init__(self, backend: Backend, flags: tuple[str, ...] = ()) -> None:
        self.backend = backend
        self._signature = ceilings_signature()
        candidate = Candidate.of(SOURCE.name, {SOURCE.name: SOURCE.read_text(encoding="utf-8")})
        build = backend.build(candidate, self._signature, ("-std=c++17", *flags))
        if isinstance(build, BuildFailure):
            raise HarnessError(f"the kernels that measure ceilings do not build: {build.log[:500]}")
        self.build: Build = build

    def plan(self, mode: Mode, shape: Shape, rounds: int) -> LaunchPlan:
        """Record one call of the launcher.

        Raises:
            HarnessError: It gives no plan.
        """
        call = Call(
            buffers={"memory": shape.buffer_bytes},
            pointers={"memory": PointerArgument(buffer="memory")},
            scalars={"n": shape.elements, "mode": int(mode), "blocks": shape.blocks, "rounds": rounds},
        )
        plan = self.backend.record(self.build, self._signature, call)
        if isinstance(plan, Unrecordable):
            raise HarnessError(f"{mode.name} gives no plan: {plan.reason}")
        return plan

    def open(self) -> Worker:
        """Start a worker that holds the build."""
        return self.backend.open(self.build)


def measure_ceilings(backend: CudaBackend, report: Report = lambda line: None) -> Ceilings:
    """Measure every rate of a GPU; takes some seconds, in which nobody else may use it.

    Raises:
        DeviceUnavailable: The GPU is busy or gone.
        CompilerMissing: There is no compiler.
        HarnessError: The kernels do not build.
    """
    with backend.exclusive():
        conditions = backend.conditions()
        measuring = _Measuring(CeilingProbe(backend), report)
        for rate in RATES:
            measuring.take(rate)
        measuring.take_launches()
        measuring.close()
    return Ceilings(
        uuid=backend.found.uuid,
        gpu=backend.found.name,
        driver=driver_version(backend.found.cuda),
        conditions=conditions,
        rates=tuple(measuring.rates),
        lacking=tuple(measuring.lacking),
    )


class _Failed(Exception):
    """A rate that could not be measured."""


class _Measuring:
    """One worker after another; a failure costs a rate and a worker, not the rest."""

    def __init__(self, probe: CeilingProbe, report: Report) -> None:
        self._probe = probe
        self._report = report
        self._worker: Worker | None = None
        self.rates: list[Ceiling] = []
        self.lacking: list[str] = []

    def take(self, rate: Rate) -> None:
        """Measure one rate."""
        gpu = self._probe.backend.gpu
        if not gpu.architecture.startswith(rate.needs):
            self.lacking.append(f"{rate.name}: only {rate.needs} has it")
            return
        shape = rate.shape(gpu)
        try:
            rounds = max(1, rate.rounds)
            if rate.rounds:
                first = median(self._time(rate.mode, shape, rounds, flush_l2=rate.flush_l2, samples=3))
                rounds = min(_MOST_ROUNDS, max(1, round(rounds * _AIM_S / max(first, 1e-6))))
            seconds = self._time(rate.mode, shape, rounds, flush_l2=rate.flush_l2, samples=_SAMPLES)
        except (KernelSkillError, _Failed) as error:
            self._give_up(rate.name, error)
            return
        amount = rate.amount(shape) * rounds
        self._keep(rate.name, amount / median(seconds), rate.unit, seconds, rate.meaning)

    def take_launches(self) -> None:
        """Measure what one more launch of an empty kernel costs the device."""
        shape = Shape(elements=1, blocks=1, buffer_bytes=4096)
        try:
            few, many = (
                self._time(Mode.LAUNCHES, shape, launches, flush_l2=False, samples=_SAMPLES)
                for launches in (_FEW_LAUNCHES, _MANY_LAUNCHES)
            )
        except (KernelSkillError, _Failed) as error:
            self._give_up(LAUNCH, error)
            return
        each = (median(many) - median(few)) / (_MANY_LAUNCHES - _FEW_LAUNCHES)
        if each <= 0:
            self._give_up(LAUNCH, _Failed("the clock cannot tell launches apart"))
            return
        self._keep(LAUNCH, each, "s", many, "device time of one more empty kernel in a queue")

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _time(self, mode: Mode, shape: Shape, rounds: int, *, flush_l2: bool, samples: int) -> list[float]:
        if self._worker is None:
            self._worker = self._probe.open()
        self._worker.load(self._probe.plan(mode, shape, rounds), guard_bytes=0)
        self._worker.fill({}, poison=_POISON)
        timed = self._worker.time(samples, flush_l2=flush_l2, timeout_s=_RUN_S)
        if isinstance(timed, RunOutcome):
            raise _Failed(f"{timed.status.value}: {timed.detail}")
        return _seconds(timed)

    def _keep(self, name: str, value: float, unit: str, seconds: list[float], meaning: str) -> None:
        found = Ceiling.model_validate(
            {
                "name": name,
                "value": value,
                "unit": unit,
                "samples": len(seconds),
                "spread": _spread(seconds),
                "meaning": meaning,
            }
        )
        self.rates.append(found)
        self._report(f"{name}: {value:.4g} {unit}")

    def _give_up(self, name: str, error: KernelSkillError | _Failed) -> None:
        self.lacking.append(f"{name}: {error}")
        self._report(f"{name}: not measured, {error}")
        self.close()


def ceilings_signature() -> Signature:
    """Return the launcher's signature."""
    real = ElementType(name="float", dtype="float32", size_bytes=4)
    whole = ElementType(name="int", dtype="int32", size_bytes=4)
    scalars = tuple(
        Parameter(name=name, kind="scalar", element=whole, declared="int")
        for name in ("n", "mode", "blocks", "rounds")
    )
    memory = Parameter(name="memory", kind="pointer", element=real, declared="float*")
    return Signature(symbol="ceilings", parameters=(memory, *scalars), returns="int")


def _seconds(timed: TimingRun) -> list[float]:
    return [ms / 1e3 for ms in timed.samples_ms]


def _spread(seconds: list[float]) -> float:
    low, middle, high = quantiles(seconds, n=4)
    return (high - low) / middle if middle > 0 else 0.0
