"""Bench: the worker that carries out one candidate's calls, and the plans recorded for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelskill.backends.base import Backend, Call, RunOutcome, Unrecordable, Worker
from kernelskill.errors import HarnessError
from kernelskill.evaluation.calls import COPY_BYTES, Arrangement
from kernelskill.evaluation.capabilities import AnyWorker, DirectWorker, HistoryBackend
from kernelskill.schema.base import canonical_json
from kernelskill.schema.build import Build
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature


@dataclass(frozen=True)
class ReadBack:
    """A pointer's array as it stands on the device."""

    path: Path
    pad_intact: bool
    """Whether the bytes before an offset array are untouched."""


class PlanBook:
    """The launch plans of one build, recorded once for each call."""

    def __init__(self, backend: Backend, build: Build, signature: Signature) -> None:
        self.build = build
        self._backend = backend
        self._signature = signature
        self._plans: dict[str, LaunchPlan | Unrecordable] = {}
        self._histories: dict[str, str] = {}

    def plan(self, call: Call) -> LaunchPlan | Unrecordable:
        """Return the plan of a call; a launcher that reports a failure has none.

        One that did not come back from a call is not asked about others: each would take as long again.
        """
        key = call.content_digest()
        if key not in self._plans:
            hung = self._hung()
            self._plans[key] = hung or self._checked(self._backend.record(self.build, self._signature, call))
        return self._plans[key]

    def _hung(self) -> Unrecordable | None:
        found = (plan for plan in self._plans.values() if isinstance(plan, Unrecordable))
        return next((plan for plan in found if plan.status is Status.TIMEOUT), None)

    @property
    def keeps_memory(self) -> bool:
        """Whether a call that was recorded takes device memory and does not give it back."""
        return any(isinstance(plan, LaunchPlan) and plan.keeps_memory for plan in self._plans.values())

    def history(self, call: Call, before: Call) -> str:
        """Return how a call asks for other work after another one; empty where that is not known."""
        if not isinstance(self._backend, HistoryBackend):
            return ""
        key = canonical_json([call.content_digest(), before.content_digest()])
        if key not in self._histories:
            self._histories[key] = self._backend.history(self.build, self._signature, call, before)
        return self._histories[key]

    def _checked(self, plan: LaunchPlan | Unrecordable) -> LaunchPlan | Unrecordable:
        if isinstance(plan, LaunchPlan) and plan.returned and self._signature.returns != "void":
            return Unrecordable(
                status=Status.LAUNCH_ERROR,
                reason=f"{self._signature.symbol} returned {plan.returned}, which is not success",
            )
        if isinstance(plan, LaunchPlan) and plan.escapes:
            return Unrecordable(status=Status.NONDETERMINISTIC, reason=plan.escapes)
        return plan


Loader = Callable[[Call, int, int], Unrecordable | None]
"""Takes a call, the size of its guard bands and the salt of its addresses."""


def by_plan(plans: PlanBook, worker: Worker) -> Loader:
    """Return a loader that replays recorded plans."""

    def load(call: Call, guard_bytes: int, salt: int) -> Unrecordable | None:
        plan = plans.plan(call)
        if isinstance(plan, Unrecordable):
            return plan
        worker.load(plan, guard_bytes=guard_bytes, salt=salt)
        return None

    return load


def by_call(worker: DirectWorker) -> Loader:
    """Return a loader that lets the launcher run itself."""

    def load(call: Call, guard_bytes: int, salt: int) -> Unrecordable | None:
        worker.load_call(call, guard_bytes=guard_bytes, salt=salt)
        return None

    return load


class Bench:
    """A worker with a way to load calls and a folder for what comes back.

    Args:
        loader: Makes a call the worker's current one.
        worker: A worker that holds the build; closed with the bench.
        folder: Where outputs are written; may be shared with nobody, and goes with the bench.
        remembers: Whether the program has a memory of its own between calls.
        plans: What was recorded, where plans are carried out.
    """

    def __init__(
        self,
        loader: Loader,
        worker: AnyWorker,
        folder: Path,
        *,
        remembers: bool = False,
        plans: PlanBook | None = None,
    ) -> None:
        self.worker = worker
        self.plans = plans
        self._remembers = remembers
        self._loader = loader
        self._folder = folder
        self.wants_to_be_kept = False
        """Whether whoever opened it may keep it for another use; never set where something failed."""
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def remembers(self) -> bool:
        """Whether anything of the program's own outlives a call: its variables, or memory that it keeps."""
        return self._remembers or (self.plans is not None and self.plans.keeps_memory)

    def start(
        self,
        arrangement: Arrangement,
        contents: Mapping[str, Path],
        *,
        poison: int,
        salt: int = 0,
        guard_bytes: int,
    ) -> Unrecordable | None:
        """Load the call of an arrangement and fill its memory."""
        refused = self._loader(arrangement.call, guard_bytes, salt)
        if refused is None:
            self.worker.fill(contents, poison=poison)
        return refused

    def run(self, timeout_s: float) -> RunOutcome:
        """Carry out the loaded plan once."""
        return self.worker.run(timeout_s=timeout_s)

    def read(self, arrangement: Arrangement, pointer: str, slot: str) -> ReadBack:
        """Write a pointer's array to the file of a slot, without the padding before it.

        Raises:
            HarnessError: The worker gave another number of bytes than the buffer has.
        """
        target = self._folder / f"{pointer}.{slot}"
        buffer = arrangement.buffer_of(pointer)
        pad = arrangement.offset_of(pointer)
        whole = target.with_name(f"{pointer}.{slot}.whole") if pad else target
        # A mapped earlier generation must keep its bytes: replace the file, never write into it.
        whole.unlink(missing_ok=True)
        self.worker.read(buffer, whole)
        found, wanted = whole.stat().st_size, arrangement.call.buffers[buffer]
        if found != wanted:
            raise HarnessError(f"the worker gave {found} bytes of {buffer!r} where {wanted} were asked")
        if not pad:
            return ReadBack(target, pad_intact=True)
        return ReadBack(target, pad_intact=_strip(whole, target, pad))

    def close(self) -> None:
        """End the worker and remove its folder."""
        self.worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _strip(whole: Path, target: Path, pad: int) -> bool:
    """Copy what follows the padding and return whether the padding is as it was written."""
    target.unlink(missing_ok=True)
    with whole.open("rb") as reader, target.open("wb") as writer:
        head = reader.read(pad)
        shutil.copyfileobj(reader, writer, COPY_BYTES)
    whole.unlink()
    return len(set(head)) == 1
