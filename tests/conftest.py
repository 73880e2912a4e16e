"""What every test shares: folders of its own, and markers that mean what they say."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import kernelskill.cli  # noqa: F401 - what the program asks of numpy's libraries, asked before numpy is loaded

_FOLDERS = {
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
}
_OWN = "KERNELSKILL_TEST_HOME"

# How long one example takes says how busy the machine is.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu",
        action="store_true",
        help="fail tests marked gpu or ncu where they would be skipped for want of hardware or tools",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give the session a home of its own; the workers of a parallel run share it."""
    if _OWN in os.environ:
        return
    home = Path(tempfile.mkdtemp(prefix="kernelskill-tests-"))
    home.chmod(0o755)  # children may run as another user
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ[_OWN] = str(home)
    os.environ["HOME"] = str(home)
    for variable, name in _FOLDERS.items():
        (home / name).mkdir()
        os.environ[variable] = str(home / name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    here = Path(__file__).parent

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return item.path not in slow, not item.path.is_relative_to(here / "flow")

    items.sort(key=place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = _missing(item)
    if missing and item.config.getoption("--require-gpu"):
        pytest.fail(f"--require-gpu: {missing}", pytrace=False)
    elif missing:
        pytest.skip(missing)


@pytest.fixture
def golden() -> Path:
    """The folder of captured tool output."""
    return Path(__file__).parent / "golden"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A configuration, data and cache folder for one test alone."""
    before = {name: os.environ[name] for name in _FOLDERS}
    for variable, name in _FOLDERS.items():
        (tmp_path / name).mkdir()
        os.environ[variable] = str(tmp_path / name)
    yield tmp_path
    os.environ.update(before)


def _missing(item: pytest.Item) -> str:
    wants_ncu = item.get_closest_marker("ncu") is not None
    if not wants_ncu and item.get_closest_marker("gpu") is None:
        return ""
    if not _gpu_count():
        return "no NVIDIA GPU here"
    if wants_ncu and shutil.which("ncu") is None:
        return "no ncu on the PATH"
    return ""


def _gpu_count() -> int:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value
