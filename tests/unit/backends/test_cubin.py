from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.backends.cubin import read_cubin
from kernelskill.backends.elf import ElfFile
from kernelskill.errors import ArtifactCorrupt

CUBINS = Path(__file__).resolve().parents[2] / "golden" / "cubin"


@pytest.fixture(params=["sm_80", "sm_90a"])
def cubin(request):
    return (CUBINS / f"{request.param}.cubin").read_bytes()


def test_kernels_with_their_parameters(cubin):
    kernels, _ = read_cubin(cubin)
    assert [kernel.display_name for kernel in kernels] == ["reverse<128>", "hidden", "big"]
    reverse, hidden, big = kernels
    assert [(p.offset, p.size) for p in reverse.parameters] == [(0, 8), (8, 8), (16, 2), (24, 8), (32, 4)]
    assert [(p.offset, p.size) for p in hidden.parameters] == [(0, 8)]
    # More than 4 KB of parameters are described by another attribute.
    assert [(p.offset, p.size) for p in big.parameters] == [(0, 5000), (5000, 8)]
    assert [kernel.max_threads for kernel in kernels] == [128, 0, 64]
    assert [kernel.static_shared_bytes for kernel in kernels] == [512, 0, 0]
    assert all(8 <= kernel.registers <= 32 for kernel in kernels)


def test_device_variables(cubin):
    _, variables = read_cubin(cubin)
    assert [(v.name, v.size_bytes, v.constant) for v in variables] == [
        ("bias", 4, False),
        ("counters", 64, False),
        ("table", 16, True),
    ]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" * 100, b"\x7fELF\x01\x01" + bytes(100)])
def test_what_is_no_cubin_is_refused(data):
    with pytest.raises(ArtifactCorrupt):
        read_cubin(data)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_is_refused_or_read_but_never_breaks(data):
    damaged = bytearray((CUBINS / "sm_90a.cubin").read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))]
    with suppress(ArtifactCorrupt):
        read_cubin(bytes(damaged))


def test_libraries_that_need_nothing_unnamed_leave_nothing_unprovided():
    maps = Path("/proc/self/maps").read_text().split()
    libc = next(path for path in maps if "/libc.so" in path or "/libc-" in path)
    assert ElfFile(Path(libc).read_bytes()).unprovided_symbols() == ()
