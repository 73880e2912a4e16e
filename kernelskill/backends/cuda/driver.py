"""The CUDA driver API through ctypes: only what a worker needs, every call checked.

Signatures follow `cuda.h` of CUDA 12 and 13; the versioned names are those that header maps to.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

LIBRARY = "libcuda.so.1"

_STREAM_NON_BLOCKING = 0x1
_EVENT_DISABLE_TIMING = 0x2
_CAPTURE_MODE_RELAXED = 2

FUNCTION_MAX_DYNAMIC_SHARED = 8
FUNCTION_SHARED_CARVEOUT = 9
FUNCTION_NON_PORTABLE_CLUSTER = 14

DEVICE_CLOCK_RATE_KHZ = 13
DEVICE_MULTIPROCESSORS = 16
DEVICE_MEMORY_CLOCK_RATE_KHZ = 36
DEVICE_MEMORY_BUS_BITS = 37
DEVICE_L2_BYTES = 38
DEVICE_MAX_THREADS_PER_SM = 39
DEVICE_CAPABILITY_MAJOR = 75
DEVICE_CAPABILITY_MINOR = 76
DEVICE_SHARED_BYTES_PER_SM = 81
DEVICE_REGISTERS_PER_SM = 82
DEVICE_SHARED_BYTES_PER_BLOCK = 97
DEVICE_MAX_BLOCKS_PER_SM = 106

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid_v2": (c_void_p, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuCtxResetPersistingL2Cache": (),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuModuleGetGlobal_v2": (POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemcpyDtoD_v2": (c_uint64, c_uint64, c_size_t),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemsetD8_v2": (c_uint64, c_ubyte, c_size_t),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, POINTER(c_void_p)),
    "cuGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_uint64),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuStreamDestroy_v2": (c_void_p,),
}


class DriverError(Exception):
    """A call of the driver API that did not answer CUDA_SUCCESS."""

    def __init__(self, code: int, name: str, call: str) -> None:
        super().__init__(f"{call}: {name}")
        self.code = code
        self.name = name
        self.call = call


class Driver:
    """The loaded driver library.

    Raises:
        OSError: There is no driver library, or it is too old.
        DriverError: The driver does not start, for example because there is no device.
    """

    def __init__(self) -> None:
        self._may_persist = True
        # global, so that the replay core finds the driver's functions
        self._library = ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name, None)
            if function is None:
                raise OSError(f"{LIBRARY} lacks {name}: the driver is too old")
            function.argtypes = arguments
            function.restype = c_int
        self._library.cuGetErrorName.argtypes = (c_int, POINTER(c_char_p))
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by name.

        Raises:
            DriverError: It failed.
        """
        self.check(getattr(self._library, name)(*arguments), name)

    def check(self, code: int, call: str) -> None:
        """Raise `DriverError` where a result code is not success."""
        if code:
            raise DriverError(code, self.error_name(code), call)

    def error_name(self, code: int) -> str:
        """Return the driver's name of a result code."""
        text = c_char_p()
        self._library.cuGetErrorName(code, byref(text))
        return text.value.decode() if text.value else f"CUDA error {code}"

    # --- devices ---

    def version(self) -> str:
        """Return the newest CUDA that the driver serves, for example `13.0`."""
        number = c_int()
        self.call("cuDriverGetVersion", byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def device_count(self) -> int:
        """Return the number of visible devices."""
        number = c_int()
        self.call("cuDeviceGetCount", byref(number))
        return number.value

    def device_name(self, index: int) -> str:
        """Return the name of a device."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device(index))
        return text.value.decode(errors="replace")

    def device_uuid(self, index: int) -> str:
        """Return the UUID of a device as 32 hex digits."""
        raw = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid_v2", raw, self.device(index))
        return raw.raw.hex()

    def device_attribute(self, index: int, attribute: int) -> int:
        """Return an attribute of a device."""
        number = c_int()
        self.call("cuDeviceGetAttribute", byref(number), attribute, self.device(index))
        return number.value

    def device_memory(self, index: int) -> int:
        """Return a device's memory in bytes."""
        number = c_size_t()
        self.call("cuDeviceTotalMem_v2", byref(number), self.device(index))
        return number.value

    def device(self, index: int) -> int:
        """Return the handle of a device."""
        handle = c_int()
        self.call("cuDeviceGet", byref(handle), index)
        return handle.value

    def enter(self, index: int) -> None:
        """Create the device's primary context and make it current."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), self.device(index))
        self.call("cuCtxSetCurrent", context)

    def synchronize(self) -> None:
        """Wait for all work; errors of earlier kernels appear here."""
        self.call("cuCtxSynchronize")

    def forget_persisting(self) -> None:
        """Give back what earlier work set aside of the L2; a driver that knows no such thing sets none aside."""
        if self._may_persist:
            try:
                self.call("cuCtxResetPersistingL2Cache")
            except DriverError:  # one that broke the context shows again at the next call
                self._may_persist = False

    # --- memory ---

    def allocate(self, size: int) -> int:
        """Return the address of new device memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), max(size, 1))
        return address.value

    def free(self, address: int) -> None:
        """Give device memory back."""
        self.call("cuMemFree_v2", address)

    def fill(self, address: int, value: int, size: int) -> None:
        """Set bytes and wait."""
        if size:
            self.call("cuMemsetD8_v2", address, value, size)

    def fill_async(self, address: int, value: int, size: int, stream: int) -> None:
        """Set bytes in stream order."""
        if size:
            self.call("cuMemsetD8Async", address, value, size, stream)

    def upload(self, address: int, host: int, size: int) -> None:
        """Copy from a host address to the device."""
        if size:
            self.call("cuMemcpyHtoD_v2", address, host, size)

    def download(self, host: int, address: int, size: int) -> None:
        """Copy from the device to a host address."""
        if size:
            self.call("cuMemcpyDtoH_v2", host, address, size)

    def copy(self, destination: int, source: int, size: int) -> None:
        """Copy on the device."""
        if size:
            self.call("cuMemcpyDtoD_v2", destination, source, size)

    def copy_async(self, destination: int, source: int, size: int, stream: int) -> None:
        """Copy on the device in stream order."""
        if size:
            self.call("cuMemcpyDtoDAsync_v2", destination, source, size, stream)

    # --- code ---

    def load_module(self, image: bytes) -> int:
        """Load a cubin."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), image)
        return module.value or 0

    def function(self, module: int, name: str) -> int:
        """Return the handle of a kernel."""
        handle = c_void_p()
        self.call("cuModuleGetFunction", byref(handle), module, name.encode())
        return handle.value or 0

    def parameter_size(self, function: int, index: int) -> int | None:
        """Return the size of a kernel's parameter; None where the driver is too old to tell.

        Never ask past the last parameter: memory checkers report that as an error.
        """
        asks = getattr(self._library, "cuFuncGetParamInfo", None)
        if asks is None:
            return None
        asks.argtypes = (c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t))
        offset, size = c_size_t(), c_size_t()
        self.check(asks(function, index, byref(offset), byref(size)), "cuFuncGetParamInfo")
        return size.value

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        """Set an attribute of a kernel."""
        self.call("cuFuncSetAttribute", function, attribute, value)

    def variable(self, module: int, name: str) -> tuple[int, int]:
        """Return address and size of a device variable."""
        address, size = c_uint64(), c_size_t()
        self.call("cuModuleGetGlobal_v2", byref(address), byref(size), module, name.encode())
        return address.value, size.value

    # --- streams, events, graphs ---

    def stream(self) -> int:
        """Create a stream that orders itself with no other."""
        handle = c_void_p()
        self.call("cuStreamCreate", byref(handle), _STREAM_NON_BLOCKING)
        return handle.value or 0

    def event(self, *, timing: bool = False) -> int:
        """Create an event."""
        handle = c_void_p()
        self.call("cuEventCreate", byref(handle), 0 if timing else _EVENT_DISABLE_TIMING)
        return handle.value or 0

    def elapsed_ms(self, start: int, end: int) -> float:
        """Wait for `end` and return the time since `start`."""
        self.call("cuEventSynchronize", end)
        value = c_float()
        self.call("cuEventElapsedTime", byref(value), start, end)
        return value.value

    def begin_capture(self, stream: int) -> None:
        """Start to collect what enters a stream instead of running it."""
        self.call("cuStreamBeginCapture_v2", stream, _CAPTURE_MODE_RELAXED)

    def end_capture(self, stream: int) -> int:
        """Return the executable graph of what was collected."""
        graph = c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        executable = c_void_p()
        self.call("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        self.call("cuGraphDestroy", graph)
        return executable.value or 0

    def abandon_capture(self, stream: int) -> None:
        """End a capture that failed, whatever state it is in."""
        graph = c_void_p()
        self._library.cuStreamEndCapture(stream, byref(graph))
        if graph.value:
            self._library.cuGraphDestroy(graph)

    def encode_tensor_map(
        self,
        data_type: int,
        address: int,
        dimensions: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        element_strides: tuple[int, ...],
        modes: tuple[int, int, int, int],
    ) -> bytes:
        """Return the 128 bytes of a tiled tensor map."""
        rank = len(dimensions)
        raw = ctypes.create_string_buffer(128 + 64)
        place = (ctypes.addressof(raw) + 63) & ~63
        code = self._library.cuTensorMapEncodeTiled(
            c_void_p(place),
            c_int(data_type),
            c_uint(rank),
            c_void_p(address),
            (c_uint64 * rank)(*dimensions),
            (c_uint64 * max(rank - 1, 1))(*strides[: rank - 1]),
            (ctypes.c_uint32 * rank)(*box),
            (ctypes.c_uint32 * rank)(*element_strides),
            *(c_int(mode) for mode in modes),
        )
        self.check(code, "cuTensorMapEncodeTiled")
        return ctypes.string_at(place, 128)
