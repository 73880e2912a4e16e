"""One build on one device inside the worker process: load, fill, run, read, time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernelskill.backends.cuda.driver import DEVICE_L2_BYTES, Driver, DriverError
from kernelskill.backends.cuda.lowering import Lowered, Lowering
from kernelskill.backends.cuda.memory import PlanMemory
from kernelskill.backends.cuda.replay_core import ReplayCore
from kernelskill.backends.cuda.timing import Stopwatch
from kernelskill.backends.plan_check import check_plan
from kernelskill.errors import HarnessError
from kernelskill.schema.base import sha256_bytes
from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan


class Execution:
    """Holds the device, the build's code and at most one loaded plan.

    Raises:
        OSError: The build's device code cannot be read.
        DriverError: The device or the code cannot be used.
        HarnessError: The device code is not the build's.
    """

    def __init__(self, device: int, core: Path, build: Build, driver: Driver) -> None:
        self._build = build
        self._image = (Path(build.folder) / "device.cubin").read_bytes()
        if sha256_bytes(self._image) != build.device_code:
            raise HarnessError("device.cubin is not the one that was built", remedy="clear the build cache")
        self._driver = driver
        self._driver.enter(device)
        self._core = ReplayCore(core)
        self._main = self._driver.stream()
        l2_bytes = self._driver.device_attribute(device, DEVICE_L2_BYTES)
        self._stopwatch = Stopwatch(self._driver, self._core, self._main, l2_bytes)
        self._module = 0
        self._memory: PlanMemory | None = None
        self._lowering: Lowering | None = None
        self._lowered: Lowered | None = None
        self._current_load: tuple[LaunchPlan, int, int] | None = None
        self._used = False
        self._shares: dict[str, float] = {}

    @property
    def loaded(self) -> PlanMemory:
        """The memory of the current plan.

        Raises:
            HarnessError: No plan is loaded.
        """
        if self._memory is None or self._lowered is None:
            raise HarnessError("no plan is loaded")
        return self._memory

    def load(self, plan: LaunchPlan, guard_bytes: int, salt: int) -> None:
        """Make `plan` the current one; the module is loaded anew, so its variables have first values.

        Raises:
            HarnessError: The plan is not one that may be carried out.
            DriverError: The driver refuses.
        """
        check_plan(plan, self._build)
        self._unload()
        self._current_load = (plan, guard_bytes, salt)
        self._module = self._driver.load_module(self._image)
        variables = tuple(variable.name for variable in self._build.variables)
        self._memory = PlanMemory(
            self._driver, plan.allocations, self._module, variables, guard_bytes=guard_bytes, salt=salt
        )
        self._lowering = Lowering(self._driver, self._core, self._module, self._memory, self._main)
        self._lowered = self._lowering.lower(plan)

    def fill(self, contents: Mapping[str, Path], poison: int) -> None:
        """Set all memory and variables, then the named buffers."""
        if self.loaded.unreachable and self._used and self._current_load is not None:
            self.load(*self._current_load)
        self.loaded.fill(contents, poison)

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite the named buffers."""
        self.loaded.put(contents)

    def run(self) -> None:
        """Carry out the plan once and wait.

        Raises:
            DriverError: It failed.
        """
        lowered = self._current()
        self._used = True
        code, where = self._core.replay(lowered.array, lowered.count)
        if code:
            self._drain()
            self._driver.check(code, lowered.describe(where))
        self._driver.synchronize()

    def time(
        self, samples: int, flush_l2: bool, repeats: int, busy_until: float = 0.0
    ) -> tuple[list[float], list[str], int]:
        """Return samples in ms, notes, and the runs inside each sample.

        `busy_until` is when the GPU last worked for another process, on the monotonic clock.

        Raises:
            DriverError: The plan failed.
        """
        self._used = True
        self._shares = self._shares or self._stopwatch.shares(self._current(), self.loaded)
        taken, notes, repeats = self._stopwatch.sample(
            self._current(),
            self.loaded,
            samples,
            flush_l2=flush_l2,
            repeats=repeats,
            busy_until=busy_until,
        )
        self._driver.synchronize()
        if self.loaded.unreachable:
            notes.append(f"not reset between samples: {', '.join(self.loaded.unreachable)}")
        return taken, notes, repeats

    def launch_share(self) -> dict[str, float]:
        """Return each kernel's share of the kernels' time by display name, as found when the plan was first timed."""
        named = {kernel.name: kernel.display_name for kernel in self._build.kernels}
        return {named.get(name, name): share for name, share in self._shares.items()}

    def _current(self) -> Lowered:
        if self._lowered is None:
            raise HarnessError("no plan is loaded")
        return self._lowered

    def _drain(self) -> None:
        """Wait for what was started before a refused launch; an error of its own goes before."""
        self._driver.synchronize()

    def _unload(self) -> None:
        memory, lowering, module = self._memory, self._lowering, self._module
        self._memory, self._lowering, self._lowered, self._module = None, None, None, 0
        self._used = False
        self._shares = {}
        if module:
            self._driver.synchronize()
        if lowering is not None:
            lowering.release()
        if memory is not None:
            memory.scrub()
            memory.release()
        if module:
            self._driver.call("cuModuleUnload", module)


def sticky(error: DriverError) -> bool:
    """Return whether an error has broken the context for good."""
    return error.code in _STICKY


_STICKY = frozenset({214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999})
"""ECC, NVLink, contained, illegal address, launch time-out, assert, stack, instruction, alignment,
address space, program counter, launch failure, unknown: `cuda.h` says that the process must end."""
