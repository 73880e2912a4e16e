from __future__ import annotations

from kernelskill.evaluation.store import EvaluationStore
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Evaluation, Status

CONDITIONS = Conditions(device="d", gpu="g")


def evaluation(key="k1", status=Status.PASSED):
    return Evaluation(key=key, candidate="c", stage="check", status=status, conditions=CONDITIONS)


def test_kept_answers_are_found_by_key(tmp_path):
    EvaluationStore(tmp_path).put(evaluation())
    store = EvaluationStore(tmp_path)
    assert store.get("k1") == evaluation()
    assert store.get("k2") is None
    assert [p.name for p in (tmp_path / "evaluations").iterdir()] == ["k1.json"]


def test_spoilt_answers_are_not_kept(tmp_path):
    store = EvaluationStore(tmp_path)
    store.put(evaluation(status=Status.HARNESS_ERROR))
    assert store.get("k1") is None


def test_unreadable_answers_are_set_aside(tmp_path):
    store = EvaluationStore(tmp_path)
    store.put(evaluation())
    path = tmp_path / "evaluations" / "k1.json"
    path.write_bytes(path.read_bytes()[:50])
    assert store.get("k1") is None
    assert store.quarantined() == ("evaluations-k1.json",)
    store.put(evaluation())
    assert store.get("k1") == evaluation()


def test_an_answer_under_a_foreign_key_is_none(tmp_path):
    store = EvaluationStore(tmp_path)
    store.put(evaluation())
    (tmp_path / "evaluations" / "k1.json").rename(tmp_path / "evaluations" / "k2.json")
    assert store.get("k2") is None
    assert store.quarantined() == ("evaluations-k2.json",)
