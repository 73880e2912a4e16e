import tomllib
from pathlib import Path

import pytest

from kernelskill.backends.cuda.ncu import metric_names
from kernelskill.backends.cuda.ncu_report import LaunchRow, parse_report
from kernelskill.profiling.diagnose import diagnose, rules
from kernelskill.profiling.figures import definitions
from kernelskill.schema.build import KernelResources
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import BottleneckKind, KernelProfile, Profile, Roofline

GOLDEN = Path(__file__).parents[2] / "golden" / "ncu"
PATTERNS = Path(__file__).parents[3] / "benchmarks" / "emulation" / "patterns"
ALLOWED = tomllib.loads((PATTERNS / "allowed_diagnoses.toml").read_text())
ROWS = {row.bare_name: row for row in parse_report((GOLDEN / "patterns_base_units.csv").read_text())}
CONDITIONS = Conditions(device="cuda:0", gpu="NVIDIA H200")


def profile_of(*kernels: KernelProfile, source: str = "ncu") -> Profile:
    return Profile(candidate="c", case=0, source=source, kernels=kernels, conditions=CONDITIONS)


def kernel_of(row: LaunchRow, share: float = 1.0, **more: object) -> KernelProfile:
    return KernelProfile(
        **{
            "kernel": row.bare_name,
            "launches": 1,
            "time_share": share,
            "grid": row.grid,
            "block": row.block,
            "metrics": row.metrics,
            **more,
        }
    )


def roofline_of(fraction: float, bound: str = "memory") -> Roofline:
    return Roofline(
        case=0,
        bytes=1e9,
        flops=None,
        time_ms=1.0,
        floor_ms=fraction,
        bound=bound,
        fraction=fraction,
        bytes_per_s=1e12,
        flops_per_s=None,
        ceiling_bytes_per_s=4e12,
        ceiling_flops_per_s=6e13,
        source="cost",
    )


@pytest.mark.parametrize("name", ALLOWED)
def test_the_first_diagnosis_of_a_captured_kernel_is_a_right_one(name: str) -> None:
    found = diagnose(profile_of(kernel_of(ROWS[name])), None)
    assert found, "nothing was diagnosed"
    assert found[0].kind.value in ALLOWED[name]["first"], [each.summary for each in found]
    assert set(ALLOWED[name].get("must", [])) <= {each.kind.value for each in found}
    assert ALLOWED[name].get("says", "") in found[0].summary


def test_every_captured_kernel_is_judged() -> None:
    assert set(ALLOWED) == set(ROWS)


def test_findings_carry_what_people_need() -> None:
    for row in ROWS.values():
        for found in diagnose(profile_of(kernel_of(row)), None):
            assert found.evidence
            assert found.falsified_by
            assert "unknown" not in found.summary
            assert 0 <= found.gain <= 1
            assert 0 < found.confidence <= 1
            assert all(metric.name for metric in found.evidence)


def test_no_kernel_name_is_written_into_the_rules() -> None:
    text = (Path(__file__).parents[3] / "kernelskill/profiling/rules.toml").read_text()
    assert not [name for name in ROWS if name in text]


def test_the_roof_bounds_every_gain() -> None:
    kernel = kernel_of(ROWS["transpose_naive"])
    free = diagnose(profile_of(kernel), None)[0]
    bound = diagnose(profile_of(kernel), roofline_of(0.7))[0]
    assert free.gain > 0.5
    assert bound.kind is free.kind
    assert bound.gain == pytest.approx(0.3)
    assert diagnose(profile_of(kernel), roofline_of(0.9))[0].kind is BottleneckKind.NONE


def test_kernels_are_weighed_by_their_share_of_the_time() -> None:
    short = kernel_of(ROWS["tiny_grid"], share=0.05)
    long = kernel_of(ROWS["transpose_naive"], share=0.95)
    found = diagnose(profile_of(long, short), None)
    assert found[0].kernel == "transpose_naive"
    small = next(each for each in found if each.kind is BottleneckKind.SMALL_GRID)
    assert small.gain <= 0.05


