"""Recurrences that carry a state in common run in one loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelskill.algorithm.expression import Fold, walk
from kernelskill.algorithm.model import Algorithm
from tests.unit.algorithm.lifting_samples import lifted

DRAW = "state = state * 1664525u + 1013904223u;"
HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; unsigned state = a[i];"


def recurrences(statements: str) -> list[Fold]:
    """Return the recurrences of a kernel, each once whatever states of it are used."""
    parameters = "const unsigned* a, const unsigned* b, int* c, int* d, int n, int m"
    source = (
        f"__global__ void k({parameters}) {{ {HEAD} {statements} }}\n"
        f'extern "C" void f({parameters}) {{ k<<<(n + 127) / 128, 128>>>(a, b, c, d, n, m); }}'
    )
    algorithm: Algorithm = lifted(source).algorithm
    nodes = (node for expression in algorithm.expressions for node in walk(expression))
    return list(dict.fromkeys(replace(node, index=0) for node in nodes if isinstance(node, Fold)))


BOTH = f"""
int x = 0, y = 0;
for (int s = 0; s < m; ++s) {{ {DRAW} if (state & 4) x = x * 3 + (state >> 20); else y = y * 5 - (state >> 24); }}
c[i] = x; d[i] = y;
"""
OTHER_RANGE = f"""
int x = 0, y = 0;
for (int s = 0; s < m; ++s) {{ {DRAW} x = x * 3 + (state >> 20); }}
state = a[i];
for (int s = 0; s < n; ++s) {{ {DRAW} y = y * 5 - (state >> 24); }}
c[i] = x; d[i] = y;
"""
OTHER_START = OTHER_RANGE.replace("state = a[i];", "state = a[i] + 1u;").replace("s < n", "s < m")
SAME_AGAIN = OTHER_RANGE.replace("s < n", "s < m")
READS_MEMORY = BOTH.replace("(state >> 20)", "b[s * n + i]")
NOTHING_SHARED = """
int x = 1, y = 1;
for (int s = 0; s < m; ++s) { x = (x * 3) ^ s; y = (y * 5) ^ s; }
c[i] = x; d[i] = y;
"""


@pytest.mark.parametrize(
    ("statements", "states"),
    [
        (BOTH, [3]),
        (SAME_AGAIN, [3]),
        (OTHER_RANGE, [2, 2]),
        (OTHER_START, [2, 2]),
        (READS_MEMORY, [2, 2]),
        (NOTHING_SHARED, [1, 1]),
    ],
    ids=["both", "same again", "other range", "other start", "reads memory", "nothing shared"],
)
def test_what_is_joined(statements: str, states: list[int]) -> None:
    found = recurrences(statements)
    assert sorted(len(fold.states) for fold in found) == states
    for fold in found:
        assert len({state.name for state in fold.states}) == len(fold.states)
