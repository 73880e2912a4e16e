"""What is said of a candidate that no limit stands out in."""

from __future__ import annotations

from typing import Any

import pytest

from kernelskill.agents.profiler import Diagnosis
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import Bottleneck, BottleneckKind, Profile
from kernelskill.session.explaining import run_lines


def limit(kind: BottleneckKind, gain: float) -> Bottleneck:
    return Bottleneck(kind=kind, kernel="k", confidence=0.6, gain=gain, evidence=(), summary=kind.value)


NONE, LATENCY = limit(BottleneckKind.NONE, 0.0), limit(BottleneckKind.LATENCY, 0.35)


class Node:
    number = 1


@pytest.mark.parametrize(("limits", "at_the_roof"), [((NONE,), True), ((NONE, LATENCY), False)])
def test_only_what_has_no_other_limit_is_at_the_roof(limits: Any, at_the_roof: bool) -> None:
    conditions = Conditions(device="emulated:h200", gpu="NVIDIA H200")
    profile = Profile(candidate="c", case=0, source="trace", kernels=(), conditions=conditions)
    found = Diagnosis(candidate="c", profile=profile, roofline=None, bottlenecks=limits)
    text = "\n".join(run_lines(found, Node(), []))  # type: ignore[arg-type]
    assert ("at the roof" in text) is at_the_roof
    assert ("no limit stands out" in text) is not at_the_roof
