"""A Backend in Python: candidates name a behaviour in their source, the worker acts it out on NumPy memory.

The launcher is `void scale(const float* x, float* y, int n)` with y = 2 x + 1.
A source reads `// scripted: tail ms=0.5`.
"""

from __future__ import annotations

import random
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelskill.backends.base import Call, ProfileRun, RunOutcome, TimingRun, Unrecordable
from kernelskill.errors import WorkerDied
from kernelskill.schema.base import sha256_text
from kernelskill.schema.build import Build, BuildFailure, Construct, Diagnostic, KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import (
    Address,
    Allocation,
    Blob,
    HostCalls,
    Launch,
    LaunchPlan,
    PointerPatch,
)
from kernelskill.schema.profile import KernelProfile
from kernelskill.schema.task import Allowance, Case, ElementType, Parameter, Role, Signature, Task, Tolerance

FLOAT = ElementType(name="float", dtype="float32", size_bytes=4)
INT = ElementType(name="int", dtype="int32", size_bytes=4)
SIGNATURE = Signature(
    symbol="scale",
    parameters=(
        Parameter(name="x", kind="pointer", element=FLOAT, is_const=True, declared="const float*"),
        Parameter(name="y", kind="pointer", element=FLOAT, declared="float*"),
        Parameter(name="n", kind="scalar", element=INT, declared="int"),
    ),
)
TESTS = """
import numpy as np
CASES = [dict(n=1), dict(n=1000), dict(n=4096, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x, n):
    return {"y": 2 * x + 1}
"""


def source(behaviour: str, ms: float = 1.0, **more: object) -> Candidate:
    """Return a candidate that behaves so."""
    words = " ".join(f"{name}={value}" for name, value in more.items())
    return Candidate.of("kernel.cu", {"kernel.cu": f"// scripted: {behaviour} ms={ms} {words}\n"})


def make_task(original: Candidate, **changes: Any) -> Task:
    """Return the task that goes with `TESTS`."""
    facts: dict[str, Any] = {
        "name": "scale",
        "signature": SIGNATURE,
        "cases": (
            Case(index=0, arguments={"n": 1}),
            Case(index=1, arguments={"n": 1000}),
            Case(index=2, arguments={"n": 4096}, timed=True),
        ),
        "roles": {"x": Role.INPUT, "y": Role.OUTPUT},
        "tolerances": {"y": Tolerance(rtol=1e-5, atol=1e-6)},
        "original": original.digest,
        "tests": sha256_text(TESTS),
    }
    return Task(**(facts | changes))


GPU = Gpu(
    name="Scripted",
    short_name="scripted",
    architecture="sm_90a",
    sm_count=10,
    clock_mhz=1000,
    dram_bytes_per_s=1e12,
    copy_bytes_per_s=9e11,
    l2_bytes=1 << 10,
    l2_bytes_per_s=3e12,
    memory_bytes=1 << 34,
    registers_per_sm=65536,
    max_threads_per_sm=2048,
    max_blocks_per_sm=32,
    shared_bytes_per_sm=1 << 17,
    shared_bytes_per_block=1 << 16,
    fp32_flops_per_s=1e13,
    fp64_flops_per_s=5e12,
)


@dataclass
class ScriptedBackend:
    """Implements `backends.base.Backend`."""

    evidence: Evidence = "measured"
    name: str = "scripted:0"
    gpu: Gpu = GPU
    sources: dict[str, str] = field(default_factory=dict)
    builds: int = 0
    opened: int = 0
    deaths: dict[str, int] = field(default_factory=dict)
    """Digest of a source to the number of its workers that died."""

    def conditions(self) -> Conditions:
        return Conditions(device=self.name, gpu=self.gpu.name, evidence=self.evidence)

    def build(
        self, candidate: Candidate, signature: Signature, flags: tuple[str, ...]
    ) -> Build | BuildFailure:
        self.builds += 1
        text = candidate.source
        if "scripted: compile_error" in text:
            return BuildFailure(
                diagnostics=(Diagnostic(file="kernel.cu", line=3, message="expected a ';'"),), log=""
            )
        self.sources[candidate.digest] = text
        return Build(
            key=candidate.digest,
            folder="/nonexistent",
            architecture="sm_90a",
            device_code=candidate.digest,
            kernels=(KernelResources(name="k", display_name="k", registers=16, static_shared_bytes=0),),
            commands=("nvcc kernel.cu",),
            machine_code=words(text)[1].get("code", ""),
            constructs=constructs_of(text),
        )

    def record(self, build: Build, signature: Signature, call: Call) -> LaunchPlan | Unrecordable:
        behaviour = words(self.sources[build.key])[0]
        if behaviour in ("reads_back", "caches_when_moved"):
            return Unrecordable(status=Status.UNSUPPORTED, reason="reads device memory", direct_possible=True)
        if behaviour in ("launch_error", "unsupported"):
            return Unrecordable(
                status=Status(behaviour), reason=f"cannot: {behaviour}", direct_possible=False
            )
        if behaviour == "exits":
            return Unrecordable(status=Status.RUNTIME_ERROR, reason="the launcher ended its process")
        return plan_of(build, call)

    def open(self, build: Build) -> ScriptedWorker:
        self.opened += 1
        return ScriptedWorker(self, build, self.sources[build.key])

    def profile(
        self, build: Build, plan: LaunchPlan, contents: Mapping[str, Path], *, depth: Literal["quick", "full"]
    ) -> ProfileRun:
        return ProfileRun(
            source="trace",
            kernels=(
                KernelProfile(
                    kernel="k",
                    launches=1,
                    time_share=1.0,
                    grid=(1, 1, 1),
                    block=(32, 1, 1),
                    metrics={"a": 1.0},
                ),
            ),
        )