def test_missing_metrics_silence_rules_and_nothing_else() -> None:
    row = ROWS["matmul_uncoalesced"]
    quick = {name: value for name, value in row.metrics.items() if name in metric_names("quick")}
    found = diagnose(profile_of(kernel_of(row, metrics=quick)), None)
    assert found[0].kind is BottleneckKind.COALESCING_LOAD
    assert diagnose(profile_of(kernel_of(row, metrics={})), None) == ()


def test_static_facts_alone_give_careful_answers() -> None:
    resources = KernelResources(
        name="k",
        display_name="k",
        registers=255,
        static_shared_bytes=0,
        spill_store_bytes=400,
        spill_load_bytes=400,
    )
    row = ROWS["spilling"]
    spilling = kernel_of(row, metrics={}, resources=resources, occupancy=0.125)
    found = diagnose(profile_of(spilling, source="static"), roofline_of(0.1))
    kinds = [each.kind for each in found]
    assert kinds[0] is BottleneckKind.SPILLS
    assert BottleneckKind.OCCUPANCY in kinds
    assert BottleneckKind.COALESCING_LOAD in kinds
    assert all(each.confidence <= 0.6 for each in found)


def test_many_short_launches_are_launch_overhead() -> None:
    kernel = kernel_of(ROWS["vector_add"], launches=50)
    found = diagnose(profile_of(kernel).model_copy(update={"duration_ms": 0.2}), None)
    assert found[0].kind is BottleneckKind.LAUNCH_OVERHEAD


def test_rules_name_only_figures_that_exist_and_say_where_they_come_from() -> None:
    named = {kind for rule in rules() for kind in [rule.definition.kind]}
    assert named == set(BottleneckKind)
    assert all(rule.definition.source for rule in rules())


def test_every_profiler_metric_of_a_figure_is_collected() -> None:
    collected = set(metric_names("full"))
    ours = ("trace__", "estimate__", "static__", "plan__", "roofline__")
    for definition in definitions().values():
        wanted = [name for name in definition.metric if not name.startswith(ours)]
        if wanted:
            assert collected & set(wanted), definition.name


TRACE = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 4e6,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 1e6,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 32.0,
    "launch__grid_size": 10_000.0,
    "trace__unique_bytes": 1e8,
    "trace__moved_bytes": 1.1e8,
    "estimate__dram_pct": 90.0,
    "estimate__l2_pct": 60.0,
}


def traced(**changes: float) -> tuple[BottleneckKind, ...]:
    kernel = kernel_of(ROWS["vector_add"], metrics=TRACE | changes)
    return tuple(found.kind for found in diagnose(profile_of(kernel, source="trace"), None))


def test_what_a_trace_lacks_did_not_happen() -> None:
    assert traced()[0] is BottleneckKind.NONE


def test_a_trace_is_diagnosed_by_the_shares_of_its_time_model() -> None:
    strided = {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 4.0}
    assert traced(**strided)[0] is BottleneckKind.COALESCING_LOAD
    contended = {
        "estimate__atomic_pct": 95.0,
        "trace__atomic_same_address_max": 1e6,
        "estimate__dram_pct": 2.0,
    }
    assert traced(**contended)[0] is BottleneckKind.ATOMIC_CONTENTION
    divided = {"estimate__issue_pct": 50.0, "trace__integer_division_pct": 60.0, "estimate__dram_pct": 30.0}
    assert traced(**divided)[0] is BottleneckKind.INTEGER_DIVISION


def test_an_estimate_is_named_as_one_in_the_evidence() -> None:
    kernel = kernel_of(ROWS["vector_add"], metrics=TRACE)
    names = [metric.name for metric in diagnose(profile_of(kernel, source="trace"), None)[0].evidence]
    assert names[0] == "estimate__dram_pct"


def test_broadcasts_are_no_waste() -> None:
    broadcast = {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 1e6,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 4.0,
    }
    assert BottleneckKind.COALESCING_LOAD not in traced(**broadcast)
