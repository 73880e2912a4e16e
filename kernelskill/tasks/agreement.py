"""Compare what the user's baseline gives with the reference, in the small cases. Runs in the test process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernelskill.schema.task import Tolerance
from kernelskill.tasks.arrays import Array, to_numpy
from kernelskill.tasks.description import TestDescription
from kernelskill.tasks.dtypes import is_complex, is_floating
from kernelskill.tasks.testfile import TestFile
from kernelskill.tasks.tolerance import EXACT, compare, default_tolerance

SEED = 1

Inputs = Mapping[str, Any]


def disagreement(test: TestFile, to_device: Callable[[Inputs], Inputs]) -> str:
    """Return where `baseline` first differs from `reference`, or nothing.

    A baseline that returns nothing cannot be compared.

    Args:
        test: Has a baseline.
        to_device: Brings the arrays of the inputs to where the baseline takes them.

    Raises:
        TaskError: The baseline returns what is neither an array nor a dict of arrays.
    """
    told = test.describe()
    for case in told.cases:
        if case.timed:
            continue
        expected = test.reference(case.index, test.make_inputs(case.index, SEED))
        # Inputs of its own: it may update some in place.
        result = test.baseline(case.index, to_device(test.make_inputs(case.index, SEED)))()
        if result is None:
            return ""
        outputs = result if isinstance(result, Mapping) else {next(iter(expected)): result}
        for name, values in outputs.items():
            found = _difference(told, name, to_numpy(name, values), expected.get(name))
            if found:
                return f"CASES[{case.index}] ({case.label}): {found}"
    return ""


def _difference(told: TestDescription, name: str, got: Array, wanted: Any) -> str:
    if wanted is None:
        return f"{name} is no output of reference"
    mask: Array | None = None
    if isinstance(wanted, tuple) and len(wanted) == 2:
        wanted, mask = wanted
    expected = to_numpy(name, wanted)
    if mask is not None and got.size == np.count_nonzero(mask) != expected.size:
        # Only what counts was returned.
        expected, mask = expected[mask], None
    found = compare(got, expected, _tolerance(told, name, got, expected), mask)
    if found.ok:
        return ""
    return f"{name} is {found.got} at {list(found.first_index or ())} instead of {found.expected}"


def _tolerance(told: TestDescription, name: str, got: Array, expected: Array) -> Tolerance:
    if name in told.output_tolerances:
        return told.output_tolerances[name]
    if not (is_floating(expected.dtype) or is_complex(expected.dtype)):
        return EXACT
    return told.tolerance or default_tolerance(got.dtype.name)
