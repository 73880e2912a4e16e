import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelskill.schema.task import Tolerance
from kernelskill.tasks import tolerance as module
from kernelskill.tasks.tolerance import EXACT, compare, default_tolerance, root_mean_square

CLOSE = Tolerance(rtol=1e-5, atol=1e-6)


def test_equal_arrays_are_right():
    values = np.arange(10, dtype=np.float32)
    assert compare(values, values.copy(), CLOSE).ok


def test_the_first_wrong_element_is_named():
    expected = np.zeros((3, 4), np.float32)
    got = expected.copy()
    got[1, 2] = 5
    got[2, 0] = 1
    found = compare(got, expected, CLOSE)
    assert (found.ok, found.wrong, found.total, found.first_index) == (False, 2, 12, (1, 2))
    assert (found.got, found.expected, found.max_abs) == ("5.0", "0.0", 5.0)
    assert (found.wrong_sample, found.last_wrong) == ((6, 8), 8)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_never_pass_for_a_number(bad):
    expected = np.ones(4, np.float32)
    got = expected.copy()
    got[3] = bad
    found = compare(got, expected, Tolerance(rtol=1e9, atol=1e9))
    assert (found.ok, found.wrong, found.nan_mismatch) == (False, 1, 1)


def test_expected_nan_and_infinity_must_stand_at_the_same_places():
    expected = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare(expected.copy(), expected, CLOSE).ok
    assert compare(np.array([np.nan, -np.inf, -np.inf, 1.0]), expected, CLOSE).wrong == 1
    assert compare(np.array([0.0, np.inf, -np.inf, 1.0]), expected, CLOSE).wrong == 1


def test_masked_elements_may_hold_anything():
    expected, mask = np.array([1.0, 2.0]), np.array([True, False])
    found = compare(np.array([1.0, np.nan]), expected, CLOSE, mask)
    assert (found.ok, found.total) == (True, 1)


def test_a_double_reference_keeps_its_precision():
    found = compare(np.array([0.1], np.float32), np.array([0.1]), EXACT)
    assert not found.ok
    assert found.max_abs == pytest.approx(1.5e-9, rel=0.1)


def test_half_and_bfloat16_are_compared_as_numbers():
    for kind in (np.float16, ml_dtypes.bfloat16):
        got = np.array([1.0, 2.0], kind)
        assert compare(got, np.array([1.0, 2.001]), default_tolerance(np.dtype(kind).name)).ok
        assert not compare(got, np.array([1.0, 3.0]), default_tolerance(np.dtype(kind).name)).ok


def test_integers_are_exact_at_the_ends_of_their_range():
    assert compare(np.array([2**63 - 1]), np.array([-(2**63)]), EXACT).wrong == 1
    assert compare(np.array([2**64 - 1], np.uint64), np.array([0], np.uint64), EXACT).wrong == 1
    assert compare(np.array([2**53 + 1]), np.array([2**53]), EXACT).wrong == 1


def test_integers_obey_a_tolerance_of_their_own():
    got, expected = np.array([10, 11], np.uint8), np.array([11, 11], np.uint8)
    assert compare(got, expected, Tolerance(rtol=0, atol=1)).ok
    assert not compare(got, expected, EXACT).ok


def test_bool_and_complex_and_empty_and_zero_dimensional():
    assert not compare(np.array(True), np.array(False), EXACT).ok
    assert not compare(np.array([1 + 1j]), np.array([1 - 1j]), CLOSE).ok
    assert compare(np.zeros((0, 3), np.float32), np.zeros((0, 3)), CLOSE).ok
    assert compare(np.float32(1).reshape(()), np.array(1.0), CLOSE).ok


def test_a_scaled_tolerance_follows_the_size_of_the_values():
    scaled = Tolerance(rtol=0, atol=1e-3, scaled=True)
    assert compare(np.array([1000.5, -1000.0]), np.array([1000.0, -1000.0]), scaled).ok
    assert not compare(np.array([0.0015, -0.001]), np.array([0.001, -0.001]), scaled).ok


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_values_whose_squares_leave_the_range_have_a_scale_too(size):
    expected = np.linspace(1.0, 2.0, 1000) * size
    tolerance = default_tolerance("float64")
    assert root_mean_square(expected) == pytest.approx(1.5275 * size, rel=1e-3)
    assert root_mean_square(expected, np.arange(1000) < 1) == pytest.approx(size)
    assert compare(expected * (1 + 1e-12), expected, tolerance).ok
    assert compare(np.zeros(1000), expected, tolerance).wrong == 1000
    assert compare(-expected, expected, tolerance).wrong == 1000


def test_a_scale_that_is_known_is_not_worked_out_again():
    expected = np.full(10, 1.0)
    assert not compare(expected + 0.05, expected, Tolerance(rtol=0.0, atol=0.1, scaled=True), scale=0.1).ok
    assert compare(expected + 0.05, expected, Tolerance(rtol=0.0, atol=0.1, scaled=True), scale=1.0).ok


def test_other_sizes_are_wrong_as_a_whole():
    assert compare(np.zeros(3), np.zeros(4), CLOSE).wrong == 4


def test_structured_arrays_are_compared_by_field():
    kind = np.dtype([("place", "f4", (3,)), ("id", "i4")])
    expected = np.zeros(5, kind)
    got = expected.copy()
    assert compare(got, expected, CLOSE).ok
    got["id"][4] = 1
    assert compare(got, expected, CLOSE).wrong == 1


@given(
    hnp.arrays(np.float64, 50, elements=st.floats(allow_nan=True, allow_infinity=True)),
    hnp.arrays(np.float64, 50, elements=st.floats(allow_nan=True, allow_infinity=True)),
)
def test_agrees_with_the_definition(got, expected):
    found = compare(got, expected, CLOSE)
    with np.errstate(all="ignore"):
        finite = np.isfinite(got) & np.isfinite(expected)
        near = np.abs(got - expected) <= CLOSE.atol + CLOSE.rtol * np.abs(expected)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    assert found.wrong == int(np.count_nonzero(~np.where(finite, near, same)))


def test_chunks_are_joined():
    size = module.CHUNK_ELEMENTS + 10
    expected = np.zeros(size, np.float32)
    got = expected.copy()
    got[[3, size - 1]] = 1
    found = compare(got, expected, CLOSE)
    assert (found.wrong, found.wrong_sample, found.last_wrong) == (2, (3, size - 1), size - 1)
