"""A session on the emulated device, from Python: the documented example, and a kill in the middle of a round."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill import Session
from kernelskill.schema.event import RoundStarted
from tests.flow.small_task import KERNEL, SETTINGS, events, write_task

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[2] / "docs" / "session.md"
SHORT = (
    SETTINGS.replace("slate = 3", "slate = 1").replace("points = 2", "points = 0")
    + "trials = 1\nlearn = false\n"
)
KILLED = """\
import os, signal, sys
from pathlib import Path
from kernelskill import Session

def sink(event):
    if event.kind == "evaluated" and event.round == 3:
        os.kill(os.getpid(), signal.SIGKILL)

with Session.resume(Path("out"), sinks=(sink,)) as session:
    session.steering.ban("unroll")
    names = [p.name for p in session.steering.proposals(1)]
    session.steering.prefer(names[1], names[0])
    session.settings.set_budget(device="20m")
    session.history.pin(session.history.show().text + "// the last word\\n")
    session.work.step()
    session.history.undo()
    session.work.step()
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example of the documentation was carried out."""
    folder = tmp_path_factory.mktemp("session")
    write_task(folder, settings=SHORT)
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        exec(compile(example, str(DOCUMENT), "exec"), {})
    (folder / "said.txt").write_text(said.getvalue())
    return folder


def test_the_documented_example_holds(work: Path) -> None:
    said = (work / "said.txt").read_text()
    assert "'constraint: nothing that uses shared memory', 'preference: registers first'" in said
    assert "small grid in means" in said
    assert "unrolling: " in said
    assert re.search(r"^True True within the margin", said, re.MULTILINE)
    assert said.splitlines()[-1].endswith("['leave shared memory alone, and try registers first'] * 2") or (
        said.splitlines()[-1].count("leave shared memory alone, and try registers first") == 2
    )
    written = (work / "faster.cu").read_text()
    assert written.startswith("// checked by hand\n")
    assert "__shared__" not in written
    assert (work / "kernel.cu").read_text() == KERNEL


def test_a_kill_in_a_round_loses_nothing(work: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=work, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    kinds = [event.kind for event in events(work / "out")]
    assert kinds.count("head_moved") >= 3
    with Session.resume(work / "out") as session:
        assert session.status().open_round == 3
        texts = [rule.text for rule in session.steering.rules()]
        assert texts[-1] == "ban unroll"
        assert len(session.steering.preferences()) == 1
        assert session.context.policy.model.pairs > 0
        assert session.settings.budget().budget.device_seconds == 1200
        tree = session.history.tree()
        head = next(node for node in tree if node.is_head)
        assert sum(node.origin == "user" for node in tree) == 2
        done_now = session.work.step()
        assert (done_now.round, done_now.finished) == (3, True)
        started = [e for e in session.context.log.events if isinstance(e, RoundStarted)]
        assert started[-1].base == head.digest
        tried = session.history.tree()[len(tree) :]
        assert all("unroll" not in node.label for node in tried)
