"""Which tasks of the core suite continuous integration works on.

All of them are read and gated on the cheap (`tests/unit/tasks/test_core_tasks.py`); what needs a compiler or an
emulated device runs on a fixed sample. KERNELSKILL_CORE=all takes every task.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

EVERY = os.environ.get("KERNELSKILL_CORE", "") == "all"

WHOLE_RUN = (
    "axpy_float4",
    "conv2d",
    "histogram",
    "layernorm",
    "matmul",
    "particles",
    "softmax",
    "stencil",
    "sum",
    "transpose",
)
"""The main job: a control at the roof, and nine kinds of ordinary kernels as people write them."""
CHECKED = (
    "argmax_rows",
    "attention",
    "compact",
    "embedding",
    "game_of_life",
    "group_norm",
    "matmul_half",
    "matvec",
    "relu_half8",
    "row_norm",
    "spmv_csr",
    "stencil_3d",
)
"""Gate, build and small cases: those that have what the others lack, such as half, double, masks and scratch."""
REWRITTEN = (
    "bias_relu",
    "batched_matmul",
    "compact",
    "gelu",
    "layernorm",
    "log_softmax",
    "matmul_transposed",
    "matvec",
    "nbody",
    "particles",
    "scan",
    "stencil",
    "sum",
)
"""Every mechanical skill on every variant, with one of the results checked."""


def chosen(names: Sequence[str], sample: Sequence[str]) -> list[str]:
    """Return the names to work on.

    Raises:
        ValueError: The sample names a task that there is not.
    """
    missing = sorted(set(sample) - set(names))
    if missing:
        raise ValueError(f"the sample names tasks that the suite lacks: {missing}")
    return [name for name in names if EVERY or name in sample]
