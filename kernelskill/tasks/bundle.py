"""Bundle: the values of one case at one seed, as raw files. Written by the test process, read by anyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelskill.errors import ArtifactCorrupt
from kernelskill.schema.base import Record
from kernelskill.schema.task import Role
from kernelskill.tasks.dtypes import dtype_of

RECORD_FILE = "bundle.json"


class ArrayFile(Record):
    """One array as a file of its elements in C order, in the byte order of the machine."""

    file: str
    """Name inside the bundle's folder."""
    dtype: str
    """Name for `dtypes.dtype_of`; of one lane where the element is a vector."""
    shape: tuple[int, ...]
    size_bytes: int


class Expected(Record):
    """What one output must hold afterwards."""

    values: ArrayFile
    """May have a wider type than the output itself."""
    mask: ArrayFile | None = None
    """False where any value is right; None: every element counts."""
    dtype: str
    """Type in which the output's own bytes are read."""
    shape: tuple[int, ...]
    """Shape of the output's own bytes in that type."""
    scale: float | None = None
    """Root mean square of what counts of the values; None: not worked out."""


class Bundle(Record):
    """Inputs, scalars, expected values and buffer sizes of one case at one seed."""

    key: str
    """SHA-256 over the tests, the signature, the case and the seed."""
    folder: str
    """Absolute folder of the files; valid on this machine only."""
    case: int
    seed: int
    roles: dict[str, Role]
    """What every pointer parameter is in this case."""
    buffers: dict[str, int]
    """Every pointer parameter's buffer size in bytes."""
    inputs: dict[str, ArrayFile]
    """Contents of input and in-out buffers, and of scratch where make_inputs gave some."""
    scalars: dict[str, int | float | bool | str]
    """Converted by C type; `hex:` and little-endian bytes where JSON has no such number."""
    expected: dict[str, Expected]

    def path(self, array: ArrayFile) -> Path:
        """Return where an array's bytes lie."""
        return Path(self.folder) / array.file

    def contents(self) -> dict[str, Path]:
        """Return every input's file by parameter name, as `Worker.fill` takes them."""
        return {name: self.path(array) for name, array in self.inputs.items()}

    def load(self, array: ArrayFile) -> NDArray[Any]:
        """Return an array of this bundle, mapped read-only.

        Raises:
            ArtifactCorrupt: The file does not have the recorded size.
        """
        return map_array(self.path(array), array.dtype, array.shape)

    def load_output(self, name: str, path: Path) -> NDArray[Any]:
        """Return what a candidate left in output `name`, read from a file of raw bytes.

        Raises:
            ArtifactCorrupt: The file does not have the output's size.
        """
        expected = self.expected[name]
        return map_array(path, expected.dtype, expected.shape)


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a file of raw bytes as a read-only array.

    Raises:
        ArtifactCorrupt: The file is missing or has another size.
    """
    kind = dtype_of(dtype)
    count = 1
    for extent in shape:
        count *= extent
    wanted = count * kind.itemsize
    try:
        found = path.stat().st_size
    except OSError as error:
        raise ArtifactCorrupt(f"cannot read {str(path)!r}: {error.strerror}") from None
    if found != wanted:
        raise ArtifactCorrupt(f"{str(path)!r} holds {found} bytes where {wanted} were recorded")
    if wanted == 0:
        return np.zeros(shape, kind)
    return np.memmap(path, np.uint8, "r").view(kind).reshape(shape)


def read_bundle(folder: Path) -> Bundle | None:
    """Return the finished bundle in `folder`, or None where there is none that can be used."""
    try:
        text = (folder / RECORD_FILE).read_text(encoding="utf-8")
        bundle = Bundle.model_validate_json(text)
    except (OSError, ValueError):
        return None
    bundle = bundle.model_copy(update={"folder": str(folder.resolve())})
    arrays = [*bundle.inputs.values(), *(e.values for e in bundle.expected.values())]
    arrays += [e.mask for e in bundle.expected.values() if e.mask is not None]
    for array in arrays:
        path = folder / array.file
        if not path.is_file() or path.stat().st_size != array.size_bytes:
            return None
    return bundle
