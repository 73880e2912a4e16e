from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.cuda.ncu import read_collection, unknown_metrics
from kernelskill.backends.cuda.ncu_report import bare_name, parse_report
from kernelskill.errors import ArtifactCorrupt
from kernelskill.isolation.child import ChildResult
from kernelskill.schema.build import Build, KernelResources
from kernelskill.schema.launch_plan import Launch, LaunchPlan

HEADER = '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","launch__grid_size"\n"","","","","ns",""\n'


def resources(name: str, display: str) -> KernelResources:
    return KernelResources(name=name, display_name=display, registers=16, static_shared_bytes=0)


BUILD = Build(
    key="k",
    folder="/",
    architecture="sm_90a",
    device_code="c",
    kernels=(resources("_Za", "a<int, 3>"), resources("_Zb", "ns::b")),
)


def plan(*kernels: str) -> LaunchPlan:
    operations = tuple(Launch(kernel=name, grid=(1, 1, 1), block=(32, 1, 1)) for name in kernels)
    return LaunchPlan(device_code="c", symbol="f", allocations=(), operations=operations)


def result(stdout: str, stderr: str = "", *, timed_out: bool = False) -> ChildResult:
    return ChildResult(returncode=0, timed_out=timed_out, stdout=stdout, stderr=stderr, seconds=1)


def row(number: int, name: str, duration: str) -> str:
    return f'"{number}","{name}","(32, 1, 1)","(4, 1, 1)","{duration}","4"\n'


def test_scaled_and_base_units_agree(golden: Path) -> None:
    base = parse_report((golden / "ncu" / "patterns_base_units.csv").read_text())
    scaled = parse_report((golden / "ncu" / "patterns_scaled_units.csv").read_text())
    assert [each.kernel for each in base] == [each.kernel for each in scaled]
    assert len(base) == 15
    for one, other in zip(base, scaled, strict=True):
        assert one.metrics.keys() == other.metrics.keys()
        for name in ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"):
            assert other.metrics[name] == pytest.approx(one.metrics[name], rel=1e-3, abs=500)


def test_thousands_separators_are_no_decimal_points(golden: Path) -> None:
    rows = parse_report((golden / "ncu" / "patterns_base_units.csv").read_text())
    assert rows[0].metrics["launch__grid_size"] == 16384
    assert rows[0].grid == (128, 128, 1)
    assert rows[0].block == (16, 16, 1)


def test_a_table_among_other_output_is_found(golden: Path) -> None:
    rows = parse_report((golden / "ncu" / "mixed_kernels_stdout.txt").read_text())
    assert len(rows) == 16
    assert rows[-1].bare_name == "vector_add"
    assert {"execute_dist", "DeviceRadixSortOnesweepKernel", "Kernel2"} <= {each.bare_name for each in rows}


def test_no_kernel_is_no_row(golden: Path) -> None:
    text = (golden / "ncu" / "no_kernel_matched.txt").read_text()
    assert parse_report(text) == ()
    run = read_collection(result(text), BUILD, plan("_Za"))
    assert (run.source, run.kernels) == ("static", ())
    assert "no kernel" in run.unavailable


def test_values_that_are_no_numbers_are_absent() -> None:
    rows = parse_report(HEADER + row(0, "a", "n/a") + row(1, "a", "no data") + row(2, "a", "1,234.5"))
    assert [each.metrics.get("gpu__time_duration.sum") for each in rows] == [None, None, 1234.5]


def test_a_table_of_another_page_is_named() -> None:
    with pytest.raises(ArtifactCorrupt, match="Kernel Name"):
        parse_report('"ID","Something"\n"0","x"\n')


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("f", "f"),
        ("f(const float *, int)", "f"),
        ("void ns::f<int, (bool)1, g<3>>(T1, T2)", "f"),
        ("void transform::transform_kernel<transform::policy<float>>(int)", "transform_kernel"),
        ("<unnamed>::f(int)", "f"),
        ("", ""),
    ],
)
def test_bare_names(name: str, bare: str) -> None:
    assert bare_name(name) == bare


def test_rows_of_one_kernel_are_joined_in_launch_order() -> None:
    text = (
        HEADER
        + row(0, "void a<int, 3>(int)", "100")
        + row(1, "ns::b()", "700")
        + row(2, "void a<int, 3>(int)", "200")
    )
    run = read_collection(result(text), BUILD, plan("_Za", "_Zb", "_Za"))
    assert run.source == "ncu"
    assert run.duration_ms == pytest.approx(1e-3)
    assert [(each.kernel, each.launches, each.time_share) for each in run.kernels] == [
        ("ns::b", 1, 0.7),
        ("a<int, 3>", 2, pytest.approx(0.3)),
    ]
    assert run.kernels[1].metrics["gpu__time_duration.sum"] == 200
    assert run.kernels[0].resources == BUILD.kernels[1]


