from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.errors import ArtifactCorrupt, TaskError, UnknownNameError, UsageError
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Status
from kernelskill.sweep.evaluator_sheet import evaluator_sheet, protocol
from kernelskill.sweep.rates import rate
from kernelskill.sweep.zoo import ZooKernel, load_zoo
from kernelskill.sweep.zoo_run import ZooOutcome, record_of

CONDITIONS = Conditions(device="emulated:h200", gpu="NVIDIA H200", evidence="estimated")


# Clopper and Pearson's intervals as statistics packages print them.
@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (0, 300, 0.0, 0.0122),
        (0, 30, 0.0, 0.1157),
        (2, 93, 0.0026, 0.0755),
        (5, 10, 0.1871, 0.8129),
        (7, 7, 0.5904, 1),
    ],
)
def test_exact_intervals(count, of, low, high):
    found = rate(count, of)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_nothing_tried_says_nothing():
    found = rate(0, 0)
    assert (found.share, found.low, found.high) == (None, 0.0, 1.0)
    with pytest.raises(ValueError, match="3 of 2"):
        rate(3, 2)


@given(st.integers(1, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_share_lies_in_its_interval(pair):
    found = rate(*pair)
    assert 0 <= found.low <= found.share <= found.high <= 1
    mirrored = rate(pair[1] - pair[0], pair[1])
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


MANIFEST = """
[rows]
cache = "kept answers"
[[kernel]]
file = "bad/one.cu"
task = "scale"
row = "cache"
what = "keeps its answer"
must = ["incorrect"]
"""


@pytest.fixture
def folder(tmp_path):
    for path in ("bad/one.cu", "tasks/scale/kernel.cu", "tasks/scale/test.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "zoo.toml").write_text(MANIFEST)
    return tmp_path


def test_a_manifest_is_read_and_searched(folder):
    zoo = load_zoo(folder)
    (kernel,) = zoo.select(("cache",))
    assert (kernel.name, kernel.is_bad, kernel.expected("estimated")) == (
        "bad/one",
        True,
        (Status.INCORRECT,),
    )
    assert zoo.select(("bad/one",)) == zoo.select(()) == (kernel,)
    with pytest.raises(UnknownNameError, match=r"'cashe'.*'cache'"):
        zoo.select(("cashe",))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (('"bad/one.cu"', '"bad/two.cu"'), "bad/two.cu is missing"),
        (('row = "cache"', 'row = "cash"'), "no row 'cash'"),
        (('task = "scale"', 'task = "scales"'), "no task 'scales'"),
        (('["incorrect"]', '["wrong"]'), "must"),
        (('["incorrect"]', '["passed"]'), "a bad kernel must not pass"),
        (('["incorrect"]', "[]"), "at least one status"),
        (("must =", 'where = "gpu"\nmust ='), "a reason belongs"),
        (("[rows]", "[rows"), "no TOML"),
    ],
)
def test_a_manifest_at_odds_with_itself_is_refused(folder, change, text):
    (folder / "zoo.toml").write_text(MANIFEST.replace(*change))
    with pytest.raises(TaskError, match=text):
        load_zoo(folder)


def test_a_file_that_nobody_names_is_refused(folder):
    (folder / "bad" / "other.cu").write_text("")
    with pytest.raises(TaskError, match=r"bad/other.cu is not in the manifest"):
        load_zoo(folder)


def test_a_folder_without_manifest_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"zoo\.toml"):
        load_zoo(tmp_path)


def outcome(file, status, *, hole=""):
    must = Status.INCORRECT if file.startswith("bad") else Status.PASSED
    kernel = ZooKernel(file=file, task="scale", row="cache", what="-", must=(must,), hole=hole)
    return ZooOutcome(kernel=kernel, status=status, detail="", expected=kernel.must)


def test_rates_count_holes_and_other_statuses_are_unexpected():
    record = record_of(
        CONDITIONS,
        [
            outcome("bad/caught.cu", Status.INCORRECT),
            outcome("bad/other.cu", Status.TIMEOUT),
            outcome("bad/known.cu", Status.PASSED, hole="nobody looks there"),
            outcome("bad/new.cu", Status.PASSED),
            outcome("honest/right.cu", Status.PASSED),
            outcome("honest/refused.cu", Status.UNSUPPORTED),
        ],
        trials=3,
        left_out={},
    )
    assert (record.false_accept.count, record.false_accept.of) == (2, 4)
    assert (record.false_reject.count, record.false_reject.of) == (1, 2)
    assert [o.kernel.file for o in record.unexpected] == ["bad/other.cu", "bad/new.cu", "honest/refused.cu"]


def test_the_sheet_holds_what_was_recorded(tmp_path):
    record = record_of(CONDITIONS, [outcome("bad/one.cu", Status.INCORRECT)], trials=3, left_out={})
    (tmp_path / "zoo-emulated.json").write_text(record.model_dump_json())
    sheet = evaluator_sheet(tmp_path)
    assert sheet.zoo == (record,)
    assert sheet.noise == ()
    assert sheet.versions["python"]
    (tmp_path / "noise-h200.json").write_text("{}")
    with pytest.raises(ArtifactCorrupt, match="noise-h200"):
        evaluator_sheet(tmp_path)


def test_the_protocol_comes_from_the_code():
    settings = {setting.name: setting.value for part in protocol() for setting in part.settings}
    assert settings["poisons"] == "0xff 0x7b"
    assert settings["pairs"] == "30"
    assert settings["case_loss"] == "0.02"