def constructs_of(text: str) -> tuple[Construct, ...]:
    """Return the approximation that a source names with `uses=`, if it does."""
    name = words(text)[1].get("uses", "")
    if not name:
        return ()
    return (
        Construct(
            family=f"fast {name}",
            allowance=Allowance.FAST_MATH,
            shown=name,
            does=f"uses {name}, a hardware approximation",
            found_in="source",
            file="kernel.cu",
            line=1,
        ),
    )


def plan_of(build: Build, call: Call) -> LaunchPlan:
    """Return the one launch that every scripted launcher makes."""
    names = list(call.buffers)
    blobs = [
        Blob(
            raw="00" * 8,
            pointers=(
                PointerPatch(position=0, address=Address(allocation=names.index(p.buffer), offset=p.offset)),
            ),
        )
        for p in (call.pointers["x"], call.pointers["y"])
    ]
    blobs.append(Blob(raw=struct.pack("<i", call.scalars["n"]).hex()))
    return LaunchPlan(
        device_code=build.device_code,
        symbol=SIGNATURE.symbol,
        allocations=tuple(
            Allocation(id=i, kind="buffer", name=name, size_bytes=call.buffers[name])
            for i, name in enumerate(names)
        ),
        operations=(Launch(kernel="k", grid=(1, 1, 1), block=(32, 1, 1), arguments=tuple(blobs)),),
        host_calls=HostCalls(launches=1, synchronizations=2),
    )


@dataclass(frozen=True)
class Finding:
    """One error of a sanitizer."""

    tool: str
    message: str
    line: int

    @property
    def severity(self) -> str:
        return "warning" if self.tool == "initcheck" else "error"


@dataclass(frozen=True)
class Report:
    """Errors of the sanitizers."""

    findings: tuple[Finding, ...] = ()
    unavailable: str = ""


@dataclass
class FullBackend(ScriptedBackend):
    """A backend with everything that some devices offer."""

    sanitized: int = 0
    held: int = 0

    def open_direct(self, build: Build, signature: Signature) -> ScriptedWorker:
        worker = self.open(build)
        worker.direct = True
        return worker

    def sanitize(self, build: Build, plan: LaunchPlan, contents: Mapping[str, Path]) -> Report:
        self.sanitized += 1
        tool = words(self.sources[build.key])[1].get("finding", "")
        if tool == "missing":
            return Report(unavailable="compute-sanitizer was not found")
        return Report((Finding(tool, "Invalid __global__ read of size 4 bytes", 7),)) if tool else Report()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self.held += 1
        yield


def words(text: str) -> tuple[str, dict[str, str]]:
    """Return the behaviour that a source names and its settings."""
    found = re.search(r"// scripted: (\w+)(.*)", text)
    assert found is not None
    return found[1], dict(re.findall(r"(\w+)=(\S+)", found[2]))


@dataclass
class Memory:
    """One pointer argument: the whole allocation with its guard bands, and where the array starts."""

    raw: np.ndarray
    start: int
    address: int

    def floats(self, count: int) -> np.ndarray:
        return self.raw[self.start : self.start + 4 * count].view(np.float32)


