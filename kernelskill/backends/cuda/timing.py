"""How often and behind what a plan is timed."""

from __future__ import annotations

import time
from statistics import median

from kernelskill.backends.cuda.driver import Driver
from kernelskill.backends.cuda.lowering import Lowered
from kernelskill.backends.cuda.memory import PlanMemory
from kernelskill.backends.cuda.replay_core import (
    COPY_2D,
    COPY_DEVICE,
    COPY_HOST,
    LAUNCH,
    MEMSET,
    Operation,
    ReplayCore,
)

COLD_AFTER_S = 0.5
"""Clocks fall when a GPU has had nothing to do for about this long."""
WARM_UP_S = 0.1
LEAST_WARM_UPS = 3
_EMPTY_PAIRS = 21
_TINY_FACTOR = 3.0
"""A plan shorter than this many empty event pairs is repeated inside one sample."""
_CLEARLY_LONG = 10.0
_BATCH_FACTOR = 12.0
_MOST_REPEATS = 100
_OPERATION_S = 3e-6
"""Time the host takes to queue one operation: measured 2.5 us for a launch on an H200 host."""
_FILL_BYTES_PER_S = 2.5e12
_MOST_AHEAD = 64
_MOST_MARKED = 64
_IN_ONE_STREAM = frozenset({LAUNCH, MEMSET, COPY_DEVICE, COPY_HOST, COPY_2D})
_PLAIN_AHEAD_BYTES = 8 << 20
"""Filled again and again where the L2 shall stay warm: only these bytes are lost from it."""


