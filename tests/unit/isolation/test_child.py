import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from kernelskill.errors import HarnessError
from kernelskill.isolation import supervisor
from kernelskill.isolation.child import Limits, private_folder, run_child
from kernelskill.isolation.environment import UNPRIVILEGED_UID

ROOT = Path(__file__).resolve().parents[3]
LIMITS = Limits(wall_s=20)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")


@pytest.fixture
def folder():
    with private_folder() as path:
        yield path


def shell(text, folder, limits=LIMITS, **options):
    return run_child(["/bin/sh", "-c", text], limits=limits, cwd=folder, **options)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid, seconds=10.0):
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def read_pid(path, seconds=20.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"no pid in {path}")


def test_outputs_and_exit_code_come_back(folder):
    result = shell("echo out; echo err >&2; exit 3", folder)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert not result.timed_out
    assert 0 < result.seconds < 20


def test_a_signal_is_a_negative_exit_code(folder):
    assert shell("kill -SEGV $$", folder).returncode == -signal.SIGSEGV


def test_input_is_fed_and_absent_input_is_empty(folder):
    assert shell("wc -c", folder, stdin="x" * 300_000).stdout.strip() == "300000"
    assert shell("wc -c", folder).stdout.strip() == "0"
    assert shell("exit 0", folder, stdin=b"x" * 300_000).returncode == 0


