"""Scalars and vectors reach the launcher as the C ABI of this machine wants them."""

from __future__ import annotations

import struct

import pytest

from kernelskill.backends.base import Unrecordable
from kernelskill.backends.element_types import ELEMENT_TYPES
from kernelskill.backends.recorder.caller import UnknownArgument, caller_source, scalar_bytes
from kernelskill.backends.recorder.programs import caller_library
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import HarnessError
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import ElementType, Parameter, Signature
from tests.recorder.conftest import ORDINARY, Source, pointer, scalar

SCALARS: dict[str, tuple[str, int | float | bool]] = {
    "b": ("bool", True),
    "c": ("signed char", -100),
    "uc": ("unsigned char", 200),
    "s": ("short", -30000),
    "us": ("unsigned short", 60000),
    "i": ("int", -(1 << 31)),
    "u": ("unsigned int", (1 << 32) - 1),
    "l": ("long long", -(1 << 63)),
    "ul": ("unsigned long long", (1 << 64) - 1),
    "f": ("float", 1.5),
    "d": ("double", -2.25),
    **{f"a{n}": ("float", float(n)) for n in range(9)},
}


def test_more_scalars_than_registers(launchers: Source) -> None:
    parameters = (pointer("y"), *(scalar(name, kind) for name, (kind, _) in SCALARS.items()))
    values = {name: value for name, (_, value) in SCALARS.items()}
    plan = launchers.record("scalars", parameters=parameters, scalars=values)
    assert isinstance(plan, LaunchPlan), plan
    (launch,) = plan.launches()
    found = bytes.fromhex(launch.arguments[0].raw)
    b, c, uc, s, us = struct.unpack_from("<?bBxhH", found)
    assert (b, c, uc, s, us) == (True, -100, 200, -30000, 60000)
    assert struct.unpack_from("<iIqQf", found, 8) == (
        -(1 << 31),
        (1 << 32) - 1,
        -(1 << 63),
        (1 << 64) - 1,
        1.5,
    )
    assert struct.unpack_from("<d9f", found, 40) == (-2.25, *map(float, range(9)))


def test_vectors_and_halves(launchers: Source) -> None:
    values = {
        "a": struct.pack("<2f", 1, 2),
        "b": struct.pack("<3f", 3, 4, 5),
        "c": struct.pack("<4f", 6, 7, 8, 9),
        "d": struct.pack("<2i", -1, -2),
        "e": struct.pack("<2d", 10, 11),
        "f": bytes([1, 2, 3, 4]),
        "g": struct.pack("<e", 0.5),
        "h": struct.pack("<2e", 1.5, 2.5),
    }
    types = ("float2", "float3", "y", "float4", "int2", "double2", "uchar4", "__half", "__half2")
    names = iter(values)
    parameters = tuple(pointer("y") if kind == "y" else scalar(next(names), kind) for kind in types)
    plan = launchers.record(
        "vectors", parameters=parameters, scalars={name: f"hex:{data.hex()}" for name, data in values.items()}
    )
    assert isinstance(plan, LaunchPlan), plan
    (launch,) = plan.launches()
    found = bytes.fromhex(launch.arguments[0].raw)
    offsets = {"a": 0, "b": 8, "c": 32, "d": 48, "e": 64, "f": 80, "g": 84, "h": 88}
    for name, offset in offsets.items():
        assert found[offset : offset + len(values[name])] == values[name], name


def test_every_known_type_has_a_caller(toolchain: Toolchain) -> None:
    scalars = tuple(
        Parameter(name=f"p{n}", kind="scalar", element=element, declared=element.name)
        for n, element in enumerate(ELEMENT_TYPES[1:])
    )
    assert caller_library(Signature(symbol="f", parameters=scalars), toolchain).is_file()


def test_an_unknown_type_is_refused(launchers: Source) -> None:
    element = ElementType(name="Matrix", dtype="float32", lanes=16, size_bytes=64)
    big = Parameter(name="m", kind="scalar", element=element, declared="Matrix")
    outcome = launchers.record(
        "simple", parameters=(*ORDINARY, big), scalars={"n": 1, "m": f"hex:{'00' * 64}"}
    )
    assert isinstance(outcome, Unrecordable)
    assert outcome.status is Status.UNSUPPORTED
    assert outcome.reason == "parameter 'm' (Matrix) cannot be passed by value"


@pytest.mark.parametrize(
    ("kind", "value", "fact"),
    [
        ("int", 1 << 31, "does not fit 'int'"),
        ("unsigned char", -1, "does not fit 'unsigned char'"),
        ("float", 1e300, "does not fit 'float'"),
        ("float4", "hex:00", "of 16 bytes was given 1 bytes"),
        ("__half", 1.0, "was given a plain number"),
    ],
)
def test_values_that_do_not_fit(kind: str, value: int | float | str, fact: str) -> None:
    with pytest.raises(UnknownArgument, match=fact):
        scalar_bytes(scalar("p", kind), value)


def test_a_call_without_a_value_is_the_harness_own_fault(launchers: Source) -> None:
    with pytest.raises(HarnessError, match="gives no value for 'n'"):
        launchers.record("simple", scalars={})


def test_callers_need_no_cuda() -> None:
    source = caller_source(Signature(symbol="f", parameters=ORDINARY, returns="cudaError_t"))
    assert "cuda" not in source.lower().replace("kernelskill", "")
