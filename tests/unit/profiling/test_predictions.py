import pytest

from kernelskill.backends.cuda.ncu import metric_names
from kernelskill.profiling.figures import definitions, figures_of
from kernelskill.profiling.predictions import observed_changes
from kernelskill.report.predictions import prediction_rows
from kernelskill.resources import data_folder
from kernelskill.schema.device import Conditions
from kernelskill.schema.event import Observed
from kernelskill.schema.profile import KernelProfile, Profile
from kernelskill.schema.proposal import MetricChange, MetricOutcome
from kernelskill.skills.library import SkillLibrary

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"


def kernel(name: str, share: float = 1.0, launches: int = 1, **metrics: float) -> KernelProfile:
    return KernelProfile(
        kernel=name, launches=launches, time_share=share, grid=(1, 1, 1), block=(32, 1, 1), metrics=metrics
    )


def profile(*kernels: KernelProfile, source: str = "trace", case: int = 0) -> Profile:
    return Profile(
        candidate="c", case=case, source=source, kernels=kernels, conditions=Conditions(device="d", gpu="g")
    )


def down(metric: str, direction: str = "down") -> MetricChange:
    return MetricChange(metric=metric, direction=direction, skill="memory/x")


@pytest.mark.parametrize(
    ("direction", "before", "after", "held"),
    [
        ("down", 100, 50, True),
        ("down", 100, 99.5, False),
        ("down", 100, 130, False),
        ("up", 100, 130, True),
        ("up", 0, 1, True),
        ("down", 0, 0, False),
        ("same", 100, 103, True),
        ("same", 100, 120, False),
        ("same", 0, 0, True),
    ],
)
def test_a_prediction_holds_where_the_metric_moves_that_way(
    direction: str, before: float, after: float, held: bool
) -> None:
    (found,) = observed_changes(
        [down("load_sectors", direction)],
        profile(kernel("k", **{SECTORS: before})),
        profile(kernel("k", **{SECTORS: after})),
    )
    assert (found.before, found.after, found.held) == (before, after, held)


def test_only_the_changed_kernel_counts_where_both_sides_have_it() -> None:
    before = profile(kernel("hot<int>", 0.9, **{SECTORS: 100}), kernel("cold", 0.1, **{SECTORS: 1000}))
    after = profile(kernel("ns::hot", 0.5, **{SECTORS: 60}), kernel("cold", 0.5, **{SECTORS: 5000}))
    (found,) = observed_changes([down("load_sectors")], before, after, {"hot"})
    assert (found.before, found.after, found.held) == (100, 60, True)


def test_all_kernels_count_where_the_changed_one_is_gone() -> None:
    """Counts are added over all launches, ratios weighed by time."""
    before = profile(
        kernel("a", 0.75, launches=2, **{SECTORS: 100, LANES: 8}),
        kernel("b", 0.25, **{SECTORS: 10, LANES: 32}),
    )
    after = profile(kernel("a_b", **{SECTORS: 100, LANES: 32}))
    changes = [down("load_sectors"), down("threads_per_instruction", "up"), down(SECTORS)]
    counts, lanes, raw = observed_changes(changes, before, after, {"a", "b"})
    assert (counts.before, counts.after) == (raw.before, raw.after) == (210, 100)
    assert (lanes.before, lanes.after, lanes.held) == (14, 32, True)


@pytest.mark.parametrize(
    "after",
    [
        profile(kernel("k"), source="ncu"),
        profile(kernel("k", **{SECTORS: 1}), source="ncu"),
        profile(kernel("k", **{SECTORS: 1}), case=1),
    ],
)
def test_what_cannot_be_compared_is_not_observed(after: Profile) -> None:
    before = profile(kernel("k", **{SECTORS: 2}))
    (found,) = observed_changes([down("load_sectors")], before, after)
    assert found.held is None
    (found,) = observed_changes([down("no_such_metric")], before, before)
    assert found.held is None


def test_atomics_that_are_gone_from_a_trace_are_none() -> None:
    before = profile(kernel("k", trace__atomic_requests=500.0))
    (found,) = observed_changes([down("atomics")], before, profile(kernel("k")))
    assert (found.before, found.after, found.held) == (500, 0, True)
    counted = profile(
        kernel(
            "k",
            **{
                "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": 7.0,
                "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": 1.0,
            },
        ),
        source="ncu",
    )
    (found,) = observed_changes([down("atomics")], counted, counted)
    assert found.before == 8


def test_every_skill_predicts_what_a_profile_can_show() -> None:
    library = SkillLibrary.load([data_folder("skills")])
    collected = set(metric_names("full"))
    for skill in library.all():
        assert skill.predicts, skill.id
        for change in skill.predicts:
            assert change.metric in definitions() or change.metric in collected, (skill.id, change.metric)


def test_most_predictions_can_be_seen_without_a_gpu() -> None:
    library = SkillLibrary.load([data_folder("skills")])
    trace = {
        name: 1.0
        for definition in definitions().values()
        for name in definition.metric
        if name.startswith(
            ("trace__", "estimate__", "launch__", "gpu__time", "l1tex__t_", "l1tex__data_bank")
        )
        or name in (LANES, "smsp__inst_executed.sum")
    }
    seen = figures_of(trace, traced=True)
    predicted = [change.metric for skill in library.all() for change in skill.predicts]
    assert sum(metric in seen for metric in predicted) / len(predicted) > 0.75


def test_the_report_counts_how_often_a_prediction_held() -> None:
    def seen(proposal: str, *held: bool | None) -> Observed:
        outcomes = tuple(
            MetricOutcome(
                metric=f"m{number}", direction="down", skill="memory/x", before=2, after=1, held=each
            )
            for number, each in enumerate(held)
        )
        return Observed(proposal=proposal, candidate="c", base="b", outcomes=outcomes)

    rows = prediction_rows([seen("p", True, None), seen("q", False, None)])
    assert [(r.metric, r.held, r.observed, r.unobserved) for r in rows] == [("m0", 1, 2, 0), ("m1", 0, 0, 2)]
