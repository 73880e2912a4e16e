from pathlib import Path

import pytest

from kernelskill.backends.cuda.sanitizer import parse_sanitizer


def test_an_overrun_is_found_with_its_line(golden: Path) -> None:
    (found,) = parse_sanitizer((golden / "ncu" / "sanitizer_memcheck.txt").read_text(), "memcheck")
    assert found.message == "Invalid __global__ write of size 4 bytes"
    assert (found.kernel, found.file, found.line) == ("oob(int *, int)", "oob.cu", 2)
    assert "1 bytes after the nearest allocation" in found.detail
    assert "Host Frame" not in found.detail


def test_a_race_is_found_with_both_places(golden: Path) -> None:
    (found,) = parse_sanitizer((golden / "ncu" / "sanitizer_racecheck.txt").read_text(), "racecheck")
    assert found.message.startswith("Race reported between Write access")
    assert (found.kernel, found.line) == ("race(int *)", 3)
    assert "256 hazards" in found.detail


@pytest.mark.parametrize("tool", ["initcheck", "synccheck"])
def test_a_clean_report_has_no_findings(golden: Path, tool: str) -> None:
    assert parse_sanitizer((golden / "ncu" / f"sanitizer_{tool}.txt").read_text(), tool) == ()


def test_an_api_error_alone_counts() -> None:
    text = '========= Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to "invalid argument" on CUDA API call\n'
    (found,) = parse_sanitizer(text, "memcheck")
    assert "CUDA_ERROR_INVALID_VALUE" in found.message
