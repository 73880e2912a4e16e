"""Bits of outputs: one digest a call, in which elements that do not count are left out."""

from pathlib import Path

import numpy as np

from kernelskill.evaluation import bits
from kernelskill.evaluation.trials import Trial
from kernelskill.schema.task import Case, Role
from kernelskill.tasks.bundle import ArrayFile, Bundle, Expected
from tests import records


def written(folder: Path, name: str, array: np.ndarray) -> ArrayFile:
    (folder / name).write_bytes(array.tobytes())
    return ArrayFile(file=name, dtype=array.dtype.name, shape=array.shape, size_bytes=array.nbytes)


def trial(folder: Path, mask: np.ndarray | None = None, shape: tuple[int, ...] = (4,)) -> Trial:
    values = written(folder, "y.expected", np.zeros(shape, np.float32))
    kept = None if mask is None else written(folder, "y.mask", mask)
    expected = Expected(values=values, mask=kept, dtype="float32", shape=shape)
    bundle = Bundle(
        key="k", folder=str(folder), case=0, seed=1, roles={"y": Role.OUTPUT}, buffers={"y": 16}, inputs={},
        scalars={}, expected={"y": expected},
    )  # fmt: skip
    return Trial(case=Case(index=0, arguments={}), number=0, bundle=bundle, extents={})


def digest(made: Trial, values: list[float]) -> str:
    path = made.folder / "out"
    path.write_bytes(np.array(values, np.float32).tobytes())
    return bits.output_bits(records.task(), made, {"y": path})


def test_every_bit_counts(tmp_path: Path) -> None:
    made = trial(tmp_path)
    assert digest(made, [1, 2, 3, 4]) == digest(made, [1, 2, 3, 4])
    assert digest(made, [1, 2, 3, 4]) != digest(made, [1, 2, 3, np.nextafter(np.float32(4), np.float32(5))])
    assert digest(made, [0.0, 2, 3, 4]) != digest(made, [-0.0, 2, 3, 4])


def test_what_does_not_count_makes_no_difference(tmp_path: Path) -> None:
    made = trial(tmp_path, np.array([True, False, True, True]))
    assert digest(made, [1, 2, 3, 4]) == digest(made, [1, np.nan, 3, 4])
    assert digest(made, [1, 2, 3, 4]) != digest(made, [1, 2, 3, 5])


def test_an_empty_output_has_a_digest_too(tmp_path: Path) -> None:
    assert digest(trial(tmp_path, shape=(0,)), []) == digest(trial(tmp_path, shape=(0,)), [])


def test_bits_are_kept_where_they_count_alone(laboratory) -> None:
    plain = laboratory().check("right")
    assert {check.bits for check in plain.checks} == {""}