def test_works_in_the_given_folder_with_no_more_than_the_clean_environment(folder):
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from kernelskill.isolation.child import Limits, run_child
        print(run_child(["env"], limits=Limits(wall_s=20), cwd=Path({str(folder)!r})).stdout)
        """
    )
    environment = dict(os.environ, OPENAI_API_KEY="secret-key", MY_TOKEN="secret-token", PYTHONPATH=str(ROOT))
    shown = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "secret" not in shown
    assert "PYTHONPATH" not in shown
    assert f"HOME={folder}" in shown
    assert "PATH=" in shown


@as_root
def test_unprivileged_child_is_nobody_and_can_use_its_folder_only(folder):
    result = shell("id -u; id -G; cat /etc/shadow; touch mine && ls", folder, unprivileged=True)
    assert result.stdout.splitlines() == [str(UNPRIVILEGED_UID), str(UNPRIVILEGED_UID), "mine"]
    assert "Permission denied" in result.stderr


@as_root
def test_unprivileged_child_cannot_signal_its_supervisor(folder):
    result = shell("kill -9 $PPID; echo $?", folder, unprivileged=True)
    assert result.stdout.strip() != "0"


def test_a_hang_ends_at_the_wall_time(folder):
    result = shell("sleep 100", folder, Limits(wall_s=0.3))
    assert result.timed_out
    assert result.returncode == -signal.SIGTERM
    assert result.seconds < 2


def test_who_ignores_sigterm_is_killed_after_the_grace_time(folder):
    result = shell("trap '' TERM; while :; do sleep 0.1; done", folder, Limits(wall_s=0.3))
    assert result.timed_out
    assert result.returncode == -signal.SIGKILL
    assert 2 < result.seconds < 5


@pytest.mark.parametrize("start", ["sleep 200", "setsid sleep 200"], ids=["group", "own session"])
@pytest.mark.parametrize("end", ["", "sleep 100"], ids=["exits", "hangs"])
def test_nothing_that_it_started_is_left(folder, start, end):
    shell(f"{start} >/dev/null 2>&1 & echo $! > pid; {end}", folder, Limits(wall_s=0.5))
    assert wait_until_gone(read_pid(folder / "pid"), 1.0)


def test_a_stray_process_that_keeps_the_pipes_open_does_not_hold_us_up(folder):
    result = shell("sleep 200 & echo done", folder)
    assert result.stdout == "done\n"
    assert result.seconds < 5


def test_one_gigabyte_of_output_stays_within_the_limit(folder):
    result = shell("head -c 1000000000 /dev/zero; echo end", folder, Limits(wall_s=60, output_bytes=1000))
    assert result.returncode == 0
    assert len(result.stdout) < 1100
    assert result.stdout.endswith("end\n")
    assert "bytes left out" in result.stdout


def test_file_size_and_processor_time_are_limited(folder):
    big = shell("head -c 100000 /dev/zero > big", folder, Limits(wall_s=20, file_bytes=5000))
    assert big.returncode != 0
    assert (folder / "big").stat().st_size == 5000
    assert shell("while :; do :; done", folder, Limits(wall_s=20, cpu_s=1)).returncode == -signal.SIGXCPU


@as_root
def test_a_fork_bomb_ends(folder):
    bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    python = next(p for p in (Path("/usr/bin/python3"), Path(sys.executable)) if p.exists())
    limits = Limits(wall_s=1, processes=30)
    result = run_child([str(python), "-I", "-c", bomb], limits=limits, cwd=folder, unprivileged=True)
    assert result.seconds < 8
    left = subprocess.run(
        ["pgrep", "-f", "-u", str(UNPRIVILEGED_UID), "os.fork"], capture_output=True, check=False
    )
    assert not left.stdout


def test_what_cannot_be_started_is_a_harness_error(folder):
    with pytest.raises(HarnessError, match="no-such-program"):
        run_child(["no-such-program"], limits=LIMITS, cwd=folder)
    with pytest.raises(HarnessError, match="nowhere"):
        run_child(["true"], limits=LIMITS, cwd=folder / "nowhere")


def test_no_descriptors_leak(folder):
    shell("true", folder)
    before = open_descriptors()
    for _ in range(5):
        shell("true", folder)
        with pytest.raises(HarnessError):
            run_child(["no-such-program"], limits=LIMITS, cwd=folder)
    assert open_descriptors() == before


def test_children_of_several_threads_do_not_disturb_each_other(folder):
    outputs = {}

    def work(number):
        outputs[number] = shell(f"sleep 0.1; echo {number}", folder).stdout

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {number: f"{number}\n" for number in range(6)}


def test_children_die_when_we_are_killed(folder):
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from kernelskill.isolation.child import Limits, run_child
        text = "setsid sleep 300 & echo $! > grandchild; echo $$ > child; sleep 300"
        run_child(["/bin/sh", "-c", text], limits=Limits(wall_s=100), cwd=Path({str(folder)!r}))
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=str(ROOT)))
    pids = [read_pid(folder / name) for name in ("grandchild", "child")]
    assert all(is_alive(pid) for pid in pids)
    parent.kill()
    parent.wait()
    assert all(wait_until_gone(pid) for pid in pids)


def test_what_a_child_started_dies_when_we_are_killed_before_the_answer_is_read(folder):
    ours, theirs = socket.socketpair()
    code = [sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno())]
    process = subprocess.Popen(code, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
    theirs.close()
    order = {
        "command": ["/bin/sh", "-c", f"setsid sleep 300 & echo $! > {folder}/grandchild; sleep 300"],
        "env": {"PATH": os.environ["PATH"]},
        "rlimits": {},
        "uid": None,
        "confinement": None,
        "grace_s": 1.0,
        "files": [],
    }
    data = marshal.dumps(order)
    ours.sendall(struct.pack("<I", len(data)) + data)
    pid = read_pid(folder / "grandchild")
    select.select([ours], [], [], 20.0)
    ours.close()  # with an answer in it, so that the other side reads an error and no end of file
    assert process.communicate(timeout=20) == (None, b"")
    assert wait_until_gone(pid)


def test_private_folders_of_one_name_are_the_same_unless_in_use():
    with private_folder(name="twin") as first:
        with private_folder(name="twin") as second:
            assert first != second
        assert first.stat().st_mode & 0o777 == 0o700
    assert not first.exists()
    with private_folder(name="twin") as again:
        assert again == first


def test_a_private_folder_that_a_killed_process_left_is_taken_over():
    script = textwrap.dedent(
        """
        import os, signal
        from kernelskill.isolation.child import private_folder
        with private_folder(name="left-behind") as folder:
            (folder / "rest").write_text("old")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=str(ROOT)), check=False)
    with private_folder(name="left-behind") as folder:
        assert folder.name.endswith("left-behind")
        assert list(folder.iterdir()) == []
