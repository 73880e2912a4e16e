from hypothesis import given
from hypothesis import strategies as st

from kernelskill.isolation.output import CappedOutput


@given(parts=st.lists(st.binary(max_size=50)), limit=st.integers(2, 100))
def test_start_and_end_are_kept_within_the_limit(parts, limit):
    output = CappedOutput(limit)
    for part in parts:
        output.add(bytes(byte & 0x7F for byte in part))
    whole = bytes(byte & 0x7F for byte in b"".join(parts)).decode()
    half = limit // 2
    if len(whole) <= 2 * half:
        assert output.text() == whole
    else:
        assert (
            output.text()
            == f"{whole[:half]}\n[... {len(whole) - 2 * half} bytes left out ...]\n{whole[-half:]}"
        )


def test_bytes_that_are_no_text_do_not_matter():
    output = CappedOutput(100)
    output.add(b"\xff\xfeok")
    assert output.text().endswith("ok")
