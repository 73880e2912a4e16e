import pytest

from kernelskill.backends.demangle import display_name
from kernelskill.backends.ptxas_log import KernelUsage, parse_usage

LOG = """\
ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'
ptxas info    : Function properties for _Z1kPf
    24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 24 bytes cumulative stack size, 512 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 3.614 ms
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z1gPf' for 'sm_90a'
ptxas info    : Function properties for _Z1gPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""


def test_usage_of_each_kernel():
    assert parse_usage(LOG) == {
        "_Z1kPf": KernelUsage(32, 512, 24, 20, 28),
        "_Z1gPf": KernelUsage(10, 0, 0, 0, 0),
    }
    assert parse_usage("nothing here") == {}


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("_Z2mmPKfPfi", "mm"),
        ("_Z2mmILi16EfEvPKT0_PS0_i", "mm<16, float>"),
        ("_ZN5space2mmILi16EEEvPf", "space::mm<16>"),
        ("_ZN36_GLOBAL__N__cefa085e_4_k_cu_bb7da67a3hidEPf", "hid"),
        ("_Z5applyI4OpesIfEEvPf", "apply<Opes<float> >"),
        ("saxpy", "saxpy"),
        ("_Znonsense", "_Znonsense"),
    ],
)
def test_display_names(mangled, shown):
    assert display_name(mangled) == shown


def test_names_with_brackets_and_operators_keep_them():
    assert display_name("_Z5applyIXadL_Z1fiEEEvPf") == "apply<&(f(int))>"
