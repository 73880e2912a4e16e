"""Decide whether a plan may be carried out with a build. A plan is outside input, wherever it comes from.

Everything that a worker does on the host by a plan's figures is checked here: which memory it copies
and fills, which kernels it looks up, how many bytes it hands over. What a kernel does with a pointer
is its own affair, as it is with any launch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelskill.errors import HarnessError
from kernelskill.schema.build import Build, KernelResources
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    Allocation,
    Blob,
    CopyDevice,
    CopyDevice2D,
    CopyHost,
    CreateStream,
    EncodeTensorMap,
    GraphLaunch,
    Launch,
    LaunchPlan,
    Memset,
    Operation,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
)

MAX_OPERATIONS = 400_000
MAX_ALLOCATIONS = 20_000
MAX_STREAMS = 1024
MAX_BYTES = 1 << 42
"""Of all allocations together; far above any GPU, far below where sums overflow."""
MAX_HOST_BYTES = 64 << 20
MAX_SHARED_BYTES = 1 << 20
MAX_CLUSTER_BLOCKS = 16
_MAX_GRID = (2147483647, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
_POINTER_BYTES = 8
_MAP_BYTES = 128
_MAX_RANK = 5
_MAX_MODE = 16
_MAX_DATA_TYPE = 32
_IN_GRAPH = (Launch, Memset, CopyDevice, CopyDevice2D, CopyHost, RecordEvent, WaitEvent)


class PlanRefused(HarnessError):
    """A plan that may not be carried out."""


def check_plan(plan: LaunchPlan, build: Build) -> None:
    """Return if the plan may be carried out with the build.

    Raises:
        PlanRefused: It may not; the message says why.
    """
    _require(plan.device_code == build.device_code, "the plan belongs to another build")
    check = _Check(plan.allocations, build)
    check.operations(plan.operations)


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise PlanRefused(reason)


class _Check:
    """What is known of a plan while its operations are gone through in order."""

    def __init__(self, allocations: tuple[Allocation, ...], build: Build) -> None:
        self._kernels = {kernel.name: kernel for kernel in build.kernels}
        self._allocations = _known_allocations(allocations, build)
        self._live = {a.id for a in allocations if a.kind != "temporary"}
        self._used: set[int] = set()
        self._streams = {0}
        self._events: set[int] = set()
        self._maps: set[int] = set()
        self._count = 0
        self._host_bytes = 0

    def operations(self, operations: Iterable[Operation], *, in_graph: bool = False) -> None:
        """Check operations in order."""
        for operation in operations:
            self._count += 1
            _require(self._count <= MAX_OPERATIONS, f"more than {MAX_OPERATIONS} operations")
            if in_graph and not isinstance(operation, _IN_GRAPH):
                raise PlanRefused(f"a graph holds {operation.op!r}")
            self._operation(operation)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, CreateStream):
            self._create_stream(op)
            return
        if not isinstance(op, EncodeTensorMap):
            self._stream(op.stream)
        if isinstance(op, Launch):
            self._launch(op)
        elif isinstance(op, GraphLaunch):
            self._stream(op.origin)
            self.operations(op.operations, in_graph=True)
        elif isinstance(op, RecordEvent):
            _require(op.event >= 0, f"event {op.event}")
            self._events.add(op.event)
        elif isinstance(op, WaitEvent):
            self._event(op.event)
        elif isinstance(op, Synchronize):
            if op.scope == "event":
                self._event(op.event)
        else:
            self._memory(op)

    def _memory(
        self, op: Memset | CopyDevice | CopyDevice2D | CopyHost | Allocate | Release | EncodeTensorMap
    ) -> None:
        if isinstance(op, Memset):
            _require(0 <= op.value <= 255, f"a fill with {op.value}, which is no byte")
            self._span(op.destination, op.size_bytes)
        elif isinstance(op, CopyDevice):
            self._span(op.destination, op.size_bytes)
            self._span(op.source, op.size_bytes)
        elif isinstance(op, CopyDevice2D):
            self._rows(op.destination, op.destination_pitch, op)
            self._rows(op.source, op.source_pitch, op)
        elif isinstance(op, CopyHost):
            self._host_bytes += op.data.size_bytes
            _require(self._host_bytes <= MAX_HOST_BYTES, f"more than {MAX_HOST_BYTES} bytes of host data")
            self._blob(op.data)
            self._span(op.destination, op.data.size_bytes)
        elif isinstance(op, Allocate):
            self._allocate(op)
        elif isinstance(op, Release):
            _require(op.allocation in self._live, f"allocation {op.allocation} is freed, but not in use")
            _require(self._allocations[op.allocation].kind == "temporary", "a caller's buffer is freed")
            self._live.discard(op.allocation)
        else:
            self._tensor_map(op)

    def _create_stream(self, op: CreateStream) -> None:
        _require(op.stream > 0 and op.stream not in self._streams, f"stream {op.stream} is created twice")
        self._streams.add(op.stream)
        _require(len(self._streams) <= MAX_STREAMS, f"more than {MAX_STREAMS} streams")

    def _stream(self, stream: int) -> None:
        _require(stream in self._streams, f"there is no stream {stream}")

    def _event(self, event: int) -> None:
        _require(event in self._events, f"event {event} was not recorded before")

    def _allocate(self, op: Allocate) -> None:
        allocation = self._allocations.get(op.allocation)
        _require(
            allocation is not None and allocation.kind == "temporary", "an unknown temporary is allocated"
        )
        fresh = op.allocation not in self._live and op.allocation not in self._used
        _require(fresh, f"temporary {op.allocation} is allocated twice")
        self._live.add(op.allocation)
        self._used.add(op.allocation)

    def _launch(self, op: Launch) -> None:
        kernel = self._kernels.get(op.kernel)
        if kernel is None:
            raise PlanRefused(f"the build has no kernel {op.kernel!r}")
        _check_shape(op, kernel)
        _require(
            len(op.arguments) == len(kernel.parameters),
            f"{op.kernel}: {len(op.arguments)} arguments for {len(kernel.parameters)} parameters",
        )
        for n, (argument, parameter) in enumerate(zip(op.arguments, kernel.parameters, strict=True)):
            _require(
                argument.size_bytes == parameter.size,
                f"{op.kernel}: argument {n} has {argument.size_bytes} bytes, its parameter {parameter.size}",
            )
            self._blob(argument)

    def _blob(self, blob: Blob) -> None:
        _require(_HEX.match(blob.raw) is not None, "bytes are not lower-case hexadecimal")
        patches = [(p.position, _POINTER_BYTES) for p in blob.pointers]
        patches += [(m.position, _MAP_BYTES) for m in blob.tensor_maps]
        end = 0
        for position, size in sorted(patches):
            _require(end <= position, "patches overlap or start before the bytes")
            end = position + size
            zeros = "0" * (2 * size)
            _require(
                blob.raw[2 * position : 2 * end] == zeros,
                "a patched place is not zero, or not inside the bytes",
            )
        for pointer in blob.pointers:
            self._address(pointer.address)
        for patch in blob.tensor_maps:
            _require(patch.tensor_map in self._maps, f"tensor map {patch.tensor_map} was not encoded before")

    def _address(self, address: Address) -> Allocation:
        allocation = self._allocations.get(address.allocation)
        if allocation is None:
            raise PlanRefused(f"there is no allocation {address.allocation}")
        _require(
            address.allocation in self._live,
            f"allocation {address.allocation} is used while it is not in use",
        )
        _require(abs(address.offset) <= MAX_BYTES, f"offset {address.offset} is out of all bounds")
        return allocation

    def _span(self, address: Address, size: int) -> None:
        allocation = self._address(address)
        inside = address.offset >= 0 and size >= 0 and address.offset + size <= allocation.size_bytes
        _require(
            inside,
            f"{size} bytes at {address.offset} lie outside allocation {allocation.id} of {allocation.size_bytes} bytes",
        )

    def _rows(self, address: Address, pitch: int, op: CopyDevice2D) -> None:
        _require(op.width_bytes > 0 and op.height > 0, "a copy of no rows")
        _require(
            op.width_bytes <= pitch <= MAX_BYTES, f"a pitch of {pitch} bytes for rows of {op.width_bytes}"
        )
        self._span(address, pitch * (op.height - 1) + op.width_bytes)

    def _tensor_map(self, op: EncodeTensorMap) -> None:
        _require(op.id not in self._maps, f"tensor map {op.id} is encoded twice")
        self._maps.add(op.id)
        self._span(op.address, 1)
        rank = len(op.dimensions)
        _require(1 <= rank <= _MAX_RANK, f"a tensor map of rank {rank}")
        lengths = (len(op.strides_bytes) + 1, len(op.box), len(op.element_strides))
        _require(lengths == (rank, rank, rank), "a tensor map whose lists differ in length")
        _require(
            all(0 < d <= 1 << 32 for d in op.dimensions), "a tensor map with a size of zero or too large"
        )
        _require(all(0 < s < 1 << 40 for s in op.strides_bytes), "a tensor map with an impossible stride")
        _require(all(0 < b <= 256 for b in op.box), "a tensor map with an impossible box")
        _require(
            all(0 < e <= 8 for e in op.element_strides), "a tensor map with an impossible element stride"
        )
        _require(0 <= op.data_type <= _MAX_DATA_TYPE, f"a tensor map of data type {op.data_type}")
        _require(all(0 <= m <= _MAX_MODE for m in op.modes), f"a tensor map with modes {op.modes}")


def _known_allocations(allocations: tuple[Allocation, ...], build: Build) -> dict[int, Allocation]:
    _require(len(allocations) <= MAX_ALLOCATIONS, f"more than {MAX_ALLOCATIONS} allocations")
    _require(sum(max(0, a.size_bytes) for a in allocations) <= MAX_BYTES, "allocations above all bounds")
    variables = {variable.name: variable.size_bytes for variable in build.variables}
    known: dict[int, Allocation] = {}
    names: set[tuple[str, str]] = set()
    for allocation in allocations:
        _require(allocation.id not in known, f"allocation {allocation.id} appears twice")
        _require(allocation.size_bytes >= 0, f"allocation {allocation.id} has a negative size")
        if allocation.kind != "temporary":
            key = (allocation.kind, allocation.name)
            _require(key not in names, f"{allocation.kind} {allocation.name!r} appears twice")
            names.add(key)
        if allocation.kind == "symbol":
            _require(
                variables.get(allocation.name) == allocation.size_bytes,
                f"the build has no device variable {allocation.name!r} of {allocation.size_bytes} bytes",
            )
        known[allocation.id] = allocation
    return known


def _check_shape(op: Launch, kernel: KernelResources) -> None:
    """Check what the driver would take for a bad call rather than for a failing launch."""
    for values, limits, what in ((op.grid, _MAX_GRID, "grid"), (op.block, _MAX_BLOCK, "block")):
        fits = all(1 <= value <= limit for value, limit in zip(values, limits, strict=True))
        _require(fits, f"{op.kernel}: a {what} of {values}")
    threads = op.block[0] * op.block[1] * op.block[2]
    _require(threads <= (kernel.max_threads or _MAX_THREADS), f"{op.kernel}: a block of {threads} threads")
    for size in (op.dynamic_shared_bytes, op.max_dynamic_shared_bytes):
        _require(0 <= size <= MAX_SHARED_BYTES, f"{op.kernel}: {size} bytes of dynamic shared memory")
    if op.carveout_percent is not None:
        _require(0 <= op.carveout_percent <= 100, f"{op.kernel}: a carveout of {op.carveout_percent} percent")
    if op.cluster is not None:
        blocks = op.cluster[0] * op.cluster[1] * op.cluster[2]
        _require(
            min(op.cluster) >= 1 and blocks <= MAX_CLUSTER_BLOCKS, f"{op.kernel}: a cluster of {op.cluster}"
        )
