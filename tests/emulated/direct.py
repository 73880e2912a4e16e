"""Launch kernels on the emulated device by hand-made plans, without a recorded launcher."""

import struct
import tempfile
from pathlib import Path

import numpy as np

from kernelskill.backends.emulated import EmulatedBackend
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.build import Build
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.launch_plan import Address, Allocation, Blob, Launch, LaunchPlan, PointerPatch
from kernelskill.schema.task import Signature

HERE = Path(__file__).parent
SIGNATURE = Signature(symbol="nothing", parameters=())


def backend(threads=1):
    return EmulatedBackend(find_gpu("h200"), threads=threads)


def build(source, device=None, flags=()):
    if "void nothing()" not in source:
        source += '\nextern "C" void nothing() {}\n'
    made = (device or backend()).build(Candidate.of("kernel.cu", {"kernel.cu": source}), SIGNATURE, flags)
    assert isinstance(made, Build), made.log
    return made


def full_name(made, kernel):
    (name,) = [k.name for k in made.kernels if k.name == kernel or k.display_name.split("<")[0] == kernel]
    return name


def blob(value, ids):
    """A string names a buffer; numbers go by their numpy type; bytes go as they are."""
    if isinstance(value, Blob):
        return value
    if isinstance(value, str):
        patch = PointerPatch(position=0, address=Address(allocation=ids[value], offset=0))
        return Blob(raw="00" * 8, pointers=(patch,))
    if isinstance(value, tuple):  # buffer and byte offset
        patch = PointerPatch(position=0, address=Address(allocation=ids[value[0]], offset=value[1]))
        return Blob(raw="00" * 8, pointers=(patch,))
    if isinstance(value, bytes):
        return Blob(raw=value.hex())
    if isinstance(value, int):
        return Blob(raw=struct.pack("<i", value).hex())
    if isinstance(value, float):
        return Blob(raw=struct.pack("<f", value).hex())
    return Blob(raw=np.asarray(value).tobytes().hex())


def launch(made, kernel, ids, arguments, grid=(1, 1, 1), block=(32, 1, 1), shared=0, **more):
    return Launch(
        kernel=full_name(made, kernel),
        grid=tuple(grid) + (1,) * (3 - len(grid)),
        block=tuple(block) + (1,) * (3 - len(block)),
        dynamic_shared_bytes=shared,
        arguments=tuple(blob(a, ids) for a in arguments),
        **more,
    )


def plan(made, buffers, launches):
    """`launches` makes the operations from buffer name to allocation id."""
    ids = {name: n for n, name in enumerate(buffers)}
    allocations = tuple(
        Allocation(id=n, kind="buffer", name=name, size_bytes=array.nbytes)
        for n, (name, array) in enumerate(buffers.items())
    )
    return LaunchPlan(
        device_code=made.device_code,
        symbol="nothing",
        allocations=allocations,
        operations=tuple(launches(ids)),
    )


class Session:
    """One worker with one plan."""

    def __init__(self, made, buffers, launches, device=None, poison=0xA5):
        self.buffers = buffers
        self.folder = tempfile.TemporaryDirectory()
        self.worker = (device or backend()).open(made)
        self.plan = plan(made, buffers, launches)
        self.worker.load(self.plan)
        self.contents = {}
        for name, array in buffers.items():
            self.contents[name] = Path(self.folder.name) / name
            array.tofile(self.contents[name])
        self.worker.fill(self.contents, poison=poison)

    def run(self, timeout_s=60):
        return self.worker.run(timeout_s=timeout_s)

    def read(self, name):
        place = Path(self.folder.name) / "out"
        self.worker.read(name, place)
        array = self.buffers[name]
        return np.fromfile(place, array.dtype).reshape(array.shape)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.worker.close()
        self.folder.cleanup()


def run_kernel(
    source, kernel, buffers, arguments, *, grid=(1,), block=(32,), shared=0, timeout_s=60, threads=1, **more
):
    """Return the outcome and all buffers after one launch."""
    device = backend(threads)
    made = build(source, device)
    with Session(
        made, buffers, lambda ids: [launch(made, kernel, ids, arguments, grid, block, shared, **more)], device
    ) as session:
        outcome = session.run(timeout_s)
        after = {name: session.read(name) for name in buffers} if outcome.status == "passed" else {}
    return outcome, after
