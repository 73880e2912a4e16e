"""Turn a plan into the array of operations that the replay core carries out.

The launcher's stream 0 becomes the worker's main stream, its other streams are streams of the
worker's own. None of them orders itself with another, so the rules of the legacy default stream are
made with events: work on it waits for all blocking streams, and they wait for it. Every stream
starts after the main one and ends before it, so no work escapes the clock.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from typing import Any

from kernelskill.backends.cuda import replay_core
from kernelskill.backends.cuda.driver import (
    FUNCTION_MAX_DYNAMIC_SHARED,
    FUNCTION_NON_PORTABLE_CLUSTER,
    FUNCTION_SHARED_CARVEOUT,
    Driver,
    DriverError,
)
from kernelskill.backends.cuda.memory import PlanMemory
from kernelskill.backends.cuda.replay_core import Operation, OperationArray, ReplayCore
from kernelskill.errors import HarnessError
from kernelskill.schema.launch_plan import (
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
    RecordEvent,
    WaitEvent,
    walk,
)
from kernelskill.schema.launch_plan import Operation as PlanOperation

_PORTABLE_CLUSTER = 8
_TENSOR_MAP_BYTES = 128
_IN_STREAMS = (
    *(Launch, Memset, CopyDevice, CopyDevice2D, CopyHost, GraphLaunch),
    *(RecordEvent, WaitEvent),
)


@dataclass
class Lowered:
    """Operations ready to be carried out; holds everything that they point to."""

    array: OperationArray
    count: int
    keep: list[Any] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """Kernel name of each launch, by its place in the array."""

    def describe(self, where: int) -> str:
        """Return what stands at a place of the array, for messages."""
        return f"launch of {self.names[where]}" if where in self.names else "replay"


class Lowering:
    """Lowers one plan, with streams, events, functions and graphs of the worker's own."""

    def __init__(
        self, driver: Driver, core: ReplayCore, module: int, memory: PlanMemory, main_stream: int
    ) -> None:
        self._driver = driver
        self._core = core
        self._module = module
        self._memory = memory
        self._main = main_stream
        self._streams: dict[int, int] = {0: main_stream}
        self._events: dict[int, int] = {}
        self._edges: list[int] = []
        self._functions: dict[str, int] = {}
        self._parameter_sizes: dict[str, list[int | None]] = {}
        self._tensor_maps: dict[int, bytes] = {}
        self._graphs: dict[GraphLaunch, int] = {}
        self._operations: list[Operation] = []
        self._keep: list[Any] = []
        self._names: dict[int, str] = {}
        self._blocking: list[int] = []
        self._fresh: set[tuple[int, int]] = set()
        self._capture_stream = 0
        self._own_streams: list[int] = []
        self._inner: list[Lowering] = []

    def lower(self, plan: LaunchPlan) -> Lowered:
        """Return the plan's operations.

        Raises:
            HarnessError: The plan asks for what it may not.
            DriverError: The driver refuses a kernel, an attribute, a tensor map or a graph.
        """
        self._prepare_functions(plan)
        flat = walk(plan.operations)
        used = sorted({op.stream for op in plan.operations if isinstance(op, _IN_STREAMS)} - {0})
        blocking = {op.stream for op in flat if isinstance(op, CreateStream) and op.blocking}
        self._blocking = [stream for stream in used if stream in blocking]
        for stream in used:
            self._edge(0, stream)
        for operation in plan.operations:
            self._one(operation)
        for stream in used:
            self._edge(stream, 0)
        return self._finish()

    def release(self) -> None:
        """Give streams, events and graphs back."""
        for inner in self._inner:
            inner.release()
        for graph in self._graphs.values():
            self._driver.call("cuGraphExecDestroy", graph)
        for event in (*self._events.values(), *self._edges):
            self._driver.call("cuEventDestroy_v2", event)
        for stream in self._own_streams:
            self._driver.call("cuStreamDestroy_v2", stream)

    # --- operations ---

    def _one(self, operation: PlanOperation) -> None:
        match operation:
            case Launch() | Memset() | CopyDevice() | CopyDevice2D() | CopyHost() | GraphLaunch():
                self._order(operation.stream)
                self._work(operation, self._stream(operation.stream))
            case RecordEvent():
                self._order(operation.stream)
                self._record(operation)
            case WaitEvent():
                self._order(operation.stream)
                self._wait(operation)
            case EncodeTensorMap():
                self._encode(operation)
            case _:  # streams appear when used; host-side waits and allocations cost no device time
                pass

    def _work(self, operation: PlanOperation, stream: int) -> None:
        memory = self._memory
        match operation:
            case Launch():
                self._launch(operation, stream)
            case Memset(destination=destination, value=value, size_bytes=size):
                place = memory.span(destination, size)
                self._add(replay_core.MEMSET, stream, destination=place, value=value & 0xFF, size=size)
            case CopyDevice(destination=destination, source=source, size_bytes=size):
                target, origin = memory.span(destination, size), memory.span(source, size)
                self._add(replay_core.COPY_DEVICE, stream, destination=target, source=origin, size=size)
            case CopyDevice2D():
                self._copy_2d(operation, stream)
            case CopyHost(destination=destination, data=data):
                target = memory.span(destination, data.size_bytes)
                host = self._blob(data)
                self._add(
                    replay_core.COPY_HOST, stream, destination=target, source=host, size=data.size_bytes
                )
            case GraphLaunch():
                self._add(replay_core.GRAPH, stream, handle=self._graph(operation))

    def _launch(self, launch: Launch, stream: int) -> None:
        addresses = [self._blob(argument) for argument in launch.arguments]
        parameters = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self._keep.append(parameters)
        flags = replay_core.COOPERATIVE * launch.cooperative + replay_core.PROGRAMMATIC * launch.programmatic
        operation = self._add(
            replay_core.LAUNCH,
            stream,
            handle=self._functions[launch.kernel],
            parameters=ctypes.addressof(parameters),
            shared_bytes=launch.dynamic_shared_bytes,
        )
        if launch.cluster is not None:
            flags |= replay_core.CLUSTER
            operation.cluster[:] = launch.cluster
        self._names[len(self._operations) - 1] = launch.kernel
        operation.flags = flags
        operation.grid[:] = launch.grid
        operation.block[:] = launch.block

    def _copy_2d(self, copy: CopyDevice2D, stream: int) -> None:
        if copy.height == 0 or copy.width_bytes == 0:
            return
        target_span = copy.destination_pitch * (copy.height - 1) + copy.width_bytes
        origin_span = copy.source_pitch * (copy.height - 1) + copy.width_bytes
        self._add(
            replay_core.COPY_2D,
            stream,
            destination=self._memory.span(copy.destination, target_span),
            source=self._memory.span(copy.source, origin_span),
            size=copy.width_bytes,
            height=copy.height,
            destination_pitch=copy.destination_pitch,
            source_pitch=copy.source_pitch,
        )

    def _record(self, record: RecordEvent) -> None:
        if record.event not in self._events:
            self._events[record.event] = self._driver.event()
        self._add(replay_core.RECORD, self._stream(record.stream), handle=self._events[record.event])

    def _wait(self, wait: WaitEvent) -> None:
        if wait.event in self._events:  # waiting for an event never recorded is no wait
            self._add(replay_core.WAIT, self._stream(wait.stream), handle=self._events[wait.event])
            self._touch(wait.stream)

    def _add(self, kind: int, stream: int, **values: int) -> Operation:
        operation = Operation(kind=kind, stream=stream, **values)
        self._operations.append(operation)
        return operation

    # --- order between streams ---

    def _order(self, stream: int) -> None:
        """Apply the legacy default stream's rules to the next operation on `stream`."""
        if stream == 0:
            for other in self._blocking:
                self._edge(other, 0)
        elif stream in self._blocking:
            self._edge(0, stream)
        self._touch(stream)

    def _edge(self, before: int, after: int) -> None:
        """Make `after` wait for what is in `before` now, unless it does already."""
        if (before, after) in self._fresh:
            return
        event = self._driver.event()
        self._edges.append(event)
        self._add(replay_core.RECORD, self._stream(before), handle=event)
        self._add(replay_core.WAIT, self._stream(after), handle=event)
        self._touch(after)
        self._fresh.add((before, after))

    def _touch(self, stream: int) -> None:
        """Note that `stream` holds something new: nobody waits for that yet."""
        self._fresh = {edge for edge in self._fresh if edge[0] != stream}

    def _stream(self, number: int) -> int:
        if number not in self._streams:
            self._streams[number] = self._new_stream()
        return self._streams[number]

    def _new_stream(self) -> int:
        self._own_streams.append(self._driver.stream())
        return self._own_streams[-1]

    # --- kernels and their arguments ---

    def _prepare_functions(self, plan: LaunchPlan) -> None:
        for name in dict.fromkeys(launch.kernel for launch in plan.launches()):
            function = self._driver.function(self._module, name)
            self._functions[name] = function
            launches = [launch for launch in plan.launches() if launch.kernel == name]
            self._check_sizes(function, launches)
            largest = max(launch.max_dynamic_shared_bytes for launch in launches)
            if largest:
                self._driver.set_function_attribute(function, FUNCTION_MAX_DYNAMIC_SHARED, largest)
            carveouts = [each.carveout_percent for each in launches if each.carveout_percent is not None]
            if carveouts:
                self._driver.set_function_attribute(function, FUNCTION_SHARED_CARVEOUT, carveouts[-1])
            if any(_cluster_size(launch) > _PORTABLE_CLUSTER for launch in launches):
                self._driver.set_function_attribute(function, FUNCTION_NON_PORTABLE_CLUSTER, 1)

    def _check_sizes(self, function: int, launches: list[Launch]) -> None:
        """Compare argument sizes with the driver's own; a wrong size would read past the blob."""
        for launch in launches[:1]:
            sizes = [self._driver.parameter_size(function, index) for index in range(len(launch.arguments))]
            self._parameter_sizes[launch.kernel] = sizes
        for launch in launches:
            expected = self._parameter_sizes[launch.kernel]
            given = [argument.size_bytes for argument in launch.arguments]
            pairs = zip(given, expected, strict=False)
            if len(given) != len(expected) or any(want not in (None, have) for have, want in pairs):
                raise HarnessError(
                    f"{launch.kernel} wants arguments of {expected} bytes, the plan has {given}"
                )

    def _blob(self, blob: Blob) -> int:
        """Return the host address of a blob with real device addresses in it."""
        data = bytearray.fromhex(blob.raw)
        for pointer in blob.pointers:
            if not 0 <= pointer.position <= len(data) - 8:
                raise HarnessError("an address lies outside its argument")
            struct.pack_into("<Q", data, pointer.position, self._memory.address(pointer.address))
        for patch in blob.tensor_maps:
            end = patch.position + _TENSOR_MAP_BYTES
            if patch.position < 0 or end > len(data) or patch.tensor_map not in self._tensor_maps:
                raise HarnessError("a tensor map is unknown or lies outside its argument")
            data[patch.position : end] = self._tensor_maps[patch.tensor_map]
        held = ctypes.create_string_buffer(len(data) + 64)
        address = (ctypes.addressof(held) + 63) & ~63  # the widest alignment that a parameter has
        ctypes.memmove(address, bytes(data), len(data))
        self._keep.append(held)
        return address

    def _encode(self, operation: EncodeTensorMap) -> None:
        self._tensor_maps[operation.id] = self._driver.encode_tensor_map(
            operation.data_type,
            self._memory.address(operation.address),
            operation.dimensions,
            operation.strides_bytes,
            operation.box,
            operation.element_strides,
            operation.modes,
        )

    # --- graphs ---

    def _graph(self, graph: GraphLaunch) -> int:
        key = graph.model_copy(update={"stream": 0})
        if key not in self._graphs:
            self._graphs[key] = self._capture(graph)
        return self._graphs[key]

    def _capture(self, graph: GraphLaunch) -> int:
        """Capture the graph's operations from a stream of its own and make it executable."""
        if not self._capture_stream:
            self._capture_stream = self._new_stream()
        inner = Lowering(self._driver, self._core, self._module, self._memory, self._main)
        inner._functions, inner._tensor_maps = self._functions, self._tensor_maps
        inner._streams = {graph.origin: self._capture_stream}
        self._inner.append(inner)
        lowered = inner._inside(graph.operations)
        self._driver.begin_capture(self._capture_stream)
        code, _ = self._core.replay(lowered.array, lowered.count)
        if code:
            self._driver.abandon_capture(self._capture_stream)
            raise DriverError(code, self._driver.error_name(code), "stream capture")
        executable = self._driver.end_capture(self._capture_stream)
        self._keep.append(lowered)
        return executable

    def _inside(self, operations: tuple[PlanOperation, ...]) -> Lowered:
        for operation in operations:
            if isinstance(operation, GraphLaunch):  # a graph launch cannot be captured itself
                for each in operation.operations:
                    self._one(each)
            else:
                self._one(operation)
        return self._finish()

    def _finish(self) -> Lowered:
        count = len(self._operations)
        array = (Operation * max(1, count))(*self._operations)
        return Lowered(array, count, self._keep, self._names)


def _cluster_size(launch: Launch) -> int:
    if launch.cluster is None:
        return 1
    return launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