class ScriptedWorker:
    """Implements `backends.base.Worker` in this process."""

    def __init__(self, backend: ScriptedBackend, build: Build, text: str) -> None:
        self.backend, self.build, self.text = backend, build, text
        self.behaviour, self.settings = words(text)
        self.runs = 0
        self.timed_runs = 0
        self.number = backend.opened
        self.globals: dict[str, Any] = {}
        self.broken = False
        self.direct = False
        self.random = random.Random(f"{text}{backend.opened}")

    def load(self, plan: LaunchPlan, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        self._alive()
        self.plan, self.guard, self.salt = plan, 256, salt
        self.memory = {a.id: np.zeros(a.size_bytes + 2 * self.guard, np.uint8) for a in plan.allocations}
        self.ids = {a.name: a.id for a in plan.allocations}

    def load_call(self, call: Call, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        assert self.direct
        self.load(plan_of(self.build, call), guard_bytes=guard_bytes, salt=salt)

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        self._alive()
        self.poison = poison
        self.globals.clear()
        for array in self.memory.values():
            array[:] = poison
        self.put(contents)
        self.pristine = {i: array.copy() for i, array in self.memory.items()}

    def put(self, contents: Mapping[str, Path]) -> None:
        self._alive()
        for name, path in contents.items():
            whole = self.memory[self.ids[name]]
            data = np.fromfile(path, np.uint8)
            assert data.size == whole.size - 2 * self.guard, f"{name}: {data.size} bytes"
            whole[self.guard : self.guard + data.size] = data

    def run(self, *, timeout_s: float) -> RunOutcome:
        self._alive()
        self.runs += 1
        (launch,) = self.plan.launches()
        pointers = []
        for blob in launch.arguments[:2]:
            address = blob.pointers[0].address
            base = 4096 * (address.allocation + 1) + 256 * self.salt
            pointers.append(
                Memory(self.memory[address.allocation], self.guard + address.offset, base + address.offset)
            )
        (n,) = struct.unpack("<i", bytes.fromhex(launch.arguments[2].raw))
        outcome = BEHAVIOURS[self.behaviour](self, pointers[0], pointers[1], n)
        self.broken = outcome.status is not Status.PASSED
        return outcome

    def read(self, buffer: str, destination: Path) -> None:
        self._alive()
        whole = self.memory[self.ids[buffer]]
        whole[self.guard : whole.size - self.guard].tofile(destination)

    def damaged_guards(self) -> tuple[str, ...]:
        names = {i: name for name, i in self.ids.items()}
        bad = []
        for i, array in self.memory.items():
            bands = np.concatenate([array[: self.guard], array[array.size - self.guard :]])
            if (bands != self.poison).any():
                bad.append(names[i])
        return tuple(bad)

    def time(self, samples: int, *, flush_l2: bool, timeout_s: float) -> TimingRun | RunOutcome:
        self._alive()
        for i, array in self.pristine.items():
            self.memory[i][:] = array
        self.globals["timed"] = True
        outcome = self.run(timeout_s=timeout_s)
        if outcome.status is not Status.PASSED:
            return outcome
        if self.behaviour == "breaks_when_timed":
            return RunOutcome(status=Status.RUNTIME_ERROR, detail="an illegal address")
        ms, spread = float(self.settings["ms"]), float(self.settings.get("spread", 0.002))
        ms = float(self.settings.get("direct_ms", ms)) if self.direct else ms
        if self.backend.evidence == "estimated":
            return TimingRun(samples_ms=(ms,), evidence="estimated")
        values = tuple(ms * (1 + self.random.gauss(0, spread)) for _ in range(samples))
        return TimingRun(samples_ms=values, evidence="measured")

    def close(self) -> None:
        self.broken = True

    def __enter__(self) -> ScriptedWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _alive(self) -> None:
        if self.broken:
            raise WorkerDied("this worker's context is broken")


PASSED = RunOutcome(status=Status.PASSED)
Behaviour = Callable[[ScriptedWorker, Memory, Memory, int], RunOutcome]


def right(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    y.floats(n)[:] = 2 * x.floats(n) + 1
    return PASSED


def stale(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return PASSED


def tail(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    kept = n if n < 4 else n - 1
    y.floats(kept)[:] = 2 * x.floats(kept) + 1
    return PASSED


def strided(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    y.floats(n)[::8] = 0
    return PASSED


def nan(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    # Another NaN than the fill pattern, so that it was written.
    y.floats(n)[n // 2 :].view(np.uint32)[:] = 0x7FC00000
    return PASSED


def modifies_input(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    x.floats(n)[n - 1] = 7
    return PASSED


def out_of_bounds(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    y.floats(n + 1)[n] = 5
    return PASSED


def before_start(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    if y.start != worker.guard:
        y.raw[y.start - 1] ^= 1
    return PASSED


def flaky(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    if worker.runs == 5:
        y.floats(n)[0] += 1
    return PASSED


def noisy(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    y.floats(n)[:] = (2 * x.floats(n) + 1) * np.float32(1 + 1e-6 * (worker.runs % 3))
    return PASSED


def coarse(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Right but for an error of `error=`, where the exact kernel errs by nothing."""
    right(worker, x, y, n)
    y.floats(n)[n - 1] += float(worker.settings["error"])
    return PASSED


def hangs(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return RunOutcome(status=Status.TIMEOUT, detail="did not finish in 10 s")


def hangs_large(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return hangs(worker, x, y, n) if n > 1000 else right(worker, x, y, n)


def exhausts(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return RunOutcome(status=Status.OUT_OF_MEMORY, detail="asked for 1 TiB")


def faults(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return RunOutcome(status=Status.RUNTIME_ERROR, detail="k: an illegal address at line 7")


def cached(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Keep the first answer in a device variable."""
    kept = worker.globals.setdefault("answer", 2 * x.floats(n) + 1)
    y.floats(n)[:] = kept[:n] if kept.size >= n else 0
    return PASSED


def caches_when_moved(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Keep the first answer, but only at other addresses than the first."""
    return cached(worker, x, y, n) if worker.salt else right(worker, x, y, n)


def needs_alignment(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    if (x.address | y.address) % 16:
        return RunOutcome(status=Status.RUNTIME_ERROR, detail="k: a misaligned address")
    return right(worker, x, y, n)


def clears_first(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Wrong where x and y are one buffer."""
    y.floats(n)[:] = 0
    y.floats(n)[:] += 2 * x.floats(n) + 1
    return PASSED


def ordered(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Right in one order of blocks only: they turn with every run."""
    right(worker, x, y, n)
    if worker.runs % 2 == 0:
        y.floats(n)[0] += 1
    return PASSED


def ordered_in_place(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Where x and y are one buffer, right in one order of blocks only."""
    return ordered(worker, x, y, n) if x.address == y.address else right(worker, x, y, n)


def by_address(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return right(worker, x, y, n) if y.address % 4096 == 0 else PASSED


def spots_poison(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Work only where the output holds a fill pattern."""
    return right(worker, x, y, n) if len(set(y.floats(n).tobytes())) == 1 else PASSED


def racy(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    return RunOutcome(status=Status.PASSED, notes=("race: k.cu:7 and k.cu:9 on tile[3]",))


def wrong_when_timed(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    right(worker, x, y, n)
    if worker.globals.get("timed"):
        y.floats(n)[0] = 0
    return PASSED


def wrong_later(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Right in the first workers that hold it, as many as `workers=` says."""
    held = worker.backend.deaths.setdefault(worker.build.key, worker.backend.opened)
    right(worker, x, y, n)
    if worker.number >= held + int(worker.settings["workers"]):
        y.floats(n)[0] += 1
    return PASSED


def wrong_directly(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    return tail(worker, x, y, n) if worker.direct else right(worker, x, y, n)


def lazy_at_first(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """Write nothing while timed, but for the last runs."""
    right(worker, x, y, n)
    worker.timed_runs += bool(worker.globals.get("timed"))
    if worker.globals.get("timed") and worker.timed_runs < int(worker.settings["runs"]):
        y.floats(n)[:] = 0
    return PASSED


def dies(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    """End the worker as often as `deaths=` says, over all workers."""
    died = worker.backend.deaths.get(worker.build.key, 0)
    if died < int(worker.settings["deaths"]):
        worker.backend.deaths[worker.build.key] = died + 1
        raise WorkerDied("the worker ended with signal 9")
    return right(worker, x, y, n)


def slow(worker: ScriptedWorker, x: Memory, y: Memory, n: int) -> RunOutcome:
    time.sleep(float(worker.settings["sleep"]))
    return right(worker, x, y, n)


BEHAVIOURS: dict[str, Behaviour] = {
    f.__name__: f
    for f in (
        right, stale, tail, strided, nan, modifies_input, caches_when_moved, out_of_bounds, before_start, flaky, noisy, coarse,
        hangs, hangs_large, exhausts, faults, cached, needs_alignment, clears_first, ordered, ordered_in_place,
        by_address, spots_poison, racy,
        wrong_when_timed, wrong_later, wrong_directly, lazy_at_first, dies, slow,
    )
}  # fmt: skip
BEHAVIOURS["breaks_when_timed"] = BEHAVIOURS["reads_back"] = right
