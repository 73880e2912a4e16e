import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelskill.isolation.locks import FileLock

ROOT = Path(__file__).resolve().parents[3]
HOLDER = """
import sys, time
from pathlib import Path
from kernelskill.isolation.locks import FileLock
lock = FileLock(Path(sys.argv[1])); lock.acquire(); print("held", flush=True); time.sleep(300)
"""


def test_excludes_threads(tmp_path):
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        for _ in range(20):
            with FileLock(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0005)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_ends_with_a_killed_owner(tmp_path):
    path = tmp_path / "sub" / "lock"
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, env=environment
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not FileLock(path).acquire(blocking=False)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with FileLock(path):
        pass


def test_survives_the_removal_of_its_file(tmp_path):
    path = tmp_path / "lock"
    first = FileLock(path)
    first.acquire()
    path.unlink()
    with FileLock(path):
        first.release()
        assert not FileLock(path).acquire(blocking=False)


def test_is_not_reentrant(tmp_path):
    with FileLock(tmp_path / "lock") as lock, pytest.raises(RuntimeError, match="held"):
        lock.acquire()
