"""Plans that may be carried out, and the many that may not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelskill.backends.plan_check import PlanRefused, check_plan
from kernelskill.schema.build import Build, DeviceVariable, KernelParameter, KernelResources
from kernelskill.schema.launch_plan import CopyDevice, CopyHost, Launch, LaunchPlan, Memset, walk

BUILD = Build(
    key="k",
    folder="/nowhere",
    architecture="sm_90a",
    device_code="c" * 64,
    kernels=(
        KernelResources(
            name="scale",
            display_name="scale",
            registers=16,
            static_shared_bytes=0,
            max_threads=512,
            parameters=(KernelParameter(offset=0, size=8), KernelParameter(offset=8, size=24)),
        ),
        KernelResources(
            name="tile",
            display_name="tile",
            registers=16,
            static_shared_bytes=0,
            parameters=(KernelParameter(offset=0, size=128),),
        ),
    ),
    variables=(DeviceVariable(name="factor", size_bytes=16, constant=True),),
)


def at(allocation: int, offset: int = 0) -> dict[str, int]:
    return {"allocation": allocation, "offset": offset}


def blob(size: int, *pointers: tuple[int, int, int]) -> dict[str, Any]:
    patches = [{"position": p, "address": at(a, o)} for p, a, o in pointers]
    return {"raw": "00" * size, "pointers": patches}


LAUNCH = {
    "op": "launch",
    "kernel": "scale",
    "grid": [4, 1, 1],
    "block": [256, 1, 1],
    "dynamic_shared_bytes": 1024,
    "max_dynamic_shared_bytes": 2048,
    "carveout_percent": 50,
    "cluster": [2, 1, 1],
    "stream": 1,
    "arguments": [blob(8, (0, 0, -4)), blob(24, (0, 2, 0), (9, 1, 8))],
}
PLAN: dict[str, Any] = {
    "device_code": "c" * 64,
    "symbol": "f",
    "allocations": [
        {"id": 0, "kind": "buffer", "name": "x", "size_bytes": 4096},
        {"id": 1, "kind": "buffer", "name": "y", "size_bytes": 4096},
        {"id": 2, "kind": "temporary", "size_bytes": 1000},
        {"id": 3, "kind": "symbol", "name": "factor", "size_bytes": 16},
    ],
    "operations": [
        {"op": "create_stream", "stream": 1, "blocking": False},
        {"op": "allocate", "allocation": 2},
        {"op": "memset", "destination": at(2), "value": 255, "size_bytes": 1000},
        {"op": "copy_device", "destination": at(1, 96), "source": at(0), "size_bytes": 4000},
        {
            "op": "copy_device_2d",
            "destination": at(1),
            "destination_pitch": 512,
            "source": at(0),
            "source_pitch": 400,
            "width_bytes": 400,
            "height": 8,
        },
        {"op": "copy_host", "destination": at(3, 8), "data": blob(8, (0, 0, 0))},
        {"op": "record_event", "event": 0},
        {"op": "wait_event", "event": 0, "stream": 1},
        LAUNCH,
        {
            "op": "encode_tensor_map",
            "id": 0,
            "data_type": 7,
            "address": at(0),
            "dimensions": [32, 32],
            "strides_bytes": [128],
            "box": [32, 16],
            "element_strides": [1, 1],
            "modes": [0, 0, 0, 0],
        },
        {
            "op": "launch",
            "kernel": "tile",
            "grid": [1, 1, 1],
            "block": [128, 1, 1],
            "arguments": [{"raw": "00" * 128, "tensor_maps": [{"position": 0, "tensor_map": 0}]}],
        },
        {"op": "graph_launch", "stream": 0, "origin": 1, "operations": [LAUNCH]},
        {"op": "synchronize", "scope": "event", "event": 0},
        {"op": "release", "allocation": 2},
    ],
}


def changed(path: tuple[str | int, ...], value: object) -> LaunchPlan:
    plan = json.loads(json.dumps(PLAN))
    place = plan
    for step in path[:-1]:
        place = place[step]
    if value is DELETED:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return LaunchPlan.model_validate(plan)


DELETED = object()
OPS = "operations"


def test_a_good_plan_passes() -> None:
    check_plan(LaunchPlan.model_validate(PLAN), BUILD)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("device_code",), "d" * 64, "another build"),
        (("allocations", 1, "id"), 0, "appears twice"),
        (("allocations", 1, "name"), "x", "appears twice"),
        (("allocations", 0, "size_bytes"), -1, "negative size"),
        (("allocations", 0, "size_bytes"), 1 << 60, "above all bounds"),
        (("allocations", 3, "size_bytes"), 17, "no device variable 'factor' of 17 bytes"),
        (("allocations", 3, "name"), "other", "no device variable 'other'"),
        ((OPS, 0), DELETED, "there is no stream 1"),
        ((OPS, 0, "stream"), 0, "created twice"),
        ((OPS, 1), DELETED, "allocation 2 is used while it is not in use"),
        ((OPS, 1, "allocation"), 0, "unknown temporary"),
        ((OPS, 2, "size_bytes"), 1001, "1001 bytes at 0 lie outside allocation 2 of 1000 bytes"),
        ((OPS, 2, "size_bytes"), -1, "lie outside"),
        ((OPS, 2, "value"), 256, "no byte"),
        ((OPS, 3, "destination"), at(1, 97), "lie outside"),
        ((OPS, 3, "source"), at(0, -1), "lie outside"),
        ((OPS, 3, "source"), at(9), "no allocation 9"),
        ((OPS, 4, "height"), 9, "lie outside"),
        ((OPS, 4, "height"), 0, "no rows"),
        ((OPS, 4, "source_pitch"), 399, "a pitch of 399 bytes"),
        ((OPS, 5, "destination"), at(3, 9), "lie outside"),
        ((OPS, 5, "data"), {"raw": "0"}, "not lower-case hexadecimal"),
        ((OPS, 5, "data"), {"raw": "zz"}, "not lower-case hexadecimal"),
        ((OPS, 5, "data"), blob(8, (1, 0, 0)), "not inside the bytes"),
        ((OPS, 5, "data"), blob(8, (-8, 0, 0)), "start before the bytes"),
        ((OPS, 5, "data"), {"raw": "01" * 8, "pointers": [{"position": 0, "address": at(0)}]}, "not zero"),
        ((OPS, 6), DELETED, "event 0 was not recorded"),
        ((OPS, 8, "kernel"), "other", "no kernel 'other'"),
        ((OPS, 8, "grid"), [0, 1, 1], "a grid of"),
        ((OPS, 8, "grid"), [1, 65536, 1], "a grid of"),
        ((OPS, 8, "block"), [1024, 1, 1], "a block of 1024 threads"),
        ((OPS, 8, "dynamic_shared_bytes"), -1, "-1 bytes of dynamic shared memory"),
        ((OPS, 8, "carveout_percent"), 101, "carveout"),
        ((OPS, 8, "cluster"), [32, 1, 1], "cluster"),
        ((OPS, 8, "arguments"), [], "0 arguments for 2 parameters"),
        ((OPS, 8, "arguments", 0), blob(16), "argument 0 has 16 bytes"),
        ((OPS, 8, "arguments", 1), blob(24, (0, 2, 0), (7, 1, 8)), "overlap"),
        ((OPS, 9), DELETED, "tensor map 0 was not encoded"),
        ((OPS, 9, "box"), [32], "differ in length"),
        ((OPS, 9, "box"), [32, 257], "impossible box"),
        ((OPS, 9, "address"), at(0, 4096), "lie outside"),
        ((OPS, 11, "origin"), 5, "there is no stream 5"),
        ((OPS, 11, OPS), [{"op": "synchronize", "scope": "device"}], "a graph holds 'synchronize'"),
        ((OPS, 11, OPS), [PLAN[OPS][11]], "a graph holds 'graph_launch'"),
        ((OPS, 13, "allocation"), 1, "a caller's buffer is freed"),
        ((OPS, 12), {"op": "release", "allocation": 2}, "allocation 2 is freed, but not in use"),
    ],
)
def test_what_is_refused(path: tuple[str | int, ...], value: object, reason: str) -> None:
    plan = changed(path, value)
    with pytest.raises(PlanRefused, match=r".*".join(map(_escaped, [reason]))):
        check_plan(plan, BUILD)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in ".()[]*+?" else c for c in text)


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _paths(inner, (*path, n))


VALUES = st.one_of(
    st.integers(-10, 10),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([255, 256, 4095, 4096, 4097, 65535, 65536, 1 << 31, (1 << 63) - 1, 1 << 64]),
    st.sampled_from(
        [DELETED, "", "x", "scale", "tile", [], True, None, LAUNCH, blob(8), blob(24, (16, 0, 0))]
    ),
)


@given(st.lists(st.tuples(st.sampled_from(list(_paths(PLAN))), VALUES), min_size=1, max_size=3))
def test_any_change_is_refused_or_harmless(changes: list[tuple[tuple[str | int, ...], object]]) -> None:
    plan = json.loads(json.dumps(PLAN))
    for path, value in changes:
        place = plan
        try:
            for step in path[:-1]:
                place = place[step]
            if value is DELETED:
                del place[path[-1]]
            else:
                place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    try:
        parsed = LaunchPlan.model_validate(plan)
        check_plan(parsed, BUILD)
    except (ValidationError, PlanRefused):
        return
    _assert_harmless(parsed)


def _assert_harmless(plan: LaunchPlan) -> None:
    """Say again, in other words, what a worker relies on."""
    sizes = {a.id: a.size_bytes for a in plan.allocations}
    parameters = {kernel.name: [p.size for p in kernel.parameters] for kernel in BUILD.kernels}
    for op in walk(plan.operations):
        if isinstance(op, Launch):
            assert [len(bytes.fromhex(a.raw)) for a in op.arguments] == parameters[op.kernel]
            assert all(p.position + 8 <= a.size_bytes for a in op.arguments for p in a.pointers)
            assert all(m.position + 128 <= a.size_bytes for a in op.arguments for m in a.tensor_maps)
        spans = []
        if isinstance(op, Memset | CopyDevice):
            spans.append((op.destination, op.size_bytes))
        if isinstance(op, CopyDevice):
            spans.append((op.source, op.size_bytes))
        if isinstance(op, CopyHost):
            spans.append((op.destination, len(bytes.fromhex(op.data.raw))))
        assert all(a.offset >= 0 and a.offset + size <= sizes[a.allocation] for a, size in spans)