def test_counters_that_may_not_be_read_give_the_remedy() -> None:
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    run = read_collection(result(text), BUILD, plan("_Za"))
    assert run.source == "static"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in run.unavailable
    assert "\n" not in run.unavailable


def test_other_errors_are_passed_on_in_one_line() -> None:
    run = read_collection(result("==ERROR== Failed to start\nmore\n"), BUILD, plan("_Za"))
    assert run.unavailable == "ncu: Failed to start"
    run = read_collection(result("", timed_out=True), BUILD, plan("_Za"))
    assert "did not finish" in run.unavailable


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parse_report('"ID","Kernel Name","Block Size","Grid Size"\n' + text)
    except ArtifactCorrupt:
        return


def test_metrics_that_a_version_does_not_know_are_read_from_its_errors():
    text = (
        "==ERROR== Failed to find metric regex:^derived__local_spilling_requests\\.(sum|min|max|avg)$\n"
        "==ERROR== Failed to find metric nonsense__thing.sum\n"
    )
    assert unknown_metrics(text) == {"derived__local_spilling_requests", "nonsense__thing"}
    assert unknown_metrics("==PROF== Connected to process") == frozenset()


def test_the_details_page_gives_the_figures_of_the_raw_page_under_their_names(golden: Path) -> None:
    """Labels in words stand for the metrics that have the same values in all fifteen kernels."""
    raw = parse_report((golden / "ncu" / "patterns_base_units.csv").read_text())
    details = parse_report((golden / "ncu" / "patterns_details.csv").read_text())
    compared = set()
    for one, other in zip(raw, details, strict=True):
        assert (one.kernel, one.grid, one.block) == (other.kernel, other.grid, other.block)
        for name in one.metrics.keys() & other.metrics.keys():
            assert other.metrics[name] == pytest.approx(one.metrics[name], rel=5e-3, abs=0.006), name
            compared.add(name)
    assert len(compared) >= 12


def test_details_of_2020_have_other_labels_and_no_column_for_sizes(golden: Path) -> None:
    (launch,) = parse_report((golden / "ncu" / "details_2020.csv").read_text())
    assert launch.bare_name == "mm"
    assert (launch.grid, launch.block) == ((1024, 1, 1), (256, 1, 1))
    assert launch.metrics == {
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 91.2,
        "lts__throughput.avg.pct_of_peak_sustained_elapsed": 40.2,
        "gpu__time_duration.sum": 1234.5e6,
        "launch__grid_size": 1024,
        "launch__block_size": 256,
        "dram__bytes_read.sum": 1.5e9,
    }


def test_a_summary_a_kernel_gives_averages_and_how_many_launches_they_are_of() -> None:
    text = (
        '"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum",'
        '"Average"\n'
        '"1","k(int)","4","GPU Speed Of Light Throughput","Duration","us","1","3","2"\n'
        '"1","k(int)","4","GPU Speed Of Light Throughput","DRAM Throughput","%","5","15","10"\n'
    )
    (launch,) = parse_report(text)
    assert launch.launches == 4
    assert launch.metrics["gpu__time_duration.sum"] == 2000
    assert launch.metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] == 10


@pytest.mark.parametrize(
    "text", ['"File Name","a.cu"\n"Line No","Source"\n', '"Kernel Name","k"\n"#","Address","Source"\n']
)
def test_a_source_page_is_named_as_what_it_is(text: str) -> None:
    with pytest.raises(ArtifactCorrupt, match="source page"):
        parse_report(text)


@given(st.data())
def test_a_mangled_report_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    folder = Path(__file__).parents[3] / "golden" / "ncu"
    names = ["details_2020.csv", "patterns_base_units.csv", "mixed_kernels_stdout.txt"]
    text = (folder / data.draw(st.sampled_from(names))).read_text()[:6000]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        text = (
            text[:place]
            + data.draw(st.sampled_from(['"', "\n", ",", "\0", "n/a", '""', "(", "9" * 40, "\u00e9"]))
            + (text[place + data.draw(st.integers(0, 40)) :])
        )
    try:
        rows = parse_report(text)
    except ArtifactCorrupt:
        return
    assert all(
        isinstance(value, float) and abs(value) < float("inf")
        for row in rows
        for value in row.metrics.values()
    )
