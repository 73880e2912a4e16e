from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.cuda.sanitizer import ALL_TOOLS, parse_sanitizer, read_report

GOLDEN = Path(__file__).parents[3] / "golden" / "ncu"
MEMCHECK = (GOLDEN / "sanitizer_memcheck.txt").read_text()
RACECHECK = (GOLDEN / "sanitizer_racecheck.txt").read_text()
LINES = st.sampled_from([*MEMCHECK.splitlines(), *RACECHECK.splitlines(), "no error", "========= ", "", "\0"])


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


@pytest.mark.parametrize("tool", ["initcheck", "synccheck"])
def test_a_clean_report_is_complete(tool: str) -> None:
    reading = read_report((GOLDEN / f"sanitizer_{tool}.txt").read_text(), tool)
    assert (reading.complete, reading.findings) == (True, ())


def test_nothing_is_clean_without_the_tools_own_count() -> None:
    for text in ("", "========= COMPUTE-SANITIZER\n", "no error\n", "ERROR SUMMARY: 0 errors"):
        assert not read_report(text, "memcheck").complete, text


@given(st.integers(0, len(MEMCHECK)))
def test_a_report_cut_off_anywhere_clears_nobody(end: int) -> None:
    reading = read_report(MEMCHECK[:end], "memcheck")
    assert reading.findings or not reading.complete
    if "Invalid __global__ write of size 4 bytes" in MEMCHECK[:end]:
        assert reading.findings[0].message.startswith("Invalid __global__ write")


@given(st.lists(LINES | st.text(max_size=40)), st.sampled_from(ALL_TOOLS))
def test_any_text_is_read(lines: list[str], tool: str) -> None:
    reading = read_report("\n".join(lines), tool)
    assert all(finding.message and "\n" not in finding.message for finding in reading.findings)


def test_errors_in_unknown_words_are_errors() -> None:
    text = (
        "========= COMPUTE-SANITIZER\n========= Something new happened\n========= ERROR SUMMARY: 2 errors\n"
    )
    (found,) = read_report(text, "memcheck").findings
    assert (found.severity, found.message[:8]) == ("error", "2 errors")
    race = "========= RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)\n"
    assert read_report(race, "racecheck").findings == ()


def test_warnings_and_what_initcheck_says_are_advisory() -> None:
    race = RACECHECK.replace("Error: Race", "Warning: Race")
    assert read_report(race, "racecheck").findings[0].severity == "warning"
    init = (
        "========= Uninitialized __global__ memory read of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"
    )
    assert read_report(init, "initcheck").findings[0].severity == "warning"
    assert read_report(RACECHECK, "racecheck").findings[0].severity == "error"
