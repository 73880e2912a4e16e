"""LaunchPlan: what a launcher asks of the device for one case, with symbolic buffers.

A plan is data from outside. `backends.plan_check` decides whether it may be carried out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernelskill.schema.base import Record

PLAN_VERSION = 1


class Address(Record):
    """A place in one allocation of the plan."""

    allocation: int
    """`Allocation.id`."""
    offset: int
    """Bytes from the start of the allocation; may lie outside it in an argument, never in a copy."""


class PointerPatch(Record):
    """Eight bytes of a blob that hold a device address."""

    position: int
    """Byte position in the blob; the address is little-endian and eight bytes long."""
    address: Address


class TensorMapPatch(Record):
    """128 bytes of a blob that hold an encoded tensor map."""

    position: int
    tensor_map: int
    """`EncodeTensorMap.id`."""


class Blob(Record):
    """Bytes to hand over, with device addresses left open."""

    raw: str
    """Hexadecimal, two digits a byte; patched places are zero."""
    pointers: tuple[PointerPatch, ...] = ()
    tensor_maps: tuple[TensorMapPatch, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Length in bytes."""
        return len(self.raw) // 2


class Allocation(Record):
    """Memory of the device that the plan names."""

    id: int
    kind: Literal["buffer", "temporary", "symbol"]
    """`buffer`: handed in by the caller; `temporary`: allocated by the launcher; `symbol`: a device variable."""
    name: str = ""
    """Buffer name or mangled symbol name; empty for a temporary."""
    size_bytes: int


class Launch(Record):
    """One kernel launch."""

    op: Literal["launch"] = "launch"
    kernel: str
    """Mangled name in the cubin."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0
    max_dynamic_shared_bytes: int = 0
    """What the launcher set by `cudaFuncSetAttribute`; 0 where it did not."""
    carveout_percent: int | None = None
    cooperative: bool = False
    programmatic: bool = False
    """Programmatic stream serialisation was asked for."""
    cluster: tuple[int, int, int] | None = None
    stream: int = 0
    arguments: tuple[Blob, ...] = ()


class Memset(Record):
    """Fill of bytes."""

    op: Literal["memset"] = "memset"
    destination: Address
    value: int
    size_bytes: int
    stream: int = 0


class CopyDevice(Record):
    """Copy from device memory to device memory."""

    op: Literal["copy_device"] = "copy_device"
    destination: Address
    source: Address
    size_bytes: int
    stream: int = 0


class CopyDevice2D(Record):
    """Copy of rows from device memory to device memory; pitches and width in bytes."""

    op: Literal["copy_device_2d"] = "copy_device_2d"
    destination: Address
    destination_pitch: int
    source: Address
    source_pitch: int
    width_bytes: int
    height: int
    stream: int = 0


class CopyHost(Record):
    """Copy of bytes that the launcher held on the host to device memory."""

    op: Literal["copy_host"] = "copy_host"
    destination: Address
    data: Blob
    stream: int = 0


class CreateStream(Record):
    """A stream of the launcher's own. Stream 0 is the one that the launcher was given, or the default."""

    op: Literal["create_stream"] = "create_stream"
    stream: int
    blocking: bool
    """Whether it orders itself with the default stream, as `cudaStreamCreate` makes it."""


class RecordEvent(Record):
    """Marks what is in a stream now."""

    op: Literal["record_event"] = "record_event"
    event: int
    stream: int = 0


class WaitEvent(Record):
    """Makes a stream wait for an event."""

    op: Literal["wait_event"] = "wait_event"
    event: int
    stream: int = 0


class Synchronize(Record):
    """A wait of the host."""

    op: Literal["synchronize"] = "synchronize"
    scope: Literal["device", "stream", "event", "copy"]
    """`copy`: the wait that a synchronous copy implies."""
    stream: int = 0
    event: int = 0


class Allocate(Record):
    """The launcher allocates a temporary."""

    op: Literal["allocate"] = "allocate"
    allocation: int
    asynchronous: bool = False
    stream: int = 0


class Release(Record):
    """The launcher frees a temporary."""

    op: Literal["release"] = "release"
    allocation: int
    asynchronous: bool = False
    stream: int = 0


class EncodeTensorMap(Record):
    """`cuTensorMapEncodeTiled`, repeated by the worker with the real address."""

    op: Literal["encode_tensor_map"] = "encode_tensor_map"
    id: int
    data_type: int
    address: Address
    dimensions: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    modes: tuple[int, int, int, int]
    """Interleave, swizzle, L2 promotion and out-of-bounds fill, as in the driver API."""


class GraphLaunch(Record):
    """A captured graph launched once; its operations in capture order."""

    op: Literal["graph_launch"] = "graph_launch"
    stream: int = 0
    origin: int
    """The stream that was captured; operations on it run on `stream`."""
    operations: tuple[Operation, ...]


Operation = Annotated[
    Launch
    | Memset
    | CopyDevice
    | CopyDevice2D
    | CopyHost
    | CreateStream
    | RecordEvent
    | WaitEvent
    | Synchronize
    | Allocate
    | Release
    | EncodeTensorMap
    | GraphLaunch,
    Field(discriminator="op"),
]


class HostCalls(Record):
    """Counts of host-side CUDA calls in one call of the launcher."""

    allocations: int = 0
    synchronizations: int = 0
    launches: int = 0


class LaunchPlan(Record):
    """Everything one call of the launcher asked of the device, in order."""

    version: Literal[1] = 1
    device_code: str
    """SHA-256 of the cubin that the kernels come from."""
    symbol: str
    """The launcher."""
    allocations: tuple[Allocation, ...]
    operations: tuple[Operation, ...]
    returned: int | None = None
    """What a launcher with an `int` or `cudaError_t` result returned."""
    host_calls: HostCalls = HostCalls()
    notes: tuple[str, ...] = ()
    """Facts worth reporting: unjoined side streams, memory not freed, calls that differ from the first."""
    leaked_bytes: int = 0
    """Device memory that each call takes and keeps, the first left out: it may set something up."""
    escapes: str = ""
    """Why replaying this plan would not show what the launcher does to its caller; empty where it would."""

    @property
    def keeps_memory(self) -> bool:
        """Whether memory that it takes is still there when it has ended."""
        flat = walk(self.operations)
        taken = {op.allocation for op in flat if isinstance(op, Allocate)}
        return bool(taken.difference(op.allocation for op in flat if isinstance(op, Release)))

    def launches(self) -> tuple[Launch, ...]:
        """Return the kernel launches in order, those inside graphs included."""
        return tuple(op for op in walk(self.operations) if isinstance(op, Launch))


GraphLaunch.model_rebuild()
LaunchPlan.model_rebuild()


def walk(operations: tuple[Operation, ...]) -> list[Operation]:
    """Return the operations in order with graphs opened up."""
    flat: list[Operation] = []
    for operation in operations:
        flat.append(operation)
        if isinstance(operation, GraphLaunch):
            flat.extend(walk(operation.operations))
    return flat
