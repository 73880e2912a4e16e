"""Launchers must ask for the same work whatever they were called with before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelskill.backends.base import Call, PointerArgument
from kernelskill.backends.recorder import history_matters
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature
from tests.recorder.conftest import ORDINARY, Source

COUNTS = "the launcher keeps state: every call changes host memory of its own that outlives it"


@pytest.fixture(scope="module")
def remembering(compiled: Callable[..., Source]) -> Source:
    return compiled("remembering.cu")


def call(n: int) -> Call:
    return Call(
        buffers={"x": 4 * n, "y": 4 * n},
        pointers={"x": PointerArgument(buffer="x"), "y": PointerArgument(buffer="y")},
        scalars={"n": n},
    )


def history(source: Source, launcher: str) -> str:
    signature = Signature(symbol=launcher, parameters=ORDINARY, returns="void", c_linkage=True)
    return history_matters(
        source.build(launcher),
        signature,
        call(1000),
        call(4096),
        gpu=find_gpu("h200"),
        toolchain=source.toolchain,
    )


@pytest.mark.parametrize("launcher", ["first_size", "first_pointer", "first_graph", "largest_size"])
def test_what_an_earlier_call_leaves_behind_is_found(remembering: Source, launcher: str) -> None:
    assert history(remembering, launcher) == (
        "the launcher keeps state: after a call with other sizes it asks for other work"
    )


def test_a_launcher_that_dies_later_is_found(remembering: Source) -> None:
    assert history(remembering, "dies_at_another_size").endswith("with other sizes it does not return")


def test_what_the_runtime_counts_for_a_launcher_is_found_by_calling_it_often(remembering: Source) -> None:
    found = history(remembering, "counts_by_addresses")
    assert found.startswith("the launcher keeps state: after ")
    assert found.endswith(" calls it asks for other work")


@pytest.mark.parametrize(
    "launcher",
    [
        "plain",
        "kept_room",
        "consents_once",
        "graph_of_each_call",
        "kept_table",
        "made_anew",
        "of_the_call_alone",
        "lost",
        "prints",
        "pinned_parameters",
        "stream_of_each_call",
        "least_recent",
    ],
)
def test_what_is_made_once_is_no_matter(remembering: Source, launcher: str) -> None:
    assert history(remembering, launcher) == ""
    plan = remembering.record(launcher)
    assert isinstance(plan, LaunchPlan)
    assert plan.escapes == ""


@pytest.mark.parametrize(
    "launcher",
    [
        "counts",
        "counts_in_the_thread",
        "counts_in_heap",
        "counts_with_a_pointer",
        "counts_with_a_pointer_into_heap",
        "counts_with_a_constant_table",
        "counts_nodes",
        "counts_in_text",
        "counts_in_a_map",
        "counts_in_pinned_memory",
        "counts_in_cout",
        "counts_in_errno",
        "counts_in_rounding",
    ],
)
def test_data_that_every_call_changes_is_found(remembering: Source, launcher: str) -> None:
    plan = remembering.record(launcher)
    assert isinstance(plan, LaunchPlan)
    assert plan.escapes == COUNTS


def test_temporaries_in_static_pointers_are_no_state(remembering: Source) -> None:
    plan = remembering.record("static_temporary")
    assert isinstance(plan, LaunchPlan)
    assert (plan.escapes, plan.leaked_bytes, plan.keeps_memory) == ("", 0, False)


def test_memory_that_only_grows_is_counted(remembering: Source) -> None:
    plan = remembering.record("leaks")
    assert isinstance(plan, LaunchPlan)
    assert (plan.leaked_bytes, plan.keeps_memory) == (1024, True)
    kept = remembering.record("kept_room")
    assert isinstance(kept, LaunchPlan)
    assert (kept.leaked_bytes, kept.keeps_memory) == (0, True)
