import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.isolation.child import Child, ChildTimeout, Limits

ROOT = Path(__file__).resolve().parents[3]
SERVER = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from kernelskill.isolation.channel import VARIABLE, serve

def handle(message):
    print("noise on stdout", flush=True)
    match message["do"]:
        case "echo": return {{"echo": message["value"]}}
        case "pid": return {{"pid": os.getpid()}}
        case "hang": time.sleep(300)
        case "exit": print("last words", file=sys.stderr, flush=True); os._exit(4)
        case "crash": os.kill(os.getpid(), 11)
        case "raise": raise RuntimeError("handler failed")
        case "shout":
            for _ in range(2000): print("x" * 1000, file=sys.stderr)
            return {{}}
        case "garbage": os.write(garbage_fd, b"\\x03\\x00\\x00\\x00abc")
        case "env": return dict(os.environ)
    return {{}}

garbage_fd = int(os.environ[VARIABLE].split(",")[1])
serve(handle)
"""


@pytest.fixture
def child(tmp_path):
    with Child.start([sys.executable, "-c", SERVER], cwd=tmp_path, limits=Limits(wall_s=60)) as started:
        yield started


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def wait_until_gone(pid, seconds=10.0):
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def test_messages_go_there_and_back_whatever_is_printed(child):
    for value in (1, "zwölf", None, [1.5, {"a": True}], "x" * 3_000_000):
        assert child.call({"do": "echo", "value": value}, timeout_s=20) == {"echo": value}


def test_a_handler_that_hangs_is_a_timeout_and_the_child_is_gone(child):
    pid = child.call({"do": "pid"}, timeout_s=20)["pid"]
    with pytest.raises(ChildTimeout, match=r"0\.3 s"):
        child.call({"do": "hang"}, timeout_s=0.3)
    assert wait_until_gone(pid)
    with pytest.raises(WorkerDied, match="closed"):
        child.call({"do": "pid"}, timeout_s=1)


@pytest.mark.parametrize(
    ("do", "how"),
    [("exit", "exited with 4"), ("crash", "signal 11"), ("raise", "handler failed"), ("garbage", "not JSON")],
)
def test_a_child_that_ends_says_how(child, do, how):
    with pytest.raises(WorkerDied, match=how):
        child.call({"do": do}, timeout_s=20)


def test_last_words_are_kept(child):
    with pytest.raises(WorkerDied, match="last words"):
        child.call({"do": "exit"}, timeout_s=20)


def test_much_stderr_blocks_nothing_and_is_bounded(tmp_path):
    limits = Limits(wall_s=60, output_bytes=4096)
    with Child.start([sys.executable, "-c", SERVER], cwd=tmp_path, limits=limits) as child:
        child.call({"do": "shout"}, timeout_s=20)
        child.call({"do": "pid"}, timeout_s=20)
        assert len(child.errors) < 5000


def test_a_child_killed_from_outside_is_noticed(child):
    os.kill(child.call({"do": "pid"}, timeout_s=20)["pid"], signal.SIGKILL)
    with pytest.raises(WorkerDied, match="signal 9"):
        child.call({"do": "pid"}, timeout_s=20)


def test_close_from_another_thread_ends_a_call_in_progress(child):
    outcome = []

    def ask():
        try:
            child.call({"do": "hang"}, timeout_s=60)
        except HarnessError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.3)
    started = time.monotonic()
    child.close()
    thread.join()
    assert time.monotonic() - started < 5
    assert isinstance(outcome[0], WorkerDied)
    child.close()


def test_a_child_outlives_the_thread_that_started_it(tmp_path):
    started = []

    def start():
        started.append(Child.start([sys.executable, "-c", SERVER], cwd=tmp_path, limits=Limits(wall_s=60)))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    time.sleep(0.2)
    with started[0] as child:
        assert child.call({"do": "echo", "value": 1}, timeout_s=20) == {"echo": 1}


def test_calls_of_several_threads_take_turns(child):
    answers = {}

    def ask(number):
        answers[number] = child.call({"do": "echo", "value": number}, timeout_s=20)["echo"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: number for number in range(20)}


def test_the_child_does_not_pass_its_channel_on(child):
    assert "KERNELSKILL_CHANNEL" not in child.call({"do": "env"}, timeout_s=20)


def test_no_descriptors_leak(tmp_path):
    before = open_descriptors()
    for do in ("pid", "exit"):
        started = Child.start([sys.executable, "-c", SERVER], cwd=tmp_path, limits=Limits(wall_s=60))
        with started as child, suppress(WorkerDied):
            child.call({"do": do}, timeout_s=20)
    with pytest.raises(HarnessError):
        Child.start(["no-such-program"], cwd=tmp_path, limits=Limits(wall_s=60))
    assert open_descriptors() == before
