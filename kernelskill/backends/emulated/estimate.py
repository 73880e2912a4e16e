"""The time model: from a trace and the facts of a GPU to an estimated time.

    rate  = (sum of term^4)^(1/4)           all but latency, the larger of dram and l2 being one term
    stall = latency - cycles in which a warp issues
    T     = launch + (rate^P + stall^P)^(1/P)       and no less than latency

P is 2 where a multiprocessor has 32 warps or more, so that one waits while another computes, and falls to 1.25
for one warp, whose waits add up. Cycles in which a warp issues are no stall: independent instructions of one warp
follow one another as those of several do, so a few warps with much to do each fill a multiprocessor, too.

Each term is the time that the launch would take were it limited by one thing alone; the exponent lets
terms that are close to one another add up a little, as they do on a GPU. The terms:

    dram     bytes that reach device memory / bandwidth of a copy
    l2       sectors that miss the first-level cache, stores and atomics / L2 bandwidth
    l1       128-byte lines of all requests / (one a cycle on each multiprocessor)
    shared   wavefronts of shared memory / (one a cycle on each multiprocessor)
    issue    warp instructions / (four a cycle on each multiprocessor)
    fp32, int, fp64, sfu, tensor             warp instructions / throughput of their pipe
    atomic   operations on the most used line of memory, one after another
    blocks   blocks / (about one a cycle on the whole GPU)
    latency  waves of blocks * (slow loads in a row * what is left of their latency at their use + cycles of a warp)

Throughput terms are divided by the share of multiprocessors that have work in the last wave.
Constants are the hardware's documented rates, or were measured on an H200 with kernels of one kind each: a
pointer chase, sums and counts by atomics, stores a column apart, grids of small blocks. Some of those kernels
are in the core suite, so its own estimates are no blind test of them; `benchmarks/emulation` shows how good
the order of variants is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.backends.emulated.trace import LaunchTrace
from kernelskill.hardware.occupancy import Occupancy, occupancy
from kernelskill.schema.build import KernelResources
from kernelskill.schema.device import Gpu

LATENCY_L1 = 35.0
"""Cycles of a load that hits the first-level cache."""
LATENCY_L2 = 280.0
"""Cycles of a load that hits the L2."""
LATENCY_DRAM = 650.0
"""Cycles of a load from device memory, a few others in flight."""
BARRIER_CYCLES = 30.0
"""Cycles a barrier costs beyond waiting for the slowest warp."""
BLOCK_CYCLES = 300.0
"""Cycles to start a block and to drain its stores."""
BLOCK_START_CYCLES = 1.2
"""Cycles of the whole GPU to start a block: 0.32 ms for 2^19 of them on an H200, of 64 or 128 threads alike."""
INT_WARPS = 3.0
"""Integer warp instructions a cycle: two through the ALU pipe, multiply-adds beside them through the FMA pipe."""
ATOMIC_FLOAT_S = 1.76e-9
"""Floating-point atomics in one line of memory, each: 118 ms for 2^26 of them on one address of an H200."""
ATOMIC_LINE_S = 0.79e-9
"""Requests of integer atomics to one line: 3.07 ms for 3.9 million warps that count into one address."""
ATOMIC_INTEGER_S = 1.25e-9
"""Every further address of such a request: 38.8 ms for 2^27 counts into eight lines, 31 million in the fullest."""
ATOMIC_SECTOR_BYTES = 64.0
"""L2 traffic of an atomic sector: it is read and written there."""
PARTIAL_LINE_BYTES = 80.0
"""Work of the L2 for the parts of sectors that a request writes in one line, as if so many bytes had passed:
2^26 stores of four bytes, each in a line of its own, take 0.98 ms on an H200, whatever lies between them."""
L2_SHARE = 0.8
"""Part of the L2 that holds a kernel's data before they push each other out."""
SMEM_L1_BYTES = 256 * 1024
"""First-level cache and shared memory of a multiprocessor together (Volta and later: 128 to 256 KiB)."""
SHARPNESS = 4.0
"""Exponent of the limits on a rate: close ones add up a little."""
COVER = 2.0
"""Exponent of stalls where many warps share a multiprocessor, so that one waits while another computes."""
COVER_ALONE = 1.25
"""Exponent of the stalls of a single warp: nothing is done meanwhile."""
WARPS_TO_COVER = 32.0
"""Warps of a multiprocessor from which on no more is won (all four: a hundred variants timed on an H200)."""
TERMS = (
    "dram", "l2", "l1", "shared", "issue", "fp32", "int", "fp64", "sfu", "tensor", "atomic", "blocks",
    "latency",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchEstimate:
    """One launch: its time in seconds, what each limit alone would take, and its traffic in bytes."""

    seconds: float
    terms: dict[str, float]
    moved_bytes: float
    """Reach device memory."""
    unique_bytes: float
    l2_bytes: float
    occupancy: Occupancy
    waves: float
    busy: float
    """Share of the multiprocessors that have work, the mean over the launch."""
    resources: KernelResources

    def shares(self) -> dict[str, float]:
        """Return each term's share of the time, 0 to 1; they need not add up to one."""
        busy = max(self.terms.values(), default=0.0)
        total = max(self.seconds, busy, 1e-12)
        return {name: value / total for name, value in self.terms.items()}


def l1_share(gpu: Gpu, resources: KernelResources, dynamic_shared: int, threads: int, blocks: int) -> int:
    """Return the bytes of first-level cache that one resident block of a grid may count on."""
    fits = occupancy(gpu, resources.registers, resources.static_shared_bytes + dynamic_shared, threads)
    resident = max(1, min(fits.blocks_per_sm, -(-blocks // gpu.sm_count)))
    shared = resident * (resources.static_shared_bytes + dynamic_shared)
    return max(8 * 1024, (SMEM_L1_BYTES - min(shared, SMEM_L1_BYTES - 32 * 1024)) // resident)


class _Model:
    """The terms of one launch."""

    def __init__(
        self, gpu: Gpu, trace: LaunchTrace, resources: KernelResources, sizes: dict[int, int]
    ) -> None:
        self.gpu = gpu
        self.trace = trace
        self.resources = resources
        self.sizes = sizes
        shared = resources.static_shared_bytes + trace.dynamic_shared
        self.fits = occupancy(gpu, resources.registers, shared, trace.threads_per_block)
        self.resident = max(1, self.fits.blocks_per_sm) * gpu.sm_count
        self.waves = trace.blocks / self.resident
        self.clock = gpu.clock_mhz * 1e6
        self.busy = self._busy_share()
        self.sm_cycles = self.clock * gpu.sm_count * self.busy
        """Multiprocessor cycles a second that have work."""
        self.spill_bytes = self._spills()

    def _busy_share(self) -> float:
        """Return the share of the multiprocessors that work, the mean over the launch.

        Blocks go to the multiprocessors one by one, so the last ones leave some idle.
        """
        per_sm = -(-self.trace.blocks // self.gpu.sm_count)
        return self.trace.blocks / (per_sm * self.gpu.sm_count)

    def cover(self) -> float:
        """Return the exponent of stalls: how well others cover them, by the warps that a multiprocessor has."""
        blocks = min(self.fits.blocks_per_sm, -(-self.trace.blocks // self.gpu.sm_count))
        warps = max(1, blocks) * self.trace.warps_per_block
        return COVER_ALONE + min(1.0, warps / WARPS_TO_COVER) * (COVER - COVER_ALONE)

    def _spills(self) -> tuple[float, float]:
        """Return requests and bytes of spills: the assembler's, which PTX does not show."""
        spilled = self.resources.spill_load_bytes + self.resources.spill_store_bytes
        warps = self.trace.blocks * self.trace.warps_per_block
        return warps * spilled / 4, float(warps * spilled * 32)

    def l2_bytes(self) -> float:
        """Return the bytes between multiprocessors and L2."""
        trace = self.trace
        reads = trace.total("missed_sectors", space="global", access="read") * 32
        stores = trace.total("sectors", space="global", access="write") * 32
        atomics = trace.total("sectors", space="global", access="atomic") * ATOMIC_SECTOR_BYTES
        # Spilled registers of resident threads fill the first-level cache soon; the rest goes through.
        resident_spills = self.fits.blocks_per_sm * trace.threads_per_block * self.resources.spill_store_bytes
        through = min(1.0, resident_spills / SMEM_L1_BYTES)
        return reads + stores + atomics + self.spill_bytes[1] * through

    def l2_work(self) -> float:
        """Return the bytes that pass through the L2, those of partly written sectors by what they cost."""
        more = 0.0
        for site in self.trace.sites:
            if site.space == "global" and site.access == "write" and site["sectors"]:
                partial = site["partial_sectors"]
                lines = site["lines"] * partial / site["sectors"]
                more += lines * PARTIAL_LINE_BYTES - partial * 32
        return self.l2_bytes() + more

    def unique_bytes(self) -> float:
        """Return the bytes that the whole grid touches at least once."""
        return self._touched(self.trace.blocks)

    def moved_bytes(self) -> float:
        """Return the bytes that reach device memory: once if they fit the L2, else once a wave of blocks.

        What a block loads again after its first-level cache lost it comes from the L2, as far as all resident
        blocks' data fit there.
        """
        unique = self.unique_bytes()
        if unique <= L2_SHARE * self.gpu.l2_bytes:
            return unique
        a_wave = self._touched(min(self.resident, self.trace.blocks))
        # Data that are walked through again and again push themselves out of the cache soon after they outgrow it.
        lost = min(1.0, max(0.0, a_wave / (L2_SHARE * self.gpu.l2_bytes) - 1))
        again = unique + lost * self._loaded_again()
        return again if self.waves <= 1 else max(again, min(self.l2_bytes(), self.waves * a_wave))

    def _touched(self, blocks: float) -> float:
        """Return the bytes that so many blocks touch at least once: no more than what there is."""
        total = 0.0
        for number, (read, written) in self.trace.regions.items():
            limit = self.sizes.get(number, 0)
            for part in (read, written):
                total += min(part * blocks, limit) if limit else part * blocks
        return total

    def _loaded_again(self) -> float:
        """Return the bytes that blocks fetch beyond the first time each of them needs a sector."""
        fetched = self.trace.total("missed_sectors", space="global", access="read") * 32
        first = sum(read for read, _ in self.trace.regions.values()) * self.trace.blocks
        return max(0.0, fetched - first)

    def load_latency(self, moved: float) -> float:
        """Return the mean latency of a slow load in cycles, by where its requests are served."""
        trace = self.trace
        requests = trace.total("requests", space="global", access="read")
        if not requests:
            return LATENCY_L2
        missed = trace.total("missed_requests", space="global", access="read") / requests
        fetched = trace.total("missed_sectors", space="global", access="read") * 32
        from_dram = min(1.0, moved / fetched) if fetched else 0.0
        beyond = LATENCY_L2 + from_dram * (LATENCY_DRAM - LATENCY_L2)
        return LATENCY_L1 + missed * (beyond - LATENCY_L1)

    def latency(self, moved: float) -> float:
        """Return the time in which the blocks pass through, each as slow as its slowest chain."""
        trace = self.trace
        barriers = trace.barriers_per_block * BARRIER_CYCLES
        wait = self.load_latency(moved)
        waits = sum(each.count * max(0.0, wait - each.lead) for each in trace.waits)
        cycles = waits + trace.cycles_per_warp + barriers + BLOCK_CYCLES
        return self._rounds() * cycles / self.clock

    def _rounds(self) -> float:
        """Return how many blocks follow one another in one place of a multiprocessor."""
        return max(1.0, self.waves) if self.waves > 4 else max(1, -(-self.trace.blocks // self.resident))

    def issued(self) -> float:
        """Return the time that warps spend issuing, were each alone on its scheduler."""
        warps = self.trace.blocks * self.trace.warps_per_block
        return self._rounds() * self.trace.mix["issue"] / max(1, warps) / self.clock

    def atomic(self) -> float:
        """Return the time of the atomics that go to one line of memory: they are done one after another."""
        trace = self.trace
        integer_only = all(
            not any(part in site.opcode for part in ("f32", "f64", "f16"))
            for site in trace.sites
            if site.access == "atomic" and site.space == "global"
        )
        line = trace.hot_line
        if not integer_only:
            return line.lanes * ATOMIC_FLOAT_S
        # Lanes of a warp that add integers to one address are added up before they meet the memory.
        return line.requests * ATOMIC_LINE_S + (line.addresses - line.requests) * ATOMIC_INTEGER_S

    def terms(self) -> dict[str, float]:
        """Return every term in seconds."""
        trace, gpu, mix = self.trace, self.gpu, self.trace.mix
        moved = self.moved_bytes()
        fp64_warps = max(0.125, gpu.fp64_flops_per_s / (2 * 32 * self.clock * gpu.sm_count))
        fp32_warps = max(1.0, gpu.fp32_flops_per_s / (2 * 32 * self.clock * gpu.sm_count))
        global_lines = trace.total("lines", space="global")
        l1_lines = global_lines + trace.total("wavefronts", space="local") + self.spill_bytes[0]
        few = min(1.0, trace.blocks * trace.warps_per_block / (gpu.sm_count * 8))
        """Memory needs some warps on every multiprocessor to reach its bandwidth."""
        tensor = gpu.tensor_fp16_flops_per_s * self.busy
        return {
            "dram": moved / (gpu.copy_bytes_per_s * few),
            "l2": self.l2_work() / (gpu.l2_bytes_per_s * few),
            "l1": l1_lines / self.sm_cycles,
            "shared": trace.total("wavefronts", space="shared") / self.sm_cycles,
            "issue": (mix["issue"] + self.spill_bytes[0]) / (4 * self.sm_cycles),
            "fp32": mix["fp32"] / (fp32_warps * self.sm_cycles),
            "int": mix["int"] / (INT_WARPS * self.sm_cycles),
            "fp64": mix["fp64"] / (fp64_warps * self.sm_cycles),
            "sfu": mix["sfu"] / (0.5 * self.sm_cycles),
            "tensor": mix["tensor_flops"] / tensor if tensor and mix["tensor_flops"] else 0.0,
            "atomic": self.atomic(),
            "blocks": trace.blocks * BLOCK_START_CYCLES / self.clock,
            "latency": self.latency(moved),
        }


def estimate_launch(
    gpu: Gpu, trace: LaunchTrace, resources: KernelResources, sizes: dict[int, int]
) -> LaunchEstimate:
    """Return the estimated time of one launch.

    Args:
        gpu: The GPU that is estimated.
        trace: What its sampled blocks did.
        resources: Registers, shared memory and spills from the assembler.
        sizes: Allocation to its size in bytes.
    """
    model = _Model(gpu, trace, resources, sizes)
    terms = model.terms()
    # What device memory gives passes through the L2 on its way, so the copy whose rate is known did both.
    memory = max(terms["dram"], terms["l2"])
    rates = [memory, *(value for name, value in terms.items() if name not in ("dram", "l2", "latency"))]
    stall = max(0.0, terms["latency"] - model.issued())
    together = _together([_together(rates, SHARPNESS), stall], model.cover())
    return LaunchEstimate(
        seconds=gpu.launch_latency_s + max(terms["latency"], together),
        terms=terms,
        moved_bytes=model.moved_bytes(),
        unique_bytes=model.unique_bytes(),
        l2_bytes=model.l2_bytes(),
        occupancy=model.fits,
        waves=model.waves,
        busy=model.busy,
        resources=resources,
    )


def _together(terms: Sequence[float], exponent: float) -> float:
    return float(sum(term**exponent for term in terms) ** (1 / exponent))


def copy_seconds(gpu: Gpu, bytes_: float) -> float:
    """Return the estimated time of a copy or fill that moves so many bytes."""
    return gpu.launch_latency_s + bytes_ / gpu.copy_bytes_per_s