class Stopwatch:
    """Times lowered plans on one stream of one device."""

    def __init__(self, driver: Driver, core: ReplayCore, stream: int, l2_bytes: int) -> None:
        self._driver = driver
        self._core = core
        self._stream = stream
        self._flush_bytes = 2 * max(l2_bytes, 1 << 22)
        self._flush = 0
        self._start = driver.event(timing=True)
        self._end = driver.event(timing=True)
        self._overhead_ms = 0.0
        self._busy_until = 0.0
        self._probed: dict[int, tuple[Lowered, float]] = {}
        """The plan timed last, held so that its id stays its own, with its probed time in ms."""

    @property
    def overhead_ms(self) -> float:
        """Median time between two events with nothing between them; zero until something was timed."""
        return self._overhead_ms

    def sample(
        self,
        lowered: Lowered,
        memory: PlanMemory,
        samples: int,
        *,
        flush_l2: bool,
        repeats: int = 0,
        busy_until: float = 0.0,
    ) -> tuple[list[float], list[str], int]:
        """Return samples in ms, notes on how they were taken, and the runs inside each sample.

        Every sample starts from the contents of the last fill, and afterwards the memory holds what one
        run makes of them. A plan too short for the events is
        repeated inside a sample, without a reset between; a note says so.

        Raises:
            DriverError: The plan failed.
        """
        self._prepare()
        self._busy_until = max(self._busy_until, busy_until)
        known = self._probed.get(id(lowered))
        if known is None or self._is_cold():
            # Only the first turn of a plan is warmed and probed: later ones follow another side's.
            self._warm_up(lowered, memory)
            once_ms = self._probe(lowered, memory, flush_l2=flush_l2)
            self._probed = {id(lowered): (lowered, once_ms)}
        else:
            once_ms = known[1]
        repeats = repeats or self._repeats(once_ms)
        taken = [self._once(lowered, memory, repeats, flush_l2) for _ in range(samples)]
        if repeats > 1:
            self._once(lowered, memory, 1, flush_l2)
        self._busy_until = time.monotonic()
        notes = []
        if repeats > 1:
            notes.append(
                f"each sample is the mean of {repeats} runs in a row without a reset: one run takes about "
                f"{once_ms * 1e3:.1f} us and an empty pair of events {self._overhead_ms * 1e3:.1f} us"
            )
        return taken, notes, repeats

    def shares(self, lowered: Lowered, memory: PlanMemory) -> dict[str, float]:
        """Return each kernel's share of the kernels' time, from one run with events around every launch.

        Nothing for a plan of one kernel, of very many launches, or of several streams or graphs.
        """
        simple = all(operation.kind in _IN_ONE_STREAM for operation in lowered.array[: lowered.count])
        if not simple or len(set(lowered.names.values())) < 2 or len(lowered.names) > _MOST_MARKED:
            return {}
        self._prepare()
        events = {
            place: (self._driver.event(timing=True), self._driver.event(timing=True))
            for place in lowered.names
        }
        memory.reset(self._stream)
        for _ in range(_MOST_AHEAD):  # long enough that no launch waits for the host
            self._driver.fill_async(self._flush, 0, self._flush_bytes, self._stream)
        for place in range(lowered.count):
            marks = events.get(place)
            if marks:
                self._driver.call("cuEventRecord", marks[0], self._stream)
            code, _ = self._core.replay((Operation * 1)(lowered.array[place]), 1)
            self._driver.check(code, lowered.describe(place))
            if marks:
                self._driver.call("cuEventRecord", marks[1], self._stream)
        spent: dict[str, float] = {}
        for place, (start, end) in events.items():
            name = lowered.names[place]
            spent[name] = spent.get(name, 0.0) + self._driver.elapsed_ms(start, end)
            for event in (start, end):
                self._driver.call("cuEventDestroy_v2", event)
        total = sum(spent.values())
        return {name: ms / total for name, ms in spent.items()} if total > 0 else {}

    def _prepare(self) -> None:
        if self._flush:
            return
        self._flush = self._driver.allocate(self._flush_bytes)
        empty = Lowered((Operation * 1)(), 0)
        pairs = (self._timed(empty, 1, ahead=1, flush_bytes=self._flush_bytes) for _ in range(_EMPTY_PAIRS))
        self._overhead_ms = median(pairs)

    def _warm_up(self, lowered: Lowered, memory: PlanMemory) -> None:
        started = time.monotonic()
        cold = self._is_cold()
        least, seconds = (LEAST_WARM_UPS, WARM_UP_S) if cold else (1, 0.0)
        done = 0
        while done < least or time.monotonic() - started < seconds:
            memory.reset(self._stream)
            self._timed(lowered, 1, ahead=0, flush_bytes=0)
            done += 1

    def _is_cold(self) -> bool:
        return time.monotonic() - self._busy_until > COLD_AFTER_S

    def _probe(self, lowered: Lowered, memory: PlanMemory, *, flush_l2: bool) -> float:
        """Return about how long one run takes: that decides on repeats, so a long one is run once."""
        first = self._once(lowered, memory, 1, flush_l2)
        if first >= _CLEARLY_LONG * _TINY_FACTOR * self._overhead_ms:
            return first
        return median((first, *(self._once(lowered, memory, 1, flush_l2) for _ in range(2))))

    def _once(self, lowered: Lowered, memory: PlanMemory, repeats: int, flush_l2: bool) -> float:
        self._driver.forget_persisting()
        memory.reset(self._stream)
        size = self._flush_bytes if flush_l2 else min(_PLAIN_AHEAD_BYTES, self._flush_bytes)
        queue_s = lowered.count * repeats * _OPERATION_S
        ahead = min(1 + int(queue_s * _FILL_BYTES_PER_S / size), _MOST_AHEAD)
        return self._timed(lowered, repeats, ahead=ahead, flush_bytes=size) / repeats

    def _repeats(self, once_ms: float) -> int:
        if once_ms >= _TINY_FACTOR * self._overhead_ms:
            return 1
        longest = _BATCH_FACTOR * self._overhead_ms
        return min(_MOST_REPEATS, max(2, int(longest / max(once_ms, 1e-4)) + 1))

    def _timed(self, lowered: Lowered, repeats: int, *, ahead: int, flush_bytes: int) -> float:
        code, where = self._core.timed(
            lowered.array,
            lowered.count,
            repeats=repeats,
            stream=self._stream,
            flush=(self._flush, flush_bytes),
            ahead=ahead,
            events=(self._start, self._end),
        )
        self._driver.check(code, lowered.describe(where))
        return self._driver.elapsed_ms(self._start, self._end)
