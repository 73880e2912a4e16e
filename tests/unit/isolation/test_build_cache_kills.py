"""Builders that are killed at random moments: nothing half-done is published, nothing finished is lost or held."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from kernelskill.isolation.build_cache import BuildCache

ROOT = Path(__file__).resolve().parents[3]
KILLS = 60
LANES = 4
# One process forks the builders, so that a kill costs milliseconds; it knows the moment, they don't.
SLAUGHTER = """
import os, random, signal, sys, time
from pathlib import Path
from kernelskill.isolation.build_cache import BuildCache
root, log, kills, lanes, most = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])

def say(text):
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (text + "\\n").encode())
    os.close(fd)

def work(seed):
    random.seed(seed)
    with BuildCache(root, most) as cache:
        while True:
            key = f"k{random.randrange(40)}"
            def build(folder):
                say(f"begin {key}")
                for number in range(5):
                    (folder / f"part{number}").write_text(key * 50)
                    time.sleep(random.random() * 0.002)
            folder = cache.get_or_build(key, build)
            parts = sorted(path.name for path in folder.glob("part*"))
            say(f"done {key}" if len(parts) == 5 else f"half {key}")
            cache.release(key)

def start(seed):
    pid = os.fork()
    if pid == 0:
        try:
            work(seed)
        finally:
            os._exit(3)
    return pid

random.seed(11)
alive = [start(number) for number in range(lanes)]
for number in range(kills):
    time.sleep(random.random() * 0.03)
    victim = alive.pop(random.randrange(len(alive)))
    os.kill(victim, signal.SIGKILL)
    _, status = os.waitpid(victim, 0)
    assert os.WIFSIGNALED(status), f"a builder ended by itself: {status}"
    alive.append(start(1000 + number))
for victim in alive:
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
"""


def slaughter(tmp_path: Path, most: int) -> list[tuple[str, str]]:
    """Let builders work and die; return what they said, in order."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", SLAUGHTER, tmp_path / "cache", log, str(KILLS), str(LANES), str(most)]
    done = subprocess.run(
        [str(word) for word in command],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = [line.split(" ") for line in log.read_text().splitlines()]
    return [(word[0], word[1]) for word in words]


def test_nothing_finished_is_lost_and_nothing_half_done_is_seen(tmp_path):
    said = slaughter(tmp_path, 1 << 30)
    assert "half" not in {word for word, _ in said}
    finished: set[str] = set()
    for word, key in said:
        assert word == "done" or key not in finished, f"{key} was built again after it had been finished"
        finished |= {key} if word == "done" else set()
    assert len(finished) > 20
    with BuildCache(tmp_path / "cache") as cache:
        assert list((tmp_path / "cache" / "building").iterdir()) == []
        for key in finished:
            folder = cache.find(key)
            assert folder is not None, key
            assert len(list(folder.glob("part*"))) == 5


def test_killed_builders_hold_nothing(tmp_path):
    most = 3000
    said = slaughter(tmp_path, most)
    counts = Counter(word for word, _ in said)
    assert counts["half"] == 0
    assert counts["begin"] > counts["done"] / 4, "old folders were removed and made again"
    root = tmp_path / "cache"
    with BuildCache(root, most) as cache:
        cache.evict()
        assert len(list((root / "users").iterdir())) == 1, "the dead use nothing"
        assert list((root / "trash").iterdir()) == []
        assert sum(f.stat().st_size for f in (root / "entries").rglob("part*")) <= most
        for number in range(40):
            cache.get_or_build(f"k{number}", lambda folder: (folder / "x").touch())
            cache.release(f"k{number}")
