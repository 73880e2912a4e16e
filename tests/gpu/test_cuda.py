"""The promises of the `cuda` backend, one test each; the checks are the product's own self-test."""

from collections.abc import Iterator

import pytest

from kernelskill.backends.cuda.backend import CudaBackend
from kernelskill.backends.cuda.selftest import SelfTest, check_names
from kernelskill.isolation.child import private_folder

TOOLS = ("profiler", "sanitizer")


@pytest.fixture(scope="module")
def checks() -> Iterator[SelfTest]:
    with private_folder() as folder:
        test = SelfTest(CudaBackend(0), folder)
        with test.backend.exclusive():
            yield test


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in check_names() if name not in TOOLS])
def test_promise(name: str, checks: SelfTest) -> None:
    assert getattr(checks, f"check_{name}")()


@pytest.mark.ncu
@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
def test_tool(name: str, checks: SelfTest) -> None:
    assert "not available" not in getattr(checks, f"check_{name}")()
