from kernelskill.agents.profiler import Diagnosis
from kernelskill.backends.sass import KernelCode
from kernelskill.report.comparison import compare, sass_diff
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import KernelProfile, Profile


def side(*kernels: tuple[str, dict[str, int]]) -> Diagnosis:
    profile = Profile(
        candidate="c",
        case=0,
        source="static",
        conditions=Conditions(device="d", gpu="g"),
        kernels=tuple(
            KernelProfile(
                kernel=name,
                launches=1,
                time_share=1,
                grid=(1, 1, 1),
                block=(32, 1, 1),
                metrics={},
                instructions=instructions,
            )
            for name, instructions in kernels
        ),
    )
    return Diagnosis(candidate="c", profile=profile, roofline=None, bottlenecks=())


def code(*instructions: str) -> KernelCode:
    return KernelCode(
        name="_Zk", instructions=instructions, opcodes=tuple(each.split()[0] for each in instructions)
    )


def test_instruction_mixes_stand_side_by_side() -> None:
    (found,) = compare(side(("k", {"fp32": 4, "control": 1})), side(("k", {"fp32": 2, "global loads": 2})))
    rows = {row.name: (row.before, row.after) for row in found.instructions}
    assert rows == {"all": (5, 4), "fp32": (4, 2), "global loads": (0, 2), "control": (1, 0)}
    (found,) = compare(side(("k", {})), side(("k", {"fp32": 2})))
    assert {row.name: (row.before, row.after) for row in found.instructions} == {
        "all": (None, 2),
        "fp32": (None, 2),
    }
    (found,) = compare(side(("k", {})), side(("k", {})))
    assert found.instructions == ()


def test_machine_code_is_compared_without_the_places_of_jumps() -> None:
    (found,) = compare(side(("k", {})), side(("k", {})))
    one = {"k": code("LDG R1, [R2]", "FADD R1, R1, R1", "BRA `(.L_x_1)")}
    moved = {"k": code("LDG R1, [R2]", "FADD R1, R1, R1", "BRA `(.L_x_7)")}
    other = {"k": code("LDG.E.128 R1, [R2]", "FADD R1, R1, R1", "BRA `(.L_x_1)")}
    assert sass_diff(found, one, moved) == []
    diff = sass_diff(found, one, other)
    assert diff is not None
    assert [line for line in diff if line[0] in "+-"][2:] == ["-LDG R1, [R2]", "+LDG.E.128 R1, [R2]"]
    assert sass_diff(found, one, {}) is None
