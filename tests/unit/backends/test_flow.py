"""Where warps wait for loads, from PTX alone."""

import pytest

from kernelskill.backends.emulated.ptx.parser import parse
from kernelskill.backends.emulated.translate.flow import flows
from kernelskill.backends.emulated.translate.module import translate_module

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 p)
{
    .reg .pred %p<9>;
    .reg .b32 %r<9>;
    .reg .f32 %f<99>;
    .reg .b64 %rd<9>;
    .shared .align 16 .b8 tile[1024];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, tile;
"""


def flow(body):
    module = translate_module(parse(HEAD + body + "    ret;\n}\n"))
    assert not module.refused
    return flows(module.context.blocks)


def computed(count, first=10):
    """Return independent arithmetic."""
    return "".join(f"    fma.rn.f32 %f{first + n % 50}, %f1, %f2, %f3;\n" for n in range(count))


def test_work_between_a_load_and_its_use_shortens_the_wait():
    (at_once,) = flow("ld.global.f32 %f9, [%rd1]; add.f32 %f8, %f9, %f9;\n")
    (later,) = flow(f"ld.global.f32 %f9, [%rd1];\n{computed(100)} add.f32 %f8, %f9, %f9;\n")
    assert at_once.waits == [pytest.approx(1.0, abs=8)]
    assert later.waits == [pytest.approx(100, abs=8)]


def test_loads_that_need_one_another_are_waited_for_in_a_row():
    (chain,) = flow(
        "ld.global.u64 %rd2, [%rd1]; ld.global.u64 %rd3, [%rd2]; ld.global.f32 %f9, [%rd3]; add.f32 %f8, %f9, %f9;\n"
    )
    (apart,) = flow(
        "ld.global.f32 %f9, [%rd1]; ld.global.f32 %f8, [%rd1+4]; ld.global.f32 %f7, [%rd1+8];\n"
        "add.f32 %f6, %f9, %f8; add.f32 %f6, %f6, %f7;\n"
    )
    assert len(chain.waits) == 3
    assert len(apart.waits) == 1


def test_what_nobody_uses_is_not_waited_for():
    (one,) = flow("ld.global.f32 %f9, [%rd1];\n" + computed(4))
    assert one.waits == []
    assert one.awaits == []


def test_a_tile_that_is_fetched_ahead_is_waited_for_where_it_is_stored():
    loads = "    @%p1 bra $SKIP{0};\n    ld.global.f32 %f{0}, [%rd1+{0}];\n$SKIP{0}:\n"
    body = (
        "$LOOP:\n"
        + "".join(loads.format(n) for n in (60, 61, 62))
        + "    bra $COMPUTE;\n$COMPUTE:\n"
        + computed(300)
        + "    @%p2 bra $DONE;\n    bra $KEEP;\n$KEEP:\n"
        + "".join(f"    st.shared.f32 [%r1+{4 * n}], %f{n};\n" for n in (60, 61, 62))
        + "    bar.sync 0;\n    bra $LOOP;\n$DONE:\n"
    )
    found = flow(body)
    waiting = [one for one in found if one.awaits]
    assert not any(one.waits for one in found)
    assert len(waiting) == 1
    for late in waiting[0].awaits:
        between = sum(found[n].cycles for first, end in late.between for n in range(first, end))
        assert late.lead + between == pytest.approx(300, abs=40)


def test_a_value_for_the_next_turn_is_waited_for_there():
    body = "$LOOP:\n    ld.global.f32 %f9, [%rd1];\n" + computed(200)
    body += "    add.f32 %f8, %f7, %f7;\n    mov.f32 %f7, %f9;\n    @%p1 bra $LOOP;\n"
    loop = next(one for one in flow(body) if one.waits)
    assert loop.waits == [pytest.approx(400, abs=20)]


def test_every_turn_of_a_list_waits():
    loop = next(
        one for one in flow("$LOOP:\n    ld.global.u64 %rd1, [%rd1];\n    @%p1 bra $LOOP;\n") if one.waits
    )
    assert len(loop.waits) == 1
    assert loop.waits[0] < 8


def test_short_branches_around_loads_do_not_keep_them_apart():
    part = "    @%p1 bra $SKIP{0};\n    ld.global.f32 %f{0}, [%rd1+{0}];\n$SKIP{0}:\n    st.shared.f32 [%r1+{0}], %f{0};\n"
    found = flow("".join(part.format(4 * n) for n in range(8)))
    assert sum(len(one.waits) for one in found) == 1


def test_shared_loads_are_moved_ahead_but_not_over_a_barrier():
    step = "    ld.shared.f32 %f5, [%r1];\n    fma.rn.f32 %f{0}, %f5, %f5, %f{0};\n" + computed(30)
    (steps,) = flow("    bar.sync 0;\n" + "".join(step.format(n) for n in range(60, 68)))
    (behind,) = flow("    bar.sync 0;\n".join(step.format(n) for n in range(60, 68)))
    assert steps.cycles < 8 * 32 + 60
    assert behind.cycles > 8 * (32 + 20)
