from __future__ import annotations

import random

import pytest
import scripted_backend as scripted

from kernelskill.errors import DeviceUnavailable, UnknownNameError, UsageError
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.replay import ReplayEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.spool import SpoolEvaluator, SpoolRules
from kernelskill.runs import SystemClock
from kernelskill.tasks.snapshot import StoredTask
from kernelskill.tasks.testsource import read_test_source


@pytest.fixture
def open_device(tmp_path):
    path = tmp_path / "tests" / "test.py"
    path.parent.mkdir()
    path.write_text(scripted.TESTS)
    source = read_test_source(path)
    original = scripted.source("right")
    parts = StoredTask(
        task=scripted.make_task(original, tests=source.digest), original=original, tests=source
    )

    def run(device):
        return open_evaluator(
            device,
            parts,
            run_folder=tmp_path / "run",
            seeds=SeedFile(tmp_path / "seeds.json", random.Random(1)),
            clock=SystemClock(),
            spool_rules=SpoolRules(wait=False),
        )

    return run


@pytest.mark.parametrize(
    ("device", "text", "remedy"),
    [
        ("tpu", "no device is called 'tpu'", "use auto, cuda:N"),
        ("", "no device is called ''", "use auto, cuda:N"),
        ("spool", "device 'spool' names no folder", "write spool:FOLDER"),
        ("replay:", "device 'replay:' names no folder", "write replay:FOLDER"),
        ("replay:/nonexistent", "no recorded evaluations at '/nonexistent'", "give a run folder"),
        ("spool:/dev/null/x", "cannot use '/dev/null/x' as a spool folder", "may write to"),
    ],
)
def test_a_device_that_is_none_is_refused_with_its_remedy(open_device, device, text, remedy):
    with pytest.raises(UsageError, match=text) as caught:
        open_device(device)
    assert remedy in caught.value.remedy


def test_an_unknown_gpu_is_named(open_device):
    with pytest.raises(UnknownNameError, match="h2000"):
        open_device("emulated:h2000")


def test_a_gpu_that_is_not_there_is_a_missing_device(open_device):
    with pytest.raises(DeviceUnavailable):
        open_device("cuda:77")


def test_spool_and_replay_need_nothing_here(open_device, tmp_path, laboratory):
    spool = open_device(f"spool:{tmp_path / 'spool'}")
    assert isinstance(spool, SpoolEvaluator)
    assert (spool.device, spool.evidence) == ("spool", "none")
    assert list((tmp_path / "spool" / "tasks").iterdir())
    lab = laboratory()
    lab.backend.gpu = scripted.GPU.model_copy(update={"name": "NVIDIA H200"})
    lab.check("right")
    replay = open_device(f"replay:{lab.folder}")
    assert isinstance(replay, ReplayEvaluator)
    assert replay.gpu.short_name == "h200"
