"""Make the bundle of one case at one seed. Runs in the test process; publishes whole folders only."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.schema.task import Signature
from kernelskill.tasks.arrays import Array
from kernelskill.tasks.binding import BoundOutput, assign_roles, bind_inputs, bind_outputs, buffer_sizes
from kernelskill.tasks.bundle import RECORD_FILE, ArrayFile, Bundle, Expected, read_bundle
from kernelskill.tasks.dtypes import is_complex, is_floating, name_of
from kernelskill.tasks.testfile import TestFile
from kernelskill.tasks.tolerance import root_mean_square


def write_bundle(
    test: TestFile, signature: Signature, case: int, seed: int, key: str, folder: Path
) -> Bundle:
    """Run make_inputs and reference and write what they give into `folder`.

    Inputs are on disk before the reference sees them, so that it may change them in place.

    Raises:
        TaskError: What they give does not fit the signature, or there is no room for it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name[:16]}-", dir=folder.parent))
    try:
        bundle = _fill(test, signature, case, seed, draft).model_copy(
            update={"key": key, "folder": str(folder)}
        )
        (draft / RECORD_FILE).write_text(bundle.model_dump_json(), encoding="utf-8")
        return _publish(draft, folder) or bundle
    except OSError as error:
        if error.filename and not str(error.filename).startswith(str(draft)):
            raise
        raise TaskError(
            f"cannot write the values of CASES[{case}]: {error.strerror or error}",
            remedy="free some disk space",
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(test: TestFile, signature: Signature, case: int, seed: int, draft: Path) -> Bundle:
    given = test.make_inputs(case, seed)
    inputs = bind_inputs(signature, given)
    declared = test.declared(case)
    files = {name: _write(draft, f"in_{name}", array) for name, array in inputs.arrays.items()}
    outputs = bind_outputs(signature, test.reference(case, given))
    roles = assign_roles(signature, inputs.arrays, outputs, declared)
    return Bundle(
        key="",
        folder=str(draft),
        case=case,
        seed=seed,
        roles=roles,
        buffers=buffer_sizes(signature, roles, inputs.arrays, outputs, declared),
        inputs=files,
        scalars=inputs.scalars,
        expected={name: _expected(draft, name, output) for name, output in outputs.items()},
    )


def _expected(draft: Path, name: str, output: BoundOutput) -> Expected:
    mask = output.mask
    return Expected(
        values=_write(draft, f"out_{name}", output.values),
        mask=None if mask is None else _write(draft, f"mask_{name}", mask),
        dtype=name_of(output.own),
        shape=output.values.shape,
        scale=root_mean_square(output.values, mask) if _has_scale(output.values) else None,
    )


def _has_scale(values: Array) -> bool:
    return is_floating(values.dtype) or is_complex(values.dtype)


def _write(folder: Path, name: str, array: Array) -> ArrayFile:
    file = f"{name}.bin"
    with (folder / file).open("wb") as stream:
        if array.nbytes:
            stream.write(array.reshape(-1).view(np.uint8).data)
    return ArrayFile(file=file, dtype=name_of(array.dtype), shape=array.shape, size_bytes=array.nbytes)


def _publish(draft: Path, folder: Path) -> Bundle | None:
    """Give the finished folder its name; return the one that another process published first."""
    for _ in range(2):
        try:
            draft.rename(folder)
            return None
        except OSError:
            other = read_bundle(folder)
            if other is not None:
                return other
            shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return None
