import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelskill.isolation.build_cache import BuildCache

ROOT = Path(__file__).resolve().parents[3]
BUILDER = """
import os, sys, time
from pathlib import Path
from kernelskill.isolation.build_cache import BuildCache
root, log, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])

def build(folder):
    with open(log, "a") as file: file.write("built\\n")
    (folder / "half").write_text("half")
    print("building", flush=True)
    time.sleep(seconds)
    (folder / "whole").write_text("whole")

cache = BuildCache(root)
print(cache.get_or_build("key", build), flush=True)
if len(sys.argv) > 4: time.sleep(300)
"""


def start_builder(*arguments):
    command = [sys.executable, "-c", BUILDER, *(str(argument) for argument in arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT))
    )


def writes(size, name="file"):
    def build(folder):
        (folder / name).write_bytes(b"x" * size)

    return build


def test_builds_once_and_returns_the_folder(tmp_path):
    with BuildCache(tmp_path) as cache:
        folder = cache.get_or_build("a", writes(3))
        assert (folder / "file").read_bytes() == b"xxx"
        assert cache.get_or_build("a", lambda _: pytest.fail("built again")) == folder
        assert cache.find("a") == folder
        assert cache.find("b") is None


def test_two_processes_build_once(tmp_path):
    log = tmp_path / "log"
    builders = [start_builder(tmp_path / "cache", log, 0.3) for _ in range(2)]
    outputs = [builder.communicate()[0].splitlines()[-1] for builder in builders]
    assert outputs[0] == outputs[1]
    assert log.read_text() == "built\n"


def test_threads_build_different_keys_at_once_and_one_key_once(tmp_path):
    barrier = threading.Barrier(2, timeout=20)
    built = []

    def build_of(key):
        def build(folder):
            built.append(key)
            barrier.wait()
            (folder / "x").write_text(key)

        return build

    with BuildCache(tmp_path) as cache:
        threads = [
            threading.Thread(target=cache.get_or_build, args=(key, build_of(key)))
            for key in ("a", "b", "a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(built) == ["a", "b"]


def test_a_kill_in_the_middle_publishes_nothing(tmp_path):
    builder = start_builder(tmp_path / "cache", tmp_path / "log", 300)
    with builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "building\n"
        builder.send_signal(signal.SIGKILL)
        builder.wait()
    assert (tmp_path / "cache" / "building" / "key" / "half").exists()
    with BuildCache(tmp_path / "cache") as cache:
        assert not (tmp_path / "cache" / "building" / "key").exists()
        assert cache.find("key") is None
        folder = cache.get_or_build("key", writes(1, "whole"))
        assert sorted(path.name for path in folder.iterdir() if path.name[0] != ".") == ["whole"]


def test_a_builder_that_raises_publishes_nothing(tmp_path):
    def fail(folder):
        (folder / "half").write_text("half")
        raise OSError("disk on fire")

    with BuildCache(tmp_path) as cache:
        with pytest.raises(OSError, match="fire"):
            cache.get_or_build("a", fail)
        assert cache.find("a") is None
        assert list((tmp_path / "building").iterdir()) == []


def test_the_least_recently_used_goes_first(tmp_path):
    with BuildCache(tmp_path, max_bytes=250) as cache:
        folders = {}
        for age, key in enumerate(("old", "mid", "new")):
            folders[key] = cache.get_or_build(key, writes(100))
            os.utime(folders[key], (age, age))
            if key == "mid":
                cache.release("old")
                cache.release("mid")
                cache.find("old")
                cache.release("old")
        assert [key for key, folder in folders.items() if folder.exists()] == ["old", "new"]


def test_what_is_in_use_stays(tmp_path):
    with BuildCache(tmp_path, max_bytes=1) as cache:
        folder = cache.get_or_build("a", writes(100))
        other = cache.get_or_build("b", writes(100))
        assert folder.exists()
        assert other.exists()
        cache.release("a")
        cache.evict()
        assert not folder.exists()
        assert other.exists()
        assert not (tmp_path / "locks" / "a").exists()


def test_what_another_process_uses_stays_until_it_ends(tmp_path):
    user = start_builder(tmp_path / "cache", tmp_path / "log", 0, "stay")
    with user:
        assert user.stdout is not None
        user.stdout.readline()
        folder = Path(user.stdout.readline().strip())
        with BuildCache(tmp_path / "cache", max_bytes=0) as cache:
            cache.evict()
            assert folder.exists()
            user.kill()
            user.wait()
            cache.evict()
            assert not folder.exists()
    assert list((tmp_path / "cache" / "users").iterdir()) == []


@pytest.mark.parametrize("key", ["", "../x", "a/b", ".hidden", "a\0b"])
def test_keys_that_are_no_file_names_are_refused(tmp_path, key):
    with BuildCache(tmp_path) as cache, pytest.raises(ValueError, match="cache key"):
        cache.get_or_build(key, writes(1))


def test_lookup_is_quick(tmp_path):
    with BuildCache(tmp_path) as cache:
        cache.get_or_build("a", writes(1))
        started = time.monotonic()
        for _ in range(100):
            cache.get_or_build("a", writes(1))
        assert time.monotonic() - started < 1
